"""The flat queue: admit, claim, settle, and look after jobs.

Every method is a procedure: it checks its arguments before anything is sent, asks the server with one
script (two round trips where the protocol wants a read first), and answers with a value or a `Verdict`.
All state lives on the server; a `Jobs` object may be made at will and thrown away.

The token. A claim raises the row's `attempts` and returns it; complete, retry, delay and the lease
extensions must present that number. A holder whose lease was reaped and claimed again is answered STALE.

Pausing is a promise kept by clients: each claim reads the flag first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .connection import Connection
from .errors import ArgumentError, ServerError, Verdict, non_negative_int, positive_int, verdict_of
from .ids import Minter, default_minter
from .resp import Arg, Reply
from .steps import Call, Link, Part, RunMany, RunScript, Steps, procedure

__all__ = ["Job", "Jobs", "job_from", "settled"]

_KIND = {"EMQKIND": Verdict.KIND}
_STALE = {"EMQSTALE": Verdict.STALE}


class Job(NamedTuple):
    """A claimed job. ``attempts`` is the fencing token of this claim.

    ``payload`` is None for an id that was in a set without a row (somebody removed the row by hand).
    """

    id: str
    payload: bytes | None
    attempts: int
    group: str | None = None

    @property
    def token(self) -> int:
        """What complete, retry, delay and extend_lock must be given."""
        return self.attempts


def job_from(reply: Reply) -> Job:
    """A claim's reply as a `Job`."""
    group = reply[3].decode() if len(reply) > 3 else None
    return Job(reply[0].decode(), reply[1], int(reply[2]), group)


def settled(reply: Reply, missing: int, verdict: Verdict = Verdict.OK) -> Verdict:
    """GONE when the integer is the script's "no such row", else ``verdict``."""
    return Verdict.GONE if reply == missing else verdict


def check_payload(payload: object) -> Arg:
    """Payloads are bytes; text is sent as UTF-8. Refused here: everything else."""
    if not isinstance(payload, (bytes, str)):
        raise ArgumentError(f"a payload is bytes or str, not {payload!r}")
    return payload


def check_mode(mode: object) -> str:
    """``in`` (milliseconds from the server's now) or ``at`` (Unix milliseconds)."""
    if mode not in ("in", "at"):
        raise ArgumentError(f"mode is 'in' or 'at', not {mode!r}")
    return str(mode)


def check_token(token: object) -> int:
    """The token goes out as plain digits, so it must be an int."""
    return non_negative_int("token", token)


class Jobs(Part):
    """A queue's flat jobs. ``minter`` mints ids for `add`; the default is this process's own."""

    def __init__(self, connection: Connection | Link, queue: str, minter: Minter | None = None) -> None:
        super().__init__(connection, queue)
        self.minter = minter if minter is not None else default_minter()

    # -- admitting -------------------------------------------------------------------------------

    @procedure
    def enqueue(self, job_id: str, payload: bytes | str) -> Steps[Verdict]:
        """ENQUEUED, DUPLICATE (the row exists now) or KIND (the id is not a JOB)."""
        keys = self.keys
        row = keys.job(job_id)
        try:
            reply = yield RunScript(
                "enqueue", (row, keys.pending, keys.wake), (job_id, check_payload(payload))
            )
        except ServerError as error:
            return verdict_of(error, _KIND)
        return Verdict.ENQUEUED if reply == 1 else Verdict.DUPLICATE

    @procedure
    def add(self, payload: bytes | str) -> Steps[str]:
        """Mint an id, enqueue, and return the id."""
        job_id = self.minter.mint()
        yield from self.enqueue.steps(job_id, payload)
        return job_id

    @procedure
    def enqueue_many(self, jobs: Sequence[tuple[str, bytes | str]]) -> Steps[list[Verdict]]:
        """One verdict for each (id, payload), in order: one load, one pipeline; not atomic as a whole."""
        if not jobs:
            raise ArgumentError("empty_pipeline: enqueue_many needs at least one job")
        keys = self.keys
        calls = [
            ((keys.job(job_id), keys.pending, keys.wake), (job_id, check_payload(payload)))
            for job_id, payload in jobs
        ]
        replies = yield RunMany("enqueue", calls)
        return [self._admitted(reply) for reply in replies]

    @staticmethod
    def _admitted(reply: Reply) -> Verdict:
        if isinstance(reply, ServerError):
            return verdict_of(reply, _KIND)
        return Verdict.ENQUEUED if reply == 1 else Verdict.DUPLICATE

    @procedure
    def enqueue_in(self, job_id: str, payload: bytes | str, delay_ms: int) -> Steps[Verdict]:
        """Park for ``delay_ms`` from the server's now: SCHEDULED, DUPLICATE or KIND."""
        non_negative_int("delay_ms", delay_ms)
        return (yield from self._schedule(job_id, payload, "in", delay_ms))

    @procedure
    def enqueue_at(self, job_id: str, payload: bytes | str, unix_ms: int) -> Steps[Verdict]:
        """Park until an instant in Unix milliseconds: SCHEDULED, DUPLICATE or KIND."""
        non_negative_int("unix_ms", unix_ms)
        return (yield from self._schedule(job_id, payload, "at", unix_ms))

    def _schedule(self, job_id: str, payload: bytes | str, mode: str, ms: int) -> Steps[Verdict]:
        row = self.keys.job(job_id)
        try:
            reply = yield RunScript(
                "schedule", (row, self.keys.schedule), (job_id, check_payload(payload), mode, ms)
            )
        except ServerError as error:
            return verdict_of(error, _KIND)
        return Verdict.SCHEDULED if reply == 1 else Verdict.DUPLICATE

    # -- claiming --------------------------------------------------------------------------------

    @procedure
    def paused(self) -> Steps[bool]:
        """Whether the whole queue is paused."""
        return (yield Call("HGET", self.keys.meta, "paused")) is not None

    @procedure
    def claim(self, lease_ms: int) -> Steps[Job | None]:
        """The oldest pending job under a lease, or None (also while the queue is paused)."""
        positive_int("lease_ms", lease_ms)
        if (yield from self.paused.steps()):
            return None
        keys = self.keys
        reply = yield RunScript("claim", (keys.pending, keys.active), (keys.job_prefix, lease_ms))
        return job_from(reply) if reply else None

    @procedure
    def claim_batch(self, size: int, lease_ms: int) -> Steps[list[Job]]:
        """Up to ``size`` of the oldest pending jobs under one shared deadline."""
        positive_int("size", size)
        positive_int("lease_ms", lease_ms)
        if (yield from self.paused.steps()):
            return []
        keys = self.keys
        reply = yield RunScript("bclaim", (keys.pending, keys.active), (keys.job_prefix, lease_ms, size))
        return [job_from(item) for item in reply]

    # -- settling --------------------------------------------------------------------------------

    @procedure
    def complete(self, job_id: str, token: int, result: bytes | str | None = None) -> Steps[Verdict]:
        """End a job: OK, GONE or STALE. A flow child's ``result`` (its own id if none) goes to its parent."""
        keys = self.keys
        row = keys.job(job_id)
        check_token(token)
        parent, parent_queue = yield Call("HMGET", row, "parent", "parent_queue")
        key_list = [keys.active, row]
        args: list[Arg] = [job_id, token, keys.base]
        if parent is not None:
            args += [parent, job_id if result is None else result]
            if parent_queue is not None and parent_queue != self.queue.encode():
                key_list.append(keys.outbox)
                args += ["xq", parent_queue]
            else:
                above = keys.job(parent.decode())
                key_list += [above + ":dependencies", above + ":processed", above]
        try:
            reply = yield RunScript("complete", key_list, args)
        except ServerError as error:
            return verdict_of(error, _STALE)
        return settled(reply, 0)

    @procedure
    def retry(
        self, job_id: str, token: int, delay_ms: int, max_attempts: int, error: bytes | str
    ) -> Steps[Verdict]:
        """Give a job back: SCHEDULED, DEAD (at its last attempt) or STALE (also when the row is gone)."""
        keys = self.keys
        row = keys.job(job_id)
        check_token(token)
        non_negative_int("delay_ms", delay_ms)
        non_negative_int("max_attempts", max_attempts)
        parent, parent_queue, policy = yield Call("HMGET", row, "parent", "parent_queue", "parent_policy")
        key_list = [keys.active, keys.schedule, keys.dead, row]
        args: list[Arg] = [job_id, token, delay_ms, max_attempts, error, keys.base]
        here = parent_queue is None or parent_queue == self.queue.encode()
        if parent is not None:
            policy = b"id" if policy == b"id" else b"fp"
            if here:
                above = keys.job(parent.decode())
                key_list += [above + ":failed", above + ":unsuccessful", above + ":dependencies", above]
                args += [b"sq:" + policy, parent]
            else:
                key_list.append(keys.outbox)
                args += [b"xq:" + policy, parent_queue, parent]
        try:
            reply = yield RunScript("retry", key_list, args)
        except ServerError as refused:
            return verdict_of(refused, _STALE)
        if reply != b"dead":
            return Verdict.SCHEDULED
        if parent is not None and here:
            yield from self._pass_death_on(parent.decode(), error)
        return Verdict.DEAD

    def _pass_death_on(self, node: str, error: bytes | str) -> Steps[None]:
        """A node of a flow that was failed by its child fails its own parent through the outbox."""
        state, parent, parent_queue, policy = yield Call(
            "HMGET", self.keys.job(node), "state", "parent", "parent_queue", "parent_policy"
        )
        if state == b"dead" and parent is not None:
            entry = fail_entry(
                parent_queue if parent_queue is not None else self.queue.encode(),
                parent,
                node.encode(),
                b"id" if policy == b"id" else b"fp",
                error.encode() if isinstance(error, str) else error,
            )
            yield Call("RPUSH", self.keys.outbox, entry)

    @procedure
    def delay(self, job_id: str, token: int, ms: int, mode: str = "in") -> Steps[Verdict]:
        """Park a held job without using an attempt up: OK, GONE, STALE or KIND."""
        keys = self.keys
        row = keys.job(job_id)
        check_token(token)
        non_negative_int("ms", ms)
        try:
            yield RunScript("delay", (row, keys.active, keys.schedule), (job_id, token, check_mode(mode), ms))
        except ServerError as error:
            if error.message == "EMQSTALE job gone":
                return Verdict.GONE
            return verdict_of(error, _STALE | _KIND)
        return Verdict.OK

    # -- the beat --------------------------------------------------------------------------------

    @procedure
    def promote(self, batch: int = 100) -> Steps[int]:
        """Move up to ``batch`` due jobs out of the schedule; how many were moved."""
        positive_int("batch", batch)
        keys = self.keys
        moved: int = yield RunScript("promote", (keys.schedule, keys.pending), (keys.base, batch))
        return moved

    @procedure
    def reap(self) -> Steps[int]:
        """Bring up to 100 jobs whose lease has run out back; how many."""
        keys = self.keys
        moved: int = yield RunScript("reap", (keys.active, keys.pending), (keys.base,))
        return moved

    # -- leases ----------------------------------------------------------------------------------

    @procedure
    def extend_lock(self, job_id: str, token: int, lease_ms: int) -> Steps[Verdict]:
        """Move a lease's deadline: OK, GONE or STALE."""
        row = self.keys.job(job_id)
        check_token(token)
        positive_int("lease_ms", lease_ms)
        try:
            reply = yield RunScript("extend_lock", (self.keys.active, row), (job_id, token, lease_ms))
        except ServerError as error:
            return verdict_of(error, _STALE)
        return settled(reply, -1)

    @procedure
    def extend_locks(self, held: Sequence[tuple[str, int]], lease_ms: int) -> Steps[list[str]]:
        """Move many deadlines; the ids that could not be moved, in order."""
        positive_int("lease_ms", lease_ms)
        args: list[Arg] = [self.keys.base, lease_ms]
        for job_id, token in held:
            self.keys.job(job_id)
            args += [job_id, check_token(token)]
        failed = yield RunScript("extend_locks", (self.keys.active,), args)
        return [job_id.decode() for job_id in failed]

    # -- looking ---------------------------------------------------------------------------------

    @procedure
    def browse(self, count: int = 100) -> Steps[list[str]]:
        """Up to ``count`` pending ids, newest first."""
        positive_int("count", count)
        return (yield from self._browse(self.keys.pending, count))

    @procedure
    def browse_dead(self, count: int = 100) -> Steps[list[str]]:
        """Up to ``count`` ids of the morgue, newest first."""
        positive_int("count", count)
        return (yield from self._browse(self.keys.dead, count))

    @staticmethod
    def _browse(key: str, count: int) -> Steps[list[str]]:
        ids = yield Call("ZRANGE", key, "+", "-", "BYLEX", "REV", "LIMIT", 0, count)
        return [job_id.decode() for job_id in ids]

    @procedure
    def pending_size(self) -> Steps[int]:
        """How many flat jobs wait."""
        size: int = yield Call("ZCARD", self.keys.pending)
        return size

    # -- data ------------------------------------------------------------------------------------

    @procedure
    def update_data(self, job_id: str, payload: bytes | str) -> Steps[Verdict]:
        """Replace the payload: OK or GONE."""
        reply = yield RunScript("update_data", (self.keys.job(job_id),), (check_payload(payload),))
        return settled(reply, -1)

    @procedure
    def update_progress(self, job_id: str, progress: bytes | str) -> Steps[Verdict]:
        """Note progress and publish it on the queue's events channel: OK or GONE."""
        args = (check_payload(progress), job_id, self.keys.base)
        reply = yield RunScript("update_progress", (self.keys.job(job_id),), args)
        return settled(reply, -1)

    @procedure
    def add_log(self, job_id: str, line: bytes | str, keep: int = 0) -> Steps[int | Verdict]:
        """Append a line, keeping the last ``keep`` only when above 0: the number of lines, or GONE."""
        non_negative_int("keep", keep)
        row_keys = (self.keys.job(job_id), self.keys.logs(job_id))
        count: int = yield RunScript("add_log", row_keys, (check_payload(line), keep or ""))
        return Verdict.GONE if count == -1 else count

    @procedure
    def get_job_logs(self, job_id: str) -> Steps[list[bytes] | Verdict]:
        """The lines, oldest first, or GONE."""
        if (yield Call("EXISTS", self.keys.job(job_id))) == 0:
            return Verdict.GONE
        lines: list[bytes] = yield Call("LRANGE", self.keys.logs(job_id), 0, -1)
        return lines

    @procedure
    def remove_job(self, job_id: str, dedup_id: str | None = None) -> Steps[Verdict]:
        """Delete a job nobody holds, and its deduplication key: OK, GONE or LOCKED."""
        keys = self.keys
        dedup = keys.dedup(dedup_id) if dedup_id is not None else keys.base + "de:"
        key_list = (keys.job(job_id), keys.pending, keys.active, keys.schedule, keys.dead, dedup)
        try:
            reply = yield RunScript("remove_job", key_list, (job_id, dedup_id or ""))
        except ServerError as error:
            return verdict_of(error, {"EMQLOCK": Verdict.LOCKED})
        return settled(reply, -1)

    @procedure
    def reprocess_job(self, job_id: str) -> Steps[Verdict]:
        """Bring a dead job back to flat pending: OK, GONE or NOT_DEAD."""
        keys = self.keys
        key_list = (keys.job(job_id), keys.dead, keys.pending, keys.wake)
        try:
            reply = yield RunScript("reprocess", key_list, (job_id,))
        except ServerError as error:
            return verdict_of(error, {"EMQSTATE": Verdict.NOT_DEAD})
        return settled(reply, -1)


def fail_entry(queue: bytes, parent: bytes, child: bytes, policy: bytes, error: bytes) -> bytes:
    """An outbox entry that tells a parent of a child's death (protocol: outbox entries)."""
    return b"\0".join((b"", b"fail", queue, parent, child, policy, error))
