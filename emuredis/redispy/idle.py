"""How a task waits for the engine, and who moves a manual clock when an event loop has nothing else to do.

Each event loop in which somebody waits has one `Idler`. On a system clock it only sees to it that what comes due is
done in time. On a manual clock it watches the loop: while callbacks are ready, other threads use the emulator, or a
timer is about to fire (`SOON`), somebody may still act. When nothing of the kind is left, the clock jumps to the
earliest instant at which something happens, and where nothing ever will, the waiting calls raise `WaitForever`.

What is ready and which timers there are is read from the loop itself where it can be (asyncio's own loops);
for other loops, a short time (`QUIET`) in which nothing happened must do.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, ref

from emuredis.clock import NS_PER_MS, monotonic
from emuredis.engine.engine import Engine
from emuredis.errors import WaitForever
from emuredis.waits import LOOK, NAP, NAP_SUBSCRIBER, PATIENCE, next_instant, stopped_ns

__all__ = ["Wait", "idler"]

#: A timer of the program that fires within so many seconds counts as somebody about to act.
SOON = 1.0
#: Seconds without any event after which a loop counts as idle although it has sockets, or cannot be looked into.
QUIET = 0.05
#: Rounds of the loop in which nothing was ready, after which it counts as idle.
ROUNDS = 3


class Wait:
    """One wait for one link: ``future`` becomes True when something arrived, False when the time was over."""

    __slots__ = (
        "began",
        "began_ns",
        "blame",
        "end",
        "engine",
        "future",
        "give_up",
        "keys_wake",
        "thread",
        "woken",
    )

    def __init__(self, engine: Engine, seconds: float | None, blame: Callable[[], WaitForever],
                 keys_wake: bool) -> None:  # fmt: skip
        self.engine = engine
        self.blame = blame
        self.keys_wake = keys_wake
        self.woken = False
        self.future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.thread = threading.get_ident()
        # As in `emuredis.waits`: a wait with an end takes no longer in real time than it asked for.
        self.give_up = monotonic() + (PATIENCE if seconds is None else min(seconds, PATIENCE))
        self.began, self.began_ns = monotonic(), engine.clock.now_ns()
        self.end = None if seconds is None else engine.clock.now_ns() + round(seconds * 1000) * NS_PER_MS

    def wake(self) -> None:
        """Something arrived; called from any thread."""
        self.woken = True
        if self.thread == threading.get_ident():
            self.finish(True)
        else:
            try:
                self.future.get_loop().call_soon_threadsafe(self.finish, True)
            except RuntimeError:  # the loop is closed: nobody waits any more
                pass

    def is_set(self) -> bool:
        return self.woken

    def finish(self, arrived: bool) -> None:
        if not self.future.done():
            self.future.set_result(arrived)

    def fail(self) -> None:
        if not self.future.done():
            self.future.set_exception(self.blame())

    def target(self) -> int | None:
        """The next instant at which something happens that may end this wait; None: it is in vain."""
        return next_instant(self.engine, self.end, self.keys_wake)


_idlers: WeakKeyDictionary[asyncio.AbstractEventLoop, Idler] = WeakKeyDictionary()


def idler(loop: asyncio.AbstractEventLoop) -> Idler:
    """The idler of a loop, made when first asked for."""
    found = _idlers.get(loop)
    if found is None:
        found = _idlers[loop] = Idler(loop)
    return found


class Idler:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # The table of idlers is keyed by loops, weakly; a loop that its idler held would stay for ever.
        self._loop_ref = ref(loop)
        self._waits: dict[Wait, None] = {}
        self._handle: asyncio.Handle | None = None
        self._rounds = 0
        self._quiet_since = monotonic()

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        loop = self._loop_ref()
        assert loop is not None  # it runs this very code
        return loop

    async def wait(self, wait: Wait) -> bool:
        """Wait for the future of ``wait``."""
        self._waits[wait] = None
        self._stir()
        try:
            return await wait.future
        finally:
            self._waits.pop(wait, None)
            self._stir()

    def _stir(self) -> None:
        """Something happened: look again, soon."""
        self._rounds = 0
        self._quiet_since = monotonic()
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._waits:
            self._handle = self._loop.call_soon(self._look)

    def _look(self) -> None:
        self._handle = None
        open_waits = [wait for wait in self._waits if not wait.future.done()]
        if not open_waits:
            return
        manual = [wait for wait in open_waits if wait.engine.clock.manual]
        delay = self._look_manual(manual) if manual else NAP
        if len(manual) < len(open_waits):
            delay = min(delay, self._look_system(open_waits))
        if self._handle is None:
            loop = self._loop
            self._handle = loop.call_later(delay, self._look) if delay > 0 else loop.call_soon(self._look)

    # -- the machine's time ---------------------------------------------------------------------

    def _look_system(self, waits: list[Wait]) -> float:
        """Do what is due, end what is over; seconds until the next look."""
        delay = NAP_SUBSCRIBER if any(wait.keys_wake for wait in waits) else NAP
        for engine in dict.fromkeys(wait.engine for wait in waits if not wait.engine.clock.manual):
            with engine.lock:
                due, now = engine.next_due_ns(), engine.now_ns()
                if due is not None and due <= now:
                    engine.run_due()
                    due = engine.next_due_ns()
            if due is not None:
                delay = min(delay, (due - now) / 1e9 + 1e-4)
        for wait in waits:
            if wait.engine.clock.manual:
                continue
            now = wait.engine.clock.now_ns()
            late = stopped_ns(wait.began, now - wait.began_ns)
            if late:  # a test has stopped the wall clock
                wait.engine.run_late(late)
                delay = min(delay, LOOK)
            if wait.end is not None:
                left = (wait.end - now - late) / 1e9
                if left <= 0:
                    wait.finish(False)
                delay = min(delay, left + 1e-4)
        return max(delay, 1e-4)

    # -- a manual clock -------------------------------------------------------------------------

    def _look_manual(self, waits: list[Wait]) -> float:
        """End what is over, move the clock if nobody else can act; seconds until the next look."""
        for wait in waits:
            if wait.end is not None and wait.engine.clock.now_ns() >= wait.end:
                wait.finish(False)
        waits = [wait for wait in waits if not wait.future.done()]
        if not waits:
            return LOOK
        busy = self._busy(waits)
        if busy is not None:
            return busy
        scheduler = waits[0].engine.scheduler
        if scheduler is not None and scheduler.park(waits):
            self._rounds = 0
            return 0
        targets = [(at, number) for number, wait in enumerate(waits) if (at := wait.target()) is not None]
        stuck = [wait for wait in waits if wait.end is None or not wait.engine.clock.autojump]  # type: ignore[attr-defined]
        if targets:
            at, number = min(targets)
            engine = waits[number].engine
            clock: Any = engine.clock
            if clock.autojump:
                with engine.lock:
                    clock.move_to(at)
                self._rounds = 0
                return 0
        return self._give_up(stuck)

    def _busy(self, waits: list[Wait]) -> float | None:
        """Seconds after which to look again because somebody may act meanwhile; None if nobody can."""
        loop: Any = self._loop
        ready = getattr(loop, "_ready", None)
        if ready:
            self._rounds = 0
            self._quiet_since = monotonic()
            return 0
        self._rounds += 1
        if self._rounds < ROUNDS:
            return 0
        for engine in dict.fromkeys(wait.engine for wait in waits):
            if engine.scheduler is None and engine.threads.others_running():
                return self._run_out([wait for wait in waits if wait.engine is engine])
        timers = [timer for timer in getattr(loop, "_scheduled", ()) if not timer.cancelled()]
        if timers and min(timer.when() for timer in timers) - loop.time() < SOON:
            return LOOK / 4
        if (ready is None or self._sockets()) and monotonic() - self._quiet_since < QUIET:
            return QUIET / 5
        return None

    def _sockets(self) -> bool:
        """Whether the loop listens to anything but its own wake-up call."""
        selector = getattr(self._loop, "_selector", None)
        return selector is None or len(selector.get_map() or ()) > 1

    def _executor_works(self) -> bool:
        """Whether a thread of the loop's own executor is at work for a task."""
        executor: Any = getattr(self._loop, "_default_executor", None)
        idle = getattr(getattr(executor, "_idle_semaphore", None), "_value", 0)
        return bool(executor) and (executor._work_queue.qsize() > 0 or idle < len(executor._threads))

    def _give_up(self, waits: list[Wait]) -> float:
        """Nothing that is due can end these waits. Say so, unless somebody unseen might still come."""
        sure = not (self._sockets() or getattr(self._loop, "_scheduled", None) or self._executor_works())
        for wait in waits:
            if wait.end is not None:
                wait.finish(False)
            elif sure or monotonic() > wait.give_up:
                wait.fail()
        return LOOK

    def _run_out(self, waits: list[Wait]) -> float:
        """Other threads may still act: end the waits that have waited for them long enough."""
        for wait in waits:
            if monotonic() > wait.give_up:
                if wait.end is not None:
                    wait.finish(False)
                else:
                    wait.fail()
        return LOOK
