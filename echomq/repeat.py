"""Names that fire every so often.

The registry runs on the **client's** clock (injected), unlike everything else: first runs, what is due,
and the next run are computed here. Firing is not claimed, so run one sweep per queue. Missed periods are
not made up: one occurrence per sweep, then now + period. A crash between the enqueue and the advance
gives one extra job, never a lost one.
"""

from __future__ import annotations

from typing import NamedTuple

from .clock import Clock, SystemClock, now_ms
from .connection import Connection
from .errors import Verdict, non_negative_int, positive_int
from .ids import Minter
from .jobs import Jobs, check_payload
from .steps import Call, Link, Part, Pipeline, RunScript, Steps, procedure, reraise

__all__ = ["Due", "Repeat"]


class Due(NamedTuple):
    """A registration whose run is due; the two fields are None when its record is missing."""

    name: str
    every_ms: int | None
    template: bytes | None


class Repeat(Part):
    """A queue's repeat registry."""

    def __init__(
        self,
        connection: Connection | Link,
        queue: str,
        clock: Clock | None = None,
        minter: Minter | None = None,
    ) -> None:
        super().__init__(connection, queue)
        self.clock: Clock = clock if clock is not None else SystemClock()
        self.jobs = Jobs(self.link, queue, minter)

    @procedure
    def register(self, name: str, every_ms: int, template: bytes | str, first_in: int = 0) -> Steps[Verdict]:
        """REGISTERED, or EXISTS (nothing changed, even if the period differs)."""
        record = self.keys.repeat_record(name)
        positive_int("every_ms", every_ms)
        first = now_ms(self.clock) + non_negative_int("first_in", first_in)
        args = (name, every_ms, check_payload(template), first)
        reply = yield RunScript("repeat_register", (self.keys.repeat, record), args)
        return Verdict.REGISTERED if reply == 1 else Verdict.EXISTS

    @procedure
    def cancel(self, name: str) -> Steps[Verdict]:
        """CANCELLED or ABSENT."""
        reply = yield RunScript("repeat_cancel", (self.keys.repeat, self.keys.repeat_record(name)), (name,))
        return Verdict.CANCELLED if reply == 1 else Verdict.ABSENT

    @procedure
    def due(self, limit: int = 100) -> Steps[list[Due]]:
        """Up to ``limit`` registrations whose run is due."""
        positive_int("limit", limit)
        names = yield Call("ZRANGEBYSCORE", self.keys.repeat, "-inf", now_ms(self.clock), "LIMIT", 0, limit)
        texts = [name.decode() for name in names]
        records = yield Pipeline(
            [("HMGET", self.keys.repeat_record(name), "every_ms", "template") for name in texts]
        )
        return [
            Due(name, None if every is None else int(every), template)
            for name, (every, template) in zip(texts, map(reraise, records), strict=True)
        ]

    @procedure
    def advance(self, name: str, next_ms: int) -> Steps[Verdict]:
        """Set the next run: ADVANCED, or ABSENT (the record is missing; the name is dropped)."""
        key_list = (self.keys.repeat, self.keys.repeat_record(name))
        reply = yield RunScript("repeat_advance", key_list, (name, non_negative_int("next_ms", next_ms)))
        return Verdict.ADVANCED if reply == 1 else Verdict.ABSENT

    @procedure
    def count(self) -> Steps[int]:
        """How many names are registered."""
        count: int = yield Call("ZCARD", self.keys.repeat)
        return count

    @procedure
    def fire(self, limit: int = 100) -> Steps[list[str]]:
        """Enqueue one occurrence of every due name and advance it; the minted ids."""
        fired = []
        for due in (yield from self.due.steps(limit)):
            if due.every_ms is None or due.template is None:
                yield from self.cancel.steps(due.name)
                continue
            fired.append((yield from self.jobs.add.steps(due.template)))
            yield from self.advance.steps(due.name, now_ms(self.clock) + due.every_ms)
        return fired
