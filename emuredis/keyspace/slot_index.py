"""Which keys of a database are in which cluster slot.

A `SlotIndex` is a database's scan index that knows slots as well; it takes the place of a plain one when a slot is
asked for first, O(keys) once, and is kept up with each key that comes or goes. A node that nobody asks has none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from emuredis.slots import key_slot
from emuredis.values.scan import ScanIndex

if TYPE_CHECKING:
    from emuredis.keyspace.database import Database

__all__ = ["SlotIndex", "keys_in_slot"]

_NONE: dict[bytes, None] = {}


class SlotIndex(ScanIndex):
    """As `ScanIndex`. ``slots``: the keys of each slot that has any, in order of creation."""

    __slots__ = ("slots",)

    def __init__(self, elements: Iterable[bytes], size: int) -> None:
        elements = list(elements)
        super().__init__(elements, size)
        self.slots: dict[int, dict[bytes, None]] = {}
        for element in elements:
            self.slots.setdefault(key_slot(element), {})[element] = None

    def add(self, element: bytes) -> bool:
        self.slots.setdefault(key_slot(element), {})[element] = None
        return super().add(element)

    def discard(self, element: bytes) -> bool:
        slot = key_slot(element)
        keys = self.slots[slot]
        del keys[element]
        if not keys:
            del self.slots[slot]
        return super().discard(element)

    def _check(self, elements: Collection[bytes]) -> None:
        super()._check(elements)
        held = [key for keys in self.slots.values() for key in keys]
        assert sorted(held) == sorted(elements)
        assert all(key_slot(key) == slot for slot, keys in self.slots.items() for key in keys)


def keys_in_slot(db: Database, slot: int) -> dict[bytes, None]:
    """The live keys of ``db`` in ``slot``; not to be changed. O(1) after the first call."""
    if db.keyspace.overdue:
        db.keyspace.expire_all()
    index = db.scan_index
    if index.__class__ is not SlotIndex:
        index = db.scan_index = SlotIndex(db.data, len(db.data))
    return index.slots.get(slot, _NONE)
