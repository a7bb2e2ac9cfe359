"""What scripts may use: instructions, time, memory, the cache. None takes more, and none is ended for less."""

from __future__ import annotations

import gc
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from emuredis.clock import ManualClock
from emuredis.emulator import Emulator
from emuredis.scripting import scripts_of
from tests.support.live import Connection

from .both import Both, error_of, evaluate, run

# -- instructions and time -----------------------------------------------------------------------------

ENDLESS = [
    "while true do end",
    "while true do pcall(function() while true do end end) end",
    "while true do coroutine.wrap(function() for i = 1, 1000 do end end)() end",
    "while true do pcall(coroutine.wrap(function() while true do end end)) end",
    "while true do pcall(coroutine.wrap(function() for i = 1, 49000 do end end)) end",
    "while true do local co = coroutine.create(function() while true do end end) coroutine.resume(co) end",
    "local co = coroutine.wrap(function() while true do coroutine.yield() end end) while true do co() end",
    "while true do xpcall(function() while true do end end, function(e) while true do end end) end",
    "local function f() return pcall(f) end while true do f() end",
    "local t = setmetatable({}, {__index = function() while true do end end}) "
    "while true do pcall(function() return t.x end) end",
    "error(setmetatable({}, {__newindex = function() while true do end end}))",
    "while true do pcall(loadstring('while true do end')) end",
    "while true do string.gsub('aaaa', 'a', function() pcall(error) end) end",
    "table.sort({1, 2, 3, 4}, function() while true do end end)",
    "while true do load(function() return nil end) end",
    "while true do redis.pcall('PING') end",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("script", ENDLESS)
@pytest.mark.parametrize("budget", ["script_instructions", "script_seconds"])
def test_an_endless_script_is_ended(script: str, budget: str) -> None:
    emulator = Emulator(clock=ManualClock())
    setattr(emulator, budget, 500_000 if budget == "script_instructions" else 0.02)
    message = error_of(evaluate(emulator, script))
    sha = hashlib.sha1(script.encode()).hexdigest()
    limit = "500000 Lua instructions" if budget == "script_instructions" else "20 milliseconds"
    assert message.startswith(f"ERR emuredis ended the script {sha}: it ran for more than {limit} (script-")
    assert message.endswith(" script: on @user_script:1.")
    assert evaluate(emulator, "return 7") == b":7\r\n"


def test_one_that_lives_where_the_c_stack_is_full_is_ended() -> None:
    """No hook can be called there."""
    emulator = Emulator(script_instructions=1_000_000)
    for script in ("local function f() pcall(f) return f() end f()",
                   "local function f() xpcall(f, function() end) return f() end f()"):  # fmt: skip
        assert "ended the script" in error_of(evaluate(emulator, script))
        assert evaluate(emulator, "return 7") == b":7\r\n"


def test_the_error_names_the_line() -> None:
    emulator = Emulator(script_instructions=1000)
    answer = error_of(evaluate(emulator, "local n = 0\nwhile n < 10 do\n end"))
    assert answer.endswith(
        "it ran for more than 1000 Lua instructions (script-instruction-limit) script: on @user_script:2."
    )


@pytest.mark.parametrize("limit", [1000, 100_000, 250_000])
def test_instructions_are_counted_from_the_beginning(limit: int) -> None:
    """Whatever ran before; ``for`` takes one instruction a turn."""
    emulator = Emulator(script_instructions=limit)
    for _ in range(5):
        assert evaluate(emulator, f"for i = 1, {limit - 300} do end return 1") == b":1\r\n"
        assert b"script-instruction-limit" in evaluate(emulator, f"for i = 1, {limit + 100} do end return 1")


def test_budgets_may_be_set_at_any_time() -> None:
    emulator = Emulator()
    long = "for i = 1, 300000 do end return 1"
    assert (emulator.script_instructions, emulator.script_seconds) == (None, None)
    assert evaluate(emulator, long) == b":1\r\n"
    emulator.script_instructions = 1000
    assert run(emulator, "CONFIG", "GET", "script-instruction-limit").endswith(b"$4\r\n1000\r\n")
    assert b"script-instruction-limit" in evaluate(emulator, long)
    emulator.script_instructions = None
    assert evaluate(emulator, long) == b":1\r\n"
    run(emulator, "CONFIG", "SET", "script-time-limit", 5)
    assert emulator.script_seconds == 0.005
    assert b"script-time-limit" in evaluate(emulator, "while true do end")
    emulator.script_seconds = None
    assert evaluate(emulator, long) == b":1\r\n"
    assert Emulator(script_seconds=1.5).script_seconds == 1.5


NO_BUDGETS = [
    ("script_instructions", 0), ("script_instructions", -5), ("script_seconds", 0), ("script_seconds", -1),
    ("script_seconds", float("nan")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), NO_BUDGETS)
def test_budgets_that_are_none(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        setattr(Emulator(), name, value)


def test_what_was_written_before_stays() -> None:
    emulator = Emulator(script_instructions=1000)
    evaluate(emulator, "redis.call('SET', 'k', 'v') while true do end")
    assert run(emulator, "GET", "k") == b"$1\r\nv\r\n"


# -- memory ----------------------------------------------------------------------------------------------

MEBI = 1 << 20
BOMBS = [
    "return #string.rep('x', 1000000000)", "return pcall(string.rep, 'x', 1000000000)\nand 1",
    "local t = {} for i = 1, 1e9 do t[i] = {} end", "local s = 'x' while true do s = s .. s end",
    "while true do pcall(string.rep, 'x', 1e9) end",
    "while true do pcall(function() local s = 'x' while true do s = s .. s end end) end",
    "local t = {} for i = 1, 1e9 do t[i] = coroutine.create(function() end) end",
    "return #redis.call('GET', 'big')", "local t = {} for i = 1, 1e6 do t[i] = redis.call('GET', 'mid') .. i end",
    "local t = {} for i = 1, 1e6 do t[i] = i .. redis.call('GET', 'small') end",
    "return #redis.call('LRANGE', 'list', 0, -1)",
    "local t = {} for i = 1, 1e6 do local ok, e = pcall(redis.call, 'GET', 'small') t[i] = i .. e end",
    "redis.setresp(3) return #redis.call('GET', 'big')", "return #redis.call('HGET', 'h', 'f')",
    "return #table.concat({('x'):rep(5e7), ('y'):rep(5e7), ('z'):rep(5e7), ('z'):rep(5e7)})",
    "local t = {} while true do t[#t + 1] = redis.status_reply('x' .. #t) end",
    "return #string.gsub(string.rep('x', 1e6), 'x', string.rep('y', 1000))",
]  # fmt: skip


@pytest.fixture(scope="module")
def narrow() -> Emulator:
    """32 MiB for scripts, and values larger than that."""
    emulator = Emulator(config={"script-memory-limit": "32mb"})
    run(emulator, "SET", "big", b"x" * (40 * MEBI))
    run(emulator, "SET", "mid", b"x" * (3 * MEBI))
    run(emulator, "SET", "small", b"x" * 1000)
    run(emulator, "HSET", "h", "f", b"x" * (40 * MEBI))
    run(emulator, "RPUSH", "list", *[b"x" * MEBI] * 50)
    return emulator


@pytest.mark.slow
@pytest.mark.parametrize("script", BOMBS)
def test_a_bomb_is_ended(narrow: Emulator, script: str) -> None:
    message = error_of(evaluate(narrow, script))
    sha = hashlib.sha1(script.encode()).hexdigest()
    assert message.startswith(
        f"ERR emuredis ended the script {sha}: it needed more than 33554432 bytes of memory (script-memory-limit)"
    )
    assert evaluate(narrow, "return redis.call('STRLEN', 'small')") == b":1000\r\n"


FITTING = [
    ("return #redis.call('GET', 'mid')", b":3145728\r\n"), ("return #string.rep('x', 20000000)", b":20000000\r\n"),
    ("for i = 1, 100 do local s = redis.call('GET', 'mid') end return 1", b":1\r\n"),
    ("for i = 1, 200 do local s = ('x'):rep(1e6) .. i end return 1", b":1\r\n"),
    ("for i = 1, 30 do redis.call('LRANGE', 'list', 0, 9) end return #redis.call('LRANGE', 'list', 0, 9)", b":10\r\n"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("script", "answer"), FITTING)
def test_what_fits_is_left_alone(narrow: Emulator, script: str, answer: bytes) -> None:
    assert evaluate(narrow, script) == answer


@pytest.mark.slow
def test_arguments_and_sources_count(narrow: Emulator) -> None:
    assert evaluate(narrow, "return #ARGV[1]", b"x" * (20 * MEBI)) == b":%d\r\n" % (20 * MEBI)
    for many in ([b"x" * (40 * MEBI)], [b"x" * 10_000] * 5_000):
        assert "script-memory-limit" in error_of(evaluate(narrow, "return #ARGV[1]", *many))
    assert evaluate(narrow, "return #ARGV", *[b"x" * 100] * 50_000) == b":50000\r\n"
    source = "return #'%s'"
    assert evaluate(narrow, source % ("x" * MEBI)) == b":%d\r\n" % MEBI
    assert "no memory for a script" in error_of(evaluate(narrow, source % ("x" * 40 * MEBI)))
    assert evaluate(narrow, "return 7") == b":7\r\n"


@pytest.mark.slow
def test_many_large_scripts_drop_older_ones(narrow: Emulator) -> None:
    scripts = scripts_of(narrow.engine)
    for i in range(100):
        assert evaluate(narrow, f"return {i}, '{i}{'x' * MEBI}'") == b":%d\r\n" % i
    assert scripts.count() < 40
    assert evaluate(narrow, "return redis.call('STRLEN', 'small')") == b":1000\r\n"


@pytest.mark.slow
def test_lack_of_memory_between_the_marks_cannot_take_down_the_process() -> None:
    """Lua filled to the brim, and then a call: in a process of its own, for it would be the end of this one."""
    program = """
from emuredis import Emulator, ReplyError
emulator = Emulator(config={"script-memory-limit": "32mb"})
client = emulator.client()
client.call("SET", "k", "x" * 100000)
for brim in range(150, 164, 4):
    for rest in range(0, 1000, 97):
        script = '''
            local n, s = %d * 1048576 + %d * 1000, ('x'):rep(1024)
            local t = {}
            while #s < n / 2 do s = s .. s end
            pcall(function() for i = 1, 1e9 do t[i] = i .. s end end)
            for i = 1, 100 do local ok, v = pcall(redis.call, 'GET', 'k') t[#t + 1] = v .. i end''' % (brim, rest)
        try:
            client.call("EVAL", script, 0, "argument")
        except ReplyError as error:
            assert "script-memory-limit" in str(error), error
        assert client.call("EVAL", "return 7", 0, "y" * 900000) == 7
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_limit_may_be_changed() -> None:
    emulator = Emulator(config={"script-memory-limit": "8mb"})
    script = "return #string.rep('x', 20000000)"
    assert b"script-memory-limit" in evaluate(emulator, script)
    run(emulator, "CONFIG", "SET", "script-memory-limit", "64mb")
    assert evaluate(emulator, script) == b":20000000\r\n"
    run(emulator, "CONFIG", "SET", "script-memory-limit", 0)
    assert evaluate(emulator, script) == b":20000000\r\n"
    run(emulator, "CONFIG", "SET", "script-memory-limit", "4mb")
    assert b"script-memory-limit" in evaluate(emulator, script)
    assert b"at least 4194304" in run(emulator, "CONFIG", "SET", "script-memory-limit", "3mb")


def test_a_collector_that_was_stopped_runs_for_the_next_script() -> None:
    emulator = Emulator()
    evaluate(emulator, "collectgarbage('stop')")
    bridge = scripts_of(emulator.engine)._runtime.bridge
    evaluate(emulator, "for i = 1, 200 do local s = ('x'):rep(1e6) .. i end")
    assert bridge.lua.get_memory_used() < 20_000_000


# -- the cache, and what is left behind ----------------------------------------------------------------


def _stats(answer: Callable[..., Any]) -> list[bytes]:
    text = bytes(answer("INFO", "stats")) + bytes(answer("INFO", "memory"))
    return [
        line
        for line in text.split(b"\r\n")
        if line.startswith((b"evicted_scripts", b"number_of_cached_scripts"))
    ]


def test_evictions_are_the_servers(live: Connection) -> None:
    both = Both(live)
    both.check("CONFIG", "RESETSTAT")

    def same() -> None:
        assert _stats(
            lambda *argv: both.engine.execute(both.session, [word.encode() for word in argv])
        ) == _stats(lambda *argv: live.call(*argv).value)

    same()
    for i in range(510):
        both.eval(f"return {i}")
    same()
    both.check("SCRIPT", "LOAD", "return 'loaded'")
    same()
    for i in (0, 11, 505):
        both.eval(f"return {i}")
    both.check("EVALSHA", hashlib.sha1(b"return 14").hexdigest(), 0)
    for i in range(510, 520):
        both.eval(f"return {i}")
    shas = [hashlib.sha1(b"return %d" % i).hexdigest() for i in range(520)]
    both.check("SCRIPT", "EXISTS", *shas, hashlib.sha1(b"return 'loaded'").hexdigest())
    same()
    both.eval("no Lua at all")
    same()
    both.check("SCRIPT", "FLUSH")
    same()
    both.check("CONFIG", "RESETSTAT")
    same()


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


#: One turn of each: what a script is, and its arguments.
TURNS: dict[str, Callable[[int], tuple[str, ...]]] = {
    "distinct": lambda i: ("EVAL", f"return {i}", "0"),
    "distinct that do not compile": lambda i: ("EVAL", f"return {i} +", "0"),
    "one": lambda i: (
        "EVAL", "redis.call('HSET', KEYS[1], 'f', ARGV[1]) return redis.call('HGETALL', KEYS[1])", "1", "h", str(i)),
    "one that fails": lambda i: ("EVAL", "error({err = ARGV[1]})", "0", str(i)),
    "one with coroutines": lambda i: (
        "EVAL", "local t = {} for i = 1, 9 do t[i] = coroutine.create(function() end) end", "0"),
}  # fmt: skip


@pytest.mark.strict
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the size of the process is not told here")
@pytest.mark.parametrize("turn", TURNS)
def test_a_hundred_thousand_scripts_keep_memory_flat(turn: str) -> None:
    emulator = Emulator()
    engine, session = emulator.engine, emulator.engine.connect()

    def turns(first: int, last: int) -> None:
        for i in range(first, last):
            engine.execute(session, [word.encode() for word in TURNS[turn](i)])
        gc.collect()

    turns(0, 20_000)
    before = _resident()
    turns(20_000, 120_000)
    assert _resident() - before < 2_000_000


def test_coroutines_leave_no_hooks_behind() -> None:
    emulator = Emulator()
    lua = None
    for _ in range(300):
        evaluate(emulator, "local t = {} for i = 1, 300 do t[i] = coroutine.create(function() end) end")
        if lua is None:
            lua = scripts_of(emulator.engine)._runtime.bridge.lua
    scripts_of(emulator.engine)._runtime.recover()
    assert lua.get_memory_used() < 1_000_000


@pytest.mark.slow
def test_flush_frees() -> None:
    emulator = Emulator()
    for i in range(50):
        evaluate(emulator, f"return #'{i}{'x' * 500_000}'")
    scripts = scripts_of(emulator.engine)
    used = scripts._runtime.bridge.lua.get_memory_used()
    assert used > 25_000_000
    run(emulator, "SCRIPT", "FLUSH")
    assert scripts._runtime.bridge.lua.get_memory_used() < 1_000_000
