"""``python -m emuredis debug FILE.lua``: a script step by step, for a person.

Each run has a fresh copy of the data, so ``restart`` starts from the same state as the run before.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from emuredis.client import encode_args
from emuredis.emulator import Emulator
from emuredis.engine.copying import copied
from emuredis.errors import ReplyError
from emuredis.lab.steps import Call, Calls, command_of
from emuredis.replies import Reply
from emuredis.scripting.ldb import human

__all__ = ["Console", "run"]

HELP = """\
step            run this line; stop at the next, in a called function too
next            run this line; stop at the next of this function
continue        run to the next breakpoint or redis.breakpoint()
break [LINE]    stop at LINE from now on, no more at -LINE; list the breakpoints
print [VAR]     a local variable, KEYS or ARGV; all local variables
where           the functions being run (also: trace)
list [LINE]     the source around this line or LINE
redis CMD ...   run a command, as the script would
eval CODE       run Lua beside the script
restart         run again on the same data
quit            end
The first letter is enough, except for restart; an empty line repeats the last step or next."""

_WORDS = "step next continue break print where trace list redis eval restart quit help".split()


class _Leave(Exception):
    """End the run; ``restart``: and begin another."""

    def __init__(self, restart: bool) -> None:
        self.restart = restart


class Console(Calls):
    """Asks at each stop. ``read``: given a prompt, a line, or raises EOFError; ``write``: shows a line."""

    def __init__(
        self, read: Callable[[str], str], write: Callable[[str], None], breakpoints: list[int]
    ) -> None:
        super().__init__()
        self.breakpoints = breakpoints
        self._read, self._write = read, write
        self._last = "step"

    # -- what the script does -------------------------------------------------------------------

    def called(self, call: Call) -> None:
        words = " ".join(shlex.quote(word.decode("utf-8", "backslashreplace")) for word in call.argv)
        reply = repr(call.reply) if not isinstance(call.reply, ReplyError) else f"error: {call.reply}"
        self._write(f"  {words} => {reply}")
        for change in call.changes:
            self._write(f"    {change}")

    def said(self, text: str) -> None:
        self._write(f"  redis.debug in line {self.line}: {text}")

    def stopped(self, reason: str) -> None:
        if reason != "step over":
            self._write(f"* {reason}")
        self._show(self.line, 0)
        while True:
            try:
                line = self._read("(lua) ").strip()
            except EOFError:
                raise _Leave(False) from None
            if self._obey(line or self._last):
                return

    # -- commands -------------------------------------------------------------------------------

    def _obey(self, line: str) -> bool:
        """Carry out a line; whether the script goes on."""
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        name = next((known for known in _WORDS if word and known.startswith(word.lower())), "")
        if name in ("step", "next", "continue"):
            self._last = line if name != "continue" else "step"
            if name == "step":
                self.stepping = True
            elif name == "next":
                self.step_over()
            return True
        if name in ("quit", "restart") and (name == "quit" or word.lower().startswith("res")):
            raise _Leave(name == "restart")
        method = {
            "break": self._break, "print": self._print, "where": self._where, "trace": self._where,
            "list": self._list, "redis": self._redis, "eval": self._eval, "help": self._help,
        }.get(name)  # fmt: skip
        if method is None:
            self._write(f"no command {word!r}; try help")
        else:
            method(rest)
        return False

    def _break(self, rest: str) -> None:
        if rest:
            try:
                line = int(rest)
            except ValueError:
                self._write(f"{rest!r} is no line")
                return
            if line < 0 and -line in self.breakpoints:
                self.breakpoints.remove(-line)
            elif 0 < line <= len(self.source):
                self.breakpoints += [] if line in self.breakpoints else [line]
            else:
                self._write(f"nothing to do for line {line}")
        self._write("breakpoints: " + (", ".join(map(str, self.breakpoints)) or "none"))

    def _print(self, rest: str) -> None:
        if rest:
            value = self.variable(rest.encode())
            self._write("no such variable" if value is None else _plain(value))
            return
        for name, text in self.locals():
            if not name.startswith(b"("):
                self._write(f"{_plain(name)} = {_plain(text)}")

    def _where(self, rest: str) -> None:
        for name, line in self.stack():
            self._write(f"{line:>4}  in {name or 'the script'}")

    def _list(self, rest: str) -> None:
        self._show(int(rest) if rest.isdigit() else self.line, 5)

    def _redis(self, rest: str) -> None:
        try:
            words = shlex.split(rest)
        except ValueError as problem:
            self._write(str(problem))
            return
        if words:
            self.command(encode_args(tuple(words)))

    def _eval(self, rest: str) -> None:
        kind, text = self.evaluate(rest.encode())
        self._write(("" if kind == "value" else "error: ") + _plain(text or b""))

    def _help(self, rest: str) -> None:
        self._write(HELP)

    def _show(self, around: int, context: int) -> None:
        for number, text in enumerate(self.source, 1):
            if abs(number - around) <= context:
                mark = ("*" if number in self.breakpoints else " ") + (">" if number == self.line else " ")
                self._write(f"{mark}{number:>4}  {text}")


def run(source: bytes, keys: Sequence[str], args: Sequence[str], read: Callable[[str], str],
        write: Callable[[str], None], emulator: Emulator, function: str | None = None) -> Reply | None:  # fmt: skip
    """Debug a script on copies of ``emulator`` until it has ended or the person leaves. Its reply, None if it has none.

    ``function``: ``source`` is a library, call this function of it.
    """
    breakpoints: list[int] = []
    while True:
        with emulator.engine.lock:
            engine = copied(emulator.engine)
        session = engine.internal_session()
        if function is not None:
            loaded = engine.execute(session, encode_args(("FUNCTION", "LOAD", "REPLACE", source)))
            if isinstance(loaded, ReplyError):
                write(f"error: {loaded}")
                return loaded
        command = command_of(source, keys, args, function)
        console = Console(read, write, breakpoints)
        try:
            reply: Reply = console.around(engine, lambda e=engine, s=session, c=command: e.execute(s, c))  # type: ignore[misc]
        except _Leave as leave:
            if leave.restart:
                continue
            return None
        if isinstance(reply, ReplyError):
            write(f"error: {reply}")
        else:
            write(f"reply: {human(reply, 2)}")
        return reply


def _plain(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")
