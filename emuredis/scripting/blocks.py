"""The blocks of a Lua text, and the text with a mark at the beginning of each.

``if x then return end`` is one line and two outcomes: a hook for lines cannot tell them apart. `marked` therefore
puts ``__cov(n);`` after each ``then``, ``else``, ``do``, ``repeat`` and list of parameters; no line moves, so
errors and everything else a script can see of its lines stay as they were. Pure text: it knows no interpreter, and
expects source that compiles.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["MARK", "Block", "marked"]

MARK = b"__cov"
_LONG = rb"\[(?P<%s>=*)\[.*?\](?P=%s)\]"
_TOKEN = re.compile(
    rb"--" + _LONG % (b"a", b"a") + rb"|--[^\n]*|" + _LONG % (b"b", b"b")
    + rb"""|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[A-Za-z_]\w*|[)]""",
    re.DOTALL,
)  # fmt: skip
_OPENERS = frozenset((b"then", b"else", b"do", b"repeat"))


class Block(NamedTuple):
    """Where a block begins: its line, the column behind the word that opens it (from 0), and that word."""

    line: int
    column: int
    word: str


def marked(source: bytes) -> tuple[bytes, list[Block]]:
    """The text with marks, and the blocks: mark ``n`` is at the n-th, counted from 1. O(length)."""
    out, blocks, after, parameters = [], [], 0, False
    line, counted = 1, 0
    for match in _TOKEN.finditer(source):
        word = match[0]
        if word == b"function":
            parameters = True
            continue
        if word == b")" and parameters:
            parameters, word = False, b"function"
        elif word not in _OPENERS:
            continue
        end = match.end()
        line += source.count(b"\n", counted, end)
        counted = end
        blocks.append(Block(line, end - 1 - source.rfind(b"\n", 0, end), word.decode()))
        out.append(source[after:end] + b" %s(%d);" % (MARK, len(blocks)))
        after = end
    out.append(source[after:])
    return b"".join(out), blocks
