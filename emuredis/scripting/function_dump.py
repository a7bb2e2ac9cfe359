"""The payload of FUNCTION DUMP: the sources of all libraries, each after its mark, the format's version, a checksum.

A source is a string as RDB files have them: a length and the bytes, or one of the special forms. The one that matters
is LZF compression: a row of runs, of which a byte below 32 announces one more literal byte than it says, and any other
a copy: its length in the upper three bits (seven: more in the next byte), the distance in the rest and one byte more.
`_compressed` finds the matches that the server's fastest mode finds, so that payloads agree byte for byte.
"""

from __future__ import annotations

from emuredis import errors
from emuredis.errors import ReplyError

__all__ = ["check", "crc64", "dump"]

_VERSION, _LAST_COMMON_VERSION = 80, 11  # ours, and the last that all servers of the family share
_LIBRARY, _OLD_LIBRARY = 245, 246
_FOOTER = 10
_POLYNOMIAL = 0x95AC9329AC4BC9B5  # of Jones, with its bits reversed
_INTEGERS = {0xC0: 1, 0xC1: 2, 0xC2: 4}  # first byte: bytes of the integer
_COMPRESSED = 0xC3
_VERBATIM = 20  # longer texts are worth trying to compress
_SAVING = 4  # bytes a compressed text must at least be shorter
_FARTHEST, _LONGEST = 1 << 13, (1 << 8) + (1 << 3)  # of a match: distance and length


def _table() -> list[int]:
    table = list(range(256))
    for _ in range(8):
        table = [crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0) for crc in table]
    return table


_TABLE = _table()


def crc64(data: bytes) -> int:
    """The server's checksum. O(n)."""
    crc = 0
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc


def dump(codes: list[bytes]) -> bytes:
    """The payload for libraries of these sources."""
    body = b"".join(bytes((_LIBRARY,)) + _string(code) for code in codes)
    body += _VERSION.to_bytes(2, "little")
    return body + crc64(body).to_bytes(8, "little")


def _length(number: int) -> bytes:
    if number < 1 << 6:
        return bytes((number,))
    if number < 1 << 14:
        return (number | 1 << 14).to_bytes(2, "big")
    return b"\x80" + number.to_bytes(4, "big")


def _string(text: bytes) -> bytes:
    packed = _compressed(text, len(text) - _SAVING) if len(text) > _VERBATIM else None
    if packed is None:
        return _length(len(text)) + text
    return bytes((_COMPRESSED,)) + _length(len(packed)) + _length(len(text)) + packed


def _compressed(data: bytes, most: int) -> bytes | None:
    """``data`` compressed to ``most`` bytes or fewer, or None when that is not possible. O(n)."""
    size = len(data)
    out = bytearray()
    table: dict[int, int] = {}  # the last place of each three bytes, by a hash of them
    at = start = 0  # ``start``: where the literals not yet written begin
    while at < size - 2:
        slot = _slot(data, at)
        ref = table.get(slot, 0)  # the very first place counts as none
        table[slot] = at
        if not ref or at - ref > _FARTHEST or data[ref : ref + 3] != data[at : at + 3]:
            at += 1
            continue
        _literals(out, data[start:at])
        if len(out) + 4 >= most:
            return None
        length = _match(data, ref, at, min(size - 2 - at, _LONGEST))
        distance, long = at - ref - 1, length - 2 >= 7
        out.append(distance >> 8 | (7 if long else length - 2) << 5)
        out += bytes((length - 9, distance & 255)) if long else bytes((distance & 255,))
        at = start = at + length
        if at < size - 2:
            for place in (at - 2, at - 1):
                table[_slot(data, place)] = place
    left = max(min(at, size) - start, 0)  # the last two bytes have room, as on the server
    if len(out) + left + left // 32 + 4 > most:
        return None
    _literals(out, data[start:])
    return bytes(out)


def _slot(data: bytes, at: int) -> int:
    three = data[at] << 16 | data[at + 1] << 8 | data[at + 2]
    return (three >> 8) - three * 5 & 0xFFFF


def _match(data: bytes, ref: int, at: int, most: int) -> int:
    """How many bytes are alike from ``ref`` and ``at`` on, three being known to be; up to about ``most``."""
    length = 3
    if most > 16:  # then the server looks at sixteen more without regard to ``most``
        while length < 19:
            if data[ref + length] != data[at + length]:
                return length
            length += 1
    while length < most and data[ref + length] == data[at + length]:
        length += 1
    return length


def _literals(out: bytearray, literals: bytes) -> None:
    for start in range(0, len(literals), 32):
        run = literals[start : start + 32]
        out.append(len(run) - 1)
        out += run


class _Broken(Exception):
    """The string in a payload is none."""


class Sources:
    """The sources in a payload, one after the other; iterating raises ReplyError where the payload goes wrong."""

    def __init__(self, payload: bytes) -> None:
        self._data = payload
        self._at = 0

    def __iter__(self) -> Sources:
        return self

    def __next__(self) -> bytes:
        if len(self._data) - self._at <= _FOOTER:  # a source may reach into the footer, as on the server
            raise StopIteration
        mark = self._raw(1)[0]
        if mark == _OLD_LIBRARY:
            raise errors.err("Pre-GA function format not supported")
        if mark != _LIBRARY:
            raise errors.err("given type is not a function")
        try:
            return self._string()
        except _Broken:
            raise ReplyError("ERR Failed loading library payload") from None

    def _raw(self, size: int) -> bytes:
        piece = self._data[self._at : self._at + size]
        if len(piece) < size:
            raise _Broken
        self._at += size
        return piece

    def _size(self, first: int) -> int:
        if first >> 6 == 0:
            return first
        if first >> 6 == 1:
            return (first & 63) << 8 | self._raw(1)[0]
        if first == 0x80:
            return int.from_bytes(self._raw(4), "big")
        if first == 0x81:
            return int.from_bytes(self._raw(8), "big")
        raise _Broken

    def _string(self) -> bytes:
        first = self._raw(1)[0]
        if first in _INTEGERS:
            return b"%d" % int.from_bytes(self._raw(_INTEGERS[first]), "little", signed=True)
        if first == _COMPRESSED:
            packed, size = self._size(self._raw(1)[0]), self._size(self._raw(1)[0])
            return _decompressed(self._raw(packed), size)
        return self._raw(self._size(first))


def _decompressed(data: bytes, size: int) -> bytes:
    """The ``size`` bytes that an LZF-compressed text stands for."""
    out, at = bytearray(), 0
    try:
        while at < len(data) and len(out) <= size:
            control = data[at]
            at += 1
            if control < 32:  # so many literals and one more
                out += data[at : at + control + 1]
                at += control + 1
                continue
            length = control >> 5
            if length == 7:
                length += data[at]
                at += 1
            start = len(out) - ((control & 31) << 8 | data[at]) - 1
            at += 1
            if start < 0:
                raise _Broken
            for place in range(start, start + length + 2):  # it may overlap with what it makes
                out.append(out[place])
    except IndexError:
        raise _Broken from None
    if at != len(data) or len(out) != size:
        raise _Broken
    return bytes(out)


def check(payload: bytes) -> Sources:
    """The sources in ``payload``, to be iterated over. Raises ReplyError when it is damaged or of another version."""
    version = int.from_bytes(payload[-_FOOTER:-8], "little")
    known = 1 <= version <= _LAST_COMMON_VERSION or version == _VERSION
    if len(payload) < _FOOTER or not known or crc64(payload[:-8]) != int.from_bytes(payload[-8:], "little"):
        raise errors.err("DUMP payload version or checksum are wrong")
    return Sources(payload)
