"""Each row of the state table is run on a server: where the job goes, what its row gains, who is woken."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from echomq.conformance.world import World
from echomq.errors import Verdict
from echomq.keys import Keys
from echomq.states import (
    BY_SCRIPT,
    TRANSITIONS,
    Clocked,
    Fence,
    Place,
    Transition,
    audit,
    diagram,
    whereabouts,
)
from echomq.steps import RunScript

GROUP = "PRT0JZGkP8stGK"
OTHER = "PRT0JZGkP8stGL"
FAR = 9_000_000_000_000
TOKEN = 3
STATES = {
    Place.PENDING: "pending",
    Place.LANE: "pending",
    Place.ACTIVE: "active",
    Place.SCHEDULE: "scheduled",
    Place.DEAD: "dead",
    Place.HELD: "awaiting_children",
}
# Rows whose script finds its job by a score that must have passed.
PAST = {"promote", "reap", "greap_group", "sweep_stalled"}


def place(w: World, job_id: str, where: Place, script: str, grouped: bool) -> None:
    """Put a job somewhere with plain commands."""
    if where is Place.NOWHERE:
        return
    keys = w.keys
    row = {"state": STATES[where], "attempts": TOKEN, "payload": "p"}
    if where is Place.DEAD:
        row["last_error"] = "boom"
    if grouped or where is Place.LANE:
        row["group"] = GROUP
        if where is Place.ACTIVE:
            w.connection.call("HSET", keys.gactive, GROUP, 1)
    w.connection.call("HSET", keys.job(job_id), *[item for pair in row.items() for item in pair])
    score = 0 if where in (Place.PENDING, Place.LANE, Place.DEAD) else (1 if script in PAST else FAR)
    if where is Place.LANE:
        w.connection.call("ZADD", keys.lane(GROUP), 0, job_id)
        w.connection.call("RPUSH", keys.ring, GROUP)
    elif where is not Place.HELD:
        w.connection.call("ZADD", keys.base + where, score, job_id)
    if where is Place.HELD:
        w.connection.call("SET", keys.dependencies(job_id), 1)


Args = tuple[list[str], list[object]]


def call_of(k: Keys, j: str, other: str, target: Place) -> dict[str, Callable[[], Args]]:
    """Keys and arguments of every script, aimed at job ``j`` and the place it should go to."""
    row = k.job(j)
    lanes = [row, k.lane(GROUP), k.ring, k.paused, k.glimit, k.gactive, k.wake]
    fail = "fp" if target is Place.DEAD else "id"
    flow = [k.dependencies(j), k.failed(j), k.unsuccessful(j), row]
    return {
        "enqueue": lambda: ([row, k.pending, k.wake], [j, "p"]),
        "genqueue": lambda: (lanes, [j, "p", GROUP]),
        "schedule": lambda: ([row, k.schedule], [j, "p", "in", 60_000]),
        "enqueue_flow": lambda: (
            [k.job(other), k.dependencies(other), k.pending, row]
            if target is Place.PENDING
            else [row, k.dependencies(j), k.pending, k.job(other)],
            [other, "p", 1, j, "p"] if target is Place.PENDING else [j, "p", 1, other, "p"],
        ),
        "hold_parent": lambda: ([row, k.dependencies(j)], [j, "p", 2]),
        "enqueue_flow_child": lambda: ([row, k.pending, k.wake], [j, "p", other, "elsewhere"]),
        "claim": lambda: ([k.pending, k.active], [k.job_prefix, 60_000]),
        "bclaim": lambda: ([k.pending, k.active], [k.job_prefix, 60_000, 5]),
        "gclaim": lambda: ([k.ring, k.active], [k.base, 60_000]),
        "gwclaim": lambda: ([k.ring, k.active], [k.base, 60_000]),
        "gbclaim": lambda: ([k.ring, k.active], [k.base, 60_000]),
        "complete": lambda: ([k.active, row], [j, TOKEN, k.base]),
        "retry": lambda: (
            [k.active, k.schedule, k.dead, row],
            [j, TOKEN, 60_000, TOKEN if target is Place.DEAD else TOKEN + 1, "boom", k.base],
        ),
        "delay": lambda: ([row, k.active, k.schedule], [j, TOKEN, "in", 60_000]),
        "extend_lock": lambda: ([k.active, row], [j, TOKEN, 60_000]),
        "extend_locks": lambda: ([k.active], [k.base, 60_000, j, TOKEN]),
        "promote": lambda: ([k.schedule, k.pending], [k.base, 100]),
        "reap": lambda: ([k.active, k.pending], [k.base]),
        "greap_group": lambda: ([k.active, k.base], [GROUP, 100]),
        "sweep_stalled": lambda: (
            [k.active, k.pending, k.dead],
            [k.base, 1 if target is Place.DEAD else 9, 100],
        ),
        "flow_deliver": lambda: ([k.dependencies(j), k.processed(j), row], [other, "r", j, k.base]),
        "flow_fail_deliver": lambda: (flow, [other, "boom", fail, k.base, j]),
        "greassign": lambda: ([row, k.lane(OTHER), *lanes[2:]], [j, OTHER, k.base]),
        "reprocess": lambda: ([row, k.dead, k.pending, k.wake], [j]),
        "remove_job": lambda: ([row, k.pending, k.active, k.schedule, k.dead, k.base + "de:"], [j, ""]),
        "drain": lambda: ([k.base, k.pending, k.schedule], []),
        "gdrain": lambda: ([k.base, k.lane(GROUP), k.ring], [GROUP]),
        "obliterate": lambda: ([k.meta, k.base], ["force", 1000]),
        "update_data": lambda: ([row], ["other"]),
        "update_progress": lambda: ([row], ["50", j, k.base]),
    }


def cases() -> list[tuple[Transition, Place, Place]]:
    found = []
    for row in TRANSITIONS:
        for source in sorted(row.sources):
            found += [(row, source, target) for target in sorted(row.targets or {source})]
    return found


@pytest.mark.parametrize(("row", "source", "target"), cases(), ids=lambda v: getattr(v, "script", v))
def test_a_row_does_what_it_says(world: World, row: Transition, source: Place, target: Place) -> None:
    job_id, other = world.mint(), world.mint()
    grouped = target is Place.LANE or row.script == "greap_group"
    place(world, job_id, source, row.script, grouped)
    if row.script == "obliterate":
        world.admin.pause()
    before = world.row(job_id) or {}
    active_before = world.score(world.keys.active, job_id)
    key_list, args = call_of(world.keys, job_id, other, target)[row.script]()
    world.link.perform(RunScript(row.script, key_list, args))  # type: ignore[arg-type]

    assert whereabouts(world.connection, world.keys, job_id) == [target]
    after = world.row(job_id) or {}
    written = {name for name in after if after[name] != before.get(name)}
    removed = {"-" + name for name in before if name not in after} if after else set()
    if target is not Place.NOWHERE:
        assert audit(world.connection, world.keys, [job_id]) == []
        assert written | removed <= row.fields
    woken = world.connection.call("LRANGE", world.keys.wake, 0, -1)
    waits = target in (Place.PENDING, Place.LANE) and target != source
    assert (woken == [b"1"]) == (row.wakes and waits) or row.script in ("greassign", "enqueue_flow")
    if row.script.startswith("extend"):
        assert active_before != world.score(world.keys.active, job_id)


@pytest.mark.parametrize("row", TRANSITIONS, ids=lambda row: row.script)
def test_all_fields_of_a_row_are_written_somewhere(world: World, row: Transition) -> None:
    """What a row claims to write, its file writes."""
    source = world.scripts[row.script].source.decode()
    for name in row.fields - {"attempts"}:
        assert f"'{name.lstrip('-')}'" in source


@pytest.mark.parametrize("row", TRANSITIONS, ids=lambda row: row.script)
def test_clock_fence_and_wake_are_what_the_file_does(world: World, row: Transition) -> None:
    source = world.scripts[row.script].source.decode()
    assert ("'TIME'" in source) == (row.clock is not Clocked.NONE)
    assert ("'HINCRBY', row, 'attempts'" in source) == (row.fence is Fence.RAISES)
    checks = "attempts ~= ARGV[2]" in source or "'attempts') == ARGV" in source
    assert checks == (row.fence is Fence.CHECKS)
    if row.wakes:
        assert "'LPUSH'" in source


@pytest.mark.parametrize("row", [r for r in TRANSITIONS if r.fence is Fence.CHECKS], ids=lambda r: r.script)
def test_a_wrong_token_changes_nothing(world: World, row: Transition) -> None:
    job_id = world.mint()
    place(world, job_id, Place.ACTIVE, row.script, False)
    before = (world.row(job_id), world.score(world.keys.active, job_id))
    verdict = {
        "complete": lambda: world.jobs.complete(job_id, TOKEN - 1),
        "retry": lambda: world.jobs.retry(job_id, TOKEN + 1, 0, 9, "x"),
        "delay": lambda: world.jobs.delay(job_id, 0, 5),
        "extend_lock": lambda: world.jobs.extend_lock(job_id, 99, 5),
        "extend_locks": lambda: world.jobs.extend_locks([(job_id, 99)], 5),
    }[row.script]()
    assert verdict == ([job_id] if row.script == "extend_locks" else Verdict.STALE)
    assert (world.row(job_id), world.score(world.keys.active, job_id)) == before


def test_audit_names_what_is_wrong(world: World) -> None:
    sound, twice, lost, lying = (world.mint() for _ in range(4))
    for job_id in (sound, twice, lying):
        place(world, job_id, Place.PENDING, "enqueue", False)
    world.connection.call("ZADD", world.keys.active, 5, twice)
    world.connection.call("HSET", world.keys.job(lost), "state", "pending")
    world.connection.call("HSET", world.keys.job(lying), "state", "active")
    faults = audit(world.connection, world.keys, [sound, twice, lost, lying])
    assert faults == [
        f"{twice} is in pending, active",
        f"{lost} is in no place",
        f"{lying} is in pending but its row says b'active'",
    ]


def test_the_diagram_shows_every_transition() -> None:
    text = diagram()
    assert text.startswith("stateDiagram-v2\n")
    for name, row in BY_SCRIPT.items():
        assert (name in text) == bool(row.targets)
