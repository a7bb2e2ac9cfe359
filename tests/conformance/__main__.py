"""``python -m tests.conformance [FILE ...] [-c COMMAND ...]``: compare emuredis with the live server.

FILE is a path or the name of a file in ``lines/`` (all of them when none is given); ``-`` reads standard input.
``-c`` gives lines on the command line, as one block, and prints every answer. Ends with a count; the exit status
says whether everything agreed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from tests.support.endpoints import Endpoint, SocketEndpoint
from tests.support.live import LiveServer
from tests.support.resp import show

from . import recorded
from .compare import differences
from .lines import DIRECTORY, Block, files, load, parse_text
from .run import run


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument(
        "-c", dest="commands", action="append", metavar="LINE", help="a line; repeat for several"
    )
    parser.add_argument(
        "-k", dest="only", default="", metavar="TEXT", help="blocks whose title contains TEXT"
    )
    parser.add_argument("--protocol", type=int, choices=(2, 3), action="append")
    parser.add_argument("--door", choices=("inprocess", "wire", "live"), action="append",
                        help="what is compared with the live server (default: inprocess); live: itself")  # fmt: skip
    parser.add_argument(
        "--record", action="store_true", help="write the live server's answers into recorded/"
    )
    return parser.parse_args(argv)


def _blocks(options: argparse.Namespace) -> list[Block]:
    if options.commands:
        return parse_text("\n".join(options.commands), "command line")
    out: list[Block] = []
    for name in options.files or files():
        if str(name) == "-":
            out += parse_text(sys.stdin.read(), "standard input")
        else:
            path = Path(name)
            out += load(path if path.exists() else DIRECTORY / f"{path.stem}.txt")
    return [block for block in out if options.only in block.title]


def _door(name: str, live: LiveServer) -> Endpoint:
    if name == "live":
        return SocketEndpoint("live again", live.socket_path)
    from tests.support.emulated import EmulatorEndpoint, wire_endpoint

    return EmulatorEndpoint() if name == "inprocess" else wire_endpoint()


def _compare(blocks: list[Block], options: argparse.Namespace, live: LiveServer) -> tuple[int, int]:
    truth = SocketEndpoint("live", live.socket_path)
    doors = [(name, _door(name, live)) for name in options.door or ["inprocess"]]
    agreed = differed = 0
    for block in blocks:
        for protocol in options.protocol or (2, 3):
            if protocol not in block.protocols:
                continue
            want = run(block, protocol, truth)
            for name, endpoint in doors:
                if name in block.skipped:
                    continue
                found = _attempt(lambda: differences(want, run(block, protocol, endpoint), ("live", name)))  # noqa: B023
                agreed, differed = agreed + (not found), differed + bool(found)
                if found:
                    print(f"\n{block.file}.txt:{block.number} == {block.title} (RESP{protocol}, {name})")
                    print("\n".join(found), flush=True)
            if options.commands:
                print(f"live, RESP{protocol}:")
                for entry in want:
                    print(f"  {entry.text}\n    {show(entry.frame, '    ')}")
    for endpoint in [truth, *(door for _, door in doors)]:
        endpoint.close()
    return agreed, differed


def _attempt(work: Callable[[], list[str]]) -> list[str]:
    """A crash of the emulator is a difference like any other, shown with its last frames."""
    try:
        return work()
    except Exception:
        import traceback

        return [traceback.format_exc(limit=-6)]


def main(argv: list[str] | None = None) -> int:
    options = _arguments(argv)
    blocks = _blocks(options)
    with LiveServer() as live:
        if options.record:
            return recorded.write(blocks, SocketEndpoint("live", live.socket_path))
        agreed, differed = _compare(blocks, options, live)
    print(f"{agreed} blocks agree, {differed} differ")
    return 1 if differed else 0


if __name__ == "__main__":
    sys.exit(main())
