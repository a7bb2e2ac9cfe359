"""Random libraries of functions on emuredis and on the live server: loaded, replaced, called, dumped, restored."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.endpoints import SocketEndpoint

from .lines import parse_text
from .test_random import PHASES, look, truth

__all__ = ["truth"]

BODIES = [
    "return {#keys, #args, keys, args}",
    "count = count + 1 return count",
    "return count",
    "return helper(args[1])",
    "return server.call('INCR', keys[1])",
    "return redis.call('GET', keys[1])",
    "return server.call('SET', keys[1], args[1])",
    "return server.pcall('LPUSH', keys[1], 'x')",
    "return server.call('LPUSH', keys[1])",
    "return server.call('NOSUCH')",
    "return server.call('FCALL', 'a_f', 0)",
    "error('oops')",
    "error({err = 'MY oops'})",
    "local x = nil\nreturn x.y",
    "return nosuch",
    "nosuch = 1",
    "return helper(nosuch)",
    "return KEYS[1]",
    "return {ok = 'fine'}",
    "return {err = 'bad'}",
    "return {map = {a = 1}}",
    "server.setresp(3)\nserver.call('HSET', 'h', 'f', 1)\nreturn server.call('HGETALL', 'h')",
    "for i = 1, 3 do\n  server.call('RPUSH', 'l', i)\nend\nreturn server.call('LRANGE', 'l', 0, -1)",
    "return (function() return server.call('TYPE', 'l') end)()",
    "return server.register_function('x', function() end)",
    "return early.register_function('x', function() end)",
    "return early.call('PING')",
    "return {pcall(helper, {})}",
]
FLAGS = ["no-writes", "allow-oom", "NO-CLUSTER", "allow-cross-slot-keys", "allow-stale"]
SLIPS = [
    "x = 1",
    "nosuch()",
    "foo(",
    "server.call('PING')",
    "server.register_function('a-b', helper)",
    "return",
]
LIBRARIES = "abc"
FUNCTIONS = "fgh"


@st.composite
def registrations(draw: st.DrawFn, library: str) -> str:
    """One call of register_function, in either form."""
    # Names of several libraries meet in one name only: of two collisions the server tells either.
    name = draw(st.sampled_from([f"{library}_{f}" for f in FUNCTIONS] * 4 + ["shared"]))
    callback = f"function(keys, args) {draw(st.sampled_from(BODIES))} end"
    if draw(st.booleans()):
        return f"server.register_function('{name}', {callback})"
    fields = [f"function_name = '{name}'", f"callback = {callback}"]
    if draw(st.booleans()):
        flags = draw(st.lists(st.sampled_from([*FLAGS] * 5 + ["nosuch"]), max_size=3))
        fields.append("flags = {" + ", ".join(f"'{flag}'" for flag in flags) + "}")
    if draw(st.booleans()):
        fields.append("description = 'what it does'")
    return "redis.register_function{" + ", ".join(draw(st.permutations(fields))) + "}"


@st.composite
def loads(draw: st.DrawFn) -> str:
    """A FUNCTION LOAD of a library, sometimes one with a slip in it."""
    library = draw(st.sampled_from(LIBRARIES))
    parts = ["local early, count = server, 0", "local function helper(x) return 'helped ' .. x end"]
    parts += draw(st.lists(registrations(library), min_size=1, max_size=4))
    if draw(st.integers(0, 5)) == 0:
        parts.insert(draw(st.integers(2, len(parts))), draw(st.sampled_from(SLIPS)))
    code = f"#!lua name={library}\n" + "\n".join(parts)
    replace = draw(st.sampled_from(["", "REPLACE ", "REPLACE "]))
    return f"FUNCTION LOAD {replace}" + '"' + code.replace("\n", "\\n").replace('"', '\\"') + '"'


names = st.builds(lambda library, f: f"{library}_{f}", st.sampled_from("abAB"), st.sampled_from(FUNCTIONS))
calls = st.builds(
    "{} {} {}".format,
    st.sampled_from(["FCALL", "FCALL", "FCALL_RO"]),
    names | st.sampled_from(["shared", "SHARED"]),
    st.sampled_from(["0", "0 v", "1 k", "1 k v w", "2 k l 3", "3 k", "-1", "x"]),
)
others = st.sampled_from(
    [
        "~ FUNCTION LIST WITHCODE",
        "~ FUNCTION LIST LIBRARYNAME a",
        "FUNCTION STATS",
        "FUNCTION DELETE a",
        "FUNCTION DELETE b",
        "FUNCTION FLUSH",
        "FLUSHALL",
        "MULTI",
        "~ EXEC",
        "? FUNCTION DUMP\n:save dump\nFUNCTION RESTORE {saved:dump} REPLACE",
        "? FUNCTION DUMP\n:save dump\nFUNCTION DELETE b\n? FUNCTION RESTORE {saved:dump}",
        "? FUNCTION DUMP\n:save dump\nFUNCTION FLUSH\nFUNCTION RESTORE {saved:dump}",
    ]
)


@pytest.mark.slow
@settings(max_examples=80, phases=PHASES)
@given(
    lines=st.lists(st.one_of(loads(), loads(), calls, calls, calls, calls, others), min_size=10, max_size=40),
    protocol=st.sampled_from([2, 3]),
)
def test_libraries(lines: list[str], protocol: int, truth: SocketEndpoint) -> None:
    (block,) = parse_text("== random\n" + "\n".join(lines), "random")
    differing = look(block.lines, protocol, truth)
    assert not differing, "\n".join([f"RESP{protocol}", *lines, "", *differing])
