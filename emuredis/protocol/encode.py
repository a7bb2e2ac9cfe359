"""Neutral replies as RESP2 or RESP3 bytes.

`encode` makes the bytes of one reply. Each protocol is one table from class to function; a new kind of reply
is one function and one row in each table (and in `emuredis.protocol.views`).

Two layers keep it fast. `TOP2` and `TOP3` give finished bytes for the replies that make up nearly all
traffic. Anything nested is written as *tokens*, each led (not followed) by its line break: an element is then
a header from a table, ``\\r\\n$5\\r\\n``, and the value as it is, two appends and no formatting.

Invariant of tokens: joined, they are the reply's bytes with ``\\r\\n`` moved from the end to the front.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emuredis.errors import ReplyError
from emuredis.replies import (
    BigNumber,
    Frames,
    LongFloat,
    Map,
    NullArray,
    PairMap,
    Pairs,
    Push,
    Reply,
    Set,
    Spoken,
    Status,
    Verbatim,
)
from emuredis.scalars import format_decimals, format_double

__all__ = ["TOP2", "TOP3", "encode", "encode_into"]

#: Lengths and integers below this are looked up, not formatted.
_CACHED = 1024

_Write = Callable[[list[bytes], Any], None]
_Whole = Callable[[Any], bytes]


_BULK = tuple(b"\r\n$%d\r\n" % n for n in range(_CACHED))
_INT = tuple(b"\r\n:%d" % n for n in range(_CACHED))
_WHOLE_BULK = tuple(b"$%d\r\n" % n for n in range(_CACHED))
_WHOLE_INT = tuple(b":%d\r\n" % n for n in range(_CACHED))


def encode(reply: Reply, resp: int) -> bytes:
    """The bytes of ``reply`` for a client that speaks protocol ``resp`` (2 or 3)."""
    top = TOP3 if resp == 3 else TOP2
    return top[reply.__class__](reply)


def encode_into(parts: list[bytes], reply: Reply, resp: int) -> None:
    """Append the bytes of ``reply`` to ``parts``."""
    top = TOP3 if resp == 3 else TOP2
    parts.append(top[reply.__class__](reply))


# -- whole replies -----------------------------------------------------------------------------


def _whole_bytes(reply: bytes) -> bytes:
    size = len(reply)
    if size < _CACHED:
        return _WHOLE_BULK[size] + reply + b"\r\n"
    return b"$%d\r\n%b\r\n" % (size, reply)


def _whole_int(reply: int) -> bytes:
    return _WHOLE_INT[reply] if 0 <= reply < _CACHED else b":%d\r\n" % reply


def _whole_status(reply: bytes) -> bytes:
    return b"+" + reply + b"\r\n"


def _whole_error(reply: ReplyError) -> bytes:
    return b"-" + reply.encode() + b"\r\n"


def _whole_null2(reply: None) -> bytes:
    return b"$-1\r\n"


def _whole_null_array2(reply: NullArray) -> bytes:
    return b"*-1\r\n"


def _whole_null3(reply: NullArray | None) -> bytes:
    return b"_\r\n"


def _whole_frames2(reply: Frames) -> bytes:
    return b"".join([TOP2[item.__class__](item) for item in reply])


def _whole_frames3(reply: Frames) -> bytes:
    return b"".join([TOP3[item.__class__](item) for item in reply])


def _whole(write: _Write) -> _Whole:
    """A whole reply from the function that writes its tokens."""

    def whole(reply: Any) -> bytes:
        parts: list[bytes] = []
        write(parts, reply)
        parts[0] = parts[0][2:]
        parts.append(b"\r\n")
        return b"".join(parts)

    return whole


# -- tokens: scalars ---------------------------------------------------------------------------


def _bytes(parts: list[bytes], reply: bytes) -> None:
    size = len(reply)
    parts.append(_BULK[size] if size < _CACHED else b"\r\n$%d\r\n" % size)
    parts.append(reply)


def _int(parts: list[bytes], reply: int) -> None:
    parts.append(_INT[reply] if 0 <= reply < _CACHED else b"\r\n:%d" % reply)


def _null2(parts: list[bytes], reply: None) -> None:
    parts.append(b"\r\n$-1")


def _null_array2(parts: list[bytes], reply: NullArray) -> None:
    parts.append(b"\r\n*-1")


def _null3(parts: list[bytes], reply: NullArray | None) -> None:
    parts.append(b"\r\n_")


def _status(parts: list[bytes], reply: bytes) -> None:
    parts.append(b"\r\n+")
    parts.append(reply)


def _error(parts: list[bytes], reply: ReplyError) -> None:
    parts.append(b"\r\n-")
    parts.append(reply.encode())


def _float2(parts: list[bytes], reply: float) -> None:
    _bytes(parts, format_double(reply))


def _float3(parts: list[bytes], reply: float) -> None:
    parts.append(b"\r\n,")
    parts.append(format_double(reply))


def _long_float2(parts: list[bytes], reply: float) -> None:
    _bytes(parts, format_decimals(reply))


def _long_float3(parts: list[bytes], reply: float) -> None:
    parts.append(b"\r\n,")
    parts.append(format_decimals(reply))


def _bool2(parts: list[bytes], reply: bool) -> None:
    parts.append(b"\r\n:1" if reply else b"\r\n:0")


def _bool3(parts: list[bytes], reply: bool) -> None:
    parts.append(b"\r\n#t" if reply else b"\r\n#f")


def _verbatim3(parts: list[bytes], reply: Verbatim) -> None:
    parts.append(b"\r\n=%d\r\n%b:" % (len(reply) + 4, reply.format))
    parts.append(reply)


def _big_number2(parts: list[bytes], reply: int) -> None:
    _bytes(parts, b"%d" % reply)


def _big_number3(parts: list[bytes], reply: int) -> None:
    parts.append(b"\r\n(%d" % reply)


# -- tokens: aggregates ------------------------------------------------------------------------


def _items(parts: list[bytes], items: list[Any], table: dict[type, _Write]) -> None:
    append, bulk = parts.append, _BULK
    for item in items:
        kind = item.__class__
        if kind is bytes:
            size = len(item)
            append(bulk[size] if size < _CACHED else b"\r\n$%d\r\n" % size)
            append(item)
        elif kind is int:
            append(_INT[item] if 0 <= item < _CACHED else b"\r\n:%d" % item)
        else:
            table[kind](parts, item)


def _array(head: bytes, table: dict[type, _Write]) -> _Write:
    """A writer of ``head`` with the number of elements in it, and the elements."""
    head = b"\r\n" + head

    def write(parts: list[bytes], reply: list[Any]) -> None:
        parts.append(head % len(reply))
        _items(parts, reply, table)

    return write


def _map3(parts: list[bytes], reply: Map | PairMap) -> None:
    parts.append(b"\r\n%%%d" % (len(reply) >> 1))
    _items(parts, reply, WRITE3)


def _pairs3(parts: list[bytes], reply: Pairs) -> None:
    _nested(parts, reply, WRITE3)


def _pair_map2(parts: list[bytes], reply: PairMap) -> None:
    _nested(parts, reply, WRITE2)


def _nested(parts: list[bytes], reply: list[Any], table: dict[type, _Write]) -> None:
    append, bulk = parts.append, _BULK
    append(b"\r\n*%d" % (len(reply) >> 1))
    turn = iter(reply)
    for first, second in zip(turn, turn, strict=True):
        append(b"\r\n*2")
        if first.__class__ is bytes:
            size = len(first)
            append(bulk[size] if size < _CACHED else b"\r\n$%d\r\n" % size)
            append(first)
        else:
            table[first.__class__](parts, first)
        table[second.__class__](parts, second)


def _frames2(parts: list[bytes], reply: Frames) -> None:
    _items(parts, reply, WRITE2)


def _frames3(parts: list[bytes], reply: Frames) -> None:
    _items(parts, reply, WRITE3)


def _spoken(parts: list[bytes], reply: Spoken) -> None:
    (WRITE3 if reply.resp == 3 else WRITE2)[reply.reply.__class__](parts, reply.reply)


# -- tables ------------------------------------------------------------------------------------


class _Table(dict[type, Any]):
    """Dispatch on the exact class; a subclass (of ReplyError, say) is found once and remembered."""

    def __missing__(self, kind: type) -> Any:
        for base in kind.__mro__[1:]:
            if base in self and base is not object:
                self[kind] = self[base]
                return self[base]
        raise TypeError(f"no reply is a {kind.__name__}")


WRITE2: dict[type, _Write] = _Table()
WRITE3: dict[type, _Write] = _Table()
WRITE2.update(
    {
        int: _int,
        bytes: _bytes,
        type(None): _null2,
        NullArray: _null_array2,
        Status: _status,
        ReplyError: _error,
        float: _float2,
        LongFloat: _long_float2,
        bool: _bool2,
        list: _array(b"*%d", WRITE2),
        Map: _array(b"*%d", WRITE2),
        Pairs: _array(b"*%d", WRITE2),
        PairMap: _pair_map2,
        Set: _array(b"*%d", WRITE2),
        Push: _array(b"*%d", WRITE2),
        Verbatim: _bytes,
        BigNumber: _big_number2,
        Frames: _frames2,
        Spoken: _spoken,
    }
)
WRITE3.update(
    {
        int: _int,
        bytes: _bytes,
        type(None): _null3,
        NullArray: _null3,
        Status: _status,
        ReplyError: _error,
        float: _float3,
        LongFloat: _long_float3,
        bool: _bool3,
        list: _array(b"*%d", WRITE3),
        Map: _map3,
        Pairs: _pairs3,
        PairMap: _map3,
        Set: _array(b"~%d", WRITE3),
        Push: _array(b">%d", WRITE3),
        Verbatim: _verbatim3,
        BigNumber: _big_number3,
        Frames: _frames3,
        Spoken: _spoken,
    }
)

_COMMON: dict[type, _Whole] = {
    bytes: _whole_bytes,
    int: _whole_int,
    Status: _whole_status,
    ReplyError: _whole_error,
}
TOP2: dict[type, _Whole] = _Table({kind: _whole(write) for kind, write in WRITE2.items()})
TOP3: dict[type, _Whole] = _Table({kind: _whole(write) for kind, write in WRITE3.items()})
TOP2.update(_COMMON | {type(None): _whole_null2, NullArray: _whole_null_array2, Frames: _whole_frames2})
TOP3.update(_COMMON | {type(None): _whole_null3, NullArray: _whole_null3, Frames: _whole_frames3})
