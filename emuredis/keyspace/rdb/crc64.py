"""CRC-64 as the server computes it: the Jones polynomial, reflected, from 0, without a final inversion.

A checksum is the remainder of a polynomial whose coefficients are the bits of the data, the first bit being the
highest. So a long text is *folded* first: its front part A is worth A times x to the number of bits behind it, and
that power may be replaced by its remainder K, of 64 bits. A times K is some thirty shifts and exclusive ors of big
integers, which Python does fast; what is left is half as long. Below `_SHORT` bytes the usual table takes over.
"""

from __future__ import annotations

__all__ = ["crc64"]

_POLYNOMIAL = 0x95AC9329AC4BC9B5  # 0xAD93D23594C935A9 with its bits reversed, as all numbers here
_SHORT = 512
_ONE = 1 << 63


def _step(crc: int) -> int:
    return crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)


def _table() -> list[int]:
    table = list(range(256))
    for _ in range(8):
        table = [_step(crc) for crc in table]
    return table


_TABLE = _table()


def _times(left: int, right: int) -> int:
    """The product of two remainders."""
    product = 0
    while right:
        if right & _ONE:
            product ^= left
        right = right << 1 & (1 << 64) - 1
        left = _step(left)
    return product


def _power(exponent: int) -> int:
    """The remainder of x to a power."""
    result, square = _ONE, _ONE >> 1
    while exponent:
        if exponent & 1:
            result = _times(result, square)
        square = _times(square, square)
        exponent >>= 1
    return result


def _fold(data: bytes) -> bytes:
    """Shorter data with the same checksum."""
    size, value = len(data), int.from_bytes(data, "little")
    while size > _SHORT:
        front = (size - 8) // 2
        size -= front
        factor = _power(8 * size)
        high = value & (1 << 8 * front) - 1
        value >>= 8 * front
        place = 8 * (size - front)
        for power in range(64):
            if factor >> 63 - power & 1:
                value ^= high << place - power
    return value.to_bytes(size, "little")


def crc64(data: bytes) -> int:
    """The checksum of ``data``. O(n)."""
    if len(data) > _SHORT:
        data = _fold(data)
    crc = 0
    table = _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc
