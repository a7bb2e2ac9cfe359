"""LZF, the compression of long strings in RDB files.

A compressed text is a row of runs: a byte below 32 announces one more literal byte than it says; any other holds a
length in its upper three bits (seven: more in the next byte) and the upper bits of a distance, whose lower byte
follows: copy that many bytes and two more from there.

`compress` finds the matches that the server's fastest mode finds, so that payloads agree byte for byte: a table of the
last place of each three bytes, by a hash of 16 bits, in which only two places of each match are noted.
"""

from __future__ import annotations

__all__ = ["compress", "decompress"]

_MAX_LITERALS = 32
_MAX_DISTANCE = 1 << 13
_MAX_MATCH = (1 << 8) + (1 << 3)
_SLOTS = (1 << 16) - 1
_ROOM = 4  # what the server wants to be left for a match, of which it needs no more than three
_LONG = 16


def compress(data: bytes, most: int) -> bytes | None:
    """``data`` compressed to ``most`` bytes or fewer, or None when that is not possible. O(n)."""
    size = len(data)
    out = bytearray()
    table: dict[int, int] = {}
    seen = table.get
    last = size - 2  # from here on there are no three bytes to look at
    at = start = 0  # ``start``: where the literals not yet written begin
    while at < last:
        three = data[at] << 16 | data[at + 1] << 8 | data[at + 2]
        slot = (three >> 8) - three * 5 & _SLOTS
        ref = seen(slot, 0)  # the very first place counts as none
        table[slot] = at
        if not ref or at - ref > _MAX_DISTANCE or data[ref : ref + 3] != data[at : at + 3]:
            at += 1
            continue
        _literals(out, data[start:at])
        if len(out) + _ROOM >= most:
            return None
        length = _match(data, ref, at, min(last - at, _MAX_MATCH))
        _copy(out, length - 2, at - ref - 1)
        at = start = at + length
        if at < last:
            for place in (at - 2, at - 1):
                three = data[place] << 16 | data[place + 1] << 8 | data[place + 2]
                table[(three >> 8) - three * 5 & _SLOTS] = place
    literals = max(min(at, size) - start, 0)
    if len(out) + literals + literals // _MAX_LITERALS + 1 + 3 > most:
        return None
    _literals(out, data[start:])
    return bytes(out)


def _match(data: bytes, ref: int, at: int, most: int) -> int:
    """How many bytes are alike from ``ref`` and ``at`` on, three being known to be; up to about ``most``."""
    length = 3
    if most > _LONG:
        while length < _LONG + 3:
            if data[ref + length] != data[at + length]:
                return length
            length += 1
    while length < most and data[ref + length] == data[at + length]:
        length += 1
    return length


def _literals(out: bytearray, literals: bytes) -> None:
    for start in range(0, len(literals), _MAX_LITERALS):
        run = literals[start : start + _MAX_LITERALS]
        out.append(len(run) - 1)
        out += run


def _copy(out: bytearray, length: int, distance: int) -> None:
    if length < 7:
        out.append(distance >> 8 | length << 5)
    else:
        out += bytes((distance >> 8 | 7 << 5, length - 7))
    out.append(distance & 255)


def decompress(data: bytes, size: int) -> bytes | None:
    """The ``size`` bytes that ``data`` stands for; None when it stands for none, or for another number. O(size)."""
    out = bytearray()
    at, end = 0, len(data)
    while at < end and len(out) <= size:
        control = data[at]
        at += 1
        if control < 32:
            out += data[at : at + control + 1]
            at += control + 1
            continue
        length = control >> 5
        if length == 7:
            if at >= end:
                return None
            length += data[at]
            at += 1
        if at >= end:
            return None
        ref = len(out) - ((control & 31) << 8 | data[at]) - 1
        at += 1
        if ref < 0:
            return None
        length += 2
        piece = out[ref : ref + length]
        while len(piece) < length:  # a copy may overlap with what it makes
            piece += piece[: length - len(piece)]
        out += piece
    return bytes(out) if at == end and len(out) == size else None
