"""What is measured: single commands, pipelines and the queue's scripts, through redis-py's own interface.

Each workload is ``(prepare(client), run(client))``; ``run`` does `N` operations on a database that ``prepare`` filled
just before, so every contender meets the same state.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["CLAIM", "PIPELINES", "PIPELINE_SIZE", "PROMOTE", "SINGLE", "N"]

N = 200
PIPELINE_SIZE = 100
Step = Callable[[Any], None]

_NOW = 1_700_000_000_000


def _nothing(client: Any) -> None:
    return None


def _fill_zset(client: Any) -> None:
    client.delete("z")
    client.zadd("z", {f"job:{i:06d}": _NOW + i for i in range(1000)})


def _fill_list(client: Any) -> None:
    client.delete("src", "dst")
    client.rpush("src", *(f"job:{i}" for i in range(N)))


def _repeat(operation: Callable[[Any, int], Any]) -> Step:
    def run(client: Any) -> None:
        for i in range(N):
            operation(client, i)

    return run


def _set_key(client: Any) -> None:
    client.set("k", "value-of-some-length")


SINGLE: dict[str, tuple[Step, Step]] = {
    "SET": (_nothing, _repeat(lambda c, i: c.set("k", "value-of-some-length"))),
    "GET": (_set_key, _repeat(lambda c, i: c.get("k"))),
    "INCR": (_nothing, _repeat(lambda c, i: c.incr("counter"))),
    "HSET": (_nothing, _repeat(lambda c, i: c.hset("h", "field", i))),
    "LPUSH": (lambda c: c.delete("l"), _repeat(lambda c, i: c.lpush("l", "job"))),
    "RPOPLPUSH": (_fill_list, _repeat(lambda c, i: c.rpoplpush("src", "dst"))),
    "ZADD": (_fill_zset, _repeat(lambda c, i: c.zadd("z", {f"new:{i}": _NOW + i}))),
    "ZRANGEBYSCORE": (
        _fill_zset,
        _repeat(lambda c, i: c.zrangebyscore("z", "-inf", _NOW + 500, start=0, num=10)),
    ),
    "ZPOPMIN": (_fill_zset, _repeat(lambda c, i: c.zpopmin("z"))),
}


def _pipeline(queue: Callable[[Any, int], Any]) -> Step:
    def run(client: Any) -> None:
        pipe = client.pipeline(transaction=False)
        for i in range(PIPELINE_SIZE):
            queue(pipe, i)
        pipe.execute()

    return run


PIPELINES: dict[str, tuple[Step, Step]] = {
    "SET": (_nothing, _pipeline(lambda p, i: p.set(f"k{i}", "value"))),
    "GET": (_set_key, _pipeline(lambda p, i: p.get("k"))),
    "ZADD": (_fill_zset, _pipeline(lambda p, i: p.zadd("z", {f"new:{i}": _NOW + i}))),
}

_SCRIPTS = Path(__file__).resolve().parent.parent / "echomq" / "scripts"
CLAIM = (_SCRIPTS / "claim.lua").read_text() if (_SCRIPTS / "claim.lua").exists() else ""
PROMOTE = (_SCRIPTS / "promote.lua").read_text() if (_SCRIPTS / "promote.lua").exists() else ""
BASE = "emq:{bench}:"


def job_id(i: int) -> str:
    return f"JOB{i:011d}"


def fill_pending(client: Any, count: int) -> None:
    """``count`` flat jobs waiting."""
    client.flushdb()
    pipe = client.pipeline(transaction=False)
    for i in range(count):
        pipe.hset(f"{BASE}job:{job_id(i)}", mapping={"state": "pending", "attempts": 0, "payload": "{}"})
    pipe.zadd(BASE + "pending", {job_id(i): 0 for i in range(count)})
    pipe.execute()


def fill_schedule(client: Any, count: int) -> None:
    """``count`` flat jobs whose time has come."""
    client.flushdb()
    pipe = client.pipeline(transaction=False)
    for i in range(count):
        pipe.hset(f"{BASE}job:{job_id(i)}", mapping={"state": "scheduled", "attempts": 0, "payload": "{}"})
    pipe.zadd(BASE + "schedule", {job_id(i): 1000 + i for i in range(count)})
    pipe.execute()
