"""Small collections as one string each: the listpack and the intset, and for reading the older ziplist and zipmap.

All hold elements in sequence, texts or integers; here every element is its text. What is read is checked whole:
sizes, counts, the mark at the end, and in a listpack the backward lengths; `RdbError` if anything does not fit.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise

from emuredis.keyspace.rdb.codec import RdbError
from emuredis.scalars import parse_int

__all__ = ["intset", "listpack", "read_intset", "read_listpack", "read_ziplist", "read_zipmap"]

_END = 0xFF
_MANY = 0xFFFF  # a count that is not kept
_LONGEST_INTEGER = 20
_INTEGERS = ((0xF1, 2), (0xF2, 3), (0xF3, 4), (0xF4, 8))  # first byte, bytes of the number

# -- listpack ----------------------------------------------------------------------------------


def integer_entry(number: int) -> bytes:
    """The shortest form of an integer of 64 bits."""
    if 0 <= number <= 127:
        return bytes((number, 1))
    if -4096 <= number <= 4095:
        return bytes((0xC0 | (number & 0x1FFF) >> 8, number & 0xFF, 2))
    first, size = next(form for form in _INTEGERS if -1 << 8 * form[1] - 1 <= number < 1 << 8 * form[1] - 1)
    return bytes((first,)) + number.to_bytes(size, "little", signed=True) + bytes((size + 1,))


def entry(element: bytes) -> bytes:
    """One element of a listpack."""
    size = len(element)
    if size <= _LONGEST_INTEGER and (number := parse_int(element)) is not None:
        return integer_entry(number)
    if size < 64:
        head = bytes((0x80 | size,))
    elif size < 4096:
        head = bytes((0xE0 | size >> 8, size & 0xFF))
    else:
        head = b"\xf0" + size.to_bytes(4, "little")
    return head + element + _back_length(len(head) + size)


#: The greatest length of an entry for which so many bytes do. They are the server's, and do not use up the bits.
_BACK = (127, 16382, 2097150, 268435454)


def _back_length(size: int) -> bytes:
    """The length of an entry, to be read backwards: seven bits a byte, all but the first with a mark."""
    if size <= 127:
        return bytes((size,))
    more = bisect_left(_BACK, size)
    return bytes([size >> 7 * more, *[size >> 7 * place & 127 | 128 for place in reversed(range(more))]])


def pack(entries: Iterable[bytes], count: int) -> bytes:
    """A listpack of ``count`` entries that are ready."""
    body = b"".join(entries)
    return struct.pack("<IH", len(body) + 7, min(count, _MANY)) + body + b"\xff"


def listpack(elements: Sequence[bytes]) -> bytes:
    """A listpack of these elements. O(n)."""
    return pack(map(entry, elements), len(elements))


def read_listpack(data: bytes) -> list[bytes]:
    """The elements of a listpack. O(n)."""
    if len(data) < 7:
        raise RdbError("a listpack is too short")
    size, count = struct.unpack_from("<IH", data)
    if size != len(data) or data[-1] != _END:
        raise RdbError("a listpack has another size than it says")
    elements: list[bytes] = []
    at, end = 6, size - 1
    while at < end:
        first = data[at]
        head, length = _entry_size(data, at, first)
        stop = at + head + length
        if first < 0x80:
            elements.append(b"%d" % first)
        elif 0xC0 <= first < 0xE0:
            number = (first & 0x1F) << 8 | data[at + 1]
            elements.append(b"%d" % (number - (number >> 12 << 13)))
        elif first > 0xF0:
            elements.append(b"%d" % int.from_bytes(data[at + 1 : stop], "little", signed=True))
        else:
            elements.append(data[at + head : stop])
        back = _back_length(head + length)
        at = stop + len(back)
        if at > end or data[stop:at] != back:
            raise RdbError("an entry of a listpack is damaged")
    if count not in (_MANY, len(elements)):
        raise RdbError("a listpack has another number of entries than it says")
    return elements


_FIXED = {0xF1: 2, 0xF2: 3, 0xF3: 4, 0xF4: 8}


def _entry_size(data: bytes, at: int, first: int) -> tuple[int, int]:
    """The bytes of an entry that tell what it is, and of its contents."""
    if first < 0x80:
        return 1, 0
    if first < 0xC0:
        return 1, first & 0x3F
    if first < 0xE0:
        return 2, 0
    if first < 0xF0:
        return 2, (first & 0x0F) << 8 | data[at + 1]
    if first == 0xF0:
        return 5, int.from_bytes(data[at + 1 : at + 5], "little")
    if first in _FIXED:
        return 1, _FIXED[first]
    raise RdbError("an entry of a listpack has no known form")


# -- intset ------------------------------------------------------------------------------------

_LAYOUTS = {2: "h", 4: "i", 8: "q"}


def intset(numbers: Sequence[int]) -> bytes:
    """An intset of these integers, which are in ascending order. O(n)."""
    low, high = numbers[0], numbers[-1]
    width = next(w for w in (2, 4, 8) if -1 << 8 * w - 1 <= low and high < 1 << 8 * w - 1)
    return struct.pack(f"<II{len(numbers)}{_LAYOUTS[width]}", width, len(numbers), *numbers)


def read_intset(data: bytes) -> list[bytes]:
    """The elements of an intset, in ascending order. O(n)."""
    if len(data) < 8:
        raise RdbError("an intset is too short")
    width, count = struct.unpack_from("<II", data)
    if width not in _LAYOUTS or count == 0 or len(data) != 8 + width * count:
        raise RdbError("an intset has another size than it says")
    numbers = struct.unpack_from(f"<{count}{_LAYOUTS[width]}", data, 8)
    if any(one >= other for one, other in pairwise(numbers)):
        raise RdbError("an intset is not in order")
    return [b"%d" % number for number in numbers]


# -- what older servers wrote ------------------------------------------------------------------


def read_ziplist(data: bytes) -> list[bytes]:
    """The elements of a ziplist. O(n)."""
    if len(data) < 11:
        raise RdbError("a ziplist is too short")
    size, tail, count = struct.unpack_from("<IIH", data)
    if size != len(data) or data[-1] != _END:
        raise RdbError("a ziplist has another size than it says")
    elements: list[bytes] = []
    at, end, last, before = 10, size - 1, 10, 0
    while at < end:
        last = at
        previous = data[at]
        at += 1
        if previous == 254:
            previous = int.from_bytes(data[at : at + 4], "little")
            at += 4
        if previous != before or at >= end:
            raise RdbError("a ziplist is damaged")
        element, at = _ziplist_element(data, at)
        if at > end:
            raise RdbError("a ziplist is damaged")
        elements.append(element)
        before = at - last
    if tail != last or count not in (_MANY, len(elements)):
        raise RdbError("a ziplist has another number of entries than it says")
    return elements


_ZIPLIST_INTEGERS = {0xC0: 2, 0xD0: 4, 0xE0: 8, 0xF0: 3, 0xFE: 1}


def _ziplist_element(data: bytes, at: int) -> tuple[bytes, int]:
    """One element, and where the next begins."""
    first = data[at]
    at += 1
    if first in _ZIPLIST_INTEGERS:
        stop = at + _ZIPLIST_INTEGERS[first]
        return b"%d" % int.from_bytes(data[at:stop], "little", signed=True), stop
    if 0xF1 <= first <= 0xFD:
        return b"%d" % (first - 0xF1), at
    kind = first >> 6
    if kind == 0:
        size = first
    elif kind == 1:
        size = (first & 0x3F) << 8 | data[at]
        at += 1
    elif first == 0x80:
        size = int.from_bytes(data[at : at + 4], "big")
        at += 4
    else:
        raise RdbError("an entry of a ziplist has no known form")
    return data[at : at + size], at + size


def read_zipmap(data: bytes) -> list[bytes]:
    """Field, value, field, value ... of a zipmap. O(n)."""
    if len(data) < 2 or data[-1] != _END:
        raise RdbError("a zipmap has no end")
    out: list[bytes] = []
    at, end = 1, len(data) - 1
    while at < end:
        spare = 0
        for is_value in (False, True):
            size = data[at]
            at += 1
            if size == 254:
                size = int.from_bytes(data[at : at + 4], "little")
                at += 4
            elif size == 255:
                raise RdbError("a zipmap is damaged")
            if is_value:
                spare = data[min(at, end)]
                at += 1
            out.append(data[at : at + size])
            at += size
            if at > end or (at == end and not is_value):
                raise RdbError("a zipmap is damaged")
        at += spare
    if at != end or (data[0] < 254 and data[0] != len(out) // 2):
        raise RdbError("a zipmap has another number of entries than it says")
    return out
