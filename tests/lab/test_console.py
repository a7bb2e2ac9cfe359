"""``python -m emuredis debug``."""

from __future__ import annotations

from pathlib import Path

import pytest

from emuredis import Emulator
from emuredis.cli import main
from emuredis.lab import console

BODY = b"""\
local x = redis.call('RPOP', KEYS[1])
local function f(n)
  return n + 1
end
redis.call('SET', 'n', f(ARGV[1]))
redis.debug(x)
return x
"""


def talk(*lines: str, body: bytes = BODY) -> tuple[list[str], object]:
    """What is written when a person says ``lines`` and then leaves, and the reply."""
    emulator = Emulator()
    emulator.client().call("RPUSH", "q", 1, 2)
    said, out = list(lines), list[str]()

    def read(prompt: str) -> str:
        if not said:
            raise EOFError
        out.append(f"> {said[0]}")
        return said.pop(0)

    reply = console.run(body, ["q"], ["5"], read, out.append, emulator)
    assert emulator.client().call("LRANGE", "q", 0, -1) == [b"1", b"2"]
    return out, reply


def after(out: list[str], line: str) -> list[str]:
    """What was written between ``line`` and the next thing said."""
    rest = out[out.index(f"> {line}") + 1 :]
    return rest[: next((at for at, text in enumerate(rest) if text.startswith("> ")), len(rest))]


def test_steps_show_changes_and_an_empty_line_repeats() -> None:
    out, _ = talk("step", "", "next")
    assert out[0] == " >   1  local x = redis.call('RPOP', KEYS[1])"
    assert after(out, "step") == ["  RPOP q => b'2'", "    'q': ['1', '2'] -> ['1']", " >   4  end"]
    assert after(out, "") == [" >   5  redis.call('SET', 'n', f(ARGV[1]))"]
    assert after(out, "next") == ["  SET n 6 => b'OK'", "    'n': nothing -> '6'", " >   6  redis.debug(x)"]


def test_step_enters_functions_and_next_does_not() -> None:
    out, _ = talk("n", "n", "step", "where", "p", "print x", "print y", "next", "c")
    assert after(out, "step") == [" >   3    return n + 1"]
    assert after(out, "where") == ["   3  in f", "   5  in the script"]
    assert after(out, "p") == ["n = 5"]
    assert after(out, "print x") == ["2"]
    assert after(out, "print y") == ["no such variable"]


def test_breakpoints() -> None:
    out, reply = talk("break 3", "b 99", "b x", "continue", "list 3", "b -3", "c")
    assert after(out, "break 3") == ["breakpoints: 3"]
    assert after(out, "b 99") == ["nothing to do for line 99", "breakpoints: 3"]
    assert after(out, "b x") == ["'x' is no line"]
    assert after(out, "continue")[-2:] == ["* break point", "*>   3    return n + 1"]
    assert after(out, "list 3")[2] == "*>   3    return n + 1" and len(after(out, "list 3")) == 8
    assert after(out, "c")[-2:] == ["  redis.debug in line 6: 2", 'reply: "2"'] and reply == b"2"


def test_commands_and_lua() -> None:
    out, _ = talk(
        "redis SET 'a b' 1", "redis NOSUCH", "redis 'x", "e KEYS[1]", "e nil + 1", "help", "what", "trace"
    )
    assert after(out, "redis SET 'a b' 1") == ["  SET 'a b' 1 => b'OK'", "    'a b': nothing -> '1'"]
    assert "error: ERR Unknown command" in after(out, "redis NOSUCH")[0]
    assert after(out, "redis 'x") == ["No closing quotation"]
    assert after(out, "e KEYS[1]") == ["q"]
    assert after(out, "e nil + 1") == ["error: ldb_eval:1: attempt to perform arithmetic on a nil value"]
    assert after(out, "help") == [console.HELP]
    assert after(out, "what") == ["no command 'what'; try help"]


def test_restart_begins_on_the_same_data() -> None:
    out, reply = talk("s", "b 6", "restart", "c", "quit")
    assert after(out, "restart") == [" >   1  local x = redis.call('RPOP', KEYS[1])"]
    assert (
        "    'q': ['1', '2'] -> ['1']" in after(out, "c") and after(out, "c")[-1] == "*>   6  redis.debug(x)"
    )
    assert reply is None


def test_an_error_ends_it() -> None:
    out, _ = talk("c", body=b"error('boom')")
    assert out[-1] == "error: ERR user_script:1: boom script: on @user_script:1."


def test_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.lua"
    file.write_text("return {redis.call('GET', KEYS[1]), ARGV[1]}")
    monkeypatch.setattr("builtins.input", lambda prompt: "continue")
    assert main(["debug", str(file), "--keys", "k", "--setup", "SET k 'a b'", "--", "--x"]) == 0
    assert 'reply: ["a b","--x"]' in capsys.readouterr().out
    assert main(["debug", str(file), "--strict", "declared", "--keys"]) == 1
    assert main(["debug", str(tmp_path / "none.lua")]) == 2
    assert main(["debug", str(file), "--setup", "SET k"]) == 2
