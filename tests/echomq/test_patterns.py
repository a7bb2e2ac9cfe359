"""The patterns the course teaches, as plain commands on both servers."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from echomq.conformance.world import World
from echomq.connection import Connection
from echomq.script import Script

Open = Callable[..., Connection]

POLL_AND_CLAIM = Script(
    "poll_and_claim",
    b"""
    local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, 1)
    if not due[1] then return nil end
    redis.call('ZREM', KEYS[1], due[1])
    redis.call('LPUSH', KEYS[2], due[1])
    return redis.call('HGETALL', 'job:' .. due[1])
    """,
)


def test_scheduling_with_a_sorted_set_and_a_hash(connect: Open) -> None:
    c = connect()
    for number, at in ((1, 300), (2, 100), (3, 200)):
        assert c.call("HSET", f"job:{number}", "payload", f"p{number}", "at", at) == 2
        assert c.call("ZADD", "due", at, f"{number}") == 1
    assert c.call("ZRANGEBYSCORE", "due", "-inf", 200) == [b"2", b"3"]
    assert c.call("ZRANGE", "due", "-inf", 200, "BYSCORE", "LIMIT", 0, 1) == [b"2"]
    assert c.call("ZADD", "due", "XX", "GT", "CH", 400, "2") == 1
    assert c.call("ZRANGEBYSCORE", "due", "(200", "+inf") == [b"1", b"2"]


def test_the_count_of_zrem_is_the_claim(connect: Open) -> None:
    c, d = connect(), connect()
    c.call("ZADD", "due", 1, "job")
    assert (c.call("ZREM", "due", "job"), d.call("ZREM", "due", "job")) == (1, 0)
    assert c.call("EXISTS", "due") == 0


def test_poll_and_claim_in_one_script(connect: Open) -> None:
    c, d = connect(protocol=2), connect(protocol=2)
    c.call("HSET", "job:7", "payload", "p")
    c.call("ZADD", "due", 50, "7")
    assert c.eval(POLL_AND_CLAIM, ["due", "working"], [49]) is None
    assert c.eval(POLL_AND_CLAIM, ["due", "working"], [50]) == [b"payload", b"p"]
    assert d.eval(POLL_AND_CLAIM, ["due", "working"], [50]) is None
    assert c.call("LRANGE", "working", 0, -1) == [b"7"]


def test_rpop_and_lpush_lose_what_rpoplpush_keeps(connect: Open) -> None:
    c = connect()
    c.call("RPUSH", "queue", "b", "a")
    taken = c.call("RPOP", "queue")  # a crash here loses the job
    assert (taken, c.call("LLEN", "working")) == (b"a", 0)
    c.call("LPUSH", "working", taken)
    assert c.call("RPOPLPUSH", "queue", "working") == b"b"
    assert c.call("LRANGE", "working", 0, -1) == [b"b", b"a"]
    assert c.call("RPOPLPUSH", "queue", "working") is None


@pytest.mark.parametrize("move", [("RPOPLPUSH", "q", "w"), ("LMOVE", "q", "w", "RIGHT", "LEFT")])
def test_rpoplpush_is_lmove_right_left(connect: Open, move: tuple[str, ...]) -> None:
    c = connect()
    c.call("RPUSH", "q", "1", "2", "3")
    assert [c.call(*move), c.call(*move)] == [b"3", b"2"]
    assert (c.call("LRANGE", "q", 0, -1), c.call("LRANGE", "w", 0, -1)) == ([b"1"], [b"2", b"3"])


@pytest.mark.parametrize("move", [("BRPOPLPUSH", "q", "w"), ("BLMOVE", "q", "w", "RIGHT", "LEFT")])
def test_blocking_moves_time_out_empty(world: World, connect: Open, move: tuple[str, ...]) -> None:
    c = connect()
    before = world.server_ms()
    assert c.call(*move, "0.050") is None
    assert world.server_ms() - before >= 50
    c.call("RPUSH", "q", "x")
    assert c.call(*move, "0.050") == b"x"
    assert c.call("LRANGE", "w", 0, -1) == [b"x"]


def test_lrem_after_processing(connect: Open) -> None:
    c = connect()
    c.call("RPUSH", "working", "a", "b", "a")
    assert c.call("LREM", "working", 1, "a") == 1
    assert c.call("LREM", "working", -1, "a") == 1
    assert c.call("LREM", "working", 0, "a") == 0
    assert c.call("LRANGE", "working", 0, -1) == [b"b"]


def test_the_head_of_the_schedule_is_the_next_wake(connect: Open) -> None:
    c = connect(protocol=2)
    c.call("ZADD", "due", 1700000000123, "a", 1700000000122, "b")
    assert c.call("ZRANGE", "due", 0, 0, "WITHSCORES") == [b"b", b"1700000000122"]
    c = connect(protocol=3)
    assert c.call("ZRANGE", "due", 0, 0, "WITHSCORES") == [[b"b", 1700000000122.0]]


@pytest.mark.parametrize("blocking", [("BLPOP", "wake", "20"), ("BLMOVE", "wake", "w", "LEFT", "LEFT", "20")])
def test_a_push_releases_a_parked_worker(world: World, connect: Open, blocking: tuple[str, ...]) -> None:
    parked, other = connect(), connect()
    answers: list[object] = []
    thread = threading.Thread(target=lambda: answers.append(parked.call(*blocking, timeout=30)))
    thread.start()
    world.until("the worker is parked", lambda: b"cmd=bl" in other.call("CLIENT", "LIST"))
    assert other.call("LPUSH", "wake", "1") == 1
    thread.join(20)
    assert answers in ([[b"wake", b"1"]], [b"1"])
    assert other.call("EXISTS", "wake") == 0
