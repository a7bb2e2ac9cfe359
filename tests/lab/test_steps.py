"""A script step by step: lines, variables, frames, and what each call changed."""

from __future__ import annotations

import pytest

from emuredis import Emulator, ManualClock, ReplyError
from emuredis.lab import Step, debug
from emuredis.lab.contents import Change, Content

BODY = """\
local call = redis.call
local x = call('RPOP', KEYS[1])
local function f(n)
  return n + 1
end
call('HSET', 'h', 'f', f(ARGV[1]))
pcall(call, 'LPUSH', 'h', 1)
return x
"""


@pytest.fixture
def emulator() -> Emulator:
    made = Emulator(clock=ManualClock())
    made.client().call("RPUSH", "q", 1, 2)
    return made


def test_steps_and_variables(emulator: Emulator) -> None:
    trace = debug(BODY, ["q"], [5], emulator=emulator)
    assert trace.lines == [1, 2, 5, 6, 4, 7, 8]
    assert (trace.reply, trace.error) == (b"2", None)
    inner = trace.steps[4]
    assert (inner.text, inner.locals, inner.stack) == ("  return n + 1", {"n": "5"}, [("f", 4), ("", 6)])
    assert trace.steps[2].locals["x"] == "2"


def test_what_each_call_changed(emulator: Emulator) -> None:
    pop, hset, push = debug(BODY, ["q"], [5], emulator=emulator).calls
    assert pop.changes == [Change(b"q", Content("list", [b"1", b"2"], None), Content("list", [b"1"], None))]
    assert str(hset.changes[0]) == "'h': nothing -> {'f': '6'}"
    assert push.changes == [] and push.keys == [b"h"] and push.reply.code == "WRONGTYPE"
    assert emulator.client().call("LLEN", "q") == 1


@pytest.mark.parametrize("command, shown", [
    ("'SET', 'k', 'v', 'PX', 1000", "'k': nothing -> 'v' expires at 1704067201000"),
    ("'SADD', 'k', 'b', 'a'", "'k': nothing -> ['a', 'b']"),
    ("'ZADD', 'k', 1.5, 'm'", "'k': nothing -> [('m', 1.5)]"),
    ("'XADD', 'k', '1-1', 'f', 'v'", "'k': nothing -> [['1-1', ['f', 'v']]]"),
    ("'DEL', 'q'", "'q': ['1', '2'] -> nothing"),
])  # fmt: skip
def test_every_type_is_shown(emulator: Emulator, command: str, shown: str) -> None:
    (call,) = debug(f"redis.call({command})", emulator=emulator).calls
    assert [str(change) for change in call.changes] == [shown]


def test_looking_does_not_count(emulator: Emulator) -> None:
    before = emulator.engine.keyspace.hits
    debug("redis.call('LLEN', KEYS[1])", ["q"], emulator=emulator)
    assert emulator.engine.keyspace.hits == before + 1


def test_an_error_is_kept() -> None:
    trace = debug("local a = 1\nerror('boom')")
    assert trace.lines == [1, 2] and str(trace.error).startswith("ERR user_script:2: boom")


def test_at_each_step_while_it_stands(emulator: Emulator) -> None:
    seen: list[int] = []

    def look(step: Step) -> None:
        seen.append(step.line)
        if step.line == 6:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        debug(BODY, ["q"], [5], emulator=emulator, on_step=look)
    assert seen == [1, 2, 5, 6]
    assert emulator.client().call("EXISTS", "h") == 0
    assert emulator.client().call("EVAL", "return 1", 0) == 1
    assert not emulator.engine.script_observers


def test_others_are_served_at_the_end(emulator: Emulator) -> None:
    client = emulator.client()
    pushes: list[object] = []
    client.on_push = pushes.append
    client.call("SUBSCRIBE", "c")
    debug("redis.call('PUBLISH', 'c', 'm')", emulator=emulator)
    assert [b"message", b"c", b"m"] in pushes


def test_strict_keys_hold(emulator: Emulator) -> None:
    emulator.strict_keys = "declared"
    trace = debug(BODY, ["q"], [5], emulator=emulator)
    assert "line 6: HSET touches 'h'" in str(trace.error)


def test_coroutines_are_stepped_through() -> None:
    trace = debug("local f = coroutine.wrap(function(n)\n  local m = n + 1\n  return m\nend)\nreturn f(1)")
    assert trace.reply == 2
    assert [(step.line, step.locals.get("n")) for step in trace.steps][-2:] == [(2, "1"), (3, "1")]


def test_a_loop_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emuredis.lab.steps.STEPS_MOST", 50)
    trace = debug("while true do end")
    assert "takes more than 50 steps" in str(trace.error) and len(trace) == 50


def test_a_library_needs_functions() -> None:
    with pytest.raises(ReplyError, match="FUNCTION|function"):
        debug("#!lua name=l\n!", function="f")
