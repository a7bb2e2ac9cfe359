"""MONITOR: every command of every client, as it was run, to those who asked.

While nobody does, nothing here is in any command's way: the first monitor makes the engine tell an observer.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from emuredis.engine.logs import redacted
from emuredis.errors import ReplyError
from emuredis.replies import OK, QUEUED, Reply, Status
from emuredis.spec import FLAGS, command

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine
    from emuredis.engine.session import Session
    from emuredis.spec import Command

__all__ = ["Monitors", "monitors_of"]

_UNSEEN = FLAGS["skip_monitor"] | FLAGS["admin"]
#: Flagged as unseen, and told of all the same: these before what they run, EXEC after it.
_BEFORE = frozenset("eval eval_ro evalsha evalsha_ro fcall fcall_ro".split())
_ESCAPED = {0x22: b'\\"', 0x5C: b"\\\\", 10: b"\\n", 13: b"\\r", 9: b"\\t", 7: b"\\a", 8: b"\\b"}


class Monitors:
    """The monitoring sessions of one engine, and the observer that writes their lines.

    ``sessions``: in the order in which they asked; empty, the observer is not there.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.sessions: dict[Session, None] = {}
        self._scripts = _Scripts(self)

    def add(self, session: Session) -> None:
        """The session is sent every command from now on."""
        if not self.sessions:
            self._engine.observers.append(self)
            self._watch().observe(self._scripts, self._engine)
        self.sessions[session] = None
        session.monitor = True
        self._engine.update_gates()

    def remove(self, session: Session) -> None:
        """It is not any more; does nothing for one that was not."""
        if self.sessions.pop(session, self) is self:
            return
        session.monitor = False
        if not self.sessions:
            self._engine.observers.remove(self)
            self._watch().unobserve(self._scripts, self._engine)
        self._engine.update_gates()

    @staticmethod
    def _watch() -> Any:
        return importlib.import_module("emuredis.scripting.watch")

    # -- what the engine tells -------------------------------------------------------------------

    def before(self, session: Session, cmd: Command, argv: list[bytes]) -> None:
        if cmd.name in _BEFORE and session.queue is None:
            self._tell(_place(session), session.db.index, argv)

    def after(self, session: Session, cmd: Command, argv: list[bytes], reply: Reply) -> None:
        if reply is QUEUED or (cmd.flags & _UNSEEN and cmd.name != "exec"):
            return
        self._tell(_place(session), session.db.index, redacted(cmd, argv))

    def batched(self, size: int) -> None:
        """How commands came is nothing to tell."""

    def served(self, waiter: Any, reply: Reply) -> None:
        """It was told when it blocked."""

    def script_call(self, index: int, cmd: Command, argv: list[bytes]) -> None:
        """A script has called a command."""
        if not cmd.flags & _UNSEEN:
            self._tell(b"lua", index, argv)

    def _tell(self, place: bytes, index: int, argv: list[bytes]) -> None:
        micros = self._engine.now_ns() // 1000
        head = b"%d.%06d [%d %b]" % (micros // 1_000_000, micros % 1_000_000, index, place)
        line = Status(b" ".join([head, *map(quoted, argv)]))
        self._engine.outbox += [(session, line) for session in self.sessions]


class _Scripts:
    """What `emuredis.scripting.watch` is given."""

    lines = None

    def __init__(self, monitors: Monitors) -> None:
        self._monitors = monitors

    def begin(self, run: Any) -> None:
        """EVAL has been told already."""

    def before_call(self, run: Any, argv: list[bytes], cmd: Command | None) -> None:
        """Told when it has been run."""

    def after_call(self, run: Any, argv: list[bytes], reply: Reply, told: bytes | None) -> None:
        try:
            cmd = run.engine.resolve(argv)
        except ReplyError:
            return  # it never ran
        self._monitors.script_call(run.runtime.bridge.session.db.index, cmd, argv)

    def at_line(self, run: Any, line: int) -> None:
        """Not asked for."""

    def event(self, run: Any, name: str, values: list[Any]) -> bool:
        return False

    def end(self, run: Any, reply: Any) -> None:
        """Nothing to tell."""


def _place(session: Session) -> bytes:
    """Where a client is: its address, a Unix socket's path, or that it is in this process."""
    if session.laddr and session.addr.endswith(b":0"):
        return b"unix:" + session.laddr.rpartition(b":")[0]
    return session.addr or b"in-process:%d" % session.id


def quoted(word: bytes) -> bytes:
    """A word as the server's own tools write it: in quotes, what is not printable ASCII escaped."""
    out = [_ESCAPED.get(byte) or (b"%c" % byte if 32 <= byte < 127 else b"\\x%02x" % byte) for byte in word]
    return b'"' + b"".join(out) + b'"'


def monitors_of(engine: Engine) -> Monitors:
    """The engine's monitors, made at the first call."""
    if engine.monitors is None:
        engine.monitors = Monitors(engine)
    found: Monitors = engine.monitors
    return found


@command("MONITOR", "admin noscript loading stale", group="server", since="1.0.0", complexity="", acl="")
def monitor(ctx: Session, argv: list[bytes]) -> Reply:
    """Sends this connection every command that is run from now on."""
    if ctx.deny_blocking:
        raise ReplyError("ERR MONITOR isn't allowed for DENY BLOCKING client")
    if not ctx.monitor:
        monitors_of(ctx.engine).add(ctx)
    return OK
