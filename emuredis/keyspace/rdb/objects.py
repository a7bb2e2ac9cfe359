"""Values to RDB and back: which of the formats a value is written in, and all those it may be read from.

A value is written as the server writes it, so its encoding comes back with it: `TYPE_OF` has the number of the
format, `write_value` writes what follows. What is read gets the encoding that the server gives it, which follows from
the format and, where there are too many elements, from the limits. Formats with numbers of their own for older
encodings (ziplist, zipmap, lists of strings, sorted sets with printed scores) are read only; streams have
`emuredis.keyspace.rdb.streams`.

To add a format: its number, a function that reads it and its row in `_READERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from emuredis.keyspace.rdb import packed, streams
from emuredis.keyspace.rdb.codec import RdbError, Reader, Writer
from emuredis.scalars import format_double, parse_float
from emuredis.values.hash import Hash
from emuredis.values.limits import Limits
from emuredis.values.list import List
from emuredis.values.set import Set
from emuredis.values.stream import Stream
from emuredis.values.zset import ZSet

__all__ = ["EmptyValue", "read_value", "type_of", "write_value"]

STRING, LIST, SET, ZSET, HASH, ZSET_2 = 0, 1, 2, 3, 4, 5
HASH_ZIPMAP, LIST_ZIPLIST, SET_INTSET, ZSET_ZIPLIST, HASH_ZIPLIST, LIST_QUICKLIST = 9, 10, 11, 12, 13, 14
STREAM_1, HASH_LISTPACK, ZSET_LISTPACK, LIST_QUICKLIST_2, STREAM_2 = 15, 16, 17, 18, 19
SET_LISTPACK, STREAM_3, HASH_2 = 20, 21, 22
#: Formats from here on may mean something else in files of other servers.
FIRST_OF_OURS = HASH_2

_T = TypeVar("_T")

_PLAIN, _PACKED = 1, 2  # the two sorts of nodes of a list
NO_DEADLINE = -1


class EmptyValue(RdbError):
    """A collection without elements: no value, and in a file no reason to refuse the rest."""

    def __init__(self) -> None:
        super().__init__("a collection is empty")


# -- writing -----------------------------------------------------------------------------------


def type_of(value: Any) -> int:
    """The number of the format `write_value` uses."""
    kind = value.__class__
    if kind is bytes:
        return STRING
    if kind is List:
        return LIST_QUICKLIST_2
    if kind is Stream:
        return STREAM_3
    encoding = value.encoding()
    if kind is Hash:
        return HASH_LISTPACK if encoding == b"listpack" else HASH if value.deadlines is None else HASH_2
    if kind is Set:
        return {b"intset": SET_INTSET, b"listpack": SET_LISTPACK, b"hashtable": SET}[encoding]
    return ZSET_LISTPACK if encoding == b"listpack" else ZSET_2


def write_value(out: Writer, value: Any) -> None:
    """Write a value in the format `type_of` names. O(n)."""
    kind = value.__class__
    if kind is bytes:
        out.string(value)
    elif kind is List:
        _write_list(out, value)
    elif kind is Hash:
        _write_hash(out, value)
    elif kind is Set:
        _write_set(out, value)
    elif kind is ZSet:
        _write_zset(out, value)
    else:
        streams.write_stream(out, value)


def _write_list(out: Writer, value: List) -> None:
    nodes = list(value.stored_nodes())
    out.length(len(nodes))
    for elements, large in nodes:
        out.length(_PLAIN if large else _PACKED)
        out.string(elements[0] if large else packed.listpack(elements))


def _write_hash(out: Writer, value: Hash) -> None:
    if value.encoding() == b"listpack":
        out.string(packed.listpack(value.flat()))
        return
    out.length(len(value))
    deadlines = value.deadlines
    for field, text in value.fields.items():
        out.string(field)
        out.string(text)
        if deadlines is not None:
            out.instant(deadlines.get(field, NO_DEADLINE))


def _write_set(out: Writer, value: Set) -> None:
    encoding = value.encoding()
    if encoding == b"intset":
        out.string(packed.intset(sorted(map(int, value.members))))
    elif encoding == b"listpack":
        out.string(packed.listpack(list(value)))
    else:
        out.length(len(value))
        for member in value.members:
            out.string(member)


def _write_zset(out: Writer, value: ZSet) -> None:
    if value.encoding() == b"listpack":
        flat = [text for member, score in value.items() for text in (member, format_double(score))]
        out.string(packed.listpack(flat))
        return
    out.length(len(value))
    # From the greatest down, so that whoever reads it can put each in front.
    for member, score in reversed(list(value.items())):
        out.string(member)
        out.double(score)


# -- reading -----------------------------------------------------------------------------------


def read_value(kind: int, source: Reader, limits: Limits) -> Any:
    """The value that follows, in the format with this number. Raises RdbError. O(n)."""
    reader = _READERS.get(kind)
    if reader is None:
        raise RdbError(f"there is no format of values with the number {kind}")
    try:
        return reader(source, limits)
    except (IndexError, OverflowError) as problem:  # something is shorter, or greater, than it may be
        raise RdbError("a value is damaged") from problem


def _read_string(source: Reader, limits: Limits) -> bytes:
    return source.string()


def _count(source: Reader) -> int:
    """The number of elements that follow."""
    count = source.length()
    if count == 0:
        raise EmptyValue
    return count


def _read_list(source: Reader, limits: Limits) -> List:
    value = List.as_quicklist([source.string() for _ in range(_count(source))], limits)
    value.convert()
    return value


def _read_ziplist_list(source: Reader, limits: Limits) -> List:
    return List.as_quicklist(_some(packed.read_ziplist(source.string())), limits)


def _read_quicklist(source: Reader, limits: Limits) -> List:
    nodes = [(packed.read_ziplist(source.string()), False) for _ in range(_count(source))]
    return _list_of_nodes(nodes, limits)


def _read_quicklist_2(source: Reader, limits: Limits) -> List:
    nodes: list[tuple[list[bytes], bool]] = []
    for _ in range(_count(source)):
        sort, data = source.length(), source.string()
        if sort not in (_PLAIN, _PACKED) or not data:
            raise RdbError("a node of a list is of no known sort")
        nodes.append(([data], True) if sort == _PLAIN else (packed.read_listpack(data), False))
    return _list_of_nodes(nodes, limits)


def _list_of_nodes(nodes: list[tuple[list[bytes], bool]], limits: Limits) -> List:
    value = List.from_stored(_some([node for node in nodes if node[0]]), limits)
    value.convert()
    return value


def _some(elements: list[_T]) -> list[_T]:
    if not elements:
        raise EmptyValue
    return elements


def _distinct(members: list[bytes]) -> list[bytes]:
    if len(dict.fromkeys(members)) != len(members):
        raise RdbError("a member is there twice")
    return members


def _read_set(source: Reader, limits: Limits) -> Set:
    members = _distinct([source.string() for _ in range(_count(source))])
    if len(members) > limits.set_intset:
        return Set.from_stored(members, b"hashtable", limits)
    return Set.from_members(members, limits)


def _read_intset(source: Reader, limits: Limits) -> Set:
    members = packed.read_intset(source.string())
    return Set.from_stored(members, b"hashtable" if len(members) > limits.set_intset else b"intset", limits)


def _read_listpack_set(source: Reader, limits: Limits) -> Set:
    members = _distinct(_some(packed.read_listpack(source.string())))
    return Set.from_stored(
        members, b"hashtable" if len(members) > limits.set_entries else b"listpack", limits
    )


def _pairs(flat: list[bytes]) -> dict[bytes, bytes]:
    """Texts and what follows each: fields and values, members and scores."""
    pairs = dict(zip(flat[::2], flat[1::2], strict=False))
    if 2 * len(pairs) != len(flat):
        raise RdbError("a field or a member is there twice, or has nothing that belongs to it")
    return pairs


def _score(text: bytes) -> float:
    score = parse_float(text)
    if score is None:
        raise RdbError("a score is no number")
    return score


def _packed_zset(unpack: Callable[[bytes], list[bytes]]) -> Callable[[Reader, Limits], ZSet]:
    def read(source: Reader, limits: Limits) -> ZSet:
        pairs = _pairs(_some(unpack(source.string())))
        scores = {member: _score(text) for member, text in pairs.items()}
        return ZSet.from_stored(scores, len(scores) > limits.zset_entries, limits)

    return read


def _plain_zset(read_score: Callable[[Reader], float]) -> Callable[[Reader, Limits], ZSet]:
    def read(source: Reader, limits: Limits) -> ZSet:
        count = _count(source)
        scores = {source.string(): read_score(source) for _ in range(count)}
        if len(scores) != count or any(score != score for score in scores.values()):
            raise RdbError("a member is there twice, or has no number as its score")
        return ZSet.from_items(scores.items(), limits)

    return read


def _packed_hash(
    unpack: Callable[[bytes], list[bytes]], strict: bool = False
) -> Callable[[Reader, Limits], Hash]:
    def read(source: Reader, limits: Limits) -> Hash:
        fields = _pairs(_some(unpack(source.string())))
        large = len(fields) > limits.hash_entries or (strict and _longest(fields) > limits.hash_value)
        return Hash.from_stored(fields, large, limits)

    return read


def _longest(fields: dict[bytes, bytes]) -> int:
    return max(max(map(len, fields)), max(map(len, fields.values())))


def _read_hash(source: Reader, limits: Limits) -> Hash:
    fields = _pairs([source.string() for _ in range(2 * _count(source))])
    large = len(fields) > limits.hash_entries or _longest(fields) > limits.hash_value
    return Hash.from_stored(fields, large, limits)


def _read_hash_2(source: Reader, limits: Limits) -> Hash:
    count = _count(source)
    fields: dict[bytes, bytes] = {}
    deadlines: list[tuple[bytes, int]] = []
    for _ in range(count):
        field = source.string()
        fields[field] = source.string()
        deadline = source.instant()
        if deadline < NO_DEADLINE:
            raise RdbError("a field expires before all time")
        if deadline != NO_DEADLINE:
            deadlines.append((field, deadline))
    if len(fields) != count:
        raise RdbError("a field is there twice")
    value = Hash.from_stored(fields, True, limits)
    for field, deadline in deadlines:
        value.set_deadline(field, deadline)
    return value


_READERS: dict[int, Callable[[Reader, Limits], Any]] = {
    STRING: _read_string,
    LIST: _read_list,
    SET: _read_set,
    ZSET: _plain_zset(Reader.printed_double),
    HASH: _read_hash,
    ZSET_2: _plain_zset(Reader.double),
    HASH_ZIPMAP: _packed_hash(packed.read_zipmap, strict=True),
    LIST_ZIPLIST: _read_ziplist_list,
    SET_INTSET: _read_intset,
    ZSET_ZIPLIST: _packed_zset(packed.read_ziplist),
    HASH_ZIPLIST: _packed_hash(packed.read_ziplist),
    LIST_QUICKLIST: _read_quicklist,
    STREAM_1: streams.reader(1),
    HASH_LISTPACK: _packed_hash(packed.read_listpack),
    ZSET_LISTPACK: _packed_zset(packed.read_listpack),
    LIST_QUICKLIST_2: _read_quicklist_2,
    STREAM_2: streams.reader(2),
    SET_LISTPACK: _read_listpack_set,
    STREAM_3: streams.reader(3),
    HASH_2: _read_hash_2,
}
