"""Values from Lua to the client and from the client to Lua, compared with the live server."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emuredis.emulator import Emulator
from emuredis.scripting.bridge import words
from tests.support.live import Connection

from .both import Both, error_of, evaluate


def literal(text: bytes) -> str:
    return '"' + "".join(f"\\{byte:03d}" for byte in text) + '"'


NUMBERS = (
    st.integers(-(2**70), 2**70).map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.sampled_from(
        ["1/0", "-1/0", "0/0", "-0", "2^53", "2^63", "-2^63", "1e17", "1e19", "0.1", "3.0", "-2.5"]
    )
)
TEXTS = st.binary(max_size=6).map(literal) | st.just('""')
SCALARS = NUMBERS | TEXTS | st.sampled_from(["true", "false", "nil", "cjson.null", "print2", "redis.call"])


def tables(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Arrays and every kind of marked table."""
    one_key = TEXTS | st.integers(1, 9).map(str)
    return st.one_of(
        st.lists(inner, max_size=4).map(lambda items: "{" + ",".join(items) + "}"),
        TEXTS.map(lambda text: f"{{ok={text}}}"),
        TEXTS.map(lambda text: f"{{err={text}}}"),
        NUMBERS.map(lambda number: f"{{double={number}}}"),
        st.integers(-(10**30), 10**30).map(lambda number: f'{{big_number="{number}"}}'),
        TEXTS.map(lambda text: f'{{verbatim_string={{format="txt",string={text}}}}}'),
        st.tuples(one_key, inner).map(lambda pair: f"{{map={{[{pair[0]}]={pair[1]}}}}}"),
        one_key.map(lambda key: f"{{set={{[{key}]=true}}}}"),
        st.tuples(inner, inner).map(lambda pair: f"{{{pair[0]},ok=5,err=6,map=7,{pair[1]}}}"),
        inner.map(
            lambda item: f"setmetatable({{{item}}},{{__index=function(t,k) if k==2 then return 5 end end}})"
        ),
    )


VALUES = st.recursive(SCALARS, tables, max_leaves=12)


@pytest.mark.slow
@pytest.mark.parametrize("client", [2, 3])
@pytest.mark.parametrize("inside", [2, 3])
def test_what_a_script_returns(client: int, inside: int, live: Connection) -> None:
    both = Both(live, client)

    @given(VALUES)
    @settings(max_examples=150)
    def check(value: str) -> None:
        both.eval(f"local print2 = function() end redis.setresp({inside}) return {value}")

    check()


@pytest.mark.slow
def test_numbers_as_arguments(live: Connection) -> None:
    both = Both(live)

    @given(st.lists(NUMBERS, min_size=1, max_size=5))
    @settings(max_examples=200)
    def check(numbers: list[str]) -> None:
        items = ",".join(numbers)
        both.eval(
            f"redis.call('DEL','n') redis.call('RPUSH','n',{items}) return redis.call('LRANGE','n',0,-1)"
        )

    check()


def test_bytes_go_through_unchanged(live: Connection) -> None:
    both = Both(live)

    @given(st.lists(st.binary(max_size=20), max_size=6))
    @settings(max_examples=100)
    def check(args: list[bytes]) -> None:
        both.eval("redis.call('DEL','n') for _,v in ipairs(ARGV) do redis.call('RPUSH','n',v) end "
                  "return {ARGV, redis.call('LRANGE','n',0,-1), #ARGV}", *args)  # fmt: skip

    check()


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 39, 40, 41, 100, 4999, 5000, 5001, 7000])
def test_any_number_of_arguments_and_elements(count: int, live: Connection) -> None:
    both = Both(live)
    fill = f"local t={{}} for i=1,{count} do t[i]=(i%3==0) and i or 'm'..i end "
    both.eval(fill + "redis.call('RPUSH','n','first',unpack(t)) return redis.call('LRANGE','n',0,-1)")
    both.eval(fill + "return t")
    both.eval(fill + "return redis.pcall('NOSUCH',unpack(t))")
    both.eval(fill + "t[#t+1]={} return redis.pcall('RPUSH','n',unpack(t))")
    both.eval(fill + "return redis.call('MGET','n',unpack(t))")
    both.eval(fill + "for i=1,#t do t[i]={t[i]} end return t")


@pytest.mark.parametrize("count", [6999, 7000, 7001, 20000])
def test_any_number_of_keys(count: int, live: Connection) -> None:
    both = Both(live)
    args = [f"a{i}" for i in range(count)]
    for keys in (0, 1, 2, 3, count):
        both.check("EVAL", "return {#KEYS, #ARGV, KEYS[1], KEYS[#KEYS], ARGV[1], ARGV[#ARGV]}", keys, *args)


def test_deep_nesting_is_refused_by_name() -> None:
    script = "local t = {} for i = 1, tonumber(ARGV[1]) do t = {t} end return t"
    emulator = Emulator()
    assert evaluate(emulator, script, 200).startswith(b"*1\r\n" * 200)
    assert "nested more than 250" in error_of(evaluate(emulator, script, 300))
    assert "nested more than 250" in error_of(evaluate(emulator, "local t = {} t[1] = t return t"))


def test_words() -> None:
    assert words((b"a", 1, -0.5, 2**70)) == [b"a", b"1", b"-0.5", b"1180591620717411300000"]
    assert words((math.nan, math.copysign(math.nan, -1.0))) == [b"nan", b"-nan"]
    wrong: list[Any] = [None, True, {}, object()]
    assert all(words((b"a", value)) is None for value in wrong)


COMMANDS = [
    ("GET", "s"), ("GET", "none"), ("MGET", "s", "none"), ("LRANGE", "l", "0", "-1"), ("HGETALL", "h"),
    ("HGETALL", "none"), ("HMGET", "h", "f", "none"), ("SMEMBERS", "one"), ("SMISMEMBER", "one", "m", "x"),
    ("ZRANGE", "z", "0", "-1", "WITHSCORES"), ("ZSCORE", "z", "b"), ("ZSCORE", "z", "none"), ("ZMSCORE", "z", "a", "x"),
    ("ZPOPMIN", "none"), ("ZRANDMEMBER", "none"), ("ZMPOP", "1", "z", "MIN"), ("LMPOP", "1", "none", "LEFT"),
    ("LPOP", "none"), ("LPOP", "none", "2"), ("BLPOP", "none", "0"), ("BZPOPMIN", "none", "0"), ("LPOS", "l", "none"),
    ("TYPE", "s"), ("TTL", "s"), ("EXISTS", "s"), ("SET", "s", "v"), ("SET", "s", "v", "NX"), ("SET", "s", "w", "GET"),
    ("INCR", "s"), ("INCRBYFLOAT", "n", "1.5"), ("SCAN", "0", "COUNT", "1000"), ("HSCAN", "h", "0"), ("ECHO", "x"),
    ("PING",), ("OBJECT", "ENCODING", "s"), ("COMMAND", "COUNT", "x"), ("NOSUCH",), ("GET",), ("HSET", "h", "f"),
    ("LPUSH", "s", "x"), ("SPOP", "none"), ("SPOP", "none", "1"), ("ZRANK", "z", "b", "WITHSCORE"),
    ("ZADD", "z", "INCR", "1", "a"),
]  # fmt: skip


@pytest.mark.parametrize("client", [2, 3])
@pytest.mark.parametrize("inside", [2, 3])
def test_replies_of_commands(client: int, inside: int, live: Connection) -> None:
    """Each reply as it comes, as its Lua type, and by pcall; twice, for the second call takes another way."""
    both = Both(live, client)
    for command in ("SET s v", "RPUSH l a b", "HSET h f 1", "SADD one m", "ZADD z 1 a 2.5 b"):
        both.check(*command.split())
    start = f"redis.setresp({inside}) local function call(f) return f(unpack(ARGV)) end "
    for argv in COMMANDS:
        for _ in range(2):
            both.eval(start + "return call(redis.call)", *argv)
            both.eval(start + "return call(redis.pcall)", *argv)
            both.eval(
                start
                + "local r = call(redis.pcall) return {type(r), type(r) == 'table' and #r or tostring(r)}",
                *argv,
            )
