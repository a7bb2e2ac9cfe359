"""The first line of scripts and libraries, ``#!engine option...``: its words, as the server splits them."""

from __future__ import annotations

import re

__all__ = ["CROSS_SLOT", "FLAGS", "NO_CLUSTER", "cut_shebang", "words"]

NO_CLUSTER, CROSS_SLOT = b"no-cluster", b"allow-cross-slot-keys"
#: What scripts and functions may say of themselves, in the server's order.
FLAGS = (b"no-writes", b"allow-oom", b"allow-stale", NO_CLUSTER, CROSS_SLOT)


def cut_shebang(body: bytes) -> int | None:
    """Where the line ends, -1 if it never does, None if there is no such line."""
    if not body.startswith(b"#!"):
        return None
    return body.partition(b"\0")[0].find(b"\n")


_PIECES = re.compile(rb"""[^ \t\r\n"']+|"(?:\\.|[^"\\])*"|'(?:\\'|[^'])*'|[ \t\r\n]+""")
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)")
_CONTROLS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}


def words(line: bytes) -> list[bytes] | None:
    """The words of a shebang line, quotes taken away; None if a quote is not closed."""
    found: list[bytes] = []
    at, joined = 0, False
    while at < len(line):
        match = _PIECES.match(line, at)
        if match is None:
            return None
        piece, at = match[0], match.end()
        if piece[:1] in b" \t\r\n":
            joined = False
            continue
        if piece[:1] == b'"':
            piece = _ESCAPE.sub(_unescaped, piece[1:-1])
        elif piece[:1] == b"'":
            piece = piece[1:-1].replace(b"\\'", b"'")
        if joined:
            found[-1] += piece
        else:
            found.append(piece)
        joined = True
    return found


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code[1:], 16)]) if len(code) == 3 else _CONTROLS.get(code, code)
