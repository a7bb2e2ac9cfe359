"""The hash against plain dicts, and its encoding against the live server."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from emuredis.values import hash as module
from emuredis.values.hash import Hash
from emuredis.values.limits import Limits
from tests.support.live import Connection

FIELDS = st.integers(0, 12).map(lambda n: b"f%d" % n) | st.just(b"x" * 65)
VALUES = st.integers(0, 5).map(lambda n: b"%d" % n) | st.sampled_from([b"", b"v" * 64, b"v" * 65])
PAIRS = st.lists(st.tuples(FIELDS, VALUES), max_size=10)


class Machine(RuleBasedStateMachine):
    @initialize(pairs=PAIRS, entries=st.sampled_from([0, 4, 512]))
    def start(self, pairs: list[tuple[bytes, bytes]], entries: int) -> None:
        limits = Limits()
        limits.hash_entries = entries
        self.hash = Hash.from_items(pairs, limits)
        self.model = dict(pairs)
        self.deadlines: dict[bytes, int] = {}

    @rule(pairs=PAIRS)
    def update(self, pairs: list[tuple[bytes, bytes]]) -> None:
        before = len(self.model)
        self.model.update(pairs)
        for field, _ in pairs:
            self.deadlines.pop(field, None)
        assert self.hash.update([part for pair in pairs for part in pair]) == len(self.model) - before

    @rule(field=FIELDS, value=VALUES, keep=st.booleans())
    def set(self, field: bytes, value: bytes, keep: bool) -> None:
        put = self.hash.replace if keep else self.hash.set
        assert put(field, value) == (field not in self.model)
        self.model[field] = value
        if not keep:
            self.deadlines.pop(field, None)

    @rule(field=FIELDS)
    def discard(self, field: bytes) -> None:
        assert self.hash.discard(field) == (self.model.pop(field, None) is not None)
        self.deadlines.pop(field, None)

    @rule(field=FIELDS, at=st.integers(0, 30))
    def set_deadline(self, field: bytes, at: int) -> None:
        if field in self.model:
            self.hash.set_deadline(field, at)
            self.deadlines[field] = at

    @rule(field=FIELDS)
    def persist(self, field: bytes) -> None:
        assert self.hash.persist(field) == (self.deadlines.pop(field, None) is not None)

    @rule(now=st.integers(0, 30))
    def expire(self, now: int) -> None:
        due = sorted((at, field) for field, at in self.deadlines.items() if at <= now)
        assert self.hash.expire(now) == [field for _, field in due]
        for _, field in due:
            del self.model[field], self.deadlines[field]

    @precondition(lambda self: self.model)
    @rule(seed=st.integers(0, 99), count=st.integers(0, 20))
    def chance(self, seed: int, count: int) -> None:
        rng = Random(seed)
        assert self.hash.random(rng) in self.model
        chosen = self.hash.choices(rng, count)
        assert len(chosen) == count and set(chosen) <= self.model.keys()
        sample = self.hash.sample(rng, count)
        assert len(sample) == len(set(sample)) == min(count, len(self.model))

    @rule(count=st.integers(1, 8))
    def scan(self, count: int) -> None:
        cursor, seen = self.hash.scan(0, count)
        while cursor:
            cursor, page = self.hash.scan(cursor, count)
            seen += page
        assert sorted(seen) == sorted(self.model)

    @rule()
    def copy(self) -> None:
        twin = self.hash.copy()
        self.hash.set(b"only here", b"")
        self.hash = twin

    @invariant()
    def whole(self) -> None:
        if not hasattr(self, "hash"):
            return
        self.hash._check()
        assert self.hash.fields == self.model
        assert list(self.hash.fields) == list(self.model)
        assert (self.hash.deadlines or {}) == self.deadlines
        assert self.hash.next_deadline() == min(self.deadlines.values(), default=None)
        assert self.hash.flat() == [part for pair in self.model.items() for part in pair]
        assert all(self.hash.get(field) == value for field, value in self.model.items())
        assert all(self.hash.deadline(field) == self.deadlines.get(field) for field in self.model)


TestHash = pytest.mark.slow(Machine.TestCase)
TestHash.settings = settings(max_examples=40, stateful_step_count=30)


@pytest.mark.parametrize("seed", range(12))
def test_encoding_and_order_are_the_servers(live: Connection, seed: int) -> None:
    rng = Random(seed)
    value = Hash()
    for _ in range(25):
        flat = []
        for _ in range(rng.choice([1, 2, 5, 60, 300, 513] if rng.random() < 0.2 else [1, 2, 5])):
            flat += [b"%d" % rng.randrange(700), rng.choice([b"a", b"1", b"x" * 64, b"x" * 30])]
        if rng.random() < 0.1:
            flat[rng.randrange(len(flat))] = b"y" * 65
        if rng.random() < 0.75 or not len(value):
            assert live.call("HSET", "k", *flat).value == value.update(flat)
        elif rng.random() < 0.2:
            field = next(iter(value.fields))
            live.call("HPEXPIREAT", "k", 9 * 10**12, "FIELDS", 1, field)
            value.set_deadline(field, 9 * 10**12)
        else:
            gone = list(value.fields)[:: rng.choice([1, 2, 3])]
            assert live.call("HDEL", "k", *gone).value == sum([value.discard(field) for field in gone])
        value._check()
        if not len(value):
            value = Hash()
            continue
        assert live.call("OBJECT", "ENCODING", "k").value == value.encoding()
        got = [frame.value for frame in live.call("HGETALL", "k").value]
        if value.encoding() == b"hashtable":
            assert dict(zip(got[::2], got[1::2], strict=True)) == value.fields
            live.call("DEL", "k")
            value = Hash()
        else:
            assert got == value.flat()


def test_field_names_are_shared_and_the_table_of_them_is_bounded() -> None:
    one, two = Hash(), Hash()
    one.set(bytes([1, 2, 3]), b"")
    two.set(bytes(bytearray([1, 2, 3])), b"")
    assert next(iter(one.fields)) is next(iter(two.fields))
    many = Hash()
    for number in range(module._INTERN_NAMES + 10):
        many.set(b"%d" % number, b"")
    assert len(module._names) <= module._INTERN_NAMES
