"""Libraries of functions: what lines of commands cannot say of them."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from emuredis.emulator import Emulator
from emuredis.scripting import function_dump
from tests.support.live import Connection, LiveServer

from .both import Both, error_of, evaluate, run
from .test_sandbox import WALK, WAYS_OUT

HEAD = "#!lua name=lib\n"
MEMBERS = """
local function list(t)
  local out = {}
  for k, v in pairs(t) do
    local shown = (type(v) == 'string' or type(v) == 'number') and tostring(v) or ''
    out[#out + 1] = tostring(k) .. ' ' .. type(v) .. ' ' .. shown
  end
  table.sort(out)
  return out
end
"""
TABLES = "_G server redis string table math os cjson bit cmsgpack struct coroutine".split()


@pytest.fixture
def both(live: Connection) -> Both:
    live.call("FUNCTION", "FLUSH")
    return Both(live)


def register(name: str, body: str) -> str:
    return f"server.register_function('{name}', function(keys, args) {body} end)\n"


def test_members_and_globals_are_the_servers(both: Both) -> None:
    both.check(
        "FUNCTION", "LOAD",
        HEAD + "local early = server" + MEMBERS + register("of", "return list(_G[args[1]])")
        + register("early", "return {list(early), list(getmetatable(early))}"),
    )  # fmt: skip
    both.check("FCALL", "early", 0)
    for name in TABLES:
        both.check("FCALL", "of", 0, name)
        both.eval(MEMBERS + "return list(_G[ARGV[1]])", name)


def test_missing_at_load_is_everything_but_the_servers_table(both: Both) -> None:
    for name in (
        *TABLES[3:],
        "_G",
        "pairs",
        "next",
        "pcall",
        "error",
        "type",
        "tostring",
        "unpack",
        "KEYS",
        "nosuch",
    ):
        both.check("FUNCTION", "LOAD", HEAD + f"local x = {name}")
    for name in (
        "call",
        "pcall",
        "sha1hex",
        "setresp",
        "error_reply",
        "set_repl",
        "REPL_ALL",
        "breakpoint",
        "nosuch",
    ):
        both.check("FUNCTION", "LOAD", HEAD + f"local x = server.{name}")


@pytest.mark.parametrize("script", WAYS_OUT)
def test_ways_out_are_closed(script: str) -> None:
    emulator = Emulator()
    assert run(emulator, "FUNCTION", "LOAD", HEAD + register("out", script)) == b"$3\r\nlib\r\n"
    assert run(emulator, "FCALL", "out", 0)[:1] in b"-$", script
    assert run(emulator, "FUNCTION", "LOAD", HEAD.replace("lib", "other") + script)[:1] == b"-"


def test_nothing_of_the_host_can_be_reached() -> None:
    emulator = Emulator()
    walk = "local KEYS = {keys, args, early, getmetatable(early)}" + WALK
    run(emulator, "FUNCTION", "LOAD", HEAD + "local early = server\n" + register("walk", walk))
    assert run(emulator, "FCALL", "walk", 0) == b"*0\r\n"


WORDS = [
    "return ",
    "local ",
    "function ",
    "server.call",
    "keys[1]",
    "(",
    ")",
    "\n--",
    " ",
    "'GET'",
    "\t",
    "x",
]


@pytest.mark.slow
@settings(max_examples=150)
@given(words=st.lists(st.sampled_from(WORDS) | st.text("abc~", min_size=1, max_size=40), max_size=400))
@example(words=[])
@example(words=["x" * 17000])
def test_payloads_are_the_servers_and_go_both_ways(words: list[str], live_server: LiveServer) -> None:
    code = (HEAD + register("size", "return 1") + "--" + "".join(words)).encode()
    live, emulator = live_server.connect(), Emulator()
    live.call("FUNCTION", "FLUSH")
    live.call("FUNCTION", "LOAD", code)
    theirs = live.call("FUNCTION", "DUMP").value
    assert function_dump.dump([code]) == theirs
    assert live.call("FUNCTION", "RESTORE", function_dump.dump([code]), "REPLACE").raw == b"+OK\r\n"
    live.close()
    assert run(emulator, "FUNCTION", "RESTORE", theirs) == b"+OK\r\n"
    assert run(emulator, "FCALL", "size", 0) == b":1\r\n"
    assert list(function_dump.check(theirs)) == [code]


def test_a_library_is_cut_off_when_loading_takes_too_long(both: Both) -> None:
    both.check("FUNCTION", "LOAD", HEAD + register("f", "return 1") + "while true do end")
    both.check("FCALL", "f", 0)


def test_restoring_and_running_are_cut_off_by_the_limit() -> None:
    emulator = Emulator(config={"script-instruction-limit": 300_000})
    why = "it ran for more than 300000 Lua instructions (script-instruction-limit)"
    ended = f"ERR emuredis ended the script that loads a library: {why}"
    endless = (HEAD + "while true do end").encode()
    answer = run(emulator, "FUNCTION", "RESTORE", function_dump.dump([endless]))
    assert error_of(answer) == "ERR Error registering functions: " + ended
    assert error_of(run(emulator, "FUNCTION", "LOAD", endless)).endswith("ERR FUNCTION LOAD timeout")
    run(
        emulator, "FUNCTION", "LOAD", HEAD + register("f", "pcall(function() while true do end end) return 1")
    )
    assert error_of(run(emulator, "FCALL", "f", 0)).startswith(f"ERR emuredis ended the script f: {why}")
    assert run(emulator, "FUNCTION", "LOAD", "REPLACE", HEAD + register("f", "return 2")) == b"$3\r\nlib\r\n"
    assert run(emulator, "FCALL", "f", 0) == b":2\r\n"


def test_logging_while_loading_does_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    # The server ends there, with a failed assertion.
    emulator = Emulator()
    caplog.set_level("INFO", "emuredis.script")
    log = "server.log(server.LOG_NOTICE, 'loaded')\n"
    assert run(emulator, "FUNCTION", "LOAD", HEAD + log + register("f", "return 1")) == b"$3\r\nlib\r\n"
    assert [record.message for record in caplog.records] == ["loaded"]


def test_flush_forgets_the_state_of_functions_and_leaves_that_of_scripts() -> None:
    emulator = Emulator()
    depth = (
        HEAD
        + register("set", "return cjson.encode_max_depth(3)")
        + register("get", "return cjson.encode_max_depth()")
    )
    run(emulator, "FUNCTION", "LOAD", depth)
    run(emulator, "FCALL", "set", 0)
    evaluate(emulator, "cjson.encode_max_depth(5)")
    run(emulator, "FUNCTION", "DELETE", "lib")
    run(emulator, "FUNCTION", "LOAD", depth)
    assert run(emulator, "FCALL", "get", 0) == b":3\r\n"
    run(emulator, "FUNCTION", "FLUSH")
    run(emulator, "FUNCTION", "LOAD", depth)
    assert run(emulator, "FCALL", "get", 0) == b":1000\r\n"
    assert evaluate(emulator, "return cjson.encode_max_depth()") == b":5\r\n"


def test_flushing_the_script_cache_leaves_functions_alone() -> None:
    emulator = Emulator()
    run(emulator, "FUNCTION", "LOAD", HEAD + "local n = 0\n" + register("f", "n = n + 1 return n"))
    run(emulator, "FCALL", "f", 0)
    run(emulator, "SCRIPT", "FLUSH")
    run(emulator, "FLUSHALL")
    assert run(emulator, "FCALL", "f", 0) == b":2\r\n"


def test_two_emulators_share_no_functions() -> None:
    one, other = Emulator(), Emulator()
    run(one, "FUNCTION", "LOAD", HEAD + register("f", "return 1"))
    assert error_of(run(other, "FCALL", "f", 0)) == "ERR Function not found"
    assert run(other, "FUNCTION", "LIST") == b"*0\r\n"


def test_changes_of_libraries_are_counted_and_failures_are_not() -> None:
    emulator = Emulator()

    def counted(*argv: object) -> int:
        before = emulator.engine.keyspace.dirty
        run(emulator, "FUNCTION", *argv)
        return emulator.engine.keyspace.dirty - before

    empty = function_dump.dump([])
    assert counted("FLUSH") == 1
    assert counted("LOAD", HEAD + register("f", "return 1")) == 1
    assert counted("LOAD", HEAD + register("f", "return 1")) == 0
    assert counted("RESTORE", empty) == 1
    assert counted("RESTORE", empty[:-1] + b"x") == 0
    assert counted("DELETE", "lib") == 1
    assert counted("DELETE", "lib") == 0
    assert counted("FLUSH", "ASYNC") == 1


def test_a_fault_of_a_command_ends_the_function_and_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    emulator = Emulator()
    code = HEAD + register("f", "pcall(server.call, 'PING') return 1") + register("g", "return 2")
    run(emulator, "FUNCTION", "LOAD", code)

    def broken(ctx: object, argv: list[bytes]) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(emulator.engine.table[b"ping"], "fn", broken)
    with pytest.raises(ZeroDivisionError):
        run(emulator, "FCALL", "f", 0)
    assert run(emulator, "FCALL", "g", 0) == b":2\r\n"


def test_an_interrupt_gets_through_while_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    emulator = Emulator()
    run(emulator, "FUNCTION", "LOAD", HEAD + register("g", "return 2"))
    guard = emulator.engine.functions._runtime.guard

    class Interrupting:
        script_time_limit = busy_reply_threshold = 0
        script_memory_limit = emulator.engine.config.script_memory_limit

        @property
        def script_instruction_limit(self) -> int:
            if guard._ticks > 10:
                raise KeyboardInterrupt
            return 10_000_000

    monkeypatch.setattr(guard, "_config", Interrupting())
    with pytest.raises(KeyboardInterrupt):
        run(emulator, "FUNCTION", "LOAD", "#!lua name=x\nwhile true do end")
    monkeypatch.undo()
    assert run(emulator, "FCALL", "g", 0) == b":2\r\n"
    assert run(emulator, "FUNCTION", "LIST").startswith(b"*1\r\n")


def test_more_functions_than_the_stack_holds() -> None:
    emulator = Emulator()
    code = HEAD + "for i = 1, 3000 do server.register_function('f' .. i, function() return i end) end"
    run(emulator, "FUNCTION", "LOAD", code)
    assert run(emulator, "FCALL", "f3000", 0) == b":3000\r\n"


def test_more_arguments_than_the_stack_holds() -> None:
    emulator = Emulator()
    run(emulator, "FUNCTION", "LOAD", HEAD + register("f", "return {#keys, #args, keys[9000], args[3]}"))
    words = [str(i) for i in range(9003)]
    assert run(emulator, "FCALL", "f", 9000, *words) == b"*4\r\n:9000\r\n:3\r\n$4\r\n8999\r\n$4\r\n9002\r\n"


@pytest.mark.parametrize("protocol", [2, 3])
def test_the_native_client_gets_maps(protocol: int) -> None:
    client = Emulator().client(protocol=protocol)
    client.call("FUNCTION", "LOAD", HEAD + register("f", "return {keys, args}"))
    assert client.call("FCALL", "f", 1, "k", "a") == [[b"k"], [b"a"]]
    counts = {b"LUA": {b"libraries_count": 1, b"functions_count": 1}}
    flat = [b"LUA", [b"libraries_count", 1, b"functions_count", 1]]
    stats = client.call("FUNCTION", "STATS")
    assert stats == (
        {b"running_script": None, b"engines": counts}
        if protocol == 3
        else [b"running_script", None, b"engines", flat]
    )
