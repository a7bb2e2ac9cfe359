"""The entries of SLOWLOG and COMMANDLOG: the same on both servers, but for the time and who it was."""

from __future__ import annotations

from typing import Any

import pytest

import emuredis
from tests.support.live import Connection, LiveServer

SAID: list[tuple[Any, ...]] = [
    ("CLIENT", "SETNAME", "me"), ("SET", "k", "a" * 200), ("MSET", *range(80)), ("AUTH", "x"),
    ("HELLO", "2", "AUTH", "default", "pw"), ("EVAL", "return redis.call('get', 'k')", 0), ("MULTI",), ("GET", "k"),
    ("EXEC",), ("NOSUCH",), ("GET",), ("GET", "k"), ("BLPOP", "none", "0.01"), ("LPUSH", "k", "x"),
    ("CONFIG", "GET", "port"),
]  # fmt: skip


def plain(frame: Any) -> Any:
    return [plain(item) for item in frame.value] if isinstance(frame.value, list) else frame.value


def entries(connection: Connection) -> dict[str, list[Any]]:
    """Number, words and name of each entry, and the size where it is one (not of HELLO: its reply has an id in it)."""
    told: dict[str, list[Any]] = {}
    connection.call("CONFIG", "SET", "commandlog-request-larger-than", 50, "commandlog-reply-larger-than", 20,
                    "slowlog-log-slower-than", 0)  # fmt: skip
    for kind in ("slow", "large-request", "large-reply"):
        connection.call("COMMANDLOG", "RESET", kind)
    for said in SAID:
        connection.call(*said)
    connection.call("CONFIG", "SET", "slowlog-log-slower-than", 10_000)
    for kind in ("slow", "large-request", "large-reply"):
        found = plain(connection.call("COMMANDLOG", "GET", -1, kind))
        first = found[-1][0]
        told[kind] = [
            [number - first, None if kind == "slow" or words[0] == b"HELLO" else size, words, name]
            for number, _, size, words, _, name in found
            if words[0] != b"COMMANDLOG" and words[:2] != [b"CONFIG", b"SET"]
        ]
    return told


def test_the_same_entries(live_server: LiveServer) -> None:
    with emuredis.Emulator().serve() as server:
        ours, live = Connection(server.address), live_server.connect()
        try:
            mine, theirs = entries(ours), entries(live)
        finally:
            live.call(
                "CONFIG",
                "SET",
                "commandlog-request-larger-than",
                1 << 20,
                "commandlog-reply-larger-than",
                1 << 20,
            )
            ours.close()
            live.close()
    for kind, expected in theirs.items():
        assert mine[kind] == expected, kind
        assert len(expected) > 2


@pytest.mark.parametrize("slept", [0.005, 0.02])
def test_time_is_the_emulators(slept: float) -> None:
    emulator = emuredis.Emulator(
        clock=emuredis.ManualClock(),
        config={"slowlog-log-slower-than": 10_001, "enable-debug-command": "yes"},
    )
    with emulator.client() as client:
        client.call("DEBUG", "SLEEP", slept)
        found = client.call("SLOWLOG", "GET")
        assert [entry[2] for entry in found] == ([20_000] if slept > 0.01 else [])


def test_nothing_is_measured_by_default() -> None:
    emulator = emuredis.Emulator()
    assert not emulator.engine.observers
    with emulator.client() as client:
        client.call("CONFIG", "SET", "slowlog-log-slower-than", 0)
        assert emulator.engine.observers
        client.call("CONFIG", "SET", "slowlog-log-slower-than", 10_000)
    assert not emulator.engine.observers
    assert not emulator.engine.script_observers
