"""What a step touches, and whether two steps can be swapped.

A *footprint* is a set of places read and a set of places written. Places are keys, and what else of the server a
command may read or change: the scripts it knows, its channels, its source of chance. Two steps of different actors
that share no place, or only read it, leave the same state in either order, so one of the two orders is enough for an
explorer. A script is one step; its footprint is what it really called.

Which keys a command names is said by its declaration (`emuredis.keys.keys_of`). What is not known here counts as
everything, so a new command makes exploring slower, never wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emuredis.keys import keys_of
from emuredis.spec import READONLY, WRITE

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine
    from emuredis.engine.session import Session
    from emuredis.spec import Command

__all__ = ["EVERYTHING", "NOTHING", "Footprint", "conflict", "footprint", "named"]

Place = tuple[Any, ...]

_SCRIPTS, _CHANNELS, _CHANCE, _ALL = ("scripts",), ("channels",), ("chance",), ("everything",)

#: Touch nothing but their own connection.
_PRIVATE = frozenset(
    "ping echo select hello reset quit multi discard unwatch auth time client|id client|setname client|getname "
    "client|setinfo client|reply client|no-touch client|no-evict command command|count command|info command|docs "
    "command|list command|getkeys command|getkeysandflags readonly readwrite asking lolwut".split()
)
_READ_SCRIPTS = frozenset(
    "evalsha evalsha_ro script|exists script|show fcall fcall_ro function|list function|dump".split()
)
_WRITE_SCRIPTS = frozenset(
    "script|load script|flush function|load function|delete function|flush function|restore".split()
)
#: EVAL adds its script to those that EVALSHA knows. That only matters to a program that counts on NOSCRIPT.
_EVAL = frozenset(("eval", "eval_ro"))
_PUBSUB = frozenset(
    "publish spublish subscribe unsubscribe psubscribe punsubscribe ssubscribe sunsubscribe pubsub|channels "
    "pubsub|numsub pubsub|numpat pubsub|shardchannels pubsub|shardnumsub".split()
)
_CHANCY = frozenset("spop srandmember hrandfield zrandmember randomkey".split())
_WRITE_FLAGS = frozenset(("RW", "OW", "RM"))


class Footprint:
    """Places read and places written; a place may be in both."""

    __slots__ = ("reads", "writes")

    def __init__(self, reads: frozenset[Place] = frozenset(), writes: frozenset[Place] = frozenset()) -> None:
        self.reads = reads
        self.writes = writes

    def __or__(self, other: Footprint) -> Footprint:
        return Footprint(self.reads | other.reads, self.writes | other.writes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Footprint) and (self.reads, self.writes) == (other.reads, other.writes)

    def __hash__(self) -> int:
        return hash((self.reads, self.writes))

    def __repr__(self) -> str:
        return f"<Footprint reads {sorted(map(str, self.reads))} writes {sorted(map(str, self.writes))}>"


NOTHING = Footprint()
EVERYTHING = Footprint(frozenset((_ALL,)), frozenset((_ALL,)))


def conflict(one: Footprint, other: Footprint) -> frozenset[Place]:
    """The places because of which the two cannot be swapped; empty if they can."""
    if one.writes or other.writes:
        if _ALL in one.writes or _ALL in other.writes:
            nothing = not (one.reads or one.writes) or not (other.reads or other.writes)
            return frozenset() if nothing else frozenset((_ALL,))
        return (one.writes & (other.writes | other.reads)) | (one.reads & other.writes)
    return frozenset()


def named(places: frozenset[Place]) -> str:
    """Places for people."""
    known = {"everything": "all keys", "scripts": "the scripts that are known"}
    shown = []
    for place in sorted(places, key=str):
        if len(place) == 1:
            shown.append(known.get(place[0], str(place[0])))
        else:
            db, key = place
            shown.append(repr(key.decode("utf-8", "backslashreplace")) + (f" in database {db}" if db else ""))
    return ", ".join(shown)


def footprint(engine: Engine, session: Session, cmd: Command | None, argv: list[bytes]) -> Footprint:
    """What a command is going to touch by itself; what a script calls is added by whoever watches it run."""
    if cmd is None:
        return NOTHING
    if session.queue is not None and cmd.name not in ("exec", "discard", "reset", "quit", "watch", "multi"):
        return NOTHING
    if engine.config.maxmemory:
        return EVERYTHING
    name = cmd.name
    if name == "exec":
        return _transaction(engine, session)
    if name in _PRIVATE:
        return NOTHING
    if name in _EVAL:
        return NOTHING
    if name in _READ_SCRIPTS:
        return Footprint(frozenset((_SCRIPTS,)))
    if name in _WRITE_SCRIPTS:
        return Footprint(frozenset(), frozenset((_SCRIPTS,)))
    if name in _PUBSUB:
        return Footprint(frozenset(), frozenset((_CHANNELS,)))
    return of_keys(engine, session, cmd, argv)


def of_keys(engine: Engine, session: Session, cmd: Command, argv: list[bytes]) -> Footprint:
    """The footprint of a command that works on keys."""
    if not cmd.key_specs and cmd.name not in _CHANCY:
        return EVERYTHING
    index = session.db.index
    reads: list[Place] = []
    writes: list[Place] = []
    changes = cmd.flags & WRITE
    for key, flags in keys_of(cmd, argv):
        place = (index, key)
        if changes or not _WRITE_FLAGS.isdisjoint(flags):
            writes.append(place)
        else:
            reads.append(place)
    if cmd.name in ("sort", "sort_ro", "move", "copy", "migrate"):
        return EVERYTHING  # keys by pattern, or in other databases
    if cmd.name == "randomkey":
        return EVERYTHING
    if cmd.name in _CHANCY:
        writes.append(_CHANCE)
    if not cmd.flags & (WRITE | READONLY) and not (reads or writes):
        return EVERYTHING
    if engine.keyspace.notify and writes:
        writes.append(_CHANNELS)
    return Footprint(frozenset(reads), frozenset(writes))


def _transaction(engine: Engine, session: Session) -> Footprint:
    """EXEC: all it runs, and the keys it watched, whose change makes it fail."""
    queue, session.queue = session.queue, None
    try:
        total = Footprint(frozenset(session.watched))
        for cmd, argv in queue or ():
            total |= footprint(engine, session, cmd, argv)
        return total
    finally:
        session.queue = queue
