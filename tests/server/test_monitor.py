"""MONITOR on both servers: the same lines, but for the time and who it was; and through redis-py in process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

import emuredis
from emuredis.server import Server
from tests.support.live import Connection, LiveServer

SAID: list[tuple[Any, ...]] = [
    ("SET", "k", "a\x00\r\n\t\"\\\x07\x08é\x7f"), ("MULTI",), ("SET", "a", "1"), ("GET", "a"), ("EXEC",),
    ("EVAL", "redis.call('set','q',1) return redis.call('get','q')", 0), ("EVAL", "return redis.pcall('incr','k')", 0),
    ("EVAL", "return redis.pcall('get')", 0), ("EVAL", "redis.call('select', 2) return redis.call('get', 'k')", 0),
    ("AUTH", "x"), ("AUTH", "a", "b"), ("HELLO", "2"), ("HELLO", "2", "AUTH", "default", "secret", "SETNAME", "me"),
    ("SELECT", "3"), ("GET", "zz"), ("CONFIG", "GET", "maxmemory"), ("NOSUCH", "a"), ("GET",),
    ("SCRIPT", "LOAD", "return 1"),
    ("CLIENT", "ID"), ("PING",), ("MULTI",), ("GET",), ("EXEC",), ("DISCARD",), ("MULTI",),
    ("EVAL", "return 1", 0), ("EXEC",),
    ("BLPOP", "none", "0.01"), ("SUBSCRIBE", "c"), ("UNSUBSCRIBE", "c"), ("INCR", "k"), ("LPUSH", "k", 1),
    ("INFO", "server"),
    ("RESET",), ("WATCH", "k"), ("SET", "k", 2), ("MULTI",), ("GET", "k"), ("EXEC",), ("EVALSHA", "f" * 40, 0),
    ("FLUSHDB",), ("COMMAND", "COUNT"), ("DEBUG", "SLEEP", "0"), ("SAVE",), ("MEMORY", "USAGE", "k"),
    ("CLIENT", "LIST"),
    ("MULTI",), ("MONITOR",), ("EXEC",), ("EVAL", "return redis.pcall('monitor')", 0), ("ECHO", "end"),
]  # fmt: skip


@pytest.fixture(params=["emuredis", "live"])
def path(request: pytest.FixtureRequest, directory: Path) -> Iterator[str]:
    if request.param == "live":
        live: LiveServer = request.getfixturevalue("live_server")
        yield live.socket_path
        return
    with Server(emuredis.Emulator(), port=None, unix=str(directory / "monitored")).start() as server:
        yield server.unix or ""


def lines(path: str) -> list[bytes]:
    """What a monitor is sent while `SAID` is said."""
    seen = []
    monitor, client = Connection(path), Connection(path)
    client.call("FLUSHALL")
    assert monitor.call("MONITOR").raw == b"+OK\r\n"
    for said in SAID:
        client.call(*said)
    while True:
        frame = monitor.receive()
        assert frame is not None
        seen.append(re.sub(rb"^\+\d+\.\d{6} \[(\d+) (lua|unix:)[^\]]*\]", rb"+[\1 \2]", frame.raw))
        if b'"ECHO" "end"' in frame.raw:
            break
    flags = client.call("CLIENT", "LIST").value
    assert b"flags=OU" in flags or b"flags=UO" in flags or b"flags=O" in flags
    for connection in (monitor, client):
        connection.close()
    return seen


_told: dict[str, list[bytes]] = {}


def test_the_same_lines(path: str) -> None:
    told = lines(path)
    first = _told.setdefault("lines", told)
    assert told == first
    assert len(told) > 40


def test_a_monitor_may_not_touch_keys_and_can_stop(path: str) -> None:
    monitor, client = Connection(path), Connection(path)
    assert monitor.call("MONITOR").raw == b"+OK\r\n"
    assert monitor.call("GET", "x").raw == b"-ERR Replica can't interact with the keyspace\r\n"
    assert monitor.call("SET", "x", 1).raw == b"-ERR Replica can't interact with the keyspace\r\n"
    assert monitor.call("RESET").raw == b"+RESET\r\n"
    client.call("SET", "x", 1)
    assert monitor.call("GET", "x").raw == b"$1\r\n1\r\n"
    for connection in (monitor, client):
        connection.close()


def test_through_redis_py() -> None:
    emulator = emuredis.Emulator(clock=emuredis.ManualClock())
    with emuredis.Redis(emulator=emulator) as client, client.monitor() as monitor:
        client.set("k", "v")
        client.eval("return redis.call('get', KEYS[1])", 1, "k")
        told = iter(monitor.next_command, None)
        seen = [
            next(entry for entry in told if entry["command"][:5] not in ("HELLO", "CLIEN")) for _ in range(3)
        ]
    assert [entry["command"] for entry in seen] == [
        "SET k v", "EVAL return redis.call('get', KEYS[1]) 1 k", "get k",
    ]  # fmt: skip
    assert [entry["client_type"] for entry in seen][2] == "lua"
    assert seen[0]["time"] == 1_704_067_200.0
    assert not emulator.engine.observers
    assert not emulator.engine.script_observers


def test_over_tcp_with_redis_py() -> None:
    with emuredis.Emulator().serve() as server:
        host, port = server.address
        with redis.Redis(host=host, port=port) as client, client.monitor() as monitor:
            client.set("k", "v w")
            entry = next(each for each in iter(monitor.next_command, None) if "SET k" in each["command"])
            assert entry["command"] == "SET k v w"
            assert entry["client_address"] == "127.0.0.1"
