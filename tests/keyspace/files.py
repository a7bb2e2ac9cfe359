"""A keyspace with a bit of everything, and all that can be seen of a keyspace."""

from __future__ import annotations

from typing import Any

from .made import KEY, seen

__all__ = ["contents", "fill"]

_FAR = b"4000000000000"


def fill(ask: Any) -> None:
    """Keys of every type in several databases, with times to live, fields that expire and groups of streams."""
    lines = [
        *([b"SET", b"text", b"hello"], [b"SET", b"number", b"12345"], [b"SET", b"long", b"abc" * 500]),
        *([b"SET", b"with time", b"v", b"PXAT", _FAR], [b"SET", b"", b""]),
        [b"RPUSH", b"list", *[b"element %d" % number for number in range(1000)], b"x" * 9000],
        *([b"RPUSH", b"short list", b"a", b"1"], [b"SADD", b"numbers", b"1", b"-70000", b"5"]),
        *(
            [b"SADD", b"set", b"a", b"1"],
            [b"SADD", b"large set", *[b"m%d" % number for number in range(200)]],
        ),
        *([b"HSET", b"hash", b"f", b"v", b"g", b"1"], [b"HSET", b"large hash", b"f", b"v" * 100]),
        [b"HSET", b"volatile", b"f", b"v", b"g", b"1"],
        [b"HPEXPIREAT", b"volatile", _FAR, b"FIELDS", b"1", b"f"],
        [b"ZADD", b"zset", b"1", b"a", b"-inf", b"b", b"2.5", b"c"],
        [b"ZADD", b"large zset", *[word for n in range(200) for word in (b"%d.5" % n, b"m%d" % n)]],
        [b"PEXPIREAT", b"zset", _FAR],
        *[[b"XADD", b"stream", b"%d-1" % number, b"f", b"v%d" % number] for number in range(1, 150)],
        *([b"XDEL", b"stream", b"3-1", b"120-1"], [b"XGROUP", b"CREATE", b"stream", b"g", b"0"]),
        [b"XREADGROUP", b"GROUP", b"g", b"c", b"COUNT", b"5", b"STREAMS", b"stream", b">"],
        *([b"XACK", b"stream", b"g", b"2-1"], [b"XGROUP", b"CREATECONSUMER", b"stream", b"g", b"d"]),
        *([b"SELECT", b"3"], [b"SET", b"text", b"in another"], [b"SELECT", b"15"], [b"RPUSH", b"l", b"x"]),
        [b"SELECT", b"0"],
    ]
    for line in lines:
        ask(*line)


def contents(ask: Any) -> dict[tuple[int, bytes], Any]:
    """Everything there is to see, by database and key."""
    out: dict[tuple[int, bytes], Any] = {}
    for index in range(16):
        ask(b"SELECT", b"%d" % index)
        for key in ask(b"KEYS", b"*"):
            renamed = lambda *argv, key=key: ask(*[key if word is KEY else word for word in argv])  # noqa: E731
            out[index, key] = seen(renamed)
    ask(b"SELECT", b"0")
    return out
