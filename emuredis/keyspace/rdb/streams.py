"""Streams to RDB and back: nodes as listpacks, what the stream knows of itself, then the groups.

The listpack of a node begins with its *header*: how many entries live in it, how many are deleted, the fields of the
first entry and a zero. Each entry then has its flags, its id as two differences to that of the node, its fields (their
number and names, too, unless they are those of the header) and the number of the items it has, to be read backwards.

A `Node` keeps of deleted entries their number and their bytes, not their contents, so they are written as what takes
the same room. An empty stream has no node.

In PELs the owner of an entry follows from where it is listed: once for the group, with its time and count, then
once for the consumer.
"""

from __future__ import annotations

from collections.abc import Callable

from emuredis.keyspace.rdb.codec import U64_MAX, RdbError, Reader, Writer
from emuredis.keyspace.rdb.packed import entry, integer_entry, pack, read_listpack
from emuredis.scalars import parse_int
from emuredis.values.limits import Limits
from emuredis.values.list import entry_size
from emuredis.values.stream import SEQ_MAX, UNKNOWN, Consumer, Group, Node, Pending, Stream

__all__ = ["reader", "write_stream"]

_DELETED, _SAME_FIELDS = 1, 2
_ID = 16  # bytes
_HALF = 1 << 63
_LEAST = 2  # bytes of an item that is empty
_EMPTY = 7  # bytes of a listpack without items


# -- writing -----------------------------------------------------------------------------------


def write_stream(out: Writer, stream: Stream) -> None:
    nodes = stream.stored_nodes()
    out.length(len(nodes))
    for node in nodes:
        out.string(node.key.to_bytes(_ID, "big"))
        out.string(_pack_node(node))
    out.length(stream.length)
    for entry_id in (stream.last_id, stream.first_id, stream.max_deleted_id):
        _write_id(out, entry_id)
    out.length(stream.entries_added)
    out.length(len(stream.groups))
    for name in sorted(stream.groups):
        _write_group(out, name, stream.groups[name])


def _write_id(out: Writer, entry_id: int) -> None:
    out.length(entry_id >> 64)
    out.length(entry_id & SEQ_MAX)


def _write_group(out: Writer, name: bytes, group: Group) -> None:
    out.string(name)
    _write_id(out, group.last_id)
    out.length(group.entries_read & U64_MAX)
    out.length(len(group.pel))
    for entry_id, pending in group.pel.items():
        out.raw(entry_id.to_bytes(_ID, "big"))
        out.instant(pending.time)
        out.length(pending.count)
    out.length(len(group.consumers))
    for one in sorted(group.consumers):
        consumer = group.consumers[one]
        out.string(one)
        out.instant(consumer.seen)
        out.instant(consumer.active)
        out.length(len(consumer.pel))
        for entry_id in consumer.pel:
            out.raw(entry_id.to_bytes(_ID, "big"))


def _pack_node(node: Node) -> bytes:
    names = node.names
    header = [len(node.ids), node.dead, len(names)]
    items = [*map(integer_entry, header), *map(entry, names), integer_entry(0)]
    live: list[bytes] = []
    for entry_id, fields in zip(node.ids, node.entries, strict=True):
        live += _entry_items(node, entry_id, fields)
    if node.dead:
        _write_tombstones(node, items, live)
    items += live
    return pack(items, len(items))


def _entry_items(node: Node, entry_id: int, fields: tuple[bytes, ...]) -> list[bytes]:
    names = fields[::2]
    same = names == node.names
    items = [integer_entry(_SAME_FIELDS if same else 0), *_differences(node, entry_id)]
    if not same:
        items.append(integer_entry(len(names)))
    items += map(entry, fields[1::2] if same else fields)
    items.append(integer_entry(len(items)))
    return items


def _differences(node: Node, entry_id: int) -> list[bytes]:
    """The id of an entry as milliseconds and sequence beyond those of its node, which wrap round."""
    ms = (entry_id >> 64) - (node.key >> 64)
    sequence = (entry_id & SEQ_MAX) - (node.key & SEQ_MAX)
    return [integer_entry((number + _HALF & U64_MAX) - _HALF) for number in (ms, sequence)]


def _write_tombstones(node: Node, before: list[bytes], after: list[bytes]) -> None:
    """Put as many deleted entries as there were around the live ones, of the room they had.

    The last id of the node may be that of a deleted one; the others are given the id of the node.
    """
    behind = not node.ids or node.ids[-1] != node.last
    ids = [node.key] * (node.dead - behind) + [node.last] * behind
    bare = [_tombstone(node, entry_id, 0) for entry_id in ids]
    room = node.size() - _EMPTY - sum(len(item) for items in (before, after, *bare) for item in items)
    if room > 0 and node.names:
        bare[0] = _tombstone(node, ids[0], room)
    for at, items in enumerate(bare):
        (after if behind and at == len(bare) - 1 else before).extend(items)


def _tombstone(node: Node, entry_id: int, room: int) -> list[bytes]:
    """A deleted entry without contents, made longer by about ``room`` bytes."""
    values = [entry(b"")] * len(node.names)
    if room:
        values[0] = _filler(room + _LEAST)
    items = [integer_entry(_DELETED | _SAME_FIELDS), *_differences(node, entry_id), *values]
    items.append(integer_entry(len(items)))
    return items


def _filler(size: int) -> bytes:
    """An item of ``size`` bytes, or of one less where there is none of that size."""
    text = max(size - 12, 0)
    while entry_size(b"x" * (text + 1)) <= size:
        text += 1
    return entry(b"x" * text)


# -- reading -----------------------------------------------------------------------------------


def reader(version: int) -> Callable[[Reader, Limits], Stream]:
    """What reads a stream: the second version has counters that the first lacks, the third active-times."""

    def read(source: Reader, limits: Limits) -> Stream:
        stream = Stream(limits)
        last = -1
        for _ in range(source.length()):
            node = _read_node(source)
            if node.key <= last:
                raise RdbError("the nodes of a stream are not in order")
            stream.adopt(node)
            last = node.last
        stream.length = source.length()
        stream.last_id = _read_id(source)
        if version == 1:
            stream.entries_added = stream.length
        else:
            _read_id(source)  # the first id, which the entries tell
            stream.max_deleted_id = _read_id(source)
            stream.entries_added = source.length()
        stream.settle()
        if stream.length != sum(len(node.ids) for node in stream.stored_nodes()):
            raise RdbError("a stream has another number of entries than it says")
        if stream.top_id() > stream.last_id:
            raise RdbError("the last id of a stream is less than one of its entries has")
        for _ in range(source.length()):
            _read_group(source, stream, version)
        return stream

    return read


def _read_id(source: Reader) -> int:
    ms = source.length()
    return ms << 64 | source.length()


def _read_node(source: Reader) -> Node:
    key, data = source.string(), source.string()
    if len(key) != _ID:
        raise RdbError("the key of a node of a stream is no id")
    items = _Items(read_listpack(data))
    live, dead = items.integer(), items.integer()
    node = Node(int.from_bytes(key, "big"), tuple(items.some(items.integer())))
    if items.integer() != 0:
        raise RdbError("the fields of a node of a stream do not end with a zero")
    for _ in range(live + dead):
        _read_entry(items, node)
    if len(node.ids) != live or items.left() or not live + dead or node.ids != sorted(set(node.ids)):
        raise RdbError("a node of a stream has other entries than it says")
    node.body += len(data) - node.size()  # the room of all, whatever is in it
    return node


def _read_entry(items: _Items, node: Node) -> None:
    before = items.left()
    flags, ms, sequence = items.integer(), items.integer(), items.integer()
    entry_id = ((node.key >> 64) + ms & SEQ_MAX) << 64 | (node.key & SEQ_MAX) + sequence & SEQ_MAX
    if flags & _SAME_FIELDS:
        values = items.some(len(node.names))
        fields = tuple([text for pair in zip(node.names, values, strict=True) for text in pair])
    else:
        fields = tuple(items.some(2 * items.integer()))
    if before - items.left() != items.integer() or entry_id < node.key:
        raise RdbError("an entry of a stream is damaged")
    node.last = max(node.last, entry_id)
    if flags & _DELETED:
        node.dead += 1
    else:
        node.ids.append(entry_id)
        node.entries.append(fields)


class _Items:
    """The items of a listpack, one after the other."""

    __slots__ = ("at", "items")

    def __init__(self, items: list[bytes]) -> None:
        self.items = items
        self.at = 0

    def left(self) -> int:
        return len(self.items) - self.at

    def integer(self) -> int:
        number = parse_int(self.some(1)[0])
        if number is None:
            raise RdbError("there is a text in a stream where there should be a number")
        return number

    def some(self, count: int) -> list[bytes]:
        if not 0 <= count <= self.left():
            raise RdbError("a node of a stream is too short")
        self.at += count
        return self.items[self.at - count : self.at]


def _read_group(source: Reader, stream: Stream, version: int) -> None:
    name = source.string()
    last_id = _read_id(source)
    read = source.length() if version > 1 else stream.read_counter(last_id) & U64_MAX
    group = Group(last_id, UNKNOWN if read == U64_MAX else read)
    if name in stream.groups:
        raise RdbError("a group is there twice")
    stream.groups[name] = group
    waiting: dict[int, tuple[int, int]] = {}
    for _ in range(source.length()):
        entry_id = int.from_bytes(source.raw(_ID), "big")
        if entry_id in waiting:
            raise RdbError("an entry is pending twice")
        waiting[entry_id] = source.instant(), source.length()
    for _ in range(source.length()):
        _read_consumer(source, group, version, waiting)
    if waiting:
        raise RdbError("an entry is pending for nobody")


def _read_consumer(source: Reader, group: Group, version: int, waiting: dict[int, tuple[int, int]]) -> None:
    """A consumer of ``group``, and which of the pending entries are its own: those are no longer ``waiting``."""
    name = source.string()
    if name in group.consumers:
        raise RdbError("a consumer is there twice")
    consumer = group.consumers[name] = Consumer(name, source.instant())
    consumer.active = source.instant() if version == 3 else consumer.seen
    for _ in range(source.length()):
        entry_id = int.from_bytes(source.raw(_ID), "big")
        if entry_id not in waiting:
            raise RdbError("a consumer has an entry that is not pending, or another's")
        time, count = waiting.pop(entry_id)
        group.pel[entry_id] = consumer.pel[entry_id] = Pending(consumer, time, count)
