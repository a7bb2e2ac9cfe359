"""redis-py's cluster clients, sync and asyncio: the same program on a live cluster, over TCP and in process.

A program is written once, as in `tests.doors.doors`; its transcript on emuredis must be that on the live cluster.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
import redis.asyncio

import emuredis
import emuredis.asyncio
from emuredis.slots import key_slot
from tests.doors.doors import comparable, finish, problem
from tests.support.live import Connection
from tests.support.live_cluster import LiveCluster

PLACES = ("tcp", "inprocess")


class World:
    """One cluster: how to get clients of it, and how to move slots in it."""

    def __init__(self, place: Any, asynchronous: bool, protocol: int, move: Any) -> None:
        self.place, self.asynchronous, self.protocol = place, asynchronous, protocol
        self._move = move

    def client(self, **options: Any) -> Any:
        options["protocol"] = self.protocol
        if isinstance(self.place, emuredis.Emulator):
            ours: Any = emuredis.asyncio if self.asynchronous else emuredis
            return ours.RedisCluster(self.place, **options)
        library: Any = redis.asyncio if self.asynchronous else redis
        return library.RedisCluster(host=self.place[0], port=self.place[1], **options)

    def move(self, key: bytes, to: int) -> None:
        """Have the slot of ``key`` moved to another node."""
        self._move(key_slot(key), to)

    async def got(self, value: Any) -> Any:
        return await value if inspect.isawaitable(value) else value

    async def tried(self, call: Callable[[], Any]) -> Any:
        try:
            return comparable(await self.got(call()))
        except Exception as error:
            return problem(error)


async def commands(world: World) -> list[Any]:
    """Single keys, several keys, pipelines, transactions, scripts, commands for all nodes."""
    client = world.client()
    got, tried = world.got, world.tried
    seen: list[Any] = []
    for number in range(50):
        await got(client.set(f"key{number}", number))
    seen.append(await got(client.get("key7")))
    seen.append(await tried(lambda: client.mget("a", "b")))
    seen.append(await got(client.mset_nonatomic({"a": 1, "b": 2, "c": 3})))
    seen.append(await got(client.mget_nonatomic("a", "b", "c", "nosuch")))
    seen.append(await tried(lambda: client.rename("a", "b")))
    seen.append(await got(client.exists("a", "b", "c")))
    seen.append(await got(client.delete("a", "b", "c")))
    seen.append(sorted(await got(client.keys("key1*"))))
    seen.append(await tried(lambda: client.eval("return redis.call('GET', KEYS[1])", 1, "key3")))
    seen.append(await tried(lambda: client.eval("return redis.call('GET', KEYS[1])", 2, "key3", "key4")))
    pipe = client.pipeline()
    for number in range(20):
        pipe.incr(f"key{number}")
    seen.append(await got(pipe.execute()))
    seen.append(await got(client.keyslot("{key}7")) if not world.asynchronous else client.keyslot("{key}7"))
    seen.append(await tried(lambda: client.cluster_countkeysinslot(key_slot(b"key7"))))
    seen.append(await got(client.cluster_get_keys_in_slot(key_slot(b"key7"), 5)))
    seen.append((await got(client.cluster_info()))["cluster_state"])
    flushed = await got(client.flushall())
    seen.append(sorted(flushed.values()) if isinstance(flushed, dict) else flushed)
    seen.append(await got(client.keys()))
    await got(client.aclose() if world.asynchronous else client.close())
    return seen


async def moving(world: World) -> list[Any]:
    """Slots that move while a client has the old map in its head."""
    client = world.client()
    got = world.got
    seen: list[Any] = []
    await got(client.set("key3", "v"))  # slot 935, of the first node
    await got(client.rpush("{key3}l", 1, 2))
    seen.append(await got(client.get("key3")))
    world.move(b"key3", 1)
    seen.append(await got(client.get("key3")))
    seen.append(await got(client.lrange("{key3}l", 0, -1)))
    pipe = client.pipeline()
    pipe.get("key3").set("{key3}x", 1).get("key2").get("{key3}x")
    seen.append(await got(pipe.execute()))
    world.move(b"key3", 0)
    pipe = client.pipeline()
    pipe.get("key3").get("{key3}x")
    seen.append(await got(pipe.execute()))
    await got(client.aclose() if world.asynchronous else client.close())
    return seen


async def between(world: World) -> list[Any]:
    """A slot in the midst of its move: keys that are not here any more are asked for there."""
    client = world.client()
    got = world.got
    seen: list[Any] = []
    if world.asynchronous:
        await client.initialize()
    nodes = {node.name: node for node in client.get_primaries()}
    first, second = (client.get_node_from_key(key) for key in ("key3", "c"))
    ids = [(await got(client.cluster_myid(node))).decode() for node in (first, second)]
    await got(client.set("key3", "v"))

    async def setslot(node: Any, state: str, *other: str) -> None:
        words = ("CLUSTER SETSLOT", 935, state, *other)
        await got(client.execute_command(*words, target_nodes=nodes[node.name]))

    await setslot(first, "MIGRATING", ids[1])
    await setslot(second, "IMPORTING", ids[0])
    seen.append(await got(client.get("key3")))
    seen.append(await got(client.get("{key3}x")))
    seen.append(await got(client.set("{key3}x", 1)))
    seen.append(await got(client.get("{key3}x")))
    seen.append(await got(client.delete("{key3}x")))
    await setslot(first, "STABLE")
    await setslot(second, "STABLE")
    seen.append(await got(client.get("{key3}x")))
    await got(client.aclose() if world.asynchronous else client.close())
    return seen


async def channels(world: World) -> list[Any]:
    """Shard channels, and plain ones across nodes."""
    client = world.client(decode_responses=True)
    got = world.got
    seen: list[Any] = []
    if world.asynchronous:
        await client.initialize()
    listener = client.pubsub()
    await got(listener.ssubscribe("key3", "c"))
    seen += sorted([(await got(listener.get_sharded_message(timeout=5)))["type"] for _ in range(2)])
    seen += [await got(client.spublish("key3", "one")), await got(client.spublish("c", "two"))]
    seen += sorted([(await got(listener.get_sharded_message(timeout=5)))["data"] for _ in range(2)])
    await got(listener.aclose() if world.asynchronous else listener.close())
    plain = client.pubsub()
    await got(plain.subscribe("news"))
    seen.append((await got(plain.get_message(timeout=5)))["data"])
    await got(client.publish("news", "hello"))
    seen.append((await got(plain.get_message(timeout=5)))["data"])
    await got(plain.aclose() if world.asynchronous else plain.close())
    seen.append(await got(client.spublish("key3", "nobody")))
    await got(client.aclose() if world.asynchronous else client.close())
    return seen


async def _run(world: World, body: Any) -> Any:
    return await body(world)


def run(world: World, body: Any) -> Any:
    return asyncio.run(_run(world, body)) if world.asynchronous else finish(_run(world, body))


@pytest.fixture(scope="module")
def emulator() -> Iterator[emuredis.Emulator]:
    emulator = emuredis.Emulator(cluster=3, seed=1)
    with emulator.serve():
        yield emulator


_seen: dict[Any, Any] = {}


def on_live(cluster: LiveCluster, body: Any, asynchronous: bool, protocol: int) -> Any:
    """What the program sees on the live cluster; run once."""

    def move(slot: int, to: int) -> None:
        target = Connection(cluster.addresses[to])
        name = target.call("CLUSTER", "MYID").value
        target.close()
        for address in cluster.addresses:
            node = Connection(address)
            node.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", name)
            node.close()  # all but the owner refuse
        cluster.settled()

    key = body.__name__, asynchronous, protocol
    if key not in _seen:
        for number in range(3):
            connection = cluster.connect(number)
            connection.call("FLUSHALL")
            connection.close()
        _seen[key] = run(World(cluster.addresses[0], asynchronous, protocol, move), body)
    return _seen[key]


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("body", [commands, moving, between, channels])
def test_as_on_the_live_cluster(body: Any, asynchronous: bool, protocol: int, place: str,
                                emulator: emuredis.Emulator, live_cluster: LiveCluster) -> None:  # fmt: skip
    emulator.flushall()
    assert emulator.cluster is not None
    where = emulator if place == "inprocess" else emulator.cluster.addresses[0]
    ours = run(World(where, asynchronous, protocol, emulator.cluster.move_slot), body)
    assert ours == on_live(live_cluster, body, asynchronous, protocol)


def test_an_emulator_without_a_cluster_is_refused() -> None:
    with pytest.raises(ValueError, match="no cluster"):
        emuredis.RedisCluster(emuredis.Emulator())
