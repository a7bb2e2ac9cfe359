"""The list: a sequence of nodes, each a Python list of at most about 8 kB of elements.

Both ends and the middle are reached without walking the elements: pushes and pops touch the first or
last node only, an index bisects the running totals of node lengths. The totals leave the first node
out (its length is added when asked), so they survive pushes and pops inside the end nodes and are
made again only after a node has come, gone or changed in the middle.

The nodes are those the server would make: their bytes are counted as the server's listpack would
need them, because OBJECT ENCODING depends on it. A list is ``listpack`` while it is one node within
the limit, becomes ``quicklist`` when a push would exceed the limit, and ``listpack`` again when it is
one node of at most half the limit after a removal. An element larger than a whole node is a node of
its own, written as a negative size.

A list is created empty and asked for `pop_left` and the like only while it is not.

Invariants (`_check`): only an empty list has an empty node, and it has just that one; sizes are the
bytes of the nodes; the totals are right when present.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from emuredis.scalars import parse_int
from emuredis.values.limits import DEFAULT, Limits

__all__ = ["List", "entry_size"]

_HEADER = 7
_ESTIMATE = 8


def entry_size(element: bytes) -> int:
    """The bytes a listpack needs for ``element``. O(1)."""
    size = len(element)
    if size <= 20 and size and (element[0] == 45 or 48 <= element[0] <= 57):
        number = parse_int(element)
        if number is not None:
            if 0 <= number <= 127:
                return 2
            if -4096 <= number <= 4095:
                return 3
            for bits, needed in ((16, 4), (24, 5), (32, 6)):
                if -(1 << bits - 1) <= number < 1 << bits - 1:
                    return needed
            return 10
    size += 1 if size < 64 else 2 if size < 4096 else 5
    if size <= 127:
        return size + 1
    return size + (2 if size < 16383 else 3 if size < 2097151 else 4 if size < 268435455 else 5)


class List:
    """Elements in sequence."""

    __slots__ = ("_compact", "_length", "_nodes", "_sizes", "_totals", "limits")

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self.limits = limits
        self._nodes: list[list[bytes]] = [[]]
        self._sizes = [_HEADER]
        self._totals: list[int] | None = None
        self._length = 0
        self._compact = True

    @classmethod
    def from_elements(cls, elements: Iterable[bytes], limits: Limits = DEFAULT) -> List:
        """A list of these elements, encoded as if appended one by one. O(n)."""
        made = cls(limits)
        push = made.push_right
        for element in elements:
            push(element)
        return made

    @classmethod
    def from_stored(cls, nodes: Iterable[tuple[list[bytes], bool]], limits: Limits = DEFAULT) -> List:
        """A quicklist of these nodes as they were stored, each with whether it is a large element. O(n)."""
        made = cls.as_quicklist((), limits)
        for elements, large in nodes:
            made._insert_node(len(made._nodes), elements)
            made._length += len(elements)
            if large:
                made._sizes[-1] = -len(elements[0])
        return made

    @classmethod
    def as_quicklist(cls, elements: Iterable[bytes], limits: Limits = DEFAULT) -> List:
        """A quicklist of these elements, in nodes as if appended one by one. O(n)."""
        made = cls(limits)
        made._compact = False
        push = made.push_right
        for element in elements:
            push(element)
        return made

    def stored_nodes(self) -> Iterator[tuple[list[bytes], bool]]:
        """The nodes, each with whether it is a large element. O(nodes)."""
        for node, size in zip(self._nodes, self._sizes, strict=True):
            yield node, size < 0

    def convert(self) -> None:
        """Become compact where one node within the limit allows it. O(1)."""
        if len(self._nodes) == 1 and self._sizes[0] >= 0:
            self._compact = not self._exceeds(self._sizes[0], self._length)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[bytes]:
        for node in self._nodes:
            yield from node

    def __reversed__(self) -> Iterator[bytes]:
        for node in reversed(self._nodes):
            yield from reversed(node)

    def copy(self) -> List:
        """An independent copy. O(n)."""
        twin = List(self.limits)
        twin._nodes = [node.copy() for node in self._nodes]
        twin._sizes = self._sizes.copy()
        twin._length = self._length
        twin._compact = self._compact
        return twin

    def encoding(self) -> bytes:
        """The name OBJECT ENCODING gives. O(1)."""
        return b"listpack" if self._compact else b"quicklist"

    def node_count(self) -> int:
        """The number of nodes, for DEBUG OBJECT. O(1)."""
        return len(self._nodes)

    # -- the ends ------------------------------------------------------------------------------

    def push_left(self, element: bytes) -> None:
        """Put ``element`` in front. O(1)."""
        limits, sizes, node = self.limits, self._sizes, self._nodes[0]
        size, held = len(element), sizes[0]
        if self._compact and (held + size > limits.list_bytes or self._length >= limits.list_count):
            self._compact = False
        if self._compact or (
            0 <= held <= limits.list_bytes - size - _ESTIMATE and len(node) < limits.list_count
        ):
            node.insert(0, element)
            sizes[0] += size + 2 if 0 < size < 64 and element[0] > 57 else entry_size(element)
        else:
            self._insert_node(0, [element])
        self._length += 1

    def push_right(self, element: bytes) -> None:
        """Put ``element`` at the end. O(1)."""
        limits, sizes, node = self.limits, self._sizes, self._nodes[-1]
        size, held = len(element), sizes[-1]
        if self._compact and (held + size > limits.list_bytes or self._length >= limits.list_count):
            self._compact = False
        if self._compact or (
            0 <= held <= limits.list_bytes - size - _ESTIMATE and len(node) < limits.list_count
        ):
            node.append(element)
            sizes[-1] += size + 2 if 0 < size < 64 and element[0] > 57 else entry_size(element)
        else:
            self._insert_node(len(self._nodes), [element])
        self._length += 1

    def extend_left(self, elements: Sequence[bytes]) -> None:
        """Put elements in front one after the other, as one LPUSH. O(len(elements))."""
        if self._compact:
            self._grow(sum(map(len, elements)), len(elements))
        if self._compact:
            self._nodes[0][:0] = reversed(elements)
            self._sizes[0] += sum(map(entry_size, elements))
            self._length += len(elements)
            return
        push = self.push_left
        for element in elements:
            push(element)

    def extend_right(self, elements: Sequence[bytes]) -> None:
        """Put elements at the end one after the other, as one RPUSH. O(len(elements))."""
        if self._compact:
            self._grow(sum(map(len, elements)), len(elements))
        if self._compact:
            self._nodes[0] += elements
            self._sizes[0] += sum(map(entry_size, elements))
            self._length += len(elements)
            return
        push = self.push_right
        for element in elements:
            push(element)

    def pop_left(self) -> bytes:
        """Remove and return the first element. O(1)."""
        nodes = self._nodes
        element = nodes[0].pop(0)
        size = len(element)
        self._sizes[0] -= size + 2 if 0 < size < 64 and element[0] > 57 else entry_size(element)
        self._length -= 1
        if not self._compact and (not nodes[0] or len(nodes) == 1):
            self._shrink(0)
        return element

    def pop_right(self) -> bytes:
        """Remove and return the last element. O(1)."""
        nodes = self._nodes
        element = nodes[-1].pop()
        size = len(element)
        self._sizes[-1] -= size + 2 if 0 < size < 64 and element[0] > 57 else entry_size(element)
        self._length -= 1
        if not self._compact and (not nodes[-1] or len(nodes) == 1):
            self._shrink(-1)
        return element

    def rotate(self, from_left: bool, to_left: bool) -> bytes:
        """Move an element from one end to an end, and return it; the list is not empty. As a pop and a push.

        Only then is looked whether the list has become compact, not between the two.
        """
        if self._length == 1:
            element = self._nodes[0][0]
        else:
            was_compact = self._compact
            element = self.pop_left() if from_left else self.pop_right()
            self._compact = was_compact
            if to_left:
                self.push_left(element)
            else:
                self.push_right(element)
        if not self._compact:
            self._fit_one_node()
        return element

    def pop_left_many(self, count: int) -> list[bytes]:
        """Remove and return up to ``count`` elements from the front. O(count)."""
        taken = self.slice(0, count)
        self.delete(0, len(taken))
        return taken

    def pop_right_many(self, count: int) -> list[bytes]:
        """Remove and return up to ``count`` elements from the end, last first. O(count)."""
        taken = self.slice(max(self._length - count, 0), self._length)
        self.delete(self._length - len(taken), self._length)
        taken.reverse()
        return taken

    # -- by position ---------------------------------------------------------------------------

    def _locate(self, index: int) -> tuple[int, int]:
        """The node of a valid index and the place in it. O(log nodes), O(nodes) after a change of nodes."""
        nodes = self._nodes
        rest = index - len(nodes[0])
        if rest < 0:
            return 0, index
        back = self._length - index
        if back <= len(nodes[-1]):
            return len(nodes) - 1, len(nodes[-1]) - back
        totals = self._totals
        if totals is None:
            self._totals = totals = list(accumulate(map(len, nodes[1:-1]), initial=0))
        at = bisect_right(totals, rest)
        return at, rest - totals[at - 1]

    def get(self, index: int) -> bytes | None:
        """The element at ``index`` (negative: from the end), or None. As `_locate`."""
        if index < 0:
            index += self._length
        if not 0 <= index < self._length:
            return None
        at, place = self._locate(index)
        return self._nodes[at][place]

    def set(self, index: int, element: bytes) -> bool:
        """Replace the element at ``index`` (negative: from the end); whether there is one. As `_locate`."""
        if self._compact:
            self._grow(len(element), 1)
        if index < 0:
            index += self._length
        if not 0 <= index < self._length:
            return False
        at, place = self._locate(index)
        node, size = self._nodes[at], self._sizes[at]
        if self._compact or (size >= 0 and not self._is_large(len(element))):
            # The server lets a node outgrow the limit here, unlike at an insertion.
            self._sizes[at] = size + entry_size(element) - entry_size(node[place])
            node[place] = element
        elif size < 0:
            self._replace_plain(at, element)
        else:
            self._replace_split(at, place, element)
        if not self._compact:
            self._fit_one_node()
        return True

    def slice(self, start: int, stop: int) -> list[bytes]:
        """The elements with ``start`` <= index < ``stop``, both cut to 0 .. len. O(result), as `_locate`."""
        start, stop = max(start, 0), min(stop, self._length)
        if start >= stop:
            return []
        nodes = self._nodes
        at, place = self._locate(start)
        left = stop - start
        out = nodes[at][place : place + left]
        while len(out) < left:
            at += 1
            node = nodes[at]
            need = left - len(out)
            out += node if need >= len(node) else node[:need]
        return out

    def delete(self, start: int, stop: int) -> None:
        """Remove the elements with ``start`` <= index < ``stop``. O(removed + nodes)."""
        start, stop = max(start, 0), min(stop, self._length)
        if start >= stop:
            return
        first, low = self._locate(start)
        last, high = self._locate(stop - 1)
        high += 1
        if first == last:
            self._delete_within(first, low, high)
        else:
            self._delete_within(last, 0, high)
            self._delete_within(first, low, len(self._nodes[first]))
            del self._nodes[first + 1 : last], self._sizes[first + 1 : last]
        self._length -= stop - start
        for at in (first + 1, first) if last > first else (first,):
            if not self._nodes[at]:
                del self._nodes[at], self._sizes[at]
        self._totals = None
        self._tidy()

    def _delete_within(self, at: int, low: int, high: int) -> None:
        """Remove a part of one node, which may become empty."""
        node = self._nodes[at]
        if high - low == len(node):
            node.clear()
            return
        self._sizes[at] -= sum(map(entry_size, node[low:high]))
        del node[low:high]

    def trim(self, start: int, stop: int) -> None:
        """Keep only the elements with ``start`` <= index < ``stop``. O(removed + nodes)."""
        start, stop = max(start, 0), min(stop, self._length)
        if start >= stop:
            start = stop = self._length
        self.delete(stop, self._length)
        self.delete(0, start)

    # -- by value ------------------------------------------------------------------------------

    def insert(self, pivot: bytes, element: bytes, before: bool) -> int:
        """Put ``element`` next to the first ``pivot``: the new length, or -1 if there is none. O(n)."""
        if self._compact:
            self._grow(len(element), 1)
        for at, node in enumerate(self._nodes):
            if pivot in node:
                self._insert_in(at, node.index(pivot), element, before)
                self._length += 1
                return self._length
        return -1

    def remove(self, element: bytes, count: int = 0) -> int:
        """Remove up to ``count`` equal elements from the front, from the end if negative, all if 0.

        Returns how many. O(n).
        """
        if count == 1:
            return self._remove_first(element)
        left = abs(count) or self._length
        wanted = left
        numbers = range(len(self._nodes))
        size = entry_size(element)
        for at in reversed(numbers) if count < 0 else numbers:
            node = self._nodes[at]
            found = node.count(element)
            if not found:
                continue
            if found <= left:
                node[:] = [other for other in node if other != element]
            elif count < 0:
                node.reverse()
                for _ in range(left):
                    node.remove(element)
                node.reverse()
            else:
                for _ in range(left):
                    node.remove(element)
            gone = min(found, left)
            self._sizes[at] -= gone * size
            left -= gone
            if not left:
                break
        removed = wanted - left
        if removed:
            self._length -= removed
            kept = [at for at in numbers if self._nodes[at]]
            self._sizes = [self._sizes[at] for at in kept]
            self._nodes = [self._nodes[at] for at in kept]
            self._totals = None
            self._tidy()
        return removed

    def _remove_first(self, element: bytes) -> int:
        """`remove` of one from the front, which need not look behind the first match. O(n)."""
        for at, node in enumerate(self._nodes):
            if element in node:
                node.remove(element)
                self._sizes[at] -= entry_size(element)
                self._length -= 1
                if not node and len(self._nodes) > 1:
                    del self._nodes[at], self._sizes[at]
                self._totals = None
                self._tidy()
                return 1
        return 0

    def positions(self, element: bytes, rank: int = 1, count: int = 1, maxlen: int = 0) -> list[int]:
        """Indexes of equal elements: from the ``rank``-th match (from the end if negative), at most
        ``count`` (0: all), looking at no more than ``maxlen`` elements (0: all). O(n)."""
        skip = abs(rank) - 1
        looked_at = self._length if maxlen == 0 else min(maxlen, self._length)
        found: list[int] = []
        last = self._length - 1
        for steps, other in enumerate(reversed(self) if rank < 0 else self):
            if steps >= looked_at:
                break
            if other == element:
                if skip:
                    skip -= 1
                    continue
                found.append(last - steps if rank < 0 else steps)
                if len(found) == count:
                    break
        return found

    # -- nodes ---------------------------------------------------------------------------------

    def _exceeds(self, size: int, count: int) -> bool:
        """Whether a node of so many bytes and elements is over the limit."""
        return size > self.limits.list_bytes or count > self.limits.list_count

    def _is_large(self, size: int) -> bool:
        """Whether an element of so many bytes gets a node of its own."""
        return size > self.limits.list_bytes

    def _fits(self, at: int, size: int) -> bool:
        """Whether an element of so many bytes may go into a node."""
        held = self._sizes[at]
        return held >= 0 and not self._exceeds(held + size + _ESTIMATE, len(self._nodes[at]) + 1)

    def _insert_node(self, at: int, elements: list[bytes]) -> None:
        """Make a node of ``elements`` at position ``at`` of the nodes. O(nodes)."""
        if len(elements) == 1 and self._is_large(len(elements[0])):
            size = -len(elements[0])
        else:
            size = _HEADER + sum(map(entry_size, elements))
        if not self._length:
            self._nodes, self._sizes = [], []
            at = 0
        self._nodes.insert(at, elements)
        self._sizes.insert(at, size)
        self._totals = None

    def _grow(self, added: int, count: int) -> None:
        """Become a quicklist if that many more bytes or elements would be too much for one node."""
        if self._exceeds(self._sizes[0] + added, self._length + count):
            self._compact = False

    def _shrink(self, at: int) -> None:
        """After a pop from the first (0) or last (-1) node: drop it if empty, try to become compact."""
        if not self._nodes[at] and self._length:
            del self._nodes[at], self._sizes[at]
            self._totals = None
        self._tidy()

    def _tidy(self) -> None:
        """After a removal: keep one node if all have gone, and try to become compact. O(1)."""
        if not self._length:
            self._nodes, self._sizes, self._totals = [[]], [_HEADER], None
            self._compact = True
        elif not self._compact:
            self._fit_one_node()

    def _fit_one_node(self) -> None:
        """Become compact if there is one node with at most half of what a node may hold."""
        if len(self._nodes) > 1 or self._sizes[0] < 0:
            return
        if self._sizes[0] <= self.limits.list_small and self._length <= self.limits.list_count // 2:
            self._compact = True

    def _split(self, at: int, place: int) -> None:
        """Cut a node in two before ``place``. O(node + nodes)."""
        node = self._nodes[at]
        self._insert_node(at + 1, node[place:])
        del node[place:]
        self._sizes[at] -= self._sizes[at + 1] - _HEADER

    def _insert_in(self, at: int, place: int, element: bytes, before: bool) -> None:
        """Put ``element`` next to a place in a node, cutting the node if it is full. O(node + nodes)."""
        node, size = self._nodes[at], len(element)
        edge = place == 0 if before else place == len(node) - 1
        beside = at - 1 if before else at + 1
        if self._compact or self._fits(at, size):
            target = at
            node.insert(place if before else place + 1, element)
        elif edge and 0 <= beside < len(self._nodes) and self._fits(beside, size):
            target = beside
            self._nodes[beside].insert(len(self._nodes[beside]) if before else 0, element)
        elif edge:
            self._insert_node(at if before else at + 1, [element])
            return
        elif self._is_large(size):
            self._split(at, place if before else place + 1)
            self._insert_node(at + 1, [element])
            return
        else:
            self._split(at, place if before else place + 1)
            target = at if before else at + 1
            self._nodes[target].insert(len(self._nodes[target]) if before else 0, element)
            self._sizes[target] += entry_size(element)
            self._totals = None
            self._merge_around(at + 1 if before else at)
            return
        self._sizes[target] += entry_size(element)
        self._totals = None

    def _may_merge(self, left: int, right: int) -> bool:
        """Whether two neighbouring nodes exist and fit into one."""
        if left < 0 or right >= len(self._nodes) or self._sizes[left] < 0 or self._sizes[right] < 0:
            return False
        size = self._sizes[left] + self._sizes[right] - _HEADER
        return not self._exceeds(size, len(self._nodes[left]) + len(self._nodes[right]))

    def _merge(self, left: int) -> None:
        """Append the node after ``left`` to it. O(node + nodes)."""
        self._nodes[left] += self._nodes.pop(left + 1)
        self._sizes[left] += self._sizes.pop(left + 1) - _HEADER
        self._totals = None

    def _merge_around(self, center: int) -> None:
        """Merge the two nodes before, the two after, then each side with the center, where they fit."""
        after = self._may_merge(center + 1, center + 2)
        if self._may_merge(center - 2, center - 1):
            self._merge(center - 2)
            center -= 1
        if after:
            self._merge(center + 1)
        if self._may_merge(center - 1, center):
            center -= 1
            self._merge(center)
        if self._may_merge(center, center + 1):
            self._merge(center)

    def _replace_plain(self, at: int, element: bytes) -> None:
        """Replace a large element that is a node of its own. O(nodes)."""
        if self._is_large(len(element)):
            self._nodes[at][0] = element
            self._sizes[at] = -len(element)
            return
        self._insert_in(at, 0, element, before=False)
        del self._nodes[at], self._sizes[at]
        self._totals = None

    def _replace_split(self, at: int, place: int, element: bytes) -> None:
        """Replace an element of a node that cannot take the new one. O(node + nodes)."""
        node = self._nodes[at]
        if place != len(node) - 1:
            self._split(at, place + 1)
        self._insert_node(at + 1, [element])
        self._sizes[at] -= entry_size(node.pop())
        if not node:
            del self._nodes[at], self._sizes[at]
        else:
            self._merge_around(at + 1)

    def _check(self) -> None:
        """Assert every invariant. O(n)."""
        nodes = self._nodes
        assert self._length == sum(map(len, nodes))
        assert len(nodes) == len(self._sizes) >= 1
        assert all(nodes) or (len(nodes) == 1 and self._length == 0)
        for node, size in zip(nodes, self._sizes, strict=True):
            if size < 0:
                assert len(node) == 1 and size == -len(node[0])
            else:
                assert size == _HEADER + sum(map(entry_size, node))
        if self._totals is not None:
            assert self._totals == list(accumulate(map(len, nodes[1:-1]), initial=0))
        assert not self._compact or len(nodes) == 1
