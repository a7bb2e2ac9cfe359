"""The stream against plain models: a list of entries, and for a group a dict of what is pending."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from emuredis.values.limits import Limits
from emuredis.values.stream import LAST_ID, UNKNOWN, Consumer, Entry, Group, Stream, _tree_nodes

FIELDS = st.lists(st.sampled_from([b"f", b"g", b"1", b"-5", b"x" * 70, b""]), min_size=1, max_size=3)
STEPS = st.sampled_from([1, 1, 1, 2, 7, 1 << 64, 3 << 64, 1 << 80])
# Places in the history of a stream; what is deleted by then is among them.
PLACES = st.integers(0, 60)
FLAGS = st.booleans()
NAMES = st.sampled_from([b"a", b"b", b"c"])


class Machine(RuleBasedStateMachine):
    """Small nodes, so that trimming meets their ends all the time."""

    @initialize(entries=st.sampled_from([0, 1, 2, 3, 5]), size=st.sampled_from([0, 60, 120, 4096]))
    def start(self, entries: int, size: int) -> None:
        limits = Limits()
        limits.stream_node_entries, limits.stream_node_bytes = entries, size
        self.stream = Stream(limits)
        self.model: list[Entry] = []
        self.given = [0]  # every id there ever was
        self.added = 0
        self.deleted = 0  # the greatest id that was deleted one by one
        self.now = 1000
        self.group = self.stream.groups[b"g"] = Group(0)
        self.pending: dict[int, list[object]] = {}  # consumer, time, count

    def ids(self) -> list[int]:
        return [entry_id for entry_id, _ in self.model]

    def at(self, place: int) -> int:
        return self.given[place % len(self.given)]

    # -- entries --

    @rule(step=STEPS, fields=FIELDS)
    def append(self, step: int, fields: list[bytes]) -> None:
        entry_id = self.stream.last_id + step
        if entry_id > LAST_ID:
            return
        entry = tuple(part for field in fields for part in (field, field * 2))
        self.stream.append(entry_id, entry)
        self.model.append((entry_id, entry))
        self.given.append(entry_id)
        self.added += 1

    @rule(place=PLACES)
    def delete(self, place: int) -> None:
        entry_id = self.at(place)
        assert self.stream.delete(entry_id) == (entry_id in self.ids())
        if entry_id in self.ids():
            self.deleted = max(self.deleted, entry_id)
        self.model = [item for item in self.model if item[0] != entry_id]

    @rule(left=st.integers(0, 20))
    def trim_to_length(self, left: int) -> None:
        gone = max(len(self.model) - left, 0)
        assert self.stream.trim(left, 0) == gone
        del self.model[:gone]

    @rule(place=PLACES, more=st.integers(0, 1))
    def trim_to_id(self, place: int, more: int) -> None:
        minid = self.at(place) + more
        kept = [item for item in self.model if item[0] >= minid]
        assert self.stream.trim(None, minid) == len(self.model) - len(kept)
        self.model = kept

    @rule(left=st.integers(0, 20), place=PLACES, by_length=FLAGS, limit=st.integers(0, 12))
    def trim_roughly(self, left: int, place: int, by_length: bool, limit: int) -> None:
        """Never more than an exact trimming, nor more than the limit, and the oldest first."""
        minid = self.at(place)
        exact = len(self.model) - left if by_length else sum(entry_id < minid for entry_id in self.ids())
        nodes = self.stream.node_count()
        gone = self.stream.trim(left if by_length else None, minid, True, limit)
        assert 0 <= gone <= max(exact, 0)
        assert gone <= limit or not limit
        assert gone == 0 or self.stream.node_count() < nodes
        del self.model[:gone]

    @rule(place=PLACES)
    def look_up(self, place: int) -> None:
        assert self.stream.get(self.at(place)) == dict(self.model).get(self.at(place))

    @rule(first=PLACES, last=PLACES, off=st.integers(-1, 1), count=st.integers(0, 9), reverse=FLAGS)
    def range(self, first: int, last: int, off: int, count: int, reverse: bool) -> None:
        start, end = self.at(first), max(self.at(last) + off, 0)
        expected = [item for item in self.model if start <= item[0] <= end]
        if reverse:
            expected.reverse()
        assert self.stream.range(start, end, count, reverse) == expected[: count or None]

    @rule()
    def copy(self) -> None:
        twin = self.stream.copy()
        twin._check()
        assert twin.range(0, LAST_ID) == self.model
        assert list(twin.groups[b"g"].pel) == sorted(self.pending)
        twin.trim(0, 0)
        twin.groups[b"g"].drop_consumer(b"a")
        self.stream, self.group = self.stream.copy(), self.group
        self.group = self.stream.groups[b"g"]

    # -- the group --

    def consumer(self, name: bytes) -> Consumer:
        return self.group.consumers.setdefault(name, Consumer(name, self.now))

    @rule(name=NAMES, count=st.integers(1, 4))
    def read(self, name: bytes, count: int) -> None:
        self.now += 1
        last_id = self.group.last_id
        found = self.stream.range(last_id + 1, LAST_ID, count)
        assert found == [item for item in self.model if item[0] > last_id][:count]
        for entry_id, _ in found:
            self.group.read(self.stream, entry_id)
            self.group.deliver(entry_id, self.consumer(name), self.now)
            self.pending[entry_id] = [name, self.now, 1]

    @rule(place=PLACES)
    def acknowledge(self, place: int) -> None:
        entry_id = self.at(place)
        assert self.group.acknowledge(entry_id) == (self.pending.pop(entry_id, None) is not None)

    @rule(place=PLACES, name=NAMES)
    def hand_over(self, place: int, name: bytes) -> None:
        entry_id = self.at(place)
        if entry_id in self.pending:
            self.group.hand_over(entry_id, self.group.pel[entry_id], self.consumer(name))
            self.pending[entry_id][0] = name

    @rule(place=PLACES)
    def set_back(self, place: int) -> None:
        """As XGROUP SETID: what follows is delivered again, perhaps to another consumer."""
        self.group.last_id, self.group.entries_read = self.at(place), UNKNOWN

    @rule(name=NAMES)
    def drop(self, name: bytes) -> None:
        known = name in self.group.consumers
        owned = [entry_id for entry_id, (owner, _, _) in self.pending.items() if owner == name]
        assert self.group.drop_consumer(name) == (len(owned) if known else None)
        for entry_id in owned:
            del self.pending[entry_id]

    @invariant()
    def agree(self) -> None:
        if not hasattr(self, "stream"):
            return
        stream, group = self.stream, self.group
        stream._check()
        assert stream.range(0, LAST_ID) == self.model
        assert (stream.length, stream.entries_added) == (len(self.model), self.added)
        assert (stream.last_id, stream.max_deleted_id) == (self.given[-1], self.deleted)
        found = {i: [p.consumer.name, p.time, p.count] for i, p in group.pel.items()}
        assert found == self.pending
        lag = stream.lag(group)
        assert lag is None or 0 <= lag <= self.added
        if lag is not None and not self.deleted:
            assert lag >= sum(entry_id > group.last_id for entry_id in self.ids())


TestStream = pytest.mark.slow(Machine.TestCase)
TestStream.settings = settings(max_examples=40, stateful_step_count=50)


# -- what the server shows of its insides ------------------------------------------------------


def naive_tree_nodes(keys: set[bytes]) -> int:
    """A trie letter by letter, then counted: runs of single children are one node."""
    trie: dict[int, dict] = {}  # type: ignore[type-arg]
    for key in keys:
        node = trie
        for letter in key:
            node = node.setdefault(letter, {})

    def count(node: dict[int, dict]) -> int:  # type: ignore[type-arg]
        run = 0
        while len(node) == 1:
            (node,) = node.values()
            run += 1
        return (run > 0) + 1 + sum(map(count, node.values()))

    return count(trie)


@given(st.sets(st.binary(min_size=4, max_size=4) | st.text("ab", min_size=4, max_size=4).map(str.encode)))
def test_the_radix_tree_is_counted_as_a_trie_with_runs(keys: set[bytes]) -> None:
    assert _tree_nodes(sorted(keys)) == naive_tree_nodes(keys)


def test_the_tree_of_one_stream() -> None:
    assert Stream().tree_nodes() == 1  # the server's tree has a root even when empty
    stream = Stream()
    for number in range(1, 350):
        stream.append(number << 64, (b"f", b"v"))
    assert (stream.node_count(), stream.tree_nodes()) == (4, 11)


def test_a_node_holds_what_fits_into_its_bytes() -> None:
    stream = Stream()
    for number in range(1, 11):
        stream.append(number << 64, (b"f", b"v" * 1000))
    assert stream.node_count() == 3
    stream = Stream()
    for number in range(1, 101):
        stream.append(number << 64, (b"f", b"v"))
    assert stream.node_count() == 1


@pytest.mark.slow
def test_trimming_a_long_stream_touches_what_it_removes() -> None:
    """10,000 entries kept while as many go: quadratic work would not end."""
    stream, rng = Stream(), Random(1)
    for number in range(1, 20_001):
        stream.append(number << 64 | rng.randrange(9), (b"field", b"%d" % number))
        stream.trim(10_000, 0)
    assert stream.length == 10_000
    stream._check()
