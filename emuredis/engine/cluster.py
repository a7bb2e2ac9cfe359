"""A cluster of engines in one process: who has which slot, and what a node answers to who asks the wrong one.

`Cluster` is what all nodes know: nodes, owners of slots, epochs. A real cluster's nodes learn of each other's changes
by gossip, sooner or later; here every change is known to all at once. `Node` is one primary: its engine, its address
and the slots that it is handing over or taking over. There are no replicas.

The nodes share one lock, so a change that concerns several of them is one step for every client. Sessions of a node
are always gated: the engine's slow path asks `Node.admit`, and scripts ask `Node.check_call` before each call; an
engine without a cluster pays nothing. Invariant: keys are only where their slot is, or where it is being taken over to.

This module knows no commands but by name; what moves keys is `emuredis.engine.moving`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from emuredis.errors import ReplyError
from emuredis.keys import keys_of
from emuredis.slots import SLOTS, key_slot
from emuredis.spec import WRITE

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine
    from emuredis.engine.session import Session
    from emuredis.spec import Command

__all__ = ["DOWN", "UNSERVED", "Cluster", "Migration", "Node", "share"]

#: Commands whose arguments name shard channels, and how many of them.
_SHARDED = {"ssubscribe": None, "sunsubscribe": None, "spublish": 2}

#: Commands whose keys are not looked for where their specifications say. Those of MSETEX the server (9.1.2) does not
#: find at all: every node runs it, wherever its keys belong.
_ELSEWHERE = {"clusterscan": slice(1, 2), "msetex": slice(0), "pfmerge": slice(1, None)}

_NUMBER = re.compile(rb"[ \t\n\v\f\r]*([+-]?\d{1,18})")

CROSSSLOT = "CROSSSLOT Keys in request don't hash to the same slot"
TRYAGAIN = "TRYAGAIN Multiple keys request during rehashing of slot"
UNSERVED = "CLUSTERDOWN Hash slot not served"
DOWN = "CLUSTERDOWN The cluster is down"
DOWN_READ_ONLY = "CLUSTERDOWN The cluster is down and only accepts read commands"

FOREIGN = "ERR Attempted to access a non local key in a cluster node"
SCRIPT_CROSSES = "ERR Script attempted to access keys that do not hash to the same slot"

Calls = list[tuple[Any, list[bytes]]]


@dataclass(slots=True)
class Migration:
    """One MIGRATESLOTS that has been carried out, as both sides remember it."""

    name: str
    slots: list[tuple[int, int]]
    source: Node
    target: Node
    at: int  # Unix seconds


@dataclass(slots=True)
class _Found:
    """What the keys of one request have in common."""

    slot: int = -1
    owner: Node | None = None
    missing: int = 0
    existing: int = 0
    several: bool = False  # different keys
    sharded: bool = False
    writes: bool = False
    keys: list[bytes] = field(default_factory=list)


class Cluster:
    """The nodes and the owner of each slot (None: nobody's)."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.owners: list[Node | None] = [None] * SLOTS
        self._ranges: dict[Node, list[tuple[int, int]]] | None = None  # as `ranges` gave them last
        self.epoch = 0
        self.unserved = SLOTS

    def assign(self, slots: Iterable[int], node: Node | None) -> None:
        """Make ``node`` the owner, without a look at keys. Who was handing a slot over is done with it."""
        self._ranges = None
        for slot in slots:
            before = self.owners[slot]
            if before is node:
                continue
            self.unserved += (node is None) - (before is None)
            self.owners[slot] = node
            if before is not None:
                before.migrating.pop(slot, None)
            if node is not None:
                node.importing.pop(slot, None)

    def find(self, node_id: bytes) -> Node | None:
        return next((node for node in self.nodes if node.id.encode() == node_id), None)

    def at(self, host: str, port: int) -> Node | None:
        """The node with this address."""
        return next((node for node in self.nodes if (node.host, node.port) == (host, port)), None)

    def slots_of(self, node: Node) -> list[int]:
        return [slot for slot, owner in enumerate(self.owners) if owner is node]

    def ranges(self, node: Node) -> list[tuple[int, int]]:
        """The slots of ``node`` as first and last of each run. O(slots) after a change, then O(1)."""
        if self._ranges is None:
            self._ranges = {each: [] for each in self.nodes}
            for slot, owner in enumerate(self.owners):
                if owner is None:
                    continue
                runs = self._ranges[owner]
                if runs and runs[-1][1] == slot - 1:
                    runs[-1] = runs[-1][0], slot
                else:
                    runs.append((slot, slot))
        return self._ranges[node]

    def bump(self, node: Node) -> bool:
        """Give ``node`` the highest epoch, unless it has it; whether that took a new one."""
        if node.epoch == self.epoch and [other.epoch for other in self.nodes].count(node.epoch) == 1:
            return False
        self.epoch += 1
        node.epoch = self.epoch
        return True

    def broadcast(self, source: Node, channel: bytes, message: bytes) -> None:
        """PUBLISH: hand a message to the subscribers of the other nodes, when the source's unit has ended."""

        def send() -> None:
            for node in self.nodes:
                if node is not source:
                    node.engine.pubsub.publish(channel, message)
                    node.engine.deliver()

        source.engine.after_unit(send)


class Node:
    """One primary. ``host`` and ``port``: where clients are told to go."""

    def __init__(self, cluster: Cluster, engine: Engine, node_id: str, shard_id: str, port: int) -> None:
        self.cluster = cluster
        self.engine = engine
        self.id, self.shard_id = node_id, shard_id
        self.host, self.port = "127.0.0.1", port
        self.epoch = len(cluster.nodes) + 1
        self.migrating: dict[int, Node] = {}  # slots being handed over, to whom
        self.importing: dict[int, Node] = {}  # slots being taken over, from whom
        self.migrations: list[Migration] = []  # the latest first
        self.slot = -1  # that of the command being run
        self._caller: tuple[Session, bool] | None = None  # of the running script; may it use several slots?
        cluster.nodes.append(self)
        cluster.epoch = max(cluster.epoch, self.epoch)
        engine.cluster = self
        engine.update_gates()

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def healthy(self) -> bool:
        """Whether it serves keys at all: not while a slot is nobody's, by default."""
        return not self.cluster.unserved or not self.engine.config.cluster_require_full_coverage

    # -- commands of clients --------------------------------------------------------------------

    def admit(self, session: Session, cmd: Command, argv: list[bytes]) -> None:
        """Send who asks for a slot of another node there. Raises ReplyError."""
        asking = session.asking > (session.queue is None)
        if session.asking and session.queue is None:
            session.asking -= 1  # it lasts for one command, or one transaction
        slot = -1
        if cmd.keys or cmd.name == "exec":
            calls: Calls = [(cmd, argv)]
            if cmd.name == "exec":
                calls = [] if session.queue is None else session.queue
            try:
                slot = self.route(session, calls, asking)
            finally:
                if cmd.name == "exec" and session.queue is not None:
                    session.asking = 0
        if not self.engine.busy.on:
            self.slot = slot

    def route(self, session: Session, calls: Calls, asking: bool) -> int:
        """The slot of the keys of ``calls`` (-1: there are none), if it is served here. Raises ReplyError."""
        found = self._look(session, calls)
        if found.slot < 0:
            return -1
        self._check_health(found)
        slot, owner = found.slot, found.owner
        target = self.migrating.get(slot) if owner is self else None
        source = None if target is not None else self.importing.get(slot)
        if (target or source) and calls[-1][0].name == "migrate":
            return slot
        if target is not None and found.missing:
            raise ReplyError(TRYAGAIN if found.existing else f"ASK {slot} {target.address}")
        if source is not None and (asking or any("asking" in cmd.flag_words for cmd, _ in calls)):
            if found.several and found.missing:
                raise ReplyError(TRYAGAIN)
            return slot
        if owner is not self:
            assert owner is not None
            raise ReplyError(f"MOVED {slot} {owner.address}")
        return slot

    def _look(self, session: Session, calls: Calls) -> _Found:
        """Go through the keys of ``calls``. Raises ReplyError if they are in several slots, or in nobody's."""
        found = _Found()
        is_open = False
        # Of a transaction only EXEC asks which keys are there.
        queueing = session.queue is not None and calls is not session.queue
        for cmd, argv in calls:
            found.sharded |= cmd.name in _SHARDED
            found.writes |= bool(cmd.flags & WRITE)
            for key in _named(cmd, argv):
                slot = key_slot(key)
                if found.slot < 0:
                    found.slot, found.owner = slot, self.cluster.owners[slot]
                    if found.owner is None:
                        raise ReplyError(UNSERVED)
                    is_open = slot in (self.migrating if found.owner is self else self.importing)
                    found.keys.append(key)
                elif slot != found.slot:
                    raise ReplyError(CROSSSLOT)
                else:
                    found.several |= key != found.keys[0]
                if is_open and not found.sharded and not queueing:
                    there = session.db.peek(key) is not None
                    found.existing += there
                    found.missing += not there
        return found

    def _check_health(self, found: _Found) -> None:
        if self.healthy:
            return
        config = self.engine.config
        if found.sharded:
            if not config.cluster_allow_pubsubshard_when_down:
                raise ReplyError(DOWN)
        elif not config.cluster_allow_reads_when_down:
            raise ReplyError(DOWN)
        elif found.writes:
            raise ReplyError(DOWN_READ_ONLY)

    # -- scripts --------------------------------------------------------------------------------

    def begin_script(self, caller: Session, refused: bool, may_cross: bool) -> None:
        """A script of ``caller`` is about to run; ``may_cross``: it may touch keys of several slots.

        ``refused``: it said that it cannot be run in a cluster. Raises ReplyError then.
        """
        if refused:
            raise ReplyError("ERR Can not run script on cluster, 'no-cluster' flag is set.")
        self._caller = caller, may_cross

    def check_call(self, session: Session, cmd: Command, argv: list[bytes]) -> None:
        """Refuse a script's call that touches what is not here. Raises ReplyError with what the script is told."""
        if not cmd.keys or self._caller is None:
            return
        caller, may_cross = self._caller
        try:
            slot = self.route(session, [(cmd, argv)], bool(caller.asking))
        except ReplyError as error:
            raise ReplyError(_told(error, cmd)) from None
        if slot >= 0:
            if not may_cross and self.slot not in (-1, slot):
                raise ReplyError(SCRIPT_CROSSES)
            self.slot = slot


def _told(error: ReplyError, cmd: Command) -> str:
    """What a script is told in place of a redirection."""
    if error.message == DOWN:
        return f"ERR Can not execute a command '{cmd.name}' while the cluster is down"
    if error.message == DOWN_READ_ONLY:
        return f"ERR Can not execute a write command '{cmd.name}' while the cluster is down and readonly"
    return FOREIGN


def _named(cmd: Command, argv: list[bytes]) -> list[bytes]:
    """What of ``argv`` belongs to a slot: keys, shard channels, a cursor of CLUSTERSCAN."""
    if cmd.name in _SHARDED:
        return argv[1 : _SHARDED[cmd.name]]
    if cmd.name in _ELSEWHERE:
        return argv[_ELSEWHERE[cmd.name]]
    for spec in cmd.key_specs:
        if spec.kind == "keynum" and spec.index < len(argv) and not argv[spec.index].isdigit():
            # The server reads this number up to the first letter; the command itself will refuse it.
            number = _NUMBER.match(argv[spec.index])
            count = b"%d" % int(number[1]) if number else b"0"
            argv = [*argv[: spec.index], count, *argv[spec.index + 1 :]]
    return [key for key, _ in keys_of(cmd, argv)]


def share(number: int, nodes: int) -> range:
    """The slots of node ``number`` of so many, as ``valkey-cli --cluster create`` deals them out."""

    def end(count: int) -> int:
        return SLOTS if count == nodes else round(SLOTS / nodes * count - 1) + 1 if count else 0

    return range(end(number), end(number + 1))
