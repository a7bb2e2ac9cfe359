"""Deadlines of keys and of hash fields on a manual clock: exact, in order, and without leftovers."""

from __future__ import annotations

import pytest

from emuredis import Emulator, ManualClock
from emuredis.client import Client
from emuredis.keyspace.keyspace import SLICE, STALE, Keyspace
from emuredis.replies import Push


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def emulator(clock: ManualClock) -> Emulator:
    return Emulator(clock=clock, seed=1, config={"notify-keyspace-events": "Exgh$n"})


@pytest.fixture
def client(emulator: Emulator) -> Client:
    return emulator.client()


def events_of(emulator: Emulator) -> list[tuple[bytes, bytes]]:
    """Fills up with (event, key) as they are published."""
    heard: list[tuple[bytes, bytes]] = []
    session = emulator.engine.connect()
    emulator.engine.execute(session, [b"PSUBSCRIBE", b"__keyevent@*"])

    def on_push(push: Push) -> None:
        heard.append((push[2].partition(b":")[2], push[3]))

    session.on_push = on_push
    return heard


def test_a_key_lives_up_to_its_deadline_and_no_longer(clock: ManualClock, client: Client) -> None:
    client.call("SET", "k", "v", "PX", 100)
    clock.advance(99)
    assert client.call("PTTL", "k") == 1
    clock.advance(1)
    assert client.call("GET", "k") is None
    assert client.call("PTTL", "k") == -2


def test_keys_and_fields_expire_in_the_order_of_their_deadlines(
    clock: ManualClock, emulator: Emulator, client: Client
) -> None:
    client.call("SET", "late", "v", "PX", 300)
    client.call("SET", "early", "v", "PX", 100)
    client.call("HSET", "h", "f", 1, "g", 2)
    client.call("HPEXPIRE", "h", 200, "FIELDS", 1, "f")
    client.call("HPEXPIRE", "h", 400, "FIELDS", 1, "g")
    heard = events_of(emulator)
    clock.advance(1000)
    assert heard == [
        (b"expired", b"early"),
        (b"hexpired", b"h"),
        (b"expired", b"late"),
        (b"hexpired", b"h"),
        (b"del", b"h"),
    ]


def test_a_deadline_that_was_moved_or_taken_away_does_not_strike(clock: ManualClock, client: Client) -> None:
    for key in ("moved", "persisted", "replaced", "deleted"):
        client.call("SET", key, "v", "PX", 100)
    client.call("PEXPIRE", "moved", 500)
    client.call("PERSIST", "persisted")
    client.call("SET", "replaced", "w")
    client.call("DEL", "deleted")
    client.call("SET", "deleted", "again")
    client.call("HSET", "h", "f", 1, "g", 2, "e", 3)
    client.call("HPEXPIRE", "h", 100, "FIELDS", 3, "f", "g", "e")
    client.call("HPERSIST", "h", "FIELDS", 1, "f")
    client.call("HSET", "h", "g", 5)
    client.call("HPEXPIRE", "h", 300, "FIELDS", 1, "e")
    clock.advance(200)
    assert client.call("EXISTS", "moved", "persisted", "replaced", "deleted") == 4
    assert client.call("HLEN", "h") == 3
    clock.advance(400)
    assert client.call("EXISTS", "moved") == 0
    assert client.call("HKEYS", "h") == [b"f", b"g"]


def test_fields_keep_their_deadlines_when_the_hash_goes_elsewhere(clock: ManualClock, client: Client) -> None:
    client.call("HSET", "h", "f", 1, "g", 2)
    client.call("HPEXPIRE", "h", 100, "FIELDS", 1, "f")
    client.call("COPY", "h", "copied")
    client.call("COPY", "h", "there", "DB", 1)
    client.call("RENAME", "h", "renamed")
    client.call("COPY", "renamed", "moved")
    client.call("MOVE", "moved", 1)
    client.call("SWAPDB", 0, 2)
    client.call("SELECT", 2)
    clock.advance(100)
    assert client.call("HKEYS", "copied") == [b"g"]
    assert client.call("HKEYS", "renamed") == [b"g"]
    client.call("SELECT", 1)
    assert client.call("HKEYS", "there") == [b"g"]
    assert client.call("HKEYS", "moved") == [b"g"]


def test_a_transaction_sees_one_instant(clock: ManualClock, client: Client) -> None:
    client.call("SET", "k", "v", "PX", 100)
    clock.advance(50)
    client.call("MULTI")
    client.call("PTTL", "k")
    client.call("PEXPIRE", "k", 10)
    client.call("PTTL", "k")
    clock.advance(20)
    assert client.call("EXEC") == [30, 1, 10]


def test_many_keys_that_expire_at_once_are_all_gone(clock: ManualClock, emulator: Emulator) -> None:
    client = emulator.client()
    for number in range(3 * SLICE):
        client.call("SET", f"k{number}", "v", "PX", 100)
        client.call("HSETEX", f"h{number}", "PX", 100, "FIELDS", 1, "f", "v")
    client.call("SET", "stays", "v")
    # The clock passes the deadline without a stop, as time does while nobody looks.
    clock.sleep(0.2)
    last = 3 * SLICE - 1
    assert client.call("GET", f"k{last}") is None
    assert client.call("HGET", f"h{last}", "f") is None
    assert client.call("SET", f"k{last - 1}", "w", "XX") is None
    assert client.call("HSETNX", f"h{last - 1}", "g", "w") == 1
    assert client.call("HKEYS", f"h{last - 1}") == [b"g"]
    assert client.call("DBSIZE") == 2
    assert sorted(client.call("KEYS", "*")) == [f"h{last - 1}".encode(), b"stays"]
    assert client.call("SCAN", 0, "COUNT", 100) == [b"0", client.call("KEYS", "*")]
    info = client.call("INFO", "stats").decode()
    assert f"expired_keys:{3 * SLICE}\r\n" in info
    assert f"expired_fields:{3 * SLICE}\r\n" in info


def keyspace_of(emulator: Emulator) -> Keyspace:
    return emulator.engine.keyspace


def test_deadlines_given_again_and_again_leave_nothing_behind(emulator: Emulator, client: Client) -> None:
    client.call("HSET", "h", "f", 1)
    for number in range(3 * STALE):
        client.call("SET", "k", "v", "PX", 1_000_000 + number)
        client.call("HPEXPIRE", "h", 2_000_000 - number, "FIELDS", 1, "f")
    assert len(keyspace_of(emulator).heap) <= STALE + 10
    assert client.call("PTTL", "k") == 1_000_000 + 3 * STALE - 1
    client.call("FLUSHALL")
    assert keyspace_of(emulator).heap == []


def test_msetex_with_a_past_instant_is_seen_by_nobody(client: Client) -> None:
    client.call("MULTI")
    client.call("MSETEX", 2, "a", 1, "b", 2, "PXAT", 1)
    client.call("EXISTS", "a", "b")
    assert client.call("EXEC") == [1, 0]
    assert client.call("EXISTS", "a", "b") == 0
