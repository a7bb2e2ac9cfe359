"""The payload of FUNCTION DUMP: the sources of all libraries, each after its mark, the format's version, a checksum.

A source is a string as RDB files have them: a length and the bytes, or one of the special forms. Ours are never
compressed; those of others may be.
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
    body = b"".join(bytes((_LIBRARY,)) + _length(len(code)) + code for code in codes)
    body += _VERSION.to_bytes(2, "little")
    return body + crc64(body).to_bytes(8, "little")


def _length(number: int) -> bytes:
    if number < 1 << 6:
        return bytes((number,))
    if number < 1 << 14:
        return (number | 1 << 14).to_bytes(2, "big")
    return b"\x80" + number.to_bytes(4, "big")


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
