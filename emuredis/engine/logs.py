"""The logs of commands: slow ones, and those with large requests or replies (SLOWLOG, COMMANDLOG).

Nothing is measured while every threshold is what it is by default (ten milliseconds, a megabyte): the engine's fast
path stays as it is, and the logs stay empty. Once one of them is set to anything else, an observer measures every
command, those of scripts included. Time is the emulator's: on a manual clock a command takes what passed meanwhile.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from emuredis.errors import ReplyError
from emuredis.replies import BLOCKED, OK, QUEUED, Reply, Status
from emuredis.spec import FLAGS

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine
    from emuredis.engine.session import Session
    from emuredis.spec import Command

__all__ = ["KINDS", "CommandLogs", "Logged", "redacted"]

#: Type by COMMANDLOG's name, and the parameters of its threshold and its length.
KINDS = {
    b"slow": ("commandlog_execution_slower_than", "commandlog_slow_execution_max_len"),
    b"large-request": ("commandlog_request_larger_than", "commandlog_large_request_max_len"),
    b"large-reply": ("commandlog_reply_larger_than", "commandlog_large_reply_max_len"),
}
_DEFAULTS = {"commandlog_execution_slower_than": 10_000, "commandlog_request_larger_than": 1 << 20,
             "commandlog_reply_larger_than": 1 << 20}  # fmt: skip
_SKIPPED = FLAGS["skip_commandlog"]
_WORDS_MOST, _BYTES_MOST = 32, 128
_SECRET = b"(redacted)"


class Logged(NamedTuple):
    """One entry. ``value``: microseconds or bytes; ``words``: the command, cut where it is long."""

    number: int
    seconds: int
    value: int
    words: list[bytes]
    address: bytes
    name: bytes


class CommandLogs:
    """The three logs of one engine, newest first."""

    lines = None  # as an observer of scripts

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.logs: dict[bytes, deque[Logged]] = {kind: deque() for kind in KINDS}
        self._numbers = dict.fromkeys(KINDS, 0)
        self._begun: list[int] = []
        self._header = 0  # bytes of EXEC's reply that the server counts as its first command's
        self._on = False

    def configure(self) -> None:
        """The thresholds may have changed: begin to measure, or stop."""
        config, engine = self._engine.config, self._engine
        wanted = any(getattr(config, name) != value for name, value in _DEFAULTS.items())
        if wanted == self._on:
            return
        self._on = wanted
        for observers in (engine.observers, engine.script_observers):
            (observers.append if wanted else observers.remove)(self)
        for scripts in (engine.scripting, engine.functions):
            if scripts is not None:
                scripts.rewatch()
        engine.update_gates()
        self._begun.clear()
        command, session = engine.current_command, engine.current_session
        if wanted and command is not None and session is not None:  # CONFIG SET is the first to be measured
            self._note(session, command, engine.current_argv, OK, 0)

    # -- what the engine tells -------------------------------------------------------------------

    def before(self, session: Session, cmd: Command, argv: list[bytes]) -> None:
        self._begun.append(self._engine.now_ns())
        if cmd.name == "exec" and session.queue:
            self._header = len(str(len(session.queue))) + 3

    def after(self, session: Session, cmd: Command, argv: list[bytes], reply: Reply) -> None:
        took = (self._engine.now_ns() - self._begun.pop()) // 1000 if self._begun else 0
        if reply is not QUEUED and reply is not BLOCKED:
            self._note(session, cmd, argv, reply, took)

    def batched(self, size: int) -> None:
        """How commands came is nothing to log."""

    def served(self, waiter: Any, reply: Reply) -> None:
        self._note(waiter.session, waiter.cmd, waiter.argv, reply, 0)

    # -- and what scripts tell (emuredis.scripting.watch.Observer) ---------------------------------

    def begin(self, run: Any) -> None:
        """EVAL is a command like any other."""

    def before_call(self, run: Any, argv: list[bytes], cmd: Command | None) -> None:
        self._begun.append(self._engine.now_ns())

    def after_call(self, run: Any, argv: list[bytes], reply: Reply, told: bytes | None) -> None:
        took = (self._engine.now_ns() - self._begun.pop()) // 1000 if self._begun else 0
        try:
            cmd = self._engine.resolve(argv)
        except ReplyError:
            return
        self._note(run.session, cmd, argv, reply if told is None else ReplyError(told), took)

    def at_line(self, run: Any, line: int) -> None:
        """Not asked for."""

    def event(self, run: Any, name: str, values: list[Any]) -> bool:
        return False

    def end(self, run: Any, reply: Any) -> None:
        """Nothing to log."""

    # -- the logs -----------------------------------------------------------------------------------

    def _note(self, session: Session, cmd: Command, argv: list[bytes], reply: Reply, took: int) -> None:
        if cmd.flags & _SKIPPED:
            return
        config = self._engine.config
        for kind, (threshold, length) in KINDS.items():
            least = getattr(config, threshold)
            if least < 0:
                continue
            if kind == b"slow":
                value = took
            else:
                value = size_of(argv) if kind == b"large-request" else size_of(reply) + self._header
            if value >= least:
                self._add(kind, session, cmd, argv, value, getattr(config, length))
        self._header = 0

    def _add(
        self, kind: bytes, session: Session, cmd: Command, argv: list[bytes], value: int, most: int
    ) -> None:
        log, number = self.logs[kind], self._numbers[kind]
        self._numbers[kind] = number + 1
        seconds = self._engine.now_ns() // 1_000_000_000
        log.appendleft(Logged(number, seconds, value, _cut(redacted(cmd, argv)), session.addr, session.name))
        while len(log) > most:
            log.pop()


def _cut(argv: list[bytes]) -> list[bytes]:
    words = [
        word
        if len(word) <= _BYTES_MOST
        else b"%b... (%d more bytes)" % (word[:_BYTES_MOST], len(word) - _BYTES_MOST)
        for word in argv[:_WORDS_MOST]
    ]
    if len(argv) > _WORDS_MOST:
        words[-1] = b"... (%d more arguments)" % (len(argv) - _WORDS_MOST + 1)
    return words


def redacted(cmd: Command, argv: list[bytes]) -> list[bytes]:
    """A command without the passwords in it."""
    if cmd.name == "auth":
        return [argv[0]] + [_SECRET] * (len(argv) - 1)
    if cmd.name == "hello":
        words = [word.upper() for word in argv]
        if b"AUTH" in words:
            at = words.index(b"AUTH") + 1
            return [*argv[:at], *[_SECRET] * len(argv[at : at + 2]), *argv[at + 2 :]]
    return argv


def size_of(value: Any) -> int:
    """The bytes that a request or a reply takes in RESP2."""
    if isinstance(value, (Status, ReplyError)):
        return len(value.message if isinstance(value, ReplyError) else value) + 3
    if isinstance(value, bytes):
        return len(value) + len(str(len(value))) + 5
    if value is None:
        return 5
    if isinstance(value, (list, tuple)):
        return len(str(len(value))) + 3 + sum(map(size_of, value))
    return len(str(value)) + 3
