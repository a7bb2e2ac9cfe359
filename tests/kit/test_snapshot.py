"""Snapshots: nothing that happens later shows in them, and putting one back brings everything back."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emuredis.client import Client
from emuredis.clock import ManualClock
from emuredis.emulator import Emulator
from emuredis.errors import EmulatorError, ReplyError
from emuredis.spec import TABLE
from emuredis.values.hash import Hash
from emuredis.values.list import List
from emuredis.values.set import Set
from emuredis.values.stream import Stream
from emuredis.values.zset import ZSet
from tests.support.generate import command_line

GROUPS = ("string", "generic", "hash", "list", "set", "sorted-set", "stream", "geo", "bitmap", "hyperloglog")
COMMANDS = [
    c
    for c in TABLE.everything()
    if c.group in GROUPS and c.subs is None and c.name not in ("wait", "waitaof")
]
LINES = {command.name: command_line(command) for command in COMMANDS}
STEPS = st.lists(st.sampled_from(COMMANDS).flatmap(lambda c: LINES[c.name]), min_size=5, max_size=30)


def of_value(value: Any) -> Any:
    """All that a value is, in plain Python."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, Hash):
        return dict(value.fields), dict(value.deadlines or {}), value.encoding()
    if isinstance(value, Set):
        return sorted(value), value.encoding()
    if isinstance(value, (List, ZSet)):
        return list(value.items() if isinstance(value, ZSet) else value), value.encoding()
    assert isinstance(value, Stream)
    groups = {
        name: (
            group.last_id, group.entries_read,
            {i: (p.consumer.name, p.time, p.count) for i, p in group.pel.items()},
            {c.name: (c.seen, c.active, list(c.pel)) for c in group.consumers.values()},
        )
        for name, group in value.groups.items()
    }  # fmt: skip
    return value.range(0, 1 << 128), value.last_id, value.entries_added, value.max_deleted_id, groups


def content(emulator: Emulator) -> Any:
    keyspace = emulator.engine.keyspace
    return [
        ({key: of_value(value) for key, value in db.data.items()}, dict(db.deadlines), dict(db.access))
        for db in keyspace.databases
    ]


def run(client: Client, steps: list[list[bytes]], clock: ManualClock) -> None:
    for argv in steps:
        try:
            client.call(*argv)
        except (ReplyError, EmulatorError):
            pass
        clock.advance(1)


def check(emulator: Emulator) -> None:
    for db in emulator.engine.keyspace.databases:
        for value in db.data.values():
            if not isinstance(value, bytes):
                value._check()


@pytest.mark.slow
@settings(max_examples=150)
@given(before=STEPS, between=STEPS, after=STEPS)
def test_nothing_later_shows_in_a_snapshot(
    before: list[list[bytes]], between: list[list[bytes]], after: list[list[bytes]]
) -> None:
    clock = ManualClock()
    emulator = Emulator(clock=clock, seed=1)
    client = emulator.client()
    run(client, before, clock)
    first = emulator.snapshot()
    at_first, first_ns = content(emulator), clock.now_ns()
    run(client, between, clock)
    fork = emulator.fork()
    at_fork = content(emulator)
    assert content(fork) == at_fork
    run(client, after, clock)
    later = content(emulator)
    assert content(fork) == at_fork
    run(fork.client(), after, fork.clock)  # type: ignore[arg-type]
    assert content(emulator) == later
    assert content(fork) == later  # chance and time are the same in both
    emulator.restore(first)
    assert content(emulator) == at_first
    assert clock.now_ns() == first_ns
    run(client, between, clock)
    assert content(emulator) == at_fork
    check(emulator)
    check(fork)
    fork.restore(first)
    assert content(fork) == at_first


def test_deadlines_are_part_of_it() -> None:
    clock = ManualClock()
    emulator = Emulator(clock=clock)
    client = emulator.client()
    client.call("SET", "k", "v", "PX", 1000)
    client.call("HSET", "h", "f", "v", "g", "w")
    client.call("HPEXPIRE", "h", 500, "FIELDS", 1, "f")
    snapshot = emulator.snapshot()
    clock.advance(2000)
    assert client.call("EXISTS", "k") == 0
    emulator.restore(snapshot)
    assert client.call("PTTL", "k") == 1000
    clock.advance(500)
    assert client.call("HGETALL", "h") == {b"g": b"w"}
    clock.advance(500)
    assert client.call("GET", "k") is None


def test_scripts_and_settings_are_part_of_it() -> None:
    emulator = Emulator()
    client = emulator.client()
    sha = client.call("SCRIPT", "LOAD", "return 1")
    client.call("CONFIG", "SET", "hash-max-listpack-entries", 3)
    library = "#!lua name=lib\nredis.register_function('f', function() return 2 end)"
    client.call("FUNCTION", "LOAD", library)
    snapshot = emulator.snapshot()
    client.call("SCRIPT", "FLUSH")
    client.call("FUNCTION", "FLUSH")
    client.call("CONFIG", "SET", "hash-max-listpack-entries", 512)
    emulator.restore(snapshot)
    assert client.call("EVALSHA", sha, 0) == 1
    assert client.call("CONFIG", "GET", "hash-max-listpack-entries") == {b"hash-max-listpack-entries": b"3"}
    assert client.call("FCALL", "f", 0) == 2
    twin = emulator.fork().client()
    assert twin.call("FCALL", "f", 0) == 2
    assert twin.call("EVALSHA", sha, 0) == 1
    for i in range(4):
        twin.call("HSET", "h", i, i)
    assert twin.call("OBJECT", "ENCODING", "h") == b"hashtable"


def test_chance_repeats() -> None:
    emulator = Emulator(seed=3)
    client = emulator.client()
    client.call("SADD", "s", *range(1000))
    snapshot = emulator.snapshot()
    first = client.call("SPOP", "s", 50)
    emulator.restore(snapshot)
    assert client.call("SPOP", "s", 50) == first
    assert client.call("SPOP", "s", 50) != first


def test_a_watched_key_counts_as_changed() -> None:
    emulator = Emulator()
    client = emulator.client()
    snapshot = emulator.snapshot()
    client.call("WATCH", "k")
    emulator.restore(snapshot)
    client.call("MULTI")
    client.call("PING")
    assert client.call("EXEC") is None


def test_blocked_clients_are_named() -> None:
    emulator = Emulator()
    client, other = emulator.client(), emulator.client()
    engine = emulator.engine
    thread = threading.Thread(target=lambda: client.call("BLPOP", "queue", 0))
    thread.start()
    while not engine.waiting.count:
        pass
    with pytest.raises(
        EmulatorError, match="cannot take a snapshot while clients are blocked: client 1 in BLPOP"
    ):
        emulator.snapshot()
    other.call("RPUSH", "queue", "x")
    thread.join()
    emulator.snapshot()


def test_another_number_of_databases_is_refused() -> None:
    snapshot = Emulator(config={"databases": 4}).snapshot()
    with pytest.raises(EmulatorError, match="the snapshot has 4 databases, this emulator 16"):
        Emulator().restore(snapshot)


def test_subscriptions_stay() -> None:
    emulator = Emulator()
    client, other = emulator.client(), emulator.client()
    other.call("SUBSCRIBE", "c")
    snapshot = emulator.snapshot()
    emulator.restore(snapshot)
    assert client.call("PUBLISH", "c", "m") == 1
