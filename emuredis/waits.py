"""How a thread waits for the engine: the one place where the synchronous doors sleep.

* On a system clock the thread sleeps until it is woken, and does what comes due meanwhile (its own time-out among it).
* On a manual clock nobody's time passes by itself. While another thread that uses the emulator still runs, it is given
  the chance to act. When every such thread waits too, the clock jumps to the earliest instant at which
  something happens (``autojump``), and where nothing ever will, `WaitForever` says who waits for what.

Nothing is awaited while the engine's lock is held, and no thread is started.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from emuredis.clock import NS_PER_MS, monotonic
from emuredis.engine.engine import Engine
from emuredis.engine.waiting import Waiter
from emuredis.errors import WaitForever

__all__ = ["LOOK", "NAP", "NAP_SUBSCRIBER", "PATIENCE", "forever", "next_instant", "stopped_ns", "wait"]

#: Real seconds that a wait on a manual clock stays patient while other threads could still end it.
PATIENCE = 30.0
#: Real seconds between looks at a manual clock that others may move.
LOOK = 0.02
#: A wall clock this far behind the time that really passed has been stopped.
SLACK_NS = 50_000_000
#: The longest sleep, in seconds, on a system clock.
NAP = 3600.0
#: The same for a subscriber: keys that others set meanwhile may expire, and it is told of that.
NAP_SUBSCRIBER = 0.1


def wait(engine: Engine, event: threading.Event, seconds: float | None, blame: Callable[[], WaitForever],
         keys_wake: bool = False) -> bool:  # fmt: skip
    """Wait until ``event`` is set; False if ``seconds`` (None: for ever) passed before.

    The seconds are those of the emulator's clock. ``blame`` makes the error for a wait that nobody can end;
    ``keys_wake``: keys that expire may end it (a subscriber hears of them), not only a time-out.
    """
    if engine.scheduler is not None and (woken := engine.scheduler.wait(event, seconds)) is not None:
        return bool(woken)
    if engine.clock.manual:
        return _wait_manual(engine, event, seconds, blame, keys_wake)
    return _wait_system(engine, event, seconds, NAP_SUBSCRIBER if keys_wake else NAP)


def _wait_system(engine: Engine, event: threading.Event, seconds: float | None, longest: float) -> bool:
    began, began_ns = monotonic(), engine.now_ns()
    end = None if seconds is None else began + seconds
    while not event.is_set():
        nap = longest if end is None else min(end - monotonic(), longest)
        if nap < 0:
            return False
        with engine.lock:
            due, now = engine.next_due_ns(), engine.now_ns()
            if due is not None and due <= now:
                engine.run_due()
                continue
            late = stopped_ns(began, now - began_ns)
            if late and engine.run_late(late):
                continue
        event.wait(
            nap if due is None else min(max((due - now - late) / 1e9, 0.0) + 1e-4 + bool(late) * LOOK, nap)
        )
    return True


def stopped_ns(began: float, passed_ns: int) -> int:
    """How far a wall clock has fallen behind since ``began`` (`monotonic`), having gone on by ``passed_ns``.

    A test may have stopped or set it back; that must not keep anybody waiting. 0 while it goes.
    """
    late = round((monotonic() - began) * 1e9) - passed_ns
    return late if late > SLACK_NS else 0


def _wait_manual(engine: Engine, event: threading.Event, seconds: float | None, blame: Callable[[], WaitForever],
                 keys_wake: bool) -> bool:  # fmt: skip
    clock: Any = engine.clock
    end = None if seconds is None else clock.now_ns() + round(seconds * 1000) * NS_PER_MS
    # A wait with an end never takes longer in real time than it asked for: it may well be a nap between two looks.
    give_up = monotonic() + (PATIENCE if seconds is None else min(seconds, PATIENCE))
    engine.threads.park()
    try:
        while not event.is_set():
            with engine.lock:
                if event.is_set():
                    break
                if end is not None and clock.now_ns() >= end:
                    return False
                if not engine.threads.others_running():
                    target = next_instant(engine, end, keys_wake)
                    if clock.autojump and target is not None:
                        clock.move_to(target)
                        continue
                    if end is not None:
                        return False
                    raise blame()
            left = give_up - monotonic()
            if not event.wait(max(min(LOOK, left), 0.0)) and left <= LOOK:
                if end is not None:
                    return False
                raise blame()
    finally:
        engine.threads.unpark()
    return True


def next_instant(engine: Engine, end: int | None, keys_wake: bool) -> int | None:
    """Where a manual clock may jump to because something happens there that can end a wait; None: it is in vain.

    ``end``: when the wait is over by itself, if ever; ``keys_wake`` as for `wait`.
    """
    due = engine.next_due_ns()
    if due is not None and not keys_wake and end is None and engine.waiting.next_due_ns() is None:
        return None
    if due is None or end is None:
        return due if end is None else end
    return min(due, end)


def forever(engine: Engine, waiter: Waiter | None) -> WaitForever:
    """The error of a parked command that waits in vain; names it and its keys."""
    if waiter is None:
        return WaitForever("the command waits, and nobody is left who could answer")
    keys = ", ".join(repr(key) for key in waiter.keys)
    name = waiter.cmd.name.upper()
    if waiter.deadline_ns is None:
        return WaitForever(
            f"{name} waits without time-out for {keys}, and nobody is left who could push to it"
        )
    left = (waiter.deadline_ns - engine.clock.now_ns()) // NS_PER_MS
    return WaitForever(
        f"{name} waits for {keys} with {left} ms left on a manual clock that nobody moves; call its advance(), or "
        "make it with autojump=True"
    )
