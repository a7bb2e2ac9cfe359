"""The worker: brings due and lapsed jobs back, serves flat jobs and lanes in turn, parks when idle.

One round is a look (`outlook`, one command), then whatever the look calls for: reap, promote, serve. A reap
or promote that filled its batch repeats at once. Serving alternates one flat and one lane claim until
both are empty, so neither starves. A round that found nothing to do ends parked on the wake list for the
beat, or until the schedule's head is due if that is sooner: an idle worker costs two commands a beat.

`Consumer` is a step machine: `steps()` says what to ask, run or wait for next. `ConsumerThread` runs one
on a thread with its own connection (it blocks, so it cannot share one).

Losing the connection is not the worker's end: it waits and goes on with a new look. A job whose
completion got no answer is completed again, which the token makes safe; a failed job's is not, because a
second retry could bury it twice: its lease lapses and the job is served again.
"""

from __future__ import annotations

import threading

from .backoff import Backoff, Fixed
from .clock import Clock, new_random
from .connection import Connection
from .endpoint import Endpoint
from .errors import ConnectionTrouble, ServerError, Verdict, positive_int
from .jobs import Job, Jobs
from .lanes import Lanes
from .machine import Handle, Handler, Park, Runner, Wait
from .metrics import Metrics, Outlook
from .outcomes import Delay, Failed, Outcome
from .script import Scripts
from .steps import BoundProcedure, Link, Steps

__all__ = ["Consumer", "ConsumerThread", "Tally"]

REAP_BATCH = 100  # fixed by the protocol's reap
TROUBLE_MS = 100
TROUBLE_CAP_MS = 2_000
# Answers of a server that is not ready, rather than of a mistake.
_PASSING = frozenset({"LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "OOM"})


class Tally:
    """What a worker has done, counted by the verdicts it was answered."""

    __slots__ = (
        "completed",
        "dead",
        "delayed",
        "promoted",
        "reaped",
        "refused",
        "retried",
        "rounds",
        "troubles",
    )

    def __init__(self) -> None:
        self.completed = self.retried = self.dead = self.delayed = self.refused = 0
        self.promoted = self.reaped = self.rounds = self.troubles = 0

    @property
    def served(self) -> int:
        """How many claims ended in a settlement, accepted or refused."""
        return self.completed + self.retried + self.dead + self.delayed + self.refused


class Consumer:
    """A worker of one queue. ``handler(job)`` is given the job with its fencing token, ``job.token``.

    The handler's return value: an `Outcome` (`Done`, `Failed`, `Delay`) is carried out; anything else
    means done. An exception means failed, with its text. ``backoff`` gives the delay before a retry.
    """

    def __init__(
        self,
        connection: Connection | Link,
        queue: str,
        handler: Handler,
        *,
        lease_ms: int = 30_000,
        beat_ms: int = 1_000,
        backoff: Backoff | None = None,
        max_attempts: int = 3,
        promote_batch: int = 100,
    ) -> None:
        link = connection if isinstance(connection, Link) else Link(connection)
        self.jobs = Jobs(link, queue)
        self.lanes = Lanes(link, queue)
        self.metrics = Metrics(link, queue)
        self.handler = handler
        self.lease_ms = positive_int("lease_ms", lease_ms)
        self.beat_ms = positive_int("beat_ms", beat_ms)
        self.max_attempts = positive_int("max_attempts", max_attempts)
        self.promote_batch = positive_int("promote_batch", promote_batch)
        self.backoff: Backoff = backoff if backoff is not None else Fixed(1_000)
        self.stopping = False
        self.tally = Tally()
        self._rng = new_random()
        self._fruitless: tuple[int, int] | None = None
        self._turn = 0  # even: a flat claim is next, odd: a lane claim

    def stop(self) -> None:
        """Finish the job in hand, claim nothing more, end; takes at most a beat and a job."""
        self.stopping = True

    # -- the machine -----------------------------------------------------------------------------

    def steps(self) -> Steps[None]:
        """Rounds for ever, until stopped."""
        trouble = TROUBLE_MS
        while not self.stopping:
            try:
                yield from self.round()
                trouble = TROUBLE_MS
            except (ConnectionTrouble, ServerError) as error:
                if isinstance(error, ServerError) and error.code not in _PASSING:
                    raise
                self.tally.troubles += 1
                yield Wait(trouble)
                trouble = min(trouble * 2, TROUBLE_CAP_MS)

    def until_idle(self) -> Steps[int]:
        """Rounds until one finds nothing to do; never parks. How many jobs were served."""
        before = self.tally.served
        while not self.stopping:
            look = yield from self.metrics.outlook.steps()
            if not (yield from self.act(look)):
                break
        return self.tally.served - before

    def round(self) -> Steps[None]:
        """Look, act, and park if there was nothing to do."""
        self.tally.rounds += 1
        look = yield from self.metrics.outlook.steps()
        if not (yield from self.act(look)) and not self.stopping:
            yield Park(self.jobs.keys.wake, park_ms(look, self.beat_ms))

    def act(self, look: Outlook) -> Steps[bool]:
        """Do what a look calls for; whether another look is worth while before parking.

        It is after a lane claim that only took an empty lane off the ring, and is not when the same
        fruitless sight is met twice.
        """
        moved = yield from recover(self.jobs, look, self.promote_batch, self.tally)
        if not moved and not look.servable:
            return False
        served = yield from self.serve()
        if moved or served:
            self._fruitless = None
            return True
        sight = (look.pending, look.ring)
        again, self._fruitless = sight != self._fruitless, sight
        return again

    def serve(self) -> Steps[int]:
        """Claim and settle, flat and lane in turn, until both are empty; how many jobs."""
        served = empty = 0
        while empty < 2 and not self.stopping:
            lanes = self._turn % 2 == 1
            self._turn += 1
            claim: BoundProcedure[[int], Job | None] = self.lanes.claim if lanes else self.jobs.claim
            job = yield from claim.steps(self.lease_ms)
            if job is None:
                empty += 1
                continue
            empty = 0
            served += 1
            outcome: Outcome = yield Handle(job, self.handler)
            yield from self.settle(job, outcome)
        return served

    def settle(self, job: Job, outcome: Outcome) -> Steps[Verdict]:
        """Carry an outcome out and count the verdict; a refusal is somebody else's job by now."""
        if isinstance(outcome, Failed):
            delay = self.backoff.delay_ms(job.attempts, self._rng)
            verdict = yield from self.jobs.retry.steps(
                job.id, job.token, delay, self.max_attempts, outcome.reason
            )
            self._count({Verdict.SCHEDULED: "retried", Verdict.DEAD: "dead"}.get(verdict, "refused"))
            return verdict
        if isinstance(outcome, Delay):
            verdict = yield from self.jobs.delay.steps(job.id, job.token, outcome.ms)
            self._count("delayed" if verdict == Verdict.OK else "refused")
            return verdict
        verdict = yield from self._complete(job, outcome.result)
        self._count("completed" if verdict == Verdict.OK else "refused")
        return verdict

    def _complete(self, job: Job, result: bytes | str | None) -> Steps[Verdict]:
        """Complete; once more after a lost connection (GONE then means that the first one arrived)."""
        try:
            return (yield from self.jobs.complete.steps(job.id, job.token, result))
        except ConnectionTrouble:
            yield Wait(TROUBLE_MS * 2)
        verdict = yield from self.jobs.complete.steps(job.id, job.token, result)
        return Verdict.OK if verdict == Verdict.GONE else verdict

    def _count(self, name: str) -> None:
        setattr(self.tally, name, getattr(self.tally, name) + 1)


def recover(jobs: Jobs, look: Outlook, batch: int, tally: Tally) -> Steps[int]:
    """Reap and promote if the look says so, again while a batch was full; how many jobs moved."""
    reaped = promoted = 0
    if look.reapable:
        while True:
            count = yield from jobs.reap.steps()
            reaped += count
            if count < REAP_BATCH:
                break
    if look.promotable:
        while True:
            count = yield from jobs.promote.steps(batch)
            promoted += count
            if count < batch:
                break
    tally.reaped += reaped
    tally.promoted += promoted
    return reaped + promoted


def park_ms(look: Outlook, beat_ms: int) -> int:
    """How long to park: the beat, or until the schedule's head is due; at least 1 ms."""
    if look.next_run is None:
        return beat_ms
    return max(1, min(beat_ms, look.next_run - look.now))


class ConsumerThread:
    """A consumer on a thread of its own, with a connection of its own."""

    def __init__(
        self,
        endpoint: Endpoint,
        queue: str,
        handler: Handler,
        *,
        scripts: Scripts | None = None,
        clock: Clock | None = None,
        **options: object,
    ) -> None:
        self.connection = endpoint.connect()
        self.runner = Runner(Link(self.connection, scripts), clock if clock is not None else endpoint.clock)
        self.consumer = Consumer(self.runner.link, queue, handler, **options)  # type: ignore[arg-type]
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"echomq-{queue}", daemon=True)

    def start(self) -> ConsumerThread:
        """Begin serving."""
        self._thread.start()
        return self

    def _run(self) -> None:
        try:
            self.runner.run(self.consumer.steps())
        except BaseException as error:
            self.error = error
        finally:
            self.connection.close()

    def join(self, timeout: float | None = None) -> None:
        """Wait for the loop to end by itself."""
        self._thread.join(timeout)

    def stop(self, timeout: float | None = None) -> None:
        """Ask the loop to end and wait for it; raises what ended it before it was asked."""
        self.consumer.stop()
        self.runner.cancelled.set()
        self._thread.join(timeout)
        if self.error is not None:
            raise self.error

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def __enter__(self) -> ConsumerThread:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()
