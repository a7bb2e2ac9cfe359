"""A connection without a wire: what stands where redis-py expects a socket.

A `Link` owns one session of the engine. Commands given to `sendall` run at once, in the thread of the caller; replies
and pushes wait in ``arrived``, in the order in which a socket would have brought them, until `read` takes them. It
knows neither redis-py's classes nor how replies become Python objects.

The rules of order are those of a server's connection: a push caused by the command being run comes after its reply;
what is sent behind a command that blocks waits in ``pending`` until that command has been answered. Whoever
answers it (another thread, holding the engine's lock) only leaves the reply here; the pending commands run when the
owner next reads or sends.

Invariant: ``arrived`` changes only under the engine's lock, or in the one thread that reads.
"""

from __future__ import annotations

import errno
import threading
from collections import deque
from collections.abc import Iterable
from typing import Any

from emuredis.engine.engine import Engine
from emuredis.errors import WaitForever
from emuredis.protocol.decode import Parser
from emuredis.replies import BLOCKED, Blocked, Frames, Reply
from emuredis.waits import forever, wait

__all__ = ["Closed", "Link"]


#: Replies that are not one thing to be read.
_SEVERAL = frozenset([Blocked, Frames])


class Closed(ConnectionError):
    """The server's side has closed the connection and everything it sent has been read."""


class Link:
    __slots__ = (
        "__weakref__",
        "_event",
        "_later",
        "_parser",
        "_running",
        "arrived",
        "closed",
        "engine",
        "parked",
        "pending",
        "session",
    )  # fmt: skip

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.arrived: deque[Reply] = deque()
        self.pending: deque[list[bytes]] = deque()
        self.parked = False
        self.closed = False
        self._running = False
        self._later: list[Reply] = []
        self._event: threading.Event | None = None
        self._parser: Parser | None = None
        with engine.lock:
            self.session = session = engine.connect()
        session.addr = b"in-process:%d" % session.id
        session.laddr = b"in-process:0"
        session.on_reply, session.on_push, session.on_close = self._on_reply, self._on_push, self._on_close

    # -- sending --------------------------------------------------------------------------------

    def sendall(self, item: Any) -> None:
        """Run a command (a list of words), or the commands in bytes of the protocol.

        Raises BrokenPipeError when the server's side is closed.
        """
        if item.__class__ is list:
            self.run(item)
        else:
            for argv in self._parse(bytes(item)):
                self.run(argv)

    def _parse(self, data: bytes) -> list[list[bytes]]:
        if self._parser is None:
            self._parser = Parser(hiredis=False)
        commands = self._parser.feed(data)
        if self._parser.error is not None:
            self.arrived.append(self._parser.error)
            self.closed = True
        return commands

    def run(self, argv: list[bytes]) -> None:
        """Run one command, or keep it until the one before it is answered. Raises BrokenPipeError."""
        with self.engine.lock:
            if self.closed or self.session.closing:
                raise BrokenPipeError(errno.EPIPE, "Broken pipe")
            if self.parked or self.pending:
                self.pending.append(argv)
                self._go_on()
            else:
                self._execute(argv)

    def _execute(self, argv: list[bytes]) -> None:
        """Run one command now; the lock is held."""
        self._running = True
        try:
            reply = self.engine.execute(self.session, argv)
        finally:
            self._running = False
        if reply.__class__ in _SEVERAL:
            self.leave(reply, ())
        else:
            self.arrived.append(reply)
        if self._later:
            self.arrived.extend(self._later)
            self._later.clear()

    def take(self, reply: Reply) -> None:
        """Put a reply in line; several at once where a command answers more than once."""
        if reply.__class__ is Frames:
            self.arrived.extend(reply)
        else:
            self.arrived.append(reply)

    def leave(self, reply: Reply, rest: Iterable[list[bytes]]) -> None:
        """Take over a batch at the command that just answered ``reply``, with the commands behind it."""
        if reply is BLOCKED:
            self.parked = self.session.waiter is not None
        else:
            self.take(reply)
        self.pending.extend(rest)

    def _go_on(self) -> None:
        """Run what was sent behind a command that has been answered by now; the lock is held."""
        while self.pending and not self.parked and not self.session.closing:
            self._execute(self.pending.popleft())

    # -- what the engine calls, under its lock ----------------------------------------------------

    def _on_reply(self, reply: Reply) -> None:
        self.parked = False
        self.take(reply)
        self._wake()

    def _on_push(self, push: Reply) -> None:
        if self._running:
            self._later.append(push)
        else:
            self.arrived.append(push)
            self._wake()

    def _on_close(self) -> None:
        self.closed = True
        self._wake()

    def _wake(self) -> None:
        if self._event is not None:
            self._event.set()

    # -- reading --------------------------------------------------------------------------------

    def ready(self) -> bool:
        """Whether `read` would not wait. Raises Closed where it would find nothing ever again."""
        if not self.arrived:
            with self.engine.lock:
                self._go_on()
                if not self.arrived and (self.closed or self.session.closing):
                    raise Closed("Connection closed by server.")
        return bool(self.arrived)

    def read(self, seconds: float | None = None) -> Reply:
        """The next reply or push. Raises TimeoutError when none came in time, Closed when none will come.

        ``seconds``: how long to wait, on the emulator's clock; None for ever, which ends in WaitForever where nobody
        is left who could answer.
        """
        if not self.arrived and not self.wait(seconds):
            raise TimeoutError("timed out")
        return self.arrived.popleft()

    def wait(self, seconds: float | None) -> bool:
        """Wait until `read` has something to take; False when the time is over. Raises Closed, WaitForever."""
        while not self.ready():
            with self.engine.lock:
                if self.arrived:
                    break
                if self._event is None:
                    self._event = threading.Event()
                self._event.clear()
            if not wait(self.engine, self._event, seconds, self._blame, keys_wake=not self.parked):
                return False
        return True

    def _blame(self) -> WaitForever:
        session = self.session
        if session.waiter is not None or not session.subscriptions:
            return forever(self.engine, session.waiter)
        names = ", ".join(
            repr(name) for name in [*session.channels, *session.patterns, *session.shard_channels]
        )
        return WaitForever(
            f"a subscriber waits for messages on {names}, and nobody is left who could publish one"
        )

    # -- ending, as a socket ----------------------------------------------------------------------

    def shutdown(self, how: int) -> None:
        """Nothing to do before `close`."""

    def close(self) -> None:
        """Disconnect the session: a parked command is taken back, subscriptions and watches are dropped."""
        self.closed = True
        self.engine.hang_up(self.session)
        self._wake()

    def getsockname(self) -> tuple[str, int]:
        return "in-process", self.session.id
