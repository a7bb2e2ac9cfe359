"""Control over the wire, for tests in other languages: the command EMUREDIS, where `install` has put it.

It is in none of COMMAND's replies, and unknown to an emulator that was not asked for it. All times are milliseconds, of
the Unix epoch where they are instants. The subcommands are thin: each is one call of the test kit.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from emuredis.errors import EmulatorError, ReplyError
from emuredis.replies import OK, Reply, Status
from emuredis.spec import Command, Table

if TYPE_CHECKING:
    from emuredis.emulator import Emulator, Snapshot
    from emuredis.engine.session import Session

__all__ = ["install"]

_NAME = b"EMUREDIS"
#: So many of the latest commands are kept for EMUREDIS JOURNAL.
_KEPT = 10_000

HELP = """\
EMUREDIS <subcommand> [<arg> ...]. Subcommands are:
CLOCK [NOW]
    The time in milliseconds.
CLOCK ADVANCE <milliseconds>
    Move the manual clock forward, doing what falls due; the new time.
CLOCK SET <unix-time-milliseconds>
    Show that instant; a later one is walked to. The new time.
CLOCK NEXT
    Move to the next instant at which something is due; by how many milliseconds, or null if nothing is.
FAULT ADD <kind> <commands> [<arg> ...] [KEY pattern] [CLIENT name] [NTH n] [TIMES n] [PROBABILITY p]
    Add a rule; its number. Commands are names with commas, config|get for a subcommand, or *. Kinds and their
    arguments: ERROR message, LATENCY milliseconds, MOVED slot address, RESTART KEEP|LOSE; DISCONNECT, LOSE-REPLY,
    READONLY, LOADING, BUSY, OOM, SCRIPT-FLUSH have none.
FAULT LIST
    The rules, each with its number, what it does, how many calls matched and how often it struck.
FAULT CLEAR
    Remove all rules.
SNAPSHOT [<name>]
    Keep the state under this name.
RESTORE [<name>]
    Be again as at the snapshot.
JOURNAL [<count>]
    The latest commands, as lines of JSON, the last one last.
JOURNAL CLEAR
    Forget them.
HELP
    Print this help.""".split("\n")


class _ControlTable(Table):
    """The commands with EMUREDIS among them, found under its name and listed nowhere."""

    def find(self, name: bytes) -> Command | None:
        found = super().find(name)
        return self[_NAME] if found is None and name.upper() == _NAME else found


def install(emulator: Emulator) -> None:
    """Give an emulator the command EMUREDIS. Safe to call twice."""
    engine = emulator.engine
    if isinstance(engine.table, _ControlTable):
        return
    cmd = Command(
        "emuredis", "", "admin noscript loading stale no_multi", "", "emuredis", "1.0.0", "", "", "", -2
    )
    cmd.fn = _Control(emulator)
    cmd.summary = "Controls the emulator."
    table = _ControlTable(engine.table)
    table[_NAME] = cmd
    engine.table = table


class _Control:
    """The handler: its state is what EMUREDIS keeps between calls."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self.engine = emulator.engine
        self.clock: Any = emulator.clock
        self.journal = emulator.journal(limit=_KEPT).start()
        self.snapshots: dict[bytes, Snapshot] = {}
        self.rules: dict[int, Any] = {}
        self.numbers = 0

    def __call__(self, ctx: Session, argv: list[bytes]) -> Reply:
        word = argv[1].upper()
        handler = _SUBCOMMANDS.get(word)
        if handler is None:
            raise ReplyError(
                f"ERR unknown subcommand '{argv[1].decode('utf-8', 'replace')[:128]}'. Try EMUREDIS HELP."
            )
        try:
            return handler(self, argv[2:])
        except (EmulatorError, ValueError) as problem:
            raise ReplyError(f"ERR {problem}") from None
        finally:
            # A clock that moved ran other commands' business; this one goes on in its own name, at the new time.
            self.engine.keyspace.ns = self.engine.now_ns()
            self.engine.current_session = ctx

    def help(self, args: list[bytes]) -> Reply:
        _no_more(args)
        return [Status(line.encode()) for line in HELP]

    # -- the clock -------------------------------------------------------------------------------

    def clock_(self, args: list[bytes]) -> Reply:
        word = args[0].upper() if args else b"NOW"
        if word == b"NOW" and len(args) < 2:
            return self.clock.now_ns() // 1_000_000
        if not self.clock.manual:
            raise EmulatorError("the clock is the machine's; serve with --clock manual to move it")
        if word == b"NEXT" and len(args) == 1:
            moved = self.clock.advance_to_next()
            return None if moved is None else round(moved)
        if word in (b"ADVANCE", b"SET") and len(args) == 2:
            amount = _number(args[1])
            if word == b"ADVANCE":
                self.clock.advance(amount)
            else:
                self.clock.set(amount / 1000)
            return self.clock.now_ns() // 1_000_000
        raise _syntax()

    # -- faults ----------------------------------------------------------------------------------

    def fault(self, args: list[bytes]) -> Reply:
        word = args[0].upper() if args else b""
        if word == b"ADD" and len(args) >= 3:
            return self._add_fault([arg.decode("utf-8", "surrogateescape") for arg in args[1:]])
        if word == b"LIST" and len(args) == 1:
            return [
                [number, repr(rule).encode(), rule.seen, rule.fired] for number, rule in self.rules.items()
            ]
        if word == b"CLEAR" and len(args) == 1:
            self.emulator.faults.clear()
            self.rules.clear()
            return OK
        raise _syntax()

    def _add_fault(self, words: list[str]) -> int:
        kind, commands = words[0].upper(), words[1].split(",")
        if kind not in _KINDS:
            raise EmulatorError(f"there is no fault {kind}; try EMUREDIS HELP")
        name, needs = _KINDS[kind]
        given, rest = words[2 : 2 + len(needs)], words[2 + len(needs) :]
        if len(given) < len(needs) or len(rest) % 2:
            raise _syntax()
        when: dict[str, Any] = {}
        for option, value in zip(rest[::2], rest[1::2], strict=True):
            if option.upper() not in _OPTIONS:
                raise _syntax()
            when[option.lower()] = _OPTIONS[option.upper()](value)
        values = [read(value) for read, value in zip(needs, given, strict=True)]
        rule = getattr(self.emulator.faults, name)(commands, *values, **when)
        self.numbers += 1
        self.rules[self.numbers] = rule
        return self.numbers

    # -- snapshots and the journal ------------------------------------------------------------------

    def snapshot(self, args: list[bytes]) -> Reply:
        name = args[0] if args else b""
        _no_more(args[1:])
        self.snapshots[name] = self.emulator.snapshot_now()
        return OK

    def restore(self, args: list[bytes]) -> Reply:
        name = args[0] if args else b""
        _no_more(args[1:])
        if name not in self.snapshots:
            raise EmulatorError(f"there is no snapshot {name.decode('utf-8', 'replace')!r}")
        self.emulator.restore_now(self.snapshots[name])
        return OK

    def journal_(self, args: list[bytes]) -> Reply:
        _no_more(args[1:])
        if args and args[0].upper() == b"CLEAR":
            self.journal.all.clear()
            return OK
        entries = [entry for entry in self.journal.all if entry.command != "emuredis"]
        count = int(_number(args[0])) if args else len(entries)
        latest = entries[max(len(entries) - count, 0) :]
        return [
            json.dumps(entry.as_dict(), ensure_ascii=False).encode("utf-8", "surrogatepass")
            for entry in latest
        ]


_SUBCOMMANDS: dict[bytes, Callable[[_Control, list[bytes]], Reply]] = {
    b"CLOCK": _Control.clock_,
    b"FAULT": _Control.fault,
    b"HELP": _Control.help,
    b"JOURNAL": _Control.journal_,
    b"RESTORE": _Control.restore,
    b"SNAPSHOT": _Control.snapshot,
}


def _number(text: Any) -> float:
    try:
        number = float(text)
    except ValueError:
        raise EmulatorError("value is not a number") from None
    if not 0 <= number < 1e15:
        raise EmulatorError("value is out of range")
    return number


def _keeps(text: str) -> bool:
    if text.upper() not in ("KEEP", "LOSE"):
        raise _syntax()
    return text.upper() == "KEEP"


def _whole(text: str) -> int:
    return int(_number(text))


#: The method of `Faults` for each kind, and how its arguments are read.
_KINDS: dict[str, tuple[str, tuple[Callable[[str], Any], ...]]] = {
    "BUSY": ("busy", ()),
    "DISCONNECT": ("disconnect", ()),
    "ERROR": ("error", (str,)),
    "LATENCY": ("latency", (_number,)),
    "LOADING": ("loading", ()),
    "LOSE-REPLY": ("lose_reply", ()),
    "MOVED": ("moved", (_whole, str)),
    "OOM": ("oom", ()),
    "READONLY": ("readonly", ()),
    "RESTART": ("restart", (_keeps,)),
    "SCRIPT-FLUSH": ("script_flush", ()),
}
_OPTIONS: dict[str, Callable[[str], Any]] = {
    "KEY": str,
    "CLIENT": str,
    "NTH": _whole,
    "TIMES": _whole,
    "PROBABILITY": _number,
}


def _syntax() -> EmulatorError:
    return EmulatorError("syntax error, try EMUREDIS HELP")


def _no_more(args: list[bytes]) -> None:
    if args:
        raise _syntax()
