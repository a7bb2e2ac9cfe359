"""The sorted set: ranks, ranges by rank, score and member, removal of ranges, chance and scanning.

`scores` maps each member to its score; anyone may read it, only this class may change it. The order,
its invariants and single changes are in `emuredis.values.chunks`; everything here is phrased as "find
two places, take what lies between". Ranges by score are inclusive unless told otherwise; ranges by
rank are half open, as Python's slices.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from random import Random
from typing import Any

from emuredis.values.chunks import Chunks, Place
from emuredis.values.limits import DEFAULT, Limits
from emuredis.values.scan import scan

__all__ = ["ZSet"]


class ZSet(Chunks):
    """Members with scores, ordered by score, then by bytes."""

    __slots__ = ()

    @classmethod
    def from_items(cls, items: Iterable[tuple[bytes, float]], limits: Limits = DEFAULT) -> ZSet:
        """A sorted set of these (member, score) pairs; the last score of a member counts. O(n log n)."""
        made = cls(limits)
        made._load(dict(items))
        return made

    @classmethod
    def from_added(
        cls, items: Iterable[tuple[bytes, float]], hint: int = 0, limits: Limits = DEFAULT
    ) -> ZSet:
        """A sorted set to which distinct members were added one by one; it was made for ``hint`` of them. O(n log n).

        A score of −0 becomes 0 where it is added while the set is a listpack, even if it does not stay one.
        """
        made = cls(limits)
        scores: dict[bytes, float] = {}
        large = hint > limits.zset_entries
        for member, score in items:
            if not large and (len(member) > limits.zset_value or len(scores) >= limits.zset_entries):
                large = True
            scores[member] = score if large else score + 0.0
        made._large = large
        made._load(scores)
        return made

    @classmethod
    def from_stored(cls, scores: dict[bytes, float], large: bool, limits: Limits = DEFAULT) -> ZSet:
        """A sorted set of these scores in the encoding it was stored with, whatever the limits. O(n log n)."""
        made = cls(limits)
        made._load(scores)
        made._large = large
        return made

    def copy(self) -> ZSet:
        """An independent copy. O(n)."""
        twin = ZSet(self.limits)
        twin.scores = self.scores.copy()
        twin._scores = [chunk.copy() for chunk in self._scores]
        twin._members = [chunk.copy() for chunk in self._members]
        twin._top_scores = self._top_scores.copy()
        twin._top_members = self._top_members.copy()
        twin._limit = self._limit
        twin._large = self._large
        return twin

    # -- ranks ---------------------------------------------------------------------------------

    def rank(self, member: bytes, reverse: bool = False) -> int | None:
        """How many members come before ``member`` (after it, if reverse), or None. As `_rank_at`."""
        score = self.scores.get(member)
        if score is None:
            return None
        rank = self._rank_at(self._find(member, score))
        return len(self.scores) - 1 - rank if reverse else rank

    def at(self, rank: int) -> tuple[bytes, float]:
        """The member at a rank from 0 to len - 1, and its score. As `_place`."""
        at, low = self._place(rank)
        return self._members[at][low], self._scores[at][low]

    def slice(self, start: int, stop: int, reverse: bool = False, withscores: bool = False) -> list[Any]:
        """The members with rank ``start`` <= rank < ``stop``; with scores flat: member, score ...

        Bounds are cut to 0 .. len; reverse counts ranks from the greatest. O(chunks + result).
        """
        size = len(self.scores)
        start, stop = max(start, 0), min(stop, size)
        if start >= stop:
            return []
        if reverse:
            start, stop = size - stop, size - start
        first = self._place(start)
        return self._collect(first, self._forward(first, stop - start), reverse, withscores)

    # -- ranges --------------------------------------------------------------------------------

    def _score_place(self, score: float, after: bool) -> Place:
        """The first place whose score is >= ``score`` (> if ``after``). O(log n)."""
        tops = self._top_scores
        if after:
            at = bisect_right(tops, score)
            return (at, bisect_right(self._scores[at], score)) if at < len(tops) else (at, 0)
        at = bisect_left(tops, score)
        return (at, bisect_left(self._scores[at], score)) if at < len(tops) else (at, 0)

    def _lex_place(self, member: bytes, after: bool) -> Place:
        """The first place whose member is >= ``member`` (> if ``after``), scores being equal. O(log n)."""
        tops = self._top_members
        search = bisect_right if after else bisect_left
        at = search(tops, member)
        return (at, search(self._members[at], member)) if at < len(tops) else (at, 0)

    def _score_places(self, lo: float, hi: float, lo_excl: bool, hi_excl: bool) -> tuple[Place, Place]:
        """The ends of a score range; equal if it is empty. O(log n)."""
        first = self._score_place(lo, lo_excl)
        last = self._score_place(hi, not hi_excl)
        return (first, last) if first < last else (first, first)

    def _lex_places(
        self, lo: bytes | None, hi: bytes | None, lo_excl: bool, hi_excl: bool, reverse: bool = False
    ) -> tuple[Place, Place]:
        """The ends of a range by member; None is no bound. O(log n), O(n) in a compact set.

        The order by member only means something while all scores are equal. If they are not, a
        compact set answers as the server's walk does: from the first member that is within one bound,
        up to the first after it that is outside the other; `reverse` walks from the end.
        """
        end = (len(self._members), 0)
        if not self._members:
            return end, end
        if not self._large and self._scores[0][0] != self._top_scores[-1]:
            return self._walk_lex(lo, hi, lo_excl, hi_excl, reverse)
        first = (0, 0) if lo is None else self._lex_place(lo, lo_excl)
        last = end if hi is None else self._lex_place(hi, not hi_excl)
        return (first, last) if first < last else (first, first)

    def _walk_lex(
        self, lo: bytes | None, hi: bytes | None, lo_excl: bool, hi_excl: bool, reverse: bool
    ) -> tuple[Place, Place]:
        members = list(self)
        enough = [lo is None or (member > lo if lo_excl else member >= lo) for member in members]
        within = [hi is None or (member < hi if hi_excl else member <= hi) for member in members]
        if not enough[-1] or not within[0]:
            return (0, 0), (0, 0)
        size = len(members)
        if reverse:
            stop = size - within[::-1].index(True)
            start = next((at for at in range(stop, 0, -1) if not enough[at - 1]), 0)
        else:
            start = enough.index(True)
            stop = next((at for at in range(start, size) if not within[at]), size)
        return self._place(start), self._place(stop)

    def range_by_score(
        self,
        lo: float,
        hi: float,
        lo_excl: bool = False,
        hi_excl: bool = False,
        offset: int = 0,
        count: int = -1,
        reverse: bool = False,
        withscores: bool = False,
    ) -> list[Any]:
        """Members with ``lo`` <= score <= ``hi``, in order or reversed; with scores flat.

        ``offset`` members are skipped, then at most ``count`` returned (all if negative).
        O(log n + result), and O(chunks passed) for the offset.
        """
        if count >= 0 and not reverse and offset == 0:
            # The common "first few that are due" needs no second bisection.
            at, low = self._score_place(lo, lo_excl)
            if at < len(self._scores):
                row = self._scores[at]
                high = low + count
                if (
                    high <= len(row)
                    and high > low
                    and (row[high - 1] < hi or (row[high - 1] == hi and not hi_excl))
                ):
                    members = self._members[at][low:high]
                    if not withscores:
                        return members
                    flat: list[Any] = [None] * (2 * count)
                    flat[::2] = members
                    flat[1::2] = row[low:high]
                    return flat
        first, last = self._score_places(lo, hi, lo_excl, hi_excl)
        return self._limited(first, last, offset, count, reverse, withscores)

    def range_by_lex(
        self,
        lo: bytes | None,
        hi: bytes | None,
        lo_excl: bool = False,
        hi_excl: bool = False,
        offset: int = 0,
        count: int = -1,
        reverse: bool = False,
        withscores: bool = False,
    ) -> list[Any]:
        """As `range_by_score` between two members; None is ``-`` for ``lo`` and ``+`` for ``hi``.

        A caller given ``+`` as the lower or ``-`` as the upper end knows the range to be empty.
        """
        first, last = self._lex_places(lo, hi, lo_excl, hi_excl, reverse)
        return self._limited(first, last, offset, count, reverse, withscores)

    def _limited(
        self, first: Place, last: Place, offset: int, count: int, reverse: bool, withscores: bool
    ) -> list[Any]:
        """The part of a range that LIMIT selects. O(result), and O(chunks passed) for the offset."""
        if count == 0:
            return []
        if offset < 0:
            # As the server: counted from the far end of the range, but a compact set finds nothing.
            offset += self._rank_at(last) - self._rank_at(first)
            if offset < 0 or not self._large:
                return []
        if reverse:
            if offset:
                last = self._backward(last, offset)
            if count > 0:
                first = max(first, self._backward(last, count))
        else:
            if offset:
                first = self._forward(first, offset)
            if count > 0:
                last = min(last, self._forward(first, count))
        if first >= last:
            return []
        return self._collect(first, last, reverse, withscores)

    def count_by_score(self, lo: float, hi: float, lo_excl: bool = False, hi_excl: bool = False) -> int:
        """How many members `range_by_score` would return. O(log n), as `_rank_at`."""
        first, last = self._score_places(lo, hi, lo_excl, hi_excl)
        if first[0] == last[0]:
            return last[1] - first[1]
        return self._rank_at(last) - self._rank_at(first)

    def count_by_lex(
        self, lo: bytes | None, hi: bytes | None, lo_excl: bool = False, hi_excl: bool = False
    ) -> int:
        """How many members `range_by_lex` would return. O(log n), as `_rank_at`."""
        first, last = self._lex_places(lo, hi, lo_excl, hi_excl)
        return self._rank_at(last) - self._rank_at(first)

    # -- removal of ranges ---------------------------------------------------------------------

    def pop_min(self, count: int = 1) -> list[Any]:
        """Remove the first ``count`` members; flat member, score ... O(count + chunk)."""
        if count == 1 and self._members:
            return self._pop(0)
        return self._remove((0, 0), self._place(min(count, len(self.scores))), False, True)

    def pop_max(self, count: int = 1) -> list[Any]:
        """Remove the last ``count`` members, greatest first; flat member, score ... O(count + chunk)."""
        if count == 1 and self._members:
            return self._pop(-1)
        end = (len(self._members), 0)
        return self._remove(self._place(max(len(self.scores) - count, 0)), end, True, True)

    def _pop(self, end: int) -> list[Any]:
        """Remove the first (0) or last (-1) member; [member, score]. O(chunk)."""
        row = self._scores[end]
        score = row.pop(end)
        member = self._members[end].pop(end)
        del self.scores[member]
        if self._totals is not None:
            self._count(~0 if end == 0 else ~(len(self._scores) - 1))
        if len(row) <= self._limit >> 3 and (not row or len(self._scores) > 1):
            self._mend(0 if end == 0 else len(self._scores) - 1)
        elif end:
            self._top_scores[-1] = row[-1]
            self._top_members[-1] = self._members[-1][-1]
        if self.index is not None and not self.index.discard(member):
            self.index = None
        return [member, score]

    def remove_range_by_rank(self, start: int, stop: int) -> list[bytes]:
        """Remove the members with ``start`` <= rank < ``stop`` and return them. O(chunks + result)."""
        start, stop = max(start, 0), min(stop, len(self.scores))
        if start >= stop:
            return []
        return self._remove(self._place(start), self._place(stop), False, False)

    def remove_range_by_score(
        self, lo: float, hi: float, lo_excl: bool = False, hi_excl: bool = False
    ) -> list[bytes]:
        """Remove what `range_by_score` returns. O(log n + chunks + result)."""
        return self._remove(*self._score_places(lo, hi, lo_excl, hi_excl), False, False)

    def remove_range_by_lex(
        self, lo: bytes | None, hi: bytes | None, lo_excl: bool = False, hi_excl: bool = False
    ) -> list[bytes]:
        """Remove what `range_by_lex` returns. O(log n + chunks + result)."""
        return self._remove(*self._lex_places(lo, hi, lo_excl, hi_excl), False, False)

    # -- chance and scanning -------------------------------------------------------------------

    def random(self, rng: Random) -> bytes:
        """A random member of a set that is not empty. As `_place`."""
        return self.at(int(rng.random() * len(self.scores)))[0]

    def choices(self, rng: Random, count: int) -> list[tuple[bytes, float]]:
        """``count`` random (member, score), repeats allowed. O(count log chunks)."""
        size = len(self.scores)
        return [self.at(int(rng.random() * size)) for _ in range(count)]

    def sample(self, rng: Random, count: int) -> list[tuple[bytes, float]]:
        """Up to ``count`` distinct random (member, score). O(count log chunks)."""
        size = len(self.scores)
        if count >= size:
            return list(self.items())
        return [self.at(rank) for rank in rng.sample(range(size), count)]

    def scan(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """(next cursor, members); everything at once, in order, while compact. O(page)."""
        if not self._large:
            return 0, list(self)
        following, page, self.index = scan(self.index, self.scores, cursor, count)
        return following, page
