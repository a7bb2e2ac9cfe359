"""How many bytes a value would take in the server, for MEMORY USAGE and ``maxmemory``: an estimate.

It follows the server's structures: one block for key, header and short strings, a packed block below the thresholds,
a table with one block for each element above them. Blocks are rounded as by the C library's allocator. Elements are
sampled as MEMORY USAGE samples them, so that the cost does not grow with the value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from typing import Any

from emuredis.values.hash import Hash
from emuredis.values.list import List, entry_size
from emuredis.values.set import Set
from emuredis.values.stream import Stream
from emuredis.values.zset import ZSet

__all__ = ["key_size", "memory_usage"]

_HEADER = 8  # of every value
_POINTER = 8
_DEADLINE = 8
_EMBEDDED = 128  # up to here key and string share a block
_TABLE, _BUCKET, _PER_BUCKET = 80, 64, 5
_PACKED = 7  # header and end of a packed block
_QUICKLIST, _QUICKLIST_NODE = 40, 40
_SKIPLIST, _SKIPLIST_NODE = 536, 40
_STREAM, _STREAM_NODE = 144, 4104
_GROUP, _CONSUMER, _PENDING = 160, 120, 64


def _block(size: int) -> int:
    """The bytes of an allocated block."""
    return max(24, (size + 8 + 15) // 16 * 16 - 8)


def _string(size: int) -> int:
    """The bytes of a string's own block contents."""
    return size + (4 if size < 256 else 6)


def key_size(key: bytes, expires: bool) -> int:
    """The block of a key with the header of its value."""
    return _block(_HEADER + _POINTER + len(key) + 3 + (_DEADLINE if expires else 0))


def memory_usage(key: bytes, value: Any, expires: bool, samples: int) -> int:
    """Bytes for ``key`` and ``value``; ``samples``: elements looked at, 0 for all; ``expires``: it has a deadline."""
    if value.__class__ is bytes:
        whole = _HEADER + len(key) + 3 + _string(len(value)) + (_DEADLINE if expires else 0)
        if whole <= _EMBEDDED or (len(value) <= 20 and value.isdigit()):
            return _block(whole)
        return key_size(key, expires) + _block(_string(len(value)))
    return key_size(key, expires) + int(_SIZES[value.__class__](value, samples))


def _sampled(sizes: Iterable[int], count: int, samples: int) -> int:
    """The sum of ``count`` sizes, taken from the first ``samples``."""
    if not samples or samples >= count:
        return sum(sizes)
    return sum(islice(sizes, samples)) * count // samples


def _table(count: int) -> int:
    buckets = 1
    while buckets * _PER_BUCKET < count:
        buckets *= 2
    return _TABLE + _BUCKET * buckets


def _of_hash(value: Hash, samples: int) -> int:
    items, count = value.fields.items(), len(value.fields)
    if value.encoding() == b"listpack":
        return _block(_PACKED + _sampled((entry_size(f) + entry_size(v) for f, v in items), count, samples))
    deadlines = 16 * len(value.deadlines) if value.deadlines is not None else 0
    entries = (_block(len(f) + 7 + _string(len(v))) for f, v in items)
    return _table(count) + deadlines + _sampled(entries, count, samples)


def _of_set(value: Set, samples: int) -> int:
    count = len(value)
    encoding = value.encoding()
    if encoding == b"intset":
        widest = max(map(abs, map(int, islice(value, samples or None))), default=0)
        return _block(8 + count * (2 if widest < 1 << 15 else 4 if widest < 1 << 31 else 8))
    if encoding == b"listpack":
        return _block(_PACKED + _sampled(map(entry_size, value), count, samples))
    return _table(count) + _sampled((_block(_string(len(member))) for member in value), count, samples)


def _of_list(value: List, samples: int) -> int:
    packed = _PACKED + _sampled(map(entry_size, value), len(value), samples)
    if value.encoding() == b"listpack":
        return _block(packed)
    return _QUICKLIST + value.node_count() * (_QUICKLIST_NODE + 16) + _block(packed)


def _of_zset(value: ZSet, samples: int) -> int:
    count = len(value)
    if value.encoding() == b"listpack":
        return _block(_PACKED + _sampled((entry_size(member) + 5 for member in value), count, samples))
    nodes = (_block(_SKIPLIST_NODE + _string(len(member))) for member in value)
    return _SKIPLIST + _table(count) + _sampled(nodes, count, samples)


def _of_stream(value: Stream, samples: int) -> int:
    total = _STREAM + sum(max(_STREAM_NODE, _block(size)) if last else _block(size)
                          for size, last in _node_sizes(value.node_bytes(), samples))  # fmt: skip
    for group in value.groups.values():
        total += _GROUP + _CONSUMER * len(group.consumers) + _PENDING * 2 * len(group.pel)
    return total


def _node_sizes(nodes: Collection[int], samples: int) -> Iterable[tuple[int, bool]]:
    """Sizes of a stream's nodes, each with whether it is the last, which has room kept for more."""
    sizes = list(nodes)
    if not sizes:
        return [(0, True)]
    if samples and samples < len(sizes):
        average = sum(sizes[:samples]) // samples
        sizes = [average] * (len(sizes) - 1) + sizes[-1:]
    return [(size, False) for size in sizes[:-1]] + [(sizes[-1], True)]


_SIZES: dict[type, Any] = {Hash: _of_hash, List: _of_list, Set: _of_set, Stream: _of_stream, ZSet: _of_zset}
