"""`emuredis.patch`: code that makes its own clients, unmodified, for both packages."""

from __future__ import annotations

import asyncio
import threading
from importlib import import_module
from typing import Any

import pytest

import emuredis
from emuredis.redispy.patching import _installed

from .doors import PACKAGES

NAMES = {"redis": "Redis", "valkey": "Valkey"}


@pytest.fixture(params=PACKAGES)
def package(request: pytest.FixtureRequest) -> Any:
    return import_module(request.param)


def client_class(package: Any) -> Any:
    return getattr(package, NAMES[package.__name__.partition(".")[0]])


def test_every_kind_of_connection(package: Any, tmp_path: Any) -> None:
    make = client_class(package)
    scheme = package.__name__
    with emuredis.patch() as patched:
        for client in (
            make(),
            make("127.0.0.1", 6379),
            make.from_url(f"{scheme}://localhost:6379/0"),
            package.from_url(f"{scheme}://localhost"),
            make(connection_pool=package.ConnectionPool()),
            make(connection_pool=package.BlockingConnectionPool(max_connections=2)),
            make(connection_pool=package.ConnectionPool.from_url(f"{scheme}://localhost:6379")),
            make(single_connection_client=True),
            make(ssl=True),
            make.from_url(f"{scheme}s://localhost:6379"),
            make(protocol=3, decode_responses=True),
        ):
            client.incr("n")
            assert type(client) is make
        assert patched.emulators.keys() == {"localhost:6379"}
        assert patched.emulator_at("localhost").client().call("GET", "n") == b"11"
        path = str(tmp_path / "no.sock")
        assert make(unix_socket_path=path).set("k", "v")
        assert make.from_url(f"unix://{path}?db=1").get("k") is None
        assert make("cache", 6380, db=3).set("k", "v")
        assert patched.emulators.keys() == {"localhost:6379", path, "cache:6380"}
        assert patched.emulator_at("cache:6380").client(db=3).call("GET", "k") == b"v"


def test_asyncio(package: Any) -> None:
    half = import_module(f"{package.__name__}.asyncio")
    make = client_class(half)

    async def main() -> None:
        async with emuredis.patch() as patched:
            for options in ({}, {"ssl": True}, {"protocol": 3}, {"single_connection_client": True}):
                async with make(**options) as client:
                    assert await client.incr("n")
            for pool in (half.ConnectionPool(), half.BlockingConnectionPool(max_connections=1)):
                client = make(connection_pool=pool)
                await client.incr("n")
                async with client.pipeline() as pipe:
                    assert await pipe.incr("n").get("n").execute()
                pubsub = client.pubsub()
                if pool.max_connections > 1:
                    await pubsub.subscribe("c")
                    assert (await pubsub.get_message(timeout=1))["type"] == "subscribe"
                    await pubsub.aclose()
            assert patched.emulator_at().client().call("GET", "n") == b"8"
            left = make()
            await left.get("n")
        with pytest.raises(Exception, match="made inside emuredis.patch.., which has ended"):
            await left.get("n")
        await left.aclose()

    asyncio.run(main())


def test_it_ends(package: Any) -> None:
    make = client_class(package)
    before = package.ConnectionPool.__init__
    with pytest.raises(ZeroDivisionError):
        with emuredis.patch():
            used, unused = make(), make()
            assert used.set("k", "v")
            raise ZeroDivisionError
    assert package.ConnectionPool.__init__ is before
    for client in (used, unused):
        with pytest.raises(package.RedisError if package.__name__ == "redis" else package.ValkeyError,
                           match="made inside emuredis.patch.., which has ended"):  # fmt: skip
            client.get("k")
    with emuredis.patch():
        assert make().get("k") is None


def test_clients_made_before_are_left_alone(package: Any) -> None:
    client = client_class(package)(port=1, retry=None, socket_connect_timeout=0.1)
    with emuredis.patch() as patched:
        with pytest.raises(package.ConnectionError):
            client.get("k")
    assert not patched.emulators


def test_nested(package: Any) -> None:
    make = client_class(package)
    with emuredis.patch() as outer:
        first = make()
        first.set("k", "outer")
        with emuredis.patch(seed=1) as inner:
            assert make().get("k") is None
            assert first.get("k") == b"outer"
            assert make(connection_pool=first.connection_pool).get("k") == b"outer"
        assert make().get("k") == b"outer"
    assert outer.emulator_at() is not inner.emulator_at()
    assert not _installed.active


def test_given_emulators(package: Any) -> None:
    make = client_class(package)
    queue, everywhere = emuredis.Emulator(), emuredis.Emulator()
    with emuredis.patch(emulators={"queue": queue}, clock=emuredis.ManualClock()) as patched:
        make("queue").set("k", "v")
        assert make("other").get("k") is None
        assert patched.emulator_at("other:6379").clock.manual
    assert queue.client().call("GET", "k") == b"v"
    with emuredis.patch(everywhere):
        make("a").set("k", "v")
        assert make("b", 1).get("k") == b"v"
    with pytest.raises(TypeError, match="not both"):
        emuredis.patch(everywhere, seed=1)


@emuredis.patch()
def decorated(package: Any) -> Any:
    """What a test looks like."""
    return client_class(package)().incr("n")


@emuredis.patch()
async def decorated_async(package: Any) -> Any:
    async with client_class(import_module(f"{package.__name__}.asyncio"))() as client:
        return await client.incr("n")


def test_decorators(package: Any) -> None:
    assert decorated.__doc__ == "What a test looks like."
    assert [decorated(package), decorated(package)] == [1, 1]
    assert [asyncio.run(decorated_async(package)), asyncio.run(decorated_async(package))] == [1, 1]
    with pytest.raises(emuredis.EmulatorError, match="decorates functions"):

        @emuredis.patch()
        class Tests:
            pass


def test_what_it_cannot_stand_in_for_is_refused_by_name(package: Any) -> None:
    name = NAMES[package.__name__]

    class Reads(package.Connection):  # type: ignore[name-defined,misc]
        def read_response(self, *args: Any, **kwargs: Any) -> Any:
            return super().read_response(*args, **kwargs)

    class Closes(package.Connection):  # type: ignore[name-defined,misc]
        closed = 0

        def disconnect(self, *args: Any) -> None:
            Closes.closed += 1
            super().disconnect(*args)

    with emuredis.patch():
        for half in (package.__name__, f"{package.__name__}.asyncio"):
            with pytest.raises(emuredis.EmulatorError, match=r"Sentinel"):
                import_module(f"{half}.sentinel").Sentinel([("localhost", 26379)])
            with pytest.raises(emuredis.EmulatorError, match=f"{name}Cluster"):
                getattr(import_module(f"{half}.cluster"), f"{name}Cluster")("localhost", 7000)
        with pytest.raises(emuredis.EmulatorError, match="Reads, which has its own read_response"):
            package.ConnectionPool(connection_class=Reads)
        pool = package.ConnectionPool(connection_class=Closes)
        client = client_class(package)(connection_pool=pool)
        assert client.set("k", "v")
        assert isinstance(pool._available_connections[0], Closes)
        pool.disconnect()
        assert Closes.closed


def test_start_and_stop(package: Any) -> None:
    patched = emuredis.patch().start()
    with pytest.raises(emuredis.EmulatorError, match="in use already"):
        patched.start()
    seen = []
    thread = threading.Thread(target=lambda: seen.append(client_class(package)().ping()))
    thread.start()
    thread.join()
    patched.stop()
    assert seen == [True]


def test_a_blocked_client_is_let_go(package: Any) -> None:
    errors: list[Any] = []

    def wait(client: Any) -> None:
        try:
            client.blpop("q", 0)
        except Exception as error:
            errors.append(error)

    with emuredis.patch() as patched:
        client = client_class(package)(socket_timeout=None)
        thread = threading.Thread(target=wait, args=(client,))
        thread.start()
        engine = patched.emulator_at().engine
        while not engine.waiting.next_due_ns() and not any(s.waiter for s in list(engine.sessions.values())):
            pass
    thread.join(10)
    assert not thread.is_alive() and errors


def test_the_fixture(emuredis_patch: Any, emuredis: Any, package: Any) -> None:
    client_class(package)("anywhere").set("k", "v", 10)
    emuredis.assert_keys("k")


def test_clusters(package: Any) -> None:
    name = f"{NAMES[package.__name__]}Cluster"
    make = getattr(import_module(f"{package.__name__}.cluster"), name)
    cluster = emuredis.Emulator(cluster=3)
    with emuredis.patch(cluster):
        with make("anywhere", 7000) as client:
            for number in range(20):
                client.set(f"k{number}", number)
            assert client.get("k7") == b"7"
        client_class(package)("plain").ping()
    keys = [node.client().call("DBSIZE") for node in cluster.cluster]  # type: ignore[union-attr]
    assert sum(keys) == 20 and all(keys)
    with emuredis.patch(emulators={"there:7000": cluster}):
        with make("there", 7000) as client:
            assert client.get("k7") == b"7"

    async def main() -> None:
        half = import_module(f"{package.__name__}.asyncio.cluster")
        with emuredis.patch(cluster):
            client = getattr(half, name)("anywhere", 7000)
            assert await client.get("k7") == b"7"
            await client.set("k7", 8)
            await client.aclose()

    asyncio.run(main())
