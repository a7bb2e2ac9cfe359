"""Time and chance: the only module of the package that may read the system's clock or randomness.

A `Clock` has one hot method, `now_ns()`: nanoseconds since the Unix epoch. It is injected wherever the
client's own time matters: minting ids, the repeat registry, `enqueue_at`, and the local waits of a
worker or a reconnecting connection. Everything else (leases, retry delays, what is due) is decided by
the server's `TIME`, inside the scripts.

`manual` clocks may be moved by the program: waiting on one advances it instead of sleeping, so a
program on a manual clock never spends real time. The shape (`now_ns`, `manual`, `advance`) is that of
the embedded emulator's clocks, so one clock object can drive both.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Protocol, runtime_checkable

__all__ = [
    "Clock",
    "ManualClock",
    "Movable",
    "SystemClock",
    "monotonic",
    "monotonic_ms",
    "new_random",
    "now_ms",
    "wait",
]

NS_PER_MS = 1_000_000


class Clock(Protocol):
    """What the package asks of a clock."""

    @property
    def manual(self) -> bool: ...

    @property
    def now_ns(self) -> Callable[[], int]: ...


@runtime_checkable
class Movable(Protocol):
    """A clock that the program moves itself."""

    def advance(self, milliseconds: float) -> None: ...


class SystemClock:
    """The machine's wall clock."""

    __slots__ = ()
    manual = False
    now_ns = staticmethod(time.time_ns)

    def __repr__(self) -> str:
        return "SystemClock()"


class ManualClock:
    """A clock that stands still until moved.

    ``start``: Unix time in seconds it shows first; the default is 2024-01-01T00:00:00Z, so that runs
    repeat. Use the emulator's own manual clock to move an embedded server as well.
    """

    __slots__ = ("_ns",)
    manual = True

    def __init__(self, start: float = 1_704_067_200) -> None:
        self._ns = round(start * 1000) * NS_PER_MS

    def now_ns(self) -> int:
        """The instant shown, in nanoseconds since the Unix epoch."""
        return self._ns

    def advance(self, milliseconds: float) -> None:
        """Move forward; raises ValueError for a negative amount (use `set` to move back)."""
        if not milliseconds >= 0:
            raise ValueError(f"advance() takes milliseconds >= 0, not {milliseconds!r}")
        self._ns += round(milliseconds * NS_PER_MS)

    def set(self, unix_seconds: float) -> None:
        """Show the instant ``unix_seconds``, earlier or later."""
        self._ns = round(unix_seconds * 1000) * NS_PER_MS

    def __repr__(self) -> str:
        return f"ManualClock({self._ns / 1e9!r})"


def now_ms(clock: Clock) -> int:
    """Whole milliseconds since the Unix epoch, as the clock shows them."""
    return clock.now_ns() // NS_PER_MS


def wait(clock: Clock, milliseconds: float, cancelled: threading.Event | None = None) -> None:
    """Let ``milliseconds`` pass on ``clock``: advance a manual one, else sleep until done or cancelled."""
    if clock.manual and isinstance(clock, Movable):
        clock.advance(milliseconds)
    elif cancelled is not None:
        cancelled.wait(milliseconds / 1000)
    else:
        time.sleep(milliseconds / 1000)


def new_random(seed: int | None = None) -> random.Random:
    """A random source; ``seed`` None draws one from the operating system."""
    return random.Random(seed)


monotonic = time.monotonic


def monotonic_ms() -> float:
    """A local clock that never steps back, in milliseconds; for measuring, not for dates."""
    return time.monotonic() * 1000
