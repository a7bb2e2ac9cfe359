"""A script that runs for long: whom it lets in meanwhile, and who may end it.

While a script has run longer than ``busy-reply-threshold`` (real milliseconds, whatever the emulator's clock), the
engine is *busy*: every command but those the server allows then is refused with BUSY. The script's thread holds the
engine's lock all the time; `Busy.serve`, which the interpreter calls every so many instructions, lets others in: the
server's loop looks at its sockets if it is this loop that runs the script, and the lock is let go for a moment
for other threads. Both happen between two instructions of Lua, when no command is under way, so the keys are whole;
but the unit stays open: no clock is read, no key expires, nobody who is blocked is served.

Knows no Lua. `Loop` is what a server's loop gives for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from emuredis.clock import monotonic, nap
from emuredis.engine.threads import alone, this_thread
from emuredis.errors import ReplyError

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine

__all__ = ["Busy", "Loop"]

#: How often, and for how long, the lock is let go for other threads, in seconds.
OPEN_EVERY, OPEN_FOR = 0.01, 0.001

STOPPING = b"ERR the server is stopping"
UNKILLABLE = (
    "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script "
    "termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
)


class Loop(Protocol):
    """A thread that serves clients by a loop of its own."""

    @property
    def stopping(self) -> bool: ...

    def serve_busy(self) -> None:
        """Look after every socket but those whose commands are being run; never wait."""


class Busy:
    """One per engine. ``on``: a script is past the threshold. ``wrote``: it called a writing command."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.loops: dict[int, Loop] = {}  # by the thread they run in
        self.on = False
        self.wrote = False
        self.reason: bytes | None = None  # the error with which the script is to end
        self._command = "SCRIPT"
        self._since = 0.0
        self._thread = 0
        self._opened = 0.0

    # -- the script's side ------------------------------------------------------------------------

    def enter(self, command: str, since: float) -> None:
        """The running script is past the threshold; ``command``: SCRIPT or FUNCTION, which has the KILL for it.

        ``since``: when it began, by `emuredis.clock.monotonic`.
        """
        self.on, self.reason = True, None
        self._command, self._since = command, since
        self._thread = this_thread()
        self._engine.update_gates()

    def leave(self) -> None:
        """The script has ended."""
        self.on, self.reason = False, None
        self._engine.update_gates()

    def serve(self) -> None:
        """Let others in. Afterwards `reason` tells whether the script is to end."""
        self._engine.deliver()  # as on the server, where messages leave when they are published
        loop = self.loops.get(this_thread())
        if loop is not None:
            loop.serve_busy()
        now = monotonic()
        if now - self._opened >= OPEN_EVERY and not alone():
            lock = self._engine.lock
            state = lock._release_save()  # type: ignore[attr-defined]
            try:
                nap(OPEN_FOR)  # or this thread would have the lock again before another has noticed
            finally:
                lock._acquire_restore(state)  # type: ignore[attr-defined]
            self._opened = monotonic()

    def stopping(self) -> bytes | None:
        """The error to end with if the loop that runs this script has been told to stop."""
        loop = self.loops.get(this_thread())
        return STOPPING if loop is not None and loop.stopping else None

    # -- the others' side -----------------------------------------------------------------------

    def refusal(self) -> ReplyError:
        return ReplyError(
            f"BUSY Valkey is busy running a script. You can only call {self._command} KILL or SHUTDOWN NOSAVE."
        )

    def kill(self, command: str) -> None:
        """SCRIPT KILL and FUNCTION KILL. Raises ReplyError where there is nothing to kill or it must not be."""
        if not self.on:
            raise ReplyError("NOTBUSY No scripts in execution right now.")
        if self.wrote:
            raise ReplyError(UNKILLABLE)
        if command != self._command:
            raise self.refusal()
        self.reason = f"ERR Script killed by user with {command} KILL.".encode()

    def elapsed_ms(self) -> int | None:
        """How long the function has run that keeps the engine busy; None if none does. Raises BUSY for a script."""
        if not self.on:
            return None
        if self._command != "FUNCTION":
            raise self.refusal()
        return int((monotonic() - self._since) * 1000)

    def stop(self) -> None:
        """The server ends: so does the script, whatever it did."""
        if self.on:
            self.reason = STOPPING

    def forked(self) -> bool:
        """In the child of a fork: whether the script that ran has been left behind with its thread."""
        if not self.on or self._thread == this_thread():
            return False
        self.leave()
        return True
