"""The set against a Python set, and its encoding and order against the live server."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from emuredis.values.limits import Limits
from emuredis.values.set import Set
from tests.support.live import Connection

MEMBERS = (
    st.integers(-20, 20).map(lambda n: b"%d" % n)
    | st.integers(-(1 << 63), (1 << 63) - 1).map(lambda n: b"%d" % n)
    | st.binary(max_size=3)
    | st.sampled_from([b"01", b"x" * 64, b"x" * 65])
)
MANY = st.lists(MEMBERS, max_size=15)
SEEDS = st.integers(0, 99)


class Machine(RuleBasedStateMachine):
    @initialize(members=MANY, intset=st.sampled_from([0, 3, 512]), entries=st.sampled_from([0, 2, 6, 128]))
    def start(self, members: list[bytes], intset: int, entries: int) -> None:
        limits = Limits()
        limits.set_intset, limits.set_entries = intset, entries
        self.set = Set.from_members(members, limits)
        self.model = set(members)

    @rule(members=MANY)
    def update(self, members: list[bytes]) -> None:
        before = len(self.model)
        self.model.update(members)
        assert self.set.update(members) == len(self.model) - before

    @rule(member=MEMBERS)
    def add(self, member: bytes) -> None:
        assert self.set.add(member) == (member not in self.model)
        self.model.add(member)

    @rule(member=MEMBERS)
    def discard(self, member: bytes) -> None:
        assert self.set.discard(member) == (member in self.model)
        self.model.discard(member)

    @precondition(lambda self: self.model)
    @rule(seed=SEEDS, count=st.integers(0, 20))
    def chance(self, seed: int, count: int) -> None:
        rng = Random(seed)
        assert self.set.random(rng) in self.model
        chosen = self.set.choices(rng, count)
        assert len(chosen) == count and set(chosen) <= self.model
        sample = self.set.sample(rng, count)
        assert len(sample) == len(set(sample)) == min(count, len(self.model))
        assert set(sample) <= self.model

    @rule(seed=SEEDS, count=st.integers(0, 6))
    def pop(self, seed: int, count: int) -> None:
        popped = self.set.pop_random(Random(seed), count)
        assert len(popped) == len(set(popped)) == min(count, len(self.model))
        assert set(popped) <= self.model
        self.model -= set(popped)

    @rule(count=st.integers(1, 8))
    def scan(self, count: int) -> None:
        cursor, seen = self.set.scan(0, count)
        while cursor:
            cursor, page = self.set.scan(cursor, count)
            seen += page
        assert len(seen) == len(self.model) and set(seen) == self.model

    @rule(members=MANY, limit=st.integers(0, 4))
    def algebra(self, members: list[bytes], limit: int) -> None:
        other, plain = Set.from_members(members), set(members)
        assert set(Set.union([self.set, other])) == self.model | plain
        assert set(Set.difference(self.set, [other])) == self.model - plain
        common = Set.intersection([self.set, other], limit)
        assert set(common) <= self.model & plain
        whole = len(self.model & plain)
        assert len(common) == (min(limit, whole) if limit else whole)

    @rule()
    def copy(self) -> None:
        twin = self.set.copy()
        self.set.add(b"only here")
        self.set = twin

    @invariant()
    def whole(self) -> None:
        if hasattr(self, "set"):
            self.set._check()
            assert len(self.set) == len(self.model)
            assert set(self.set) == self.model
            assert all(member in self.set for member in self.model)


TestSet = pytest.mark.slow(Machine.TestCase)
TestSet.settings = settings(max_examples=40, stateful_step_count=30)


def step(rng: Random, value: Set, live: Connection) -> None:
    """One random command, done to both."""
    members = []
    for _ in range(rng.choice([1, 1, 1, 2, 5, 40, 130, 140] if rng.random() < 0.95 else [400, 513])):
        kind = rng.random()
        if kind < 0.97 if value.encoding() == b"intset" else kind < 0.5:
            members.append(b"%d" % rng.randrange(-1000, 10**6))
        else:
            members.append(rng.choice([b"a", b"bb", b"c" * 64, b"%x" % rng.randrange(10**5), b"d" * 65]))
    if rng.random() < 0.7 or not len(value):
        assert live.call("SADD", "k", *members).value == value.update(members)
    else:
        gone = list(value)[:: rng.choice([1, 2, 3])]
        assert live.call("SREM", "k", *gone).value == sum([value.discard(member) for member in gone])


@pytest.mark.parametrize("entries", [128, 4])
@pytest.mark.parametrize("seed", range(12))
def test_encoding_and_order_are_the_servers(live: Connection, entries: int, seed: int) -> None:
    rng = Random(seed)
    limits = Limits()
    limits.set_entries = entries
    live.call("CONFIG", "SET", "set-max-listpack-entries", entries)
    try:
        value = Set(limits)
        for _ in range(25):
            step(rng, value, live)
            value._check()
            if not len(value):
                value = Set(limits)
                continue
            assert live.call("OBJECT", "ENCODING", "k").value == value.encoding()
            got = [frame.value for frame in live.call("SMEMBERS", "k").value]
            if value.encoding() == b"hashtable":
                assert sorted(got) == sorted(value)
                live.call("DEL", "k")
                value = Set(limits)
            else:
                assert got == list(value)
    finally:
        live.call("CONFIG", "SET", "set-max-listpack-entries", 128)


def members(rng: Random) -> list[bytes]:
    words = [b"%d" % rng.randrange(20) for _ in range(rng.randrange(1, 16))]
    return words + [b"w%d" % rng.randrange(9) for _ in range(rng.choice([0, 0, 1, 4]))]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_what_is_stored_has_the_servers_encoding(live: Connection, seed: int) -> None:
    rng = Random(seed)
    limits = Limits()
    limits.set_entries, limits.set_intset = rng.choice([(8, 6), (4, 8), (6, 6)])
    live.call("CONFIG", "SET", "set-max-listpack-entries", limits.set_entries)
    live.call("CONFIG", "SET", "set-max-intset-entries", limits.set_intset)
    try:
        for _ in range(60):
            live.call("FLUSHALL")
            sets = []
            for name in "abcd"[: rng.randrange(2, 5)]:
                sets.append(Set(limits))
                drawn = members(rng)
                assert live.call("SADD", name, *drawn).value == sets[-1].update(drawn)
            first, *others = sets
            for word, value in (
                ("SDIFFSTORE", Set.from_difference(first, others, limits)),
                ("SINTERSTORE", Set.from_common(Set.intersection(sets), limits)),
                ("SUNIONSTORE", Set.from_members(Set.union(sets), limits)),
            ):
                value._check()
                assert live.call(word, "r", *"abcd"[: len(sets)]).value == len(value)
                # Of a hash table the server takes integers and words in an order of its own, which may decide.
                mixed = any(member[:1] == b"w" for member in value) and len(value) > limits.set_intset
                if value and not (mixed and any(one.encoding() == b"hashtable" for one in sets)):
                    assert live.call("OBJECT", "ENCODING", "r").value == value.encoding()
                assert sorted(frame.value for frame in live.call("SMEMBERS", "r").value) == sorted(value)
    finally:
        live.call("CONFIG", "SET", "set-max-listpack-entries", 128)
        live.call("CONFIG", "SET", "set-max-intset-entries", 512)
