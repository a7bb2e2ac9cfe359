"""What client packages offer beside commands, on every door in process: hooks, threads, credentials, retries."""

from __future__ import annotations

import asyncio
import threading
from importlib import import_module
from typing import Any

import pytest

import emuredis
import emuredis.asyncio

from .doors import DOORS, PACKAGES, Door
from .test_loops import client_of

SYNC = [door for door in DOORS if not door.asynchronous and door.kind != "tcp"]
ASYNC = [door for door in DOORS if door.asynchronous and door.kind != "tcp"]
EACH_SYNC = pytest.mark.parametrize("door", SYNC, ids=str)
EACH_ASYNC = pytest.mark.parametrize("door", ASYNC, ids=str)


@EACH_SYNC
def test_pubsub_in_a_thread(door: Door) -> None:
    emulator = emuredis.Emulator()
    client, publisher = client_of(door, emulator), emulator.client()
    heard: list[Any] = []
    arrived = threading.Event()

    def hear(message: Any) -> None:
        heard.append(message["data"])
        arrived.set()

    pubsub = client.pubsub(ignore_subscribe_messages=True)
    pubsub.subscribe(c=hear)
    thread = pubsub.run_in_thread(sleep_time=0.01)
    for text in (b"one", b"two"):
        arrived.clear()
        assert publisher.call("PUBLISH", "c", text) == 1
        assert arrived.wait(10)
    thread.stop()
    thread.join(10)
    assert heard == [b"one", b"two"] and not thread.is_alive()
    assert publisher.call("PUBSUB", "NUMSUB", "c") == [b"c", 0]


@EACH_SYNC
@pytest.mark.parametrize("manual", (False, True), ids=("system", "manual"))
def test_locks(door: Door, manual: bool) -> None:
    client = client_of(door, emuredis.Emulator(clock=emuredis.ManualClock() if manual else None))
    with client.lock("l", timeout=5) as lock:
        assert lock.owned() and lock.locked()
        assert not client.lock("l", blocking=False).acquire()
        assert not client.lock("l", sleep=0.001).acquire(blocking=True, blocking_timeout=0.005)
        lock.extend(5)
        lock.reacquire()
    with pytest.raises(door.error("LockError")):
        lock.release()
    if manual and door.kind == "short":
        first, second = client.lock("l", timeout=60), client.lock("l", timeout=60)
        assert first.acquire() and second.acquire()  # the clock goes on to where the first one ends
        with pytest.raises(door.error("LockError")):
            first.release()


@EACH_ASYNC
def test_asyncio_locks(door: Door) -> None:
    async def main() -> None:
        client = client_of(door, emuredis.Emulator())
        order: list[str] = []

        async def work(name: str) -> None:
            async with client.lock("l", timeout=5, sleep=0.001):
                order.append(f"{name} in")
                await asyncio.sleep(0)
                order.append(f"{name} out")

        await asyncio.gather(work("a"), work("b"))
        assert order in (["a in", "a out", "b in", "b out"], ["b in", "b out", "a in", "a out"])
        await client.aclose()

    asyncio.run(main())


@EACH_SYNC
def test_transaction_callbacks(door: Door) -> None:
    emulator = emuredis.Emulator()
    client, other = client_of(door, emulator), emulator.client()
    tries = []

    def double(pipe: Any) -> str:
        value = int(pipe.get("n") or 0)
        tries.append(value)
        if len(tries) < 3:
            other.call("INCR", "n")  # somebody else is faster
        pipe.multi()
        pipe.set("n", value * 2)
        return "told"

    client.set("n", 5)
    assert client.transaction(double, "n") == [True]
    assert (tries, client.get("n")) == ([5, 6, 7], b"14")
    assert client.transaction(double, "n", value_from_callable=True) == "told"


@EACH_ASYNC
def test_asyncio_transaction_callbacks(door: Door) -> None:
    async def main() -> None:
        client = client_of(door, emuredis.Emulator())

        async def raise_it(pipe: Any) -> None:
            value = int(await pipe.get("n") or 0)
            pipe.multi()
            pipe.set("n", value + 1)

        assert await client.transaction(raise_it, "n") == [True]
        assert await client.get("n") == b"1"
        script = client.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
        assert await script(keys=["n"], args=[4]) == 5
        await client.aclose()

    asyncio.run(main())


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("protocol", (2, 3))
def test_credentials_and_connect_hooks(package: str, protocol: int) -> None:
    library: Any = import_module(package)
    provider_base: Any = import_module(f"{package}.credentials").CredentialProvider
    ours: Any = import_module("emuredis.redispy" if package == "redis" else "emuredis.valkey")
    asked: list[int] = []

    class Provider(provider_base):  # type: ignore[misc]
        def get_credentials(self) -> tuple[str, str]:
            asked.append(1)
            return "default", "secret"

    emulator = emuredis.Emulator(config={"requirepass": "secret"})
    client = getattr(ours, package.capitalize())(
        emulator=emulator, credential_provider=Provider(), protocol=protocol
    )
    assert client.set("k", "v") and client.get("k") == b"v"
    assert asked == [1]
    client.connection_pool.disconnect()
    assert client.get("k") == b"v" and len(asked) == 2

    hooked: list[Any] = []

    def on_connect(connection: Any) -> None:
        hooked.append(connection)
        connection.on_connect()

    other = getattr(ours, package.capitalize())(**{f"{package}_connect_func": on_connect}, protocol=protocol)
    assert other.ping() and other.ping()
    assert len(hooked) == 1 and isinstance(hooked[0], library.connection.AbstractConnection)


@pytest.mark.parametrize("door", [door for door in SYNC if door.kind != "stock"], ids=str)
def test_retries(door: Door) -> None:
    """A lost connection is made again as often as the client was told."""
    emulator = emuredis.Emulator()
    maker: Any = getattr(door.ours, door.client_name)
    errors = [door.error("ConnectionError")]
    client = maker(emulator=emulator, retry=door.retry(2), retry_on_error=errors, protocol=door.protocol)
    with emulator.faults.disconnect("GET", times=2):
        assert client.get("k") is None
    with emulator.faults.disconnect("GET", times=3):
        with pytest.raises(door.error("ConnectionError")):
            client.get("k")
    with emulator.faults.loading("GET", times=1):
        with pytest.raises(door.error("BusyLoadingError")):
            maker(emulator=emulator, retry=door.retry(0)).get("k")


@EACH_SYNC
def test_encodings(door: Door) -> None:
    emulator = emuredis.Emulator()
    options = {"encoding": "latin-1", "decode_responses": True, "protocol": door.protocol}
    if door.kind == "short":
        client = getattr(door.ours, door.client_name)(emulator=emulator, **options)
    else:
        client = getattr(door.library, door.client_name)(connection_pool=door.ours.pool(emulator, **options))
    client.set("é", "ü")
    assert client.get("é") == "ü"
    assert emulator.client().call("GET", b"\xe9") == b"\xfc"
    client.hset("h", mapping={"ß": 1})
    assert client.hgetall("h") == {"ß": "1"}


def test_events_of_redis_py() -> None:
    event: Any = pytest.importorskip("redis.event")
    if not hasattr(event, "AfterConnectionReleasedEvent"):
        pytest.skip("this version has no such event")
    if import_module("redis").VERSION < (7, 2):
        pytest.skip("pools of this version tell nobody")
    seen: list[Any] = []

    class Listener(event.EventListenerInterface):  # type: ignore[misc,name-defined]
        def listen(self, event: Any) -> None:
            seen.append(event)

    dispatcher = event.EventDispatcher()
    dispatcher.register_listeners({event.AfterConnectionReleasedEvent: [Listener()]})
    made: list[Any] = []

    class Made(event.EventListenerInterface):  # type: ignore[misc,name-defined]
        def listen(self, event: Any) -> None:
            made.append(event.connection_pools)

    dispatcher.register_listeners({event.AfterPooledConnectionsInstantiationEvent: [Made()]})
    clients = [
        emuredis.Redis(event_dispatcher=dispatcher),
        emuredis.asyncio.Redis(event_dispatcher=dispatcher),
    ]
    assert made == [[client.connection_pool] for client in clients]
    assert all(client._event_dispatcher is dispatcher for client in clients)

    # As in a pool of redis-py's own, they are the pool's.
    client = emuredis.Redis(connection_pool=emuredis.pool(event_dispatcher=dispatcher))
    client.ping()
    client.get("k")
    assert [type(event).__name__ for event in seen] == ["AfterConnectionReleasedEvent"] * 2
