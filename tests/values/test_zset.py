"""The sorted set against a plain model: a dict sorted anew for every question."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from emuredis.scalars import format_double
from emuredis.values import chunks
from emuredis.values.zset import ZSet
from tests.support.live import Connection

MEMBERS = st.integers(0, 60).map(lambda n: b"m%02d" % n) | st.binary(max_size=3) | st.just(b"x" * 65)
SCORES = st.sampled_from([0.0, -0.0, 1.0, 1.5, 2.0, -1.0, math.inf, -math.inf, 5e-324]) | st.floats(
    allow_nan=False
)
PAIRS = st.lists(st.tuples(MEMBERS, SCORES), max_size=40)
FLAGS = st.booleans()
RANKS = st.integers(-3, 80)


class Machine(RuleBasedStateMachine):
    """Small chunks, so that splitting and joining happen all the time."""

    @initialize(pairs=PAIRS, limit=st.sampled_from([2, 3, 4, 16, 64]))
    def start(self, pairs: list[tuple[bytes, float]], limit: int) -> None:
        self.zset = ZSet()
        self.zset._limit = limit
        self.model: dict[bytes, float] = {}
        self.put_many(pairs)

    def ordered(self) -> list[tuple[bytes, float]]:
        return sorted(self.model.items(), key=lambda item: (item[1], item[0]))

    def flat(self, items: list[tuple[bytes, float]], withscores: bool) -> list[Any]:
        return [part for item in items for part in item] if withscores else [member for member, _ in items]

    @rule(pairs=PAIRS)
    def put_many(self, pairs: list[tuple[bytes, float]]) -> None:
        before = len(self.model)
        self.model.update(pairs)
        assert self.zset.update(pairs) == len(self.model) - before

    @rule(member=MEMBERS, score=SCORES)
    def add(self, member: bytes, score: float) -> None:
        assert self.zset.add(member, score) == (member not in self.model)
        self.model[member] = score

    @rule(member=MEMBERS)
    def discard(self, member: bytes) -> None:
        assert self.zset.discard(member) == (self.model.pop(member, None) is not None)

    @rule(member=MEMBERS)
    def look_up(self, member: bytes) -> None:
        assert self.zset.score(member) == self.model.get(member)
        assert (member in self.zset) == (member in self.model)
        names = [name for name, _ in self.ordered()]
        rank = names.index(member) if member in self.model else None
        assert self.zset.rank(member) == rank
        if rank is not None:
            assert self.zset.rank(member, reverse=True) == len(names) - 1 - rank
            assert self.zset.at(rank) == (member, self.model[member])

    @rule(start=RANKS, stop=RANKS, reverse=FLAGS, withscores=FLAGS)
    def slice(self, start: int, stop: int, reverse: bool, withscores: bool) -> None:
        items = self.ordered()[:: -1 if reverse else 1]
        expected = self.flat(items[max(start, 0) : max(stop, 0)], withscores)
        assert self.zset.slice(start, stop, reverse, withscores) == expected

    def selected(self, lo: float, hi: float, lo_excl: bool, hi_excl: bool) -> list[tuple[bytes, float]]:
        return [
            (member, score)
            for member, score in self.ordered()
            if (score > lo if lo_excl else score >= lo) and (score < hi if hi_excl else score <= hi)
        ]

    @rule(
        lo=SCORES,
        hi=SCORES,
        lo_excl=FLAGS,
        hi_excl=FLAGS,
        offset=st.integers(0, 40),
        count=st.integers(-1, 40),
        reverse=FLAGS,
        withscores=FLAGS,
    )
    def by_score(
        self,
        lo: float,
        hi: float,
        lo_excl: bool,
        hi_excl: bool,
        offset: int,
        count: int,
        reverse: bool,
        withscores: bool,
    ) -> None:
        items = self.selected(lo, hi, lo_excl, hi_excl)
        assert self.zset.count_by_score(lo, hi, lo_excl, hi_excl) == len(items)
        items = items[:: -1 if reverse else 1][offset:]
        expected = self.flat(items if count < 0 else items[:count], withscores)
        got = self.zset.range_by_score(lo, hi, lo_excl, hi_excl, offset, count, reverse, withscores)
        assert got == expected

    @rule(lo=SCORES, hi=SCORES, lo_excl=FLAGS, hi_excl=FLAGS)
    def remove_by_score(self, lo: float, hi: float, lo_excl: bool, hi_excl: bool) -> None:
        items = self.selected(lo, hi, lo_excl, hi_excl)
        expected = [member for member, _ in items]
        assert self.zset.remove_range_by_score(lo, hi, lo_excl, hi_excl) == expected
        for member in expected:
            del self.model[member]

    @rule(start=RANKS, stop=RANKS)
    def remove_by_rank(self, start: int, stop: int) -> None:
        expected = [member for member, _ in self.ordered()[max(start, 0) : max(stop, 0)]]
        assert self.zset.remove_range_by_rank(start, stop) == expected
        for member in expected:
            del self.model[member]

    @rule(count=st.integers(0, 20), greatest=FLAGS)
    def pop(self, count: int, greatest: bool) -> None:
        items = self.ordered()[:: -1 if greatest else 1][:count]
        got = self.zset.pop_max(count) if greatest else self.zset.pop_min(count)
        assert got == self.flat(items, True)
        for member, _ in items:
            del self.model[member]

    @precondition(lambda self: self.model)
    @rule(seed=st.integers(0, 99), count=st.integers(0, 30))
    def chance(self, seed: int, count: int) -> None:
        rng = Random(seed)
        assert self.zset.random(rng) in self.model
        assert all(self.model[member] == score for member, score in self.zset.choices(rng, count))
        sample = self.zset.sample(rng, count)
        assert len(sample) == len(dict(sample)) == min(count, len(self.model))

    @rule(count=st.integers(1, 10))
    def scan(self, count: int) -> None:
        cursor, seen = self.zset.scan(0, count)
        while cursor:
            cursor, page = self.zset.scan(cursor, count)
            seen += page
        assert sorted(seen) == sorted(self.model)

    @rule()
    def copy(self) -> None:
        twin = self.zset.copy()
        twin._check()
        self.zset.add(b"only here", 1.0)
        assert b"only here" not in twin
        self.zset = twin

    @invariant()
    def whole(self) -> None:
        if hasattr(self, "zset"):
            self.zset._check()
            assert list(self.zset.items()) == self.ordered()
            assert list(self.zset) == [member for member, _ in self.ordered()]


TestZSet = pytest.mark.slow(Machine.TestCase)
TestZSet.settings = settings(max_examples=25, stateful_step_count=25)


@settings(max_examples=60)
@given(
    members=st.sets(st.binary(max_size=2), max_size=80),
    lo=st.none() | st.binary(max_size=2),
    hi=st.none() | st.binary(max_size=2),
    lo_excl=FLAGS,
    hi_excl=FLAGS,
    limit=st.sampled_from([2, 5, 1024]),
    remove=FLAGS,
)
def test_ranges_by_member(
    members: set[bytes],
    lo: bytes | None,
    hi: bytes | None,
    lo_excl: bool,
    hi_excl: bool,
    limit: int,
    remove: bool,
) -> None:
    zset = ZSet()
    zset._limit = limit
    for member in sorted(members):
        zset.add(member, 1.0)
    expected = [
        member
        for member in sorted(members)
        if (lo is None or (member > lo if lo_excl else member >= lo))
        and (hi is None or (member < hi if hi_excl else member <= hi))
    ]
    assert zset.range_by_lex(lo, hi, lo_excl, hi_excl) == expected
    assert zset.range_by_lex(lo, hi, lo_excl, hi_excl, 1, 2, True) == expected[::-1][1:3]
    assert zset.count_by_lex(lo, hi, lo_excl, hi_excl) == len(expected)
    if remove:
        assert zset.remove_range_by_lex(lo, hi, lo_excl, hi_excl) == expected
        assert list(zset) == sorted(members - set(expected))
    zset._check()


def test_a_compact_set_forgets_the_sign_of_zero() -> None:
    zset = ZSet.from_items([(b"a", -0.0)])
    assert math.copysign(1, zset.scores[b"a"]) == 1
    zset.add(b"a", 1.0)
    zset.add(b"a", -0.0)
    assert math.copysign(1, zset.scores[b"a"]) == 1
    zset.add(b"x" * 65, -0.0)
    assert math.copysign(1, zset.scores[b"x" * 65]) == -1
    zset._check()


def test_repeats_in_a_batch_take_the_last_score() -> None:
    pairs = [(b"m%d" % (n % 20), float(n)) for n in range(100)]
    for start in ([], [(b"z%d" % n, 1.0) for n in range(500)]):
        zset = ZSet.from_items(start)
        assert zset.update(pairs) == 20
        assert zset.scores[b"m3"] == 83.0
        zset._check()


@pytest.mark.slow
def test_many_members_in_real_chunks() -> None:
    rng = Random(5)
    zset = ZSet()
    for number in range(chunks._LARGE_SIZE + 20_000):
        zset.add(b"%d" % rng.randrange(10**9), rng.random())
        if number % 40_000 == 0:
            zset._check()
    zset._check()
    assert zset._limit == chunks._LARGE_LIMIT
    while len(zset) > 50_000:
        zset.discard(zset.random(rng))
    zset._check()
    twin = ZSet.from_items(zset.items())
    twin._check()
    assert list(twin.items()) == list(zset.items())
    zset.remove_range_by_rank(100, 49_900)
    zset._check()
    assert len(zset) == 200


def text(score: float) -> bytes:
    return repr(score).encode()


def step(rng: Random, value: ZSet, live: Connection) -> None:
    """One random command, done to both."""
    pairs = []
    for _ in range(rng.choice([1, 1, 2, 5, 30, 128, 129])):
        member = rng.choice([b"%d" % rng.randrange(200), b"m" * rng.choice([1, 63, 64])])
        pairs.append((member, rng.choice([0.0, -0.0, 1.0, -1.5, 1e17, math.inf, rng.random()])))
    if rng.random() < 0.1:
        pairs.append((b"n" * 65, -0.0))
    choice = rng.random()
    if choice < 0.5 or not len(value):
        argv = [part for member, score in pairs for part in (text(score), member)]
        assert live.call("ZADD", "k", *argv).value == value.update(pairs)
    elif choice < 0.7:
        member, more = pairs[0][0], rng.choice([1.0, -0.0, 0.0, 0.5])
        score = value.scores.get(member, 0.0) + more if member in value.scores else more
        live.call("ZINCRBY", "k", text(more), member)
        value.add(member, score)
    else:
        gone = list(value)[:: rng.choice([1, 2, 3])]
        assert live.call("ZREM", "k", *gone).value == sum([value.discard(member) for member in gone])


@pytest.mark.parametrize("seed", range(12))
def test_encoding_and_scores_are_the_servers(live: Connection, seed: int) -> None:
    rng = Random(seed)
    value = ZSet()
    for _ in range(25):
        step(rng, value, live)
        value._check()
        if not len(value):
            value = ZSet()
            continue
        assert live.call("OBJECT", "ENCODING", "k").value == value.encoding()
        got = [frame.value for frame in live.call("ZRANGE", "k", 0, -1, "WITHSCORES").value]
        assert got == [part for member, score in value.items() for part in (member, format_double(score))]
        if value.encoding() == b"skiplist" and rng.random() < 0.3:
            live.call("DEL", "k")
            value = ZSet()


@pytest.mark.parametrize("seed", range(6))
def test_ranges_by_member_among_unequal_scores(live: Connection, seed: int) -> None:
    """Meaningless, but a compact set answers the same as the server's."""
    rng = Random(seed)
    names = [b"a", b"b", b"c", b"d", b"e"]
    for _ in range(60):
        value = ZSet.from_items([(rng.choice(names), float(rng.randrange(3))) for _ in range(4)])
        live.call("DEL", "k")
        live.call("ZADD", "k", *[part for member, score in value.items() for part in (text(score), member)])
        lo, hi = rng.choice([*names, None]), rng.choice([*names, None])
        lo_excl, hi_excl = rng.random() < 0.5, rng.random() < 0.5
        low = b"-" if lo is None else (b"(" if lo_excl else b"[") + lo
        high = b"+" if hi is None else (b"(" if hi_excl else b"[") + hi
        got = [frame.value for frame in live.call("ZRANGEBYLEX", "k", low, high).value]
        assert got == value.range_by_lex(lo, hi, lo_excl, hi_excl), (low, high, list(value.items()))
        got = [frame.value for frame in live.call("ZREVRANGEBYLEX", "k", high, low).value]
        assert got == value.range_by_lex(lo, hi, lo_excl, hi_excl, reverse=True), (
            low,
            high,
            list(value.items()),
        )
        assert live.call("ZLEXCOUNT", "k", low, high).value == value.count_by_lex(lo, hi, lo_excl, hi_excl)
        removed = value.remove_range_by_lex(lo, hi, lo_excl, hi_excl)
        assert live.call("ZREMRANGEBYLEX", "k", low, high).value == len(removed)
        assert [frame.value for frame in live.call("ZRANGE", "k", 0, -1).value] == list(value)
