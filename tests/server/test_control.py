"""EMUREDIS: control over the wire, by plain sockets' means."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis

import emuredis
from emuredis.server import Server
from emuredis.spec import TABLE


@pytest.fixture
def server() -> Iterator[Server]:
    with emuredis.Emulator(clock=emuredis.ManualClock(), seed=1).serve(control=True) as running:
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[Any]:
    with redis.Redis(port=server.port, decode_responses=True, retry=None) as client:
        yield client


def ask(client: Any, *words: Any) -> Any:
    return client.execute_command("EMUREDIS", *words)


def test_the_clock(client: Any) -> None:
    start = ask(client, "CLOCK")
    assert ask(client, "CLOCK", "NOW") == start == 1_704_067_200_000
    client.set("k", "v", px=100)
    assert ask(client, "CLOCK", "ADVANCE", 99) == start + 99
    assert client.pttl("k") == 1
    assert ask(client, "clock", "next") == 1
    assert client.exists("k") == 0
    assert ask(client, "CLOCK", "NEXT") is None
    assert ask(client, "CLOCK", "SET", start + 5000) == start + 5000
    assert client.time() == ((start + 5000) // 1000, 0)
    for words in (
        ("ADVANCE",),
        ("ADVANCE", "-1"),
        ("ADVANCE", "x"),
        ("ADVANCE", "nan"),
        ("BACK",),
        ("NOW", 1),
    ):
        with pytest.raises(redis.ResponseError):
            ask(client, "CLOCK", *words)


def test_a_blocked_client_wakes_when_told(server: Server, client: Any) -> None:
    got: list[Any] = []
    with redis.Redis(port=server.port, socket_timeout=None) as other:
        thread = threading.Thread(target=lambda: got.append(other.blpop("q", 30)))
        thread.start()
        while client.info("clients")["blocked_clients"] == 0:
            pass
        with pytest.raises(redis.ResponseError, match="clients are blocked"):
            ask(client, "SNAPSHOT")
        ask(client, "CLOCK", "ADVANCE", 30_000)
        thread.join(10)
    assert got == [None]


def test_faults(client: Any) -> None:
    assert ask(client, "FAULT", "ADD", "ERROR", "get", "ERR injected", "KEY", "a*", "TIMES", 1) == 1
    assert ask(client, "FAULT", "ADD", "LATENCY", "set,incr", 50) == 2
    assert ask(client, "FAULT", "ADD", "READONLY", "*", "NTH", 400) == 3
    before = ask(client, "CLOCK")
    client.set("b", 1)
    assert ask(client, "CLOCK") == before + 50
    assert client.get("b") == "1"
    with pytest.raises(redis.ResponseError, match="injected"):
        client.get("abc")
    assert client.get("abc") is None
    rows = ask(client, "FAULT", "LIST")
    assert [(row[0], row[2], row[3]) for row in rows][:2] == [(1, 1, 1), (2, 1, 1)]
    assert ask(client, "FAULT", "CLEAR") == "OK"
    assert ask(client, "FAULT", "LIST") == []
    assert ask(client, "FAULT", "ADD", "DISCONNECT", "get") == 4
    with pytest.raises(redis.ConnectionError):
        client.get("b")
    assert ask(client, "FAULT", "CLEAR") == "OK"
    for words in (("ERROR", "get"), ("NOSUCH", "get"), ("OOM", "nosuch"), ("OOM", "get", "NTH"),
                  ("OOM", "get", "NTH", 0), ("OOM", "get", "X", 1), ("RESTART", "get", "MAYBE"), ("OOM",)):  # fmt: skip
        with pytest.raises(redis.ResponseError):
            ask(client, "FAULT", "ADD", *words)
    assert ask(client, "FAULT", "LIST") == []


def test_snapshots(client: Any) -> None:
    client.set("k", "before")
    script = client.script_load("return 1")
    at = ask(client, "CLOCK")
    assert ask(client, "SNAPSHOT") == ask(client, "SNAPSHOT", "named") == "OK"
    client.set("k", "after")
    client.script_flush()
    ask(client, "CLOCK", "ADVANCE", 1000)
    assert ask(client, "RESTORE", "named") == "OK"
    assert (client.get("k"), ask(client, "CLOCK"), client.script_exists(script)) == ("before", at, [True])
    client.flushall()
    ask(client, "RESTORE")
    assert client.get("k") == "before"
    with pytest.raises(redis.ResponseError, match="there is no snapshot 'other'"):
        ask(client, "RESTORE", "other")


def test_the_journal(client: Any) -> None:
    client.set("k", "v")
    client.get("k")
    entries = [json.loads(line) for line in ask(client, "JOURNAL", 2)]
    assert [(entry["command"], entry["args"]) for entry in entries] == [
        ("set", ["SET", "k", "v"]),
        ("get", ["GET", "k"]),
    ]
    assert ask(client, "JOURNAL", "CLEAR") == "OK"
    assert ask(client, "JOURNAL") == []


def test_it_shows_nowhere(client: Any) -> None:
    assert ask(client, "HELP")[0].startswith("EMUREDIS <subcommand>")
    with pytest.raises(redis.ResponseError, match=r"unknown subcommand 'NOSUCH'. Try EMUREDIS HELP"):
        ask(client, "NOSUCH")
    with pytest.raises(redis.ResponseError, match="wrong number of arguments for 'emuredis' command"):
        ask(client)
    for name in ("emuredis", "EMUREDIS"):
        assert client.execute_command("COMMAND INFO", name) in ([None], {})
        assert not client.execute_command("COMMAND DOCS", name)
    assert client.command_count() == len(TABLE.commands())
    assert "emuredis" not in client.command_list()
    with pytest.raises(redis.ResponseError, match="not allowed from script"):
        client.eval("return redis.call('EMUREDIS', 'CLOCK')", 0)
    client.execute_command("MULTI")
    with pytest.raises(redis.ResponseError, match="not allowed inside a transaction"):
        ask(client, "CLOCK")


def test_without_the_flag_it_is_unknown() -> None:
    emulator = emuredis.Emulator()
    with emulator.serve() as server, redis.Redis(port=server.port) as client:
        with pytest.raises(redis.ResponseError, match="unknown command 'EMUREDIS'"):
            ask(client, "HELP")
    with emulator.serve(control=True) as server, redis.Redis(port=server.port) as client:
        assert ask(client, "CLOCK") > 0
        with pytest.raises(redis.ResponseError, match="serve with --clock manual"):
            ask(client, "CLOCK", "ADVANCE", 1)


def test_the_command_line(tmp_path: Any) -> None:
    path = str(tmp_path / "s.sock")
    words = [
        "serve",
        "--unix",
        path,
        "--clock",
        "manual",
        "--control",
        "--server-version",
        "7.0",
        "--server-type",
        "redis",
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "emuredis", *words], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and "ready on" in process.stdout.readline()
        with redis.Redis(unix_socket_path=path) as client:
            before = ask(client, "CLOCK")
            assert ask(client, "CLOCK", "ADVANCE", 1000) == before + 1000
            with pytest.raises(redis.ResponseError, match="unknown command 'HEXPIRE'"):
                client.hexpire("h", 1, "f")
        process.terminate()
    done = subprocess.run(
        [sys.executable, "-m", "emuredis", "serve", "--server-version", "x"], capture_output=True, text=True
    )
    assert done.returncode == 2 and "a version is like" in done.stderr
