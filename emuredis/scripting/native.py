"""The parts of the script libraries that Lua 5.1 cannot do exactly by itself: 32-bit logic and binary numbers.

Called from ``bit.lua``, ``struct.lua`` and ``cmsgpack.lua``, which have checked the arguments: nothing here raises.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

__all__ = ["FUNCTIONS", "Generator"]

_MASK32, _MASK64 = (1 << 32) - 1, (1 << 64) - 1
_DOUBLE, _QUAD = struct.Struct("<d"), struct.Struct("<Q")
_LLONG_MIN, _LLONG_MAX = -(1 << 63), (1 << 63) - 1


def _bits(number: float) -> int:
    """The low 32 bits of the number rounded to an integer, as BitOp takes them from the double's own bits."""
    bits: int = _QUAD.unpack(_DOUBLE.pack(number + 6755399441055744.0))[0]
    return bits & _MASK32


def _signed(bits: int) -> int:
    return bits - (1 << 32) if bits >> 31 else bits


_OPERATIONS: dict[bytes, Callable[[int, int], int]] = {
    b"band": lambda a, b: a & b,
    b"bor": lambda a, b: a | b,
    b"bxor": lambda a, b: a ^ b,
    b"lshift": lambda a, b: a << (b & 31) & _MASK32,
    b"rshift": lambda a, b: a >> (b & 31),
    b"arshift": lambda a, b: _signed(a) >> (b & 31) & _MASK32,
    b"rol": lambda a, b: (a << (b & 31) | a >> (32 - (b & 31))) & _MASK32,
    b"ror": lambda a, b: (a >> (b & 31) | a << (32 - (b & 31))) & _MASK32,
}


def bit(operation: bytes, left: float, right: float) -> int:
    """A binary operation on two numbers, as a signed 32-bit number."""
    return _signed(_OPERATIONS[operation](_bits(left), _bits(right)))


def bswap(number: float) -> int:
    return _signed(int.from_bytes(_bits(number).to_bytes(4, "little"), "big"))


def tohex(number: float, digits: float) -> bytes:
    count = max(_signed(_bits(digits)), -(1 << 31) + 1)
    text = b"%08x" % _bits(number) if count >= 0 else b"%08X" % _bits(number)
    return text[8 - min(abs(count), 8) :]


def _integer(number: float) -> int:
    """The number as C casts it to 64 bits."""
    if number > _MASK64:
        return 0
    if not number >= _LLONG_MIN:
        return 1 << 63
    return int(number) & _MASK64


def pack_int(number: float, size: int, big: bool) -> bytes:
    """The low bytes of the integer, ``size`` of them (beyond eight: zero, or of a negative number too)."""
    value = _integer(number)
    raw = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    return raw[::-1] if big else raw


def unpack_int(raw: bytes, signed: bool, big: bool) -> float:
    """The integer in ``raw``; past 2**53 it loses digits, as it does in a Lua number."""
    low = raw[::-1][:8] if big else raw[:8]
    value = int.from_bytes(low, "little")
    if signed and low:
        width = 8 * len(low)
        if value >> (width - 1) and len(raw) <= 8:
            value -= 1 << width
        elif len(raw) > 8 and value > _LLONG_MAX:
            value -= 1 << 64
    return value if _LLONG_MIN <= value <= _LLONG_MAX else float(value)


def pack_real(number: float | bytes, size: int, big: bool) -> bytes:
    """An IEEE 754 number of four or eight bytes; minus zero comes as text."""
    order, value = ">" if big else "<", float(number)
    if size == 8:
        return struct.pack(order + "d", value)
    try:
        return struct.pack(order + "f", value)
    except OverflowError:
        return struct.pack(order + "f", float("inf") if value > 0 else float("-inf"))


def unpack_real(raw: bytes, big: bool) -> float:
    value: float = struct.unpack((">" if big else "<") + ("d" if len(raw) == 8 else "f"), raw)[0]
    return value


def is_single(number: float) -> bool:
    """Whether the number survives as a four-byte one."""
    try:
        return bool(struct.unpack("<f", struct.pack("<f", number))[0] == number)
    except OverflowError:
        return False


#: By the names the Lua side uses.
FUNCTIONS: dict[bytes, Any] = {
    b"bit": bit, b"bswap": bswap, b"tohex": tohex, b"pack_int": pack_int, b"unpack_int": unpack_int,
    b"pack_real": pack_real, b"unpack_real": unpack_real, b"is_single": is_single,
}  # fmt: skip


class Generator:
    """The numbers of ``math.random``: drand48, of 48 bits, from a fixed state. A server has one for all its Lua."""

    _MOST = (1 << 31) - 1

    def __init__(self) -> None:
        self._state = 0x1234ABCD330E

    def drawn(self) -> float:
        """The next number, from 0 up to 1."""
        self._state = (self._state * 0x5DEECE66D + 0xB) & (1 << 48) - 1
        return (self._state >> 17) % self._MOST / self._MOST

    def seed(self, number: float) -> None:
        """Start anew from the lower 32 bits of a whole number."""
        self._state = (int(number) & (1 << 32) - 1) << 16 | 0x330E
