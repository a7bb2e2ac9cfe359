"""The order of a sorted set: members by (score, member), in chunks.

A chunk is two parallel lists, scores (floats) and members (bytes); beside the chunks stand their
greatest scores and greatest members. Locating a position bisects the greatest scores, then the
scores of one chunk, and looks at members only inside a run of equal scores; a range is a slice of a
list of members, with no tuple to unpack.

A chunk is halved when it outgrows the limit (1,024; 2,048 above 100,000 members, where the number of
chunks begins to matter) and joined with a neighbour at an eighth of it. For ranks the running totals
of chunk lengths are kept, with a log of the chunks that gained or lost a member since; they are made
anew when the log is long, when reading it has cost as much as that, or when a chunk comes or goes.

Scores compare as floats, so -0.0 and 0.0 are equal; nan must never come in. A compact (``listpack``)
set stores -0.0 as 0, as the server does.

Invariants (`_check`): chunks are never empty; concatenated they are sorted and hold exactly the items
of `scores`; the greatest scores and members are right; the encoding's limits hold.

`emuredis.values.zset.ZSet` adds ranges, removal of ranges, chance and scanning.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from operator import itemgetter
from typing import Any

from emuredis.values.limits import DEFAULT, Limits
from emuredis.values.scan import ScanIndex

__all__ = ["Chunks", "Place"]

_SMALL_LIMIT = 1024
_LARGE_LIMIT = 2048
_LARGE_SIZE = 100_000
_LOG_LENGTH = 64
_NO_LOG: list[int] = []  # stands for "no totals, so nothing to log"; never appended to

Place = tuple[int, int]
"""A position: number of the chunk, position inside it. The end is (number of chunks, 0)."""


class Chunks:
    """Members ordered by score, then by bytes."""

    __slots__ = (
        "_debt",
        "_large",
        "_limit",
        "_log",
        "_members",
        "_scores",
        "_top_members",
        "_top_scores",
        "_totals",
        "index",
        "limits",
        "scores",
    )

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self.scores: dict[bytes, float] = {}
        self.index: ScanIndex | None = None
        self.limits = limits
        self._scores: list[list[float]] = []
        self._members: list[list[bytes]] = []
        self._top_scores: list[float] = []
        self._top_members: list[bytes] = []
        self._totals: list[int] | None = None
        self._log: list[int] = _NO_LOG
        self._debt = 0
        self._limit = _SMALL_LIMIT
        self._large = False

    def _load(self, scores: dict[bytes, float]) -> None:
        """Take ``scores`` as the whole content. O(n log n)."""
        limits = self.limits
        if not self._large:
            self._large = (
                len(scores) > limits.zset_entries or max(map(len, scores), default=0) > limits.zset_value
            )
            if not self._large:
                scores = {member: score + 0.0 for member, score in scores.items()}
        ordered = sorted(scores.items(), key=itemgetter(1, 0))
        self.scores = scores
        self._limit = _SMALL_LIMIT if len(scores) <= _LARGE_SIZE else _LARGE_LIMIT
        size = self._limit // 2
        self._scores, self._members = [], []
        for start in range(0, len(ordered), size):
            members, numbers = zip(*ordered[start : start + size], strict=True)
            self._members.append(list(members))
            self._scores.append(list(numbers))
        self._top_scores = [chunk[-1] for chunk in self._scores]
        self._top_members = [chunk[-1] for chunk in self._members]
        self._totals = None

    def __len__(self) -> int:
        return len(self.scores)

    def __contains__(self, member: bytes) -> bool:
        return member in self.scores

    def __iter__(self) -> Iterator[bytes]:
        """The members in order."""
        for members in self._members:
            yield from members

    def items(self) -> Iterator[tuple[bytes, float]]:
        """(member, score) in order. O(n)."""
        for members, scores in zip(self._members, self._scores, strict=True):
            yield from zip(members, scores, strict=True)

    def score(self, member: bytes) -> float | None:
        """The score of ``member``, or None. O(1)."""
        return self.scores.get(member)

    def encoding(self) -> bytes:
        """The name OBJECT ENCODING gives. O(1)."""
        return b"skiplist" if self._large else b"listpack"

    def enlarge(self) -> None:
        """Take the general encoding, whatever the size. O(1)."""
        self._large = True

    # -- change --------------------------------------------------------------------------------

    def add(self, member: bytes, score: float) -> bool:
        """Set the score of ``member``; True if the member is new. O(log n + chunk)."""
        scores = self.scores
        old = scores.get(member)
        if old is not None:
            if old == score:
                return False
            self._take(member, old)
        if not self._large:
            limits = self.limits
            if len(member) > limits.zset_value or (old is None and len(scores) >= limits.zset_entries):
                self._large = True
            else:
                score += 0.0
        scores[member] = score
        tops = self._top_scores
        at = bisect_left(tops, score)
        if at < len(tops) and tops[at] == score and self._top_members[at] < member:
            at = bisect_left(self._top_members, member, at, bisect_right(tops, score, at))
        if at == len(tops):
            row = self._append(member, score)
            at -= 1
        else:
            row, names = self._scores[at], self._members[at]
            low = bisect_left(row, score)
            if row[low] == score:
                low = bisect_left(names, member, low, bisect_right(row, score, low))
            row.insert(low, score)
            names.insert(low, member)
        if self._totals is not None:
            self._count(at)
        if len(row) > self._limit:
            self._halve(at)
        if old is not None:
            return False
        if self.index is not None and not self.index.add(member):
            self.index = None
        return True

    def _append(self, member: bytes, score: float) -> list[float]:
        """Put a member after all others; the scores of its chunk. O(1)."""
        if not self._scores:
            self._totals = None
            row = [score]
            self._scores.append(row)
            self._members.append([member])
            self._top_scores.append(score)
            self._top_members.append(member)
            return row
        row = self._scores[-1]
        row.append(score)
        self._members[-1].append(member)
        self._top_scores[-1] = score
        self._top_members[-1] = member
        return row

    def _halve(self, at: int) -> None:
        """Cut chunk ``at`` in two, or raise the limit if the set has become large. O(chunk)."""
        if len(self.scores) > _LARGE_SIZE:
            self._limit = _LARGE_LIMIT
        row, names = self._scores[at], self._members[at]
        if len(row) <= self._limit:
            return
        self._totals = None
        half = len(row) // 2
        self._scores.insert(at + 1, row[half:])
        self._members.insert(at + 1, names[half:])
        del row[half:]
        del names[half:]
        self._top_scores.insert(at, row[-1])
        self._top_members.insert(at, names[-1])

    def _find(self, member: bytes, score: float) -> Place:
        """Where a present member is. O(log n)."""
        tops = self._top_scores
        at = bisect_left(tops, score)
        if tops[at] == score and self._top_members[at] < member:
            at = bisect_left(self._top_members, member, at, bisect_right(tops, score, at))
        row = self._scores[at]
        low = bisect_left(row, score)
        names = self._members[at]
        if names[low] != member:
            low = bisect_left(names, member, low, bisect_right(row, score, low))
        return at, low

    def _take(self, member: bytes, score: float) -> None:
        """Remove a present member from the chunks only. O(log n + chunk)."""
        at, low = self._find(member, score)
        row, names, tops = self._scores[at], self._members[at], self._top_scores
        del row[low]
        del names[low]
        if self._totals is not None:
            self._count(~at)
        size = len(row)
        if size <= self._limit >> 3 and (size == 0 or len(tops) > 1):
            self._mend(at)
        elif low == size:
            tops[at] = row[-1]
            self._top_members[at] = names[-1]

    def _mend(self, at: int) -> None:
        """Put a chunk that has shrunk in order: drop it, join it or correct its greatest. O(chunk)."""
        self._totals = None
        row, names = self._scores[at], self._members[at]
        if not row:
            del self._scores[at], self._members[at], self._top_scores[at], self._top_members[at]
            return
        if len(self._scores) > 1:
            if at:
                at -= 1
            row, names = self._scores[at], self._members[at]
            row += self._scores.pop(at + 1)
            names += self._members.pop(at + 1)
            del self._top_scores[at + 1], self._top_members[at + 1]
        self._top_scores[at] = row[-1]
        self._top_members[at] = names[-1]
        if len(row) > self._limit:
            self._halve(at)

    def discard(self, member: bytes) -> bool:
        """Remove a member; whether it was there. O(log n + chunk)."""
        score = self.scores.pop(member, None)
        if score is None:
            return False
        self._take(member, score)
        if self.index is not None and not self.index.discard(member):
            self.index = None
        return True

    def reserve(self, count: int, longest: int) -> None:
        """Choose the encoding for a command about to add ``count`` members of at most ``longest`` bytes."""
        if not self._large and (count > self.limits.zset_entries or longest > self.limits.zset_value):
            self._large = True

    def update(self, pairs: list[tuple[bytes, float]]) -> int:
        """Set many scores; the number of new members. O(k log n); builds anew when that is cheaper."""
        before = len(self.scores)
        self.reserve(len(pairs), max([len(pair[0]) for pair in pairs], default=0))
        if len(pairs) > 64 and before <= len(pairs) and self.index is None:
            scores = self.scores
            if 0.0 in map(itemgetter(1), pairs):
                # 0.0 and -0.0 are equal, and an equal score does not replace the one that is there.
                for member, score in pairs:
                    if scores.get(member) != score:
                        scores[member] = score
            else:
                scores.update(pairs)
            self._load(scores)
            return len(self.scores) - before
        # The last score of a repeated member must win, so only a batch without repeats may be sorted.
        if len(pairs) > 8:
            final = dict(pairs)
            if len(final) == len(pairs):
                pairs = sorted(pairs, key=itemgetter(1, 0))
        add = self.add
        for member, score in pairs:
            add(member, score)
        return len(self.scores) - before

    # -- places --------------------------------------------------------------------------------

    def _sum(self) -> list[int]:
        """The running totals of chunk lengths, made anew. O(chunks)."""
        self._log = []
        self._debt = 0
        self._totals = totals = list(accumulate(map(len, self._members)))
        return totals

    def _count(self, code: int) -> None:
        """Note for the totals that chunk ``code`` got a member, or chunk ``~code`` lost one. O(1)."""
        self._log.append(code)
        if len(self._log) > _LOG_LENGTH:
            self._totals = None

    def _rank_at(self, place: Place) -> int:
        """How many members come before a place. O(1), O(chunks) after many changes."""
        at, low = place
        if at == 0:
            return low
        last = len(self._members) - 1
        if at >= last:
            return len(self.scores) if at > last else len(self.scores) - len(self._members[last]) + low
        totals = self._totals
        if totals is None:
            totals = self._sum()
        rank = totals[at - 1] + low
        if self._log:
            for code in self._log:
                if code < 0:
                    rank -= ~code < at
                else:
                    rank += code < at
            self._debt += len(self._log)
            if self._debt > last:
                self._totals = None
        return rank

    def _place(self, rank: int) -> Place:
        """The place of a rank from 0 to len. O(log chunks), O(chunks) after many changes."""
        members = self._members
        if not members:
            return 0, 0
        if rank < len(members[0]):
            return 0, rank
        left = len(self.scores) - rank
        if left <= 0:
            return len(members), 0
        if left <= len(members[-1]):
            return len(members) - 1, len(members[-1]) - left
        totals = self._totals
        if totals is None:
            totals = self._sum()
        at = bisect_right(totals, rank)
        if not self._log:
            return at, rank - totals[at - 1]
        at = min(at, len(members) - 1)
        start = self._rank_at((at, 0))
        while rank < start:
            at -= 1
            start -= len(members[at])
        while rank >= start + len(members[at]):
            start += len(members[at])
            at += 1
        return at, rank - start

    def _forward(self, place: Place, steps: int) -> Place:
        """The place ``steps`` members further on, or the end. O(chunks passed)."""
        at, low = place
        members = self._members
        while at < len(members):
            room = len(members[at]) - low
            if steps < room:
                return at, low + steps
            steps -= room
            at += 1
            low = 0
        return at, 0

    def _backward(self, place: Place, steps: int) -> Place:
        """The place ``steps`` members before, or the beginning. O(chunks passed)."""
        at, low = place
        while steps > low:
            if at == 0:
                return 0, 0
            steps -= low
            at -= 1
            low = len(self._members[at])
        return at, low - steps

    def _collect(self, first: Place, last: Place, reverse: bool, withscores: bool) -> list[Any]:
        """What lies between two places, ``last`` excluded. O(result)."""
        members = self._cut(self._members, first, last)
        if reverse:
            members.reverse()
        if not withscores:
            return members
        scores = self._cut(self._scores, first, last)
        if reverse:
            scores.reverse()
        flat: list[Any] = [None] * (2 * len(members))
        flat[::2] = members
        flat[1::2] = scores
        return flat

    @staticmethod
    def _cut(rows: list[list[Any]], first: Place, last: Place) -> list[Any]:
        """The elements of ``rows`` between two places, as a fresh list."""
        at, low = first
        end, high = last
        if at == end:
            return rows[at][low:high] if high else []
        out = rows[at][low:]
        for row in rows[at + 1 : end]:
            out += row
        if high:
            out += rows[end][:high]
        return out

    def _remove(self, first: Place, last: Place, reverse: bool, withscores: bool) -> list[Any]:
        """Remove what lies between two places and return it. O(chunks + result)."""
        if first == last or not self._members:
            return []
        removed = self._collect(first, last, reverse, withscores)
        gone = removed[::2] if withscores else removed
        scores = self.scores
        for member in gone:
            del scores[member]
        at, low = first
        end, high = last
        if at == end:
            del self._scores[at][low:high]
            del self._members[at][low:high]
        else:
            if high:
                del self._scores[end][:high]
                del self._members[end][:high]
            del self._scores[at][low:]
            del self._members[at][low:]
            for rows in (self._scores, self._members, self._top_scores, self._top_members):
                del rows[at + 1 : end]
        self._totals = None
        for number in (at + 1, at):
            if number < len(self._scores):
                self._settle(number)
        if self.index is not None:
            keep = [self.index.discard(member) for member in gone]
            if not all(keep):
                self.index = None
        return removed

    def _settle(self, at: int) -> None:
        """Restore a chunk's invariants after a cut. O(chunk)."""
        row = self._scores[at]
        if len(row) <= self._limit >> 3:
            self._mend(at)
        else:
            self._top_scores[at] = row[-1]
            self._top_members[at] = self._members[at][-1]

    def _check(self) -> None:
        """Assert every invariant. O(n log n)."""
        flat = list(self.items())
        assert flat == sorted(flat, key=itemgetter(1, 0))
        assert dict(flat) == self.scores and len(flat) == len(self.scores)
        assert all(0 < len(row) <= self._limit for row in self._scores)
        assert [len(row) for row in self._scores] == [len(names) for names in self._members]
        assert self._top_scores == [row[-1] for row in self._scores]
        assert self._top_members == [names[-1] for names in self._members]
        if self._totals is not None:
            lengths = [0] * len(self._members)
            for code in self._log:
                lengths[max(code, ~code)] += 1 if code >= 0 else -1
            counted = [now + before for now, before in zip(accumulate(lengths), self._totals, strict=True)]
            assert counted == list(accumulate(map(len, self._members)))
        if self.index is not None:
            self.index._check(self.scores)
        if not self._large:
            assert len(flat) <= self.limits.zset_entries
            assert all(len(member) <= self.limits.zset_value for member in self.scores)
            assert not any(str(score) == "-0.0" for score in self.scores.values())
