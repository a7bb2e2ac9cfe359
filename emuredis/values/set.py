"""The set value: distinct members in order of insertion.

`members` is a dict used as an ordered set; anyone may read it, only this class may change it. An
`Order` beside it, made when chance is first asked for, gives O(1) random members.

The encoding follows the server: ``intset`` while all members are 64-bit integers and few, then
``listpack``, then ``hashtable``, never back. As in the server an ``intset`` lists its members in
ascending order; the other two in order of insertion (the server's hashtable has no order to copy).

Invariants (`_check`): the encoding's limits hold; `Order` and `ScanIndex`, if present, hold exactly
the members.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from random import Random

from emuredis.scalars import parse_int
from emuredis.values.limits import DEFAULT, Limits
from emuredis.values.order import Order
from emuredis.values.scan import ScanIndex, scan

__all__ = ["Set"]

_INTSET, _LISTPACK, _HASHTABLE = 0, 1, 2
_NAMES = (b"intset", b"listpack", b"hashtable")


class Set:
    """Distinct members."""

    __slots__ = ("_kind", "_order", "index", "limits", "members")

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self.members: dict[bytes, None] = {}
        self.index: ScanIndex | None = None
        self.limits = limits
        self._order: Order | None = None
        self._kind = _INTSET

    @classmethod
    def from_members(cls, members: Iterable[bytes], limits: Limits = DEFAULT) -> Set:
        """A set of these members, in the encoding that adding them one by one gives. O(n)."""
        made = cls(limits)
        add = made.add
        for member in members:
            add(member)
        return made

    @classmethod
    def from_common(cls, members: Collection[bytes], limits: Limits = DEFAULT) -> Set:
        """A set of these members, in the encoding that storing an intersection gives. O(n)."""
        made = cls(limits)
        if len(members) > limits.set_intset:
            # The server collects them in a listpack, and makes an intset of it only if it is small enough.
            made._kind = _LISTPACK
        for member in members:
            made.add(member)
        return made

    @classmethod
    def from_stored(cls, members: Iterable[bytes], encoding: bytes, limits: Limits = DEFAULT) -> Set:
        """A set of these members in the encoding it was stored with, whatever the limits. O(n)."""
        made = cls(limits)
        made.members = dict.fromkeys(members)
        made._kind = _NAMES.index(encoding)
        return made

    @classmethod
    def from_difference(cls, first: Set, others: Sequence[Set], limits: Limits = DEFAULT) -> Set:
        """What `difference` gives, in the encoding that storing it gives.

        When ``first`` is large the server takes members away from a copy of it, which keeps its encoding.
        """
        members = cls.difference(first, others)
        if len(first) * (1 + len(others)) // 2 <= len(first) + sum(map(len, others)):
            return cls.from_members(members, limits)
        made, kept = cls.from_members(first, limits), set(members)
        for member in first:
            if member not in kept:
                made.discard(member)
        return made

    def __len__(self) -> int:
        return len(self.members)

    def __contains__(self, member: bytes) -> bool:
        return member in self.members

    def __iter__(self) -> Iterator[bytes]:
        if self._kind == _INTSET:
            return iter(sorted(self.members, key=int))
        return iter(self.members)

    def add(self, member: bytes) -> bool:
        """Add a member; True if it is new. O(1)."""
        members = self.members
        if member in members:
            return False
        members[member] = None
        if self._kind != _HASHTABLE:
            self._fit(member)
        if self._order is not None:
            self._order.add(member)
        if self.index is not None and not self.index.add(member):
            self.index = None
        return True

    def update(self, members: Sequence[bytes]) -> int:
        """Add members as one SADD; the number of new ones. O(len(members))."""
        self.reserve(len(members), members[0] if members else b"")
        add = self.add
        return sum([add(member) for member in members])

    def reserve(self, hint: int, first: bytes = b"") -> None:
        """Choose the encoding for a command about to add ``hint`` members. O(1)."""
        limits = self.limits
        if self._kind == _INTSET and (self.members or parse_int(first) is not None):
            if hint > limits.set_intset:
                self._kind = _HASHTABLE if self.members or hint > limits.set_entries else _LISTPACK
        elif self._kind != _HASHTABLE and hint > limits.set_entries:
            self._kind = _HASHTABLE

    def _fit(self, member: bytes) -> None:
        """Change the encoding if the member just added does not fit it. O(1) amortised."""
        limits, size = self.limits, len(self.members)
        if self._kind == _INTSET:
            if parse_int(member) is not None:
                if size > limits.set_intset:
                    self._kind = _HASHTABLE
                return
            del self.members[member]
            self.members = dict.fromkeys(sorted(self.members, key=int))
            self.members[member] = None
            self._kind = _LISTPACK
            if any(len(other) > limits.set_value for other in self.members):
                self._kind = _HASHTABLE
        if size > limits.set_entries or len(member) > limits.set_value:
            self._kind = _HASHTABLE

    def discard(self, member: bytes) -> bool:
        """Remove a member; whether it was there. O(1)."""
        members = self.members
        if member not in members:
            return False
        del members[member]
        if self._order is not None:
            self._order.discard(member)
        if self.index is not None and not self.index.discard(member):
            self.index = None
        return True

    def copy(self) -> Set:
        """An independent copy. O(n)."""
        twin = Set(self.limits)
        twin.members = self.members.copy()
        twin._kind = self._kind
        return twin

    def encoding(self) -> bytes:
        """The name OBJECT ENCODING gives. O(1)."""
        return _NAMES[self._kind]

    # -- chance and scanning -------------------------------------------------------------------

    def random(self, rng: Random) -> bytes:
        """A random member of a set that is not empty. O(1) after a first O(n)."""
        return self._ordered().choice(rng)

    def choices(self, rng: Random, count: int) -> list[bytes]:
        """``count`` random members, repeats allowed. O(count)."""
        return self._ordered().choices(rng, count)

    def sample(self, rng: Random, count: int) -> list[bytes]:
        """Up to ``count`` distinct random members. O(count)."""
        return self._ordered().sample(rng, count)

    def pop_random(self, rng: Random, count: int = 1) -> list[bytes]:
        """Remove and return up to ``count`` random members. O(count)."""
        popped = self.sample(rng, count) if count != 1 or not self.members else [self.random(rng)]
        for member in popped:
            self.discard(member)
        return popped

    def _ordered(self) -> Order:
        if self._order is None:
            self._order = Order(self)
        return self._order

    def scan(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """(next cursor, members); everything at once while compact. O(page)."""
        if self._kind != _HASHTABLE:
            return 0, list(self)
        following, page, self.index = scan(self.index, self.members, cursor, count)
        return following, page

    # -- algebra -------------------------------------------------------------------------------

    @staticmethod
    def union(sets: Sequence[Set]) -> dict[bytes, None]:
        """The members of any set, in order of first appearance. O(total)."""
        out: dict[bytes, None] = {}
        for one in sets:
            out.update(dict.fromkeys(one))
        return out

    @staticmethod
    def intersection(sets: Sequence[Set], limit: int = 0) -> list[bytes]:
        """The members of every set, at most ``limit`` if given. O(smallest * number of sets)."""
        smallest, *others = sorted(sets, key=len)
        found = []
        tables = [one.members for one in others]
        for member in smallest:
            for table in tables:
                if member not in table:
                    break
            else:
                found.append(member)
                if len(found) == limit:
                    break
        return found

    @staticmethod
    def difference(first: Set, others: Sequence[Set]) -> list[bytes]:
        """The members of ``first`` that none of the others has. O(len(first) * number of sets)."""
        tables = [one.members for one in others]
        return [member for member in first if not any(member in table for table in tables)]

    def _check(self) -> None:
        """Assert every invariant. O(n)."""
        members, limits = self.members, self.limits
        if self._order is not None:
            self._order._check(members)
        if self.index is not None:
            self.index._check(members)
        if self._kind == _INTSET:
            assert len(members) <= limits.set_intset
            assert all(parse_int(member) is not None for member in members)
        elif self._kind == _LISTPACK:
            assert len(members) <= limits.set_entries
            assert all(len(member) <= limits.set_value for member in members)
