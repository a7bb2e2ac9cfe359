"""What must hold of a queue at every step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from echomq.states import Place, audit, whereabouts
from emuredis.lab import Oracle, State
from tests.interleaving.driver import COMPLETED, EFFECTS, KEYS, Looking


class sound(Oracle):
    """Each job is in exactly one place and its row says which; lanes, ring and counters agree; at every step."""

    steps = True
    name = "sound"

    def __init__(self, jobs: list[str], groups: list[str] = [], lanes: bool = True) -> None:  # noqa: B006
        self._jobs = jobs
        self._groups = groups
        self._lanes = lanes

    def step(self, state: State) -> str | None:
        looking: Any = Looking(state)
        faults = audit(looking, KEYS, [job for job in self._jobs if state.call("EXISTS", KEYS.job(job))])
        for job in self._jobs:
            places = whereabouts(looking, KEYS, job)
            if len(places) > 1 or (places == [Place.NOWHERE]) != (not state.call("EXISTS", KEYS.job(job))):
                faults.append(f"{job} is in {', '.join(places) or 'no place'}")
        for group in self._groups if self._lanes else ():
            faults += lane_faults(state, group)
        return "; ".join(faults) or None

    end = step


def lane_faults(state: State, group: str) -> list[str]:
    """What is wrong with a group: its place on the ring, its counter of jobs in flight."""
    faults = []
    ring = state.call("LRANGE", KEYS.ring, 0, -1)
    waiting = state.call("ZCARD", KEYS.lane(group))
    counted = int(state.call("HGET", KEYS.gactive, group) or 0)
    active = sum(
        state.call("HGET", KEYS.job(job.decode()), "group") == group.encode()
        for job in state.call("ZRANGE", KEYS.active, 0, -1)
    )
    limit = int(state.call("HGET", KEYS.glimit, group) or 0)
    paused = state.call("SISMEMBER", KEYS.paused, group)
    on_ring = ring.count(group.encode())
    if on_ring > 1:
        faults.append(f"group {group} is on the ring {on_ring} times")
    servable = waiting and not paused and not (limit and counted >= limit)
    if servable and not on_ring:
        faults.append(f"group {group} has {waiting} jobs to serve and is not on the ring")
    if counted != active:
        faults.append(f"gactive of {group} says {counted}, {active} are active")
    return faults


class served(Oracle):
    """At the end no job is lost; without a crash, a lost reply or a lapsed lease none was served twice.

    ``finished``: every job was served, for there were live workers and time enough.
    """

    name = "served"

    def __init__(self, jobs: list[str], finished: bool = False, once: bool = True) -> None:
        self._jobs = jobs
        self._finished = finished
        self._once = once

    def end(self, state: State) -> str | None:
        effects = Counter(mark.rpartition(b":")[0].decode() for mark in state.call("LRANGE", EFFECTS, 0, -1))
        for job in self._jobs:
            there = state.call("EXISTS", KEYS.job(job))
            if not there and not effects[job]:
                return f"{job} is gone and was never served"
            if self._finished and not state.crashed and there:
                place = ", ".join(whereabouts(Looking(state), KEYS, job))  # type: ignore[arg-type]
                return f"{job} was left in {place}"
            if self._once and effects[job] > 1 and not (state.crashes or state.lost_replies):
                return f"{job} was served {effects[job]} times"
            if (fault := fencing_fault(state, job)) is not None:
                return fault
        marks = state.call("LRANGE", EFFECTS, 0, -1)
        if len(set(marks)) != len(marks):
            return f"two effects under one token: {[mark.decode() for mark in marks]}"
        return None


def fencing_fault(state: State, job: str) -> str | None:
    """Only the newest owner's completion is accepted, and only once."""

    def tokens(key: str) -> list[int]:
        marks = (mark.decode().rpartition(":") for mark in state.call("LRANGE", key, 0, -1))
        return [int(token) for owner, _, token in marks if owner == job]

    accepted, seen = tokens(COMPLETED), tokens(EFFECTS)
    if len(accepted) > 1:
        return f"{job} was completed {len(accepted)} times"
    if accepted and seen and accepted[0] < max(seen):
        return f"{job} was completed under token {accepted[0]} while token {max(seen)} held it"
    return None


def nowhere_unserved(state: State, job: str) -> str | None:
    """A job whose row is gone was served."""
    if state.call("EXISTS", KEYS.job(job)) and whereabouts(Looking(state), KEYS, job) == []:  # type: ignore[arg-type]
        return f"{job} is in no place"
    return None


def leased(state: State) -> str | None:
    """Every active job has a deadline."""
    entries = state.call("ZRANGE", KEYS.active, 0, -1, "WITHSCORES")
    for job, score in zip(entries[::2], entries[1::2], strict=True):
        if float(score) <= 0:
            return f"{job.decode()} is active without a lease"
    return None


class tokens_rise(Oracle):
    """Effects of one job come with rising tokens."""

    name = "tokens rise"

    def end(self, state: State) -> str | None:
        tokens = [int(mark.rpartition(b":")[2]) for mark in state.call("LRANGE", EFFECTS, 0, -1)]
        return None if tokens == sorted(set(tokens)) else f"effects under the tokens {tokens}"


class enqueued_unless_nobody_lives(Oracle):
    """Somebody asked for the job and lived: it is there."""

    name = "enqueued"

    def end(self, state: State) -> str | None:
        there = state.call("ZCARD", KEYS.pending) == 1
        return None if there or state.all_crashed else "the job was asked for and is nowhere"


def tried_at_most(most: int) -> Callable[[State], str | None]:
    def tried(state: State) -> str | None:
        effects = state.call("LLEN", EFFECTS)
        return None if effects <= most else f"the job was tried {effects} times"

    return tried


def parent_or_told(state: State) -> str | None:
    """While the parent is held, nobody has told it of its child's death."""
    job = "JOB0000000000A"
    row = state.call("HGET", KEYS.job(job), "state")
    told = state.call("EXISTS", KEYS.failed(job))
    if told and row == b"awaiting_children":
        return "the parent was told that its child died, and still waits"
    return None
