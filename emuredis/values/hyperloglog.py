"""The HyperLogLog: 16384 registers in a string, changed in place as the server changes them.

A sketch is a string of the database like any other, so its bytes are part of what a client sees. After a header of
16 bytes (``HYLL``, the encoding, three unused bytes, the cached estimate) come the registers:

* *dense*: 6 bits each, the first in the lowest bits of the first byte;
* *sparse*: runs. ``00nnnnnn`` is n + 1 zeros, ``01nnnnnn nnnnnnnn`` as well, ``1vvvvvnn`` n + 1 times the value v + 1.

A sparse text depends on its history: a run is split where a register is set and joined again only with what lies
within five runs of there, so `Sketch` repeats these very steps. It becomes dense for good when a value passes 32 or
its length `Limits.hll_sparse_bytes`. The highest bit of the cached estimate says that it is out of date.

Merging and counting work on *raw* registers, one byte each, with arithmetic on integers of 16384 bytes. A sparse text
that does not describe 16384 registers is corrupted; what finds out raises `Corrupted`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable

from emuredis.scalars import LLONG_MAX, LLONG_MIN
from emuredis.values.limits import DEFAULT, Limits

__all__ = ["EMPTY", "REGISTERS", "Corrupted", "Sketch", "estimate", "highest", "is_sketch", "locate"]

REGISTERS = 1 << 14
_HEADER = 16
_DENSE_SIZE = _HEADER + REGISTERS * 6 // 8
_DENSE, _SPARSE = 0, 1
_MOST_SPARSE = 32  # the greatest value a run can have

#: A sketch of nothing: one run of 16384 zeros.
EMPTY = b"HYLL\x01" + bytes(11) + b"\x7f\xff"


class Corrupted(Exception):
    """The runs of a sparse sketch do not add up."""


def is_sketch(value: bytes) -> bool:
    """Whether the string has the header (and, if dense, the length) of a sketch. O(1)."""
    if len(value) < _HEADER or value[:4] != b"HYLL" or value[4] > _SPARSE:
        return False
    return value[4] == _SPARSE or len(value) == _DENSE_SIZE


# -- elements ----------------------------------------------------------------------------------

_M = 0xC6A4A7935BD1E995
_64 = (1 << 64) - 1
_SEED = 0xADC83B19


def locate(element: bytes) -> tuple[int, int]:
    """The register of an element and the value it asks for there (1 to 51). O(len)."""
    digest = _murmur(element)
    rest = digest >> 14 | 1 << 50
    return digest & (REGISTERS - 1), (rest & -rest).bit_length()


def _murmur(data: bytes) -> int:
    """MurmurHash64A."""
    size = len(data)
    h = (_SEED ^ size * _M) & _64
    whole = size & ~7
    for k in struct.unpack_from(f"<{size >> 3}Q", data) if whole else ():
        k = k * _M & _64
        k = (k ^ k >> 47) * _M & _64
        h = (h ^ k) * _M & _64
    if size & 7:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _64
    h = (h ^ h >> 47) * _M & _64
    return h ^ h >> 47


# -- raw registers -----------------------------------------------------------------------------

# One byte for each register, or for every fourth of them: a mask in all places at once.
_QUARTER = REGISTERS // 4
_LOW2, _LOW4, _LOW6 = (int.from_bytes(bytes([mask]) * _QUARTER, "little") for mask in (3, 15, 63))
_TOP = int.from_bytes(b"\x80" * REGISTERS, "little")


def _unpack(dense: bytes | bytearray) -> bytes:
    """Raw registers of dense ones: four of them lie in three bytes. O(n) in C."""
    one, two, three = (int.from_bytes(dense[at::3], "little") for at in range(3))
    raw = bytearray(REGISTERS)
    raw[0::4] = (one & _LOW6).to_bytes(_QUARTER, "little")
    raw[1::4] = (one >> 6 & _LOW2 | (two & _LOW4) << 2).to_bytes(_QUARTER, "little")
    raw[2::4] = (two >> 4 & _LOW4 | (three & _LOW2) << 4).to_bytes(_QUARTER, "little")
    raw[3::4] = (three >> 2 & _LOW6).to_bytes(_QUARTER, "little")
    return bytes(raw)


def _pack(raw: bytes) -> bytearray:
    """Dense registers of raw ones. O(n) in C."""
    a, b, c, d = (int.from_bytes(raw[at::4], "little") for at in range(4))
    dense = bytearray(_DENSE_SIZE - _HEADER)
    dense[0::3] = (a | (b & _LOW2) << 6).to_bytes(_QUARTER, "little")
    dense[1::3] = (b >> 2 & _LOW4 | (c & _LOW4) << 4).to_bytes(_QUARTER, "little")
    dense[2::3] = (c >> 4 & _LOW2 | d << 2).to_bytes(_QUARTER, "little")
    return dense


def highest(sketches: Iterable[Sketch]) -> bytes:
    """The raw registers of the union. O(n) in C for each; Corrupted."""
    best = 0
    for sketch in sketches:
        raw = int.from_bytes(sketch.raw(), "little")
        if best:
            # In each place the top bit survives the subtraction if `best` is not less there.
            keep = ((best | _TOP) - raw & _TOP) >> 7
            keep = (keep << 8) - keep
            best = best & keep | raw & ~keep
        else:
            best = raw
    return best.to_bytes(REGISTERS, "little")


def estimate(raw: bytes) -> int:
    """How many distinct elements raw registers speak of (Ertl's estimator, as the server). O(n) in C."""
    counts = [0] * 64
    left = REGISTERS
    for value in range(64):
        counts[value] = raw.count(value)
        left -= counts[value]
        if not left:
            break
    m = float(REGISTERS)
    z = m * _tau((m - counts[51]) / m)
    for value in range(50, 0, -1):
        z += counts[value]
        z *= 0.5
    z += m * _sigma(counts[0] / m)
    number = 0.721347520444481703680 * m * m / z if z else math.inf
    if number > LLONG_MAX:
        return LLONG_MIN  # registers that no element asks for; so C rounds what is too large
    whole = math.floor(number)
    return whole + (number - whole >= 0.5)


def _sigma(x: float) -> float:
    if x == 1.0:
        return math.inf
    y, z = 1.0, x
    while True:
        x *= x
        before = z
        z += x * y
        y += y
        if z == before:
            return z


def _tau(x: float) -> float:
    if x in (0.0, 1.0):
        return 0.0
    y, z = 1.0, 1 - x
    while True:
        x = math.sqrt(x)
        before = z
        y *= 0.5
        z -= (1 - x) ** 2 * y
        if z == before:
            return z / 3


# -- the string --------------------------------------------------------------------------------

# How many registers an opcode of one byte covers; 0 for the first byte of a long run of zeros.
_SPAN = [op + 1 if op < 64 else 0 if op < 128 else (op & 3) + 1 for op in range(256)]


def _zeros(count: int) -> bytes:
    """A run of zeros, none for 0."""
    if count > 64:
        return bytes([0x40 | count - 1 >> 8, count - 1 & 255])
    return bytes([count - 1]) if count else b""


def _values(value: int, count: int) -> bytes:
    """A run of up to four times a value, none for 0."""
    return bytes([0x80 | value - 1 << 2 | count - 1]) if count else b""


class Sketch:
    """A string being changed; `data` holds its bytes."""

    __slots__ = ("_cursor", "data", "limits")

    def __init__(self, value: bytes = EMPTY, limits: Limits = DEFAULT) -> None:
        self.data = bytearray(value)
        self.limits = limits
        self._cursor = (_HEADER, 0)  # a place where a run begins, and its first register

    @property
    def dense(self) -> bool:
        return self.data[4] == _DENSE

    # -- the cached estimate -------------------------------------------------------------------

    def cached(self) -> int | None:
        """The estimate in the header, if it is up to date. O(1)."""
        if self.data[15] & 0x80:
            return None
        return int.from_bytes(self.data[8:16], "little")

    def cache(self, number: int) -> None:
        self.data[8:16] = (number & _64).to_bytes(8, "little")

    def outdate(self) -> None:
        self.data[15] |= 0x80

    # -- registers -----------------------------------------------------------------------------

    def runs(self) -> list[tuple[int, int, int]]:
        """(opcode, value, length) of each run of a sparse sketch, whether they add up or not. O(runs)."""
        data, at, size = self.data, _HEADER, len(self.data)
        out = []
        while at < size:
            op = data[at]
            span = _SPAN[op]
            if not span:
                at += 1
                span = ((op & 63) << 8 | (data[at] if at < size else 0)) + 1
            out.append((op, (op >> 2 & 31) + 1 if op & 0x80 else 0, span))
            at += 1
        return out

    def raw(self) -> bytes:
        """One byte for each register. O(n) in C; Corrupted."""
        if self.dense:
            return _unpack(self.data[_HEADER:])
        raw = b"".join([bytes([value]) * span for _, value, span in self.runs()])
        if len(raw) != REGISTERS:
            raise Corrupted
        return raw

    def make_dense(self) -> None:
        """O(n) in C; Corrupted."""
        if not self.dense:
            self.data[_HEADER:] = _pack(self.raw())
            self.data[4] = _DENSE

    def add(self, element: bytes) -> bool:
        """Count an element; whether a register changed. O(1) dense, O(runs) sparse; Corrupted."""
        return self.raise_to(*locate(element))

    def merge(self, raw: bytes) -> None:
        """Raise every register to that of ``raw``. O(n); Corrupted."""
        if self.dense:
            # `raw` is the union with what is here.
            self.data[_HEADER:] = _pack(raw)
            return
        for index, value in enumerate(raw):
            if value:
                self.raise_to(index, value, self._cursor)

    def raise_to(self, index: int, value: int, start: tuple[int, int] = (_HEADER, 0)) -> bool:
        """Set a register that is less than ``value``; whether it was. As `add`.

        ``start``: where to begin to look in a sparse sketch, a run and its first register; not after ``index``.
        """
        if self.dense:
            return self._raise_dense(index, value)
        if value <= _MOST_SPARSE:
            done = self._raise_sparse(index, value, start)
            if done is not None:
                return done
        self.make_dense()
        self.outdate()
        return self._raise_dense(index, value)

    def _raise_dense(self, index: int, value: int) -> bool:
        data = self.data
        at, shift = divmod(index * 6, 8)
        at += _HEADER
        if shift <= 2:  # within one byte
            if data[at] >> shift & 63 >= value:
                return False
            data[at] = data[at] & ~(63 << shift) | value << shift
        else:
            pair = data[at] | data[at + 1] << 8
            if pair >> shift & 63 >= value:
                return False
            pair = pair & ~(63 << shift) | value << shift
            data[at], data[at + 1] = pair & 255, pair >> 8
        return True

    def _raise_sparse(self, index: int, value: int, start: tuple[int, int]) -> bool | None:
        """None: there is no room for another run."""
        data, size = self.data, len(self.data)
        (at, first), before = start, (-1, 0)
        while at < size:
            op = data[at]
            span = _SPAN[op]
            if span:
                following = at + 1
            else:
                following = at + 2
                span = ((op & 63) << 8 | (data[at + 1] if following <= size else 0)) + 1
            if index < first + span:
                break
            before = at, first
            at = following
            first += span
        else:
            raise Corrupted
        if at == start[0] > _HEADER:
            return self._raise_sparse(index, value, (_HEADER, 0))  # the run before is needed, too
        if op & 0x80:
            old = (op >> 2 & 31) + 1
            if old >= value:
                return False
            runs = _values(old, index - first) + _values(value, 1) + _values(old, first + span - 1 - index)
        else:
            runs = _zeros(index - first) + _values(value, 1) + _zeros(first + span - 1 - index)
        more = len(runs) - (following - at)
        if more > 0 and size + more > self.limits.hll_sparse_bytes:
            return None
        data[at:following] = runs
        del data[
            size + more :
        ]  # a long run of zeros without its second byte is one byte longer than the text
        self._cursor = before if before[0] > 0 else (_HEADER, 0)
        self._join(self._cursor[0])
        self.outdate()
        return True

    def _join(self, at: int) -> None:
        """Join equal values that lie side by side, looking at five runs from ``at`` on."""
        data = self.data
        for _ in range(5):
            if at >= len(data):
                return
            op = data[at]
            if not op & 0x80:
                at += 2 if op & 0x40 else 1
                continue
            if at + 1 < len(data) and (op ^ data[at + 1]) & 0xFC == 0:
                length = (op & 3) + (data[at + 1] & 3) + 2
                if length <= 4:
                    data[at : at + 2] = bytes([op & 0xFC | length - 1])
                    continue
            at += 1

    def _check(self) -> None:
        """A sketch made by these methods keeps its form."""
        assert is_sketch(bytes(self.data))
        assert _pack(_unpack(self.data[_HEADER:])) == self.data[_HEADER:] if self.dense else True
        if not self.dense:
            assert sum(span for _, _, span in self.runs()) == REGISTERS
            assert len(self.data) <= max(self.limits.hll_sparse_bytes, len(EMPTY))
        assert max(self.raw()) <= 51
