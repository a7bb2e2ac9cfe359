"""Several connections taken in turn: a `Connection` for producers that many threads share.

Each member went through the whole boot. A counter picks the next member for every call, so the order of
two calls made through the pool is not the order in which the server sees them unless the first was
answered. Blocking commands and subscriptions do not belong in a pool: they hold their member up, so
both are refused here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from .connection import Command, Connection, Counters, MessageHandler
from .errors import ArgumentError, positive_int
from .resp import Arg, Reply
from .script import Script

__all__ = ["Pool"]

_BLOCKING = {
    *("BLPOP", "BRPOP", "BLMOVE", "BRPOPLPUSH", "BLMPOP", "BZPOPMIN", "BZPOPMAX", "BZMPOP"),
    *("XREAD", "XREADGROUP", "WAIT", "WAITAOF", "SUBSCRIBE"),
}


class Pool:
    """``size`` connections made by ``open_one`` (for example `Endpoint(url).connect`)."""

    def __init__(self, open_one: Callable[[], Connection], size: int = 4) -> None:
        self.size = positive_int("size", size)
        self._members: list[Connection] = []
        try:
            for _ in range(size):
                self._members.append(open_one())
        except BaseException:
            self.close()
            raise
        self._turn = itertools.count(1)  # next() of a count is atomic; the first call goes to member 2
        self._calls = [0] * size

    def _next(self) -> Connection:
        member = next(self._turn) % self.size
        self._calls[member] += 1
        return self._members[member]

    def call(self, *args: Arg, timeout: float | None = None) -> Reply:
        """One command on the next member."""
        if isinstance(args[0], str) and args[0].upper() in _BLOCKING:
            raise ArgumentError(f"{args[0]} needs its own connection, not a pooled one")
        return self._next().call(*args, timeout=timeout)

    def pipeline(self, commands: Sequence[Command]) -> list[Reply]:
        """A pipeline on the next member."""
        return self._next().pipeline(commands)

    def transaction(self, commands: Sequence[Command]) -> list[Reply]:
        """A transaction on the next member."""
        return self._next().transaction(commands)

    def noreply(self, commands: Sequence[Command]) -> None:
        """A pipeline without replies on the next member."""
        self._next().noreply(commands)

    def eval(self, script: Script, keys: Sequence[str], args: Sequence[Arg]) -> Reply:
        """A script on the next member."""
        return self._next().eval(script, keys, args)

    def subscribe(self, channel: str, handler: MessageHandler) -> None:
        """Refused: a subscription belongs to one connection."""
        raise ArgumentError("subscribe needs its own connection, not a pooled one")

    def unsubscribe(self, channel: str) -> None:
        """Refused, as `subscribe` is."""
        raise ArgumentError("unsubscribe needs its own connection, not a pooled one")

    @property
    def counters(self) -> Counters:
        """The members' counters, added up."""
        total = Counters()
        for counters in (member.counters for member in self._members):
            total.commands += counters.commands
            total.round_trips += counters.round_trips
            total.connects += counters.connects
            total.pushes += counters.pushes
        return total

    def stats(self) -> list[int]:
        """How many calls each member has had."""
        return list(self._calls)

    def close(self) -> None:
        """Close every member."""
        for member in self._members:
            member.close()
