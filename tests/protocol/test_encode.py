"""Replies as bytes, read back by the tests' own RESP reader and compared with the table in `emuredis.replies`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from emuredis.errors import ReplyError
from emuredis.protocol.encode import TOP2, TOP3, WRITE2, WRITE3, encode, encode_into
from emuredis.replies import (
    NULL_ARRAY,
    OK,
    BigNumber,
    Frames,
    LongFloat,
    Map,
    NullArray,
    PairMap,
    Pairs,
    Push,
    Set,
    Spoken,
    Status,
    Verbatim,
)
from emuredis.scalars import format_decimals, format_double
from tests.protocol.replies import REPLIES
from tests.support.resp import Frame, parse


def kind_and_value(frame: Frame) -> tuple[str, Any]:
    if isinstance(frame.value, list):
        return frame.kind, [kind_and_value(item) for item in frame.value]
    return frame.kind, frame.value


def expected(reply: Any, resp: int) -> tuple[str, Any]:
    """The table of `emuredis.replies`, written a second time and slowly."""
    three = resp == 3
    if reply is None:
        return ("_" if three else "$"), None
    if reply is NULL_ARRAY:
        return ("_" if three else "*"), None
    if isinstance(reply, bool):
        return ("#", b"t" if reply else b"f") if three else (":", int(reply))
    if isinstance(reply, BigNumber):
        return ("(", int(reply)) if three else ("$", b"%d" % reply)
    if isinstance(reply, int):
        return ":", reply
    if isinstance(reply, LongFloat):
        return ("," if three else "$"), format_decimals(reply)
    if isinstance(reply, float):
        return ("," if three else "$"), format_double(reply)
    if isinstance(reply, ReplyError):
        return "-", reply.encode()
    if isinstance(reply, Status):
        return "+", bytes(reply)
    if isinstance(reply, Verbatim):
        return ("=", b"txt:" + reply) if three else ("$", bytes(reply))
    if isinstance(reply, bytes):
        return "$", reply
    items = [expected(item, resp) for item in reply]
    if isinstance(reply, Pairs if three else PairMap):
        return "*", [("*", items[at : at + 2]) for at in range(0, len(items), 2)]
    if not three:
        return "*", items
    return {Map: "%", PairMap: "%", Set: "~", Push: ">"}.get(type(reply), "*"), items


@pytest.mark.slow
@given(REPLIES)
def test_bytes_say_what_the_table_says(reply: Any) -> None:
    for resp in (2, 3):
        data = encode(reply, resp)
        frame, after = parse(data)
        assert after == len(data)
        assert kind_and_value(frame) == expected(reply, resp)


@pytest.mark.slow
@given(REPLIES, REPLIES)
def test_frames_are_replies_one_after_the_other(first: Any, second: Any) -> None:
    for resp in (2, 3):
        assert encode(Frames([first, second]), resp) == encode(first, resp) + encode(second, resp)
        inside = encode([Frames([first, second])], resp)
        assert inside == b"*1\r\n" + encode(first, resp) + encode(second, resp)
        parts = [b"x"]
        encode_into(parts, first, resp)
        assert b"".join(parts) == b"x" + encode(first, resp)


@pytest.mark.parametrize(
    "reply, two, three",
    [
        (OK, b"+OK\r\n", b"+OK\r\n"),
        (float("inf"), b"$3\r\ninf\r\n", b",inf\r\n"),
        (float("-inf"), b"$4\r\n-inf\r\n", b",-inf\r\n"),
        (float("nan"), b"$3\r\nnan\r\n", b",nan\r\n"),
        (3.0, b"$1\r\n3\r\n", b",3\r\n"),
        (NULL_ARRAY, b"*-1\r\n", b"_\r\n"),
        (None, b"$-1\r\n", b"_\r\n"),
        (Frames(), b"", b""),
        (Map(), b"*0\r\n", b"%0\r\n"),
        (Spoken(Map(), 2), b"*0\r\n", b"*0\r\n"),
        ([Spoken(None, 3), Spoken(None, 2), None], b"*3\r\n_\r\n$-1\r\n$-1\r\n", b"*3\r\n_\r\n$-1\r\n_\r\n"),
        (Pairs([b"a", 1.5]), b"*2\r\n$1\r\na\r\n$3\r\n1.5\r\n", b"*1\r\n*2\r\n$1\r\na\r\n,1.5\r\n"),
        (PairMap([b"a", []]), b"*1\r\n*2\r\n$1\r\na\r\n*0\r\n", b"%1\r\n$1\r\na\r\n*0\r\n"),
        (ReplyError("ERR two\r\nlines"), b"-ERR two  lines\r\n", b"-ERR two  lines\r\n"),
        (ReplyError(b"ERR \xff"), b"-ERR \xff\r\n", b"-ERR \xff\r\n"),
    ],
)
def test_edges(reply: Any, two: bytes, three: bytes) -> None:
    assert (encode(reply, 2), encode(reply, 3)) == (two, three)


def test_every_kind_is_in_every_table() -> None:
    kinds = {
        *(int, bytes, float, bool, list, type(None), NullArray, Status, ReplyError),
        *(Map, Pairs, Set, Push, Verbatim, BigNumber, LongFloat, Frames, Spoken),
    }
    for table in (WRITE2, WRITE3, TOP2, TOP3):
        assert kinds <= set(table)


def test_a_subclass_is_encoded_as_its_base_and_a_stranger_is_refused() -> None:
    class Worse(ReplyError):
        pass

    assert encode(Worse("ERR x"), 2) == b"-ERR x\r\n"
    assert encode([Worse("ERR x")], 3) == b"*1\r\n-ERR x\r\n"
    with pytest.raises(TypeError, match="no reply is a dict"):
        encode({}, 2)
