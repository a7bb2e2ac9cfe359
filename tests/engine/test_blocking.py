"""Waiting commands on a manual clock: whom a change serves, when a wait ends, what is left behind.

What the server does is in the conformance lines ``blocking``; here is what they cannot show: exact instants, the order
of time-outs, that nothing of an ended wait lingers, and random programs checked against invariants. Nothing sleeps.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

import emuredis
from emuredis import ManualClock, ReplyError
from emuredis.engine.engine import Engine
from emuredis.replies import BLOCKED, NULL_ARRAY
from emuredis.spec import TABLE, Command, Table
from emuredis.values.list import List
from emuredis.values.zset import ZSet


class Actors:
    """Several sessions of one engine; every reply that comes later is noted with its instant."""

    def __init__(self, count: int = 4, table: Table = TABLE) -> None:
        self.clock = ManualClock(1000)
        self.engine = emuredis.Emulator(clock=self.clock, seed=1).engine
        self.engine.table = table
        self.arrived: list[tuple[int, int, Any]] = []  # (milliseconds since the start, session, reply)
        self.sessions = [self.engine.connect() for _ in range(count)]
        for number, session in enumerate(self.sessions):
            session.on_reply = lambda reply, number=number: self._note(number, reply)

    def _note(self, number: int, reply: Any) -> None:
        self.arrived.append((self.clock.now_ms - 1_000_000, number, reply))

    def call(self, number: int, line: str) -> Any:
        return self.engine.execute(self.sessions[number], [word.encode() for word in line.split()])

    def blocks(self, number: int, line: str) -> None:
        assert self.call(number, line) is BLOCKED

    def take(self) -> list[tuple[int, int, Any]]:
        arrived, self.arrived = self.arrived, []
        return arrived

    def check(self) -> None:
        check_waiting(self.engine)


def check_waiting(engine: Engine) -> None:
    """A waiter stands in the queue of each of its keys, is its session's, and is counted; there is nothing else."""
    waiting = engine.keyspace.waiting
    parked = [session.waiter for session in engine.sessions.values() if session.waiter is not None]
    queued = {waiter for queue in waiting.values() for waiter in queue}
    assert queued == set(parked)
    assert engine.waiting.count == len(parked)
    assert all(waiting.values()), "no empty queue stays behind"
    for waiter in parked:
        places = {place for place, queue in waiting.items() if waiter in queue}
        assert places == {(waiter.session.db.index, key) for key in waiter.keys}
        assert waiter.session.gated
    due = [waiter.deadline_ns for waiter in parked if waiter.deadline_ns is not None]
    assert engine.waiting.next_due_ns() == min(due, default=None)
    kinds = engine.keyspace.waited_kinds
    assert {kind: sum(w.kind is kind for w in parked) for kind in {w.kind for w in parked}} == kinds


# -- time-outs ---------------------------------------------------------------------------------


def test_a_wait_ends_at_its_instant_and_not_before() -> None:
    actors = Actors()
    actors.blocks(0, "BLPOP k 1.5")
    actors.clock.advance(1499)
    assert actors.take() == []
    actors.clock.advance(1)
    assert actors.take() == [(1500, 0, NULL_ARRAY)]
    actors.check()


@pytest.mark.parametrize(
    ("seconds", "milliseconds"),
    [("0.0001", 1), ("0.0015", 2), ("1e-400", 1), ("2", 2000), ("0x0.4", 250), ("0.001", 1), (".5", 500)],
)
def test_a_time_out_is_rounded_up_to_milliseconds(seconds: str, milliseconds: int) -> None:
    actors = Actors()
    actors.blocks(0, f"BLPOP k {seconds}")
    actors.clock.advance(100_000)
    assert actors.take() == [(milliseconds, 0, NULL_ARRAY)]


@pytest.mark.parametrize("seconds", ["0", "0.0", "-0", "-0.0004", "0x0"])
def test_no_time_out_waits_for_ever(seconds: str) -> None:
    actors = Actors()
    actors.blocks(0, f"BLPOP k {seconds}")
    actors.clock.advance(10**12)
    assert actors.take() == []
    assert actors.engine.next_due_ns() is None


def test_time_outs_come_in_the_order_of_their_deadlines() -> None:
    actors = Actors()
    actors.blocks(0, "BLPOP k 3")
    actors.blocks(1, "BLPOP j 1")
    actors.blocks(2, "BZPOPMIN z 2")
    actors.blocks(3, "BRPOP k 1")
    actors.clock.advance(5000)
    assert [(at, who) for at, who, _ in actors.take()] == [(1000, 1), (1000, 3), (2000, 2), (3000, 0)]
    actors.check()


def test_every_command_answers_a_null_array_at_its_time_out() -> None:
    lines = ["BLPOP k 1", "BRPOP k 1", "BLMOVE k j LEFT LEFT 1", "BRPOPLPUSH k j 1", "BLMPOP 1 1 k LEFT",
             "BZPOPMIN k 1", "BZPOPMAX k 1", "BZMPOP 1 1 k MIN"]  # fmt: skip
    actors = Actors(len(lines))
    for number, line in enumerate(lines):
        actors.blocks(number, line)
    actors.clock.advance(1000)
    assert actors.take() == [(1000, number, NULL_ARRAY) for number in range(len(lines))]


def test_a_push_at_the_last_millisecond_serves() -> None:
    actors = Actors()
    actors.blocks(0, "BLPOP k 1")
    actors.clock.advance(999)
    actors.call(1, "RPUSH k x")
    actors.clock.advance(10)
    assert actors.take() == [(999, 0, [b"k", b"x"])]


def test_a_key_that_expires_serves_nobody_and_a_served_one_expires_later() -> None:
    actors = Actors()
    actors.blocks(0, "BLMOVE k j LEFT RIGHT 0")
    actors.call(1, "MULTI")
    actors.call(1, "RPUSH k a b")
    actors.call(1, "PEXPIRE k 50")
    actors.call(1, "EXEC")
    assert actors.take() == [(0, 0, b"a")]
    actors.blocks(0, "BRPOP k2 0")
    actors.clock.advance(50)
    assert actors.take() == []
    assert actors.call(1, "EXISTS k j") == 1


def test_a_command_run_again_keeps_its_deadline_and_goes_to_the_tail() -> None:
    actors = Actors(4, _with_pair())
    actors.blocks(0, "PAIR k 1")
    actors.clock.advance(400)
    actors.blocks(1, "PAIR k 5")
    actors.call(2, "RPUSH k a")  # not enough for either: both park again
    actors.check()
    assert actors.take() == []
    actors.clock.advance(600)
    assert actors.take() == [(1000, 0, NULL_ARRAY)]
    actors.call(2, "DEL k")
    actors.call(2, "RPUSH k b c")
    assert actors.take() == [(1000, 1, [b"b", b"c"])]
    actors.check()


def _with_pair() -> Table:
    """The command table and PAIR, which waits for two elements."""

    def pair(ctx: Any, argv: list[bytes]) -> Any:
        value = ctx.db.write(argv[1], List)
        if value is None or len(value) < 2:
            return ctx.park([argv[1]], List, int(argv[2]) * 1000, NULL_ARRAY)
        taken = value.pop_left_many(2)
        ctx.db.touch(argv[1], 0, b"pair")
        ctx.db.drop_if_empty(argv[1], value)
        return taken

    table = Table(TABLE)
    command = Command("pair", "key timeout", "write blocking", "RW @1", "list", "9.1.0", "", None, "", None)
    command.fn = pair
    table.declare(command)
    return table


# -- who is served -----------------------------------------------------------------------------


def test_first_come_first_served() -> None:
    actors = Actors(6)
    for number in range(5):
        actors.blocks(number, "BLPOP k 0")
    actors.call(5, "RPUSH k a b c")
    assert actors.take() == [(0, 0, [b"k", b"a"]), (0, 1, [b"k", b"b"]), (0, 2, [b"k", b"c"])]
    actors.check()
    actors.call(5, "RPUSH k d e f")
    assert [(who, reply[1]) for _, who, reply in actors.take()] == [(3, b"d"), (4, b"e")]
    assert actors.call(5, "LLEN k") == 1
    actors.check()


def test_a_chain_of_moves_is_served_within_one_unit() -> None:
    actors = Actors(6)
    for number in range(4):
        actors.blocks(number, f"BLMOVE k{number} k{number + 1} LEFT RIGHT 0")
    actors.blocks(4, "BLPOP k4 0")
    assert actors.call(5, "RPUSH k0 token") == 1
    assert [who for _, who, _ in actors.take()] == [0, 1, 2, 3, 4]
    assert actors.call(5, "DBSIZE") == 0
    actors.check()


def test_a_ring_of_moves_ends() -> None:
    actors = Actors(3)
    actors.blocks(0, "BLMOVE a b LEFT RIGHT 0")
    actors.blocks(1, "BLMOVE b a LEFT RIGHT 0")
    actors.call(2, "RPUSH a x")
    assert [who for _, who, _ in actors.take()] == [0, 1]
    assert actors.call(2, "LRANGE a 0 -1") == [b"x"]
    actors.check()


def test_nothing_is_served_inside_a_transaction() -> None:
    actors = Actors(3)
    actors.blocks(0, "BLPOP k 0")
    for line in ("MULTI", "RPUSH k a", "LLEN k", "LPOP k", "RPUSH k b"):
        actors.call(1, line)
    assert actors.call(1, "EXEC") == [1, 1, b"a", 1]
    assert actors.take() == [(0, 0, [b"k", b"b"])]


def test_an_error_met_when_run_again_is_the_reply() -> None:
    actors = Actors(3)
    actors.blocks(0, "BLMOVE k j LEFT LEFT 0")
    actors.call(1, "SET j v")
    actors.call(1, "RPUSH k a")
    [(_, who, reply)] = actors.take()
    assert who == 0 and isinstance(reply, ReplyError) and reply.code == "WRONGTYPE"
    assert actors.call(1, "LRANGE k 0 -1") == [b"a"]
    actors.check()


def test_a_crowd_on_one_key_is_served_in_turn() -> None:
    actors = Actors(301)
    for number in range(300):
        actors.blocks(number, "BZPOPMIN z 0")
    for number in range(300):
        actors.call(300, f"ZADD z {number} m{number}")
    assert [who for _, who, _ in actors.take()] == list(range(300))
    actors.check()


# -- what ends a wait otherwise ----------------------------------------------------------------


def test_a_client_that_goes_is_forgotten() -> None:
    actors = Actors(3)
    actors.blocks(0, "BLPOP a b 5")
    actors.blocks(1, "BLPOP b 0")
    actors.engine.disconnect(actors.sessions[0])
    actors.check()
    actors.call(2, "RPUSH b x")
    actors.clock.advance(10_000)
    assert actors.take() == [(0, 1, [b"b", b"x"])]
    assert actors.engine.next_due_ns() is None
    assert not actors.engine.keyspace.hooks


def test_unblocked_by_another_client() -> None:
    actors = Actors(3)
    actors.blocks(0, "BLPOP k 0")
    assert actors.call(1, f"CLIENT UNBLOCK {actors.sessions[0].id} ERROR") == 1
    [(_, who, reply)] = actors.take()
    assert who == 0 and reply.code == "UNBLOCKED"
    actors.check()


def test_a_wait_that_nobody_can_end_names_its_keys() -> None:
    client = emuredis.Emulator(clock=ManualClock()).client()
    with pytest.raises(emuredis.WaitForever, match="k1.*k2"):
        client.call("BLPOP", "k1", "k2", 0)
    assert client.call("RPUSH", "k1", "x") == 1
    assert client.call("BLPOP", "k1", "k2", 0) == [b"k1", b"x"]


def test_a_manual_clock_jumps_to_the_time_out() -> None:
    clock = ManualClock(1000)
    client = emuredis.Emulator(clock=clock).client()
    assert client.call("BRPOPLPUSH", "a", "b", 30) is None
    assert clock.now_ms == 1_030_000


# -- random programs ---------------------------------------------------------------------------


def _random_line(rng: random.Random) -> str:
    key, other = rng.choice("abc"), rng.choice("abc")
    return rng.choice(
        [
            f"BLPOP {key} {other} {rng.randrange(4)}",
            f"BLMOVE {key} {other} LEFT RIGHT {rng.randrange(4)}",
            f"BLMPOP {rng.randrange(4)} 2 {key} {other} RIGHT COUNT 2",
            f"BZPOPMAX {key} {other} {rng.randrange(4)}",
            f"BZMPOP {rng.randrange(4)} 1 {key} MIN COUNT 2",
            f"RPUSH {key} 1 2",
            f"ZADD {key} 1 m 2 n",
            f"SET {key} v",
            f"DEL {key}",
            f"RENAME {key} {other}",
            "SWAPDB 0 1",
        ]
    )


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_leave_nothing_behind(seed: int) -> None:
    rng = random.Random(seed)
    actors = Actors(6)
    for _ in range(200):
        free = [n for n, session in enumerate(actors.sessions) if session.waiter is None]
        if free and rng.random() < 0.8:
            actors.call(rng.choice(free), _random_line(rng))
        else:
            actors.clock.advance(rng.choice([1, 700, 1500]))
        actors.check()
        for (index, key), queue in actors.engine.keyspace.waiting.items():
            value = actors.engine.keyspace.databases[index].data.get(key)
            # RENAME and friends create keys; a value that a waiter could take is never left lying.
            assert not any(value.__class__ is waiter.kind for waiter in queue), (key, value)
        for value in actors.engine.keyspace.databases[0].data.values():
            assert not isinstance(value, (List, ZSet)) or len(value)
