"""The part of a sorted list that LIMIT or COUNT asks for, with ties in the order in which the server has them.

The server sorts only as much as it needs with the quicksort of Bentley and McIlroy, which is not stable: where
elements tie, their order follows from its exchanges. `partial_sort` makes the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["partial_sort"]

T = TypeVar("T")
_SMALL, _MEDIUM = 7, 40


def partial_sort(items: list[T], key: Callable[[T], Any], first: int, last: int) -> list[T]:
    """``items`` in an order in which those from ``first`` to ``last`` are where a whole sort puts them. O(n) or so.

    Without ties among the keys any sort will do.
    """
    keys = [key(item) for item in items]
    if len(set(keys)) == len(keys):
        return sorted(items, key=key)
    order = list(range(len(items)))
    _Sorting(order, keys, first, last).sort(0, len(items))
    return [items[at] for at in order]


class _Sorting:
    """Numbers `order` by their `keys`."""

    __slots__ = ("first", "keys", "last", "order")

    def __init__(self, order: list[int], keys: list[Any], first: int, last: int) -> None:
        self.order, self.keys, self.first, self.last = order, keys, first, last

    def sort(self, start: int, stop: int) -> None:
        while stop - start >= _SMALL:
            self._exchange(start, self._pivot(start, stop))
            less, greater = self._partition(start, stop)
            if self._matters(start, start + less):
                self.sort(start, start + less)
            start = stop - greater
            if not self._matters(start, stop):
                return
        if stop - start > 1:
            self.order[start:stop] = sorted(self.order[start:stop], key=self.keys.__getitem__)

    def _matters(self, start: int, stop: int) -> bool:
        """Whether a part of more than one element is asked for."""
        return stop - start > 1 and self.last >= start and self.first < stop

    def _exchange(self, one: int, other: int) -> None:
        order = self.order
        order[one], order[other] = order[other], order[one]

    def _exchange_blocks(self, one: int, other: int, size: int) -> None:
        order = self.order
        order[one : one + size], order[other : other + size] = (
            order[other : other + size],
            order[one : one + size],
        )

    def _at(self, place: int) -> Any:
        return self.keys[self.order[place]]

    def _middle(self, a: int, b: int, c: int) -> int:
        """The place of the median of three."""
        x, y, z = self._at(a), self._at(b), self._at(c)
        if x < y:
            return b if y < z else c if x < z else a
        return b if y > z else a if x < z else c

    def _pivot(self, start: int, stop: int) -> int:
        size = stop - start
        left, middle, right = start, start + size // 2, stop - 1
        if size == _SMALL:
            return middle
        if size > _MEDIUM:
            d = size // 8
            left = self._middle(left, left + d, left + 2 * d)
            middle = self._middle(middle - d, middle, middle + d)
            right = self._middle(right - 2 * d, right - d, right)
        return self._middle(left, middle, right)

    def _partition(self, start: int, stop: int) -> tuple[int, int]:
        """Less, equal, greater than the first element: how many are less, how many greater.

        Equal ones are collected at both ends first.
        """
        pivot = self._at(start)
        a = b = start + 1
        c = d = stop - 1
        while True:
            while b <= c and self._at(b) <= pivot:
                if self._at(b) == pivot:
                    self._exchange(a, b)
                    a += 1
                b += 1
            while b <= c and self._at(c) >= pivot:
                if self._at(c) == pivot:
                    self._exchange(c, d)
                    d -= 1
                c -= 1
            if b > c:
                break
            self._exchange(b, c)
            b += 1
            c -= 1
        size = min(a - start, b - a)
        self._exchange_blocks(start, b - size, size)
        size = min(d - c, stop - d - 1)
        self._exchange_blocks(b, stop - size, size)
        return b - a, d - c
