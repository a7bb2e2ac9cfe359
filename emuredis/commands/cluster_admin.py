"""CLUSTER, the subcommands that change who has which slot, and those that look after nodes.

Slots really change hands (`emuredis.engine.moving`). Nodes neither come nor go, and none is a replica: what would need
that is answered like on the server as long as nothing has to be done, else refused by name.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.args import integer, milliseconds
from emuredis.commands.cluster import node_named, node_of, slot_number, wrong_use
from emuredis.engine import moving
from emuredis.engine.cluster import Node
from emuredis.keyspace.slot_index import keys_in_slot
from emuredis.replies import OK, Reply, Status
from emuredis.scalars import parse_int
from emuredis.spec import command

if TYPE_CHECKING:
    from emuredis.engine.session import Session

_FLAGS = "admin no_async_loading stale"
_SLOTS = "O(N), N being the number of slots"


def _has_keys(ctx: Session) -> bool:
    return any(map(len, ctx.engine.keyspace.databases))


# -- assigning ---------------------------------------------------------------------------------


def _range_slots(argv: list[bytes]) -> list[int]:
    """The slots of the pairs from the third word on; each may be there once only, which `_checked` sees to."""
    if len(argv) % 2:
        raise errors.wrong_arity("cluster|" + argv[1].decode().lower())
    edges = list(map(slot_number, argv[2:]))
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        if first > last:
            raise errors.err(f"start slot number {first} is greater than end slot number {last}")
    return [slot for at in range(0, len(edges), 2) for slot in range(edges[at], edges[at + 1] + 1)]


def _checked(node: Node, slots: list[int], free: bool) -> list[int]:
    """``slots`` if all are nobody's, or all somebody's, and each named once. Raises ReplyError."""
    seen: set[int] = set()
    for slot in slots:
        if free and node.cluster.owners[slot] is not None:
            raise errors.err(f"Slot {slot} is already busy")
        if not free and node.cluster.owners[slot] is None:
            raise errors.err(f"Slot {slot} is already unassigned")
        if slot in seen:
            raise errors.err(f"Slot {slot} specified multiple times")
        seen.add(slot)
    return slots


def _add(node: Node, slots: list[int]) -> Reply:
    moving.assign(node.cluster, _checked(node, slots, True), node, node)
    return OK


def _delete(node: Node, slots: list[int]) -> Reply:
    moving.assign(node.cluster, _checked(node, slots, False), None, node)
    return OK


@command("CLUSTER ADDSLOTS slot:integer...", _FLAGS, group="cluster", since="3.0.0", complexity=_SLOTS)
def cluster_addslots(ctx: Session, argv: list[bytes]) -> Reply:
    """Gives slots that are nobody's to this node."""
    return _add(node_of(ctx), list(map(slot_number, argv[2:])))


@command("CLUSTER ADDSLOTSRANGE range=(start-slot:integer end-slot:integer)...", _FLAGS, group="cluster",
         since="7.0.0", complexity=_SLOTS)  # fmt: skip
def cluster_addslotsrange(ctx: Session, argv: list[bytes]) -> Reply:
    """Gives ranges of slots that are nobody's to this node."""
    return _add(node_of(ctx), _range_slots(argv))


@command("CLUSTER DELSLOTS slot:integer...", _FLAGS, group="cluster", since="3.0.0", complexity=_SLOTS)
def cluster_delslots(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes slots from whoever has them: they are nobody's then."""
    return _delete(node_of(ctx), list(map(slot_number, argv[2:])))


@command("CLUSTER DELSLOTSRANGE range=(start-slot:integer end-slot:integer)...", _FLAGS, group="cluster",
         since="7.0.0", complexity=_SLOTS)  # fmt: skip
def cluster_delslotsrange(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes ranges of slots from whoever has them."""
    return _delete(node_of(ctx), _range_slots(argv))


@command("CLUSTER FLUSHSLOTS", _FLAGS, group="cluster", since="3.0.0", complexity="O(1)")
def cluster_flushslots(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes all slots from this node, if it has no keys."""
    node = node_of(ctx)
    if _has_keys(ctx):
        raise errors.err("DB must be empty to perform CLUSTER FLUSHSLOTS.")
    moving.assign(node.cluster, node.cluster.slots_of(node), None, node)
    return OK


@command("CLUSTER FLUSHSLOT slot:integer flush-type=[ASYNC|SYNC]", "write admin no_async_loading", group="cluster",
         since="9.0.0", acl="keyspace", complexity="O(N), N being the number of keys in the slot")  # fmt: skip
def cluster_flushslot(ctx: Session, argv: list[bytes]) -> Reply:
    """Deletes the keys that this node has in a slot."""
    node = node_of(ctx)
    slot = slot_number(argv[2])
    if len(argv) > 4:
        raise wrong_use(argv)
    if len(argv) == 4 and argv[3].lower() not in (b"sync", b"async"):
        raise errors.syntax()
    moving.drop_keys(node, slot, b"del")
    return OK


# -- moving ------------------------------------------------------------------------------------


@command("CLUSTER SETSLOT slot:integer subcommand=(IMPORTING importing=(node-id)|MIGRATING migrating=(node-id)|NODE "
         "node=(node-id)|STABLE) [TIMEOUT timeout:integer]", _FLAGS, group="cluster", since="3.0.0",
         complexity="O(1)", arity=-4)  # fmt: skip
def cluster_setslot(ctx: Session, argv: list[bytes]) -> Reply:
    """Begins or ends the move of a slot from one node to another."""
    node = node_of(ctx)
    slot, action = slot_number(argv[2]), argv[3].upper()
    if len(argv) > 4 and argv[-2].upper() == b"TIMEOUT":
        given = parse_int(argv[-1])
        if given is None:
            raise errors.err("timeout is not an integer or out of range")
        milliseconds(given, ctx.now)
        argv = argv[:-2]
    if action == b"STABLE":
        node.migrating.pop(slot, None)
        node.importing.pop(slot, None)
        moving.redirect(node, [slot])
    elif action in (b"MIGRATING", b"IMPORTING") and len(argv) == 5:
        _open(node, slot, action == b"MIGRATING", argv[4])
    elif action == b"NODE" and len(argv) == 5:
        _close(ctx, node, slot, node_named(node, argv[4]))
    else:
        raise errors.err("Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP")
    return OK


def _open(node: Node, slot: int, leaving: bool, name: bytes) -> None:
    owned = node.cluster.owners[slot] is node
    if leaving and not owned:
        raise errors.err(f"I'm not the owner of hash slot {slot}")
    if owned and not leaving:
        raise errors.err(f"I'm already the owner of hash slot {slot}")
    other = node.cluster.find(name)
    if other is None:
        raise errors.err(f"I don't know about node {errors.shown(name)}")
    if other is node:
        raise errors.err("Target node is myself")
    (node.migrating if leaving else node.importing)[slot] = other


def _close(ctx: Session, node: Node, slot: int, owner: Node) -> None:
    """SETSLOT NODE: every node knows of the new owner at once, so what is left of the slot elsewhere goes."""
    kept = any(keys_in_slot(db, slot) for db in ctx.engine.keyspace.databases)
    if kept and node.cluster.owners[slot] is node and owner is not node:
        raise errors.err(
            f"Can't assign hashslot {slot} to a different node while I still hold keys for this hash slot."
        )
    if owner is node and node.importing.pop(slot, None) is not None:
        node.cluster.bump(node)
    moving.assign(node.cluster, [slot], owner, node)


Moves = list[tuple[Node, list[tuple[int, int]]]]


@command("CLUSTER MIGRATESLOTS migration-group=(slotsrange-token=(SLOTSRANGE) range=(start-slot:integer "
         "end-slot:integer)... node-token=(NODE) node-id)...", _FLAGS, group="cluster", since="9.0.0",
         complexity="O(N), N being the number of keys that move", arity=-4)  # fmt: skip
def cluster_migrateslots(ctx: Session, argv: list[bytes]) -> Reply:
    """Moves slots and their keys to another node; when it has replied, they are there."""
    node = node_of(ctx)
    moves = _moves(node, argv)
    for target, spans in moves:
        name = f"{ctx.rng.getrandbits(160):040x}"
        moving.hand_over(spans, node, target, node, name)
    return OK


def _moves(node: Node, argv: list[bytes]) -> Moves:
    """The groups of MIGRATESLOTS: targets and ranges. Raises ReplyError."""
    at, moves = 2, list[tuple[Node, list[tuple[int, int]]]]()
    taken: set[int] = set()
    while at < len(argv):
        if argv[at].upper() != b"SLOTSRANGE":
            raise errors.syntax()
        at += 1
        spans: list[tuple[int, int]] = []
        while at < len(argv) and argv[at].upper() != b"NODE":
            if at + 1 >= len(argv):
                raise errors.syntax()
            spans.append(_span(argv[at], argv[at + 1], spans))
            at += 2
        if at + 1 >= len(argv):
            raise errors.syntax()
        if not spans:
            raise errors.err("No slot ranges specified")
        target = _target(node, argv[at + 1])
        at += 2
        if node.migrating or node.importing:
            raise errors.err("Slots are being manually migrated")
        slots = {slot for first, last in spans for slot in range(first, last + 1)}
        if any(node.cluster.owners[slot] is not node for slot in slots):
            raise errors.err("Slots are not served by this node.")
        if taken & slots:
            raise errors.err("Slot ranges in migrations overlap")
        taken |= slots
        moves.append((target, spans))
    return moves


def _span(start: bytes, end: bytes, before: list[tuple[int, int]]) -> tuple[int, int]:
    first, last = slot_number(start), slot_number(end)
    if first > last:
        raise errors.err(f"Start slot number {first} is greater than end slot number {last}.")
    for low, high in before:
        if first <= high and low <= last:
            raise errors.err(f"Slot range {first}-{last} overlaps with previous range {low}-{high}.")
    return first, last


def _target(node: Node, name: bytes) -> Node:
    if len(name) != 40:
        raise errors.err(f"Invalid node name: {errors.shown(name)}")
    target = node.cluster.find(name)
    if target is None:
        raise errors.err(f"Unknown node name: {errors.shown(name)}")
    if target is node:
        raise errors.err("Target node can not be this node.")
    return target


@command(
    "CLUSTER CANCELSLOTMIGRATIONS", _FLAGS, group="cluster", since="9.0.0", complexity="O(N), N migrations"
)
def cluster_cancelslotmigrations(ctx: Session, argv: list[bytes]) -> Reply:
    """Ends the migrations under way: there are none, for each is done when it is ordered."""
    node_of(ctx)
    raise errors.err("No migrations ongoing")


@command("CLUSTER SYNCSLOTS", _FLAGS, group="cluster", since="9.0.0", complexity="O(1)", arity=-3)
def cluster_syncslots(ctx: Session, argv: list[bytes]) -> Reply:
    """What nodes of different processes say to each other while slots move."""
    node_of(ctx)
    raise errors.unsupported("CLUSTER SYNCSLOTS")


# -- nodes -------------------------------------------------------------------------------------


@command("CLUSTER BUMPEPOCH", _FLAGS, group="cluster", since="3.0.0", complexity="O(1)",
         tips="nondeterministic_output")  # fmt: skip
def cluster_bumpepoch(ctx: Session, argv: list[bytes]) -> Reply:
    """Gives this node the highest epoch."""
    node = node_of(ctx)
    word = "BUMPED" if node.cluster.bump(node) else "STILL"
    return Status(f"{word} {node.epoch}".encode())


@command(
    "CLUSTER SET-CONFIG-EPOCH config-epoch:integer", _FLAGS, group="cluster", since="3.0.0", complexity="O(1)"
)
def cluster_set_config_epoch(ctx: Session, argv: list[bytes]) -> Reply:
    """Sets the epoch of a node that knows no other; these all know each other."""
    node = node_of(ctx)
    epoch = integer(argv[2])
    if epoch < 0:
        raise errors.err(f"Invalid config epoch specified: {epoch}")
    if len(node.cluster.nodes) > 1:
        raise errors.err(
            "The user can assign a config epoch only when the node does not know any other node."
        )
    if node.epoch:
        raise errors.err("Node config epoch is already non-zero")
    node.epoch = epoch
    node.cluster.epoch = max(node.cluster.epoch, epoch)
    return OK


@command("CLUSTER SAVECONFIG", _FLAGS, group="cluster", since="3.0.0", complexity="O(1)")
def cluster_saveconfig(ctx: Session, argv: list[bytes]) -> Reply:
    """Writes the nodes' file; there is none."""
    node_of(ctx)
    return OK


@command("CLUSTER MEET ip port:integer [cluster-bus-port:integer]", _FLAGS, group="cluster", since="3.0.0",
         complexity="O(1)")  # fmt: skip
def cluster_meet(ctx: Session, argv: list[bytes]) -> Reply:
    """Makes this node know another one; those of this process know each other already."""
    node = node_of(ctx)
    if len(argv) > 5:
        raise wrong_use(argv)
    port = parse_int(argv[3])
    if port is None:
        raise errors.err(f"Invalid base port specified: {errors.shown(argv[3])}")
    if len(argv) == 5 and parse_int(argv[4]) is None:
        raise errors.err(f"Invalid bus port specified: {errors.shown(argv[4])}")
    if not 0 < port < 65536:
        raise errors.err("Port number is out of range")
    host = errors.shown(argv[2])
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise errors.err(f"Invalid node address specified: {host}:{port}") from None
    if node.cluster.at(host, port) is None:
        raise errors.unsupported("CLUSTER MEET of a node that is not of its own process")
    return OK


@command("CLUSTER FORGET node-id", _FLAGS, group="cluster", since="3.0.0", complexity="O(1)")
def cluster_forget(ctx: Session, argv: list[bytes]) -> Reply:
    """Makes this node know another one no more."""
    node = node_of(ctx)
    if node_named(node, argv[2]) is node:
        raise errors.err("I tried hard but I can't forget myself...")
    raise errors.unsupported("CLUSTER FORGET: the nodes of a process always know each other")


@command("CLUSTER REPLICATE args=(node-id|no-one=(NO ONE))", _FLAGS, group="cluster", since="3.0.0",
         complexity="O(1)", arity=-3)  # fmt: skip
def cluster_replicate(ctx: Session, argv: list[bytes]) -> Reply:
    """Makes this node a replica, or none."""
    node = node_of(ctx)
    if len(argv) > 3:
        if len(argv) == 4 and argv[2].lower() == b"no" and argv[3].lower() == b"one":
            return OK
        raise wrong_use(argv)
    if node_named(node, argv[2]) is node:
        raise errors.err("Can't replicate myself")
    if _has_keys(ctx) or node.cluster.slots_of(node):
        raise errors.err("To set a master the node must be empty and without assigned slots.")
    raise errors.unsupported("CLUSTER REPLICATE: it has no replicas")


@command(
    "CLUSTER FAILOVER options=[FORCE|TAKEOVER]", _FLAGS, group="cluster", since="3.0.0", complexity="O(1)"
)
def cluster_failover(ctx: Session, argv: list[bytes]) -> Reply:
    """Makes a replica take its primary's place; there are none."""
    node_of(ctx)
    if len(argv) > 3 or (len(argv) == 3 and argv[2].lower() not in (b"force", b"takeover")):
        raise errors.syntax()
    raise errors.err("You should send CLUSTER FAILOVER to a replica")


@command("CLUSTER RESET reset-type=[HARD|SOFT]", "admin noscript stale", group="cluster", since="3.0.0",
         complexity="O(N), N being the number of known nodes")  # fmt: skip
def cluster_reset(ctx: Session, argv: list[bytes]) -> Reply:
    """Makes this node forget the cluster."""
    node = node_of(ctx)
    if len(argv) > 3:
        raise wrong_use(argv)
    if len(argv) == 3 and argv[2].lower() not in (b"hard", b"soft"):
        raise errors.syntax()
    if _has_keys(ctx):
        raise errors.err("CLUSTER RESET can't be called with master nodes containing keys")
    if len(node.cluster.nodes) > 1:
        raise errors.unsupported("CLUSTER RESET: the nodes of a process always know each other")
    moving.assign(node.cluster, node.cluster.slots_of(node), None, node)
    if argv[2:] and argv[2].lower() == b"hard":
        node.id, node.shard_id = (f"{ctx.rng.getrandbits(160):040x}" for _ in range(2))
        node.epoch = node.cluster.epoch = 0
    return OK
