"""A delayed job queue at work: ``python -m echomq demo [--url URL] [--live] [--file FILE]``.

Sends the notifications of a file: due at their times, some deferred by a rate limit, some failing and retried,
one that can never be sent, one whose worker dies in the middle of it. By default everything runs in this process on
a manual clock, so an hour of schedule takes a moment. It ends with an audit: every job enqueued is
either completed or dead, none is lost and none was sent twice.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..endpoint import Endpoint, parse_url
from ..errors import ArgumentError, EchoError
from .compare import compare, live_server
from .play import Play
from .report import Progress, print_run
from .story import load

__all__ = ["main"]

DEFAULT_FILE = Path(__file__).resolve().parents[2] / "examples" / "notifications.jsonl"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; 0 when every audit is clean, 1 when one is not, 2 when nothing could be run."""
    options = _parser().parse_args(argv)
    try:
        return _run(options)
    except (EchoError, OSError) as error:
        print(f"echomq demo: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m echomq demo", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--url", default="emuredis://", help="where the queue lives (default: in this process)"
    )
    parser.add_argument(
        "--live", action="store_true", help="also run on a real Valkey and compare every reply"
    )
    parser.add_argument(
        "--file", type=Path, default=DEFAULT_FILE, help="notifications, one JSON object a line"
    )
    parser.add_argument(
        "--speed", type=float, default=240, help="on a wall clock: seconds of schedule a second (240)"
    )
    return parser


def _run(options: argparse.Namespace) -> int:
    if not options.speed > 0:
        raise ArgumentError(f"--speed must be above 0, not {options.speed:g}")
    notices = load(options.file)
    clean = _play(_endpoint(options.url), notices, options.speed)
    if options.live:
        with live_server() as url:
            clean &= _play(Endpoint(url), notices, options.speed)
            clean &= compare(_endpoint("emuredis://"), Endpoint(url))
    return 0 if clean else 1


def _endpoint(url: str) -> Endpoint:
    if parse_url(url).embedded:
        from ..embedded import manual_clock

        return Endpoint(url, clock=manual_clock()) if not parse_url(url).name else Endpoint(url)
    return Endpoint(url)


def _play(endpoint: Endpoint, notices: list, speed: float) -> bool:  # type: ignore[type-arg]
    play = Play(endpoint, notices, speed, Progress())
    print_run(play.run())
    return play.clean
