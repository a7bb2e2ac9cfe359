"""The callers written out by hand do what the commands do: same replies, same data, same events."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emuredis.emulator import Emulator
from emuredis.scripting.hot import CALLERS
from tests.support.live import Connection

from .both import Both

KEYS = st.sampled_from(["k", "k2", "text"])
MEMBERS = st.sampled_from(["a", "b", "", "x" * 70])
NUMBERS = st.sampled_from(
    ["1", "'1'", "0", "2.5", "'2.5'", "-0", "'-1'", "1e300*10", "0/0", "'nan'", "'x'", "2^53+1", "'+inf'"]
)
QUOTED = MEMBERS.map(repr)


def calls() -> st.SearchStrategy[str]:
    """Calls in the shape the callers take, near it, and wrong."""
    odd = st.sampled_from(["", ",nil", ",1", ",{}", ",'x'", ",'x','y'"])
    shapes = {
        "HGET": st.tuples(QUOTED | NUMBERS),
        "HSET": st.tuples(QUOTED, QUOTED | NUMBERS),
        "ZADD": st.tuples(NUMBERS, QUOTED | NUMBERS),
        "ZREM": st.tuples(QUOTED | NUMBERS),
        "ZPOPMIN": st.just(()),
    }
    assert {name.lower() for name in shapes} == set(CALLERS)
    return st.sampled_from(sorted(shapes)).flatmap(
        lambda name: st.tuples(KEYS, shapes[name], odd).map(
            lambda parts: "f('" + name + "'," + ",".join([repr(parts[0]), *parts[1]]) + parts[2] + ")"
        )
    )


SHOW = """
    local function show(r) if type(r) ~= 'table' then return tostring(r) end
      if r.err then return 'E ' .. r.err end
      local t = {} for i = 1, #r do t[i] = show(r[i]) end return '{' .. table.concat(t, ',') .. '}' end
    local out, f = {}, redis.pcall
"""


@pytest.mark.slow
@given(st.lists(calls(), min_size=1, max_size=12))
@settings(max_examples=150)
def test_against_the_commands(body: list[str]) -> None:
    script = SHOW + " ".join(f"out[#out+1] = show({call})" for call in body) + " return out"
    assert played(script, hot=True) == played(script, hot=False)


def played(script: str, hot: bool) -> Any:
    engine = Emulator(config={"notify-keyspace-events": "KEAmn"}).engine
    listener, caller = engine.connect(), engine.connect()
    heard: list[Any] = []
    listener.on_push = heard.append
    engine.execute(listener, [b"PSUBSCRIBE", b"*"])
    engine.execute(caller, [b"SET", b"text", b"t"])
    kept = dict(CALLERS)
    if not hot:
        CALLERS.clear()
    try:
        reply = engine.execute(caller, [b"EVAL", script.encode(), b"0"])
    finally:
        CALLERS.update(kept)
    data = {key: engine.execute(caller, [b"TYPE", key]) for key in engine.keyspace.databases[0].data}
    hashes = [engine.execute(caller, [b"HGETALL", key]) for key, kind in data.items() if kind == b"hash"]
    zsets = [
        engine.execute(caller, [b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"])
        for key, kind in data.items()
        if kind == b"zset"
    ]
    return (
        reply,
        heard,
        data,
        hashes,
        zsets,
        engine.keyspace.dirty,
        engine.keyspace.hits,
        engine.keyspace.misses,
    )


@pytest.mark.slow
def test_against_the_live_server(live: Connection) -> None:
    both = Both(live)

    @given(st.lists(calls(), min_size=1, max_size=8))
    @settings(max_examples=150)
    def check(body: list[str]) -> None:
        both.check("FLUSHALL")
        both.check("SET", "text", "t")
        both.eval(SHOW + " ".join(f"out[#out+1] = show({call})" for call in body) + " return out")

    check()


def test_read_only_scripts_may_not_write(live: Connection) -> None:
    both = Both(live)
    for call in (
        "'HSET','h','f','v'",
        "'ZADD','z',1,'m'",
        "'ZREM','z','m'",
        "'ZPOPMIN','z'",
        "'HGET','h','f'",
    ):
        for _ in range(2):
            both.eval(f"return redis.pcall({call})")
            both.check("EVAL_RO", f"return redis.pcall({call})", 0)
