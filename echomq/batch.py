"""Batches: the pure decisions, and a step machine that serves the flat queue in batches.

`decide` says when a window of waiting jobs is worth claiming; `partition` says which bucket each member
of a handled batch ended in. Both know no clock, no server and no handler, so they are tested by table.

The window: nothing is leased while waiting. A depth at the floor flushes; so does a window older than the
timeout that holds anything at all. The window starts when its first job is seen.

The machine runs neither reap nor promote: something else on the queue must.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from .backoff import Backoff, Fixed
from .clock import monotonic_ms, new_random
from .connection import Connection
from .errors import Verdict, positive_int
from .jobs import Job, Jobs
from .machine import HandleBatch, Wait
from .outcomes import Delay, Done, Failed, Outcome
from .steps import Call, Link, Steps

__all__ = [
    "BatchConsumer",
    "BatchReport",
    "Shape",
    "decide",
    "partition",
    "read_verdicts",
]

BatchHandler = Callable[[Sequence[Job]], Mapping[str, Outcome]]


@dataclass(frozen=True, slots=True)
class Shape:
    """When a window is flushed."""

    min_size: int = 1
    timeout_ms: int = 1_000

    def __post_init__(self) -> None:
        positive_int("min_size", self.min_size)
        positive_int("timeout_ms", self.timeout_ms)


def decide(shape: Shape, depth: int, elapsed_ms: float) -> int:
    """How many to claim now: 0 is "wait"."""
    if depth >= shape.min_size or elapsed_ms >= shape.timeout_ms:
        return depth
    return 0


@dataclass(slots=True)
class BatchReport:
    """Where each member ended, each in exactly one list, in the batch's order."""

    completed: list[str] = field(default_factory=list)
    retried: list[str] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)
    delayed: list[str] = field(default_factory=list)


def read_verdicts(batch: Sequence[Job], answer: object) -> list[Outcome]:
    """One outcome a member: a missing one, or an answer that is no mapping, counts as failed."""
    if not isinstance(answer, Mapping):
        return [Failed(f"bad verdict: {answer!r}")] * len(batch)
    return [_outcome(answer.get(job.id)) for job in batch]


def _outcome(said: object) -> Outcome:
    if said is None:
        return Failed("missing verdict")
    if isinstance(said, (Done, Failed, Delay)):
        return said
    return Failed(f"bad verdict: {said!r}")


def partition(batch: Sequence[Job], outcomes: Sequence[Outcome], answers: Sequence[Verdict]) -> BatchReport:
    """Buckets from what was asked and what the server answered; a refused settlement counts as retried."""
    report = BatchReport()
    for job, outcome, answer in zip(batch, outcomes, answers, strict=True):
        if isinstance(outcome, Failed):
            bucket = report.dead if answer == Verdict.DEAD else report.retried
        elif answer != Verdict.OK:
            bucket = report.retried
        else:
            bucket = report.delayed if isinstance(outcome, Delay) else report.completed
        bucket.append(job.id)
    return report


class BatchConsumer:
    """Serves a flat queue in batches; ``now_ms`` is a monotonic clock in milliseconds."""

    def __init__(
        self,
        connection: Connection | Link,
        queue: str,
        handler: BatchHandler,
        now_ms: Callable[[], float] = monotonic_ms,
        *,
        shape: Shape | None = None,
        lease_ms: int = 30_000,
        poll_ms: int = 50,
        backoff: Backoff | None = None,
        max_attempts: int = 3,
    ) -> None:
        self.jobs = Jobs(connection, queue)
        self.handler = handler
        self.now_ms = now_ms
        self.shape = shape if shape is not None else Shape()
        self.lease_ms = positive_int("lease_ms", lease_ms)
        self.poll_ms = positive_int("poll_ms", poll_ms)
        self.backoff: Backoff = backoff if backoff is not None else Fixed(1_000)
        self.max_attempts = positive_int("max_attempts", max_attempts)
        self.stopping = False
        self.reports: list[BatchReport] = []
        self._rng = new_random()

    def stop(self) -> None:
        """End after the batch in hand."""
        self.stopping = True

    def steps(self) -> Steps[None]:
        """Watch the depth; flush when the shape says so; for ever, until stopped."""
        opened: float | None = None
        while not self.stopping:
            depth = yield from self.jobs.pending_size.steps()
            if depth and opened is None:
                opened = self.now_ms()
            size = decide(self.shape, depth, self.now_ms() - opened) if opened is not None else 0
            if not depth:
                opened = None
            if size == 0:
                yield Wait(self.poll_ms)
                continue
            opened = None
            self.reports.append((yield from self.flush(size)))

    def flush(self, size: int) -> Steps[BatchReport]:
        """Claim, hand over once, settle each member alone."""
        batch = yield from self.jobs.claim_batch.steps(size, self.lease_ms)
        if not batch:
            return BatchReport()
        answer = yield HandleBatch(batch, self.handler)
        if isinstance(answer, Exception):
            outcomes: list[Outcome] = [Failed(str(answer) or type(answer).__name__)] * len(batch)
        else:
            outcomes = read_verdicts(batch, answer)
        answers = []
        for job, outcome in zip(batch, outcomes, strict=True):
            answers.append((yield from self.settle(job, outcome)))
            yield from self._publish(job, outcome)
        return partition(batch, outcomes, answers)

    def settle(self, job: Job, outcome: Outcome) -> Steps[Verdict]:
        """Carry one outcome out."""
        if isinstance(outcome, Failed):
            delay = self.backoff.delay_ms(job.attempts, self._rng)
            return (
                yield from self.jobs.retry.steps(job.id, job.token, delay, self.max_attempts, outcome.reason)
            )
        if isinstance(outcome, Delay):
            return (yield from self.jobs.delay.steps(job.id, job.token, outcome.ms))
        return (yield from self.jobs.complete.steps(job.id, job.token, outcome.result))

    def _publish(self, job: Job, outcome: Outcome) -> Steps[None]:
        name = {Done: "completed", Failed: "failed", Delay: "delayed"}[type(outcome)]
        yield Call("PUBLISH", self.jobs.keys.events, f'{{"event":"{name}","job":"{job.id}"}}')
