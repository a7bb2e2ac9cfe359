"""The short way and the long way through redis-py give the same, for commands and pipelines made at random."""

from __future__ import annotations

from typing import Any

import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st

import emuredis

from .doors import comparable, problem

KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.one_of(st.sampled_from(["1", "x", "", b"\x00\xff", 7, 2.5]), st.text(max_size=3))
COMMANDS = st.one_of(
    st.tuples(
        st.sampled_from(
            ["GET", "INCR", "DEL", "TYPE", "TTL", "LPOP", "HGETALL", "SMEMBERS", "ZPOPMIN", "LLEN"]
        ),
        KEYS,
    ),
    st.tuples(st.sampled_from(["SET", "APPEND", "RPUSH", "LPUSH", "SADD", "GETSET", "SETNX"]), KEYS, VALUES),
    st.tuples(st.just("HSET"), KEYS, VALUES, VALUES),
    st.tuples(st.just("ZADD"), KEYS, st.integers(-3, 3), VALUES),
    st.tuples(st.just("ZRANGE"), KEYS, st.integers(-3, 3), st.integers(-3, 3), st.just("WITHSCORES")),
    st.tuples(st.just("LRANGE"), KEYS, st.integers(-3, 3), st.integers(-3, 3)),
    st.tuples(st.just("EXPIRE"), KEYS, st.integers(1, 100)),
    st.sampled_from(
        [
            ("PING",),
            ("MULTI",),
            ("EXEC",),
            ("DISCARD",),
            ("WATCH", "a"),
            ("UNWATCH",),
            ("SELECT", 1),
            ("SELECT", 0),
            ("NOSUCH", "x"),
            ("GET",),
            ("config get", "maxmemory"),
            ("CONFIG GET", "maxmemory"),
            ("KEYS", "*"),
            ("BLPOP", "a", 0.001),
            ("BLMOVE", "a", "b", "LEFT", "RIGHT", 0.001),
            ("RESET",),
            ("CLIENT SETNAME", "me"),
            ("CLIENT", "GETNAME"),
            ("HELLO", 2),
            ("HELLO", 3),
            ("FLUSHALL",),
            ("ECHO", "é"),
            ("OBJECT ENCODING", "a"),
        ]
    ),
)
STEPS = st.lists(
    st.one_of(
        COMMANDS,
        st.tuples(st.just("pipeline"), st.booleans(), st.lists(COMMANDS.filter(lambda c: c[0] != "EXEC"), max_size=4)),
    ),
    max_size=12,
)  # fmt: skip


def do(client: Any, step: tuple[Any, ...]) -> Any:
    try:
        if step[0] != "pipeline":
            return comparable(client.execute_command(*step))
        pipe = client.pipeline(transaction=step[1])
        for command in step[2]:
            pipe.pipeline_execute_command(*command)
        return comparable(pipe.execute(raise_on_error=False))
    except Exception as error:
        return problem(error)


def shown(value: Any) -> Any:
    """Without the connection's number, which differs."""
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if key not in ("id", b"id")}
    if isinstance(value, list) and len(value) == 14 and value[6:7] in ([b"id"], ["id"]):
        return [*value[:7], *value[8:]]
    return [shown(item) for item in value] if isinstance(value, list) else value


@pytest.mark.slow
@settings(max_examples=150)
@given(STEPS, st.sampled_from([2, 3]), st.booleans())
def test_both_ways_agree(steps: list[tuple[Any, ...]], protocol: int, decode: bool) -> None:
    clients = []
    for fast in (True, False):
        clock = emuredis.ManualClock(1000)
        client = emuredis.Redis(
            emulator=emuredis.Emulator(clock=clock, seed=1),
            protocol=protocol,
            decode_responses=decode,
            encoding_errors="replace",
            retry=redis.retry.Retry(redis.backoff.NoBackoff(), 1),
        )
        assert client._fast is not None
        if not fast:
            client._fast = None
        clients.append(client)
    for step in steps:
        answers = [shown(do(client, step)) for client in clients]
        assert answers[0] == answers[1], step
    for client in clients:
        client.close()
