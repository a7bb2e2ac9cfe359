"""Values of every type and encoding for the tests of RDB: the commands that make them, and all that can be seen of one.

`made` is a strategy: a list of commands on the key ``k``. The sizes of what they put in lie around the limits at which
the server changes an encoding. `seen` asks one side for everything a client can learn about a key, in absolute times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

__all__ = ["KEY", "Ask", "Line", "made", "seen"]

KEY = b"k"
Ask = Callable[..., Any]
Line = list[bytes]
_FAR = 4_000_000_000_000  # Unix milliseconds

_texts = st.one_of(
    st.binary(max_size=12),
    st.integers(-(1 << 63), (1 << 63) - 1).map(lambda number: b"%d" % number),
    st.integers(-5000, 5000).map(lambda number: b"%d" % number),
    st.sampled_from([b"", b"-0", b"007", b"x" * 63, b"y" * 64, b"z" * 65, b"w" * 129, b"ab" * 2050, b"3.5"]),
    st.builds(lambda piece, times: piece * times, st.binary(min_size=1, max_size=5), st.integers(1, 400)),
)
_scores = st.one_of(
    st.floats(allow_nan=False).map(lambda score: repr(score).encode()),
    st.integers(-(10**6), 10**6).map(lambda score: b"%d" % score),
    st.sampled_from([b"-0", b"+inf", b"-inf", b"1e300", b"0.1", b"3", b"9007199254740993"]),
)
_many = st.sampled_from([0, 0, 0, 120, 130, 505, 520])


def _numbered(count: int, prefix: bytes = b"") -> list[bytes]:
    return [prefix + b"%d" % number for number in range(count)]


@st.composite
def _string(draw: st.DrawFn) -> list[Line]:
    lines = [[b"SET", KEY, draw(_texts)]]
    if draw(st.booleans()):
        lines.append([b"APPEND", KEY, draw(_texts)])
    if draw(st.integers(0, 9)) == 0:
        lines = [[b"PFADD", KEY, *draw(st.lists(_texts, min_size=1, max_size=20))]]
    return lines


@st.composite
def _list(draw: st.DrawFn) -> list[Line]:
    elements = draw(st.lists(_texts, min_size=1, max_size=20))
    lines = [[b"RPUSH", KEY, *elements]]
    if count := draw(_many):
        lines.append([b"RPUSH", KEY, *_numbered(count, draw(st.sampled_from([b"", b"element:"])))])
    for _ in range(draw(st.integers(0, 3))):
        lines.append([b"LINSERT", KEY, b"BEFORE", draw(st.sampled_from(elements)), draw(_texts)])
    if draw(st.booleans()):
        lines.append([b"LTRIM", KEY, b"0", b"%d" % draw(st.integers(0, 200))])
    if draw(st.integers(0, 4)) == 0:
        lines.append([b"LPUSH", KEY, b"large" * 2000])
    return lines


@st.composite
def _set(draw: st.DrawFn) -> list[Line]:
    numbers = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-40000, 40000)
    members = numbers.map(lambda number: b"%d" % number) if draw(st.booleans()) else _texts
    lines = [[b"SADD", KEY, *draw(st.lists(members, min_size=1, max_size=20))]]
    if count := draw(_many):
        lines.append([b"SADD", KEY, *_numbered(count)])
        lines.append([b"SREM", KEY, *_numbered(draw(st.integers(1, count)))])
        lines.append([b"SADD", KEY, b"1"])
    return lines


@st.composite
def _hash(draw: st.DrawFn) -> list[Line]:
    fields = draw(st.lists(_texts, min_size=1, max_size=20))
    lines = [[b"HSET", KEY, *[word for field in fields for word in (field, draw(_texts))]]]
    if count := draw(_many):
        lines.append([b"HSET", KEY, *[word for name in _numbered(count) for word in (name, b"v")]])
    if draw(st.booleans()):
        for field in draw(st.lists(st.sampled_from(fields), min_size=1, max_size=5, unique=True)):
            at = b"%d" % (_FAR + draw(st.integers(0, 10**9)))
            lines.append([b"HPEXPIREAT", KEY, at, b"FIELDS", b"1", field])
    return lines


@st.composite
def _zset(draw: st.DrawFn) -> list[Line]:
    members = draw(st.lists(_texts, min_size=1, max_size=20))
    lines = [[b"ZADD", KEY, *[word for member in members for word in (draw(_scores), member)]]]
    if count := draw(_many):
        lines.append([b"ZADD", KEY, *[word for name in _numbered(count) for word in (name, b"m" + name)]])
        lines.append([b"ZREMRANGEBYRANK", KEY, b"0", b"%d" % draw(st.integers(0, count - 1))])
    return lines


@st.composite
def _stream(draw: st.DrawFn) -> list[Line]:
    lines: list[Line] = []
    ids: list[bytes] = []
    names = st.lists(_texts, min_size=1, max_size=4)
    usual = draw(names)
    ms = 0
    for _ in range(draw(st.integers(1, 12)) + draw(st.sampled_from([0, 0, 100, 230]))):
        ms += draw(st.sampled_from([1, 1, 1, 300, 1 << 20]))
        ids.append(b"%d-%d" % (ms, draw(st.sampled_from([0, 1, 7, 200]))))
        fields = draw(names) if draw(st.integers(0, 7)) == 0 else usual
        pairs = [word for field in fields for word in (field, b"v%d" % ms)]
        lines.append([b"XADD", KEY, ids[-1], *pairs])
    for one in draw(st.lists(st.sampled_from(ids), max_size=6)):
        lines.append([b"XDEL", KEY, one])
    if draw(st.integers(0, 3)) == 0:
        lines.append([b"XTRIM", KEY, b"MAXLEN", b"%d" % draw(st.integers(0, len(ids)))])
    for group in draw(st.lists(st.sampled_from([b"g", b"h", b"", b"group:1"]), max_size=3, unique=True)):
        lines += _group(draw, group, ids)
    if draw(st.integers(0, 4)) == 0:
        lines.append([b"XDEL", KEY, *ids])
    if draw(st.integers(0, 4)) == 0:
        lines.append([b"XSETID", KEY, b"9999999999999-5", b"ENTRIESADDED", b"1000", b"MAXDELETEDID", b"3-0"])
    return lines


def _group(draw: st.DrawFn, group: bytes, ids: list[bytes]) -> list[Line]:
    lines = [[b"XGROUP", b"CREATE", KEY, group, draw(st.sampled_from([b"0", b"$", *ids]))]]
    for consumer in draw(st.lists(st.sampled_from([b"c", b"d", b"e\xff"]), max_size=3)):
        count = b"%d" % draw(st.integers(1, 120))
        lines.append([b"XREADGROUP", b"GROUP", group, consumer, b"COUNT", count, b"STREAMS", KEY, b">"])
    if draw(st.booleans()):
        lines.append([b"XGROUP", b"CREATECONSUMER", KEY, group, b"idle"])
        at = b"%d" % draw(st.integers(0, _FAR))
        lines.append([b"XCLAIM", KEY, group, b"claimer", b"0", draw(st.sampled_from(ids)), b"TIME", at,
                      b"RETRYCOUNT", b"%d" % draw(st.integers(0, 9))])  # fmt: skip
    if draw(st.booleans()):
        lines.append([b"XACK", KEY, group, *draw(st.lists(st.sampled_from(ids), min_size=1, max_size=4))])
    return lines


#: The commands that make one value under `KEY`; its time to live among them.
made = st.one_of(_string(), _list(), _set(), _hash(), _zset(), _stream())

_CONTENTS: dict[bytes, list[Line]] = {
    b"none": [],
    b"string": [[b"GET", KEY]],
    b"list": [[b"LRANGE", KEY, b"0", b"-1"]],
    b"set": [[b"SMEMBERS", KEY]],
    b"zset": [[b"ZRANGE", KEY, b"0", b"-1", b"WITHSCORES"]],
    b"stream": [[b"XRANGE", KEY, b"-", b"+"], [b"XINFO", b"STREAM", KEY, b"FULL", b"COUNT", b"0"],
                [b"XINFO", b"GROUPS", KEY], [b"XINFO", b"STREAM", KEY]],
}  # fmt: skip


def seen(ask: Ask) -> list[Any]:
    """Type, encoding, time to live and contents of `KEY`; unordered collections sorted."""
    kind = ask(b"TYPE", KEY)
    found = [kind, ask(b"OBJECT", b"ENCODING", KEY), ask(b"PEXPIRETIME", KEY)]
    if kind == b"hash":
        flat = ask(b"HGETALL", KEY)
        fields = flat[::2]
        times = ask(b"HPEXPIRETIME", KEY, b"FIELDS", b"%d" % len(fields), *fields)
        return [*found, sorted(zip(fields, flat[1::2], times, strict=True))]
    for line in _CONTENTS[kind]:
        reply = ask(*line)
        found.append(sorted(reply) if kind == b"set" else reply)
    return found
