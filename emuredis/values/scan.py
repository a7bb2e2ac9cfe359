"""Stateless scanning: pages of a collection that may change between two calls.

Elements are visited in the order of `zlib.crc32` of their bytes, which no insertion, deletion or
rebuild can change. A cursor is the smallest checksum not yet visited (0: begin, or all done), so the
server keeps nothing per scan, and an element that is present during a whole scan is returned exactly
once per scan whatever comes and goes around it. Elements of equal checksum always share a page.

A `ScanIndex` holds the elements in buckets by the top bits of the checksum: add and discard are O(1),
a page touches only the buckets it returns. A collection builds one at the first page that does not
hold everything, then tells it of each change behind one ``if self.index is not None``, and drops it
as soon as `add` or `discard` answers False: as many changes as elements have gone by without a page,
so keeping it up costs more than building it again.

Use `scan` from the collection's own method; nothing else needs to know about buckets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from zlib import crc32

__all__ = ["ScanIndex", "scan"]

_PER_BUCKET = 16


class ScanIndex:
    """The elements of one collection, ordered by checksum. Add each element once."""

    __slots__ = ("_buckets", "_changes_left", "_shift", "_size")

    def __init__(self, elements: Iterable[bytes], size: int) -> None:
        """O(n). ``size`` is the number of elements."""
        bits = max((size // _PER_BUCKET).bit_length(), 1)
        self._shift = shift = 32 - bits
        self._buckets: list[list[bytes]] = [[] for _ in range(1 << bits)]
        self._size = size
        buckets = self._buckets
        for element in elements:
            buckets[crc32(element) >> shift].append(element)
        self._changes_left = size

    def add(self, element: bytes) -> bool:
        """Note a new element; False when the index is no longer worth keeping. O(1) amortised."""
        self._buckets[crc32(element) >> self._shift].append(element)
        self._size += 1
        if self._size > 4 * _PER_BUCKET * len(self._buckets):
            self._split()
        self._changes_left -= 1
        return self._changes_left > 0

    def discard(self, element: bytes) -> bool:
        """Note that an element it holds has gone; False when not worth keeping. O(1)."""
        self._buckets[crc32(element) >> self._shift].remove(element)
        self._size -= 1
        self._changes_left -= 1
        return self._changes_left > 0

    def _split(self) -> None:
        """Double the number of buckets. O(n)."""
        shift = self._shift - 1
        halves: list[list[bytes]] = []
        for bucket in self._buckets:
            low: list[bytes] = []
            high: list[bytes] = []
            for element in bucket:
                (high if crc32(element) >> shift & 1 else low).append(element)
            halves += (low, high)
        self._buckets = halves
        self._shift = shift

    def page(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """The next cursor (0 at the end) and at least ``count`` elements if so many are left. O(page)."""
        self._changes_left = max(self._size, 64)
        page: list[bytes] = []
        last = -1
        buckets = self._buckets
        for number in range(cursor >> self._shift, len(buckets)):
            bucket = buckets[number]
            if not bucket:
                continue
            for checksum, element in sorted([(crc32(element), element) for element in bucket]):
                if checksum < cursor:
                    continue
                if len(page) >= count and checksum != last:
                    return last + 1, page
                page.append(element)
                last = checksum
        return 0, page

    def _check(self, elements: Collection[bytes]) -> None:
        """Assert the invariants against the collection's own elements."""
        held = [element for bucket in self._buckets for element in bucket]
        assert len(held) == self._size == len(elements)
        assert set(held) == set(elements)
        for number, bucket in enumerate(self._buckets):
            assert all(crc32(element) >> self._shift == number for element in bucket)


def scan(
    index: ScanIndex | None, elements: Collection[bytes], cursor: int, count: int
) -> tuple[int, list[bytes], ScanIndex | None]:
    """One page of ``elements``: (next cursor, page, index to keep).

    O(page), and O(n) the first time a page cannot hold everything.
    """
    if cursor == 0 and count >= len(elements):
        return 0, list(elements), index
    if index is None:
        index = ScanIndex(elements, len(elements))
    following, page = index.page(cursor, count)
    return following, page, index
