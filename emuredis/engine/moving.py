"""Slots that change hands: their keys go along, and whoever waits or listens there is told.

A slot is moved whole, in one step for every client: the keys go from one keyspace to the other with their deadlines,
transactions that watch them will fail, commands blocked on them end with a redirection, and subscriptions to shard
channels of the slot end. Nothing moves from or to a node that a script keeps busy. To be called with the lock that the
nodes share. ``running`` is the node whose command is being run, if one is: its unit is open already, the others get one
of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from emuredis.engine.cluster import DOWN, UNSERVED, Cluster, Migration, Node
from emuredis.errors import ReplyError
from emuredis.keyspace import notify
from emuredis.keyspace.slot_index import keys_in_slot
from emuredis.replies import Push
from emuredis.slots import key_slot
from emuredis.values.hash import Hash
from emuredis.values.list import List
from emuredis.values.set import Set
from emuredis.values.stream import Stream
from emuredis.values.zset import ZSet

if TYPE_CHECKING:
    from emuredis.keyspace.database import Database

__all__ = ["assign", "drop_keys", "hand_over", "move_key", "redirect", "within"]

#: The event with which a key arrives. The server sends what it copies with: several for a large or a special value.
_ARRIVES = {
    bytes: (notify.STRING, b"set"),
    List: (notify.LIST, b"rpush"),
    Set: (notify.SET, b"sadd"),
    ZSet: (notify.ZSET, b"zadd"),
    Hash: (notify.HASH, b"hset"),
    Stream: (notify.STREAM, b"xadd"),
}
#: How many migrations a node remembers (cluster-slot-migration-log-max-len).
REMEMBERED = 1000


def within(node: Node, running: Node | None, action: Callable[[], None]) -> None:
    """Call ``action`` in a unit of ``node``."""
    if node is running:
        action()
    else:
        node.engine.in_unit(action)


def _check_idle(nodes: list[Node], running: Node | None) -> None:
    """Keys must not come or go under a script that is being run. Raises ReplyError (BUSY)."""
    for node in nodes:
        if node is not running and node.engine.busy.on:
            raise node.engine.busy.refusal()


def hand_over(
    spans: list[tuple[int, int]], source: Node, target: Node, running: Node | None, name: str = ""
) -> None:
    """Move ranges of slots with their keys, O(keys). ``name``: of the migration, if both sides are to remember it."""
    slots = [slot for first, last in spans for slot in range(first, last + 1)]
    _check_idle([source, target], running)
    within(source, running, lambda: within(target, running, lambda: _carry(slots, source, target)))
    assign(source.cluster, slots, target, running)
    source.cluster.bump(target)
    if name:
        at = source.engine.now_ns() // 1_000_000_000
        done = Migration(name, spans, source, target, at)
        for node in (source, target):
            node.migrations = [done, *node.migrations[: REMEMBERED - 1]]


def _carry(slots: list[int], source: Node, target: Node) -> None:
    for db in source.engine.keyspace.databases:
        other = target.engine.keyspace.databases[db.index]
        for slot in slots:
            for key in list(keys_in_slot(db, slot)):
                move_key(db, other, key, target)


def move_key(db: Database, other: Database, key: bytes, target: Node) -> None:
    """Take a key from ``db``, where it is, to ``other``, a database of the node ``target``."""
    value: Any = db.own(key, db.data[key])
    deadline = db.deadlines.get(key)
    encoding = db.noted_encoding(key, value) if value.__class__ is bytes else None
    db.remove(key)
    db.touch(key, 0, b"")
    if encoding is not None:
        value = other.note_encoding(key, value, encoding)
    if hasattr(value, "limits"):
        value.limits = target.engine.limits
    other.put(key, value)
    if deadline is not None:
        other.expire_at(key, deadline)
    other.adopt_fields(key, value)
    other.touch(key, *_ARRIVES[value.__class__])
    if deadline is not None:
        other.notify(key, notify.GENERIC, b"expire")


def drop_keys(node: Node, slot: int, event: bytes = b"") -> None:
    """Delete the keys of a slot, within a unit of the node. Without ``event`` no message tells of it."""
    for db in node.engine.keyspace.databases:
        for key in list(keys_in_slot(db, slot)):
            db.remove(key)
            db.touch(key, notify.GENERIC, event)


def assign(cluster: Cluster, slots: Iterable[int], owner: Node | None, running: Node | None) -> None:
    """Make ``owner`` (None: nobody) the owner of ``slots``; who had them loses keys left there, waiters, listeners."""
    slots = list(slots)
    losers = [
        node for node in cluster.nodes if node is not owner and any(cluster.owners[s] is node for s in slots)
    ]
    _check_idle(losers, running)
    cluster.assign(slots, owner)
    for node in losers:
        within(node, running, lambda node=node: _give_up(node, slots, owner is not None))  # type: ignore[misc]
    for node in cluster.nodes:
        if owner is None and not node.healthy:
            within(node, running, lambda node=node: _down(node))  # type: ignore[misc]


def _give_up(node: Node, slots: list[int], for_good: bool) -> None:
    if for_good:
        for slot in slots:
            drop_keys(node, slot)
    redirect(node, slots)


def _down(node: Node) -> None:
    """The node serves no keys now: nobody may wait for one."""
    for session in list(node.engine.sessions.values()):
        if session.waiter is not None and session.waiter.keys:
            node.engine.waiting.finish(session.waiter, ReplyError(DOWN))


def redirect(node: Node, slots: Iterable[int]) -> None:
    """End what clients of ``node`` wait for or listen to in slots that it does not serve any more."""
    gone = {slot for slot in slots if node.cluster.owners[slot] is not node and slot not in node.importing}
    if not gone:
        return
    engine = node.engine
    for session in list(engine.sessions.values()):
        waiter = session.waiter
        if waiter is not None and waiter.keys and (slot := key_slot(waiter.keys[0])) in gone:
            owner = node.cluster.owners[slot]
            error = UNSERVED if owner is None else f"MOVED {slot} {owner.address}"
            engine.waiting.finish(waiter, ReplyError(error))
    for channel, sessions in list(engine.pubsub.shard_channels.items()):
        if key_slot(channel) in gone:
            for session in list(sessions):
                engine.pubsub.unsubscribe("shard_channels", session, channel)
                left = len(session.shard_channels)
                engine.outbox.append((session, Push([b"sunsubscribe", channel, left])))
