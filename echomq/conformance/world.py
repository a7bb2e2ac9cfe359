"""What a scenario is given: a server, a queue of its own, and a way to let time pass.

On a manual clock waiting advances it and costs nothing. On a wall clock waiting polls the server's `TIME`,
and every duration a scenario names is stretched by ``time_scale``, so that a slow machine does not turn
a lease of 30 ms into a failure.

A scenario is a function of a `World`, registered under its name with `scenario`; the order of
registration is the order of running. It ends quietly or raises; `equal` and `check` say what was wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from .. import clock as clocks
from ..admin import Admin
from ..backoff import Fixed
from ..batch import BatchConsumer, Shape
from ..connection import Connection
from ..endpoint import Endpoint, Options
from ..ids import Minter
from ..jobs import Job, Jobs
from ..keys import Keys
from ..lanes import Lanes
from ..machine import Runner
from ..metrics import Metrics
from ..repeat import Repeat
from ..script import Scripts
from ..steps import Link

__all__ = ["SCENARIOS", "ScenarioFailed", "World", "check", "equal", "scenario"]

LEASE_MS = 60_000
PATIENCE_S = 10.0

SCENARIOS: dict[str, Callable[[World], None]] = {}


class ScenarioFailed(Exception):
    """A scenario saw something else than it should."""


def scenario(body: Callable[[World], None]) -> Callable[[World], None]:
    """Register a scenario under its function's name."""
    SCENARIOS[body.__name__] = body
    return body


def equal(what: str, got: object, wanted: object) -> None:
    """Fail unless both are the same."""
    if got != wanted:
        raise ScenarioFailed(f"{what}: got {got!r}, wanted {wanted!r}")


def check(what: str, truth: object) -> None:
    """Fail unless true."""
    if not truth:
        raise ScenarioFailed(f"{what}: not so")


class World:
    """One scenario's queue on one server."""

    def __init__(
        self,
        endpoint: Endpoint,
        connection: Connection,
        queue: str,
        *,
        scripts: Scripts,
        minter: Minter,
        time_scale: float,
    ) -> None:
        self.endpoint = endpoint
        self.connection = connection
        self.queue = queue
        self.minter = minter
        self.scripts = scripts
        self.time_scale = time_scale
        self.clock = endpoint.clock
        self.link = Link(connection, scripts)
        self.runner = Runner(self.link, endpoint.clock)
        self.jobs = Jobs(self.link, queue, minter)
        self.lanes = Lanes(self.link, queue)
        self.admin = Admin(self.link, queue)
        self.metrics = Metrics(self.link, queue)
        self.repeat = Repeat(self.link, queue, endpoint.clock, minter)
        self.keys = self.jobs.keys
        self._opened: list[Connection] = []
        self._others: list[Keys] = []

    # -- ids and jobs ----------------------------------------------------------------------------

    def mint(self, space: str = "JOB") -> str:
        """A fresh id."""
        return self.minter.mint(space)

    def fill(self, count: int, group: str | None = None) -> list[str]:
        """Enqueue ``count`` jobs (payload: their number), flat or in a lane; their ids in order."""
        ids = []
        for number in range(count):
            ids.append(self.mint())
            if group is None:
                self.jobs.enqueue(ids[-1], str(number))
            else:
                self.lanes.enqueue(group, ids[-1], str(number))
        return ids

    def groups(self, count: int) -> list[str]:
        """Fresh group ids."""
        return [self.mint("PRT") for _ in range(count)]

    def take(self, lease_ms: int = LEASE_MS) -> Job:
        """Claim a flat job that must be there."""
        job = self.jobs.claim(lease_ms)
        if job is None:
            raise ScenarioFailed("claim: empty, wanted a job")
        return job

    def row(self, job_id: str) -> dict[str, bytes] | None:
        """The row's fields."""
        return self.metrics.get_job(job_id)

    def field(self, job_id: str, name: str) -> bytes | None:
        """One field of a row."""
        value: bytes | None = self.connection.call("HGET", self.keys.job(job_id), name)
        return value

    def state(self, job_id: str) -> str | None:
        """The row's own state."""
        value = self.field(job_id, "state")
        return None if value is None else value.decode()

    def score(self, key: str, member: str) -> float | None:
        """A member's score."""
        value = self.connection.call("ZSCORE", key, member)
        return None if value is None else float(value)

    def gone(self, job_id: str) -> bool:
        """Whether there is no row."""
        return bool(self.connection.call("EXISTS", self.keys.job(job_id)) == 0)

    def batches(self, answer: Callable[[Sequence[Job]], object], shape: Shape | None = None) -> BatchConsumer:
        """A batch consumer with a delay-free retry, to be flushed by hand."""
        return BatchConsumer(
            self.link,
            self.queue,
            answer,  # type: ignore[arg-type]
            lambda: self.clock.now_ns() / 1e6,
            shape=shape,
            backoff=Fixed(0),
            lease_ms=LEASE_MS,
        )

    # -- time ------------------------------------------------------------------------------------

    def ms(self, milliseconds: int) -> int:
        """A duration for this server: as named on a manual clock, stretched on a wall clock."""
        return milliseconds if self.clock.manual else round(milliseconds * self.time_scale)

    def server_ms(self) -> int:
        """The server's now."""
        seconds, micros = self.connection.call("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    def wait(self, milliseconds: int) -> None:
        """Let (stretched) time pass on the server, and one millisecond for what is due exactly then."""
        if self.clock.manual:
            clocks.wait(self.clock, milliseconds)
            return
        end = self.server_ms() + self.ms(milliseconds) + 1
        while (left := end - self.server_ms()) > 0:
            clocks.wait(self.clock, min(left, 20))

    def until(self, what: str, truth: Callable[[], object]) -> None:
        """Let time pass until something holds."""
        give_up = clocks.monotonic() + PATIENCE_S
        while not truth():
            if clocks.monotonic() > give_up:
                raise ScenarioFailed(f"{what}: still not so after {PATIENCE_S:g} s")
            clocks.wait(self.clock, 10)

    # -- connections -----------------------------------------------------------------------------

    def connect(self, protocol: int | None = 3) -> Connection:
        """Another connection to the same server, closed with the scenario."""
        options: Options = replace(self.endpoint.options, protocol=protocol)
        connection = self.endpoint.connect(options)
        self._opened.append(connection)
        return connection

    def clean(self) -> None:
        """Delete every key of the scenario's queue and of those it named."""
        for keys in (self.keys, *self._others):
            found = self.connection.call("KEYS", keys.base + "*")
            if found:
                self.connection.call("DEL", *found)

    def also(self, keys: Keys) -> None:
        """Clean another queue with this scenario."""
        self._others.append(keys)

    def close(self) -> None:
        """Give up the connections the scenario opened."""
        for connection in self._opened:
            connection.close()
