"""XREAD and XREADGROUP waiting on a manual clock: instants, turns, and waits that end because a key or a group went.

What the server does is in the conformance lines ``streams``; here is what they cannot show: exact instants, what is
kept of a parked command, that nothing of an ended wait lingers, and random programs checked against invariants.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

import emuredis
from emuredis import ManualClock, ReplyError
from emuredis.replies import BLOCKED, NULL_ARRAY
from emuredis.values.stream import Stream

from .test_blocking import Actors, check_waiting


def check(actors: Actors) -> None:
    """As `check_waiting`; also, the keyspace knows how many parked commands need their keys."""
    check_waiting(actors.engine)
    parked = [s.waiter for s in actors.engine.sessions.values() if s.waiter is not None]
    assert actors.engine.keyspace.needed == sum(waiter.needs_keys for waiter in parked)


def ids(reply: Any) -> list[bytes]:
    """The ids in the answer of a read of one stream."""
    return [entry_id for entry_id, _ in reply[1]]


# -- time-outs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line", ["XREAD BLOCK 250 STREAMS s $", "XREADGROUP GROUP g c BLOCK 250 STREAMS s >"]
)
def test_a_wait_ends_at_its_instant(line: str) -> None:
    actors = Actors()
    actors.call(0, "XGROUP CREATE s g $ MKSTREAM")
    actors.blocks(0, line)
    actors.clock.advance(249)
    assert actors.take() == []
    actors.clock.advance(1)
    assert actors.take() == [(250, 0, NULL_ARRAY)]
    check(actors)


def test_being_woken_in_vain_does_not_move_the_time_out() -> None:
    actors = Actors()
    actors.blocks(0, "XREAD BLOCK 1000 STREAMS s 5")
    for number in range(1, 5):
        actors.clock.advance(200)
        actors.call(1, f"XADD s {number} f v")
        check(actors)
    actors.clock.advance(1000)
    assert actors.take() == [(1000, 0, NULL_ARRAY)]


def test_a_wait_that_nobody_can_end_names_its_keys() -> None:
    client = emuredis.Emulator(clock=ManualClock()).client()
    with pytest.raises(emuredis.WaitForever, match=r"s1.*s2"):
        client.call("XREAD", "BLOCK", 0, "STREAMS", "s1", "s2", "$", "$")


def test_a_manual_clock_jumps_to_the_time_out() -> None:
    clock = ManualClock(1000)
    client = emuredis.Emulator(clock=clock).client()
    assert client.call("XREAD", "BLOCK", 30_000, "STREAMS", "s", "$") is None
    assert clock.now_ms == 1_030_000


# -- what is waited for ------------------------------------------------------------------------


def test_the_dollar_is_the_last_id_of_when_it_was_sent() -> None:
    actors = Actors()
    actors.call(1, "XADD s 7-7 f v")
    line = [b"XREAD", b"BLOCK", b"0", b"STREAMS", b"s", b"t", b"$", b"$"]
    assert actors.engine.execute(actors.sessions[0], line) is BLOCKED
    waiter = actors.sessions[0].waiter
    assert waiter is not None and waiter.argv[-2:] == [b"7-7", b"0-0"]
    assert line[-2:] == [b"$", b"$"], "the caller's words are the caller's"
    for text in ("MULTI", "XADD s 8 f v", "XADD t 1 f v", "XADD s 9 f v", "EXEC"):
        actors.call(1, text)
    [(_, _, reply)] = actors.take()
    assert [reply[0], ids(reply), reply[2]] == [b"s", [b"8-0", b"9-0"], b"t"]


def test_every_reader_gets_every_entry() -> None:
    actors = Actors(6)
    for number in range(5):
        actors.blocks(number, "XREAD BLOCK 0 STREAMS s $")
    actors.call(5, "XADD s 1 f v")
    assert [(who, ids(reply)) for _, who, reply in actors.take()] == [(n, [b"1-0"]) for n in range(5)]
    check(actors)


def test_consumers_of_a_group_take_turns() -> None:
    actors = Actors(6)
    actors.call(5, "XGROUP CREATE s g $ MKSTREAM")
    for number in range(5):
        actors.blocks(number, f"XREADGROUP GROUP g c{number} BLOCK 0 STREAMS s >")
    for number in range(1, 5):
        actors.call(5, f"XADD s {number} f v")
        check(actors)
    assert [(who, ids(reply)) for _, who, reply in actors.take()] == [
        (n, [b"%d-0" % (n + 1)]) for n in range(4)
    ]
    assert actors.sessions[4].waiter is not None


def test_an_entry_that_comes_and_goes_within_a_unit_wakes_nobody() -> None:
    actors = Actors()
    actors.blocks(0, "XREAD BLOCK 0 STREAMS s $")
    for text in ("MULTI", "XADD s 1 f v", "XDEL s 1", "EXEC"):
        actors.call(1, text)
    assert actors.take() == []
    check(actors)


def test_waiting_counts_as_an_attempt_of_the_consumer() -> None:
    actors = Actors()
    actors.call(1, "XGROUP CREATE s g $ MKSTREAM")
    actors.blocks(0, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >")
    actors.clock.advance(40)
    [consumer] = actors.call(1, "XINFO CONSUMERS s g")
    assert consumer[4:] == [b"idle", 40, b"inactive", -1]
    actors.call(1, "XADD s 1 f v")
    actors.clock.advance(5)
    [consumer] = actors.call(1, "XINFO CONSUMERS s g")
    assert consumer[4:] == [b"idle", 5, b"inactive", 5]


# -- keys and groups that go -------------------------------------------------------------------

LOSSES = ["DEL s", "UNLINK s", "SET s v", "RENAME s t", "RENAME l s", "MOVE s 1", "FLUSHDB", "FLUSHALL", "SWAPDB 0 1",
          "PEXPIRE s 0", "COPY l s REPLACE", "XGROUP DESTROY s g", "SORT l STORE s", "GETSET s v"]  # fmt: skip


@pytest.mark.parametrize("line", LOSSES)
def test_a_reader_of_a_group_learns_that_it_is_gone(line: str) -> None:
    actors = Actors()
    actors.call(1, "RPUSH l 1")
    actors.call(1, "XGROUP CREATE s g $ MKSTREAM")
    actors.blocks(0, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >")
    actors.blocks(2, "XREAD BLOCK 0 STREAMS s $")
    reply = actors.call(1, line)
    if isinstance(reply, ReplyError):  # GETSET of a stream: nothing happened
        assert actors.take() == []
        return
    [(_, who, answer)] = actors.take()
    assert who == 0 and isinstance(answer, ReplyError) and answer.code in ("NOGROUP", "WRONGTYPE")
    check(actors)


def test_a_key_that_expires_ends_the_wait_at_that_instant() -> None:
    actors = Actors()
    actors.call(1, "XGROUP CREATE s g $ MKSTREAM")
    actors.call(1, "PEXPIRE s 70")
    actors.blocks(0, "XREADGROUP GROUP g c BLOCK 100 STREAMS s >")
    actors.clock.advance(500)
    [(at, who, answer)] = actors.take()
    assert (at, who, answer.code) == (70, 0, "NOGROUP")
    check(actors)


def test_groups_in_another_database_are_another_matter() -> None:
    actors = Actors()
    actors.call(1, "XGROUP CREATE s g $ MKSTREAM")
    actors.blocks(0, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >")
    for text in ("SELECT 1", "XADD s 1 f v", "DEL s", "FLUSHDB"):
        actors.call(1, text)
    assert actors.take() == []
    check(actors)


def test_a_client_that_goes_is_forgotten() -> None:
    actors = Actors()
    actors.call(1, "XGROUP CREATE s g $ MKSTREAM")
    actors.blocks(0, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >")
    actors.engine.disconnect(actors.sessions[0])
    check(actors)
    actors.call(1, "XADD s 1 f v")
    assert actors.call(1, "XPENDING s g")[0] == 0
    assert not actors.engine.keyspace.hooks


# -- random programs ---------------------------------------------------------------------------


def _random_line(rng: random.Random) -> str:
    key, other = rng.choice("ab"), rng.choice("ab")
    group, consumer = rng.choice("gh"), rng.choice("xyz")
    return rng.choice(
        [
            f"XREAD BLOCK {rng.randrange(3000)} STREAMS {key} {other} $ $",
            f"XREADGROUP GROUP {group} {consumer} BLOCK {rng.randrange(3000)} STREAMS {key} >",
            f"XREADGROUP GROUP {group} {consumer} BLOCK 0 COUNT 1 STREAMS {key} {other} > >",
            f"BLPOP {key} {other} 2",
            f"XADD {key} * f v",
            f"XADD {key} MAXLEN 2 * f v",
            f"XGROUP CREATE {key} {group} $ MKSTREAM",
            f"XGROUP CREATE {key} {group} 0 MKSTREAM",
            f"XGROUP DESTROY {key} {group}",
            f"XAUTOCLAIM {key} {group} {consumer} 1000 0",
            f"XDEL {key} 1000000-0",
            f"XTRIM {key} MAXLEN 1",
            f"RPUSH {key} 1",
            f"PEXPIRE {key} {rng.randrange(3000)}",
            f"SET {key} v",
            f"DEL {key}",
            f"RENAME {key} {other}",
            f"COPY {key} {other} REPLACE",
            "SWAPDB 0 1",
        ]
    )


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_leave_nothing_behind(seed: int) -> None:
    rng = random.Random(seed)
    actors = Actors(6)
    for _ in range(250):
        free = [n for n, session in enumerate(actors.sessions) if session.waiter is None]
        if free and rng.random() < 0.85:
            actors.call(rng.choice(free), _random_line(rng))
        else:
            actors.clock.advance(rng.choice([1, 700, 1500]))
        check(actors)
        for session in actors.sessions:
            waiter = session.waiter
            if waiter is None or not waiter.needs_keys:
                continue
            for key in waiter.keys:
                stream = session.db.data.get(key)
                assert stream.__class__ is Stream, "who needs a key does not wait without it"
                group = stream.groups[waiter.argv[2]]
                assert stream.top_id() <= group.last_id, "nor while there is something to read"
        for db in actors.engine.keyspace.databases[:2]:
            for value in db.data.values():
                if value.__class__ is Stream:
                    value._check()
