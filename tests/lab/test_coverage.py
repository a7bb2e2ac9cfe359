"""Coverage of scripts: lines, branches within a line, names, and the pytest option."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from emuredis import Emulator, ReplyError
from emuredis.lab import coverage
from emuredis.scripting.blocks import marked

BODY = """\
local x = redis.call('GET', KEYS[1])
if not x then return 'none' end
if x == 'a' then
  return 'A'
else
  local function f(n)
    return n
  end
  for i = 1, 0 do redis.call('PING') end
  x = f(x)
end
return x
"""


def test_lines_and_branches_that_never_ran() -> None:
    client = Emulator().client()
    with coverage() as covered:
        assert client.call("EVAL", BODY, 1, "k") == b"none"
        (file,) = covered.files
        assert file.missed_lines == [3, 4, 7, 9, 10, 12]
        client.call("SET", "k", "b")
        assert client.call("EVAL", BODY, 1, "k") == b"b"
        (file,) = covered.files
        assert file.missed_lines == [4]
        assert [file.branch(block) for block in file.missed_branches] == ["do redis.call('PING') end"]
        report = covered.report()
        assert "    line 4: return 'A'\n    line 9: never: do redis.call('PING') end" in report
        client.call("SET", "k", "a")
        client.call("EVAL", BODY, 1, "k")
    assert covered.files[0].missed_lines == []


def test_nothing_is_noted_outside() -> None:
    emulator = Emulator()
    client = emulator.client()
    client.call("EVAL", BODY, 1, "k")
    with coverage() as covered:
        pass
    client.call("EVAL", BODY, 1, "k")
    assert covered.files == []
    assert emulator.engine.scripting.runtime.bridge.watch is None


def test_every_emulator_and_every_way_to_run(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "both.lua").write_text("if KEYS[1] then return 1 end\nreturn 2")
    (tmp_path / "never.lua").write_text("return 1")
    with coverage(tmp_path) as covered:
        first, second = Emulator().client(), Emulator().client()
        body = (tmp_path / "sub" / "both.lua").read_bytes()
        first.call("EVAL", body, 1, "k")
        sha = second.call("SCRIPT", "LOAD", body)
        second.call("SCRIPT", "FLUSH")
        assert second.call("SCRIPT", "LOAD", body) == sha
        second.call("MULTI")
        second.call("EVALSHA", sha, 0)
        second.call("EXEC")
    never, both = covered.files
    assert (never.name, never.runs, never.missed_lines) == ("never.lua", 0, [1])
    assert (both.name, both.runs, both.missed_lines, both.missed_branches) == ("sub/both.lua", 2, [], [])
    assert "never.lua: 0 of 1 lines" in covered.report() and "never ran" in covered.report()


def test_errors_keep_their_lines_and_coroutines_count() -> None:
    client = Emulator().client()
    body = (
        "local f = coroutine.wrap(function()\n  coroutine.yield(1)\n  error('x')\nend)\nf()\n"
        "local ok, e = pcall(function() if true then local z = nil + 1 end end)\nreturn {e, pcall(f)}"
    )
    plain = client.call("EVAL", body, 0)
    with coverage() as covered:
        assert client.call("EVAL", body, 0) == plain
        with pytest.raises(ReplyError, match="user_script:2: boom script: on @user_script:2"):
            client.call("EVAL", "local function f(n) -- (\n if n then error('boom') end end f(1)", 0)
    assert [file.missed_lines for file in covered.files] == [[], []]


def test_a_shebang_is_a_line() -> None:
    with coverage() as covered:
        Emulator().client().call(
            "EVAL", "#!lua flags=no-writes\nlocal a = 1\nif a == 2 then\n  a = 3 end\nreturn a", 0
        )
    assert covered.files[0].missed_lines == [4]


def test_marks_leave_strings_and_comments_alone() -> None:
    source = b"-- if then\nlocal s = 'do then' .. [==[ else ]] then ]==] --[[ do\n]] if s then (print)(s) end"
    text, blocks = marked(source)
    assert [(block.line, block.word) for block in blocks] == [(3, "then")]
    assert text == source.replace(b"s then", b"s then __cov(1);")


def test_a_folder_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError), coverage("no/such/folder"):
        pass


@pytest.mark.slow
def test_the_pytest_option(tmp_path: Path) -> None:
    (tmp_path / "s.lua").write_text("if KEYS[1] then return 1 end\nreturn 2")
    (tmp_path / "test_it.py").write_text(
        "import emuredis\n"
        "def test_one():\n"
        f"    emuredis.Emulator().client().call('EVAL', open({str(tmp_path / 's.lua')!r}).read(), 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "emuredis.pytest_plugin", "-p", "no:cacheprovider",
         f"--lua-coverage={tmp_path}", "test_it.py"],
        cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "s.lua: 2 of 2 lines, 0 of 1 branches\n    line 1: never: then return 1 end" in done.stdout


def test_the_option_costs_nothing_when_it_is_not_given() -> None:
    code = (
        "import sys, emuredis.pytest_plugin; "
        "print(any(name.startswith(('emuredis.lab', 'emuredis.scripting', 'lupa')) for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
