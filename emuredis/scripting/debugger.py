"""A debugger's machinery: where a script stops, and what can be asked of it there.

`Debugger` is an observer of one run (`emuredis.scripting.watch`). What to do at a stop is a subclass's business:
`stopped` is called in the midst of the script and may take as long as it likes; the script goes on when it returns,
to the next line if `stepping` is set. Nothing else happens in the engine meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from emuredis.errors import ReplyError
from emuredis.replies import Reply
from emuredis.scripting.watch import Observer, Run, observe, unobserve

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine

__all__ = ["Debugger", "Frame"]

Frame = tuple[str, int]  # the function's name, "" for the script itself, and the line


class Debugger(Observer):
    """Stops one run at lines. ``stepping``: at the next one; ``breakpoints``: at these."""

    lines = "step"
    main_thread = False  # look at the main thread even where a coroutine has stopped

    def __init__(self) -> None:
        self.stepping = True
        self.breakpoints: list[int] = []
        self.line = 0
        self.run: Run | None = None
        self._deepest: int | None = None  # `step_over` stops in no function called from this depth on
        self._breakpoint_called = False

    # -- for subclasses -------------------------------------------------------------------------

    def stopped(self, reason: str) -> None:
        """The script stands before `line`. Return to let it run on; raise to end it."""

    def told(self, argv: list[bytes], reply: Reply, error: bytes | None) -> None:
        """While stepping: a command was called and answered; ``error``: what the script gets instead."""

    def complained(self, text: str) -> None:
        """While stepping: a function of ``server`` made an error."""

    def said(self, text: str) -> None:
        """``server.debug`` was called."""

    # -- what can be asked at a stop ------------------------------------------------------------

    @property
    def source(self) -> list[str]:
        """The script's lines; the first is line 1."""
        assert self.run is not None
        body: bytes = self.run.script.body
        return body.decode("utf-8", "surrogateescape").split("\n")

    def stack(self) -> list[Frame]:
        """The frames of the script, the innermost first."""
        found = self._inspect(b"stack")
        return [(found[i].decode("utf-8", "replace"), int(found[i + 1])) for i in range(0, len(found), 2)]

    def locals(self) -> list[tuple[bytes, bytes]]:
        """The innermost function's local variables and their texts, in order; a name may occur twice."""
        found = self._inspect(b"locals")
        return [(found[i], found[i + 1]) for i in range(0, len(found), 2)]

    def variable(self, name: bytes) -> bytes | None:
        """The text of a local variable of the innermost function that has it, or of KEYS or ARGV."""
        assert self.run is not None
        text: bytes | None = self.run.runtime.lua_inspect(b"variable", name, self.main_thread)
        return text

    @property
    def in_coroutine(self) -> bool:
        """Whether a coroutine has stopped."""
        return bool(self._inspect(b"coroutine"))

    def evaluate(self, code: bytes) -> tuple[str, bytes | None]:
        """Run Lua in the script's world, not in its frame: ("value" | "error" | "compile", text)."""
        kind, text = self._inspect(b"eval", code, 2)
        return kind.decode(), text

    def command(self, argv: list[bytes]) -> None:
        """Run a command as the script would; `told` hears of the answer."""
        assert self.run is not None
        self.stepping = True
        try:
            self.run.runtime.bridge.dispatch(argv)
        finally:
            self.stepping = False

    def step_over(self) -> None:
        """Stop at the next line that is not in a function called from here."""
        self._deepest = len(self.stack())
        self.stepping = True

    def abort(self, why: str) -> ReplyError:
        """The error to raise from `stopped` in order to end the script."""
        assert self.run is not None
        return ReplyError(f"ERR {why} script: on {self.run.script.chunk.decode()}:{self.line}.")

    def _inspect(self, what: bytes, name: bytes | None = None, size: int = 0) -> list[Any]:
        assert self.run is not None
        table = self.run.runtime.lua_inspect(what, name, self.main_thread)
        return [table[i] for i in range(1, (size or len(table)) + 1)]

    # -- what observers are told ----------------------------------------------------------------

    def begin(self, run: Run) -> None:
        self.run = run

    def at_line(self, run: Run, line: int) -> None:
        broken = line in self.breakpoints or self._breakpoint_called
        if not (self.stepping or broken):
            return
        if self._deepest is not None and not broken and len(self.stack()) > self._deepest:
            return
        self.line = line
        reason = "step over"
        if broken:
            reason = "server.breakpoint() called" if self._breakpoint_called else "break point"
        self.stepping = self._breakpoint_called = False
        self._deepest = None
        self.stopped(reason)

    def after_call(self, run: Run, argv: list[bytes], reply: Reply, told: bytes | None) -> None:
        if self.stepping:
            self.told(argv, reply, told)

    def event(self, run: Run, name: str, values: list[Any]) -> bool:
        if name == "breakpoint":
            self._breakpoint_called = True
        elif name == "debug":
            text = ", ".join(value.decode("utf-8", "surrogateescape") for value in values)
            self.line = run.line
            self.said(text)
        elif self.stepping:
            self.complained(values[0].decode("utf-8", "surrogateescape"))
        return True

    def around(self, engine: Engine, go: Callable[[], Reply]) -> Reply:
        """Call ``go``, which runs a script of ``engine``, under this debugger."""
        with engine.lock:
            observe(self, engine)
            try:
                return go()
            finally:
                unobserve(self, engine)
                self.run = None
