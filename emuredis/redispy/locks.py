"""The client packages' locks on a manual clock.

A lock that is taken is tried again every so often, and redis-py sleeps real time in between: on a manual clock the
lock's time to live would never pass. There, the clients of this package make locks that wait on the emulator's clock,
as a blocking command does, and that raise `WaitForever` where neither time nor anybody else can ever free the lock. On
a system clock they are redis-py's own.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from emuredis.clock import NS_PER_MS
from emuredis.engine.engine import Engine
from emuredis.errors import WaitForever
from emuredis.redispy.idle import Wait, idler
from emuredis.waits import wait

__all__ = ["AsyncLockDoor", "LockDoor"]

_Base: Any = object

#: So many times a task tries for a lock that only others can free.
TRIES = 100


class _Trying:
    """When to try again, and when no more; times on the emulator's clock."""

    def __init__(self, lock: Any, sleep: float | None, blocking: bool | None, timeout: float | None) -> None:
        client = lock.redis if hasattr(lock, "redis") else lock.valkey
        self.engine: Engine = client.emulator.engine
        self.name = lock.name
        self.sleep = lock.sleep if sleep is None else sleep
        self.blocking = lock.blocking if blocking is None else blocking
        timeout = lock.blocking_timeout if timeout is None else timeout
        self.end = None if timeout is None else self._now() + round(timeout * 1000) * NS_PER_MS

    def token(self, token: Any) -> Any:
        """``token``, or one from the emulator's own chance, so that a seed makes it repeat."""
        return f"{self.engine.rng.getrandbits(128):032x}" if token is None else token

    def _now(self) -> int:
        return self.engine.clock.now_ns()

    def over(self) -> bool:
        """Whether to give up; raises WaitForever where trying would never end."""
        if not self.blocking:
            return True
        if self.end is not None:
            return self._now() + round(self.sleep * 1000) * NS_PER_MS > self.end
        if self.engine.next_due_ns() is None and not self.engine.threads.others_running():
            raise self.blame()
        return False

    def blame(self) -> WaitForever:
        return WaitForever(
            f"the lock {self.name!r} has no time to live, and nobody is left who could release it"
        )


class LockDoor(_Base):
    def acquire(self, sleep: Any = None, blocking: bool | None = None, blocking_timeout: Any = None,
                token: Any = None) -> bool:  # fmt: skip
        """As redis-py's, waiting on the emulator's clock."""
        trying = _Trying(self, sleep, blocking, blocking_timeout)
        token = trying.token(token)
        while not super().acquire(blocking=False, token=token):
            if trying.over():
                return False
            wait(trying.engine, threading.Event(), trying.sleep, trying.blame, keys_wake=True)
        return True


class AsyncLockDoor(_Base):
    async def acquire(
        self, blocking: bool | None = None, blocking_timeout: Any = None, token: Any = None
    ) -> bool:
        """As redis-py's, waiting on the emulator's clock."""
        trying, tries = _Trying(self, None, blocking, blocking_timeout), 0
        loop, token = asyncio.get_running_loop(), trying.token(token)
        while not await super().acquire(blocking=False, token=token):
            if not trying.blocking or (trying.end is not None and trying.over()):
                return False
            # Only an idle loop lets time pass, so tries in vain mean that no task has anything to do.
            tries = tries + 1 if trying.engine.next_due_ns() is None else 0
            if tries > TRIES and trying.end is None:
                raise trying.blame()
            await idler(loop).wait(Wait(trying.engine, trying.sleep, trying.blame, keys_wake=True))
        return True
