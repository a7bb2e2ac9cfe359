"""Snapshots: the whole state of an engine at one instant, to be put back or to start another engine from.

Values are shared, not copied. Every collection that a snapshot holds is listed in `Keyspace.shared`; whoever is
about to change one gets a copy first (`Database.own`), so that a snapshot costs a shallow copy of the
dictionaries, and what is never written to is never copied.

What belongs to clients is not part of it: connections, transactions, subscriptions and watched keys stay as they are.
There may be no blocked commands. Scripts are `emuredis.scripting`'s, which the engine does not know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emuredis.engine.config import FREE, PARAMETERS
from emuredis.errors import EmulatorError

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine

__all__ = ["Snapshot", "restore", "take"]

#: What a database consists of, but for what can be built from it.
_PARTS = ("access", "data", "deadlines", "encodings", "volatile")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An engine's state: keys, deadlines, configuration, the random source, the time."""

    databases: list[dict[str, Any]]
    shared: frozenset[int]  # ids of the collections, which `databases` keeps alive
    ns: int
    config: dict[str, Any]
    settings: tuple[Any, int]  # whose configuration that is, and its `changes` at the time
    chance: tuple[Any, ...]

    def __len__(self) -> int:
        """The number of keys."""
        return sum(len(parts["data"]) for parts in self.databases)


def take(engine: Engine) -> Snapshot:
    """The state now. Raises EmulatorError while a client is blocked. O(keys), values uncopied."""
    _quiet(engine, "take a snapshot")
    keyspace = engine.keyspace
    databases = [{name: getattr(db, name).copy() for name in _PARTS} for db in keyspace.databases]
    shared = frozenset(
        id(value) for db in keyspace.databases for value in db.data.values() if value.__class__ is not bytes
    )
    keyspace.shared = set(shared)
    config = {p.attribute: getattr(engine.config, p.attribute) for p in PARAMETERS.values() if p.kind == FREE}
    settings = engine.config, engine.config.changes
    return Snapshot(databases, shared, engine.clock.now_ns(), config, settings, engine.rng.getstate())


def restore(engine: Engine, snapshot: Snapshot) -> None:
    """Put a state back. Raises EmulatorError while a client is blocked.

    Keys that clients watch count as changed. A manual clock shows the snapshot's time again.
    """
    _quiet(engine, "restore a snapshot")
    keyspace = engine.keyspace
    if len(snapshot.databases) != len(keyspace.databases):
        raise EmulatorError(
            f"the snapshot has {len(snapshot.databases)} databases, this emulator {len(keyspace.databases)}"
        )
    if engine.clock.manual:
        engine.clock.show(snapshot.ns)  # type: ignore[attr-defined]
    config = engine.config
    if snapshot.settings != (config, config.changes):
        for name, value in snapshot.config.items():
            if getattr(config, name) != value:
                setattr(config, name, value)
    engine.rng.setstate(snapshot.chance)
    for db, parts in zip(keyspace.databases, snapshot.databases, strict=True):
        for name, part in parts.items():
            if part or getattr(db, name):
                setattr(db, name, part.copy())
        db.scan_index = None
    keyspace.shared = set(snapshot.shared)
    keyspace.rebuild_heap()
    for watchers in keyspace.watchers.values():
        for watcher in watchers:
            watcher.watch_broken = True
    engine.configured()
    engine.memory.recount()


def _quiet(engine: Engine, what: str) -> None:
    if engine.waiting.count:
        blocked = [session for session in engine.sessions.values() if session.waiter is not None]
        names = ", ".join(
            f"client {session.id} in {session.waiter.cmd.name.upper()}"
            for session in blocked
            if session.waiter
        )
        raise EmulatorError(f"cannot {what} while clients are blocked: {names}")
