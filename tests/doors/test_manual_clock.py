"""On a manual clock nothing takes real time, and nothing hangs."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import emuredis
import emuredis.asyncio
from emuredis import ManualClock, WaitForever


def make(**options: Any) -> tuple[ManualClock, Any]:
    clock = ManualClock(1000, **options)
    return clock, emuredis.Redis(emulator=emuredis.Emulator(clock=clock), decode_responses=True)


def test_a_time_out_moves_the_clock() -> None:
    clock, client = make()
    assert client.blpop("q", 90) is None
    assert clock.now_ms == 1_090_000
    assert client.blmove("q", "p", 3600) is None
    assert clock.now_ms == 4_690_000


def test_keys_expire_on_the_way() -> None:
    _clock, client = make()
    client.set("k", "v", ex=30)
    assert client.blpop("q", 29) is None
    assert client.get("k") == "v"
    assert client.blpop("q", 2) is None
    assert client.get("k") is None


def test_waiting_for_nobody_names_the_keys() -> None:
    _clock, client = make()
    with pytest.raises(WaitForever, match="BLPOP.*'q'.*'p'"):
        client.blpop(["q", "p"], 0)
    client.rpush("q", "x")
    assert client.llen("q") == 1, "the command that gave up must not take anything"


def test_a_clock_that_does_not_jump_is_an_error_too() -> None:
    clock, client = make(autojump=False)
    with pytest.raises(WaitForever, match="advance"):
        client.blpop("q", 5)
    assert clock.now_ms == 1_000_000


def test_advance_wakes_threads_in_the_order_of_their_deadlines() -> None:
    clock, client = make(autojump=False)
    done: list[int] = []
    emulator = client.emulator
    threads = []
    for seconds in (30, 10, 20):
        other = emuredis.Redis(emulator=emulator)
        threads.append(threading.Thread(target=lambda r=other, s=seconds: (r.blpop("q", s), done.append(s))))
        threads[-1].start()
    while client.info("clients")["blocked_clients"] < 3:
        pass
    clock.advance(10_000)
    while len(done) < 1:
        pass
    clock.advance(100_000)
    for thread in threads:
        thread.join()
    assert done[0] == 10
    assert sorted(done) == [10, 20, 30]


def test_a_lock_with_a_time_to_live() -> None:
    clock, client = make()
    first, second = client.lock("l", timeout=10), client.lock("l", timeout=10, blocking=False)
    assert first.acquire()
    assert not second.acquire()
    clock.advance(10_000)
    assert second.acquire()
    assert not first.owned()


def test_waiting_for_a_lock_takes_no_real_time() -> None:
    clock, client = make()
    assert client.lock("l", timeout=10).acquire()
    assert not client.lock("l", timeout=10).acquire(blocking_timeout=5)
    assert client.lock("l", timeout=10).acquire()
    assert 1_010_000 <= clock.now_ms <= 1_010_200
    client.set("held", "for ever")
    assert not client.lock("held", blocking_timeout=30).acquire()
    with pytest.raises(WaitForever, match="held"):
        client.lock("held").acquire()
    with client.lock("free"):
        assert client.exists("free")


def test_get_message_waits_on_the_clock() -> None:
    clock, client = make()
    pubsub = client.pubsub(ignore_subscribe_messages=True)
    pubsub.subscribe("ch")
    assert pubsub.get_message(timeout=1) is None
    before = clock.now_ms
    assert pubsub.get_message(timeout=5) is None
    assert clock.now_ms == before + 5000
    client.publish("ch", "x")
    assert pubsub.get_message(timeout=5)["data"] == "x"
    assert clock.now_ms == before + 5000
    pubsub.close()


def test_a_subscriber_hears_of_keys_that_expire_meanwhile() -> None:
    clock, client = make()
    client.config_set("notify-keyspace-events", "Ex")
    pubsub = client.pubsub(ignore_subscribe_messages=True)
    pubsub.subscribe("__keyevent@0__:expired")
    assert pubsub.get_message(timeout=1) is None
    client.set("k", "v", ex=60)
    before = clock.now_ms
    assert pubsub.get_message(timeout=3600)["data"] == "k"
    assert clock.now_ms == before + 60_000
    pubsub.close()


def test_listening_to_nobody_names_the_channels() -> None:
    _clock, client = make()
    pubsub = client.pubsub()
    pubsub.subscribe("ch")
    assert next(pubsub.listen())["type"] == "subscribe"
    with pytest.raises(WaitForever, match="'ch'"):
        next(pubsub.listen())
    pubsub.close()


# -- tasks -------------------------------------------------------------------------------------


def run(main: Any) -> Any:
    async def whole() -> Any:
        clock = ManualClock(1000)
        client = emuredis.asyncio.Redis(emulator=emuredis.Emulator(clock=clock), decode_responses=True)
        try:
            return await main(clock, client)
        finally:
            await client.aclose()

    return asyncio.run(whole())


def test_an_idle_loop_jumps() -> None:
    async def main(clock: ManualClock, client: Any) -> Any:
        found = await asyncio.gather(client.blpop("a", 100), client.blpop("b", 50), client.bzpopmin("c", 75))
        return found, clock.now_ms

    assert run(main) == ([None, None, None], 1_100_000)


def test_a_loop_with_something_to_do_does_not_jump() -> None:
    async def main(clock: ManualClock, client: Any) -> Any:
        async def work() -> None:
            for _ in range(100):
                await asyncio.sleep(0)
            await client.rpush("q", "x")

        worker = asyncio.ensure_future(work())
        found = await client.blpop("q", 10)
        await worker
        return tuple(found), clock.now_ms

    assert run(main) == (("q", "x"), 1_000_000)


def test_a_short_sleep_is_something_to_do() -> None:
    async def main(clock: ManualClock, client: Any) -> Any:
        loop = asyncio.get_running_loop()
        loop.call_later(0.02, lambda: asyncio.ensure_future(client.rpush("q", "x")))
        return tuple(await client.blpop("q", 10)), clock.now_ms

    assert run(main) == (("q", "x"), 1_000_000)


def test_a_far_time_limit_is_none() -> None:
    async def main(clock: ManualClock, client: Any) -> Any:
        async with asyncio.timeout(60):
            return await client.blpop("q", 10), clock.now_ms

    assert run(main) == (None, 1_010_000)


def test_a_task_that_waits_for_nobody() -> None:
    async def main(clock: ManualClock, client: Any) -> Any:
        with pytest.raises(WaitForever, match="BLPOP.*'q'"):
            await client.blpop("q", 0)
        await client.rpush("q", "x")
        return await client.llen("q")

    assert run(main) == 1


def test_a_thread_of_the_executor_is_somebody() -> None:
    async def main(clock: ManualClock, client: Any) -> Any:
        loop = asyncio.get_running_loop()
        go = threading.Event()

        async def work() -> None:
            await loop.run_in_executor(None, go.wait)
            await client.rpush("q", "x")

        worker = asyncio.ensure_future(work())
        loop.call_later(0.05, go.set)
        found = await client.blpop("q", 0)
        await worker
        return tuple(found), clock.now_ms

    assert run(main) == (("q", "x"), 1_000_000)


def test_tasks_hand_over_while_time_passes() -> None:
    async def main(clock: ManualClock, client: Any) -> Any:
        seen: list[object] = []

        async def ticker() -> None:
            for number in range(3):
                await client.blpop("never", 10)
                await client.rpush("q", number)

        async def reader() -> None:
            for _ in range(3):
                seen.append((await client.blpop("q", 100))[1])
                seen.append(clock.now_ms)

        await asyncio.gather(ticker(), reader())
        return seen

    assert run(main) == ["0", 1_010_000, "1", 1_020_000, "2", 1_030_000]


def test_waiting_for_a_lock_in_a_task_takes_no_real_time() -> None:
    async def main(clock: ManualClock, client: Any) -> Any:
        assert await client.lock("l", timeout=10).acquire()
        assert not await client.lock("l", timeout=10).acquire(blocking_timeout=5)
        assert await client.lock("l", timeout=10).acquire()
        after = clock.now_ms
        await client.set("held", "for ever")
        with pytest.raises(WaitForever, match="held"):
            await client.lock("held").acquire()

        async def hold() -> None:
            async with client.lock("mine"):
                await client.blpop("never", 7)

        holder = asyncio.ensure_future(hold())
        await asyncio.sleep(0)
        async with client.lock("mine"):
            await holder
        return after

    assert 1_010_000 <= run(main) <= 1_010_200


def test_get_message_of_a_task_waits_on_the_clock() -> None:
    async def main(clock: ManualClock, client: Any) -> Any:
        pubsub = client.pubsub(ignore_subscribe_messages=True)
        await pubsub.subscribe("ch")
        first = await pubsub.get_message(timeout=1)
        before = clock.now_ms
        second = await pubsub.get_message(timeout=5)
        waited = clock.now_ms - before
        await client.publish("ch", "x")
        third = await pubsub.get_message(timeout=5)
        await pubsub.aclose()
        return first, second, waited, third["data"]

    assert run(main) == (None, None, 5000, "x")


def test_a_subscriber_in_the_background_hears_the_foreground() -> None:
    async def main(clock: ManualClock, client: Any) -> Any:
        pubsub = client.pubsub(ignore_subscribe_messages=True)
        await pubsub.subscribe("ch")
        seen: list[str] = []

        async def listen() -> None:
            async for message in pubsub.listen():
                seen.append(message["data"])
                if message["data"] == "stop":
                    return

        task = asyncio.ensure_future(listen())
        for text in ("a", "b", "stop"):
            await client.blpop("nothing", 60)
            await client.publish("ch", text)
        await task
        await pubsub.aclose()
        return seen, clock.now_ms

    assert run(main) == (["a", "b", "stop"], 1_180_000)


# -- while somebody unseen might act: a thread that made the emulator and only waits for others ------


def ends(work: Any) -> bool:
    """Whether ``work`` ends in a thread of its own while this thread, which uses the emulator too, does nothing."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(10)
    return not thread.is_alive()


def test_a_nap_takes_no_longer_than_it_would_in_real_time() -> None:
    clock, client = make()
    pubsub = client.pubsub()
    pubsub.subscribe("c")
    pubsub.get_message()
    assert ends(lambda: pubsub.get_message(timeout=0.01))
    assert clock.now_ms == 1_000_000, "time is still for the one who could act"


def test_locks_are_handed_over_while_their_maker_waits() -> None:
    _clock, client = make()
    emulator, count = client.emulator, 0

    def work() -> None:
        nonlocal count
        for _ in range(3):
            with emuredis.Redis(emulator=emulator).lock("l", timeout=100, sleep=0.001):
                count += 1

    threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert count == 9


def test_a_nap_of_a_task_takes_no_longer_than_it_would_in_real_time() -> None:
    _clock, client = make()
    emulator, got = client.emulator, []

    async def main() -> None:
        async with emuredis.asyncio.Redis(emulator=emulator) as r, r.pubsub() as pubsub:
            await pubsub.subscribe("c")
            await pubsub.get_message(timeout=0.01)
            got.append(await pubsub.get_message(timeout=0.01))

    assert ends(lambda: asyncio.run(main()))
    assert got == [None]


def test_a_task_that_nobody_serves_is_told_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emuredis.redispy.idle.PATIENCE", 0.05)
    _clock, client = make()
    emulator, told = client.emulator, []

    async def main() -> None:
        async with emuredis.asyncio.Redis(emulator=emulator) as r:
            with pytest.raises(WaitForever, match="BLPOP.*'q'"):
                await r.blpop("q", 0)
            told.append(True)

    assert ends(lambda: asyncio.run(main()))
    assert told
