"""Faults: each does what it says, to whom it says, as often as it says; and one that never fired is told."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
import redis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

import emuredis
from emuredis.client import Client
from emuredis.clock import ManualClock
from emuredis.emulator import Emulator
from emuredis.errors import EmulatorError, ReplyError


@pytest.fixture
def emulator() -> Emulator:
    return Emulator(clock=ManualClock(), seed=1)


def code(client: Client, *args: Any) -> str:
    with pytest.raises(ReplyError) as caught:
        client.call(*args)
    return caught.value.message


def test_an_error_for_the_third_call_only(emulator: Emulator) -> None:
    client = emulator.client()
    with emulator.faults.error("INCR", "ERR no luck", nth=3) as fault:
        assert [client.call("INCR", "n"), client.call("INCR", "n")] == [1, 2]
        assert code(client, "INCR", "n") == "ERR no luck"
        assert client.call("INCR", "n") == 3
    assert (fault.seen, fault.fired) == (3, 1)
    assert emulator.engine.gates == []


@pytest.mark.parametrize(
    ("name", "args", "code_"),
    [
        ("readonly", (), "READONLY"), ("loading", (), "LOADING"), ("busy", (), "BUSY"), ("oom", (), "OOM"),
        ("moved", (12, "127.0.0.1:7001"), "MOVED 12 127.0.0.1:7001"),
    ],
)  # fmt: skip
def test_errors_with_a_code(emulator: Emulator, name: str, args: tuple[Any, ...], code_: str) -> None:
    client = emulator.client()
    with getattr(emulator.faults, name)("SET", *args):
        assert code(client, "SET", "k", "v").startswith(code_)
    assert client.call("EXISTS", "k") == 0


def test_by_key_client_and_command(emulator: Emulator) -> None:
    one, two = emulator.client(), emulator.client()
    two.call("CLIENT", "SETNAME", "worker")
    with emulator.faults.error(["MGET", "GET"], "ERR x", key="user:*", client="worker") as fault:
        assert one.call("GET", "user:1") is None
        assert two.call("GET", "other") is None
        assert two.call("SET", "user:1", "v") == b"OK"
        assert code(two, "MGET", "a", "user:1") == "ERR x"
        assert code(two, "GET", "user:2") == "ERR x"
    assert fault.fired == 2
    with emulator.faults.error("CONFIG SET", "ERR y"), emulator.faults.error("CLIENT", "ERR z"):
        assert code(one, "CONFIG", "SET", "maxmemory", "1") == "ERR y"
        assert one.call("CONFIG", "GET", "maxmemory") == {b"maxmemory": b"0"}
        assert code(one, "CLIENT", "ID") == "ERR z"


def test_times_and_probability(emulator: Emulator) -> None:
    client = emulator.client()
    with emulator.faults.error("PING", "ERR x", times=2):
        outcomes = []
        for _ in range(4):
            try:
                outcomes.append(client.call("PING"))
            except ReplyError:
                outcomes.append(None)
    assert outcomes == [None, None, b"PONG", b"PONG"]

    def failures(seed: int) -> list[int]:
        one = Emulator(seed=seed)
        mine = one.client()
        failed = []
        with one.faults.error("PING", "ERR x", probability=0.3):
            for number in range(100):
                try:
                    mine.call("PING")
                except ReplyError:
                    failed.append(number)
        return failed

    assert failures(7) == failures(7)
    assert 15 < len(failures(7)) < 45


def test_a_rule_that_never_fired_is_told(emulator: Emulator) -> None:
    with pytest.raises(
        AssertionError, match=r"this fault never fired, 1 calls matched: <Fault disconnect on GET nth=2>"
    ):
        with emulator.faults.disconnect("GET", nth=2):
            emulator.client().call("GET", "k")
    with emulator.faults.disconnect("GET", optional=True):
        pass
    emulator.faults.loading()
    with pytest.raises(AssertionError, match="LOADING"):
        emulator.faults.verify()
    emulator.faults.clear()
    emulator.faults.verify()
    with pytest.raises(ZeroDivisionError), emulator.faults.disconnect("GET"):
        _ = 1 / 0


@pytest.mark.parametrize(
    ("keywords", "why"),
    [
        ({"nth": 0}, "nth counts from 1"),
        ({"times": 0}, "times is at least 1"),
        ({"probability": 2}, "between 0 and 1"),
    ],
)
def test_rules_that_mean_nothing_are_refused(emulator: Emulator, keywords: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        emulator.faults.disconnect("GET", **keywords)
    with pytest.raises(EmulatorError, match="there is no command GTE"):
        emulator.faults.disconnect("GTE")
    assert emulator.faults.rules == []


def test_latency_is_on_the_clock(emulator: Emulator) -> None:
    client = emulator.client()
    client.call("SET", "k", "v", "PX", 100)
    with emulator.faults.latency("GET", 150):
        assert client.call("GET", "k") is None
    assert client.call("TIME")[1] == b"150000"


def test_disconnect_runs_nothing(emulator: Emulator) -> None:
    client = emulator.client()
    with emulator.faults.disconnect("SET"), pytest.raises(EmulatorError, match="closed the connection"):
        client.call("SET", "k", "v")
    assert emulator.client().call("EXISTS", "k") == 0


def test_a_lost_reply_was_run(emulator: Emulator) -> None:
    client = emulator.client()
    with emulator.faults.lose_reply("RPUSH"), pytest.raises(EmulatorError, match="closed the connection"):
        client.call("RPUSH", "l", "a")
    assert emulator.client().call("LRANGE", "l", 0, -1) == [b"a"]
    assert client.session.id not in emulator.engine.sessions


def test_a_lost_reply_of_a_blocked_command_loses_the_element(emulator: Emulator) -> None:
    other = emulator.client()
    errors: list[Exception] = []

    def pop() -> None:
        try:
            emulator.client().call("BLPOP", "l", 0)
        except EmulatorError as error:
            errors.append(error)

    with emulator.faults.lose_reply("BLPOP"):
        thread = threading.Thread(target=pop)
        thread.start()
        while not emulator.engine.waiting.count:
            pass
        other.call("RPUSH", "l", "x", "y")
        thread.join()
    assert len(errors) == 1
    assert other.call("LRANGE", "l", 0, -1) == [b"y"]


def test_a_transaction_whose_reply_is_lost_was_run(emulator: Emulator) -> None:
    client = emulator.client()
    client.call("MULTI")
    client.call("SET", "k", "v")
    with emulator.faults.lose_reply("EXEC"), pytest.raises(EmulatorError):
        client.call("EXEC")
    assert emulator.client().call("GET", "k") == b"v"
    client = emulator.client()
    client.call("MULTI")
    with emulator.faults.error("SET", "ERR x"):
        assert code(client, "SET", "k", "w") == "ERR x"
    assert code(client, "EXEC").startswith("EXECABORT")


def test_redis_py_sees_lost_connections(emulator: Emulator) -> None:
    client = emuredis.Redis(emulator=emulator, retry=Retry(NoBackoff(), 0))
    with emulator.faults.lose_reply("INCRBY"), pytest.raises(redis.ConnectionError):
        client.incr("n")
    assert client.get("n") == b"1"
    with emulator.faults.disconnect("INCRBY"), pytest.raises(redis.ConnectionError):
        client.incr("n")
    assert client.get("n") == b"1"
    retrying = emuredis.Redis(emulator=emulator)
    with emulator.faults.lose_reply("INCRBY", nth=1):
        assert retrying.incr("n") == 3  # at least once, here twice
    with emulator.faults.error("GET", "LOADING Valkey is loading the dataset in memory"):
        with pytest.raises(redis.BusyLoadingError):
            client.get("n")


def test_asyncio_sees_lost_connections(emulator: Emulator) -> None:
    async def go() -> None:
        import emuredis.asyncio

        client = emuredis.asyncio.Redis(emulator=emulator, retry=AsyncRetry(NoBackoff(), 0))
        with emulator.faults.lose_reply("INCRBY"), pytest.raises(redis.ConnectionError):
            await client.incr("n")
        assert await client.get("n") == b"1"
        with emulator.faults.error("GET", "ERR x"), pytest.raises(redis.ResponseError, match="x"):
            await client.get("n")
        await client.aclose()

    asyncio.run(go())


def test_a_server_restarts(emulator: Emulator) -> None:
    client, watcher = emulator.client(), emulator.client()
    client.call("SET", "k", "v")
    sha = client.call("SCRIPT", "LOAD", "return 1")
    run_id = client.call("INFO", "server")
    watcher.call("SUBSCRIBE", "c")
    with emulator.faults.restart("GET"), pytest.raises(EmulatorError):
        client.call("GET", "k")
    assert emulator.engine.sessions == {}
    client = emulator.client()
    assert client.call("GET", "k") == b"v"
    assert code(client, "EVALSHA", sha, 0).startswith("NOSCRIPT")
    assert client.call("PUBLISH", "c", "m") == 0
    assert client.call("INFO", "server") != run_id
    emulator.restart(keep_data=False)
    assert emulator.client().call("DBSIZE") == 0


def test_scripts_are_forgotten(emulator: Emulator) -> None:
    client = emulator.client()
    sha = client.call("SCRIPT", "LOAD", "return 1")
    with emulator.faults.script_flush():
        assert code(client, "EVALSHA", sha, 0).startswith("NOSCRIPT")
    mine = emuredis.Redis(emulator=emulator)
    script = mine.register_script("return 2")
    assert script() == 2
    with emulator.faults.script_flush(nth=1):
        assert script() == 2


def test_over_tcp(emulator: Emulator) -> None:
    with emulator.serve() as server:
        client = redis.Redis(*server.address, retry=Retry(NoBackoff(), 0))
        with emulator.faults.lose_reply("INCRBY"), pytest.raises(redis.ConnectionError):
            client.incr("n")
        assert client.get("n") == b"1"
        with emulator.faults.restart("GET"), pytest.raises(redis.ConnectionError):
            client.get("n")
        assert client.get("n") == b"1"
        client.close()
