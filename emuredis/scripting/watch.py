"""Watching scripts run: the seam for strict modes, the coverage of lines and the debugger.

An `Observer` is told when a script begins and ends, before and after each command it calls, and, if it asks for
that, before each line. Observers of one engine are in ``Engine.script_observers``, those of every engine of
the process in `EVERYWHERE`; `observe` and `unobserve` change them. While there is none, scripts run as if this module
did not exist: the fast callers of `emuredis.scripting.hot` are in use and Lua has no line hook.

Whatever runs Lua for a command runs it through `Watch.run`. What runs is a `emuredis.scripting.scripts.Script` or a
`emuredis.scripting.functions.Function`: both have ``sha``, ``body``, ``chunk`` (the name under which Lua knows the
text) and ``called`` (what people call a function; None for a script).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from emuredis.errors import ReplyError
from emuredis.replies import Reply

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine
    from emuredis.engine.session import Session
    from emuredis.scripting.functions import Functions
    from emuredis.scripting.runtime import Runtime
    from emuredis.scripting.scripts import Scripts
    from emuredis.spec import Command

__all__ = ["EVERYWHERE", "Observer", "Run", "Watch", "observe", "unobserve", "update"]


class Run:
    """One run of one script. ``line``: where it called the command being run, 0 before the first."""

    __slots__ = ("args", "engine", "keys", "line", "read_only", "runtime", "script", "session")

    def __init__(self, engine: Engine, runtime: Runtime, script: Any, keys: list[bytes], args: list[bytes],
                 read_only: bool, session: Session) -> None:  # fmt: skip
        self.engine = engine
        self.runtime = runtime
        self.script = script
        self.keys = keys
        self.args = args
        self.read_only = read_only
        self.session = session  # of the client that called the script
        self.line = 0

    @property
    def name(self) -> str:
        """The registered name of the script or library, or the beginning of its SHA1."""
        sha = self.script.sha
        return self.engine.script_names.get(sha) or sha[:12].decode()

    def __str__(self) -> str:
        if self.script.called is not None:
            called: str = self.script.called
            return called
        sha: str = self.script.sha.decode()
        return f"script {sha}" if self.name == sha[:12] else f"script {self.name} ({sha})"


class Observer:
    """What may be overridden. An error raised in any of these ends the script, whatever the script catches.

    ``lines``: None, "cover" (lines are only noted, see `emuredis.scripting.runtime.Runtime.lines_seen`) or "step".
    """

    lines: str | None = None

    def begin(self, run: Run) -> None:
        """The script is about to run."""

    def before_call(self, run: Run, argv: list[bytes], cmd: Command | None) -> None:
        """It calls a command; ``cmd`` is None if there is no such command or it cannot be called like this."""

    def after_call(self, run: Run, argv: list[bytes], reply: Reply, told: bytes | None) -> None:
        """The command answered; ``told`` is the error text the script gets, if it is one."""

    def at_line(self, run: Run, line: int) -> None:
        """Before each line, if `lines` is "step"."""

    def event(self, run: Run, name: str, values: list[Any]) -> bool:
        """``redis.breakpoint`` ("breakpoint") or ``redis.debug`` ("debug"); whether somebody cares."""
        return False

    def end(self, run: Run, reply: Reply | BaseException) -> None:
        """The script has ended."""


class Watch:
    """The observers of one engine's scripts; `emuredis.scripting.bridge` has it while there is any."""

    def __init__(self, observers: list[Observer]) -> None:
        self.observers = observers
        wanted = {observer.lines for observer in observers}
        self.lines = "step" if "step" in wanted else "cover" if "cover" in wanted else None
        self.marked = "cover" in wanted  # scripts run with marks, see emuredis.scripting.blocks
        self.current: Run | None = None

    def run(self, run: Run, go: Callable[[], Reply]) -> Reply:
        """Call ``go`` while ``run`` is the current one. Raises what it raises."""
        outer, self.current = self.current, run
        result: Reply | BaseException = None
        try:
            for observer in self.observers:
                observer.begin(run)
            run.runtime.watch_lines(run.script.sha, run.script.chunk, self.lines)
            result = reply = go()
            return reply
        except BaseException as problem:
            result = problem
            raise
        finally:
            self.current = outer
            for observer in self.observers:
                observer.end(run, result)

    def before(self, argv: list[bytes], cmd: Command | None) -> None:
        if self.current is not None:
            for observer in self.observers:
                observer.before_call(self.current, argv, cmd)

    def after(self, argv: list[bytes], reply: Any, told: bytes | None) -> None:
        if self.current is not None:
            for observer in self.observers:
                observer.after_call(self.current, argv, reply, told)

    def at_line(self, line: int) -> None:
        if self.current is not None:
            for observer in self.observers:
                observer.at_line(self.current, line)

    def called_at(self, line: int) -> None:
        if self.current is not None:
            self.current.line = line

    def event(self, name: str, values: list[Any]) -> bool:
        told = [observer.event(self.current, name, values) for observer in self.observers if self.current]
        return any(told)


#: Observers of every engine in this process.
EVERYWHERE: list[Observer] = []
_scripts: weakref.WeakSet[Scripts | Functions] = weakref.WeakSet()


def enrol(scripts: Scripts | Functions) -> None:
    """Have ``scripts`` brought up to date when `EVERYWHERE` changes."""
    _scripts.add(scripts)


def observers_of(engine: Engine) -> list[Observer]:
    return [*engine.script_observers, *EVERYWHERE]


def update(engine: Engine | None = None) -> None:
    """To be called after the observers of ``engine``, or of all, changed. Not from within a script."""
    for scripts in list(_scripts):
        if engine is None or scripts.engine is engine:
            with scripts.engine.lock:
                scripts.rewatch()


def observe(observer: Observer, engine: Engine | None = None) -> None:
    """Tell ``observer`` of the scripts of ``engine``, or of every engine, from now on."""
    (EVERYWHERE if engine is None else engine.script_observers).append(observer)
    update(engine)


def unobserve(observer: Observer, engine: Engine | None = None) -> None:
    """The end of `observe`."""
    (EVERYWHERE if engine is None else engine.script_observers).remove(observer)
    update(engine)


def strict_error(text: str, code: str = "ERR") -> ReplyError:
    return ReplyError(f"{code} emuredis strict keys: {text}")
