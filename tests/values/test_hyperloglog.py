"""The sketch against a plain list of registers, and its bytes against the live server."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from emuredis.values.hyperloglog import (
    EMPTY,
    REGISTERS,
    Corrupted,
    Sketch,
    estimate,
    highest,
    is_sketch,
    locate,
)
from emuredis.values.limits import Limits
from tests.support.live import Connection

# A few registers close together, where runs are split and joined, and any others.
PLACES = st.integers(0, 12) | st.integers(0, REGISTERS - 1) | st.just(REGISTERS - 1)
VALUES = st.integers(1, 3) | st.integers(1, 51)
SETTINGS = st.lists(st.tuples(PLACES, VALUES), max_size=30)


class Machine(RuleBasedStateMachine):
    @initialize(size=st.sampled_from([0, 18, 25, 60, 3000]))
    def start(self, size: int) -> None:
        limits = Limits()
        limits.hll_sparse_bytes = size
        self.sketch = Sketch(limits=limits)
        self.model = [0] * REGISTERS

    @rule(changes=SETTINGS)
    def raise_some(self, changes: list[tuple[int, int]]) -> None:
        for index, value in changes:
            assert self.sketch.raise_to(index, value) == (value > self.model[index])
            self.model[index] = max(self.model[index], value)

    @rule(changes=SETTINGS)
    def merge(self, changes: list[tuple[int, int]]) -> None:
        other = Sketch(limits=self.sketch.limits)
        for index, value in changes:
            other.raise_to(index, value)
            self.model[index] = max(self.model[index], value)
        self.sketch.merge(highest([self.sketch, other]))

    @rule()
    def make_dense(self) -> None:
        self.sketch.make_dense()
        assert self.sketch.dense

    @rule()
    def cache(self) -> None:
        number = estimate(self.sketch.raw())
        self.sketch.cache(number)
        assert self.sketch.cached() == number
        self.sketch.outdate()
        assert self.sketch.cached() is None

    @invariant()
    def whole(self) -> None:
        if hasattr(self, "sketch"):
            self.sketch._check()
            assert self.sketch.raw() == bytes(self.model)


TestSketch = pytest.mark.slow(Machine.TestCase)
TestSketch.settings = settings(max_examples=25, stateful_step_count=25)


@pytest.mark.parametrize("size", [1, 10, 100, 1000, 10_000, 100_000])
def test_the_estimate_is_near_the_truth(size: int) -> None:
    sketch = Sketch()
    for number in range(size):
        sketch.add(b"%d" % number)
    assert abs(estimate(sketch.raw()) - size) <= 0.03 * size


def test_runs_that_do_not_add_up() -> None:
    for runs in (b"", b"\x7f\xfe", b"\x7f\xff\x00", b"\x7f"):
        sketch = Sketch(EMPTY[:16] + runs)
        assert is_sketch(bytes(sketch.data))
        with pytest.raises(Corrupted):
            sketch.raw()
        with pytest.raises(Corrupted):
            sketch.make_dense()
    with pytest.raises(Corrupted):
        Sketch(EMPTY[:16] + b"\x7f\xfe").raise_to(REGISTERS - 1, 1)


def test_what_is_no_sketch() -> None:
    assert is_sketch(EMPTY)
    assert not is_sketch(b"")
    assert not is_sketch(EMPTY[:15])
    assert not is_sketch(b"hyll" + EMPTY[4:])
    assert not is_sketch(b"HYLL\x02" + EMPTY[5:])
    assert not is_sketch(b"HYLL\x00" + EMPTY[5:])


@pytest.mark.parametrize("size", [0, 60, 400, 3000, 15_000])
@pytest.mark.parametrize("spread", [30, 600, 100_000])
def test_the_bytes_are_the_servers(size: int, spread: int, live: Connection) -> None:
    """Elements added one by one in a random order, then the union of two."""
    live.call("CONFIG", "SET", "hll-sparse-max-bytes", size)
    try:
        rng = Random(size + spread)
        limits = Limits()
        limits.hll_sparse_bytes = size
        sketches = []
        for key in ("one", "two"):
            sketch = Sketch(limits=limits)
            elements = [b"%d" % rng.randrange(spread) for _ in range(700)]
            live.call("PFADD", key, *elements)
            for element in elements:
                sketch.add(element)
            sketch.outdate()
            assert live.call("GET", key).value == bytes(sketch.data)
            sketches.append(sketch)
        live.call("PFMERGE", "two", "one")
        if sketches[0].dense:
            sketches[1].make_dense()
        sketches[1].merge(highest(sketches))
        sketches[1].outdate()
        assert live.call("GET", "two").value == bytes(sketches[1].data)
        assert live.call("PFCOUNT", "two").value == estimate(sketches[1].raw())
    finally:
        live.call("CONFIG", "SET", "hll-sparse-max-bytes", 3000)


def test_elements_of_every_length_fall_where_the_server_puts_them(live: Connection) -> None:
    for length in range(40):
        element = bytes(range(200, 200 + length))
        live.call("DEL", "k")
        live.call("PFADD", "k", element)
        index, value = locate(element)
        registers = [item.value for item in live.call("PFDEBUG", "GETREG", "k").value]
        assert (registers.index(value), sum(registers)) == (index, value)
