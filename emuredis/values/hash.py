"""The hash value: fields to values, with an optional deadline for each field.

`fields` is a plain dict that anyone may read and only this class may change. Field names up to 64
bytes are interned, since thousands of hashes usually share a few names.

Deadlines are absolute milliseconds in `deadlines`, which is None until a field first gets one. A hash
knows no clock: whoever keeps it calls ``expire(now_ms)`` when `next_deadline` has come, so that every field
it holds is alive. A heap gives the next deadline; entries of the heap that no longer
agree with `deadlines` are stale and dropped when met.

Invariants (`_check`): every deadline belongs to a field and is in the heap; `deadlines` is never
empty; the encoding is ``listpack`` only within the limits and never with deadlines, and once
``hashtable`` stays so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from random import Random

from emuredis.values.limits import DEFAULT, Limits
from emuredis.values.order import Order
from emuredis.values.scan import ScanIndex, scan

__all__ = ["Hash"]

_INTERN_BYTES = 64
_INTERN_NAMES = 1 << 16
_names: dict[bytes, bytes] = {}


def _intern(field: bytes) -> bytes:
    """The one object standing for this field name. O(1)."""
    if len(field) > _INTERN_BYTES:
        return field
    if len(_names) >= _INTERN_NAMES:
        _names.clear()
    return _names.setdefault(field, field)


class Hash:
    """Fields to values in the order of first insertion."""

    __slots__ = ("_heap", "_large", "_order", "deadlines", "fields", "index", "limits")

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self.fields: dict[bytes, bytes] = {}
        self.deadlines: dict[bytes, int] | None = None
        self.index: ScanIndex | None = None
        self.limits = limits
        self._heap: list[tuple[int, bytes]] | None = None
        self._order: Order | None = None
        self._large = False

    def __len__(self) -> int:
        return len(self.fields)

    def __contains__(self, field: bytes) -> bool:
        return field in self.fields

    def get(self, field: bytes) -> bytes | None:
        """The value of ``field``, or None. O(1)."""
        return self.fields.get(field)

    def set(self, field: bytes, value: bytes) -> bool:
        """Set a field and drop its deadline; True if the field is new. O(1)."""
        if self.deadlines is not None:
            self.persist(field)
        return self.replace(field, value)

    def replace(self, field: bytes, value: bytes) -> bool:
        """Set a field and keep its deadline; True if the field is new. O(1)."""
        fields = self.fields
        if field in fields:
            fields[field] = value
            if not self._large and len(value) > self.limits.hash_value:
                self._large = True
            return False
        fields[_intern(field)] = value
        if not self._large:
            limits = self.limits
            if (
                len(fields) > limits.hash_entries
                or len(value) > limits.hash_value
                or len(field) > limits.hash_value
            ):
                self._large = True
        if self._order is not None:
            self._order.add(field)
        if self.index is not None and not self.index.add(field):
            self.index = None
        return True

    def update(self, flat: Sequence[bytes]) -> int:
        """Set field, value, field, value ... as one HSET; the number of new fields. O(len(flat))."""
        self.reserve(flat)
        put = self.set
        return sum([put(flat[at], flat[at + 1]) for at in range(0, len(flat), 2)])

    def reserve(self, flat: Sequence[bytes]) -> None:
        """Choose the encoding for a command about to set all of ``flat``. O(len(flat))."""
        if not self._large:
            limits = self.limits
            if len(flat) // 2 > limits.hash_entries or max(map(len, flat), default=0) > limits.hash_value:
                self._large = True

    def discard(self, field: bytes) -> bool:
        """Remove a field; whether it was there. O(1)."""
        if self.fields.pop(field, None) is None:
            return False
        if self.deadlines is not None:
            self.persist(field)
        if self._order is not None:
            self._order.discard(field)
        if self.index is not None and not self.index.discard(field):
            self.index = None
        return True

    def flat(self) -> list[bytes]:
        """Field, value, field, value ... O(n)."""
        fields = self.fields
        out: list[bytes] = [b""] * (2 * len(fields))
        out[::2] = fields
        out[1::2] = fields.values()
        return out

    def copy(self) -> Hash:
        """An independent copy, deadlines included. O(n)."""
        twin = Hash(self.limits)
        twin.fields = self.fields.copy()
        twin._large = self._large
        if self.deadlines is not None:
            twin.deadlines = self.deadlines.copy()
            twin._heap = [(at, field) for field, at in self.deadlines.items()]
            heapify(twin._heap)
        return twin

    def encoding(self) -> bytes:
        """The name OBJECT ENCODING gives. O(1)."""
        return b"hashtable" if self._large else b"listpack"

    # -- deadlines -----------------------------------------------------------------------------

    def deadline(self, field: bytes) -> int | None:
        """The deadline of a field in milliseconds, or None. O(1)."""
        return None if self.deadlines is None else self.deadlines.get(field)

    def set_deadline(self, field: bytes, at_ms: int) -> None:
        """Give a field it holds a deadline. O(log n)."""
        if self.deadlines is None:
            self.deadlines = {}
            self._heap = []
            self._large = True
        heap = self._heap
        assert heap is not None
        self.deadlines[field] = at_ms
        heappush(heap, (at_ms, field))
        if len(heap) > 2 * len(self.deadlines) + 16:
            heap[:] = [(at, name) for name, at in self.deadlines.items()]
            heapify(heap)

    def persist(self, field: bytes) -> bool:
        """Take a field's deadline away; whether it had one. O(1)."""
        deadlines = self.deadlines
        if deadlines is None or deadlines.pop(field, None) is None:
            return False
        if not deadlines:
            self.deadlines = self._heap = None
        return True

    def next_deadline(self) -> int | None:
        """The earliest deadline, or None. O(log n) amortised."""
        deadlines, heap = self.deadlines, self._heap
        if deadlines is None or heap is None:
            return None
        while deadlines.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0]

    def expire(self, now_ms: int) -> list[bytes]:
        """Remove the fields whose deadline is not after ``now_ms``, earliest first. O(log n) each."""
        gone: list[bytes] = []
        at = self.next_deadline()
        while at is not None and at <= now_ms:
            assert self._heap is not None
            field = self._heap[0][1]
            self.discard(field)
            gone.append(field)
            at = self.next_deadline()
        return gone

    # -- chance and scanning -------------------------------------------------------------------

    def random(self, rng: Random) -> bytes:
        """A random field of a hash that is not empty. O(1) after a first O(n)."""
        return self._ordered().choice(rng)

    def choices(self, rng: Random, count: int) -> list[bytes]:
        """``count`` random fields, repeats allowed. O(count)."""
        return self._ordered().choices(rng, count)

    def sample(self, rng: Random, count: int) -> list[bytes]:
        """Up to ``count`` distinct random fields. O(count)."""
        return self._ordered().sample(rng, count)

    def _ordered(self) -> Order:
        if self._order is None:
            self._order = Order(self.fields)
        return self._order

    def scan(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """(next cursor, fields); everything at once while compact. O(page)."""
        if not self._large:
            return 0, list(self.fields)
        following, page, self.index = scan(self.index, self.fields, cursor, count)
        return following, page

    @classmethod
    def from_items(cls, items: Iterable[tuple[bytes, bytes]], limits: Limits = DEFAULT) -> Hash:
        """A hash of these pairs. O(n)."""
        made = cls(limits)
        for field, value in items:
            made.set(field, value)
        return made

    @classmethod
    def from_stored(cls, fields: dict[bytes, bytes], large: bool, limits: Limits = DEFAULT) -> Hash:
        """A hash of these fields in the encoding it was stored with, whatever the limits. O(n)."""
        made = cls(limits)
        made.fields = {_intern(field): value for field, value in fields.items()}
        made._large = large
        return made

    def _check(self) -> None:
        """Assert every invariant. O(n log n)."""
        fields, limits = self.fields, self.limits
        if self._order is not None:
            self._order._check(fields)
        if self.index is not None:
            self.index._check(fields)
        if self.deadlines is None:
            assert self._heap is None
        else:
            assert self._heap is not None and self._large and self.deadlines
            assert self.deadlines.keys() <= fields.keys()
            held = set(self._heap)
            assert all((at, field) in held for field, at in self.deadlines.items())
            assert len(self._heap) <= 2 * len(self.deadlines) + 17 or len(self._heap) < 64
            for place, entry in enumerate(self._heap):
                assert self._heap[(place - 1) // 2] <= entry or place == 0
        if not self._large:
            assert len(fields) <= limits.hash_entries
            assert all(max(len(f), len(v)) <= limits.hash_value for f, v in fields.items())
