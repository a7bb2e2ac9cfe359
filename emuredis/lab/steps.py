"""A script step by step, from a test.

    for step in emuredis.lab.debug(script, ["queue"], ["5"], emulator=emulator):
        print(step.line, step.locals, step.calls)

`debug` runs the script to its end first and keeps what it saw at each line, so nothing hangs in the midst of a
script: neither the emulator's other clients nor the test. ``on_step`` is called while it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from emuredis.client import encode_args
from emuredis.emulator import Emulator
from emuredis.errors import ReplyError
from emuredis.lab.contents import Change, Content, contents, touched
from emuredis.protocol.views import view2
from emuredis.replies import Reply
from emuredis.scripting.debugger import Debugger, Frame
from emuredis.scripting.watch import Run
from emuredis.spec import Command

__all__ = ["Call", "Calls", "Step", "Trace", "command_of", "debug"]

STEPS_MOST = 100_000  # kept of one run; a script that loops that long is not to be read by steps


class Call:
    """One ``redis.call``. ``reply``: as a RESP2 client has it, a ReplyError for an error; ``changes``: what it
    changed."""

    def __init__(self, argv: list[bytes], keys: list[bytes]) -> None:
        self.argv = argv
        self.keys = keys
        self.reply: Any = None
        self.changes: list[Change] = []

    def __repr__(self) -> str:
        words = " ".join(word.decode("utf-8", "backslashreplace") for word in self.argv)
        return f"<Call {words} -> {self.reply!r}>"


class Step:
    """The script stands before ``line``. ``locals``: names and texts in the innermost function; a later variable of
    the same name hides an earlier one. ``stack``: (function, line), the innermost first. ``calls``: made before the
    next step.
    """

    def __init__(self, line: int, text: str, local: dict[str, str], stack: list[Frame]) -> None:
        self.line = line
        self.text = text
        self.locals = local
        self.stack = stack
        self.calls: list[Call] = []

    def __repr__(self) -> str:
        return f"<Step {self.line}: {self.text.strip()}>"


class Trace:
    """All steps of a run, in order, and its ``reply`` (as a RESP2 client has it), or the ReplyError in ``error``."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.reply: Any = None
        self.error: ReplyError | None = None

    @property
    def lines(self) -> list[int]:
        """The lines stopped at, in order."""
        return [step.line for step in self.steps]

    @property
    def calls(self) -> list[Call]:
        """Every call of the run, in order."""
        return [call for step in self.steps for call in step.calls]

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)


class Calls(Debugger):
    """A debugger that compares the keys a call names before and after it, and hands the call to `called`."""

    def __init__(self) -> None:
        super().__init__()
        self._call: Call | None = None
        self._before: list[Content | None] = []

    def called(self, call: Call) -> None:
        """A call has been made and answered."""

    def before_call(self, run: Run, argv: list[bytes], cmd: Command | None) -> None:
        self._call = Call(argv, touched(cmd, argv))
        self._before = self._look(run, self._call.keys)

    def after_call(self, run: Run, argv: list[bytes], reply: Reply, told: bytes | None) -> None:
        call = self._call
        if call is None:
            return
        call.reply = ReplyError(told) if told is not None else view2(reply)
        after = self._look(run, call.keys)
        call.changes = [
            Change(key, old, new)
            for key, old, new in zip(call.keys, self._before, after, strict=True)
            if old != new
        ]
        self._call = None
        self.called(call)

    def _look(self, run: Run, keys: list[bytes]) -> list[Content | None]:
        db = run.runtime.bridge.session.db
        return [contents(run.engine, db, key) for key in keys]


class _Recorder(Calls):
    def __init__(self, on_step: Callable[[Step], None] | None) -> None:
        super().__init__()
        self.trace = Trace()
        self._on_step = on_step

    def stopped(self, reason: str) -> None:
        if len(self.trace.steps) >= STEPS_MOST:
            raise ReplyError(f"ERR emuredis: the script takes more than {STEPS_MOST} steps")
        local = {
            name.decode("utf-8", "replace"): value.decode("utf-8", "replace")
            for name, value in self.locals()
            if not name.startswith(b"(")
        }
        source = self.source
        text = source[self.line - 1] if 0 < self.line <= len(source) else ""
        step = Step(self.line, text, local, self.stack())
        self.trace.steps.append(step)
        if self._on_step is not None:
            self._on_step(step)
        self.stepping = True

    def called(self, call: Call) -> None:
        if self.trace.steps:
            self.trace.steps[-1].calls.append(call)


def command_of(
    script: str | bytes, keys: Sequence[Any], args: Sequence[Any], function: str | None
) -> list[bytes]:
    """The command that runs the script or, from the library that it is, the function of that name."""
    head = ("EVAL", script) if function is None else ("FCALL", function)
    return encode_args((*head, len(keys), *keys, *args))


def debug(script: str | bytes, keys: Sequence[Any] = (), args: Sequence[Any] = (), *,
          emulator: Emulator | None = None, db: int = 0, function: str | None = None,
          on_step: Callable[[Step], None] | None = None) -> Trace:  # fmt: skip
    """Run ``script`` on ``emulator`` (default: an empty one) and give its `Trace`, to be iterated.

    The run is as good as any: what it writes stays, and others are served when it has ended. ``function``:
    ``script`` is a library; call this function of it. ``on_step`` is called at each step, while the script stands;
    what it raises ends the script and comes out here. An error reply does not: see `Trace.error`.
    """
    engine = (emulator or Emulator()).engine
    recorder = _Recorder(on_step)
    with engine.lock:
        session = engine.internal_session()
        session.db = engine.keyspace.databases[db]
        if function is not None:
            loaded = engine.execute(session, encode_args(("FUNCTION", "LOAD", "REPLACE", script)))
            if isinstance(loaded, ReplyError):
                raise loaded
        command = command_of(script, keys, args, function)
        reply = recorder.around(engine, lambda: engine.execute(session, command))
    trace = recorder.trace
    if isinstance(reply, ReplyError):
        trace.error = reply
    else:
        trace.reply = view2(reply)
    return trace
