"""The state table: where a job may be, and which script moves it from where to where.

A job is in at most one place: a flat or a lane's waiting set, the active set, the schedule, the morgue; or
it is a flow parent held in no set; or it is nowhere, without a row. Every row of `TRANSITIONS` is one script
of one file: the places it takes a job from and to, the row fields it writes, whose clock decides, what it
does with the token, and whether its arrivals wake a parked worker.

The table is data. The diagram in the documentation is drawn from it (`diagram`), `whereabouts` and `audit`
check its invariant on a live queue, and a test runs every row on a server and compares.
To add a transition: its `.lua` file, its row here, its call in the part that owns it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .connection import Connection
from .keys import Keys

__all__ = [
    "BY_SCRIPT",
    "READS",
    "TRANSITIONS",
    "Clocked",
    "Fence",
    "Place",
    "Transition",
    "audit",
    "diagram",
    "whereabouts",
]


class Place(StrEnum):
    """Where a job is."""

    NOWHERE = "nowhere"
    PENDING = "pending"
    LANE = "lane"
    ACTIVE = "active"
    SCHEDULE = "schedule"
    DEAD = "dead"
    HELD = "held"


class Clocked(StrEnum):
    """Whose time a transition goes by."""

    NONE = "none"
    SERVER = "server"
    CALLER = "server or caller"  # mode `at` takes the caller's instant


class Fence(StrEnum):
    """What a transition does with the token."""

    NONE = "none"
    RAISES = "raises it"
    CHECKS = "checks it"


@dataclass(frozen=True, slots=True)
class Transition:
    """One row. ``fields`` are the job's row fields written or, with a minus in front, removed."""

    script: str
    sources: frozenset[Place]
    targets: frozenset[Place]
    fields: frozenset[str] = frozenset()
    clock: Clocked = Clocked.NONE
    fence: Fence = Fence.NONE
    wakes: bool = False


def _row(
    script: str,
    sources: str,
    targets: str,
    fields: str = "",
    clock: Clocked = Clocked.NONE,
    fence: Fence = Fence.NONE,
    wakes: bool = False,
) -> Transition:
    return Transition(
        script,
        frozenset(map(Place, sources.split())),
        frozenset(map(Place, targets.split())),
        frozenset(fields.split()),
        clock,
        fence,
        wakes,
    )


_SERVER, _CALLER = Clocked.SERVER, Clocked.CALLER
_RAISES, _CHECKS = Fence.RAISES, Fence.CHECKS
_BIRTH = "state attempts payload"

TRANSITIONS: tuple[Transition, ...] = (
    # admission
    _row("enqueue", "nowhere", "pending", _BIRTH, wakes=True),
    _row("genqueue", "nowhere", "lane", _BIRTH + " group", wakes=True),
    _row("schedule", "nowhere", "schedule", _BIRTH, _CALLER),
    _row("enqueue_flow", "nowhere", "held pending", _BIRTH + " parent", wakes=True),
    _row("hold_parent", "nowhere", "held", _BIRTH),
    _row("enqueue_flow_child", "nowhere", "pending", _BIRTH + " parent parent_queue", wakes=True),
    # claims
    _row("claim", "pending", "active", "state attempts", _SERVER, _RAISES),
    _row("bclaim", "pending", "active", "state attempts", _SERVER, _RAISES),
    _row("gclaim", "lane", "active", "state attempts", _SERVER, _RAISES),
    _row("gwclaim", "lane", "active", "state attempts", _SERVER, _RAISES),
    _row("gbclaim", "lane", "active", "state attempts", _SERVER, _RAISES),
    # the holder settles
    _row("complete", "active", "nowhere", fence=_CHECKS),
    _row("retry", "active", "schedule dead", "state last_error", _SERVER, _CHECKS),
    _row("delay", "active", "schedule", "state", _CALLER, _CHECKS),
    _row("extend_lock", "active", "active", "", _SERVER, _CHECKS),
    _row("extend_locks", "active", "active", "", _SERVER, _CHECKS),
    # the beat
    _row("promote", "schedule", "pending lane", "state", _SERVER, wakes=True),
    _row("reap", "active", "pending lane", "state", _SERVER, wakes=True),
    _row("greap_group", "active", "lane", "state", _SERVER, wakes=True),
    _row("sweep_stalled", "active", "pending lane dead", "state stalled last_error", _SERVER, wakes=True),
    # children tell their parent
    _row("flow_deliver", "held", "pending", "state", wakes=True),
    _row("flow_fail_deliver", "held", "dead pending", "state", wakes=True),
    # an operator
    _row("greassign", "lane", "lane", "group", wakes=True),
    _row("reprocess", "dead", "pending", "state -last_error", wakes=True),
    _row("remove_job", "pending active schedule dead", "nowhere"),
    _row("drain", "pending schedule", "nowhere"),
    _row("gdrain", "lane", "nowhere"),
    _row("obliterate", "pending lane active schedule dead", "nowhere"),
    # the row alone
    _row("update_data", "pending lane active schedule dead held", "", "payload"),
    _row("update_progress", "pending lane active schedule dead held", "", "progress"),
)
"""Every script that changes a job. No target means that the job stays where it is."""

BY_SCRIPT = {row.script: row for row in TRANSITIONS}

READS = frozenset(
    {"counts", "state_lookup", "rate_ttl", "is_maxed", "lane_counts", "outlook"}
    # these change a queue, a group or a registration, but no job
    | {"gweight", "gpause", "gresume", "glimit", "queue_pause", "queue_resume"}
    | {"repeat_register", "repeat_cancel", "repeat_advance", "add_log"}
)
"""The scripts that move no job and write no job's row."""

_SETS = (Place.PENDING, Place.ACTIVE, Place.SCHEDULE, Place.DEAD)
_STATES = {
    Place.PENDING: b"pending",
    Place.LANE: b"pending",
    Place.ACTIVE: b"active",
    Place.SCHEDULE: b"scheduled",
    Place.DEAD: b"dead",
    Place.HELD: b"awaiting_children",
}


def whereabouts(connection: Connection, keys: Keys, job_id: str) -> list[Place]:
    """Every place a job is found in: one for a sound queue, `[NOWHERE]` for a job without a row."""
    row = keys.job(job_id)
    group, state = connection.call("HMGET", row, "group", "state")
    found = [place for place in _SETS if _member(connection, keys.base + place, job_id)]
    if group is not None and _member(connection, keys.lane(group.decode()), job_id):
        found.append(Place.LANE)
    if not found and state == _STATES[Place.HELD]:
        found.append(Place.HELD)
    if not found and state is None:
        found.append(Place.NOWHERE)
    return found


def audit(connection: Connection, keys: Keys, job_ids: list[str]) -> list[str]:
    """What is wrong with the jobs named: one line for each that breaks the table's invariant."""
    faults = []
    for job_id in job_ids:
        places = whereabouts(connection, keys, job_id)
        state = connection.call("HGET", keys.job(job_id), "state")
        if len(places) != 1:
            faults.append(f"{job_id} is in {', '.join(places) or 'no place'}")
        elif state != _STATES.get(places[0]):
            faults.append(f"{job_id} is in {places[0]} but its row says {state!r}")
    return faults


def _member(connection: Connection, key: str, job_id: str) -> bool:
    return connection.call("ZSCORE", key, job_id) is not None


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    edges: dict[tuple[Place, Place], list[str]] = {}
    for row in TRANSITIONS:
        for source in sorted(row.sources):
            for target in sorted(row.targets):
                edges.setdefault((source, target), []).append(row.script)
    lines = ["stateDiagram-v2"]
    for (source, target), scripts in edges.items():
        start = "[*]" if source is Place.NOWHERE else source
        end = "[*]" if target is Place.NOWHERE else target
        lines.append(f"    {start} --> {end}: {', '.join(scripts)}")
    return "\n".join(lines) + "\n"
