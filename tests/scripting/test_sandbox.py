"""Nothing of the host is in a script's reach, nothing of ours can be changed, and no script runs for ever."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import Any

import pytest

from emuredis.clock import ManualClock
from emuredis.emulator import Emulator
from emuredis.scripting import scripts_of
from tests.support.live import Connection

from .both import Both, error_of, evaluate, run

GLOBALS = "local t = {} for k, v in pairs(_G) do t[#t + 1] = k .. ' ' .. type(v) end table.sort(t) return t"
MEMBERS = """
    local t = {}
    for k, v in pairs(_G[ARGV[1]]) do
      t[#t + 1] = k .. ' ' .. type(v) .. ' ' .. (type(v) == 'function' and '' or tostring(v))
    end
    table.sort(t)
    return t"""
TABLES = [
    "server",
    "redis",
    "string",
    "table",
    "math",
    "os",
    "cjson",
    "bit",
    "cmsgpack",
    "struct",
    "coroutine",
]


def test_globals_are_the_servers(live: Connection) -> None:
    both = Both(live)
    both.eval(GLOBALS)
    for name in TABLES:
        both.eval(MEMBERS, name)


#: Ways out that other sandboxes had; each must end in an error or in nothing.
WAYS_OUT = [
    "return os.execute('true')",
    "return os.getenv('HOME')",
    "return io.open('/etc/passwd')",
    "return require('os')",
    "return package.loadlib('x', 'y')",
    "return dofile('/etc/passwd')",
    "return loadfile('/etc/passwd')",
    "return python.eval('1')",
    "return python.builtins.open('/etc/passwd')",
    "return debug.getregistry()",
    "return getfenv(0)",
    "return setfenv(1, {})",
    "return getfenv(redis.call)",
    "return newproxy(true)",
    "return redis.call.__class__",
    "return redis.call.__globals__",
    "return getmetatable(redis.call).__index",
    "return getmetatable(redis.log).__index",
    "return cjson.null.__class__",
    "return getmetatable(cjson.null).__index",
    "return ('').__class__",
    "return getmetatable('').__index.execute()",
    "return loadstring('\\27Lua\\81')()",
    "return loadstring(string.dump(function() return 1 end))()",
    "return string.dump(pcall)",
    "return load(function() return 'return debug' end)()",
    "return coroutine.wrap(function() return debug.getinfo(1) end)()",
    "return xpcall(function() error({}) end, function() return debug.traceback() end) and debug",
]


@pytest.mark.parametrize("script", WAYS_OUT)
def test_ways_out_are_closed(script: str) -> None:
    assert evaluate(Emulator(), script)[:1] in b"-$", script


#: Everything a script can get hold of, followed through tables, metatables and iterators.
WALK = """
    local seen, found, todo = {}, {}, {_G, KEYS, redis, getmetatable(''), getmetatable(_G), cjson.new()}
    local _, caught = pcall(error, {1}) todo[#todo + 1] = caught
    local ok, failed = pcall(redis.call, 'NOSUCH') todo[#todo + 1] = failed
    todo[#todo + 1] = redis.pcall('NOSUCH')
    todo[#todo + 1] = redis.call('TIME')
    todo[#todo + 1] = redis.call('COMMAND', 'INFO', 'get')
    while #todo > 0 do
      local v = table.remove(todo)
      if type(v) == 'userdata' and v ~= cjson.null then found[#found + 1] = tostring(v) end
      if type(v) == 'table' and not seen[v] then
        seen[v] = true
        for k, x in pairs(v) do todo[#todo + 1] = k todo[#todo + 1] = x end
        todo[#todo + 1] = getmetatable(v)
      end
    end
    return found"""


def test_no_userdata_but_null_can_be_reached() -> None:
    assert evaluate(Emulator(), WALK) == b"*0\r\n"


CHANGES = [
    "x = 1", "_G.x = 1", "rawset(_G, 'x', 1)", "redis.x = 1", "redis.call = nil", "rawset(redis, 'call', 1)",
    "string.rep = nil", "table.insert(redis, 1)", "setmetatable(_G, nil)", "setmetatable(redis, {})",
    "getmetatable('').__index = nil", "getmetatable(_G).__index = nil", "cjson.null = 1", "KEYS = 1",
    "for k in pairs(_G) do _G[k] = nil end", "local f, t = pairs(redis) t.call = 1",
    "local _, t = next({redis}) t.pcall = 1", "math.random = nil", "table.foreach(_G, function(k) _G[k] = 1 end)",
]  # fmt: skip


@pytest.mark.parametrize("script", CHANGES)
def test_nothing_of_the_servers_can_be_changed(script: str, live: Connection) -> None:
    both = Both(live)
    both.eval(script)
    both.eval(GLOBALS)
    both.eval("return redis.call('PING')")


def test_one_script_leaves_nothing_to_the_next() -> None:
    emulator = Emulator()
    evaluate(emulator, "local t = {} t.left = 1 KEYS.left = 1 return 1")
    assert evaluate(emulator, "return KEYS.left") == b"$-1\r\n"


# -- scripts that do not end -----------------------------------------------------------------------

ENDLESS = [
    "while true do end",
    "while true do pcall(function() while true do end end) end",
    "repeat pcall(error) until false",
    "return coroutine.wrap(function() while true do end end)()",
    "local co = coroutine.create(function() while true do end end) coroutine.resume(co) while true do end",
    "while true do xpcall(function() while true do end end, function(e) return e end) end",
    "local function f() return f() end return f()",
    "while true do redis.pcall('PING') end",
]


@pytest.mark.parametrize("script", ENDLESS)
def test_an_endless_script_is_ended(script: str) -> None:
    emulator = Emulator(config={"script-instruction-limit": 1_000_000})
    assert "script-instruction-limit" in error_of(evaluate(emulator, script))
    assert evaluate(emulator, "return 7") == b":7\r\n"


def test_an_ended_script_takes_nothing_from_the_next() -> None:
    emulator = Emulator(config={"script-instruction-limit": 300_000})
    assert error_of(evaluate(emulator, "while true do end")).startswith("ERR emuredis ended the script ")
    assert evaluate(emulator, "for i = 1, 150000 do end return 1") == b":1\r\n"


def test_a_long_script_within_the_limit_ends_by_itself() -> None:
    emulator = Emulator(config={"script-instruction-limit": 3_000_000})
    for _ in range(3):
        assert evaluate(emulator, "for i = 1, 1000000 do end return 1") == b":1\r\n"


# -- what goes wrong in the host -------------------------------------------------------------------


def test_a_fault_of_a_command_ends_the_script_and_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    emulator = Emulator()
    run(emulator, "SET", "k", "v")
    command = emulator.engine.table.find(b"GETRANGE")
    assert command is not None

    def broken(ctx: object, argv: list[bytes]) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(command, "fn", broken)
    for script in (
        "redis.call('GETRANGE', 'k', 0, 1)",
        "pcall(redis.call, 'GETRANGE', 'k', 0, 1) redis.call('SET', 'k', 2)",
    ):
        with pytest.raises(RuntimeError, match="a fault"):
            evaluate(emulator, script)
    assert run(emulator, "GET", "k") == b"$1\r\nv\r\n"
    assert evaluate(emulator, "return redis.call('GET', 'k')") == b"$1\r\nv\r\n"


def test_an_interrupt_gets_through(monkeypatch: pytest.MonkeyPatch) -> None:
    emulator = Emulator()
    evaluate(emulator, "return 1")

    class Interrupting:
        @property
        def script_instruction_limit(self) -> int:
            raise KeyboardInterrupt

    runtime = scripts_of(emulator.engine)._runtime
    monkeypatch.setattr(runtime, "run", partial(_interrupted, runtime, Interrupting(), runtime.run))
    with pytest.raises(KeyboardInterrupt):
        evaluate(emulator, "while true do pcall(function() while true do end end) end")
    monkeypatch.undo()
    assert evaluate(emulator, "return 1") == b":1\r\n"


@pytest.mark.parametrize("way", ["redis.call", "redis.pcall", "pcall(redis.call"])
def test_an_interrupt_on_the_way_into_a_command_gets_through(way: str) -> None:
    """A signal may come before the host's function has begun to catch anything."""
    emulator = Emulator()
    evaluate(emulator, "return redis.call('INCR', 'n')")

    def interrupted(*args: object) -> object:
        raise KeyboardInterrupt

    scripts_of(emulator.engine)._runtime.bridge.register(b"INCR", interrupted, False)
    call = f"{way}, 'INCR', 'n')" if way.startswith("pcall") else f"{way}('INCR', 'n')"
    with pytest.raises(KeyboardInterrupt):
        evaluate(emulator, f"while true do {call} end")
    assert evaluate(emulator, "return 1") == b":1\r\n"


def _interrupted(runtime: Any, config: Any, run: Any, *args: Any) -> Any:
    """Run with the configuration swapped once the run has begun, so that the first tick raises."""
    guard = runtime.guard
    kept, take = guard._config, runtime._run

    def begun(*given: Any) -> Any:
        guard._config = config
        return take(*given)

    runtime._run = begun
    try:
        return run(*args)
    finally:
        guard._config, runtime._run = kept, take


@pytest.mark.slow
def test_lua_is_not_loaded_before_the_first_script() -> None:
    program = """
import sys, emuredis
client = emuredis.Emulator().client()
client.call("SET", "k", 1)
client.call("SCRIPT", "EXISTS", "x")
client.call("SCRIPT", "FLUSH")
assert not [name for name in sys.modules if name.startswith(("lupa", "emuredis.scripting"))]
client.call("EVAL", "return 1", 0)
assert "lupa.lua51" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_without_lupa_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lupa.lua51", None)
    emulator = Emulator()
    assert "pip install lupa" in error_of(evaluate(emulator, "return 1"))
    assert "pip install lupa" in error_of(run(emulator, "SCRIPT", "LOAD", "return 1"))
    assert run(emulator, "PING") == b"+PONG\r\n"


def test_a_command_the_emulator_lacks_is_named() -> None:
    emulator = Emulator()
    assert "does not support BGREWRITEAOF" in error_of(evaluate(emulator, "redis.call('bgrewriteaof')"))


def test_time_stands_still_in_a_script() -> None:
    clock = ManualClock()
    emulator = Emulator(clock=clock)
    script = "local a, b = redis.call('TIME'), redis.call('TIME') return a[1] == b[1] and a[2] == b[2]"
    assert evaluate(emulator, script) == b":1\r\n"
