"""Memory: last use and frequency of keys, sizes, and what goes when there is too little."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emuredis.client import Client
from emuredis.clock import ManualClock
from emuredis.emulator import Emulator
from emuredis.engine.memory import BASE
from emuredis.errors import ReplyError
from emuredis.keyspace.access import RECORDED
from emuredis.spec import TABLE, Command
from tests.support.generate import command_line
from tests.support.live import LiveServer


def make(seed: int = 1, **config: Any) -> tuple[Emulator, Client, ManualClock]:
    clock = ManualClock()
    emulator = Emulator(clock=clock, seed=seed, config=config)
    return emulator, emulator.client(), clock


# -- last use ------------------------------------------------------------------------------------

USING = [
    "GET s", "STRLEN s", "APPEND s x", "SET s w", "GETEX s", "TOUCH s", "LRANGE l 0 0", "LPUSH l y", "HGET h f",
    "HLEN h",
    "HSET h g 1", "SADD t x", "SCARD t", "ZADD z 2 x", "ZCARD z", "XLEN x", "EXPIRE s 100", "PERSIST s", "INCRBY n 1",
    "COPY s s2", "MGET s n", "BITCOUNT s", "SORT l ALPHA", "DUMP s",
]  # fmt: skip
NOT_USING = ["EXISTS s", "TYPE s", "TTL s", "PTTL s", "EXPIRETIME s", "OBJECT ENCODING s", "OBJECT IDLETIME s",
             "OBJECT REFCOUNT s", "MEMORY USAGE s", "SCAN 0", "KEYS *", "RANDOMKEY", "DBSIZE"]  # fmt: skip


def fill(client: Client) -> None:
    for line in ("SET s v", "SET n 1", "RPUSH l x", "HSET h f v", "SADD t m", "ZADD z 1 m", "XADD x 1-1 f v"):
        client.call(*line.split())


@pytest.mark.parametrize("line", [line for line in USING if line.split()[0].encode() in TABLE])
def test_a_use_ends_idleness(line: str) -> None:
    _, client, clock = make()
    fill(client)
    clock.advance(90_000)
    key = line.split()[1]
    assert client.call("OBJECT", "IDLETIME", key) == 90
    client.call(*line.split())
    assert client.call("OBJECT", "IDLETIME", key) == 0


@pytest.mark.parametrize("line", NOT_USING)
def test_looking_is_no_use(line: str) -> None:
    _, client, clock = make()
    fill(client)
    clock.advance(90_000)
    client.call(*line.split())
    assert client.call("OBJECT", "IDLETIME", "s") == 90


def test_frequency_grows_ever_more_slowly_and_decays() -> None:
    _, client, clock = make(**{"maxmemory-policy": "allkeys-lfu"})
    client.call("SET", "k", "v")
    assert client.call("OBJECT", "FREQ", "k") == 5
    seen = []
    for _ in range(4):
        for _ in range(500):
            client.call("GET", "k")
        seen.append(client.call("OBJECT", "FREQ", "k"))
    assert 10 < seen[0] < seen[1] <= seen[2] <= seen[3] < 60
    assert seen[1] - seen[0] < seen[0] - 5
    clock.advance(60_000 * 5)
    assert client.call("OBJECT", "FREQ", "k") == seen[3] - 5
    clock.advance(60_000 * 1000)
    assert client.call("OBJECT", "FREQ", "k") == 0


# -- sizes ---------------------------------------------------------------------------------------


def build(kind: str, count: int, size: int) -> list[list[Any]]:
    text = "x" * size
    lines: list[list[Any]] = []
    for i in range(count):
        lines.append({
            "list": ["RPUSH", "k", f"{text}{i}"],
            "set": ["SADD", "k", f"{text}{i}"],
            "intset": ["SADD", "k", i * 999],
            "hash": ["HSET", "k", f"f{i}", f"{text}{i}"],
            "zset": ["ZADD", "k", i, f"{text}{i}"],
            "stream": ["XADD", "k", f"{i + 1}-1", "f", f"{text}{i}"],
        }[kind])  # fmt: skip
    return lines


@pytest.mark.parametrize("size", [1, 20, 200])
@pytest.mark.parametrize("kind", ["list", "set", "intset", "hash", "zset", "stream"])
def test_estimates_are_like_the_servers(kind: str, size: int, live_server: LiveServer) -> None:
    import redis

    _, client, _ = make()
    live = redis.Redis(unix_socket_path=live_server.socket_path)
    live.flushall()
    for count in (1, 3, 20, 150, 1000, 4000):
        client.call("DEL", "k")
        live.delete("k")
        pipeline = live.pipeline(transaction=False)
        for line in build(kind, count, size):
            client.call(*line)
            pipeline.execute_command(*line)
        pipeline.execute()
        for samples in (0, 5):
            ours = client.call("MEMORY", "USAGE", "k", "SAMPLES", samples)
            theirs = live.memory_usage("k", samples=samples)
            assert theirs is not None
            assert theirs / 2 <= ours <= theirs * 2, (count, samples, ours, theirs)
    live.close()


@pytest.mark.parametrize("kind", ["list", "set", "intset", "hash", "zset", "stream"])
def test_more_elements_take_more(kind: str) -> None:
    _, client, _ = make()
    last = 0
    for line in build(kind, 600, 7):
        client.call(*line)
        now = client.call("MEMORY", "USAGE", "k", "SAMPLES", 0)
        assert now >= last
        last = now


@given(st.integers(0, 5000), st.integers(0, 5000))
def test_longer_strings_take_more(one: int, other: int) -> None:
    _, client, _ = make()
    sizes = []
    for length in sorted((one, other)):
        client.call("SET", "k", "x" * length)
        sizes.append(client.call("MEMORY", "USAGE", "k"))
    assert sizes[0] <= sizes[1]


GROUPS = ("string", "generic", "hash", "list", "set", "sorted-set", "stream", "geo", "bitmap", "hyperloglog")
CHANGING = [
    c for c in TABLE.everything() if c.group in GROUPS and c.subs is None and "blocking" not in c.flag_words
]


@pytest.mark.slow
@settings(max_examples=100)
@given(st.data())
def test_what_is_counted_is_what_is_there(data: st.DataObject) -> None:
    emulator, client, clock = make(maxmemory="1gb")
    lines = {command.name: command_line(command) for command in CHANGING}

    def one(command: Command) -> st.SearchStrategy[list[bytes]]:
        return lines[command.name]

    for argv in data.draw(st.lists(st.sampled_from(CHANGING).flatmap(one), min_size=10, max_size=40)):
        try:
            client.call(*argv)
        except ReplyError:
            pass
        clock.advance(1)
    memory = emulator.engine.memory
    counted = memory.used()
    keyspace = emulator.engine.keyspace
    assert keyspace.changed == {}
    memory.recount()
    assert memory.used() == counted
    keyspace.changed, changed = None, keyspace.changed
    assert memory.used() == counted
    keyspace.changed = changed


# -- eviction ------------------------------------------------------------------------------------


def room_for(emulator: Emulator, client: Client, more: int) -> None:
    """Limit memory to what is used and ``more``."""
    client.call("CONFIG", "SET", "maxmemory", emulator.engine.memory.used() + more)


def survivors(policy: str, use: Any) -> set[str]:
    emulator, client, clock = make(**{"maxmemory-policy": policy})
    for i in range(100):
        client.call("SET", f"k{i}", "x" * 50, *(["EX", 100_000 - 5 * i] if i % 2 else []))
        clock.advance(1000)
    use(client, clock)
    room_for(emulator, client, 2000)
    for i in range(60):
        client.call("SET", f"new{i}", "y" * 50)
        clock.advance(1000)
    assert int(client.call("INFO", "stats").decode().split("evicted_keys:")[1].split()[0]) > 10
    return {key.decode() for key in client.call("KEYS", "*")}


def gets(names: list[str], times: int = 1) -> Any:
    def use(client: Client, clock: ManualClock) -> None:
        for _ in range(times):
            for name in names:
                client.call("GET", name)
                clock.advance(1)

    return use


def test_least_recently_used_go_first() -> None:
    left = survivors("allkeys-lru", gets(["k0", "k1", "k5"]))
    gone = {f"k{i}" for i in range(100)} - left
    assert {"k0", "k1", "k5"} <= left
    assert gone == {f"k{i}" for i in [i for i in range(100) if i not in (0, 1, 5)][: len(gone)]}


def test_volatile_spares_keys_without_time_to_live() -> None:
    left = survivors("volatile-lru", gets(["k1"]))
    gone = {f"k{i}" for i in range(100)} - left
    assert "k1" in left
    assert gone == {f"k{i}" for i in list(range(3, 100, 2))[: len(gone)]}


def test_least_frequently_used_go_first() -> None:
    often = [f"k{i}" for i in range(0, 100, 2)]
    left = survivors("allkeys-lfu", gets(often, 20))
    assert set(often) <= left


def test_shortest_time_to_live_goes_first() -> None:
    left = survivors("volatile-ttl", gets([]))
    gone = {f"k{i}" for i in range(100)} - left
    assert gone == {f"k{i}" for i in range(99, 0, -2)[: len(gone)]}


@pytest.mark.parametrize("policy", ["allkeys-random", "volatile-random"])
def test_random_eviction_repeats_with_its_seed(policy: str) -> None:
    first, second = survivors(policy, gets([])), survivors(policy, gets([]))
    assert first == second
    if policy == "volatile-random":
        assert {f"k{i}" for i in range(0, 100, 2)} <= first


def test_noeviction_refuses_and_loses_nothing() -> None:
    _, client, _ = make(maxmemory=BASE + 5000)
    written = 0
    with pytest.raises(ReplyError, match="^OOM command not allowed when used memory > 'maxmemory'.$"):
        while True:
            client.call("SET", f"k{written}", "x" * 100)
            written += 1
    assert 10 < written < 50
    assert client.call("DBSIZE") == written
    client.call("DEL", "k0", "k1")
    client.call("SET", "again", "x")
    client.call("CONFIG", "SET", "maxmemory", 0)
    for i in range(200):
        client.call("SET", f"more{i}", "x" * 100)


def test_an_evicted_key_breaks_watch_and_is_announced() -> None:
    emulator, client, _ = make(**{"notify-keyspace-events": "Ee", "maxmemory-policy": "allkeys-lru"})
    watcher = emulator.client()
    client.call("SET", "k", "v")
    watcher.call("WATCH", "k")
    client.call("CONFIG", "SET", "maxmemory", 1)
    client.call("PING")
    client.call("CONFIG", "SET", "maxmemory", 0)
    watcher.call("MULTI")
    watcher.call("PING")
    assert watcher.call("EXEC") is None


def test_uses_are_not_recorded_in_a_large_database_unless_a_policy_goes_by_them() -> None:
    _, client, clock = make()
    pairs = [word for i in range(RECORDED + 1) for word in (f"k{i}", "v")]
    client.call("MSET", *pairs)
    with pytest.raises(
        ReplyError, match="emuredis does not support OBJECT IDLETIME in a database of more than"
    ):
        client.call("OBJECT", "IDLETIME", "k1")
    client.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    clock.advance(5000)
    client.call("GET", "k1")
    clock.advance(2000)
    assert client.call("OBJECT", "IDLETIME", "k1") == 2
    assert client.call("OBJECT", "IDLETIME", "k2") == 7
    client.call("FLUSHALL")
    client.call("CONFIG", "SET", "maxmemory-policy", "noeviction")
    client.call("SET", "k", "v")
    clock.advance(3000)
    assert client.call("OBJECT", "IDLETIME", "k") == 3
