"""Event loops, threads and what is left behind: cancelled tasks, other loops, nothing running unasked."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import emuredis
import emuredis.asyncio

from .doors import DOORS, Door

IN_PROCESS = [door for door in DOORS if door.asynchronous and door.kind != "tcp" and door.protocol == 3]
EACH = pytest.mark.parametrize("door", IN_PROCESS, ids=str)


def client_of(door: Door, emulator: emuredis.Emulator) -> Any:
    if door.kind == "short":
        return getattr(door.ours, door.client_name)(emulator=emulator, protocol=door.protocol)
    pool = (
        door.ours.pool(emulator, protocol=door.protocol)
        if door.kind == "lean"
        else door.library.ConnectionPool(connection_class=door.ours.Connection, emulator=emulator)
    )
    client = getattr(door.library, door.client_name)(connection_pool=pool)
    client.auto_close_connection_pool = True
    return client


# -- cancellation -------------------------------------------------------------------------------

CALLS: dict[str, Any] = {
    "blpop": lambda r: r.blpop("q", 0),
    "blmove": lambda r: r.blmove("q", "taken", 0),
    "bzpopmin": lambda r: r.bzpopmin("z", 0),
    "xread": lambda r: r.xread({"s": "$"}, block=0),
    "pipeline": lambda r: r.pipeline(transaction=False).blpop("q", 0).execute(),
}


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def cancelled_at(door: Door, call: str, point: int) -> None:
    """Cancel a blocking call after so many turns of the loop; then nothing of it may be left."""
    emulator = emuredis.Emulator()
    native = emulator.client()
    waiting = client_of(door, emulator)

    async def call_it() -> None:
        await CALLS[call](waiting)

    task = asyncio.ensure_future(call_it())
    await turns(point)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert emulator.engine.waiting.count == 0
    assert native.call("RPUSH", "q", "x") == 1
    native.call("ZADD", "z", 1, "x")
    native.call("XADD", "s", "*", "f", "v")
    await turns(3)
    assert (native.call("LLEN", "q"), native.call("ZCARD", "z"), native.call("EXISTS", "taken")) == (1, 1, 0)
    assert (await waiting.blpop("q", 0))[1] == b"x"
    await waiting.aclose()
    native.close()
    with emulator.engine.lock:
        emulator.engine.see_off()
    assert not emulator.engine.sessions


@EACH
@pytest.mark.parametrize("call", CALLS)
def test_a_call_cancelled_anywhere_leaves_nothing_behind(door: Door, call: str) -> None:
    async def main() -> None:
        for point in range(12):
            await cancelled_at(door, call, point)

    asyncio.run(main())


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_no_element_is_swallowed(seed: int) -> None:
    """Consumers are cancelled and made anew at random; every element reaches somebody.

    An element that had been handed over when its task was cancelled is lost, as over a network; such tasks are spared.
    """
    chance = random.Random(seed)

    async def main() -> None:
        emulator = emuredis.Emulator()
        door = chance.choice(IN_PROCESS)
        got: list[bytes] = []
        engine = emulator.engine

        async def consume(client: Any) -> None:
            while True:
                got.append((await client.blpop("q", 0))[1])

        clients = [client_of(door, emulator) for _ in range(3)]
        tasks = [asyncio.ensure_future(consume(client)) for client in clients]
        producer = emulator.client()
        for number in range(30):
            await turns(chance.randrange(4))
            at = chance.randrange(3)
            if chance.random() < 0.5:
                producer.call("RPUSH", "q", number)
            else:
                producer.call("RPUSH", "q", number)
                await turns(8)
            if chance.random() < 0.6 and engine.waiting.count == 3:
                tasks[at].cancel()
                await asyncio.gather(tasks[at], return_exceptions=True)
                tasks[at] = asyncio.ensure_future(consume(clients[at]))
        while len(got) < 30:
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for client in clients:
            await client.aclose()
        assert sorted(map(int, got)) == list(range(30))
        assert engine.waiting.count == 0

    asyncio.run(main())


# -- loops --------------------------------------------------------------------------------------


async def some_work(door: Door, clock: Any = None) -> list[Any]:
    emulator = emuredis.Emulator(clock=clock)
    client = client_of(door, emulator)
    other = client_of(door, emulator)
    pubsub = client.pubsub()
    await pubsub.subscribe("c")
    waiting = asyncio.ensure_future(client.blpop("q", 5))
    while emulator.engine.waiting.count == 0:
        await asyncio.sleep(0)
    await other.rpush("q", "x")
    await other.publish("c", "hello")
    lock = client.lock("l", timeout=5)
    async with client.pipeline() as pipe:
        batch = await pipe.incr("n").incr("n").execute()
    out = [
        await waiting,
        (await pubsub.get_message(timeout=5))["type"],
        (await pubsub.get_message(timeout=5))["data"],
        await lock.acquire(),
        await client.lock("l", blocking=False).acquire(),
        await lock.release(),
        batch,
        await client.blpop("nothing", 0.01 if clock is None else 5),
    ]
    await pubsub.aclose()
    await client.aclose()
    await other.aclose()
    return out


WORK = [[b"q", b"x"], "subscribe", b"hello", True, False, None, [1, 2], None]


@EACH
@pytest.mark.parametrize("manual", (False, True), ids=("system", "manual"))
def test_under_uvloop(door: Door, manual: bool) -> None:
    uvloop: Any = pytest.importorskip("uvloop")
    clock = emuredis.ManualClock() if manual else None
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        out = runner.run(some_work(door, clock))
    assert [list(out[0]), *out[1:]] == WORK


@EACH
def test_under_anyio(door: Door) -> None:
    anyio: Any = pytest.importorskip("anyio")

    async def main() -> None:
        emulator = emuredis.Emulator()
        client = client_of(door, emulator)
        got: list[Any] = []

        async def consume() -> None:
            got.append(await client.blpop("q", 0))

        async with anyio.create_task_group() as group:
            group.start_soon(consume)
            with anyio.move_on_after(0.02) as scope:
                await client_of(door, emulator).blpop("other", 0)
            assert scope.cancelled_caught
            await client.rpush("q", "x")
        assert list(got[0]) == [b"q", b"x"]
        with pytest.raises(TimeoutError):
            with anyio.fail_after(0.02):
                await client.blpop("q", 0)
        assert emulator.engine.waiting.count == 0
        await client.aclose()

    anyio.run(main)


@EACH
def test_one_client_in_several_loops(door: Door) -> None:
    emulator = emuredis.Emulator()
    client = client_of(door, emulator)

    async def use(number: int) -> Any:
        assert await client.set("k", number)
        assert await client.blpop("nothing", 0.001) is None
        value = await client.get("k")
        if number % 2:
            await client.connection_pool.disconnect()
        return value

    assert [asyncio.run(use(number)) for number in range(4)] == [b"0", b"1", b"2", b"3"]
    asyncio.run(client.aclose())


@EACH
def test_loops_in_threads_at_once(door: Door) -> None:
    emulator = emuredis.Emulator()
    sums: list[int] = []

    async def worker(number: int) -> None:
        client = client_of(door, emulator)
        if number % 2:
            for value in range(30):
                await client.rpush("q", value)
        else:
            total = 0
            for _ in range(30):
                total += int((await client.blpop("q", 30))[1])
            sums.append(total)
        await client.aclose()

    threads = [threading.Thread(target=lambda n=n: asyncio.run(worker(n))) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(sums) == 3 * sum(range(30)) and len(sums) == 3


def test_threads_at_once() -> None:
    client = emuredis.Redis()

    def work() -> None:
        for _ in range(200):
            client.incr("n")
            with client.pipeline() as pipe:
                pipe.incr("n").incr("m").execute()
            client.transaction(lambda p: (p.multi(), p.incr("t")), "t")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.mget("n", "m", "t") == [b"1600", b"800", b"800"]


# -- nothing unasked ----------------------------------------------------------------------------

QUIET = """
import asyncio, os, sys, threading
asyncio.run(asyncio.sleep(0))                       # what a loop opens for itself is closed again

def targets():
    # the sockets that are open
    paths = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    return {name for path in paths if os.path.exists(path) and (name := os.readlink(path)).startswith("socket")}

before = targets()
import emuredis, emuredis.asyncio

client = emuredis.Redis()
client.set("k", "v"); client.pipeline().incr("n").execute(); client.blpop("q", 0.01)
pubsub = client.pubsub(); pubsub.subscribe("c"); pubsub.get_message(timeout=0.01)
client.lock("l").acquire()
client.eval("return 1", 0)
emulator = emuredis.Emulator(clock=emuredis.ManualClock())
emuredis.Redis(emulator=emulator).blpop("q", 60)
with emuredis.patch():
    import redis
    redis.Redis("elsewhere").ping()
assert targets() == before, targets() - before
assert threading.enumerate() == [threading.main_thread()], threading.enumerate()

async def main():
    inside = targets()
    client = emuredis.asyncio.Redis(emulator=emulator)
    await client.set("k", "v"); await client.blpop("q", 60)
    pubsub = client.pubsub(); await pubsub.subscribe("c")
    assert not targets() - inside, targets() - inside
    assert threading.enumerate() == [threading.main_thread()]
    await pubsub.aclose(); await client.aclose()

asyncio.run(main())
print("quiet")
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc")
@pytest.mark.slow
def test_no_thread_and_no_socket_unless_asked_for() -> None:
    done = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, text=True, timeout=60)
    assert done.stdout == "quiet\n", done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_has_copies() -> None:
    client = emuredis.Redis()
    client.set("k", "parent")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - the child's side
        try:
            seen = client.get("k") or b"nothing"
            client.set("k", "child")
            pubsub = client.pubsub()
            pubsub.subscribe("c")
            os.write(write, seen + b" " + (client.get("k") or b""))
        finally:
            os._exit(0)
    os.close(write)
    assert os.read(read, 100) == b"parent child"
    os.close(read)
    os.waitpid(child, 0)
    assert client.get("k") == b"parent"
