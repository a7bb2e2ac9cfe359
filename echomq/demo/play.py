"""The run itself: enqueue, serve until nothing is left, audit.

Time is the queue's. On a manual clock the play moves it to the next thing due, and each notice sent takes a
little of it; on a wall clock the schedule is compressed by ``speed`` and idle workers park on the wake list.
Three workers take turns on this thread; each is a `Consumer` with a connection of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..backoff import Exponential
from ..clock import now_ms, wait
from ..connection import Connection
from ..consumer import Consumer
from ..endpoint import Endpoint
from ..errors import Verdict
from ..ids import Minter
from ..jobs import Jobs
from ..keys import Keys
from ..machine import Runner
from ..metrics import Metrics
from ..steps import Link
from .report import Progress
from .story import Notice, Office, WorkerDied

__all__ = ["Play", "Result", "Sample", "clear_queue"]

QUEUE = "demo-notifications"
WORKERS = 3
LEASE_MS = 30_000
SEND_MS = 120
MAX_ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class Sample:
    """Sizes of the sets at one instant of the schedule (seconds since the start)."""

    at_s: float
    schedule: int
    pending: int
    active: int
    dead: int
    completed: int


@dataclass(slots=True)
class Result:
    """What a run came to."""

    url: str
    refused: str = ""
    notices: int = 0
    enqueued: int = 0
    completed: int = 0
    dead: int = 0
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    retried: int = 0
    reaped: int = 0
    deferred: int = 0
    crashed: int = 0
    poison: list[tuple[str, str]] = field(default_factory=list)
    round_trips: int = 0
    schedule_s: float = 0.0
    samples: list[Sample] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not self.lost and not self.twice and self.enqueued == self.completed + self.dead


class Play:
    def __init__(self, endpoint: Endpoint, notices: list[Notice], speed: float, progress: Progress) -> None:
        self.endpoint = endpoint
        self.notices = notices
        self.speed = 1.0 if endpoint.clock.manual else speed
        self.progress = progress
        self.connections: list[Connection] = [endpoint.connect()]
        self.minter = Minter(clock=endpoint.clock)
        link = Link(self.connections[0])
        self.jobs = Jobs(link, QUEUE, self.minter)
        self.onlooker = endpoint.connect()  # the report's own looks are not the queue's round trips
        self.metrics = Metrics(self.onlooker, QUEUE)
        self.office = Office(notices, self._story_ms, self._defer, self._busy)
        self.ids: dict[str, str] = {}  # job -> notice
        self.result = Result(endpoint.url, notices=len(notices))
        self.workers = [self._hire() for _ in range(WORKERS)]
        self.tallies = [worker.consumer.tally for worker in self.workers]
        self._start_ms = now_ms(endpoint.clock)

    def run(self) -> Result:
        """The whole play, from an empty queue to the audit."""
        clear_queue(self.onlooker, self.jobs.keys)
        try:
            self._refuse_a_notice_id()
            self._start_ms = now_ms(self.endpoint.clock)
            for notice in self.notices:
                self._enqueue(notice.payload, notice.due_in_s * 1000)
            self._sample()
            while self._serve_all() or self._wait_for_more():
                pass
            self._sample()
            self._audit()
        finally:
            for connection in self.connections:
                self.result.round_trips += connection.counters.round_trips
            self.progress.end()
            clear_queue(self.onlooker, self.jobs.keys)
            for connection in (*self.connections, self.onlooker):
                connection.close()
        return self.result

    @property
    def clean(self) -> bool:
        return self.result.clean

    # -- scenes ----------------------------------------------------------------------------------

    def _refuse_a_notice_id(self) -> None:
        notice = self.notices[0].notice
        verdict = self.jobs.enqueue(notice, self.notices[0].payload)
        self.result.refused = (
            f"{notice} as a job id: refused ({'EMQKIND' if verdict is Verdict.KIND else verdict})"
        )

    def _enqueue(self, payload: str, delay_ms: float) -> None:
        job_id = self.minter.mint()
        self.ids[job_id] = payload
        if delay_ms > 0:
            self.jobs.enqueue_in(job_id, payload, max(1, round(delay_ms / self.speed)))
        else:
            self.jobs.enqueue(job_id, payload)
        self.result.enqueued += 1

    def _defer(self, payload: str, delay_ms: float) -> None:
        self._enqueue(payload, max(1.0, delay_ms))

    def _hire(self) -> _Worker:
        connection = self.endpoint.connect()
        self.connections.append(connection)
        return _Worker(connection, self)

    def _serve_all(self) -> int:
        """Let each worker serve what is there; a worker that died is replaced. How many jobs were served."""
        served = 0
        for place, worker in enumerate(self.workers):
            try:
                served += worker.serve()
            except WorkerDied:
                self.workers[place] = self._hire()
                self.tallies.append(self.workers[place].consumer.tally)
                served += 1
        return served

    def _wait_for_more(self) -> bool:
        """Pass the time until something is due; False when nothing is left to come."""
        look = self.metrics.outlook()
        nexts = [at for at in (look.next_run, look.next_deadline) if at is not None]
        if not nexts:
            return False
        milliseconds = max(1, min(nexts) - look.now)
        if self.endpoint.clock.manual:
            wait(self.endpoint.clock, milliseconds)
        else:
            self.connections[0].call("BLPOP", self.jobs.keys.wake, f"{min(milliseconds, 1000) / 1000:.3f}")
        self._sample()
        return True

    # -- time and looks --------------------------------------------------------------------------

    def _story_ms(self) -> float:
        return (now_ms(self.endpoint.clock) - self._start_ms) * self.speed

    def _busy(self) -> None:
        wait(self.endpoint.clock, SEND_MS / self.speed)
        self._sample()

    def _sample(self) -> None:
        counts = self.metrics.get_counts()
        sample = Sample(
            self._story_ms() / 1000,
            *(counts[name] for name in ("schedule", "pending", "active", "dead", "completed")),
        )
        self.result.samples.append(sample)
        self.progress.show(sample, self.result.enqueued)

    # -- the audit -------------------------------------------------------------------------------

    def _audit(self) -> None:
        """Hold the queue's books against the office's."""
        result = self.result
        counts = self.metrics.get_counts()
        result.completed, result.dead = counts["completed"], counts["dead"]
        result.retried = sum(tally.retried for tally in self.tallies)
        result.reaped = sum(tally.reaped for tally in self.tallies)
        result.deferred, result.crashed = self.office.deferred, self.office.crashed
        result.schedule_s = self._story_ms() / 1000
        dead_payloads = set()
        for job_id, payload in self.ids.items():
            row: Any = self.metrics.get_job(job_id)
            if not row:
                continue  # completed: the row is gone
            if row["state"] == b"dead":
                dead_payloads.add(payload)
                result.poison.append((job_id, row["last_error"].decode()))
            else:
                result.lost.append(f"{job_id} ({row['state'].decode()})")
        for notice in self.notices:
            times = len(self.office.sent.get(notice.notice, ()))
            if times > 1:
                result.twice.append(notice.notice)
            if times == 0 and notice.payload not in dead_payloads:
                result.lost.append(notice.notice)


def clear_queue(connection: Connection, keys: Keys) -> None:
    """Delete every key of a queue."""
    names = connection.call("KEYS", keys.base.replace("{", "\\{") + "*")
    if names:
        connection.call("DEL", *names)


class _Worker:
    """One consumer with its own connection, driven by the play."""

    def __init__(self, connection: Connection, play: Play) -> None:
        self.runner = Runner(Link(connection), play.endpoint.clock)
        self.consumer = Consumer(
            self.runner.link,
            QUEUE,
            play.office.handle,
            lease_ms=max(1, round(LEASE_MS / play.speed)),
            backoff=Exponential(max(1, round(5_000 / play.speed)), max(1, round(60_000 / play.speed))),
            max_attempts=MAX_ATTEMPTS,
        )

    def serve(self) -> int:
        return self.runner.run(self.consumer.until_idle())
