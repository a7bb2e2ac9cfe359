"""CLUSTER, the subcommands that look: at nodes, slots, keys; and READONLY, READWRITE, ASKING.

What they tell of is `emuredis.engine.cluster`. An engine that is no node of a cluster refuses all of them, as the
server does, but KEYSLOT, READONLY and READWRITE. Those that change something are in `cluster_admin`.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.commands.help_texts import CLUSTER
from emuredis.engine.cluster import Migration, Node
from emuredis.keyspace.slot_index import keys_in_slot
from emuredis.replies import OK, Map, Reply, Status, Verbatim
from emuredis.scalars import parse_int
from emuredis.slots import SLOTS, key_slot
from emuredis.spec import command, container

if TYPE_CHECKING:
    from emuredis.engine.session import Session

__all__ = ["node_named", "node_of", "slot_number", "wrong_use"]

#: What the server counts of the bus.
_TRAFFIC = ("messages", "bytes", "pubsub_bytes", "module_bytes")
#: What the port of a node is lower by than that of its bus.
BUS = 10000


def node_of(ctx: Session) -> Node:
    """The node that the session's engine is. Raises the server's error where it is none."""
    node = ctx.engine.cluster
    if node is None:
        raise errors.err("This instance has cluster support disabled")
    return node


def node_named(node: Node, name: bytes) -> Node:
    """The node of this id, or ``Unknown node``."""
    found = node.cluster.find(name)
    if found is None:
        raise errors.err(f"Unknown node {errors.shown(name)}")
    return found


def slot_number(text: bytes) -> int:
    """A slot, or ``Invalid or out of range slot``."""
    slot = parse_int(text)
    if slot is None or not 0 <= slot < SLOTS:
        raise errors.err("Invalid or out of range slot")
    return slot


def wrong_use(argv: list[bytes]) -> errors.ReplyError:
    """What the server says of a subcommand whose arguments it cannot make out."""
    word = errors.shown(argv[1], 128)
    return errors.err(f"unknown subcommand or wrong number of arguments for '{word}'. Try CLUSTER HELP.")


container("CLUSTER", "Looks after a node of a cluster.", group="cluster", since="3.0.0")


@command("CLUSTER HELP", "loading stale", group="cluster", since="5.0.0", complexity="O(1)")
def cluster_help(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells about the subcommands."""
    node_of(ctx)
    return [Status(line) for line in CLUSTER]


# -- nodes -------------------------------------------------------------------------------------


@command("CLUSTER MYID", "loading stale", group="cluster", since="3.0.0", complexity="O(1)")
def cluster_myid(ctx: Session, argv: list[bytes]) -> Reply:
    """Gives this node's id."""
    return node_of(ctx).id.encode()


@command("CLUSTER MYSHARDID", "loading stale", group="cluster", since="7.2.0", complexity="O(1)",
         tips="nondeterministic_output")  # fmt: skip
def cluster_myshardid(ctx: Session, argv: list[bytes]) -> Reply:
    """Gives the id of this node's shard."""
    return node_of(ctx).shard_id.encode()


@command("CLUSTER INFO", "loading stale", group="cluster", since="3.0.0", complexity="O(1)",
         tips="nondeterministic_output")  # fmt: skip
def cluster_info(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells how the cluster is as a whole."""
    node = node_of(ctx)
    cluster = node.cluster
    assigned = SLOTS - cluster.unserved
    fields = {
        "cluster_state": "ok" if node.healthy else "fail",
        "cluster_slots_assigned": assigned,
        "cluster_slots_ok": assigned,
        **dict.fromkeys(("cluster_slots_pfail", "cluster_slots_fail", "cluster_nodes_pfail", "cluster_nodes_fail"), 0),
        **dict.fromkeys(("cluster_voting_nodes_pfail", "cluster_voting_nodes_fail"), 0),
        "cluster_known_nodes": len(cluster.nodes),
        "cluster_size": sum(1 for each in cluster.nodes if cluster.ranges(each)),
        "cluster_current_epoch": cluster.epoch,
        "cluster_my_epoch": node.epoch,
        # There is no bus between nodes of one process.
        **{f"cluster_stats_{what}_{way}": 0 for what in _TRAFFIC for way in ("sent", "received")},
        "total_cluster_links_buffer_limit_exceeded": 0,
    }  # fmt: skip
    return Verbatim("".join(f"{name}:{value}\r\n" for name, value in fields.items()).encode())


@command("CLUSTER NODES", "loading stale", group="cluster", since="3.0.0",
         complexity="O(N), N being the number of nodes", tips="nondeterministic_output")  # fmt: skip
def cluster_nodes(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells of all nodes, a line for each."""
    me = node_of(ctx)
    lines = [_line(node, node is me, ctx.now) + "\n" for node in me.cluster.nodes]
    return Verbatim("".join(lines).encode())


def _line(node: Node, myself: bool, now: int) -> str:
    flags = "myself,master" if myself else "master"
    words = [node.id, f"{node.address}@{node.port + BUS}", flags, "-", "0", "0" if myself else str(now),
             str(node.epoch), "connected"]  # fmt: skip
    for first, last in node.cluster.ranges(node):
        words.append(str(first) if first == last else f"{first}-{last}")
    if myself:
        words += [f"[{slot}->-{other.id}]" for slot, other in sorted(node.migrating.items())]
        words += [f"[{slot}-<-{other.id}]" for slot, other in sorted(node.importing.items())]
    return " ".join(words)


@command("CLUSTER SLOTS", "loading stale", group="cluster", since="3.0.0",
         complexity="O(N), N being the number of slots", tips="nondeterministic_output")  # fmt: skip
def cluster_slots(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells which node has which slots, range by range."""
    cluster = node_of(ctx).cluster
    rows = [(first, last, node) for node in cluster.nodes for first, last in cluster.ranges(node)]
    rows.sort(key=lambda row: row[0])
    return [
        [first, last, [node.host.encode(), node.port, node.id.encode(), Map()]] for first, last, node in rows
    ]


@command("CLUSTER SHARDS", "loading stale", group="cluster", since="7.0.0",
         complexity="O(N), N being the number of nodes", tips="nondeterministic_output")  # fmt: skip
def cluster_shards(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells of the shards: their slots and their nodes."""
    return [_shard(node) for node in node_of(ctx).cluster.nodes]


def _shard(node: Node) -> Map:
    slots = [edge for pair in node.cluster.ranges(node) for edge in pair]
    host = node.host.encode()
    told = Map(
        [b"id", node.id.encode(), b"port", node.port, b"ip", host, b"endpoint", host, b"role", b"master"]
    )
    told += [b"replication-offset", 0, b"health", b"online"]
    return Map([b"slots", slots, b"nodes", [told], b"id", node.shard_id.encode()])


@command("CLUSTER LINKS", "stale", group="cluster", since="7.0.0", complexity="O(N), N being the number of nodes",
         tips="nondeterministic_output")  # fmt: skip
def cluster_links(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells of the links to and from the other nodes: one process needs none, so their buffers are empty."""
    me = node_of(ctx)
    since = ctx.engine.started_ns // 1_000_000
    return [
        Map([b"direction", way, b"node", node.id.encode(), b"create-time", since, b"events", b"r",
             b"send-buffer-allocated", 0, b"send-buffer-used", 0])
        for node in me.cluster.nodes if node is not me for way in (b"to", b"from")
    ]  # fmt: skip


def _replicas(ctx: Session, argv: list[bytes]) -> Reply:
    """No node has any."""
    node_named(node_of(ctx), argv[2])
    return []


_REPLICAS = "O(N), N being the number of replicas"


@command("CLUSTER REPLICAS node-id", "admin stale", group="cluster", since="5.0.0", complexity=_REPLICAS,
         tips="nondeterministic_output")  # fmt: skip
def cluster_replicas(ctx: Session, argv: list[bytes]) -> Reply:
    """Lists the replicas of a node: none."""
    return _replicas(ctx, argv)


@command("CLUSTER SLAVES node-id", "admin stale", group="cluster", since="3.0.0", complexity=_REPLICAS,
         tips="nondeterministic_output")  # fmt: skip
def cluster_slaves(ctx: Session, argv: list[bytes]) -> Reply:
    """Lists the replicas of a node: none."""
    return _replicas(ctx, argv)


@command("CLUSTER COUNT-FAILURE-REPORTS node-id", "admin stale", group="cluster", since="3.0.0",
         complexity="O(N), N being the number of failure reports", tips="nondeterministic_output")  # fmt: skip
def cluster_count_failure_reports(ctx: Session, argv: list[bytes]) -> Reply:
    """Counts who says that a node fails: nobody."""
    node_named(node_of(ctx), argv[2])
    return 0


@command("CLUSTER GETSLOTMIGRATIONS", "admin no_async_loading stale", group="cluster", since="9.0.0",
         complexity="O(N), N being the number of migrations that are remembered")  # fmt: skip
def cluster_getslotmigrations(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells of the slots that MIGRATESLOTS has moved, the latest first."""
    node = node_of(ctx)
    return [_migration(done, node) for done in node.migrations]


def _migration(done: Migration, node: Node) -> Map:
    spans = " ".join(f"{first}-{last}" for first, last in done.slots).encode()
    told = Map([b"name", done.name.encode(), b"operation", b"EXPORT" if done.source is node else b"IMPORT"])
    told += [
        b"slot_ranges",
        spans,
        b"target_node",
        done.target.id.encode(),
        b"source_node",
        done.source.id.encode(),
    ]
    told += [
        item for word in (b"create_time", b"last_update_time", b"last_ack_time") for item in (word, done.at)
    ]
    told += [b"state", b"success", b"message", b"", b"cow_size", 0, b"remaining_repl_size", 0]
    return told


# -- keys --------------------------------------------------------------------------------------


@command("CLUSTER KEYSLOT key:string", "stale", group="cluster", since="3.0.0",
         complexity="O(N), N being the length of the key")  # fmt: skip
def cluster_keyslot(ctx: Session, argv: list[bytes]) -> Reply:
    """Gives the slot of a key."""
    return key_slot(argv[2])


@command("CLUSTER COUNTKEYSINSLOT slot:integer", "stale", group="cluster", since="3.0.0", complexity="O(1)")
def cluster_countkeysinslot(ctx: Session, argv: list[bytes]) -> Reply:
    """Counts the keys that the chosen database of this node has in a slot."""
    node_of(ctx)
    slot = integer(argv[2])
    if not 0 <= slot < SLOTS:
        raise errors.err("Invalid slot")
    return len(keys_in_slot(ctx.db, slot))


def _count(ctx: Session, slot: int) -> int:
    return sum(len(keys_in_slot(db, slot)) for db in ctx.engine.keyspace.databases)


@command("CLUSTER GETKEYSINSLOT slot:integer count:integer", "stale", group="cluster", since="3.0.0",
         complexity="O(N), N being the number of keys asked for", tips="nondeterministic_output")  # fmt: skip
def cluster_getkeysinslot(ctx: Session, argv: list[bytes]) -> Reply:
    """Names keys that this node has in a slot."""
    node_of(ctx)
    slot, count = integer(argv[2]), integer(argv[3])
    if not 0 <= slot < SLOTS or count < 0:
        raise errors.err("Invalid slot or number of keys")
    return list(islice(keys_in_slot(ctx.db, slot), count))


@command("CLUSTER SLOT-STATS filter=(SLOTSRANGE slotsrange=(start-slot:integer end-slot:integer)|ORDERBY "
         "orderby=(metric [LIMIT limit:integer] order=[ASC|DESC]))", "loading stale", group="cluster", since="8.0.0",
         complexity="O(N log N), N being the number of slots", arity=-4,
         tips="nondeterministic_output request_policy:all_shards")  # fmt: skip
def cluster_slot_stats(ctx: Session, argv: list[bytes]) -> Reply:
    """Counts the keys in this node's slots."""
    node = node_of(ctx)
    word = argv[2].upper()
    if word == b"SLOTSRANGE" and len(argv) == 5:
        first, last = slot_number(argv[3]), slot_number(argv[4])
        if first > last:
            raise errors.err(f"Start slot number {first} is greater than end slot number {last}")
        slots = [slot for slot in range(first, last + 1) if node.cluster.owners[slot] is node]
    elif word == b"ORDERBY" and len(argv) >= 4:
        slots = _ordered(ctx, node, argv)
    else:
        raise wrong_use(argv)
    return [[slot, Map([b"key-count", _count(ctx, slot)])] for slot in slots]


def _ordered(ctx: Session, node: Node, argv: list[bytes]) -> list[int]:
    """The slots that ORDERBY asks for, the fullest first unless it says otherwise."""
    limit, descending = SLOTS, True
    seen: set[str] = set()
    if argv[3].lower() != b"key-count":  # the others are counted with cluster-slot-stats-enabled only
        raise errors.err("Unrecognized sort metric for ORDERBY.")
    at = 4
    while at < len(argv):
        word = argv[at].upper()
        if word == b"LIMIT" and at + 1 < len(argv):
            given = parse_int(argv[at + 1])
            if given is None or not 1 <= given <= SLOTS:
                raise errors.err("Limit has to lie in between 1 and 16384 (maximum number of slots).")
            limit, kind = given, "limit"
            at += 1
        elif word in (b"ASC", b"DESC"):
            descending, kind = word == b"DESC", "order"
        else:
            raise errors.syntax()
        if kind in seen:
            raise errors.err("Multiple filters of the same type are disallowed.")
        seen.add(kind)
        at += 1
    slots = [(_count(ctx, slot), slot) for slot in node.cluster.slots_of(node)]
    slots.sort(key=lambda one: (-one[0] if descending else one[0], one[1]))
    return [slot for _, slot in slots[:limit]]


# -- the connection ----------------------------------------------------------------------------


@command("ASKING", "fast", group="cluster", since="3.0.0", complexity="O(1)", acl="connection")
def asking(ctx: Session, argv: list[bytes]) -> Reply:
    """Lets the next command use a slot that this node is taking over."""
    node_of(ctx)
    # The gate of the next command counts it down; within a transaction it is gone at the end.
    ctx.asking = 1 if ctx.deny_blocking else 2
    return OK


@command(
    "READONLY", "loading stale fast", group="cluster", since="3.0.0", complexity="O(1)", acl="connection"
)
def readonly(ctx: Session, argv: list[bytes]) -> Reply:
    """Lets this connection read from a replica, which there is none of."""
    ctx.readonly = True
    return OK


@command(
    "READWRITE", "loading stale fast", group="cluster", since="3.0.0", complexity="O(1)", acl="connection"
)
def readwrite(ctx: Session, argv: list[bytes]) -> Reply:
    """The end of READONLY."""
    ctx.readonly = False
    return OK
