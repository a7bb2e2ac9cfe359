"""Views: for every reply, what redis-py's own parsers make of the encoded bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, example, given

from emuredis.errors import ReplyError
from emuredis.protocol.encode import encode
from emuredis.protocol.views import view2, view3
from emuredis.replies import NULL_ARRAY, BigNumber, Frames, Map, Pairs, Push, Set, Spoken, Status, Verbatim
from tests.protocol.replies import REPLIES

redis_parsers = pytest.importorskip("redis._parsers")


class _Buffer:
    """As much of redis-py's socket buffer as its parsers use."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def readline(self, timeout: object = None) -> bytes:
        end = self.data.index(b"\r\n", self.at)
        line, self.at = self.data[self.at : end], end + 2
        return line

    def read(self, size: int, timeout: object = None) -> bytes:
        found = self.data[self.at : self.at + size]
        self.at += size + 2
        return found


def redis_py(reply: Any, resp: int) -> Any:
    parser = (redis_parsers._RESP3Parser if resp == 3 else redis_parsers._RESP2Parser)(65536)
    parser._buffer = _Buffer(encode(reply, resp))
    return parser._read_response(disable_decoding=True, **({"push_request": True} if resp == 3 else {}))


def plain(value: Any) -> Any:
    """Comparable: errors by text, floats and booleans kept apart from integers."""
    if isinstance(value, (ReplyError, Exception)):
        text = value.encode().decode("utf-8", "replace") if isinstance(value, ReplyError) else str(value)
        return "error", text.removeprefix("ERR ")
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return type(value).__name__, value


def holds_push(reply: Any) -> bool:
    return isinstance(reply, list) and (isinstance(reply, Push) or any(map(holds_push, reply)))


@pytest.mark.slow
@given(REPLIES)
@example([Set([1, 1, [2]]), Verbatim(b"text"), BigNumber(2**70), Status(b"OK"), True, NULL_ARRAY, 2.0])
def test_views_are_what_redis_py_parses(reply: Any) -> None:
    assert plain(view2(reply)) == plain(redis_py(reply, 2))
    assume(not holds_push(reply))  # inside a reply redis-py would hand it to a callback
    assert plain(view3(reply)) == plain(redis_py(reply, 3))


def test_shapes() -> None:
    reply = Map([b"a", Pairs([b"m", 1.5]), b"b", True])
    assert view2(reply) == [b"a", [b"m", b"1.5"], b"b", 1]
    assert view3(reply) == {b"a": [[b"m", 1.5]], b"b": True}
    assert type(view3(Status(b"OK"))) is bytes
    assert type(view3(Push([b"message"]))) is list
    assert view2(Frames([Push([1]), NULL_ARRAY])) == [[1], None]
    changed = [Spoken(Map([b"a", 1.5]), 2), Spoken(Map([b"a", 1.5]), 3)]
    assert view2(changed) == view3(changed) == [[b"a", b"1.5"], {b"a": 1.5}]
    error = ReplyError("ERR x")
    assert view3([error])[0] is error and view2(error) is error


def test_a_key_that_cannot_be_hashed_makes_pairs_of_a_map() -> None:
    assert view3(Map([[b"k"], 1, b"l", 2])) == [[[b"k"], 1], [b"l", 2]]


def test_what_is_plain_is_not_copied() -> None:
    reply = [b"a", 1, None]
    assert view2(reply) is reply and view3(reply) is reply
