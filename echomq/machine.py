"""What worker machines ask besides server commands, and the blocking runner that does it.

A worker (`consumer`, `metronome`, `batch`) is a step machine: it yields `Park` (wait for the wake list),
`Handle` (run the user's function), `Wait` (let local time pass) and the requests of `steps`, and owns
neither a thread nor a socket. `Runner` performs them on the calling thread; anything else that can
answer the same requests (an event loop, an explorer of interleavings) can drive the same machine.

A handler's exception is its outcome, not the worker's end: it becomes `Failed` with the exception's text.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from .clock import Clock, SystemClock, wait
from .outcomes import Delay, Done, Failed, Outcome
from .resp import Reply
from .steps import Link, Request, Steps, drive

if TYPE_CHECKING:
    from .jobs import Job

__all__ = ["Handle", "HandleBatch", "Handler", "Park", "Runner", "Wait", "outcome_of"]

T = TypeVar("T")
Handler = Callable[["Job"], object]
BatchHandler = Callable[[Sequence["Job"]], Mapping[str, Outcome]]

PARK_GRACE_MS = 2_000


class Park(Request):
    """Sleep on a wake list until a token or the time-out; both mean "look again"."""

    __slots__ = ("key", "milliseconds")

    def __init__(self, key: str, milliseconds: int) -> None:
        self.key = key
        self.milliseconds = milliseconds

    @property
    def command(self) -> tuple[str, str, str]:
        """The blocking command to send."""
        return ("BLPOP", self.key, f"{self.milliseconds / 1000:.3f}")

    def __repr__(self) -> str:
        return f"Park({self.key!r}, {self.milliseconds})"


class Wait(Request):
    """Let time pass locally."""

    __slots__ = ("milliseconds",)

    def __init__(self, milliseconds: float) -> None:
        self.milliseconds = milliseconds

    def __repr__(self) -> str:
        return f"Wait({self.milliseconds})"


class Handle(Request):
    """Run the handler on a claimed job; the reply is an `Outcome`."""

    __slots__ = ("handler", "job")

    def __init__(self, job: Job, handler: Handler) -> None:
        self.job = job
        self.handler = handler

    def __repr__(self) -> str:
        return f"Handle({self.job!r})"


class HandleBatch(Request):
    """Run the handler on a batch; the reply is what it answered, or the exception it raised."""

    __slots__ = ("batch", "handler")

    def __init__(self, batch: Sequence[Job], handler: BatchHandler) -> None:
        self.batch = batch
        self.handler = handler


def outcome_of(handler: Handler, job: Job) -> Outcome:
    """Run a handler: an `Outcome` it returns stands, anything else is `Done`, an exception is `Failed`."""
    try:
        said = handler(job)
    except SystemExit as error:
        return Failed(f"exit: {error}")
    except Exception as error:
        return Failed(str(error) or type(error).__name__)
    return said if isinstance(said, (Done, Failed, Delay)) else Done()


class Runner:
    """Drives machines on the calling thread over one connection of their own."""

    def __init__(self, link: Link, clock: Clock | None = None) -> None:
        self.link = link
        self.clock: Clock = clock if clock is not None else SystemClock()
        self.cancelled = threading.Event()

    def run(self, steps: Steps[T]) -> T:
        """Drive a machine until it ends."""
        return drive(steps, self.perform)

    def perform(self, request: Request) -> Reply:
        """Answer one request."""
        if isinstance(request, Handle):
            return outcome_of(request.handler, request.job)
        if isinstance(request, Park):
            grace = (request.milliseconds + PARK_GRACE_MS) / 1000
            return self.link.connection.call(*request.command, timeout=grace)
        if isinstance(request, Wait):
            return wait(self.clock, request.milliseconds, self.cancelled)
        if isinstance(request, HandleBatch):
            try:
                return request.handler(request.batch)
            except Exception as error:
                return error
        return self.link.perform(request)
