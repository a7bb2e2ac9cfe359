"""The command line: ``python -m emuredis serve``, ``commands``, ``debug``, ``replay`` and ``learn``.

Responsible for options, for the lines a person sees, and for the signals that end a server. Every parameter that
an emulator can be made with is an option by the server's name, ``--requirepass secret``; what is listened on has
options of its own. What goes wrong is one line on standard error and an exit status: 1 for an address that cannot be
bound or a file that cannot be loaded, 2 for a bad option.

With ``--dir`` or ``--dbfilename`` the server begins with what that file holds, if it is there. It is written by SAVE
and BGSAVE, by SHUTDOWN SAVE, and at the signals SIGTERM and SIGINT if ``--shutdown-on-sigterm save`` and
``--shutdown-on-sigint save`` ask for it. As on the real server a signal then ends nothing when the file cannot be
written.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from emuredis import Emulator, EmulatorError, ManualClock, RdbError, ReplyError, __version__, listing
from emuredis.engine.config import PARAMETERS
from emuredis.releases import SERVER_TYPES
from emuredis.server import Server

__all__ = ["main"]

DEFAULT_PORT = 6379


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = _parser()
    given = list(sys.argv[1:] if argv is None else argv)
    args: list[str] = []
    if given[:1] == ["debug"] and "--" in given:
        at = given.index("--")
        given, args = given[:at], given[at + 1 :]
    options = parser.parse_args(given)
    if options.command is None:
        parser.print_help()
        return 2
    if options.command == "commands":
        return _commands(options.against)
    if options.command == "debug":
        return _debug(options, args)
    if options.command == "replay":
        return _replay(options)
    if options.command == "learn":
        return _learn(options)
    return _serve(parser, options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="emuredis", description="Valkey 9.1 in memory, in pure Python.")
    parser.add_argument("--version", action="version", version=f"emuredis {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    serve = commands.add_parser(
        "serve",
        help="serve any client over TCP or a Unix socket, until interrupted",
        description="Serve any client over TCP or a Unix socket, until interrupted. With --dir or "
        "--dbfilename the server begins with the contents of that RDB file.",
    )
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    serve.add_argument("--port", type=_port, default=None,
                       help=f"0 for a free one (default: {DEFAULT_PORT}, or none beside --unix)")  # fmt: skip
    serve.add_argument("--unix", metavar="PATH", default=None, help="Unix socket to listen on")
    serve.add_argument("--seed", type=int, default=None, help="seed of everything random (default: drawn)")
    serve.add_argument("--server-version", metavar="VERSION", default=None,
                       help="commands that this release does not have are unknown, for example 7.2")  # fmt: skip
    serve.add_argument(
        "--server-type", choices=SERVER_TYPES, default=None, help="whose release (default: valkey)"
    )
    serve.add_argument("--clock", choices=("system", "manual"), default="system",
                       help="manual: time stands still unless a client moves it, see --control")  # fmt: skip
    serve.add_argument("--control", action="store_true",
                       help="the command EMUREDIS: clock, faults, snapshots, journal (see EMUREDIS HELP)")  # fmt: skip
    serve.add_argument(
        "--no-hiredis", action="store_true", help="read requests in Python even if hiredis is there"
    )
    serve.add_argument("--cluster", metavar="N", type=_nodes, nargs="?", const=3, default=None,
                       help="a cluster of so many primaries (3), on --port and the next ones")  # fmt: skip
    parameters = serve.add_argument_group("parameters", "as in the server's configuration")
    for parameter in PARAMETERS.values():
        if parameter.choosable:
            shown = parameter.render(parameter.default)
            parameters.add_argument(f"--{parameter.name}", metavar="VALUE", default=argparse.SUPPRESS,
                                    help=f"(default: {shown})" if shown else None)  # fmt: skip
    _add_tools(commands)
    return parser


def _add_tools(commands: Any) -> None:
    """The commands that serve nobody."""
    names = commands.add_parser("commands", help="list the commands, or compare them with a server's")
    names.add_argument("--against", metavar="URL", help="a real server, for example redis://127.0.0.1:6379")
    debug = commands.add_parser(
        "debug",
        help="run a Lua script step by step",
        description="Run a Lua script step by step, on an empty emulator or what --setup put there.",
        usage="emuredis debug FILE [--keys KEY ...] [--setup COMMAND] [--function NAME] [--strict MODE] [-- ARG ...]",
    )
    debug.add_argument("file", metavar="FILE", type=Path)
    debug.add_argument("--keys", nargs="*", default=[], metavar="KEY")
    debug.add_argument("--setup", action="append", default=[], metavar="COMMAND",
                       help='run first, for example "RPUSH queue 1 2"; may be given again')  # fmt: skip
    debug.add_argument("--function", metavar="NAME", help="FILE is a library; call this function of it")
    debug.add_argument("--strict", choices=("declared", "slot"), help="a strict mode for keys")
    again = commands.add_parser(
        "replay",
        help="run again what MONITOR printed, and compare with a server",
        description="Run the commands in MONITOR's output on an empty emulator, each client's on a connection of "
        "its own, and print the content it leaves behind; with --against, ask a server too and print what differs.",
    )
    again.add_argument("log", metavar="LOG", type=Path)
    again.add_argument("--against", metavar="URL", help="a real server; ALL ITS KEYS ARE DELETED first")

    learn = commands.add_parser(
        "learn",
        help="lessons in atomicity: you choose who runs next",
        description="Fifteen small programs and what must not happen to them. You choose who runs next, who crashes, "
        "and when time passes.",
    )
    learn.add_argument("lesson", nargs="?", type=int, metavar="N", help="begin with this lesson")
    learn.add_argument(
        "--web", action="store_true", help="as a page on this machine, at the address it prints"
    )
    learn.add_argument("--port", type=_port, default=0, help="for --web (default: a free one)")


def _learn(options: argparse.Namespace) -> int:
    if not options.web:
        from emuredis.lab.lessons.terminal import learn

        learn(input, print, options.lesson)
        return 0
    from emuredis.lab.lessons.web import serve

    def ready(server: Any) -> None:
        place = f"#lesson={options.lesson}" if options.lesson else ""
        print(
            f"the lessons are at http://127.0.0.1:{server.server_address[1]}/{place} until interrupted",
            flush=True,
        )

    try:
        serve(options.port, ready)
    except OSError as problem:
        print(f"emuredis: cannot listen on 127.0.0.1:{options.port}: {problem.strerror}", file=sys.stderr)
        return 1
    return 0


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to 65535)")
    return int(text)


def _nodes(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 1000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of nodes (1 to 1000)")
    return int(text)


def _commands(against: str | None) -> int:
    """0; with a server 0 if every name it has is here, 1 if not, 2 if it could not be asked."""
    if against is None:
        print("\n".join(listing.listed()))
        return 0
    try:
        lines, complete = listing.compared(against)
    except (ImportError, OSError, ValueError) as problem:
        print(f"emuredis: {problem}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0 if complete else 1


def _debug(options: argparse.Namespace, args: list[str]) -> int:
    """0; 1 if the script ended in an error, 2 if it could not be run."""
    from emuredis.lab import console

    emulator = Emulator()
    client = emulator.client()
    try:
        source = options.file.read_bytes()
        for line in options.setup:
            client.call(*shlex.split(line))
    except (OSError, ReplyError, TypeError, ValueError) as problem:
        print(f"emuredis: {problem}", file=sys.stderr)
        return 2
    emulator.strict_keys = options.strict
    reply = console.run(source, options.keys, args, input, print, emulator, options.function)
    return 1 if isinstance(reply, ReplyError) else 0


def _replay(options: argparse.Namespace) -> int:
    """0; 1 if there are differences, 2 if it could not be run."""
    from emuredis.kit.twin import replay

    emulator = Emulator()
    try:
        text = options.log.read_text("utf-8", "surrogateescape")
        count, differences = replay(text, options.against, emulator)
    except (EmulatorError, ImportError, OSError, ValueError) as problem:
        print(f"emuredis: {problem}", file=sys.stderr)
        return 2
    if options.against is None:
        print(emulator.dump(), end="")
        return 0
    for difference in differences:
        print(str(difference).partition("\nafter")[0])
    print(f"{count} commands, {len(differences)} differences")
    return 1 if differences else 0


def _serve(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    given = vars(options)
    config: dict[str, Any] = {
        name: given[parameter.attribute]
        for name, parameter in PARAMETERS.items()
        if parameter.choosable and parameter.attribute in given
    }
    port = DEFAULT_PORT if options.port is None and options.unix is None else options.port
    if options.cluster is not None and options.unix is not None:
        parser.error("a cluster is served on ports only")
    try:
        clock = ManualClock() if options.clock == "manual" else None
        emulator = Emulator(clock, seed=options.seed, config=config, version=options.server_version,
                            server_type=options.server_type, cluster=options.cluster)  # fmt: skip
    except ValueError as problem:
        parser.error(str(problem))
    nodes = [emulator] if emulator.cluster is None else emulator.cluster.nodes
    if not all(_loaded(node, "dir" in given or "dbfilename" in given) for node in nodes):
        return 1
    ports = [port] if emulator.cluster is None else emulator.cluster.ports(port)
    servers = []
    for node, each in zip(nodes, ports, strict=True):
        server = Server(node, options.host, each, options.unix, hiredis=False if options.no_hiredis else None,
                        control=options.control)  # fmt: skip
        servers.append(server)
        try:
            server.bind()
        except (OSError, OverflowError) as problem:
            where = " and ".join(_places(options.host, each, options.unix))
            why = getattr(problem, "strerror", None) or problem
            print(f"emuredis: cannot listen on {where}: {why}", file=sys.stderr)
            _stop(servers)
            return 1
    _run(servers)
    return 0


def _run(servers: list[Server]) -> None:
    """Serve until a signal or a SHUTDOWN of the first ends it: the first here, the others in threads."""
    first = servers[0]
    for number, parameter in ((signal.SIGINT, "sigint"), (signal.SIGTERM, "sigterm")):
        signal.signal(number, lambda *_, name=parameter: first.soon(lambda: _end(servers, name)))
    where = [place for server in servers for place in _places(server.host, server.port, server.unix)]
    print(f"emuredis {__version__} ready on {' and '.join(where)}", flush=True)
    for server in servers[1:]:
        server.start()
    first.run()
    _stop(servers[1:])


def _stop(servers: list[Server]) -> None:
    for server in servers:
        server.stop()


def _loaded(emulator: Emulator, wanted: bool) -> bool:
    """Load the file if it is ``wanted`` and there; False, and a line, if that fails."""
    path = emulator.engine.persistence.path
    if not wanted or not path.exists():
        return True
    try:
        emulator.load_rdb()
    except RdbError as problem:
        print(f"emuredis: cannot load {problem}", file=sys.stderr)
    except OSError as problem:
        print(f"emuredis: cannot load {path}: {problem.strerror or problem}", file=sys.stderr)
    else:
        return True
    return False


def _end(servers: list[Server], name: str) -> None:
    """What a signal does, in the first server's loop: end it, after a save if the configuration says so."""
    for server in servers:
        words = getattr(server.config, f"shutdown_on_{name}").split()
        if "save" in words:
            try:
                server.emulator.save_rdb()
            except OSError:
                if "force" not in words:
                    print("emuredis: not ended, as the file could not be written", file=sys.stderr)
                    return
    servers[0].stop()


def _places(host: str, port: int | None, unix: str | None) -> list[str]:
    places = [] if port is None else [f"[{host}]:{port}" if ":" in host else f"{host}:{port}"]
    return places if unix is None else [*places, unix]
