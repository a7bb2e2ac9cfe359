"""Every script of the queue makes the same calls and gets the same answers on the emulator and on the live server.

The protocol's scenarios run once on an emulator, whose journal keeps what its clients sent. All of that is sent again
to a fresh emulator and to the live server, with each script wrapped so that its reply is its trace: every call with
arguments and answer. TIME answers what it answered in the journal, and a time to live is only "some time". The members
of a JSON object may come in any order: it is that of a Lua table, which nothing defines.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

import emuredis
from echomq import conformance
from echomq.embedded import manual_clock
from echomq.endpoint import Endpoint
from echomq.script import Scripts
from emuredis.kit.journal import Entry, Journal
from tests.support.live import Connection
from tests.support.resp import Frame

#: What is about a connection, waits for somebody, or tells the server's own time or state.
LEFT_OUT = frozenset(
    "hello client auth select ping subscribe unsubscribe blpop xread multi exec watch unwatch info time script config "
    "xreadgroup reset quit pttl ttl hpttl httl keys".split()
)
BEFORE = """\
local __redis, __made, __times, __asked = redis, {}, {%s}, 0 \
local function __show(v) \
  if type(v) ~= 'table' then return type(v) .. ':' .. tostring(v) end \
  local out = {} \
  for i = 1, #v do out[i] = __show(v[i]) end \
  for _, k in ipairs({'ok', 'err'}) do if v[k] then out[#out + 1] = k .. '=' .. v[k] end end \
  return '{' .. table.concat(out, ' ') .. '}' \
end \
local function __call(raise) return function(...) \
  local name, reply = string.upper((...)), nil \
  if name == 'TIME' then __asked = __asked + 1; reply = __times[__asked] else reply = __redis.pcall(...) end \
  if name == 'PTTL' and reply > 0 then reply = 1000 end \
  __made[#__made + 1] = __show({...}) .. ' -> ' .. __show(reply) \
  if raise and type(reply) == 'table' and reply.err then error(reply) end \
  return reply \
end end \
local redis = setmetatable({call = __call(true), pcall = __call(false)}, {__index = __redis}) \
local server = redis \
local __ok, __reply = pcall(function() """
AFTER = "\nend) __made[#__made + 1] = tostring(__ok) .. ' ' .. __show(__reply) return __made"


def wrapped(source: bytes, times: list[list[bytes]]) -> bytes:
    told = ", ".join(f"{{'{seconds.decode()}', '{micros.decode()}'}}" for seconds, micros in times)
    return (BEFORE % told).encode() + source + AFTER.encode()


def plain(frame: Frame) -> Any:
    """A frame of RESP2 as the emulator's client gives it; errors as their text."""
    value = frame.value
    return [plain(item) for item in value] if isinstance(value, list) else value


def ordered(reply: Any) -> Any:
    """A reply whose flat JSON objects have their members in order."""
    if isinstance(reply, list):
        return [ordered(item) for item in reply]
    if isinstance(reply, bytes):
        return re.sub(
            rb'\{"[^{}]*\}', lambda found: json.dumps(json.loads(found[0]), sort_keys=True).encode(), reply
        )
    return reply


@pytest.fixture(scope="module")
def sent() -> list[Entry]:
    """What the scenarios send."""
    endpoint = Endpoint("emuredis://", clock=manual_clock())
    emulator: emuredis.Emulator = endpoint._emulated.emulator  # type: ignore[union-attr]
    with Journal(emulator.engine) as journal:
        problems = [result for result in conformance.run(endpoint) if not result.passed]
        scripts, connection = Scripts(), endpoint.connect()  # two that no scenario runs
        meta, limiter = "emq:{t}:meta", "emq:{t}:limiter"
        connection.call("ZADD", "emq:{t}:schedule", 5, "JOB1", 7, "JOB2")
        connection.call("RPUSH", "emq:{t}:ring", "g")
        queue = [f"emq:{{t}}:{part}" for part in ("pending", "ring", "schedule", "active")]
        connection.eval(scripts["outlook"], [meta, *queue], [])
        for limit in (0, 1, 2):
            connection.eval(scripts["rate_ttl"], [limiter, meta], [limit])
            connection.call("SET", limiter, 1, "PX", 100_000)
            connection.call("HSET", meta, "max", 1, "paused", 1)
            connection.eval(scripts["outlook"], [meta, *queue], [])
    assert problems == []
    return journal.all


def replayed(call: Any, sent: list[Entry], sources: dict[bytes, tuple[str, bytes]]) -> list[tuple[str, Any]]:
    """(script or command, answer) of each that is sent again."""
    answers = []
    for entry in sent:
        if entry.command in ("evalsha", "eval"):
            known = sources.get(entry.args[1])
            if known is None:
                continue
            name, source = known
            times = [inner.reply for inner in entry.nested if inner.command == "time"]
            answers.append((name, call("EVAL", wrapped(source, times), *entry.args[2:])))
        elif entry.command.partition("|")[0] not in LEFT_OUT and not entry.blocked:
            answers.append((entry.command, call(*entry.args)))
    return answers


def test_traces(sent: list[Entry], live: Connection) -> None:
    scripts = Scripts()
    sources = {
        script.sha.encode(): (script.name, script.source)
        for script in map(scripts.__getitem__, scripts.names())
    }
    with emuredis.Emulator().client(protocol=2) as client:

        def ours(*args: Any) -> Any:
            try:
                return client.call(*args)
            except emuredis.ReplyError as error:
                return error.message.encode()

        def theirs(*args: Any) -> Any:
            return plain(live.call(*args))

        for mine, other in zip(replayed(ours, sent, sources), replayed(theirs, sent, sources), strict=True):
            assert (mine[0], ordered(mine[1])) == (other[0], ordered(other[1]))
    seen = Counter(name for name, _ in replayed(lambda *_: None, sent, sources))
    assert set(scripts.names()) - set(seen) == set()
