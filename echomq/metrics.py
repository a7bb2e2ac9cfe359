"""Reading a queue without changing it: counts, where a job is, totals, ceilings, lane depths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .errors import ArgumentError, ServerError, Verdict, non_negative_int, verdict_of
from .steps import Call, Part, RunScript, Steps, procedure

__all__ = ["COUNTED", "Metrics", "Outlook", "Total"]

_SETS = ("pending", "active", "schedule", "dead")
_TOTALS = ("completed", "failed")
COUNTED = _SETS + _TOTALS


class Total(NamedTuple):
    """A counter and the length of its (never written) history."""

    total: int
    data_points: int


class Outlook(NamedTuple):
    """One look at what could be done now. Times in ms by the server; None where nothing is there."""

    now: int
    paused: bool
    pending: int
    ring: int
    next_run: int | None
    next_deadline: int | None

    @property
    def promotable(self) -> bool:
        return self.next_run is not None and self.next_run <= self.now

    @property
    def reapable(self) -> bool:
        return self.next_deadline is not None and self.next_deadline <= self.now

    @property
    def servable(self) -> bool:
        return not self.paused and (self.pending > 0 or self.ring > 0)


class Metrics(Part):
    """A queue's read plane."""

    @procedure
    def get_counts(self, names: Sequence[str] = COUNTED) -> Steps[dict[str, int]]:
        """Sizes by name, read at one instant; any other name is an ArgumentError and nothing is sent."""
        for name in names:
            if name not in COUNTED:
                raise ArgumentError(f"unknown_state: {name!r} is none of {', '.join(COUNTED)}")
        sets = [name for name in names if name in _SETS]
        totals = [name for name in names if name in _TOTALS]
        base = self.keys.base
        reply = yield RunScript("counts", (base, *(base + name for name in sets)), totals)
        found = dict(zip(sets + totals, reply, strict=True))
        return {name: found[name] for name in names}

    @procedure
    def get_job(self, job_id: str) -> Steps[dict[str, bytes] | None]:
        """The row's fields, or None."""
        row = yield Call("HGETALL", self.keys.job(job_id))
        pairs = row.items() if isinstance(row, dict) else zip(row[::2], row[1::2], strict=True)
        return {field.decode(): value for field, value in pairs} or None

    @procedure
    def get_job_state(self, job_id: str) -> Steps[str]:
        """pending, active, scheduled, dead, awaiting_children, unknown (also: waits in a lane), absent."""
        keys = self.keys
        key_list = (keys.pending, keys.active, keys.schedule, keys.dead, keys.job(job_id))
        word = yield RunScript("state_lookup", key_list, (job_id,))
        return str(word.decode())

    @procedure
    def get_metrics(self, name: str) -> Steps[Total]:
        """The total of ``completed`` or ``failed``."""
        if name not in _TOTALS:
            raise ArgumentError(f"a metric is completed or failed, not {name!r}")
        count = yield Call("HGET", self.keys.metric(name), "count")
        points = yield Call("LLEN", self.keys.metric(name) + ":data")
        return Total(int(count or 0), points)

    @procedure
    def get_deduplication_job_id(self, dedup_id: str) -> Steps[str | None]:
        """The job id parked under a deduplication id."""
        job_id = yield Call("GET", self.keys.dedup(dedup_id))
        return None if job_id is None else job_id.decode()

    @procedure
    def is_maxed(self) -> Steps[Verdict]:
        """RATE at the queue's concurrency ceiling (an operator's `HSET meta concurrency n`), else OK."""
        try:
            yield RunScript("is_maxed", (self.keys.meta, self.keys.active))
        except ServerError as error:
            return verdict_of(error, {"EMQRATE": Verdict.RATE})
        return Verdict.OK

    @procedure
    def get_rate_limit_ttl(self, limit: int = 0) -> Steps[int]:
        """Milliseconds until the rate limit lets go; 0 when it does not hold. 0 takes the queue's own limit."""
        non_negative_int("limit", limit)
        ttl: int = yield RunScript("rate_ttl", (self.keys.limiter, self.keys.meta), (limit,))
        return ttl

    @procedure
    def get_global_rate_limit(self) -> Steps[int]:
        """The queue's own limit, 0 when it has none."""
        return int((yield Call("HGET", self.keys.meta, "max")) or 0)

    @procedure
    def lane_depth(self, group: str) -> Steps[int]:
        """How many jobs wait in a lane."""
        depth: int = yield Call("ZCARD", self.keys.lane(group))
        return depth

    @procedure
    def lane_depths(self, groups: Sequence[str]) -> Steps[dict[str, int]]:
        """How many jobs wait in each lane, read at one instant."""
        for group in groups:
            self.keys.lane(group)
        base = self.keys.base
        depths = yield RunScript("lane_counts", (base,), (base, *groups))
        return dict(zip(groups, depths, strict=True))

    @procedure
    def outlook(self) -> Steps[Outlook]:
        """One look at what a worker could do now."""
        keys = self.keys
        key_list = (keys.meta, keys.pending, keys.ring, keys.schedule, keys.active)
        now, paused, pending, ring, run, deadline = yield RunScript("outlook", key_list)
        return Outlook(
            now, paused == 1, pending, ring, run if run >= 0 else None, deadline if deadline >= 0 else None
        )
