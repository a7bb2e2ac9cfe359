"""Strict modes: scripts may touch only what they said they would.

What a command touches is what the key specifications of its declaration say, see
`emuredis.keys.keys_of`. Commands that look at the whole keyspace (KEYS, SCAN, FLUSHALL ...) name
no key and are not looked at; the patterns of SORT's BY and GET count as keys.

A violation ends the script, whatever it catches, with an error that names the key, the script and the line. On a
real server such a script works until the data is spread over a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emuredis.errors import ReplyError
from emuredis.keys import keys_of
from emuredis.scripting.watch import Observer, Run, strict_error
from emuredis.slots import key_slot
from emuredis.spec import WRITE

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine
    from emuredis.engine.session import Session
    from emuredis.spec import Command

__all__ = ["MODES", "Strict", "set_strict"]

#: None; only the script's KEYS; only keys in a slot of its KEYS, and no command or script with keys in two slots.
MODES = (None, "declared", "slot")


class Strict(Observer):
    """The strict mode of one engine: an observer of its scripts and, for "slot", a gate of its commands."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self._keys: frozenset[bytes] = frozenset()
        self._slots: frozenset[int] = frozenset()

    def copy(self) -> Strict:
        """One for another engine in the same mode."""
        return Strict(self.mode)

    def begin(self, run: Run) -> None:
        self._keys = frozenset(run.keys)
        if self.mode == "slot":
            _one_slot(str(run), run.keys)
            self._slots = frozenset(map(key_slot, run.keys))

    def before_call(self, run: Run, argv: list[bytes], cmd: Command | None) -> None:
        if cmd is None:
            return
        keys = [key for key, _ in keys_of(cmd, argv)] + _patterns(cmd, argv)
        where = f"{run}, line {run.line}: {cmd.name.upper()}"
        if run.read_only and cmd.flags & WRITE:
            what = " and ".join(map(_shown, keys)) or "the keyspace"
            raise strict_error(f"{where} writes {what}, but the script was declared read-only")
        for key in keys:
            if key in self._keys:
                continue
            if self.mode == "declared":
                raise strict_error(f"{where} touches {_shown(key)}, which is not among the script's KEYS")
            if key_slot(key) not in self._slots:
                raise strict_error(
                    f"{where} touches {_shown(key)} in slot {key_slot(key)}; the script's KEYS are in "
                    + (f"slot {min(self._slots)}" if self._slots else "none, for it declares no key")
                )

    def gate(self, session: Session, cmd: Command, argv: list[bytes]) -> None:
        """Refuse a command, or at EXEC a transaction, with keys in several slots."""
        if cmd.group == "scripting":
            return  # named by `begin`
        calls: list[tuple[Command, list[bytes]]] = [(cmd, argv)]
        if cmd.name == "exec" and session.queue is not None:
            calls = session.queue
        keys = [key for each, words in calls for key in _keys(each, words)]
        try:
            _one_slot(cmd.name.upper().replace("|", " "), keys)
        except ReplyError:
            if cmd.name != "exec":
                session.fail_transaction()
            raise


def _keys(cmd: Command, argv: list[bytes]) -> list[bytes]:
    return [key for key, _ in keys_of(cmd, argv)] + _patterns(cmd, argv)


def _patterns(cmd: Command, argv: list[bytes]) -> list[bytes]:
    """The patterns by which SORT finds further keys."""
    if cmd.name not in ("sort", "sort_ro"):
        return []
    found = []
    at = 2
    while at < len(argv):
        word = argv[at].upper()
        if word in (b"BY", b"GET") and at + 1 < len(argv) and b"*" in argv[at + 1]:
            found.append(argv[at + 1].partition(b"->")[0])
        at += {b"LIMIT": 3, b"GET": 2, b"BY": 2, b"STORE": 2}.get(word, 1)
    return found


def _one_slot(who: str, keys: list[bytes]) -> None:
    if len(keys) > 1:
        first = key_slot(keys[0])
        for key in keys:
            if key_slot(key) != first:
                raise strict_error(
                    f"{who} has keys in several slots: {_shown(keys[0])} in {first}, "
                    f"{_shown(key)} in {key_slot(key)}",
                    "CROSSSLOT",
                )


def _shown(key: bytes) -> str:
    return repr(key.decode("utf-8", "backslashreplace"))


def set_strict(engine: Engine, mode: str | None) -> None:
    """Put ``engine`` into a strict mode, one of `MODES`; at any time. Raises ValueError for another."""
    if mode not in MODES:
        raise ValueError(f"strict_keys must be 'declared', 'slot' or None, not {mode!r}")
    from emuredis.scripting.watch import observe, unobserve

    with engine.lock:
        old: Any = engine.strict
        if old is not None:
            unobserve(old, engine)
            if old.gate in engine.gates:
                engine.gates.remove(old.gate)
        engine.strict = None
        if mode is not None:
            engine.strict = new = Strict(mode)
            observe(new, engine)
            if mode == "slot":
                engine.gates.append(new.gate)
        engine.update_gates()
