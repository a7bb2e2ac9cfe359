"""Tail calls: of the server's functions they leave a frame, of a script's own they leave none."""

from __future__ import annotations

import pytest

from emuredis.emulator import Emulator
from emuredis.scripting.bytecode import keep_frames
from tests.support.live import Connection

from .both import Both, evaluate

RECURSIVE = [
    "local function f(n) if n == 0 then return 'done' end return f(n - 1) end return f(100000)",
    "local f f = function(n) if n == 0 then return 'done' end return f(n - 1) end return f(100000)",
    "local f, g function f(n) if n == 0 then return 'done' end return g(n - 1) end function g(n) return f(n) end"
    " return f(50000)",
    "local function outer() local function f(n) if n == 0 then return 'done' end"
    " return (function() return f(n - 1) end)() end return f(5000) end return outer()",
    "local function loop(n) if n == 0 then return redis.call('PING') end return loop(n - 1) end return loop(50000)",
]


@pytest.mark.parametrize("script", RECURSIVE)
def test_deep_recursion(script: str, live: Connection) -> None:
    Both(live).eval(script)


BLAMED = [
    "\n\nreturn redis.call('NOSUCH')",
    "local call = redis.call\nlocal function f()\n  return call('NOSUCH')\nend\nlocal x = f()\nreturn x",
    "local call = redis.call\nlocal function f()\n  return call('NOSUCH')\nend\nreturn f()",
    "local t = { go = redis.call }\n\nreturn t.go('NOSUCH')",
    "return (redis.call)('NOSUCH')",
    "local function pick() return redis.call end\n\nreturn pick()('NOSUCH')",
    "return (false or redis.call)('NOSUCH')",
    "\nreturn cjson.decode('{')",
    "\nreturn setmetatable(1)",
    "local f = loadstring('\\n\\nreturn redis.call(\"NOSUCH\")')\nreturn f()",
    "return pcall(redis.call, 'NOSUCH')",
    "return select(2, pcall(function() return redis.call('NOSUCH') end))",
    "for i = 1, 3 do\n  if i == 2 then return redis.call('NOSUCH') end\nend",
    "local a, b = 1\nreturn redis.call(b)",
]


@pytest.mark.parametrize("script", BLAMED)
def test_errors_name_the_line(script: str, live: Connection) -> None:
    Both(live).eval(script)


def test_every_opcode_survives() -> None:
    """A script with all kinds of constants, closures and upvalues still means the same."""
    script = """
        local a, b, c = nil, true, 1.5
        local t = { 1, 2, x = 'y', [3] = function(...) return ..., select('#', ...) end }
        local function up() a = (a or 0) + 1 return a end
        for i = 1, 3 do up() end
        for k, v in pairs({ 1 }) do c = c + v end
        local s = ('x'):rep(3) .. -c .. tostring(not b) .. #t
        while true do if a > 5 then break end a = a + 1 end
        repeat a = a - 1 until a < 2
        local inner = function() local z = s return function() return t[3](z, up()) end end
        return { s, a, (inner()()), t.x, 2 ^ 3, 7 % 4, 1 / 2 == 0.5, 'a' < 'b' }"""
    assert evaluate(Emulator(), script) == (
        b"*8\r\n$11\r\nxxx-2.5false3\r\n:1\r\n$11\r\nxxx-2.5false3\r\n$1\r\ny\r\n:8\r\n:3\r\n:1\r\n:1\r\n".replace(
            b"$11", b"$13"
        )
    )


@pytest.mark.parametrize(
    "chunk", [b"", b"\x1bLua", b"not bytecode at all", b"\x1bLua\x52\x00\x01\x04\x08\x04\x08\x00"]
)
def test_what_is_not_understood_is_left_alone(chunk: bytes) -> None:
    assert keep_frames(chunk) is None
