"""Counting stalls: jobs whose lease ran out are recovered, or buried when it happened too often.

It competes with `reap` for the same lapsed leases: whichever runs first takes them, so on a queue whose
workers reap every beat few stalls are counted. Only this sweep and `retry` ever bury a job.
"""

from __future__ import annotations

from typing import NamedTuple

from .errors import positive_int
from .steps import Call, Part, RunScript, Steps, procedure

__all__ = ["Stalled", "Swept"]


class Swept(NamedTuple):
    """The ids one sweep brought back and buried."""

    recovered: list[str]
    dead: list[str]


class Stalled(Part):
    """A queue's stall sweep."""

    @procedure
    def check(self, max_stalled: int = 1, limit: int = 100) -> Steps[Swept]:
        """Look at up to ``limit`` lapsed leases; a job stalled ``max_stalled`` times dies."""
        keys = self.keys
        positive_int("max_stalled", max_stalled)
        positive_int("limit", limit)
        key_list = (keys.active, keys.pending, keys.dead)
        recovered, dead = yield RunScript("sweep_stalled", key_list, (keys.base, max_stalled, limit))
        return Swept([item.decode() for item in recovered], [item.decode() for item in dead])

    @procedure
    def job_stalled(self, job_id: str) -> Steps[bool]:
        """Whether a job has ever been counted as stalled."""
        return int((yield Call("HGET", self.keys.job(job_id), "stalled")) or 0) > 0
