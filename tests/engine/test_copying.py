"""A copy of an engine's data: the same, and apart."""

from __future__ import annotations

from emuredis import Emulator, ManualClock
from emuredis.client import Client
from emuredis.engine.copying import copied
from emuredis.engine.engine import Engine

FILL = """
SET s v PX 5000
APPEND raw x
HSET h f v g w
HPEXPIRE h 700 FIELDS 1 f
RPUSH l a b c
SADD ints 1 2 3
SADD set a b c
ZADD z 1.5 a 2 b
XADD x 1-1 f v
XGROUP CREATE x group 0
XREADGROUP GROUP group me STREAMS x >
"""
LOOK = """
GET s
PTTL s
OBJECT ENCODING raw
HGETALL h
HPTTL h FIELDS 2 f g
LRANGE l 0 -1
SMEMBERS ints
SMEMBERS set
ZRANGE z 0 -1 WITHSCORES
XRANGE x - +
XPENDING x group
XINFO GROUPS x
KEYS *
"""
CHANGE = (
    "SET s other|HDEL h f g|RPOP l|SREM set a|ZINCRBY z 1 a|XADD x 2-1 f w|XACK x group 1-1|FLUSHALL".split(
        "|"
    )
)


def run(engine: Engine, lines: list[str]) -> list[object]:
    client = Client(engine)
    replies = [client.call(*line.split()) for line in lines if line]
    client.close()
    return replies


def both() -> tuple[Engine, Engine]:
    engine = Emulator(clock=ManualClock(), seed=3, config={"hash-max-listpack-entries": "1"}).engine
    run(engine, ["SELECT 2", "SET elsewhere 1"])
    run(engine, FILL.split("\n"))
    with engine.lock:
        return engine, copied(engine)


def test_the_same() -> None:
    old, new = both()
    assert run(new, LOOK.split("\n")) == run(old, LOOK.split("\n"))
    assert run(new, ["SELECT 2", "GET elsewhere"]) == [b"OK", b"1"]
    assert run(new, ["RANDOMKEY"] * 5) == run(old, ["RANDOMKEY"] * 5)
    assert new.keyspace.databases[0].data[b"h"].limits is new.limits


def test_apart() -> None:
    old, new = both()
    before = run(old, LOOK.split("\n"))
    for line in CHANGE:
        run(new, [line])
        assert run(old, LOOK.split("\n")) == before, line
    assert run(new, ["DBSIZE"]) == [0]


def test_time_passes_in_each() -> None:
    old, new = both()
    new.clock.advance(1000)  # type: ignore[attr-defined]
    assert run(new, ["HGETALL h", "PTTL s"]) == [{b"g": b"w"}, 4000]
    assert run(old, ["HLEN h", "PTTL s"]) == [2, 5000]
    new.clock.advance(4000)  # type: ignore[attr-defined]
    assert run(new, ["EXISTS s"]) == [0] and run(old, ["EXISTS s"]) == [1]
