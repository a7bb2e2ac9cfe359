"""Debugging sessions over a socket. ``python -m tests.server.ldb_sessions`` records what the live server answers.

A session is a mode, the words of an EVAL, and what is sent at each stop: a line to be split, a list of words, or bytes
as they are. Its transcript is every reply as it came. Pointers differ from run to run and are masked.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

from tests.support.live import Connection, Lost

RECORDED = Path(__file__).with_name("ldb_recorded.json")

Sent = str | list[str] | bytes


class Session(NamedTuple):
    name: str
    mode: str
    evals: list[str]
    sent: list[Sent]


TOUR = """local a = 1
local t = {1,'two',{x=3.5},nil,true}
-- comment

local r = redis.call('SET', KEYS[1], ARGV[1])
for i = 1, 2 do
  a = a + i
end
redis.debug('hello', a, t)
local function f(n)
  local z = n * 2
  redis.breakpoint()
  return z
end
local q = f(a)
return {q, r}
"""
SUM = "local a=1\nlocal b=2\nreturn a+b"
WRITES = "redis.call('set','x','1')\nredis.call('set','y','2')\nreturn 1"
NOISE = """local a=1
local x=redis.pcall('LPUSH','pre','x')
local y=redis.pcall('NOSUCH')
local e=redis.error_reply('boo')
redis.pcall('set','a')
redis.pcall()
redis.pcall('get',{})
redis.pcall('eval','return 1',0)
local s=redis.status_reply('x')
return 1"""
REPLIES = """redis.call('rpush','l',1,2,3,4,5,6,7,8,9,10,11,12,'c"\\n\\1')
redis.call('lrange','l',0,-1)
redis.call('hset','h','f','v')
redis.call('hgetall','h')
redis.call('get','none')
redis.call('zadd','z','1.5','m')
redis.call('zrange','z',0,-1,'withscores')
redis.setresp(3)
redis.call('hgetall','h')
redis.call('sadd','s','a')
redis.call('smembers','s')
redis.call('zscore','z','m')
redis.call('get','none')
return 1"""
CALLS = """local function f(a, ...)
  local b = a
  return b
end
local g = function(x)
  return f(x, 1, 2) + 1
end
return g(2) + 1"""
SCOPES = """local up = 5
local function f()
  return up
end
for i=1,2 do
  local up = i
  f()
end
for k, v in pairs({a=1}) do
  f()
end
return up"""
COROUTINE = """local c = coroutine.wrap(function()
  local z = 1
  redis.breakpoint()
  local y = z
  return y
end)
local r = c()
return r"""
SAID = """redis.debug()
redis.debug(nil)
redis.debug(true, 1.5, 'x', {}, {a={b={c={d={}}}}}, 1e20, 3)
local b = redis.breakpoint()
local x = {b}
return x"""
LONG = """local e=string.rep('a',400)
local t={e,e}
redis.debug(e)
local x=redis.call('set','k',e)
return redis.call('get','k')"""
FLAGGED = "#!lua flags=no-writes\nlocal a = 1\nreturn redis.call('set','x','1')"
LOOP = "local a=1\n\n\nfor i=1,3 do\n  a=a+1\nend\nreturn a"

SESSIONS = [
    Session("tour", "yes", [TOUR, "1", "k1", "v1"], [
        "help", "h", "w", "l", "list 5", "list 5 1", "p", "s", "p", "p a", "print zz", "step", "p t", "n", "next", "s",
        "redis GET k1", "r incr n", "redis", "redis nosuch", "b", "b 12", "break", "b 3", "b 999", "b -12", "b 0",
        ["e", "return 1+1"], "eval 1,2", "e a", ["e", "syntax error here"], "e error('x')", "t", "c", "t", "p", "p n",
        "s", "c"]),
    Session("words", "sync", [SUM, "0"], [
        "v get pre", "valkey get pre", "server get pre", "max", "max 100", "maxlen 0", "max", "m", "b 2 3",
        "list 1 2 3", "w 1", "h x", "c x", "t x", "a x", "p a b", "b 1.5", ["b", " 1"], "b abc", "maxlen 1 2",
        "maxlen 5.5", "maxlen -5", "maxlen abc", "eval return 1", "e string.rep('x',400)", "e pcall(1)",
        "e error({err='My_err'})", "e error()", "e", "list x", "list -4", "list 2 0", "list 3 x", "list 100", "where",
        "W", "foo", "eval x=1",
        "eval return redis.call('get','pre')", "eval KEYS", "eval nil", "eval {1,2,{3}}", "eval redis.debug(1)",
        "eval redis.breakpoint()", "S", "c"]),
    Session("abort, kept", "sync", [WRITES, "0"], ["s", "a"]),
    Session("abort, undone", "yes", [WRITES, "0"], ["s", "abort"]),
    Session("to the end, kept", "sync", [WRITES, "0"], ["s", "c"]),
    Session("to the end, undone", "yes", [WRITES, "0"], ["s", "c"]),
    Session("an error", "yes", ["local a=1\nerror('boom')", "0"], ["s", "s"]),
    Session("another error", "yes", ["local a=1\nlocal b = a.b.c\nreturn 1", "0"], ["c"]),
    Session("a call's error", "yes", ["local a=1\nredis.call('LPUSH','pre','x')\nreturn 1", "0"], ["s", "s"]),
    Session("does not compile", "yes", ["local a=\n", "0"], []),
    Session("no number of keys", "yes", ["return 1", "x"], []),
    Session("a shebang", "sync", [FLAGGED, "0"], ["w", "s", "s"]),
    Session("noise, step by step", "sync", [NOISE, "0"], ["s"] * 10),
    Session("noise, in one go", "sync", [NOISE, "0"], ["c"]),
    Session("replies", "sync", [REPLIES, "0"], ["s"] * 14),
    Session("calls", "sync", [CALLS, "0"], ["b 3", "c", "t", "p", "p x", "p g", "s"]),
    Session("scopes", "sync", [SCOPES, "0"], [
        "b 7", "b 3", "c", "p", "p up", "c", "p", "p up", "t", "b 10", "b -7", "b", "b -3", "b", "c", "p",
        "c", "b 0", "c"]),
    Session("breakpoints", "sync", [LOOP, "0"], [
        "b 5", "b 5", "b 7", "b", "w", "c", "c", "b -5", "c", "b -5", "c"]),
    Session("a coroutine", "sync", [COROUTINE, "0"], ["s", "s", "s", "p", "t", "c", "p", "p z", "p c", "t", "c"]),
    Session("one line", "sync", ["for i=1,3 do redis.debug(i) end", "0"], ["s", "s", "s", "s"]),
    Session("said", "sync", [SAID, "0"], ["c", "p", "s", "p", "c"]),
    Session("long", "sync", [LONG, "0"], ["s", "p e", "p e", "s", "p t", "s", "s", "s"]),
    Session("long, with a limit", "sync", [LONG, "0"], [
        "maxlen 10", "s", "p e", "e e", "maxlen 100", "s", "s", "s", "s"]),
    Session("globals", "yes", ["local a=KEYS\nreturn 1", "2", "k", "k2", "a1"], [
        "p KEYS", "p ARGV", "p redis", "s", "p a", "p string", "c"]),
    Session("carriage returns", "sync", ["local a=1\r\nreturn a\r\n", "0"], ["w", "s", "s"]),
    Session("no array", "sync", [SUM, "0"], [b"s\r\n"]),
    Session("no string", "sync", [SUM, "0"], [b"*1\r\n:5\r\n"]),
    Session("no words", "sync", [SUM, "0"], [b"*0\r\n"]),
    Session("an empty word", "sync", [SUM, "0"], [["eval", ""]]),
    Session("only the first of a read counts", "sync", [SUM, "0"], [b"*1\r\n$1\r\ns\r\n*1\r\n$1\r\nc\r\n", "c"]),
]  # fmt: skip

_POINTER = re.compile(rb"0x[0-9a-f]+")


def converse(make: type[Connection] | object, session: Session) -> list[str]:
    """The transcript of a session on a fresh connection that ``make()`` gives, and what is in the keys it may write."""
    connection: Connection = make()  # type: ignore[operator]
    out = []
    connection.call("FLUSHALL")
    connection.call("SET", "pre", "1")

    def hear() -> bool:
        frame = connection.receive()
        assert frame is not None, (session.name, out)
        out.append(_POINTER.sub(b"0x", frame.raw).decode("latin-1"))
        return b"<endsession>" in frame.raw

    out.append(connection.call("SCRIPT", "DEBUG", session.mode).raw.decode())
    connection.send([b"EVAL", *(word.encode() for word in session.evals)])
    ended = hear()
    for sent in session.sent:
        if ended:
            break
        if isinstance(sent, bytes):
            connection.send_raw(sent)
        else:
            connection.send([word.encode() for word in (sent.split() if isinstance(sent, str) else sent)])
        ended = hear()
    assert ended, (session.name, out[-1])
    hear()
    try:
        connection.receive()
    except Lost:
        out.append("closed")
    connection.close()
    other: Connection = make()  # type: ignore[operator]
    out.append(other.call("MGET", "x", "y", "k1").raw.decode())
    other.close()
    return out


def recorded() -> dict[str, list[str]]:
    """The live server's transcripts by the session's name."""
    found: dict[str, list[str]] = json.loads(RECORDED.read_text("utf-8"))
    return found


def _record() -> None:
    from tests.support.live import LiveServer

    with LiveServer() as server:
        found = {session.name: converse(server.connect, session) for session in SESSIONS}
    RECORDED.write_text(json.dumps(found, indent=1, ensure_ascii=True) + "\n", "utf-8")


if __name__ == "__main__":
    _record()
