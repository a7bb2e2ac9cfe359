"""Time and chance: the only module of the package that may read the system's clock or randomness.

A `Clock` has one hot method, `now_ns()`: nanoseconds since the Unix epoch. The engine reads it once
per outermost execution unit, so a script or a transaction sees one instant. `SystemClock` follows
the machine; `ManualClock` stands still until it is told to move, and never moves backwards unless
`set` is asked to.
"""

from __future__ import annotations

import random
import time
import weakref
from collections.abc import Callable
from functools import partial
from types import BuiltinFunctionType
from typing import Any, Protocol

from emuredis.errors import WaitForever

__all__ = ["Clock", "ManualClock", "SystemClock", "Walker", "entropy_token", "monotonic", "nap", "new_random"]

NS_PER_MS = 1_000_000


def _real(name: str) -> Any:
    """A function of `time` as the machine has it, even if a tool stands in for it while this module is imported."""
    function = getattr(time, name)
    if isinstance(function, BuiltinFunctionType) or not hasattr(time, "clock_gettime_ns"):
        return function
    if name == "monotonic":
        return partial(time.clock_gettime, time.CLOCK_MONOTONIC)
    return partial(time.clock_gettime_ns, time.CLOCK_REALTIME)


class Clock(Protocol):
    """What the engine asks of a clock. `manual` clocks may be moved by the program."""

    manual: bool

    def now_ns(self) -> int: ...

    def sleep(self, seconds: float) -> None: ...


class Walker(Protocol):
    """What a manual clock stops for: an engine with deadlines."""

    def next_due_ns(self) -> int | None: ...

    def run_due(self) -> None: ...


class SystemClock:
    """The machine's wall clock."""

    __slots__ = ()
    manual = False
    now_ns = staticmethod(_real("time_ns"))

    def sleep(self, seconds: float) -> None:
        """Let that much time pass (DEBUG SLEEP)."""
        time.sleep(seconds)

    def __repr__(self) -> str:
        return "SystemClock()"


class ManualClock:
    """A clock that stands still until moved.

    ``start``: Unix time in seconds (float or int) it shows first; the default is a fixed instant,
    2024-01-01T00:00:00Z, so that runs repeat.
    ``autojump``: when every thread that uses the emulator is blocked, jump to the next deadline
    instead of waiting for somebody to call `advance` (default True).

    `advance` and `set` are carried out through each emulator that uses the clock, so keys expire and
    blocked clients wake in the order of their deadlines.
    """

    __slots__ = ("__weakref__", "_ns", "_walkers", "autojump")
    manual = True

    def __init__(self, start: float = 1_704_067_200, *, autojump: bool = True) -> None:
        self._ns = round(start * 1000) * NS_PER_MS
        self.autojump = autojump
        self._walkers: weakref.WeakKeyDictionary[Walker, None] = weakref.WeakKeyDictionary()

    def now_ns(self) -> int:
        """The instant shown, in nanoseconds since the Unix epoch."""
        return self._ns

    @property
    def now_ms(self) -> int:
        """The instant shown, in milliseconds since the Unix epoch."""
        return self._ns // NS_PER_MS

    def attach(self, walker: Walker) -> None:
        """Have ``walker`` told of every instant at which it has something due."""
        self._walkers[walker] = None

    def advance(self, milliseconds: float) -> None:
        """Move forward by ``milliseconds`` (>= 0), stopping at every due instant on the way.

        Raises ValueError for a negative amount: use `set` to move back.
        """
        if not milliseconds >= 0:
            raise ValueError(f"advance() takes milliseconds >= 0, not {milliseconds!r}")
        self.move_to(self._ns + round(milliseconds * NS_PER_MS))

    def next_due_ns(self) -> int | None:
        """The next instant at which something happens by itself: a key expires, a wait ends; None if nothing will."""
        due = [at for walker in list(self._walkers) if (at := walker.next_due_ns()) is not None]
        return min(due, default=None)

    def advance_to_next(self) -> float | None:
        """Move to the next instant at which something is due, and have it done; by how many milliseconds.

        None, and nothing moves, if nothing is due ever.
        """
        due = self.next_due_ns()
        if due is None:
            return None
        before = self._ns
        self.move_to(max(due, before))
        self.catch_up()
        return (self._ns - before) / NS_PER_MS

    def run_until(self, predicate: Callable[[], object], limit_ms: float = 86_400_000) -> float:
        """Move from one due instant to the next until ``predicate()`` is true; how many milliseconds that took.

        Raises WaitForever when nothing is due any more, or ``limit_ms`` have gone by, and it still is not.
        """
        start = self._ns
        while not predicate():
            due = self.next_due_ns()
            if due is None:
                raise WaitForever("nothing is due any more, and what is waited for has not happened")
            if due - start > limit_ms * NS_PER_MS:
                raise WaitForever(f"what is waited for has not happened within {limit_ms:g} ms")
            self.advance_to_next()
        return (self._ns - start) / NS_PER_MS

    def set(self, unix_seconds: float) -> None:
        """Show the instant ``unix_seconds``; a later one is walked to as by `advance`."""
        self.move_to(round(unix_seconds * 1000) * NS_PER_MS)

    def move_to(self, target_ns: int) -> None:
        """Show ``target_ns``, visiting every instant on the way at which a walker has work."""
        while target_ns > self._ns:
            due = [at for walker in self._walkers if (at := walker.next_due_ns()) is not None]
            self._ns = max(self._ns, min(min(due, default=target_ns), target_ns))
            for walker in list(self._walkers):
                walker.run_due()
        self._ns = target_ns

    def show(self, ns: int) -> None:
        """Show an instant, forth or back; nothing is done on the way, for the state of that instant is put back."""
        self._ns = ns

    def sleep(self, seconds: float) -> None:
        """Move forward without stopping anywhere, as for a server that sleeps; `catch_up` is to follow."""
        self._ns += round(seconds * 1000) * NS_PER_MS

    def catch_up(self) -> None:
        """Have every walker do what is due by now."""
        for walker in list(self._walkers):
            walker.run_due()

    def __repr__(self) -> str:
        return f"ManualClock({self._ns / 1e9!r}, autojump={self.autojump})"


def new_random(seed: int | None) -> random.Random:
    """A random source; ``seed`` None draws one from the operating system."""
    return random.Random(seed)


def entropy_token(size: int) -> str:
    """``size`` random lower-case hexadecimal digits, for identifiers such as the run id."""
    return f"{random.SystemRandom().getrandbits(size * 4):0{size}x}"


monotonic: Callable[[], float] = _real("monotonic")
#: Real seconds for other threads to run in, whatever clock the emulator has.
nap = time.sleep
