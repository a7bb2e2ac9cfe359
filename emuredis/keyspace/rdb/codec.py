"""The alphabet of RDB: lengths, strings, doubles, instants.

`Writer` collects bytes and cannot fail; `Reader` takes them from a buffer, and whatever is wrong with that is an
`RdbError`. A length has one, two, five or nine bytes, the upper bits of the first telling which. A string is a
length and its bytes, or one of four special forms: an integer of one, two or four bytes, or a compressed text.
"""

from __future__ import annotations

import struct

from emuredis.errors import EmulatorError
from emuredis.keyspace.rdb.lzf import compress, decompress
from emuredis.scalars import parse_float, parse_int

__all__ = ["RdbError", "Reader", "Writer"]

U64_MAX = (1 << 64) - 1
_INTEGERS = (
    (0xC0, "<Bb", 7),
    (0xC1, "<Bh", 15),
    (0xC2, "<Bi", 31),
)  # first byte, layout, bits without the sign
_COMPRESSED = 0xC3
_LONGEST_INTEGER = 11
_LONGEST_VERBATIM = 20  # longer texts are worth trying to compress
_SAVING = 4  # bytes a compressed text must at least be shorter
_SHORT_READ = "it ends too early"


class RdbError(EmulatorError):
    """Data that is not what it should be: a damaged or truncated RDB file, or one of a format not known here."""


class Writer:
    """Bytes in the making. ``compressing``: whether long strings may be compressed."""

    __slots__ = ("compressing", "parts")

    def __init__(self, compressing: bool = True) -> None:
        self.parts: list[bytes] = []
        self.compressing = compressing

    def raw(self, data: bytes) -> None:
        self.parts.append(data)

    def byte(self, number: int) -> None:
        self.parts.append(number.to_bytes(1, "little"))

    def length(self, number: int) -> None:
        self.parts.append(_length(number))

    def string(self, text: bytes) -> None:
        """A string in its shortest form. O(n)."""
        size = len(text)
        if size <= _LONGEST_INTEGER and (number := parse_int(text)) is not None:
            for first, layout, bits in _INTEGERS:
                if -1 << bits <= number < 1 << bits:
                    self.parts.append(struct.pack(layout, first, number))
                    return
        if size > _LONGEST_VERBATIM and self.compressing:
            packed = compress(text, size - _SAVING)
            if packed is not None:
                self.byte(_COMPRESSED)
                self.length(len(packed))
                self.length(size)
                self.parts.append(packed)
                return
        self.parts += (_length(size), text)

    def double(self, number: float) -> None:
        self.parts.append(struct.pack("<d", number))

    def instant(self, milliseconds: int) -> None:
        self.parts.append(struct.pack("<q", milliseconds))

    def bytes(self) -> bytes:
        return b"".join(self.parts)


def _length(number: int) -> bytes:
    if number < 1 << 6:
        return number.to_bytes(1, "big")
    if number < 1 << 14:
        return (number | 1 << 14).to_bytes(2, "big")
    if number < 1 << 32:
        return b"\x80" + number.to_bytes(4, "big")
    return b"\x81" + number.to_bytes(8, "big")


class Reader:
    """A place in a buffer that goes forward; never beyond ``end``."""

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self.data = data
        self.at = at
        self.end = len(data) if end is None else end

    def raw(self, size: int) -> bytes:
        start = self.at
        stop = start + size
        if stop > self.end:
            raise RdbError(_SHORT_READ)
        self.at = stop
        return self.data[start:stop]

    def byte(self) -> int:
        return self.raw(1)[0]

    def length(self) -> int:
        """A length. The server takes the first byte of a special form of string for one, too, without its two marks."""
        number, special = self._length()
        return number & 0x3F if special else number

    def _length(self) -> tuple[int, bool]:
        """A length, or the first byte of a special form of string and True."""
        first = self.byte()
        kind = first >> 6
        if kind == 0:
            return first, False
        if kind == 1:
            return (first & 0x3F) << 8 | self.byte(), False
        if kind == 3:
            return first, True
        if first == 0x80:
            return int.from_bytes(self.raw(4), "big"), False
        if first == 0x81:
            return int.from_bytes(self.raw(8), "big"), False
        return U64_MAX, False  # as in the server: which no count can be, but the half of an id

    def string(self) -> bytes:
        size, special = self._length()
        if not special:
            return self.raw(size)
        if size == _COMPRESSED:
            packed, size = self.length(), self.length()
            data = self.raw(packed)
            text = decompress(data, size) if size else b""  # for an empty one the server takes anything
            if text is None:
                raise RdbError("a compressed string is damaged")
            return text
        for first, layout, _ in _INTEGERS:
            if size == first:
                number = struct.unpack("<" + layout[2:], self.raw(struct.calcsize(layout) - 1))[0]
                return b"%d" % number
        raise RdbError(f"there is no string that begins with {size:#x}")

    def double(self) -> float:
        number: float = struct.unpack("<d", self.raw(8))[0]
        return number

    def printed_double(self) -> float:
        """A double of the old kind: its text after the length, or one of three numbers that have none."""
        size = self.byte()
        if size >= 253:
            return float(("nan", "inf", "-inf")[size - 253])
        number = parse_float(self.raw(size))
        if number is None:
            raise RdbError("a score is no number")
        return number

    def instant(self) -> int:
        milliseconds: int = struct.unpack("<q", self.raw(8))[0]
        return milliseconds
