"""Fair lanes: one waiting line per group, served in turn.

The ring lists exactly the groups that can be served now. A grouped claim turns it one step and serves the
head of that lane, so a group with a thousand jobs takes no more turns than a group with one. Weights give
a group several jobs per turn (`wclaim`), ceilings bound its jobs in flight, pausing takes it off the ring.

A group is a branded id of any namespace; every method refuses anything else before sending.
"""

from __future__ import annotations

from .errors import ServerError, Verdict, positive_int, verdict_of
from .ids import check_id
from .jobs import Job, check_payload, job_from
from .steps import Call, Part, RunScript, Steps, procedure

__all__ = ["Lanes"]


class Lanes(Part):
    """A queue's lanes. Settle claimed jobs with `Jobs.complete` and `Jobs.retry` as flat ones."""

    # -- admitting and claiming ------------------------------------------------------------------

    def _into_lane(self, job_id: str, group: str) -> tuple[str, ...]:
        """The keys of the scripts that put a job into a lane."""
        keys = self.keys
        return (
            keys.job(job_id),
            keys.lane(group),
            keys.ring,
            keys.paused,
            keys.glimit,
            keys.gactive,
            keys.wake,
        )

    @procedure
    def enqueue(self, group: str, job_id: str, payload: bytes | str) -> Steps[Verdict]:
        """ENQUEUED, DUPLICATE or KIND."""
        key_list = self._into_lane(job_id, group)
        try:
            reply = yield RunScript("genqueue", key_list, (job_id, check_payload(payload), group))
        except ServerError as error:
            return verdict_of(error, {"EMQKIND": Verdict.KIND})
        return Verdict.ENQUEUED if reply == 1 else Verdict.DUPLICATE

    @procedure
    def claim(self, lease_ms: int) -> Steps[Job | None]:
        """The head of the next lane, or None.

        None can also mean that the lane whose turn it was has gone empty; ask again on the next pass.
        """
        reply = yield from self._claim("gclaim", lease_ms)
        return job_from(reply) if reply else None

    @procedure
    def wclaim(self, lease_ms: int) -> Steps[list[Job]]:
        """Up to the weight of the next lane's group, from that one lane."""
        reply = yield from self._claim("gwclaim", lease_ms)
        return [job_from(item) for item in reply]

    @procedure
    def bclaim(self, lease_ms: int) -> Steps[list[Job]]:
        """All jobs of the next lane that its ceiling allows."""
        reply = yield from self._claim("gbclaim", lease_ms)
        return [job_from(item) for item in reply]

    def _claim(self, script: str, lease_ms: int) -> Steps[list[object]]:
        positive_int("lease_ms", lease_ms)
        if (yield Call("HGET", self.keys.meta, "paused")) is not None:
            return []
        reply: list[object] = yield RunScript(
            script, (self.keys.ring, self.keys.active), (self.keys.base, lease_ms)
        )
        return reply

    # -- control ---------------------------------------------------------------------------------

    @procedure
    def pause(self, group: str) -> Steps[Verdict]:
        """Serve the group no more until `resume`; its jobs and leases stay."""
        check_id(group, "group")
        yield RunScript("gpause", (self.keys.paused, self.keys.ring), (group,))
        return Verdict.OK

    @procedure
    def resume(self, group: str) -> Steps[Verdict]:
        """Serve a paused group again."""
        keys = self.keys
        check_id(group, "group")
        key_list = (keys.paused, keys.ring, keys.glimit, keys.gactive, keys.wake)
        yield RunScript("gresume", key_list, (keys.base, group))
        return Verdict.OK

    @procedure
    def limit(self, group: str, ceiling: int) -> Steps[Verdict]:
        """At most ``ceiling`` jobs of the group in flight."""
        keys = self.keys
        check_id(group, "group")
        positive_int("ceiling", ceiling)
        key_list = (keys.glimit, keys.gactive, keys.ring, keys.paused, keys.wake)
        yield RunScript("glimit", key_list, (keys.base, group, ceiling))
        return Verdict.OK

    @procedure
    def weight(self, group: str, weight: int) -> Steps[Verdict]:
        """How many of the group's jobs one turn of `wclaim` serves."""
        check_id(group, "group")
        positive_int("weight", weight)
        yield RunScript("gweight", (self.keys.gweight,), (group, weight))
        return Verdict.OK

    @procedure
    def reassign(self, job_id: str, group: str) -> Steps[Verdict]:
        """Move a waiting job to another lane: OK, SAME, GONE (no grouped row) or NOT_PENDING."""
        key_list = self._into_lane(job_id, group)
        reply = yield RunScript("greassign", key_list, (job_id, group, self.keys.base))
        return {1: Verdict.OK, 0: Verdict.SAME, -1: Verdict.GONE, -2: Verdict.NOT_PENDING}[reply]

    @procedure
    def drain(self, group: str) -> Steps[int]:
        """Delete every job waiting in the lane; how many."""
        keys = self.keys
        drained: int = yield RunScript("gdrain", (keys.base, keys.lane(group), keys.ring), (group,))
        return drained

    @procedure
    def reap_group(self, group: str, limit: int = 100) -> Steps[int]:
        """Bring lapsed leases of one group back, looking at ``limit`` lapsed leases; how many."""
        keys = self.keys
        check_id(group, "group")
        positive_int("limit", limit)
        recovered: int = yield RunScript("greap_group", (keys.active, keys.base), (group, limit))
        return recovered

    @procedure
    def depth(self, group: str) -> Steps[int]:
        """How many jobs wait in the lane."""
        depth: int = yield Call("ZCARD", self.keys.lane(group))
        return depth
