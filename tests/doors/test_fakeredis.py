"""The names of fakeredis: the same calls on fakeredis itself and here, and what is ours."""

from __future__ import annotations

import asyncio
from typing import Any

import fakeredis as theirs
import pytest
import redis

import emuredis
from emuredis.compat import fakeredis as ours
from emuredis.compat.fakeredis.fakes import OFFLINE

BOTH = pytest.mark.parametrize("fakeredis", [ours, theirs], ids=["ours", "theirs"])


def shared(first: Any, second: Any) -> bool:
    first.flushall()
    second.flushall()
    first.set("k", "v")
    return second.get("k") is not None


@BOTH
def test_who_shares_a_server(fakeredis: Any) -> None:
    F, Strict, url = fakeredis.FakeRedis, fakeredis.FakeStrictRedis, fakeredis.FakeRedis.from_url
    server = fakeredis.FakeServer()
    assert not shared(F(), F())
    assert not shared(Strict(), F())
    assert not shared(F(host="localhost", port=6379), F())
    assert shared(F(host="a"), F(host="a"))
    assert shared(F(host="a", port=1), Strict(host="a", port=1))
    assert not shared(F(host="a", port=1), F(host="b", port=1))
    assert shared(url("redis://x:1/0"), url("redis://x:1/0"))
    assert not shared(url("redis://x:1/0"), url("redis://x:1/1"))
    assert shared(url("redis://x:1/0"), F(host="x", port=1))
    assert shared(F(server=server), Strict(server=server))
    assert not shared(F(server=server, db=0), F(server=server, db=1))
    assert shared(url("redis://x:1/0", server=server), F(server=server))
    pools = [
        redis.ConnectionPool(connection_class=fakeredis.FakeRedisConnection, server=server) for _ in "ab"
    ]
    assert shared(redis.Redis(connection_pool=pools[0]), redis.Redis(connection_pool=pools[1]))


@BOTH
def test_connected(fakeredis: Any) -> None:
    server = fakeredis.FakeServer()
    client = fakeredis.FakeStrictRedis(server=server, decode_responses=True)
    assert server.connected
    client.set("k", "v")
    server.connected = False
    for call in (lambda: client.get("k"), lambda: fakeredis.FakeRedis(server=server).ping()):
        with pytest.raises(redis.ConnectionError):
            call()
    server.connected = True
    assert client.get("k") == "v"


@BOTH
def test_asyncio(fakeredis: Any) -> None:
    async def main() -> None:
        server = fakeredis.FakeServer()
        async with fakeredis.FakeAsyncRedis(server=server) as client:
            assert await client.set("k", "v")
            async with fakeredis.aioredis.FakeRedis(server=server) as other:
                assert await other.get("k") == b"v"
                async with other.pipeline() as pipe:
                    assert await pipe.get("k").incr("n").execute() == [b"v", 1]
            server.connected = False
            with pytest.raises(redis.ConnectionError):
                await client.get("k")
            server.connected = True
            assert await client.get("k") == b"v"
        async with fakeredis.FakeAsyncRedis() as lonely:
            assert await lonely.get("k") is None

    asyncio.run(main())


@BOTH
def test_options(fakeredis: Any) -> None:
    assert isinstance(fakeredis.FakeRedis(), redis.Redis)
    assert isinstance(fakeredis.FakeAsyncRedis(), redis.asyncio.Redis)
    for version in (6, (7,), "7.0.1", (7, 2)):
        assert fakeredis.FakeRedis(version=version).ping()
    assert fakeredis.FakeRedis(server_type="valkey").ping()
    with pytest.raises(ValueError):
        fakeredis.FakeRedis(server_type="nope").ping()
    assert fakeredis.FakeServer(version=(6,)).version == (6,)
    text = fakeredis.FakeRedis(decode_responses=True, protocol=3)
    text.hset("h", mapping={"f": "v"})
    assert text.hgetall("h") == {"f": "v"}


def test_valkey() -> None:
    valkey: Any = pytest.importorskip("valkey")
    server = ours.FakeServer(server_type="valkey")
    client = ours.FakeValkey(server=server)
    assert isinstance(client, valkey.Valkey) and client.set("k", "v")
    assert ours.FakeStrictValkey(server=server).get("k") == b"v"
    server.connected = False
    with pytest.raises(valkey.ConnectionError, match=OFFLINE):
        client.get("k")
    server.connected = True

    async def main() -> None:
        async with ours.FakeAsyncValkey(server=server) as other:
            assert await other.get("k") == b"v"

    asyncio.run(main())


def test_what_is_ours() -> None:
    emulator = emuredis.Emulator(clock=emuredis.ManualClock())
    server = ours.FakeServer(emulator=emulator)
    client = ours.FakeRedis(server=server)
    client.set("k", "v", px=10)
    client.emulator.clock.advance(10)
    assert client.get("k") is None
    assert client._fast is not None
    with pytest.raises(emuredis.EmulatorError, match="lua_modules"):
        ours.FakeRedis(lua_modules={"cjson"})
    with pytest.raises(redis.ResponseError, match="unknown command"):
        ours.FakeRedis(version="6.0").getdel("k")
    with pytest.raises(redis.ConnectionError, match=OFFLINE):
        ours.FakeRedis(connected=False).ping()
    with pytest.raises(ValueError, match="dragonfly"):
        ours.FakeRedis(server_type="dragonfly")


def test_a_connection_that_ends_ends_what_was_open_on_it() -> None:
    server = ours.FakeServer()
    client = ours.FakeRedis(server=server)
    pubsub = client.pubsub()
    pubsub.subscribe("c")
    assert pubsub.get_message(timeout=1)["type"] == "subscribe"
    server.connected = False
    with pytest.raises(redis.ConnectionError):
        pubsub.get_message(timeout=1)
    server.connected = True
    assert pubsub.get_message(timeout=1)["type"] == "subscribe"
