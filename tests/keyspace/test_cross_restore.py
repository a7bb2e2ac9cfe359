"""What one side dumps the other restores: to the same value, encoding and deadlines, and dumps it again alike."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.live import Connection, LiveServer

from .made import KEY, Line, made, seen
from .sides import emulated, theirs

EXAMPLES = 150


@pytest.fixture(scope="module")
def connection(live_server: LiveServer) -> Any:
    connection = live_server.connect()
    yield connection
    connection.close()


def build(ask: Any, lines: list[Line]) -> None:
    ask(b"FLUSHALL")
    for line in lines:
        ask(*line)


def restored(target: Any, payload: bytes, deadline: int) -> list[Any]:
    target(b"FLUSHALL")
    reply = target(b"RESTORE", KEY, b"%d" % deadline, payload, b"ABSTTL")
    assert reply == b"OK", reply
    return seen(target)


def check(source: Any, live: Any, mine: Any, deadline: int) -> None:
    """DUMP on one side, RESTORE on both: all three show the same."""
    before = seen(source)
    payload = source(b"DUMP", KEY)
    if payload is None:
        return
    after = restored(live, payload, deadline)
    assert restored(mine, payload, deadline) == after
    # Strings and small collections may be encoded anew; the live server knows how.
    before[1:3] = after[1], deadline or -1
    assert after == before


@settings(max_examples=EXAMPLES)
@given(lines=made, deadline=st.sampled_from([0, 4_000_000_000_123]), compress=st.booleans())
def test_each_side_restores_what_the_other_dumps(
    lines: list[Line], deadline: int, compress: bool, connection: Connection
) -> None:
    live, mine = theirs(connection), emulated()
    for ask in (live, mine):
        ask(b"CONFIG", b"SET", b"rdbcompression", b"yes" if compress else b"no")
    try:
        build(live, lines)
        check(live, live, mine, deadline)
        build(mine, lines)
        check(mine, live, mine, deadline)
        check(live, live, mine, deadline)
    finally:
        live(b"CONFIG", b"SET", b"rdbcompression", b"yes")
