"""The queue's housekeeper: promotes, fires repeatables, delivers flow entries. Run one per queue.

It does not reap; workers do. `Pump` is a step machine like the workers, run by a `Runner`.
"""

from __future__ import annotations

from typing import NamedTuple

from .clock import Clock
from .connection import Connection
from .errors import ConnectionTrouble, positive_int
from .flows import Flows
from .ids import Minter
from .jobs import Jobs
from .machine import Wait
from .repeat import Repeat
from .steps import Link, Part, Steps, procedure

__all__ = ["Pump", "Sweep"]


class Sweep(NamedTuple):
    """What one sweep did."""

    promoted: int
    fired: int
    delivered: int


class Pump(Part):
    """A queue's pump."""

    def __init__(
        self,
        connection: Connection | Link,
        queue: str,
        clock: Clock | None = None,
        minter: Minter | None = None,
        *,
        tick_ms: int = 1_000,
        batch: int = 100,
    ) -> None:
        super().__init__(connection, queue)
        self.jobs = Jobs(self.link, queue)
        self.repeat = Repeat(self.link, queue, clock, minter)
        self.flows = Flows(self.link, queue)
        self.tick_ms = positive_int("tick_ms", tick_ms)
        self.batch = positive_int("batch", batch)
        self.stopping = False

    @procedure
    def sweep(self) -> Steps[Sweep]:
        """Promote, fire, deliver: a batch of each."""
        promoted = yield from self.jobs.promote.steps(self.batch)
        fired = yield from self.repeat.fire.steps(self.batch)
        delivered = yield from self.flows.deliver.steps(self.batch)
        return Sweep(promoted, len(fired), delivered)

    def stop(self) -> None:
        """End after the sweep in hand; takes at most a tick."""
        self.stopping = True

    def steps(self) -> Steps[None]:
        """Sweep every tick, until stopped; at once again while a sweep filled a batch."""
        while not self.stopping:
            try:
                swept = yield from self.sweep.steps()
            except ConnectionTrouble:
                swept = Sweep(0, 0, 0)
            if max(swept) < self.batch:
                yield Wait(self.tick_ms)
