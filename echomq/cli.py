"""The command line: conformance, stats, worker, demo.

Exit codes: 0 done, 1 something failed, 2 the question was wrong or nobody answers at the URL. Commands that
only make sense on a server shared with other processes refuse `emuredis://`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import signal
import sys
from collections.abc import Callable, Sequence

from .conformance import names, run
from .consumer import ConsumerThread
from .endpoint import Endpoint, parse_url
from .errors import ArgumentError, EchoError
from .machine import Handler
from .metrics import Metrics
from .script import Scripts

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["demo"]:
        from .demo import main as demo  # a program of its own, with its own options

        return int(demo(arguments[1:]) or 0)
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except EchoError as error:
        print(f"echomq: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m echomq", description="A job queue on Valkey.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser("conformance", help="run the protocol's scenarios on a server")
    one.add_argument("--url", default="emuredis://", help="default: %(default)s, inside this process")
    one.add_argument("--scripts", metavar="DIR", help="use the .lua files found there in place of ours")
    one.add_argument("--time-scale", type=float, default=5, help="stretch durations on a wall clock (5)")
    one.add_argument("--only", metavar="NAME", help="run one scenario")
    one.add_argument("--queue", default="conformance", help="prefix of the queues used (%(default)s)")
    one.set_defaults(command=_conformance)
    two = commands.add_parser("stats", help="sizes of a queue")
    two.add_argument("--url", default="redis://127.0.0.1:6379", help="default: %(default)s")
    two.add_argument("queue")
    two.set_defaults(command=_stats)
    three = commands.add_parser("worker", help="serve a queue until interrupted")
    three.add_argument("--url", default="redis://127.0.0.1:6379", help="default: %(default)s")
    three.add_argument("--lease-ms", type=int, default=30_000)
    three.add_argument("--beat-ms", type=int, default=1_000)
    three.add_argument("--max-attempts", type=int, default=3)
    three.add_argument("--scripts", metavar="DIR", help="use the .lua files found there in place of ours")
    three.add_argument("queue")
    three.add_argument("handler", metavar="MODULE:FUNCTION", help="called with each job")
    three.set_defaults(command=_worker)
    commands.add_parser("demo", help="a delayed job queue at work")
    return parser


def _conformance(options: argparse.Namespace) -> int:
    if not options.time_scale > 0:
        raise ArgumentError(f"--time-scale must be above 0, not {options.time_scale:g}")
    scripts = Scripts(options.scripts)
    if options.scripts is not None:
        print(f"scripts from {options.scripts}: {', '.join(scripts.replaced())}")
    endpoint = _open(options.url)
    width = max(map(len, names()))
    passed = failed = 0
    results = run(
        endpoint,
        queue=options.queue,
        scripts=scripts,
        time_scale=options.time_scale,
        only=options.only,
    )
    for result in results:
        passed += result.passed
        failed += not result.passed
        print(
            f"{result.name:{width}}  {'ok' if result.passed else 'FAILED  ' + str(result.problem)}",
            flush=True,
        )
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def _open(url: str) -> Endpoint:
    """An endpoint; a private embedded server runs on a clock that waiting advances."""
    target = parse_url(url)
    if target.embedded and not target.name:
        from .embedded import manual_clock

        return Endpoint(url, clock=manual_clock())
    return Endpoint(url)


def _shared(url: str) -> Endpoint:
    if parse_url(url).embedded:
        raise ArgumentError(
            f"{url} is a server inside this process, which nobody else can reach. Start one to share with "
            "`python -m emuredis serve` and give its address, for example --url redis://127.0.0.1:6379"
        )
    return Endpoint(url)


def _stats(options: argparse.Namespace) -> int:
    connection = _shared(options.url).connect()
    try:
        metrics = Metrics(connection, options.queue)
        counts = metrics.get_counts()
        look = metrics.outlook()
    finally:
        connection.close()
    report = {
        "queue": options.queue,
        **counts,
        "paused": look.paused,
        "groups_on_ring": look.ring,
        "next_run_in_ms": None if look.next_run is None else look.next_run - look.now,
        "next_deadline_in_ms": None if look.next_deadline is None else look.next_deadline - look.now,
    }
    print(json.dumps(report, indent=2))
    return 0


def _handler(path: str) -> Handler:
    module, _, name = path.partition(":")
    if not module or not name:
        raise ArgumentError(f"a handler is MODULE:FUNCTION, not {path!r}")
    sys.path.insert(0, "")
    try:
        handler = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ArgumentError(f"cannot load the handler {path}: {error}") from error
    if not callable(handler):
        raise ArgumentError(f"{path} is not callable")
    loaded: Handler = handler
    return loaded


def _worker(options: argparse.Namespace) -> int:
    endpoint = _shared(options.url)
    handler = _handler(options.handler)
    worker = ConsumerThread(
        endpoint,
        options.queue,
        handler,
        scripts=Scripts(options.scripts),
        lease_ms=options.lease_ms,
        beat_ms=options.beat_ms,
        max_attempts=options.max_attempts,
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: worker.consumer.stop())
    print(f"serving {options.queue} at {options.url}; interrupt to stop", flush=True)
    worker.start()
    while worker.running:
        worker.join(0.5)
    worker.stop()
    tally = worker.consumer.tally
    print(f"{tally.completed} completed, {tally.retried} retried, {tally.dead} dead, {tally.refused} refused")
    return 0
