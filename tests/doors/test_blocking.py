"""Blocking commands: from threads and from tasks, served first come first served, cancelled, timed out."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any

import pytest
import redis

import emuredis
import emuredis.asyncio

from .doors import Body, Door, World, problem


async def what_is_there_is_taken(w: World) -> list[object]:
    r, got = w.client(), w.got
    await got(r.rpush("q", "a", "b", "c", "d"))
    await got(r.zadd("z", {"m": 1, "n": 2}))
    return [
        await got(r.blpop("q", 0)),
        await got(r.brpop(["nosuch", "q"], 1)),
        await got(r.blmove("q", "p", 0, "LEFT", "RIGHT")),
        await got(r.brpoplpush("q", "p", 0)),
        await got(r.blmpop(0, 1, "p", direction="LEFT", count=2)),
        await got(r.bzpopmin("z", 0)),
        await got(r.bzpopmax("z", 0)),
        await got(r.exists("q", "p", "z")),
    ]


async def times_out(w: World) -> list[object]:
    r, got = w.client(), w.got
    return [
        await got(r.blpop("q", 0.01)),
        await got(r.brpop(["q", "p"], 0.01)),
        await got(r.blmove("q", "p", 0.01)),
        await got(r.brpoplpush("q", "p", 0.01)),
        await got(r.blmpop(0.01, 1, "p", direction="LEFT")),
        await got(r.bzpopmin("z", 0.01)),
        await w.tried(lambda: r.blpop("q", -1)),
        await w.tried(lambda: r.blpop("q", "x")),
    ]


# The live server looks at time-outs ten times a second only.
BODIES = [what_is_there_is_taken, pytest.param(times_out, marks=pytest.mark.slow)]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_body(check, body: Body) -> None:
    check(body)


# -- several at once ---------------------------------------------------------------------------


def until_blocked(client: Any, count: int) -> None:
    """Return when ``count`` connections are blocked on the server."""
    while client.info("clients")["blocked_clients"] < count:
        pass


def serving(door: Door, address: Any, live: Any = None) -> list[object]:
    """Three threads wait on one list; they are served in the order in which they came."""
    world = World(door, address)
    out: list[object] = []
    clients = [world.client() for _ in range(4)]
    producer = clients[3]
    taken: dict[int, Any] = {}
    threads = []
    for number in range(3):
        threads.append(threading.Thread(target=lambda n=number: taken.update({n: clients[n].blpop("q", 0)})))
        threads[-1].start()
        until_blocked(producer, number + 1)
    out.append(producer.rpush("q", "first"))
    threads[0].join()
    out.append(producer.rpush("q", "second", "third", "left"))
    for thread in threads:
        thread.join()
    out += [list(taken[0]), list(taken[1]), list(taken[2]), producer.lrange("q", 0, -1)]
    for client in clients:
        client.close()
    return out


SYNC = [Door(kind, False, protocol) for kind in ("short", "lean", "stock", "tcp") for protocol in (2, 3)]


@pytest.mark.parametrize("door", SYNC, ids=str)
def test_threads_are_served_first_come_first_served(door: Door, address: Any) -> None:
    assert serving(door, address) == [
        1,
        3,
        [b"q", b"first"],
        [b"q", b"second"],
        [b"q", b"third"],
        [b"left"],
    ]


def test_the_live_server_serves_in_the_same_order(live_server) -> None:
    door = Door("live", False, 3)
    connection = live_server.connect()
    connection.call("FLUSHALL")
    connection.close()
    assert serving(door, ("127.0.0.1", live_server.port))[2:] == [
        [b"q", b"first"],
        [b"q", b"second"],
        [b"q", b"third"],
        [b"left"],
    ]


async def tasks_are_served(w: World) -> list[object]:
    waiting, producer = w.client(), w.client()
    tasks = []
    for number in range(3):
        tasks.append(asyncio.ensure_future(waiting.blpop("q", 0)))
        while (await producer.info("clients"))["blocked_clients"] <= number:
            await asyncio.sleep(0)
    out: list[object] = [await producer.rpush("q", "a", "b", "c", "d")]
    out += await asyncio.gather(*tasks)
    out.append(await producer.lrange("q", 0, -1))
    return out


async def a_cancelled_call_takes_nothing(w: World) -> list[object]:
    waiting, producer = w.client(), w.client()
    out: list[object] = []
    for key in ("q", "p"):
        task = asyncio.ensure_future(waiting.blpop(key, 0))
        while (await producer.info("clients"))["blocked_clients"] < 1:
            await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            out.append("cancelled")
        while (await producer.info("clients"))["blocked_clients"] > 0:
            await asyncio.sleep(0)
        out.append(await producer.rpush(key, "x"))
    out.append(await waiting.lrange("q", 0, -1))
    out.append(await waiting.blpop("p", 1))
    return out


async def wait_for_gives_up(w: World) -> list[object]:
    waiting, producer = w.client(), w.client()
    out: list[object] = []
    try:
        await asyncio.wait_for(waiting.blpop("q", 0), 0.03)
    except TimeoutError:
        out.append("timed out")
    while (await producer.info("clients"))["blocked_clients"] > 0:
        await asyncio.sleep(0)
    out.append(await producer.rpush("q", "x"))
    out.append(await producer.llen("q"))
    return out


async def a_blocked_pipeline_goes_on(w: World) -> list[object]:
    waiting, producer = w.client(), w.client()
    p = waiting.pipeline(transaction=False)
    p.set("before", 1).blpop("q", 0).set("after", 1)
    task = asyncio.ensure_future(p.execute())
    while (await producer.info("clients"))["blocked_clients"] < 1:
        await asyncio.sleep(0)
    out: list[object] = [await producer.exists("before", "after"), await producer.rpush("q", "x"), await task]
    out.append(await producer.exists("before", "after"))
    return out


ASYNC = [Door(kind, True, protocol) for kind in ("short", "lean", "stock", "tcp") for protocol in (2, 3)]
ASYNC_BODIES: list[Body] = [
    tasks_are_served,
    a_cancelled_call_takes_nothing,
    wait_for_gives_up,
    a_blocked_pipeline_goes_on,
]


@pytest.mark.parametrize("body", ASYNC_BODIES, ids=lambda body: body.__name__)
@pytest.mark.parametrize("door", ASYNC, ids=str)
def test_tasks(door: Door, check, body: Body) -> None:
    check(body)


# -- only in process ---------------------------------------------------------------------------


def test_a_task_that_polls_lets_the_others_run() -> None:
    async def main() -> object:
        client = emuredis.asyncio.Redis()

        async def poll() -> object:
            while not (value := await client.get("k")):
                pass
            return value

        async def set_later() -> None:
            await client.set("k", "v")

        found, _ = await asyncio.gather(poll(), set_later())
        await client.aclose()
        return found

    assert asyncio.run(main()) == b"v"


@pytest.mark.parametrize("protocol", (2, 3))
def test_a_thread_and_a_task_meet(protocol: int) -> None:
    emulator = emuredis.Emulator()
    producer = emuredis.Redis(emulator=emulator)

    async def main() -> object:
        client = emuredis.asyncio.Redis(emulator=emulator, protocol=protocol)
        task = asyncio.ensure_future(client.blpop("q", 0))
        await asyncio.sleep(0)
        thread = threading.Thread(target=lambda: producer.rpush("q", "from a thread"))
        thread.start()
        found = await task
        thread.join()
        await client.aclose()
        return found

    assert asyncio.run(main()) in ([b"q", b"from a thread"], (b"q", b"from a thread"))


def test_socket_timeout_counts_on_a_system_clock() -> None:
    client = emuredis.Redis(socket_timeout=0.02, retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0))
    with pytest.raises(redis.TimeoutError):
        client.blpop("q", 0)
    # The command went with its connection: nothing takes what comes later.
    client.rpush("q", "x")
    assert client.llen("q") == 1


def test_interrupting_a_thread_takes_the_command_back() -> None:
    emulator = emuredis.Emulator()
    client, other = emuredis.Redis(emulator=emulator), emuredis.Redis(emulator=emulator)
    seen: list[object] = []

    def wait() -> None:
        try:
            client.blpop("q", 0)
        except redis.RedisError as error:
            seen.append(problem(error))

    thread = threading.Thread(target=wait)
    thread.start()
    until_blocked(other, 1)
    blocked = next(item for item in other.client_list() if "b" in item["flags"])
    assert other.client_unblock(int(blocked["id"]), error=True) == 1
    thread.join()
    assert seen == [("ResponseError", "UNBLOCKED client unblocked via CLIENT UNBLOCK")]
    other.rpush("q", "x")
    assert other.llen("q") == 1


def test_closing_a_client_ends_the_wait_of_another_thread() -> None:
    emulator = emuredis.Emulator()
    waiting, other = emulator.client(), emulator.client()
    ended: list[object] = []

    def wait() -> None:
        try:
            ended.append(waiting.call("BLPOP", "q", 0))
        except emuredis.EmulatorError as error:
            ended.append(str(error))

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    while b"blocked_clients:1" not in other.call("INFO", "clients"):
        pass
    waiting.close()
    thread.join(5)
    assert ended == ["the connection was closed while its command was blocked"]
    assert other.call("RPUSH", "q", "x") == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_a_child_finds_the_emulator_unlocked() -> None:
    emulator = emuredis.Emulator()
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with emulator.engine.lock:
            inside.set()
            leave.wait(5)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(5)
    threading.Timer(0.01, leave.set).start()
    child = os.fork()
    if child == 0:
        free = emulator.engine.lock.acquire(timeout=1)
        os._exit(0 if free and emulator.client().call("INCR", "n") == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join()
    assert emulator.client().call("EXISTS", "n") == 0, "the child's writes are its own"
