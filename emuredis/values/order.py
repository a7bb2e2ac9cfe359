"""Random access into a collection that is otherwise a dict.

A dict cannot be indexed, so a random element of a large one would cost a walk. `Order` keeps the
elements in a list with each one's position: O(1) random element, and O(1) removal by moving the last
element into the gap. It is built when chance is first asked for and then kept up by its owner.
Chance comes from the `random.Random` passed in; equal histories and seeds give equal choices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from random import Random

__all__ = ["Order"]


class Order:
    """The distinct elements of one collection, in a list that can be indexed."""

    __slots__ = ("_positions", "elements")

    def __init__(self, elements: Iterable[bytes]) -> None:
        """O(n)."""
        self.elements = list(elements)
        self._positions = {element: position for position, element in enumerate(self.elements)}

    def add(self, element: bytes) -> None:
        """Note a new element. O(1)."""
        self._positions[element] = len(self.elements)
        self.elements.append(element)

    def discard(self, element: bytes) -> None:
        """Note that an element has gone. O(1)."""
        position = self._positions.pop(element)
        last = self.elements.pop()
        if last is not element and position < len(self.elements):
            self.elements[position] = last
            self._positions[last] = position

    def choice(self, rng: Random) -> bytes:
        """A random element. O(1)."""
        elements = self.elements
        return elements[int(rng.random() * len(elements))]

    def choices(self, rng: Random, count: int) -> list[bytes]:
        """``count`` random elements, repeats allowed. O(count)."""
        elements = self.elements
        size = len(elements)
        draw = rng.random
        return [elements[int(draw() * size)] for _ in range(count)]

    def sample(self, rng: Random, count: int) -> list[bytes]:
        """``count`` distinct random elements, or all when there are not so many. O(count)."""
        elements = self.elements
        if count >= len(elements):
            return elements.copy()
        return rng.sample(elements, count)

    def _check(self, elements: Collection[bytes]) -> None:
        assert len(self.elements) == len(self._positions) == len(elements)
        assert set(self.elements) == set(elements)
        assert all(self.elements[position] == element for element, position in self._positions.items())
