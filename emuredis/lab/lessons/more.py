"""Lessons 9 to 15: leases, lost replies, and what a script does not give."""

from __future__ import annotations

from typing import Any

from emuredis.errors import ReplyError
from emuredis.lab.actors import ConnectionLost, LabClient
from emuredis.lab.lessons.lesson import Lesson, Variant
from emuredis.lab.oracles import State, always, fenced, none_stuck

__all__ = ["LESSONS"]

# -- 9 ------------------------------------------------------------------------------------------------

CLAIM = """
local job = redis.call('ZPOPMIN', KEYS[1])[1]
if not job then return false end
local token = redis.call('HINCRBY', KEYS[3], 'attempts', 1)
local now = redis.call('TIME')
redis.call('ZADD', KEYS[2], now[1] * 1000 + math.floor(now[2] / 1000) + ARGV[1], job)
return token"""
REAP = """
local now = redis.call('TIME')
local late = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now[1] * 1000 + math.floor(now[2] / 1000))
for _, job in ipairs(late) do
  redis.call('ZREM', KEYS[2], job)
  redis.call('ZADD', KEYS[1], 0, job)
end
return #late"""
COMPLETE = """
if redis.call('HGET', KEYS[3], 'attempts') ~= ARGV[1] then
  return redis.error_reply('EMQSTALE another worker has it')
end
redis.call('ZREM', KEYS[2], 'job:7')
return redis.call('RPUSH', KEYS[4], 'job:7:' .. ARGV[1])"""
KEYS = ["pending", "active", "job:7", "effects"]


def pending(client: Any) -> None:
    client.call("ZADD", "pending", 0, "job:7")


async def completes_blindly(client: LabClient) -> None:
    token = await client.eval(CLAIM, KEYS, [1000])
    if token is not None:
        await client.zrem("active", "job:7")
        await client.rpush("effects", f"job:7:{token}")


async def shows_its_token(client: LabClient) -> None:
    token = await client.eval(CLAIM, KEYS, [1000])
    if token is not None:
        try:
            await client.eval(COMPLETE, KEYS, [token])
        except ReplyError:
            pass  # EMQSTALE: too late, the job is somebody else's


async def reaper(client: LabClient) -> None:
    await client.sleep(1001)
    await client.eval(REAP, KEYS)


NINE = {"claim.lua": CLAIM, "reap.lua": REAP, "complete.lua": COMPLETE}
FENCING = Lesson(
    9,
    "Lease and fencing token",
    "A lease ends although its owner lives: it was slow, paused, cut off. Then two workers hold one job. Each "
    "claim raises "
    "a number, the fencing token, and whoever finishes must show the newest.",
    "Claim with worker 1, let the lease lapse, reap, claim with worker 2 and finish it. Now let worker 1 finish.",
    "the old owner finishes after the new one",
    Variant("finish without asking", {"worker 1": completes_blindly, "worker 2": completes_blindly, "reaper": reaper},
            pending, fenced("effects"), clock_steps=1, scripts={"claim.lua": CLAIM, "reap.lua": REAP}),
    Variant("finish under one's token", {"worker 1": shows_its_token, "worker 2": shows_its_token, "reaper": reaper},
            pending, fenced("effects"), clock_steps=1, scripts=NINE),
    "A lease makes somebody the owner for a while. A token makes the while end.",
)  # fmt: skip

# -- 10 -----------------------------------------------------------------------------------------------

ENQUEUE = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'state', 'pending')
redis.call('LPUSH', KEYS[2], KEYS[1])
return 1"""


async def pushes_again(client: LabClient) -> None:
    try:
        await client.lpush("queue", "job:7")
    except ConnectionLost:
        await client.lpush("queue", "job:7")


async def enqueues_again(client: LabClient) -> None:
    try:
        await client.eval(ENQUEUE, ["job:7", "queue"])
    except ConnectionLost:
        await client.eval(ENQUEUE, ["job:7", "queue"])


def once(state: State) -> str | None:
    count = state.call("LLEN", "queue")
    return None if count == 1 else f"job:7 is in the queue {count} times"


LOST_REPLY = Lesson(
    10,
    "The lost reply",
    "The connection breaks. Was the command carried out? Nobody can know. So it is sent again, and had better be a "
    "command that may be sent twice.",
    "Let the producer push, and lose the reply.",
    "the job is in the queue twice",
    Variant("push again", {"producer": pushes_again}, None, once, lost_replies=1),
    Variant("a script that knows the job's id", {"producer": enqueues_again}, None, once, lost_replies=1,
            scripts={"enqueue.lua": ENQUEUE}),
    "At least once is what a network gives. Exactly once is an id and a script that looks for it.",
)  # fmt: skip

# -- 11 -----------------------------------------------------------------------------------------------

TAKE = "return redis.call('RPOP', KEYS[1])"


def one_job(client: Any) -> None:
    client.call("RPUSH", "queue", "job:7")


async def only_by_digest(client: LabClient) -> None:
    digest = (await client.script_load(TAKE)).decode()
    try:
        await client.evalsha(digest, ["queue"])
    except ReplyError:
        pass  # NOSCRIPT: what now?


async def loads_again(client: LabClient) -> None:
    digest = (await client.script_load(TAKE)).decode()
    try:
        await client.evalsha(digest, ["queue"])
    except ReplyError:
        await client.eval(TAKE, ["queue"])


async def restart(client: LabClient) -> None:
    await client.script_flush()


NOSCRIPT = Lesson(
    11,
    "NOSCRIPT after a restart",
    "EVALSHA sends a digest instead of a script. The server's memory of scripts is a cache: a restart, a failover or "
    "SCRIPT FLUSH empties it, between any two commands.",
    "Let the server forget its scripts between loading and calling.",
    "the job is never taken",
    Variant("load once, then by digest", {"worker": only_by_digest, "restart": restart}, one_job, none_stuck("queue"),
            scripts={"take.lua": TAKE}),
    Variant("on NOSCRIPT send the script", {"worker": loads_again, "restart": restart}, one_job, none_stuck("queue"),
            scripts={"take.lua": TAKE}),
    "By digest first, with the whole script when the server does not know it.",
)  # fmt: skip

# -- 12 -----------------------------------------------------------------------------------------------


async def reads_then_writes(client: LabClient) -> None:
    count = int(await client.get("count") or 0)
    await client.set("count", count + 1)


async def watches(client: LabClient) -> None:
    while True:
        await client.watch("count")
        count = int(await client.get("count") or 0)
        await client.multi()
        await client.set("count", count + 1)
        if await client.exec() is not None:
            return


def counted_all(state: State) -> str | None:
    count = int(state.call("GET", "count") or 0)
    return None if count == 2 else f"two were counted, and the count is {count}"


WATCH = Lesson(
    12,
    "WATCH, or a script",
    "Read, think, write: if somebody writes in between, one of the two writes is lost. WATCH makes EXEC fail when "
    "the key "
    "has changed, and one begins again. A script cannot be interrupted at all, so it need not try twice.",
    "Let both read before either writes. Then see what EXEC answers.",
    "two were counted, and the count is 1",
    Variant("GET, then SET", {"client 1": reads_then_writes, "client 2": reads_then_writes}, None, counted_all),
    Variant("WATCH, MULTI, EXEC, and again", {"client 1": watches, "client 2": watches}, None, counted_all),
    "WATCH is for what the client must compute itself; it costs retries under contention. Otherwise use a script, "
    "or INCR.",
)  # fmt: skip

# -- 13 -----------------------------------------------------------------------------------------------

GUARDED = """
local newest = tonumber(redis.call('GET', KEYS[1]) or 0)
if tonumber(ARGV[1]) < newest then return redis.error_reply('STALE a newer owner was here') end
redis.call('SET', KEYS[1], ARGV[1])
return redis.call('RPUSH', KEYS[2], 'file:' .. ARGV[1])"""


async def locks(client: LabClient) -> None:
    if await client.set("lock", "mine", "NX", "PX", 100):
        token = await client.incr("token")
        await client.rpush("writes", f"file:{token}")


async def locks_with_token(client: LabClient) -> None:
    if await client.set("lock", "mine", "NX", "PX", 100):
        token = await client.incr("token")
        try:
            await client.eval(GUARDED, ["newest", "writes"], [token])
        except ReplyError:
            pass


LOCK = Lesson(
    13,
    "A lock is not a fence",
    "SET lock NX PX is a lease on a name. The one who holds it may be asleep when it ends, and still writes when "
    "it wakes "
    "up. The lock cannot stop that; what is written to can, if it is told a number that only rises.",
    "Lock with client 1, let the lock expire, lock and write with client 2, then let client 1 write.",
    "a stale owner writes after the new one",
    Variant("lock, then write", {"client 1": locks, "client 2": locks}, None, fenced("writes"), clock_steps=1),
    Variant("the resource checks the token", {"client 1": locks_with_token, "client 2": locks_with_token}, None,
            fenced("writes"), clock_steps=1, scripts={"write.lua": GUARDED}),
    "Mutual exclusion over a network is the resource's business, not the lock's.",
)  # fmt: skip

# -- 14 -----------------------------------------------------------------------------------------------

TRANSFER = """
redis.call('DECRBY', KEYS[1], ARGV[1])
redis.call('INCRBY', KEYS[2], ARGV[1])"""
CHECKED = """
if not tonumber(redis.call('GET', KEYS[2]) or 0) then return redis.error_reply('that is no account') end
redis.call('DECRBY', KEYS[1], ARGV[1])
redis.call('INCRBY', KEYS[2], ARGV[1])"""


def accounts(client: Any) -> None:
    client.call("MSET", "alice", 100, "bob", "not a number")


async def transfers(client: LabClient) -> None:
    try:
        await client.eval(TRANSFER, ["alice", "bob"], [30])
    except ReplyError:
        pass


async def transfers_by_exec(client: LabClient) -> None:
    await client.multi()
    await client.decrby("alice", 30)
    await client.incrby("bob", 30)
    await client.exec()


async def checks_first(client: LabClient) -> None:
    try:
        await client.eval(CHECKED, ["alice", "bob"], [30])
    except ReplyError:
        pass


def nothing_vanished(state: State) -> str | None:
    left = int(state.call("GET", "alice"))
    return None if left == 100 else f"{100 - left} have left alice's account and arrived nowhere"


ROLLBACK = Lesson(
    14,
    "Atomic is not rollback",
    "Nobody sees a script half done. But when it fails in the middle, what it wrote stays written; and so does "
    "everything "
    "else in a MULTI when one command of EXEC fails.",
    "Run either transfer and look at alice's account.",
    "money has left one account and arrived nowhere",
    Variant("write, then fail", {"by script": transfers, "by EXEC": transfers_by_exec}, accounts, nothing_vanished,
            scripts={"transfer.lua": TRANSFER}),
    Variant("check everything, then write", {"by script": checks_first}, accounts, nothing_vanished,
            scripts={"transfer.lua": CHECKED}),
    "All-or-nothing is yours to write: look at everything first, then change everything.",
)  # fmt: skip

# -- 15 -----------------------------------------------------------------------------------------------

ALL_AT_ONCE = """
local n = 0
while redis.call('RPOP', KEYS[1]) do n = n + 1 end
return redis.call('INCRBY', KEYS[2], n)"""
IN_BATCHES = """
local taken = redis.call('RPOP', KEYS[1], 50)
return redis.call('INCRBY', KEYS[2], taken and #taken or 0)"""


def backlog(client: Any) -> None:
    client.call("RPUSH", "backlog", *range(200))


async def drains_at_once(client: LabClient) -> None:
    await client.eval(ALL_AT_ONCE, ["backlog", "drained"])


async def drains_in_batches(client: LabClient) -> None:
    while await client.llen("backlog"):
        await client.eval(IN_BATCHES, ["backlog", "drained"])


async def in_a_hurry(client: LabClient) -> None:
    await client.ping()


def nobody_waits_long(state: State) -> str | None:
    calls = state.longest_script
    return None if calls <= 50 else f"everybody waited for {calls} calls of one script"


SLOW = Lesson(
    15,
    "A slow script stops everyone",
    "The server runs one thing at a time. While a script runs, nobody else is answered: not one PING, not one "
    "heartbeat of "
    "a lease. Its virtue is its cost.",
    "Expand the script's step and count its calls; the PING stands in line behind them.",
    "everybody waits for hundreds of calls",
    Variant("drain in one script", {"drain": drains_at_once, "client": in_a_hurry}, backlog, always(nobody_waits_long),
            scripts={"drain.lua": ALL_AT_ONCE}),
    Variant("drain in batches", {"drain": drains_in_batches, "client": in_a_hurry}, backlog, always(nobody_waits_long),
            scripts={"drain.lua": IN_BATCHES}),
    "Keep scripts short, and let the caller come again.",
)  # fmt: skip

LESSONS = [FENCING, LOST_REPLY, NOSCRIPT, WATCH, LOCK, ROLLBACK, SLOW]
