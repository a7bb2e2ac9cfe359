"""LCS: the longest common subsequence of two strings.

The table of lengths, L(i, j) for the first i and j bytes, is kept as one integer per row: bit j - 1 of row i is
clear where L(i, j) is greater than L(i, j - 1). A row follows from the one above by one addition, whatever its width,
and these bits are all that the way back through the table asks for. Of several longest subsequences the server's walk
finds one: from the ends of both strings, to the left unless only upwards the length stays the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.errors import err
from emuredis.replies import Map, Reply
from emuredis.spec import command

if TYPE_CHECKING:
    from emuredis.engine.session import Session

Range = tuple[int, int, int]  # where it starts in one and in the other, and its length


class _Options:
    __slots__ = ("idx", "len", "least", "withmatchlen")

    def __init__(self, argv: list[bytes]) -> None:
        self.idx = self.len = self.withmatchlen = False
        self.least = 0
        words = iter(argv[3:])
        for word in words:
            match word.upper():
                case b"IDX":
                    self.idx = True
                case b"LEN":
                    self.len = True
                case b"WITHMATCHLEN":
                    self.withmatchlen = True
                case b"MINMATCHLEN" if (least := next(words, None)) is not None:
                    self.least = integer(least)
                case _:
                    raise errors.syntax()
        if self.idx and self.len:
            raise err("If you want both the length and indexes, please just use IDX.")


def _rows(one: bytes, other: bytes) -> list[int]:
    """A row for each byte of ``one``. O(n * m) bits."""
    places = dict.fromkeys(other, 0)
    for at, byte in enumerate(other):
        places[byte] |= 1 << at
    full = (1 << len(other)) - 1
    row = full
    rows = []
    for byte in one:
        matches = row & places.get(byte, 0)
        row = (row + matches | row - matches) & full
        rows.append(row)
    return rows


def _ranges(one: bytes, other: bytes, rows: list[int]) -> list[Range]:
    """The runs of the subsequence that are contiguous in both strings, the last one first. O(n + m) steps."""
    ranges = []
    i, j, length = len(one), len(other), 0
    while i and j:
        if one[i - 1] == other[j - 1]:
            i, j, length = i - 1, j - 1, length + 1
            continue
        if length:
            ranges.append((i, j, length))
            length = 0
        if rows[i - 1] >> j - 1 & 1:
            j -= 1
        else:
            i -= 1
    if length:
        ranges.append((i, j, length))
    return ranges


@command("LCS key1:key key2:key [LEN] [IDX] [MINMATCHLEN min-match-len:integer] [WITHMATCHLEN]", "readonly",
         keys="RO access @1..1", group="string", since="7.0.0",
         complexity="O(N*M), N and M being the lengths of the strings")  # fmt: skip
def lcs(ctx: Session, argv: list[bytes]) -> Reply:
    """Finds the longest common subsequence of two strings, its length, or where it lies."""
    one, other = ctx.db.look(argv[1]), ctx.db.look(argv[2])
    if any(value is not None and value.__class__ is not bytes for value in (one, other)):
        raise err("The specified keys must contain string values")
    options = _Options(argv)
    one, other = one or b"", other or b""
    # The server's table of lengths, which it refuses to make larger than a string may be, takes 4 bytes for each.
    if (len(one) + 1) * (len(other) + 1) * 4 > ctx.engine.config.proto_max_bulk_len:
        raise err("Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")
    rows = _rows(one, other)
    length = len(other) - rows[-1].bit_count() if rows else 0
    if options.len:
        return length
    ranges = _ranges(one, other, rows)
    if not options.idx:
        return b"".join([one[start : start + size] for start, _, size in reversed(ranges)])
    matches: list[Reply] = []
    for start, at, size in ranges:
        if size >= options.least:
            match = [[start, start + size - 1], [at, at + size - 1]]
            matches.append([*match, size] if options.withmatchlen else match)
    return Map([b"matches", matches, b"len", length])
