"""Functions under the eyes of strict modes, coverage and the stepper."""

from __future__ import annotations

import pytest

import emuredis
from emuredis.lab import coverage, debug

LIBRARY = """#!lua name=l
local count = 0
local function helper(k)
  if k == "x" then
    return redis.call("GET", k)
  end
  return "no"
end
server.register_function("f", function(keys, args)
  count = count + 1
  local v = helper(keys[1])
  redis.call("SET", keys[1], args[1])
  return {v, count}
end)
server.register_function{
  function_name = "ro", callback = function() return redis.call("SET", "other", 1) end, flags = {"no-writes"} }
server.register_function("g", function() return redis.call("SET", "other", 1) end)
"""


def test_steps() -> None:
    trace = debug(LIBRARY, ["x"], ["1"], function="f")
    assert trace.lines == [10, 11, 4, 5, 12, 13]
    assert trace.steps[2].locals == {"k": "x"}
    assert [call.argv for call in trace.calls] == [[b"GET", b"x"], [b"SET", b"x", b"1"]]
    assert trace.reply == [None, 1]


@pytest.mark.parametrize("mode", ["declared", "slot"])
def test_strict(mode: str) -> None:
    with emuredis.Emulator(strict_keys=mode).client() as client:
        client.call("FUNCTION", "LOAD", LIBRARY)
        assert client.call("FCALL", "f", 1, "k", "v") == [b"no", 1]
        with pytest.raises(
            emuredis.ReplyError, match="function g of library l, line 17: SET touches 'other'"
        ):
            client.call("FCALL", "g", 1, "k")
        with pytest.raises(
            emuredis.ReplyError, match="function ro of library l, line 16: SET writes 'other'"
        ):
            client.call("FCALL", "ro", 1, "k")
        if mode == "slot":
            with pytest.raises(
                emuredis.ReplyError, match="CROSSSLOT .* function f of library l has keys in several"
            ):
                client.call("FCALL", "f", 2, "k", "j", "v")
        client.call("FUNCTION", "FLUSH")
        client.call("FUNCTION", "LOAD", LIBRARY)
        with pytest.raises(emuredis.ReplyError, match="strict keys"):
            client.call("FCALL", "g", 0)


@pytest.mark.parametrize("loaded_before", [False, True])
def test_coverage(loaded_before: bool) -> None:
    emulator = emuredis.Emulator()
    with emulator.client() as client:
        if loaded_before:
            client.call("FUNCTION", "LOAD", LIBRARY)
            client.call("FCALL", "f", 1, "y", "v")
        with coverage() as covered:
            if not loaded_before:
                client.call("FUNCTION", "LOAD", LIBRARY)
            assert client.call("FCALL", "f", 1, "y", "v") == [b"no", 1]
            assert client.call("FCALL", "f", 1, "y", "v") == [b"no", 2]
        (file,) = covered.files
        assert file.missed_lines == [5]
        assert [block.line for block in file.missed_branches] == [16, 17]
        assert file.runs == 2
        # without marks again; they had come and gone with the variables of the library
        assert client.call("FCALL", "f", 1, "y", "v") == [b"no", 1]
        assert client.call("FUNCTION", "LIST", "WITHCODE")[0][b"library_code"] == LIBRARY.encode()


def test_marks_are_no_global_of_a_library() -> None:
    with emuredis.Emulator().client() as client, coverage():
        client.call("FUNCTION", "LOAD", LIBRARY)
    with emuredis.Emulator().client() as client:
        client.call(
            "FUNCTION", "LOAD", "#!lua name=m\nserver.register_function('h', function() return __cov end)"
        )
        with pytest.raises(emuredis.ReplyError, match="nonexistent global variable '__cov'"):
            client.call("FCALL", "h", 0)
