"""The RESP codec: every reply type, split at any byte; what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echomq.errors import ProtocolError, ServerError
from echomq.resp import NEED_DATA, Decoder, Push, encode, encode_many

FRAMES: list[tuple[bytes, Any]] = [
    (b"+OK\r\n", b"OK"),
    (b"+\r\n", b""),
    (b"-ERR no\r\n", ServerError("ERR no")),
    (b":-7\r\n", -7),
    (b":+7\r\n", 7),
    (b"$5\r\na\r\nbc\r\n", b"a\r\nbc"),
    (b"$0\r\n\r\n", b""),
    (b"$-1\r\n", None),
    (b"*-1\r\n", None),
    (b"*0\r\n", []),
    (b"*2\r\n$1\r\na\r\n*1\r\n:1\r\n", [b"a", [1]]),
    (b"*2\r\n-EMQSTALE x\r\n$-1\r\n", [ServerError("EMQSTALE x"), None]),
    (b"_\r\n", None),
    (b"#t\r\n", True),
    (b"#f\r\n", False),
    (b",1.5\r\n", 1.5),
    (b",inf\r\n", math.inf),
    (b",-inf\r\n", -math.inf),
    (b"(3492890328409238509324850943850943825024385\r\n", 3492890328409238509324850943850943825024385),
    (b"=15\r\ntxt:Some string\r\n", b"Some string"),
    (b"!11\r\nWRONG thing\r\n", ServerError("WRONG thing")),
    (b"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n_\r\n", {b"a": 1, b"b": [None]}),
    (b"%0\r\n", {}),
    (b"%1\r\n*1\r\n:1\r\n:2\r\n", [[[1], 2]]),
    (b"~2\r\n:1\r\n:2\r\n", [1, 2]),
    (b"|1\r\n+ttl\r\n:5\r\n:9\r\n", 9),
    (b"*2\r\n|1\r\n+ttl\r\n*1\r\n:5\r\n:9\r\n|0\r\n:8\r\n", [9, 8]),
]
REFUSED = [
    b"?\r\n",
    b"\r\n",
    b":\r\n",
    b":1x\r\n",
    b":1_0\r\n",
    b": 1\r\n",
    b"$-2\r\n",
    b"$99999999999\r\n",
    b"$x\r\n",
    b"*-2\r\n",
    b"%-1\r\n",
    b"$1\r\nabc\r\n",
    b"#x\r\n",
    b",x\r\n",
    b"_x\r\n",
    b"=1\r\nx\r\n",
    b"$?\r\n",
    b"*?\r\n",
    b"(" + b"9" * 5000 + b"\r\n",
    b"+" + b"x" * 70_000,
    b"*1\r\n" * 1000,
]


@pytest.mark.parametrize(("raw", "value"), FRAMES)
def test_each_type(raw: bytes, value: Any) -> None:
    decoder = Decoder()
    decoder.feed(raw)
    assert decoder.take() == [value]
    assert not decoder


def test_nan() -> None:
    decoder = Decoder()
    decoder.feed(b",nan\r\n")
    assert math.isnan(decoder.next())


def test_a_push_is_told_apart_from_a_reply() -> None:
    decoder = Decoder()
    decoder.feed(b">2\r\n+message\r\n+x\r\n*1\r\n+y\r\n")
    push, reply = decoder.take()
    assert type(push) is Push and push == [b"message", b"x"]
    assert type(reply) is list


@given(st.lists(st.sampled_from(FRAMES), max_size=8), st.data())
def test_frames_may_be_split_anywhere(frames: list[tuple[bytes, Any]], data: st.DataObject) -> None:
    raw = b"".join(frame for frame, _ in frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=10)))
    decoder = Decoder()
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        decoder.feed(raw[start:end])
        found += decoder.take()
    assert found == [value for _, value in frames]
    assert not decoder


def test_one_byte_at_a_time() -> None:
    decoder = Decoder()
    found = []
    for byte in b"".join(raw for raw, _ in FRAMES):
        decoder.feed(bytes([byte]))
        found += decoder.take()
    assert found == [value for _, value in FRAMES]


def test_a_long_run_gives_its_memory_back() -> None:
    decoder = Decoder()
    for _ in range(100):
        decoder.feed(b"$10000\r\n" + b"x" * 10_000 + b"\r\n")
        assert len(decoder.take()) == 1
    assert len(decoder._buffer) < 200_000


@pytest.mark.parametrize("raw", REFUSED, ids=lambda raw: repr(raw[:12]))
def test_refusals(raw: bytes) -> None:
    decoder = Decoder()
    decoder.feed(raw)
    with pytest.raises(ProtocolError):
        decoder.take()


@given(st.binary(max_size=60))
def test_garbage_never_crashes(raw: bytes) -> None:
    decoder = Decoder()
    decoder.feed(raw)
    try:
        decoder.take()
    except ProtocolError:
        pass


values = st.recursive(
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.binary(max_size=30),
    lambda inner: st.lists(inner, max_size=5),
    max_leaves=20,
)


def as_resp2(value: Any) -> bytes:
    if value is None:
        return b"$-1\r\n"
    if isinstance(value, int):
        return b":%d\r\n" % value
    if isinstance(value, bytes):
        return b"$%d\r\n%b\r\n" % (len(value), value)
    return b"*%d\r\n" % len(value) + b"".join(map(as_resp2, value))


@given(values, st.integers(1, 20))
def test_any_nesting_in_any_chunks(value: Any, size: int) -> None:
    raw = as_resp2(value)
    decoder = Decoder()
    for start in range(0, len(raw), size):
        assert decoder.next() is NEED_DATA
        decoder.feed(raw[start : start + size])
    assert decoder.take() == [value]


def test_encoding() -> None:
    assert (
        encode(("SET", b"k\0", "ä", -5)) == b"*4\r\n$3\r\nSET\r\n$2\r\nk\0\r\n$2\r\n\xc3\xa4\r\n$2\r\n-5\r\n"
    )
    assert encode((bytearray(b"x"), memoryview(b"y"))) == b"*2\r\n$1\r\nx\r\n$1\r\ny\r\n"
    assert encode_many([("A",), ("B",)]) == encode(("A",)) + encode(("B",))


@pytest.mark.parametrize("args", [(), ("A", None), ("A", 1.5), ("A", True), ("A", ["x"])])
def test_what_is_not_an_argument(args: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        encode(args)
