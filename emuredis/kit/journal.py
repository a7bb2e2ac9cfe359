"""The journal: what was asked and answered, in order, with what it did to which keys.

An entry is one command of a client; what a script or a transaction called is nested in it. Entries are plain data:
print one, filter them, write them as JSON lines, count them against a budget.

    with emulator.journal() as journal:
        ...
    print(journal.entries("SET", key="user:*"))

While nobody keeps one, commands take the same way as ever.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any

from emuredis.errors import ReplyError
from emuredis.keys import keys_of
from emuredis.kit.contents import blob, describe_key, text
from emuredis.patterns import match
from emuredis.protocol.views import view3
from emuredis.replies import BLOCKED, Reply
from emuredis.scripting.watch import Observer, Run, observe, unobserve

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine
    from emuredis.engine.session import Session
    from emuredis.spec import Command

__all__ = ["Budget", "Entry", "Journal"]


@dataclass(slots=True)
class Entry:
    """One command. ``reply`` is what a RESP3 client gets, a ReplyError for an error; ``blocked``: it is yet to come.

    ``time_ms``: Unix milliseconds on the emulator's clock. ``before`` and ``after``: the keys it names as
    `Emulator.dump` describes them, None for one that is absent; both are None unless the journal keeps values.
    """

    number: int
    time_ms: int
    client: int
    client_name: str
    db: int
    command: str
    args: list[bytes]
    reads: list[bytes]
    writes: list[bytes]
    reply: Any = None
    blocked: bool = False
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    nested: list[Entry] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; bytes as `Emulator.dump` shows them."""
        told: dict[str, Any] = {
            "number": self.number, "time_ms": self.time_ms, "client": self.client, "db": self.db,
            "command": self.command, "args": [text(arg) for arg in self.args], "reply": _plain(self.reply),
            "reads": [text(key) for key in self.reads], "writes": [text(key) for key in self.writes],
        }  # fmt: skip
        if self.client_name:
            told["client_name"] = self.client_name
        if self.blocked:
            told["blocked"] = True
        if self.before is not None:
            told["before"], told["after"] = self.before, self.after
        if self.nested:
            told["nested"] = [entry.as_dict() for entry in self.nested]
        return told

    def __str__(self) -> str:
        words = " ".join(_word(arg) for arg in self.args)
        who = self.client_name or f"client {self.client}"
        line = f"{self.number} {self.time_ms} [{who} db{self.db}] {words} -> {_answer(self)}"
        inner = "".join("\n    " + str(entry).replace("\n", "\n    ") for entry in self.nested)
        return line + inner


def _word(arg: bytes) -> str:
    shown = text(arg if len(arg) <= 80 else arg[:77] + b"...")
    return shown if shown and " " not in shown and '"' not in shown else json.dumps(shown, ensure_ascii=False)


def _answer(entry: Entry) -> str:
    if entry.blocked:
        return "blocked"
    if isinstance(entry.reply, ReplyError):
        return f"({entry.reply.message})"
    return json.dumps(_plain(entry.reply), ensure_ascii=False)


def _plain(reply: Any) -> Any:
    if isinstance(reply, bytes):
        return text(reply)
    if isinstance(reply, ReplyError):
        return {"error": reply.message}
    if isinstance(reply, dict):
        return [[_plain(name), _plain(value)] for name, value in reply.items()]
    if isinstance(reply, (list, tuple, set, frozenset)):
        return [_plain(item) for item in reply]
    return reply


class Journal(Observer):
    """Begins with its ``with`` block (or `start`) and ends with it (or `stop`); its entries stay.

    ``values``: keep every named key's value before and after each command. ``limit``: keep only so many entries, the
    latest; they are counted all the same.
    """

    def __init__(self, engine: Engine, values: bool = False, limit: int | None = None) -> None:
        self.engine = engine
        self.values = values
        self.limit = limit
        self.all: list[Entry] = []
        self.commands = 0  # of clients, nested ones not counted
        self.round_trips = 0  # the same, but what was sent at once counts once
        self._open: list[Entry] = []
        self._waiting: dict[Any, Entry] = {}
        self._running = False

    # -- keeping it --------------------------------------------------------------------------------

    def start(self) -> Journal:
        """Begin to take note; a second call does nothing."""
        with self.engine.lock:
            if not self._running:
                self._running = True
                self.engine.observers.append(self)
                self.engine.update_gates()
                observe(self, self.engine)
        return self

    def stop(self) -> None:
        """Take note no longer. Safe to call twice."""
        with self.engine.lock:
            if self._running:
                self._running = False
                self.engine.observers.remove(self)
                self.engine.update_gates()
                unobserve(self, self.engine)

    def __enter__(self) -> Journal:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        self.stop()

    def clear(self) -> None:
        """Forget the entries so far."""
        self.all.clear()
        self.commands = self.round_trips = 0

    # -- what the engine tells ---------------------------------------------------------------------

    def before(self, session: Session, cmd: Command, argv: list[bytes]) -> None:
        """A client's command, or one of a transaction, is about to be run."""
        self._begin(session, cmd, argv)

    def after(self, session: Session, cmd: Command, argv: list[bytes], reply: Reply) -> None:
        """It has been run. ``reply`` may be an error or BLOCKED."""
        entry = self._end(session, reply)
        if reply is BLOCKED and session.waiter is not None:
            entry.blocked = True
            self._waiting[session.waiter.root] = entry

    def batched(self, size: int) -> None:
        """A client has sent so many commands at once."""
        self.round_trips -= max(size - 1, 0)

    def served(self, waiter: Any, reply: Reply) -> None:
        """A blocked command has got its reply."""
        entry = self._waiting.pop(waiter.root, None)
        if entry is not None:
            entry.blocked = False
            entry.reply = _seen(reply)
            self._note_after(entry)

    def before_call(self, run: Run, argv: list[bytes], cmd: Command | None) -> None:
        if cmd is not None:
            self._begin(run.runtime.bridge.session, cmd, argv, run.session)

    def after_call(self, run: Run, argv: list[bytes], reply: Reply, told: bytes | None) -> None:
        if self._open:
            error = None if told is None else ReplyError(told)
            self._end(run.session, reply if error is None else error)

    # -- entries -----------------------------------------------------------------------------------

    def _begin(self, session: Session, cmd: Command, argv: list[bytes], owner: Session | None = None) -> None:
        reads, writes = _split(cmd, argv)
        owner = owner or session
        if not self._open:
            self.commands += 1
            self.round_trips += 1
        entry = Entry(self.commands, self.engine.keyspace.now, owner.id, owner.name.decode("utf-8", "replace"),
                      session.db.index, cmd.name, list(argv), reads, writes)  # fmt: skip
        if self.values:
            entry.before = self._described(entry)
        self._open.append(entry)

    def _end(self, session: Session, reply: Reply) -> Entry:
        entry = self._open.pop()
        entry.reply = None if reply is BLOCKED else _seen(reply)
        self._note_after(entry)
        if self._open:
            self._open[-1].nested.append(entry)
        else:
            self.all.append(entry)
            if self.limit is not None and len(self.all) > self.limit:
                del self.all[0]
        return entry

    def _note_after(self, entry: Entry) -> None:
        if self.values:
            entry.after = self._described(entry)

    def _described(self, entry: Entry) -> dict[str, Any]:
        db = self.engine.keyspace.databases[entry.db]
        return {text(key): describe_key(db, key) for key in dict.fromkeys(entry.reads + entry.writes)}

    # -- reading it --------------------------------------------------------------------------------

    def entries(self, *commands: str, key: Any = None, client: str | int | None = None, writes: bool | None = None,
                errors: bool | None = None, where: Callable[[Entry], bool] | None = None,
                nested: bool = False) -> list[Entry]:  # fmt: skip
        """The entries that match everything given, in order.

        ``commands``: names such as ``"SET"``; ``key``: a glob pattern; ``client``: a name or an id; ``writes``,
        ``errors``: whether it names keys that it may write, or failed; ``nested``: what scripts and
        transactions called, too.
        """
        names = {"|".join(name.lower().split()) for name in commands}
        pattern = None if key is None else blob(key)

        def matches(entry: Entry) -> bool:
            return (
                (not names or entry.command in names or entry.command.partition("|")[0] in names)
                and (pattern is None or any(match(pattern, k) for k in entry.reads + entry.writes))
                and (client is None or client in (entry.client, entry.client_name))
                and (writes is None or writes == bool(entry.writes))
                and (errors is None or errors == isinstance(entry.reply, ReplyError))
                and (where is None or where(entry))
            )

        return [entry for entry in (self._flat() if nested else self.all) if matches(entry)]

    def _flat(self) -> Iterator[Entry]:
        def walk(entries: Iterable[Entry]) -> Iterator[Entry]:
            for entry in entries:
                yield entry
                yield from walk(entry.nested)

        return walk(self.all)

    def published(self, channel: Any = None) -> list[bytes]:
        """The messages of PUBLISH and SPUBLISH, in order, on one channel or on all; scripts' and transactions' too."""
        wanted = None if channel is None else blob(channel)
        return [
            entry.args[2] for entry in self._flat()
            if entry.command in ("publish", "spublish") and wanted in (None, entry.args[1])
            and not isinstance(entry.reply, ReplyError)
        ]  # fmt: skip

    def assert_published(self, channel: Any, *messages: Any) -> None:
        """Exactly these messages were published on the channel, in this order; matchers as in `assert_list`.

        Raises AssertionError with the difference.
        """
        from emuredis.kit.assertions import compare

        compare(f"published on {text(blob(channel))}", messages, self.published(channel))

    def jsonl(self) -> str:
        """One line of JSON for each entry."""
        return "".join(json.dumps(entry.as_dict(), ensure_ascii=False) + "\n" for entry in self.all)

    def repeated(self, least: int = 3) -> list[str]:
        """Hints at reads that could be one: runs of one command on different keys by one client."""
        hints: list[str] = []
        run: list[Entry] = []
        for entry in [*self.all, None]:
            if run and (entry is None or not _follows(run[-1], entry)):
                if len(run) >= least:
                    hints.append(_hint(run))
                run = []
            if entry is not None and entry.reads and not entry.writes:
                run.append(entry)
        return hints

    def __str__(self) -> str:
        return "\n".join(map(str, self.all))

    def __len__(self) -> int:
        return len(self.all)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.all)


def _seen(reply: Reply) -> Any:
    return reply if isinstance(reply, ReplyError) else view3(reply)


def _split(cmd: Command, argv: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """The keys a command reads, and those it may write."""
    reads: list[bytes] = []
    writes: list[bytes] = []
    for key, flags in keys_of(cmd, argv):
        (reads if "RO" in flags else writes).append(key)
    return reads, writes


def _follows(one: Entry, other: Entry) -> bool:
    return other.client == one.client and other.command == one.command and other.reads != one.reads


_TOGETHER = {"get": "MGET", "hget": "HMGET", "hgetall": "a pipeline", "exists": "EXISTS with all keys"}


def _hint(run: list[Entry]) -> str:
    name = run[0].command
    return (
        f"{len(run)} × {name.upper()} in a row by client {run[0].client} "
        f"({text(run[0].reads[0])} … {text(run[-1].reads[0])}): {_TOGETHER.get(name, 'a pipeline')} asks once"
    )


class Budget:
    """Fails, at the end of its ``with`` block, when more was asked than allowed. See `Emulator.budget`."""

    def __init__(self, journal: Journal, round_trips: int | None, commands: int | None) -> None:
        self.journal = journal
        self._limits = {"round trips": round_trips, "commands": commands}

    def __enter__(self) -> Journal:
        return self.journal.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        self.journal.stop()
        if kind is not None:
            return
        spent = {"round trips": self.journal.round_trips, "commands": self.journal.commands}
        over = [f"{spent[what]} {what}, allowed {most}" for what, most in self._limits.items()
                if most is not None and spent[what] > most]  # fmt: skip
        if over:
            lines = [*over, "spent on:", *(f"  {line}" for line in str(self.journal).splitlines())]
            hints = self.journal.repeated()
            lines += ["hints:", *(f"  {hint}" for hint in hints)] if hints else []
            raise AssertionError("over budget: " + "\n".join(lines))
