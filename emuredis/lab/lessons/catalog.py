"""Lessons 1 to 8: what can happen between two commands."""

from __future__ import annotations

from typing import Any

from emuredis.lab.actors import LabClient
from emuredis.lab.lessons.lesson import Lesson, Variant
from emuredis.lab.oracles import State, always, exactly_one_place, no_effect_twice, none_stuck

__all__ = ["LESSONS"]


def one_job(client: Any) -> None:
    client.call("RPUSH", "queue", "job:7")


async def now_ms(client: LabClient) -> int:
    seconds, micros = await client.time()
    return int(seconds) * 1000 + int(micros) // 1000


# -- 1 ------------------------------------------------------------------------------------------------


async def pop_then_push(client: LabClient) -> None:
    job = await client.rpop("queue")
    if job is not None:
        await client.lpush("busy", job)


async def move(client: LabClient) -> None:
    await client.lmove("queue", "busy", "RIGHT", "LEFT")


TWO_STEPS = Lesson(
    1,
    "Two steps or one",
    "A worker takes a job from one list and writes it into another, so that it is known who has it. Between its two "
    "commands there is a gap, and a process can end in a gap.",
    "Let worker 1 pop job 7, then crash it. Where is job 7?",
    "job 7 is in neither list",
    Variant("RPOP, then LPUSH", {"worker 1": pop_then_push, "worker 2": pop_then_push}, one_job,
            exactly_one_place("job:7", "queue", "busy"), crashes=1),
    Variant("LMOVE, one command", {"worker 1": move, "worker 2": move}, one_job,
            exactly_one_place("job:7", "queue", "busy"), crashes=1),
    "One command has no gap. What must happen together has to be one command, or one script.",
)  # fmt: skip

# -- 2 ------------------------------------------------------------------------------------------------

POP = "return redis.call('ZPOPMIN', KEYS[1])[1]"
CLAIM = """
local job = redis.call('ZPOPMIN', KEYS[1])[1]
if job then
  local now = redis.call('TIME')
  redis.call('ZADD', KEYS[2], now[1] * 1000 + ARGV[1], job)
end
return job"""
REAP = """
local now = redis.call('TIME')
for _, job in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now[1] * 1000)) do
  redis.call('ZREM', KEYS[2], job)
  redis.call('ZADD', KEYS[1], 0, job)
end"""


def waiting(client: Any) -> None:
    client.call("ZADD", "pending", 0, "job:7")


async def pops(client: LabClient) -> None:
    job = await client.eval(POP, ["pending"])
    if job is not None:
        await client.sadd("done", job)


async def claims(client: LabClient) -> None:
    job = await client.eval(CLAIM, ["pending", "active"], [1000])
    if job is not None:
        await client.sadd("done", job)
        await client.zrem("active", job)


async def reaps_then_claims(client: LabClient) -> None:
    await client.sleep(2000)
    await client.eval(REAP, ["pending", "active"])
    await claims(client)


def done_or_there(state: State) -> str | None:
    if state.call("SISMEMBER", "done", "job:7") or state.call("ZCARD", "pending"):
        return None
    return None if state.call("ZCARD", "active") else "job:7 was taken, is not done, and is nowhere"


ATOMIC_IS_NOT_SAFE = Lesson(
    2,
    "Atomic is not safe",
    "ZPOPMIN in a script is as atomic as can be. But the job has left the server, and only the worker knows of it. A "
    "claim leaves the job where the server sees it, with a deadline: the lease. Whoever finds a lapsed lease puts the "
    "job back.",
    "Crash the worker after its script. Then do the same with the claim, and let time pass.",
    "job 7 was taken, is not done, and is nowhere",
    Variant("ZPOPMIN in a script", {"worker": pops}, waiting, done_or_there, crashes=1, scripts={"pop.lua": POP}),
    Variant("a claim with a lease, and a reaper", {"worker": claims, "reaper": reaps_then_claims}, waiting,
            done_or_there, crashes=1, scripts={"claim.lua": CLAIM, "reap.lua": REAP}),
    "A script makes a step whole. Whether a job survives its worker depends on what the step leaves behind.",
)  # fmt: skip

# -- 3 ------------------------------------------------------------------------------------------------

SWEEP = """
local now = redis.call('TIME')
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now[1] * 1000 + math.floor(now[2] / 1000))
for _, job in ipairs(due) do
  redis.call('ZREM', KEYS[1], job)
  redis.call('LPUSH', KEYS[2], job)
end
return #due"""


def six_jobs(client: Any) -> None:
    seconds, _ = client.call("TIME")
    for number in range(1, 7):
        client.call("ZADD", "schedule", int(seconds) * 1000 + number * 1000, f"job:{number}")


async def sweeps_in_steps(client: LabClient) -> None:
    await client.sleep(3000)
    due = await client.zrangebyscore("schedule", "-inf", await now_ms(client))
    for job in due:
        await client.zrem("schedule", job)
        await client.lpush("queue", job)


async def sweeps(client: LabClient) -> None:
    for _ in range(3):
        await client.sleep(2000)
        await client.eval(SWEEP, ["schedule", "queue"])


def six_are_there(state: State) -> str | None:
    there = state.call("ZCARD", "schedule") + state.call("LLEN", "queue")
    return None if there == 6 else f"of six jobs {there} are left"


def none_too_early(state: State) -> str | None:
    seconds, micros = state.call("TIME")
    now, began = int(seconds) * 1000 + int(micros) // 1000, state.began_ms
    for job in state.call("LRANGE", "queue", 0, -1):
        if now < began + int(job.decode().rpartition(":")[2]) * 1000:
            return f"{job.decode()} left the schedule before its time"
    return None


STEP_THE_CLOCK = Lesson(
    3,
    "Step the clock",
    "Delayed jobs stand in a sorted set; the score is when they run. A sweep takes the head of the set that is due: "
    "range, claim, move. Here time stands still until you let it pass.",
    "Let time pass and watch the head of the schedule. Then crash the sweep between removing and pushing.",
    "a job has left the schedule and is in no queue",
    Variant("range, then remove and push, job by job", {"sweep": sweeps_in_steps}, six_jobs,
            [six_are_there, always(none_too_early)], crashes=1),
    Variant("one script moves all that is due", {"sweep": sweeps}, six_jobs,
            [always(six_are_there), always(none_too_early)], crashes=1, scripts={"sweep.lua": SWEEP}),
    "Delay is a number and a sweep. The sweep is one step.",
)  # fmt: skip

# -- 4 ------------------------------------------------------------------------------------------------


def due_job(client: Any) -> None:
    client.call("ZADD", "schedule", 1, "job:7")


async def pushes_what_it_saw(client: LabClient) -> None:
    for job in await client.zrangebyscore("schedule", 0, 10):
        await client.lpush("queue", job)
        await client.zrem("schedule", job)


async def pushes_what_it_removed(client: LabClient) -> None:
    for job in await client.zrangebyscore("schedule", 0, 10):
        if await client.zrem("schedule", job) == 1:
            await client.lpush("queue", job)


TWO_SWEEPERS = Lesson(
    4,
    "Two sweepers",
    "Two sweeps run at once, and both see the same due job. ZREM tells who removed it: one gets 1, the other 0. That "
    "answer is the claim.",
    "Let both sweepers look before either moves the job.",
    "the job is in the queue twice",
    Variant("push what was seen", {"sweeper 1": pushes_what_it_saw, "sweeper 2": pushes_what_it_saw}, due_job,
            no_effect_twice("queue")),
    Variant("push what ZREM says was ours", {"sweeper 1": pushes_what_it_removed, "sweeper 2": pushes_what_it_removed},
            due_job, no_effect_twice("queue")),
    "Looking is not taking. Only the answer of the command that takes decides. (And a crash after ZREM? See lesson 3.)",
)  # fmt: skip

# -- 5 ------------------------------------------------------------------------------------------------

POLL_AND_CLAIM = """
local job = redis.call('LINDEX', KEYS[1], -1)
if not job then return false end
redis.call('RPOP', KEYS[1])
redis.call('HSET', KEYS[2], 'state', 'active', 'owner', ARGV[1])
return job"""


async def looks_then_claims(client: LabClient) -> None:
    job = await client.lindex("queue", -1)
    if job is not None and await client.hget("job:7", "state") != b"active":
        await client.hset("job:7", "state", "active", "owner", "me")
        await client.lrem("queue", 1, job)
        await client.rpush("started", job)


async def claims_in_one(client: LabClient) -> None:
    job = await client.eval(POLL_AND_CLAIM, ["queue", "job:7"], ["me"])
    if job is not None:
        await client.rpush("started", job)


ONE_CLAIM = Lesson(
    5,
    "Poll and claim",
    "Look whether there is work, see whether it is free, take it: three commands, and what was true at the first "
    "may be "
    "false at the third.",
    "Let both workers look before one claims.",
    "two workers have started the same job",
    Variant("look, check, claim", {"worker 1": looks_then_claims, "worker 2": looks_then_claims}, one_job,
            no_effect_twice("started")),
    Variant("one script looks and claims", {"worker 1": claims_in_one, "worker 2": claims_in_one}, one_job,
            no_effect_twice("started"), scripts={"claim.lua": POLL_AND_CLAIM}),
    "Expand the script: nobody can enter between its calls.",
)  # fmt: skip

# -- 6 ------------------------------------------------------------------------------------------------

AN_HOUR = 3_600_000
BY_CALLER = """
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
for _, job in ipairs(due) do
  redis.call('ZREM', KEYS[1], job)
  redis.call('LPUSH', KEYS[2], job)
end"""


async def trusts_its_own_clock(client: LabClient) -> None:
    mine = await now_ms(client) + AN_HOUR  # this machine's clock is an hour fast
    await client.eval(BY_CALLER, ["schedule", "queue"], [mine])


async def asks_the_server(client: LabClient) -> None:
    await client.eval(SWEEP, ["schedule", "queue"])


WHOSE_CLOCK = Lesson(
    6,
    "Whose clock",
    "The sweep needs to know what time it is. If the caller says so, every machine with a wrong clock moves jobs too "
    "early or too late. The server has one clock, and TIME reads it inside the script.",
    "Run the sweep at once, before any time has passed.",
    "a job left the schedule before its time",
    Variant("the caller's clock", {"sweep": trusts_its_own_clock}, six_jobs, always(none_too_early),
            scripts={"sweep.lua": BY_CALLER}),
    Variant("the server's clock", {"sweep": asks_the_server}, six_jobs, always(none_too_early),
            scripts={"sweep.lua": SWEEP}),
    "Leases and delays are prices in somebody's time. Let it be the server's.",
)  # fmt: skip

# -- 7 ------------------------------------------------------------------------------------------------


async def polls(client: LabClient) -> None:
    while True:
        await client.incr("asked")
        if await client.rpop("queue") is not None:
            return
        await client.sleep(250)


async def blocks(client: LabClient) -> None:
    await client.incr("asked")
    await client.blpop("queue", 0)


async def late_producer(client: LabClient) -> None:
    await client.sleep(2000)
    await client.lpush("queue", "job:7")


def few_round_trips(state: State) -> str | None:
    asked = int(state.call("GET", "asked") or 0)
    return None if asked <= 2 else f"the worker asked {asked} times, and all but one were in vain"


POLL_OR_BLOCK = Lesson(
    7,
    "Poll or block",
    "Nothing to do for two seconds. A worker that polls every quarter of a second asks eight times in vain, and "
    "then is "
    "late by up to a quarter of a second. One that blocks asks once and is woken in the instant.",
    "Count the steps until the job arrives, in both.",
    "the worker has asked in vain, again and again",
    Variant("RPOP every 250 ms", {"worker": polls, "producer": late_producer}, None, few_round_trips),
    Variant("BLPOP", {"worker": blocks, "producer": late_producer}, None, few_round_trips),
    "A blocked client costs nothing while it waits.",
)  # fmt: skip

# -- 8 ------------------------------------------------------------------------------------------------


async def wakes_then_pushes(client: LabClient) -> None:
    await client.lpush("wake", 1)
    await client.lpush("queue", "job:7")


async def pushes_then_wakes(client: LabClient) -> None:
    await client.lpush("queue", "job:7")
    await client.lpush("wake", 1)


async def woken(client: LabClient) -> None:
    while await client.rpop("queue") is None:
        await client.blpop("wake", 0)


NEXT_WAKE = Lesson(
    8,
    "The next wake-up",
    "The worker sleeps on a list of its own, BLPOP wake, so that one call can wait for several queues. The producer "
    "leaves a token there. In which order?",
    "Let the worker find nothing, then sleep, and let the token come before the job.",
    "a job waits, and so does the worker",
    Variant("the token first, then the job", {"worker": woken, "producer": wakes_then_pushes}, None,
            none_stuck("queue"), allow=("stuck",)),
    Variant("the job first, then the token", {"worker": woken, "producer": pushes_then_wakes}, None,
            none_stuck("queue")),
    "A wake-up that comes before there is anything to see is lost. The token says: look again, there is something.",
)  # fmt: skip

LESSONS = [
    TWO_STEPS, ATOMIC_IS_NOT_SAFE, STEP_THE_CLOCK, TWO_SWEEPERS, ONE_CLAIM, WHOSE_CLOCK, POLL_OR_BLOCK, NEXT_WAKE,
]  # fmt: skip
