"""The stream: an append-only log of entries, and the consumer groups that read it.

An id is one integer of 128 bits, milliseconds in the upper half and sequence in the lower; an entry is a tuple of
field, value, field, value. As in the server entries live in *nodes* of limited size, as two things a client can see
follow from them: approximate trimming drops whole nodes only, and XINFO counts them. A deleted entry keeps its room in
its node (a tombstone), and a node goes when its last entry is deleted. `Node` therefore counts the bytes the server
would need.

A group hands entries to consumers and remembers those not yet acknowledged in its PEL, a map from id to `Pending`
ordered by id; each consumer has the part that is its own. A stream knows how many entries were ever added, a group how
many it has read (`UNKNOWN` when that cannot be told), which gives its lag: both follow the server's estimates, not the
truth.

Values know no keys and no time: every instant is an argument. An empty stream is a value like any other.

Invariants: see `Stream._check` and `Group._check`. To add an operation: a method here, and a rule in its stateful test.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from emuredis.values.limits import DEFAULT, Limits
from emuredis.values.list import entry_size

if TYPE_CHECKING:
    from sortedcontainers import SortedDict

__all__ = ["LAST_ID", "SEQ_MAX", "UNKNOWN", "Consumer", "Entry", "Group", "Node", "Pending", "Stream"]

Entry = tuple[int, tuple[bytes, ...]]

SEQ_MAX = (1 << 64) - 1
LAST_ID = (1 << 128) - 1
#: The number of entries a group has read, or the active-time of a consumer, when there is none.
UNKNOWN = -1

_NODE_LIMIT = 1 << 30
_HEADER = 7  # bytes of an empty listpack
_SMALL = 2  # bytes of a flag


def _int_size(number: int) -> int:
    """The bytes a listpack needs for an integer of 64 bits, which wraps round. O(1)."""
    if 0 <= number <= 127:
        return 2
    number = (number + (1 << 63) & SEQ_MAX) - (1 << 63)
    if -4096 <= number <= 4095:
        return 3
    for bits, needed in ((16, 4), (24, 5), (32, 6)):
        if -(1 << bits - 1) <= number < 1 << bits - 1:
            return needed
    return 10


class Node:
    """Entries that are stored together: live ones in ``ids`` and ``entries``, ``dead`` tombstones among them.

    ``key`` is the id of the first entry it ever had, ``last`` that of the last; ``names`` are the fields of the first,
    which the others need not repeat. ``body`` is its size in bytes but for its two counters.
    """

    __slots__ = ("body", "dead", "entries", "ids", "key", "last", "names")

    def __init__(self, key: int, names: tuple[bytes, ...]) -> None:
        self.key = self.last = key
        self.names = names
        self.ids: list[int] = []
        self.entries: list[tuple[bytes, ...]] = []
        self.dead = 0
        self.body = _HEADER + _int_size(len(names)) + sum(map(entry_size, names)) + _SMALL

    def size(self) -> int:
        """The bytes of the whole node."""
        return self.body + _int_size(len(self.ids)) + _int_size(self.dead)

    def add(self, entry_id: int, entry: tuple[bytes, ...], names: tuple[bytes, ...], values: int) -> None:
        """Append an entry whose values need ``values`` bytes. O(fields)."""
        count = len(names)
        same = names == self.names
        needed = values + _SMALL + _int_size((entry_id >> 64) - (self.key >> 64))
        needed += _int_size((entry_id & SEQ_MAX) - (self.key & SEQ_MAX))
        if same:
            needed += _int_size(count + 3)
        else:
            needed += _int_size(count) + sum(map(entry_size, names)) + _int_size(2 * count + 4)
        self.body += needed
        self.last = entry_id
        self.ids.append(entry_id)
        self.entries.append(entry)

    def bury(self, low: int, high: int) -> None:
        """Turn the live entries ``low <= place < high`` into tombstones."""
        del self.ids[low:high], self.entries[low:high]
        self.dead += high - low

    def copy(self) -> Node:
        twin = Node.__new__(Node)
        twin.key, twin.last, twin.names = self.key, self.last, self.names
        twin.dead, twin.body = self.dead, self.body
        twin.ids, twin.entries = self.ids.copy(), self.entries.copy()
        return twin


class Stream:
    """Entries in the order of their ids. Attributes are read by anybody; XSETID and XGROUP set what they name."""

    __slots__ = (
        "_keys", "_nodes", "entries_added", "first_id", "groups", "last_id", "length", "limits", "max_deleted_id",
    )  # fmt: skip

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self.limits = limits
        self._nodes: list[Node] = []
        self._keys: list[int] = []  # those of the nodes
        self.length = 0
        self.entries_added = 0
        self.last_id = 0  # the greatest id ever given
        self.first_id = 0  # that of the first live entry, 0 without entries
        self.max_deleted_id = 0  # the greatest id deleted by XDEL
        self.groups: dict[bytes, Group] = {}

    def encoding(self) -> bytes:
        return b"stream"

    def copy(self) -> Stream:
        """An independent copy. O(n)."""
        twin = Stream(self.limits)
        twin._nodes = [node.copy() for node in self._nodes]
        twin._keys = self._keys.copy()
        twin.length, twin.entries_added = self.length, self.entries_added
        twin.last_id, twin.first_id, twin.max_deleted_id = self.last_id, self.first_id, self.max_deleted_id
        twin.groups = {name: group.copy() for name, group in self.groups.items()}
        return twin

    # -- adding and removing -------------------------------------------------------------------

    def append(self, entry_id: int, entry: tuple[bytes, ...]) -> None:
        """Add an entry; its id must be greater than `last_id`. O(fields)."""
        names = entry[::2]
        limits = self.limits
        node = self._nodes[-1] if self._nodes else None
        if node is not None:
            most = limits.stream_node_bytes
            if most == 0 or most > _NODE_LIMIT:
                most = _NODE_LIMIT
            count = limits.stream_node_entries
            full = count and len(node.ids) + node.dead >= count
            if full or node.size() + sum(map(len, entry)) >= most:
                node = None
        if node is None:
            node = Node(entry_id, names)
            self._nodes.append(node)
            self._keys.append(entry_id)
        node.add(entry_id, entry, names, sum(map(entry_size, entry[1::2])))
        self.length += 1
        self.entries_added += 1
        self.last_id = entry_id
        if self.length == 1:
            self.first_id = entry_id

    def delete(self, entry_id: int) -> bool:
        """Remove an entry; whether it was there. O(log n), and O(nodes) when its node goes with it."""
        at, place = self._find(entry_id)
        if at < 0:
            return False
        node = self._nodes[at]
        if len(node.ids) == 1:
            del self._nodes[at], self._keys[at]
        else:
            node.bury(place, place + 1)
        self.length -= 1
        if entry_id > self.max_deleted_id:
            self.max_deleted_id = entry_id
        if entry_id == self.first_id or not self.length:
            self.first_id = self._first()
        return True

    def trim(self, maxlen: int | None, minid: int, approx: bool = False, limit: int = 0) -> int:
        """Remove the oldest entries beyond ``maxlen``, or without one those below ``minid``; how many were removed.

        ``approx``: whole nodes only. ``limit``: stop before more than so many entries, 0 for no limit. O(removed).
        """
        gone = deleted = 0
        for node in self._nodes:
            count = len(node.ids)
            if (maxlen is not None and self.length <= maxlen) or (limit and deleted + count > limit):
                break
            if self.length - count >= maxlen if maxlen is not None else node.last < minid:
                gone += 1
            elif approx:
                break
            else:
                count = self.length - maxlen if maxlen is not None else bisect_left(node.ids, minid)
                node.bury(0, count)
                self.length -= count
                deleted += count
                break
            self.length -= count
            deleted += count
        del self._nodes[:gone], self._keys[:gone]
        if deleted or not self.length:
            self.first_id = self._first()
        return deleted

    def _first(self) -> int:
        """The id of the first live entry, 0 when there is none."""
        return next((node.ids[0] for node in self._nodes if node.ids), 0)

    def _find(self, entry_id: int) -> tuple[int, int]:
        """Where an entry is: the number of its node and the place in it; a negative number when it is not there."""
        at = bisect_right(self._keys, entry_id) - 1
        if at >= 0:
            ids = self._nodes[at].ids
            place = bisect_left(ids, entry_id)
            if place < len(ids) and ids[place] == entry_id:
                return at, place
        return -1, 0

    # -- reading -------------------------------------------------------------------------------

    def get(self, entry_id: int) -> tuple[bytes, ...] | None:
        """The fields and values of an entry, None when it is not there. O(log n)."""
        at, place = self._find(entry_id)
        return self._nodes[at].entries[place] if at >= 0 else None

    def top_id(self) -> int:
        """The id of the last live entry, 0 when there is none. O(1) but for nodes without live entries."""
        return next((node.ids[-1] for node in reversed(self._nodes) if node.ids), 0)

    def range(self, start: int, end: int, count: int = 0, reverse: bool = False) -> list[Entry]:
        """The entries with ``start <= id <= end``, at most ``count`` of them unless that is 0. O(log n + result)."""
        out: list[Entry] = []
        low = max(bisect_right(self._keys, start) - 1, 0)
        high = bisect_right(self._keys, end)
        for at in reversed(range(low, high)) if reverse else range(low, high):
            node = self._nodes[at]
            first, last = bisect_left(node.ids, start), bisect_right(node.ids, end)
            found = list(zip(node.ids[first:last], node.entries[first:last], strict=True))
            if reverse:
                found.reverse()
            out += found
            if count and len(out) >= count:
                return out[:count]
        return out

    # -- what XINFO and groups are told --------------------------------------------------------

    def node_count(self) -> int:
        return len(self._nodes)

    def node_bytes(self) -> list[int]:
        """The size of each node in bytes."""
        return [node.size() for node in self._nodes]

    def tree_nodes(self) -> int:
        """How many nodes the server's radix tree of node keys has, being fixed by the keys. O(nodes)."""
        return _tree_nodes([key.to_bytes(16, "big") for key in self._keys])

    def has_tombstones_after(self, entry_id: int) -> bool:
        """Whether XDEL may have left gaps from ``entry_id`` on."""
        return bool(self.length) and self.max_deleted_id != 0 and entry_id <= self.max_deleted_id

    def read_counter(self, entry_id: int) -> int:
        """How many entries were added up to ``entry_id``, as far as the server can tell; else `UNKNOWN`. O(1)."""
        added = self.entries_added
        if not added or (not self.length and entry_id <= self.last_id):
            return added
        if entry_id and entry_id < self.max_deleted_id:
            return UNKNOWN
        if entry_id >= self.last_id:
            return added if entry_id == self.last_id else UNKNOWN
        if not self.max_deleted_id or self.max_deleted_id < self.first_id:
            if entry_id < self.first_id:
                return added - self.length
            if entry_id == self.first_id:
                return added - self.length + 1
        return UNKNOWN

    def lag(self, group: Group) -> int | None:
        """How many entries ``group`` has yet to read, None when the server cannot tell. O(1)."""
        if not self.entries_added:
            return 0
        read = group.entries_read
        if read == UNKNOWN or self.has_tombstones_after(group.last_id):
            read = self.read_counter(group.last_id)
        return None if read == UNKNOWN else self.entries_added - read

    # -- as it is stored ------------------------------------------------------------------------

    def stored_nodes(self) -> list[Node]:
        """The nodes in order. O(nodes)."""
        return self._nodes.copy()

    def adopt(self, node: Node) -> None:
        """Append a node as it was stored; `length` and the ids that the stream keeps are the caller's. O(1)."""
        self._nodes.append(node)
        self._keys.append(node.key)

    def settle(self) -> None:
        """Know the first entry, after all nodes were adopted. O(1) but for nodes without live entries."""
        self.first_id = self._first()

    def _check(self) -> None:
        """Every invariant. O(n)."""
        nodes = self._nodes
        assert self._keys == [node.key for node in nodes] == sorted({node.key for node in nodes})
        ids = [entry_id for node in nodes for entry_id in node.ids]
        assert ids == sorted(set(ids))
        assert len(ids) == self.length
        assert self.first_id == (ids[0] if ids else 0)
        assert self.top_id() == (ids[-1] if ids else 0) <= self.last_id
        for node, following in zip(nodes, [*self._keys[1:], LAST_ID + 1], strict=False):
            assert len(node.ids) == len(node.entries)
            assert node.ids or node.dead
            assert all(node.key <= entry_id <= node.last for entry_id in node.ids)
            assert node.last < following
        for group in self.groups.values():
            group._check()


class Pending:
    """An entry that was delivered to ``consumer`` and not acknowledged yet."""

    __slots__ = ("consumer", "count", "time")

    def __init__(self, consumer: Consumer, time: int, count: int = 1) -> None:
        self.consumer = consumer
        self.time = time
        self.count = count


class Consumer:
    """A reader in a group. ``seen``: when it last tried to read, ``active``: when it last got something."""

    __slots__ = ("active", "name", "pel", "seen")

    def __init__(self, name: bytes, now: int) -> None:
        self.name = name
        self.pel = _pel()
        self.seen = now
        self.active = UNKNOWN


class Group:
    """A consumer group: how far it has read, its consumers by name, what they have not acknowledged."""

    __slots__ = ("consumers", "entries_read", "last_id", "pel")

    def __init__(self, last_id: int, entries_read: int = UNKNOWN) -> None:
        self.last_id = last_id
        self.entries_read = entries_read
        self.consumers: dict[bytes, Consumer] = {}
        self.pel = _pel()

    def copy(self) -> Group:
        """An independent copy. O(n log n)."""
        twin = Group(self.last_id, self.entries_read)
        for name, consumer in self.consumers.items():
            other = twin.consumers[name] = Consumer(name, consumer.seen)
            other.active = consumer.active
            other.pel.update((i, Pending(other, p.time, p.count)) for i, p in consumer.pel.items())
            twin.pel.update(other.pel)
        return twin

    def read(self, stream: Stream, entry_id: int) -> None:
        """Note that ``entry_id`` of ``stream`` was delivered for the first time. O(1)."""
        if entry_id <= self.last_id:
            return
        if (self.entries_read != UNKNOWN and self.last_id >= stream.first_id
                and not stream.has_tombstones_after(self.last_id)):  # fmt: skip
            self.entries_read += 1
        elif stream.entries_added:
            self.entries_read = stream.read_counter(entry_id)
        self.last_id = entry_id

    def deliver(self, entry_id: int, consumer: Consumer, now: int) -> None:
        """Have ``entry_id`` pending for ``consumer``, as if it was so for the first time. O(log n)."""
        pending = self.pel.get(entry_id)
        if pending is None:
            self.pel[entry_id] = consumer.pel[entry_id] = Pending(consumer, now)
        else:
            self.hand_over(entry_id, pending, consumer)
            pending.time, pending.count = now, 1

    def hand_over(self, entry_id: int, pending: Pending, consumer: Consumer) -> None:
        """Make ``consumer`` the owner of a pending entry. O(log n)."""
        if pending.consumer is not consumer:
            del pending.consumer.pel[entry_id]
            consumer.pel[entry_id] = pending
            pending.consumer = consumer

    def acknowledge(self, entry_id: int) -> bool:
        """Forget a pending entry; whether there was one. O(log n)."""
        pending = self.pel.pop(entry_id, None)
        if pending is None:
            return False
        del pending.consumer.pel[entry_id]
        return True

    def drop_consumer(self, name: bytes) -> int | None:
        """Remove a consumer and what is pending for it: how much that was, None for no such consumer. O(n log n)."""
        consumer = self.consumers.pop(name, None)
        if consumer is None:
            return None
        for entry_id in consumer.pel:
            del self.pel[entry_id]
        return len(consumer.pel)

    def _check(self) -> None:
        """Every invariant. O(n)."""
        owned: dict[int, Pending] = {}
        for name, consumer in self.consumers.items():
            assert consumer.name == name
            assert all(pending.consumer is consumer for pending in consumer.pel.values())
            owned.update(consumer.pel)
        assert len(owned) == sum(len(consumer.pel) for consumer in self.consumers.values())
        assert list(self.pel) == sorted(owned)
        assert all(self.pel[entry_id] is pending for entry_id, pending in owned.items())


def _pel() -> SortedDict[int, Pending]:
    from sortedcontainers import SortedDict  # not needed before the first group

    return SortedDict()


def _tree_nodes(keys: list[bytes], depth: int = 0) -> int:
    """The nodes of a radix tree whose nodes hold one letter per child, or a run of letters with a single child.

    ``keys``: sorted, distinct, of one length, alike in their first ``depth`` letters. A run stands for what all keys
    have in common from there on; then come a leaf, or a branching and what is below each of its letters. O(n).
    """
    if not keys:
        return 1
    first, last = keys[0], keys[-1]
    if len(keys) == 1:
        return 1 + (depth < len(first))
    common = next(at for at in range(depth, len(first)) if first[at] != last[at])
    count, low = 1 + (depth < common), 0
    for at in range(1, len(keys) + 1):
        if at == len(keys) or keys[at][common] != keys[low][common]:
            count += _tree_nodes(keys[low:at], common + 1)
            low = at
    return count
