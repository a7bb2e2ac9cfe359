"""The list against a Python list, and its nodes and encoding against the live server."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from emuredis.values.limits import Limits
from emuredis.values.list import List, entry_size
from tests.support.live import Connection

ELEMENTS = (
    st.integers(0, 9).map(lambda n: b"%d" % n)
    | st.sampled_from([b"", b"a", b"b" * 63, b"c" * 64, b"d" * 700, b"e" * 5000, b"f" * 8190, b"g" * 9000])
    | st.integers(-(1 << 63), (1 << 63) - 1).map(lambda n: b"%d" % n)
)
MANY = st.lists(ELEMENTS, max_size=12)
INDEXES = st.integers(-40, 40)


class Machine(RuleBasedStateMachine):
    """Nodes of a few elements or of 4 or 8 kB, so that they come and go all the time."""

    @initialize(size=st.sampled_from([-2, -1, 0, 1, 2, 5, 128]), elements=MANY)
    def start(self, size: int, elements: list[bytes]) -> None:
        limits = Limits()
        limits.list_size = size
        self.list = List.from_elements(elements, limits)
        self.model = list(elements)

    @rule(elements=MANY, left=st.booleans())
    def extend(self, elements: list[bytes], left: bool) -> None:
        if left:
            self.list.extend_left(elements)
            self.model[:0] = elements[::-1]
        else:
            self.list.extend_right(elements)
            self.model += elements

    @rule(element=ELEMENTS, left=st.booleans())
    def push(self, element: bytes, left: bool) -> None:
        if left:
            self.list.push_left(element)
            self.model.insert(0, element)
        else:
            self.list.push_right(element)
            self.model.append(element)

    @precondition(lambda self: self.model)
    @rule(left=st.booleans())
    def pop(self, left: bool) -> None:
        assert (self.list.pop_left() if left else self.list.pop_right()) == self.model.pop(0 if left else -1)

    @precondition(lambda self: self.model)
    @rule(from_left=st.booleans(), to_left=st.booleans())
    def rotate(self, from_left: bool, to_left: bool) -> None:
        moved = self.model.pop(0 if from_left else -1)
        assert self.list.rotate(from_left, to_left) == moved
        self.model.insert(0 if to_left else len(self.model), moved)

    @rule(left=st.booleans(), count=st.integers(0, 9))
    def pop_many(self, left: bool, count: int) -> None:
        if left:
            assert self.list.pop_left_many(count) == self.model[:count]
            del self.model[:count]
        else:
            kept = max(len(self.model) - count, 0)
            assert self.list.pop_right_many(count) == self.model[kept:][::-1]
            del self.model[kept:]

    @rule(index=INDEXES)
    def get(self, index: int) -> None:
        inside = -len(self.model) <= index < len(self.model)
        assert self.list.get(index) == (self.model[index] if inside else None)

    @rule(index=INDEXES, element=ELEMENTS)
    def set(self, index: int, element: bytes) -> None:
        inside = -len(self.model) <= index < len(self.model)
        assert self.list.set(index, element) == inside
        if inside:
            self.model[index] = element

    @rule(start=INDEXES, stop=INDEXES)
    def slice(self, start: int, stop: int) -> None:
        assert self.list.slice(start, stop) == self.model[max(start, 0) : max(stop, 0)]

    @rule(start=INDEXES, stop=INDEXES)
    def delete(self, start: int, stop: int) -> None:
        self.list.delete(start, stop)
        del self.model[max(start, 0) : max(stop, 0)]

    @rule(start=INDEXES, stop=INDEXES)
    def trim(self, start: int, stop: int) -> None:
        self.list.trim(start, stop)
        self.model = self.model[max(start, 0) : max(stop, 0)]

    @rule(pivot=ELEMENTS, element=ELEMENTS, before=st.booleans())
    def insert(self, pivot: bytes, element: bytes, before: bool) -> None:
        expected = -1
        if pivot in self.model:
            at = self.model.index(pivot)
            self.model.insert(at if before else at + 1, element)
            expected = len(self.model)
        assert self.list.insert(pivot, element, before) == expected

    @rule(element=ELEMENTS, count=st.integers(-3, 3))
    def remove(self, element: bytes, count: int) -> None:
        places = [at for at, other in enumerate(self.model) if other == element]
        gone = places[:count] if count > 0 else places[count:] if count < 0 else places
        assert self.list.remove(element, count) == len(gone)
        for at in reversed(gone):
            del self.model[at]

    @rule(
        element=ELEMENTS,
        rank=st.integers(-3, 3).filter(bool),
        count=st.integers(0, 3),
        maxlen=st.integers(0, 20),
    )
    def positions(self, element: bytes, rank: int, count: int, maxlen: int) -> None:
        size = len(self.model)
        order = range(size) if rank > 0 else range(size - 1, -1, -1)
        looked_at = list(order)[: maxlen or size]
        found = [at for at in looked_at if self.model[at] == element][abs(rank) - 1 :]
        assert self.list.positions(element, rank, count, maxlen) == (found[:count] if count else found)

    @rule()
    def copy(self) -> None:
        twin = self.list.copy()
        self.list.push_left(b"only here")
        self.list = twin

    @invariant()
    def whole(self) -> None:
        if hasattr(self, "list"):
            self.list._check()
            assert len(self.list) == len(self.model)
            assert list(self.list) == self.model
            assert list(reversed(self.list)) == self.model[::-1]


TestList = pytest.mark.slow(Machine.TestCase)
TestList.settings = settings(max_examples=40, stateful_step_count=30)

SIZES = (0, 1, 3, 30, 63, 64, 100, 126, 127, 800, 2000, 4095, 4096, 8100, 8180, 8185, 8192, 8193, 9000)


def element(rng: Random) -> bytes:
    kind = rng.random()
    if kind < 0.3:
        return b"%d" % rng.randrange(-(1 << rng.randrange(1, 64)), 1 << rng.randrange(1, 64))
    if kind < 0.5:
        return rng.choice([b"a", b"b", b"c"])
    return rng.choice([b"x", b"y"]) * rng.choice(SIZES[:9] if kind < 0.9 else SIZES)


def step(rng: Random, value: List, live: Connection) -> None:
    """One random command, done to both."""
    choice = rng.randrange(13)
    size = len(value)
    if choice < 4 or not size:
        elements = [element(rng) for _ in range(rng.choice([1, 1, 2, 40, 200]))]
        if choice % 2:
            live.call("LPUSH", "k", *elements)
            value.extend_left(elements)
        else:
            live.call("RPUSH", "k", *elements)
            value.extend_right(elements)
    elif choice < 6:
        for _ in range(rng.randrange(1, 30)):
            if not len(value):
                break
            if choice % 2:
                assert live.call("LPOP", "k").value == value.pop_left()
            else:
                assert live.call("RPOP", "k").value == value.pop_right()
    elif choice == 6:
        count = rng.randrange(1, size + 2)
        live.call("LPOP", "k", count)
        value.pop_left_many(count)
    elif choice == 7:
        start = rng.randrange(size)
        stop = rng.randrange(start, size) if rng.random() < 0.3 else size - 1
        live.call("LTRIM", "k", start, stop)
        value.trim(start, stop + 1)
    elif choice == 8:
        index, new = rng.randrange(size), element(rng)
        assert live.call("LSET", "k", index, new).value == b"OK"
        value.set(index, new)
    elif choice < 11:
        pivot, new, before = rng.choice(value.slice(0, size)), element(rng), rng.random() < 0.5
        expected = value.insert(pivot, new, before)
        assert live.call("LINSERT", "k", "BEFORE" if before else "AFTER", pivot, new).value == expected
    elif choice == 11:
        ends = [rng.random() < 0.5, rng.random() < 0.5]
        words = ["LEFT" if end else "RIGHT" for end in ends]
        assert live.call("LMOVE", "k", "k", *words).value == value.rotate(*ends)
    else:
        gone, count = rng.choice(value.slice(0, size)), rng.randrange(-3, 4)
        assert live.call("LREM", "k", count, gone).value == value.remove(gone, count)


@pytest.mark.slow
@pytest.mark.parametrize("list_size", [-2, -1, 7, 1])
@pytest.mark.parametrize("seed", range(3))
def test_nodes_are_the_servers(live: Connection, list_size: int, seed: int) -> None:
    rng = Random(seed)
    limits = Limits()
    limits.list_size = list_size
    live.call("CONFIG", "SET", "list-max-listpack-size", list_size)
    try:
        value = List(limits)
        for _ in range(120):
            step(rng, value, live)
            value._check()
            if not len(value):
                value = List(limits)
                continue
            assert live.call("LRANGE", "k", 0, -1).raw == b"*%d\r\n" % len(value) + b"".join(
                b"$%d\r\n%b\r\n" % (len(one), one) for one in value
            )
            assert live.call("OBJECT", "ENCODING", "k").value == value.encoding()
            if value.encoding() == b"quicklist":
                about = live.call("DEBUG", "OBJECT", "k").value
                assert b"ql_nodes:%d " % value.node_count() in about
                assert about.endswith(b"ql_uncompressed_size:%d" % sum(map(abs, value._sizes)))
    finally:
        live.call("CONFIG", "SET", "list-max-listpack-size", -2)


def test_entry_sizes_are_the_servers(live: Connection) -> None:
    numbers = [sign * (1 << bits) + more for bits in range(64) for sign in (1, -1) for more in (-1, 0, 1)]
    texts = [b"%d" % n for n in numbers] + [b"x" * size for size in (*SIZES, 62, 125, 128, 4090, 8191)]
    texts += [b"-", b"01", b"-0", b"+1", b"1 "]
    for text in texts:
        if len(text) > 8192:
            continue
        live.call("DEL", "k")
        live.call("RPUSH", "k", *[b"x" * 4096] * 2)  # a quicklist tells its sizes
        live.call("RPUSH", "k", b"y" * 8000, text)
        two, mine = entry_size(b"x" * 4096), entry_size(text)
        total = 7 * 3 + 2 * two + entry_size(b"y" * 8000) + mine
        about = live.call("DEBUG", "OBJECT", "k").value
        assert about.endswith(
            (b"ql_uncompressed_size:%d" % total, b"ql_uncompressed_size:%d" % (total + 7))
        ), text
