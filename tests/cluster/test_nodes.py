"""Clusters in process: what a test does with them, and what must always hold."""

from __future__ import annotations

import contextlib
import random
import threading
from pathlib import Path
from typing import Any

import pytest
import redis

import emuredis
from emuredis.clusters import Cluster
from emuredis.engine.cluster import share
from emuredis.keyspace.slot_index import SlotIndex
from emuredis.replies import NULL_ARRAY
from emuredis.slots import SLOTS, key_slot, pattern_slot

KEYS = [f"{{t{tag}}}{number}" for tag in range(20) for number in range(3)]


def made(size: int = 3, **options: Any) -> Cluster:
    cluster = emuredis.Emulator(cluster=size, seed=1, **options).cluster
    assert cluster is not None
    return cluster


def ask(cluster: Cluster, number: int, *words: Any) -> Any:
    """One command at a node; an error is given back as its text."""
    with cluster.nodes[number].client() as client:
        try:
            return client.call(*words)
        except emuredis.ReplyError as error:
            return error.message


def follow(cluster: Cluster, *words: Any) -> Any:
    """As a cluster client would."""
    number, asking = 0, False
    for _ in range(6):
        with cluster.nodes[number].client() as client:
            try:
                if asking:
                    client.call("ASKING")
                return client.call(*words)
            except emuredis.ReplyError as error:
                if error.code not in ("MOVED", "ASK"):
                    raise
                asking = error.code == "ASK"
                host, _, port = error.message.rpartition(" ")[2].rpartition(":")
                number = cluster.addresses.index((host, int(port)))
    raise AssertionError("sent round in circles")


def check(cluster: Cluster) -> None:
    """Keys are only where their slot is, or is being taken over to; the indices are right."""
    for emulator in cluster:
        node = emulator.engine.cluster
        assert node is not None
        emulator.engine.keyspace._check()
        for db in emulator.engine.keyspace.databases:
            for key in db.data:
                slot = key_slot(key)
                assert node.cluster.owners[slot] is node or slot in node.importing, key
        for slot in node.migrating:
            assert node.cluster.owners[slot] is node


# -- slots -------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [1, 2, 3, 5, 6, 7, 10, 100, 1000])
def test_every_slot_is_dealt_out_once(nodes: int) -> None:
    assert [slot for number in range(nodes) for slot in share(number, nodes)] == list(range(SLOTS))


def test_the_slots_of_three_nodes() -> None:
    spans = [(slots[0], slots[-1]) for slots in (share(number, 3) for number in range(3))]
    assert spans == [(0, 5460), (5461, 10922), (10923, 16383)]


@pytest.mark.parametrize(
    ("pattern", "slot"),
    [(b"key", key_slot(b"key")), (b"{key}*", key_slot(b"key")), (b"a*", -1), (b"a?{b}", -1), (b"[ab]", -1),
     (b"{a*}", -1), (b"{}b", key_slot(b"{}b")), (b"{", key_slot(b"{")), (b"a{b}\\*", key_slot(b"b"))],
)  # fmt: skip
def test_the_slot_of_a_pattern(pattern: bytes, slot: int) -> None:
    assert pattern_slot(pattern) == slot


def test_keys_in_slots_are_counted_as_they_come_and_go() -> None:
    cluster = made(1, clock=(clock := emuredis.ManualClock()))
    client, rng = cluster.nodes[0].client(), random.Random(1)
    db = cluster.nodes[0].engine.keyspace.databases[0]
    for step in range(2000):
        key = rng.choice(KEYS)
        move = rng.choice(["SET", "DEL", "SADD", "SREM", "EXPIRE", "RENAME", "advance", "FLUSHALL"])
        if move == "advance":
            clock.advance(500)
        elif move == "FLUSHALL":
            if step % 50 == 0:
                client.call("FLUSHALL")
        else:
            more = {"SET": ["v"], "SADD": ["m"], "SREM": ["m"], "EXPIRE": [1], "RENAME": [rng.choice(KEYS)]}
            try:
                client.call(move, key, *more.get(move, []))
            except emuredis.ReplyError as error:
                assert error.code in ("WRONGTYPE", "ERR", "CROSSSLOT")
        slot = cluster.slot_of(rng.choice(KEYS))
        there = [key for key in db.data if key_slot(key) == slot]
        assert client.call("CLUSTER", "COUNTKEYSINSLOT", slot) == len(there)
        assert sorted(client.call("CLUSTER", "GETKEYSINSLOT", slot, 100)) == sorted(there)
    assert db.scan_index.__class__ is SlotIndex
    check(cluster)


def test_a_whole_walk_meets_every_key_once() -> None:
    cluster = made()
    names = {f"key{number}".encode() for number in range(500)} | {
        b"{one}%d" % number for number in range(100)
    }
    for name in names:
        follow(cluster, "SET", name, 1)
    seen: list[bytes] = []
    cursor = b"0"
    while True:
        cursor, page = follow(cluster, "CLUSTERSCAN", cursor, "COUNT", 7)
        seen += page
        if cursor == b"0":
            break
    assert sorted(seen) == sorted(names)


# -- moving ------------------------------------------------------------------------------------


def test_a_slot_moves_with_its_keys_and_their_deadlines() -> None:
    clock = emuredis.ManualClock()
    cluster = made(clock=clock)
    slot = cluster.slot_of("{t}")
    follow(cluster, "SET", "{t}a", "v", "PX", 1500)
    follow(cluster, "RPUSH", "{t}b", 1, 2, 3)
    follow(cluster, "HSET", "{t}h", "f", 1, "g", 2)
    follow(cluster, "HPEXPIRE", "{t}h", 500, "FIELDS", 1, "f")
    before = cluster.owner(slot)
    to = (cluster.nodes.index(before) + 1) % 3
    cluster.move_slot(slot, to)
    assert cluster.owner(slot) is cluster.nodes[to]
    assert before.client().call("DBSIZE") == 0
    assert ask(cluster, to, "PTTL", "{t}a") == 1500
    clock.advance(500)
    assert ask(cluster, to, "HGETALL", "{t}h") == {b"g": b"2"}
    clock.advance(1000)
    assert ask(cluster, to, "EXISTS", "{t}a") == 0
    assert ask(cluster, to, "LRANGE", "{t}b", 0, -1) == [b"1", b"2", b"3"]
    cluster.move_slot(slot, cluster.nodes[to])  # it is there: nothing happens
    check(cluster)


def test_who_waits_or_watches_in_a_slot_that_moves_is_told() -> None:
    cluster = made(clock=emuredis.ManualClock(autojump=False))
    home = cluster.node_of("{t}")
    to = (cluster.nodes.index(home) + 1) % 3
    heard: list[Any] = []
    engine = home.engine
    blocked, listening, watching = (engine.connect() for _ in range(3))
    blocked.on_reply = listening.on_push = heard.append
    engine.execute(blocked, [b"BLPOP", b"{t}l", b"0"])
    engine.execute(listening, [b"SSUBSCRIBE", b"{t}c"])
    engine.execute(watching, [b"WATCH", b"{t}w"])
    follow(cluster, "SET", "{t}w", 1)
    engine.execute(watching, [b"MULTI"])
    cluster.move_slot(cluster.slot_of("{t}"), to)
    host, port = cluster.addresses[to]
    assert heard == [
        emuredis.ReplyError(f"MOVED {cluster.slot_of('{t}')} {host}:{port}"),
        [b"sunsubscribe", b"{t}c", 0],
    ]
    assert engine.execute(watching, [b"EXEC"]) is NULL_ARRAY
    assert not listening.shard_channels and blocked.waiter is None


def test_a_slot_in_the_midst_of_its_move() -> None:
    cluster = made()
    slot, home = cluster.slot_of("{t}"), cluster.nodes.index(cluster.node_of("{t}"))
    to = (home + 1) % 3
    follow(cluster, "SET", "{t}a", 1)
    cluster.begin_move(slot, to)
    assert ask(cluster, home, "GET", "{t}a") == b"1"
    assert ask(cluster, home, "GET", "{t}b").startswith(f"ASK {slot} ")
    assert ask(cluster, home, "MGET", "{t}a", "{t}b").startswith("TRYAGAIN ")
    assert ask(cluster, to, "GET", "{t}a").startswith(f"MOVED {slot} ")
    assert cluster.move_key("{t}a")
    assert not cluster.move_key("{t}a")
    assert ask(cluster, home, "GET", "{t}a").startswith(f"ASK {slot} ")
    assert follow(cluster, "GET", "{t}a") == b"1"
    check(cluster)
    cluster.move_slot(slot, to)
    assert ask(cluster, to, "GET", "{t}a") == b"1"
    assert ask(cluster, home, "GET", "{t}a").startswith(f"MOVED {slot} ")
    node = cluster.nodes[to].engine.cluster
    assert node is not None and not node.importing
    check(cluster)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_moves_no_key_is_lost(seed: int) -> None:
    """Random commands, moves and half moves, against a dictionary."""
    cluster, rng, model = made(rng_size := 4), random.Random(seed), dict[str, bytes]()
    for _ in range(300):
        key = rng.choice(KEYS)
        slot, to = cluster.slot_of(key), rng.randrange(rng_size)
        owner = cluster.owner(slot).engine.cluster
        assert owner is not None
        action = rng.choice(["set", "set", "get", "del", "move", "begin", "key", "migrate", "snapshot"])
        if action == "set":
            model[key] = b"%d" % rng.randrange(1000)
            follow(cluster, "SET", key, model[key])
        elif action == "del":
            assert follow(cluster, "DEL", key) == (model.pop(key, None) is not None)
        elif action in ("move", "begin"):
            with contextlib.suppress(
                emuredis.EmulatorError, ValueError
            ):  # on its way elsewhere; there already
                (cluster.move_slot if action == "move" else cluster.begin_move)(slot, to)
        elif action == "key" and slot in owner.migrating:
            cluster.move_key(key)
        elif action == "migrate":
            target = ask(cluster, to, "CLUSTER", "MYID")
            number = cluster.nodes.index(cluster.owner(slot))
            told = ask(cluster, number, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", target)
            assert told == b"OK" or owner.migrating or owner.importing or number == to
        elif action == "snapshot":
            emulator = rng.choice(cluster.nodes)
            emulator.restore(emulator.snapshot())
        assert follow(cluster, "GET", key) == model.get(key)
    check(cluster)
    assert {key for key in KEYS if follow(cluster, "EXISTS", key)} == set(model)


def test_moves_that_cannot_be() -> None:
    cluster = made()
    slot, home = cluster.slot_of("t"), cluster.node_of("t")
    with pytest.raises(ValueError, match="that node's already"):
        cluster.begin_move(slot, home)
    with pytest.raises(emuredis.EmulatorError, match="not being moved"):
        cluster.move_key("t")
    with pytest.raises(ValueError, match="no node of this cluster"):
        cluster.move_slot(slot, emuredis.Emulator())
    with pytest.raises(ValueError, match="no node of this cluster"):
        cluster.move_slot(slot, made().nodes[1])
    with pytest.raises(ValueError, match="slots are 0 to 16383"):
        cluster.move_slot(SLOTS, 1)
    home.client().call("CLUSTER", "DELSLOTS", slot)
    with pytest.raises(emuredis.EmulatorError, match="nobody's"):
        cluster.move_slot(slot, 1)
    for size in (0, SLOTS + 1):
        with pytest.raises(ValueError, match="1 to 16384 nodes"):
            made(size)


# -- the nodes together ------------------------------------------------------------------------


def test_nodes_share_clock_chance_and_lock() -> None:
    clock = emuredis.ManualClock()
    cluster = made(clock=clock)
    engines = [emulator.engine for emulator in cluster]
    assert {id(engine.lock) for engine in engines} == {id(engines[0].lock)}
    assert {id(engine.rng) for engine in engines} == {id(engines[0].rng)}
    for number, key in ((2, "a"), (0, "b"), (1, "c")):
        ask(cluster, number, "SET", key, 1, "PX", 10)
    clock.advance(10)
    assert [ask(cluster, number, "DBSIZE") for number in range(3)] == [0, 0, 0]


def test_a_seed_makes_ids_repeat() -> None:
    assert ask(made(), 2, "CLUSTER", "NODES") != ask(made(), 1, "CLUSTER", "NODES")
    first, second = (made(clock=emuredis.ManualClock()) for _ in range(2))
    assert ask(first, 2, "CLUSTER", "NODES") == ask(second, 2, "CLUSTER", "NODES")


def test_one_node_is_a_cluster_too() -> None:
    cluster = made(1)
    assert ask(cluster, 0, "MGET", "a", "b").startswith("CROSSSLOT ")
    assert ask(cluster, 0, "SET", "a", 1) == b"OK"
    assert b"cluster_state:ok" in ask(cluster, 0, "CLUSTER", "INFO")


def test_databases_of_a_cluster() -> None:
    cluster = made(config={"cluster-databases": 2})
    home = cluster.node_of("{t}")
    client = home.client()
    client.call("SELECT", 1)
    client.call("SET", "{t}a", 1)
    with pytest.raises(emuredis.ReplyError, match="DB index is out of range"):
        client.call("SELECT", 2)
    assert client.call("CLUSTER", "COUNTKEYSINSLOT", cluster.slot_of("{t}")) == 1
    to = (cluster.nodes.index(home) + 1) % 3
    cluster.move_slot(cluster.slot_of("{t}"), to)
    other = cluster.nodes[to].client(db=1)
    assert other.call("GET", "{t}a") == b"1"


def test_what_an_emulator_does_of_a_cluster() -> None:
    cluster = made()
    emulator = cluster.nodes[0]
    for key in KEYS:
        follow(cluster, "SET", key, 1)
    emulator.flushall()
    assert all(ask(cluster, number, "DBSIZE") == 0 for number in range(3))
    with pytest.raises(emuredis.EmulatorError, match="cannot be forked"):
        emulator.fork()
    with pytest.raises(ValueError, match="on ports only"):
        emulator.serve(unix="somewhere")
    with pytest.raises(ValueError, match="3 nodes need 3 ports"):
        emulator.serve(port=[0, 0])
    assert len(cluster) == 3 and "3 nodes" in repr(cluster)
    for number in range(3):
        cluster.nodes[number].restart(keep_data=False)
    assert ask(cluster, 2, "SET", "a", 1) == b"OK"
    assert ask(cluster, 0, "SET", "a", 1).startswith("MOVED ")


def test_each_node_has_a_file_of_its_own(tmp_path: Path) -> None:
    cluster = made(config={"dir": str(tmp_path)})
    for key, number in (("a", 2), ("b", 0), ("c", 1)):
        ask(cluster, number, "SET", key, number)
        ask(cluster, number, "SAVE")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dump-1.rdb", "dump-2.rdb", "dump.rdb"]
    cluster.nodes[0].flushall()
    for emulator in cluster:
        emulator.load_rdb()
    assert [follow(cluster, "GET", key) for key in "abc"] == [b"2", b"0", b"1"]


@pytest.mark.parametrize("words", ["MEET 127.0.0.1 1", "FORGET {1}", "RESET", "SYNCSLOTS x", "REPLICATE {1}"])
def test_what_one_process_cannot_do_is_refused_by_name(words: str) -> None:
    cluster = made()
    other = ask(cluster, 1, "CLUSTER", "MYID").decode()
    cluster.nodes[0].client().call("CLUSTER", "FLUSHSLOTS")  # or REPLICATE is refused as on the server
    told = ask(cluster, 0, "CLUSTER", *words.replace("{1}", other).split())
    assert told.startswith(f"ERR emuredis does not support CLUSTER {words.split()[0]}")
    host, port = cluster.addresses[1]
    assert ask(cluster, 0, "CLUSTER", "MEET", host, port) == b"OK"


def test_migrate_reaches_no_other_server() -> None:
    cluster = made()
    ask(cluster, 0, "SET", "b", 1)
    assert "does not support MIGRATE" in ask(cluster, 0, "MIGRATE", "127.0.0.1", 1, "b", 0, 1000)
    with emuredis.Emulator().client() as alone:
        assert alone.call("MIGRATE", "127.0.0.1", 1, "b", 0, 1000) == b"NOKEY"


# -- served ------------------------------------------------------------------------------------


def test_served_on_ports_of_its_own() -> None:
    emulator = emuredis.Emulator(cluster=3)
    with emulator.serve() as servers:
        assert len({port for _, port in servers.addresses}) == len(servers) == 3
        assert emulator.cluster is not None and emulator.cluster.addresses == servers.addresses
        told = [ask(emulator.cluster, number, "CONFIG", "GET", "port") for number in range(3)]
        assert [int(one[b"port"]) for one in told] == [port for _, port in servers.addresses]
        assert repr(servers).startswith("<emuredis servers on 127.0.0.1:")
        assert servers.url == f"redis://127.0.0.1:{servers[0].port}"
    servers.stop()


@pytest.mark.slow
def test_nothing_is_lost_while_slots_move_under_load() -> None:
    emulator = emuredis.Emulator(cluster=3, seed=1)
    cluster = emulator.cluster
    assert cluster is not None
    counters, rounds = [f"counter{number}" for number in range(20)], 60
    failures: list[BaseException] = []

    def count(address: tuple[str, int]) -> None:
        try:
            client = redis.RedisCluster(host=address[0], port=address[1])
            for _ in range(rounds):
                for name in counters:
                    client.incr(name)
            client.close()
        except BaseException as problem:
            failures.append(problem)

    with emulator.serve() as servers:
        threads = [threading.Thread(target=count, args=(servers.address,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        rng = random.Random(1)
        while any(thread.is_alive() for thread in threads):
            cluster.move_slot(cluster.slot_of(rng.choice(counters)), rng.randrange(3))
            threads[0].join(0.01)
            threads[1].join(0.01)
        assert not failures
        assert [follow(cluster, "GET", name) for name in counters] == [b"%d" % (2 * rounds)] * len(counters)
    check(cluster)


def test_epochs() -> None:
    cluster = made()
    assert ask(cluster, 0, "CLUSTER", "BUMPEPOCH") == b"BUMPED 4"
    assert ask(cluster, 0, "CLUSTER", "BUMPEPOCH") == b"STILL 4"
    cluster.move_slot(0, 1)
    assert [b"cluster_my_epoch:%d\r\n" % epoch in ask(cluster, number, "CLUSTER", "INFO")
            for number, epoch in enumerate((4, 5, 3))] == [True] * 3  # fmt: skip
    assert all(
        b"cluster_current_epoch:5\r\n" in ask(cluster, number, "CLUSTER", "INFO") for number in range(3)
    )


def test_a_cluster_of_one_can_be_reset() -> None:
    cluster = made(1)
    before = ask(cluster, 0, "CLUSTER", "MYID")
    assert ask(cluster, 0, "CLUSTER", "RESET") == b"OK"
    assert ask(cluster, 0, "CLUSTER", "SLOTS") == []
    assert ask(cluster, 0, "GET", "a") == "CLUSTERDOWN Hash slot not served"
    assert ask(cluster, 0, "CLUSTER", "SET-CONFIG-EPOCH", 5) == "ERR Node config epoch is already non-zero"
    assert ask(cluster, 0, "CLUSTER", "RESET", "HARD") == b"OK"
    assert ask(cluster, 0, "CLUSTER", "MYID") != before
    assert ask(cluster, 0, "CLUSTER", "SET-CONFIG-EPOCH", 5) == b"OK"
    assert ask(cluster, 0, "CLUSTER", "ADDSLOTSRANGE", 0, 16383) == b"OK"
    assert ask(cluster, 0, "GET", "a") is None


def test_strict_keys_hold_on_every_node() -> None:
    cluster = made(strict_keys="declared")
    told = ask(cluster, 2, "EVAL", "return redis.call('GET', 'a')", 0)
    assert "emuredis strict keys" in told


def test_nothing_moves_under_a_busy_script() -> None:
    cluster = made(config={"busy-reply-threshold": 1})
    ask(cluster, 0, "SET", "b", 1)
    refused: list[str] = []

    def move() -> None:
        while not refused:
            with cluster.nodes[0].engine.lock:
                busy = cluster.nodes[0].engine.busy.on
                for attempt in (
                    (lambda: cluster.move_slot(3300, 1), cluster.nodes[0].flushall) if busy else ()
                ):
                    try:
                        attempt()
                    except emuredis.ReplyError as error:
                        refused.append(error.code)
        with cluster.nodes[0].client() as client:
            client.call("SCRIPT", "KILL")

    thread = threading.Thread(target=move)
    thread.start()
    told = ask(cluster, 0, "EVAL", "while true do end", 0)
    thread.join()
    assert refused == ["BUSY", "BUSY"] and "killed" in told
    assert ask(cluster, 0, "GET", "b") == b"1"


@pytest.mark.parametrize("host", ["localhost", "0.0.0.0", "127.0.0.1"])
def test_redirections_name_an_address_that_can_be_connected_to(host: str) -> None:
    emulator = emuredis.Emulator(cluster=2)
    with emulator.serve(host=host):
        assert emulator.cluster is not None
        assert {name for name, _ in emulator.cluster.addresses} <= {"127.0.0.1", "::1"}
