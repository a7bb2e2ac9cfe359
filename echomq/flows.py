"""Flows: parents that are held until their children are done, within a queue or across queues.

A parent row waits in no set, with a count of outstanding children. Each child that completes, or dies with
the policy "ignore", lowers the count once; the last one releases the parent to flat pending. A child that
dies with the policy "fail parent" buries the parent at once.

Within a queue the child's own transition does this. Across queues it leaves an entry in its queue's outbox,
and `deliver` of that queue carries it over, in order, possibly twice (the scripts take each child once). Run
one deliverer per queue: two could trim what the other has not delivered.

A node that dies by its child's death tells its own parent through the outbox, if it is dead after the
delivery; the original tells it also for a node that lives on, which this module does not copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .errors import ArgumentError, ServerError, Verdict, positive_int, verdict_of
from .jobs import check_payload, fail_entry
from .keys import Keys
from .resp import Arg
from .steps import Call, Part, Pipeline, RunScript, Steps, procedure, reraise

__all__ = ["Flows", "Landed", "Node"]

MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Node:
    """A job of a flow. ``queue``: None means its parent's. ``ignore_failure``: its death does not fail its parent."""

    id: str
    payload: bytes | str
    children: tuple[Node, ...] = ()
    queue: str | None = None
    ignore_failure: bool = False

    @property
    def policy(self) -> str:
        return "id" if self.ignore_failure else "fp"


class Landed(NamedTuple):
    """What an add put on the server: an id and its children, in order."""

    id: str
    children: tuple[Landed, ...] = ()


class Flows(Part):
    """Flows whose root lives in this queue."""

    # -- adding ----------------------------------------------------------------------------------

    @procedure
    def add(self, root: Node) -> Steps[Landed | Verdict]:
        """Put a flow on the server. KIND when an id is not a JOB; across queues the parent then stays held.

        Rows that exist are overwritten. Atomic only when all children are leaves of the root's queue.
        """
        self._check(root)
        try:
            if any(child.children for child in root.children):
                yield from self._tree(root, self.queue, None, None)
            elif any(child.queue not in (None, self.queue) for child in root.children):
                yield from self._across(root)
            else:
                yield from self._within(root)
        except ServerError as error:
            return verdict_of(error, {"EMQKIND": Verdict.KIND})
        return _landed(root)

    @procedure
    def add_bulk(self, roots: Sequence[Node]) -> Steps[list[Landed]]:
        """Add each in turn; those that failed are left out of the answer."""
        landed = []
        for root in roots:
            answer = yield from self.add.steps(root)
            if isinstance(answer, Landed):
                landed.append(answer)
        return landed

    def _check(self, root: Node) -> None:
        if not root.children:
            raise ArgumentError("a flow needs at least one child: nobody would release its parent")
        seen = set()
        for node, depth in _walk(root, 1):
            if depth > MAX_DEPTH:
                raise ArgumentError(f"flow_too_deep: a flow has at most {MAX_DEPTH} levels")
            if node.id in seen:
                raise ArgumentError(f"flow_cycle: {node.id} is in the flow twice")
            seen.add(node.id)
            Keys(node.queue or self.queue).job(node.id)
            check_payload(node.payload)

    def _within(self, root: Node) -> Steps[None]:
        keys = self.keys
        key_list = [keys.job(root.id), keys.dependencies(root.id), keys.pending]
        args: list[Arg] = [root.id, root.payload, len(root.children)]
        for child in root.children:
            key_list.append(keys.job(child.id))
            args += [child.id, child.payload]
        yield RunScript("enqueue_flow", key_list, args)
        policies = yield Pipeline(
            [("HSET", keys.job(child.id), "parent_policy", child.policy) for child in root.children]
        )
        for reply in policies:
            reraise(reply)

    def _across(self, root: Node) -> Steps[None]:
        yield from self._hold(self.keys, root)
        for child in root.children:
            yield from self._leaf(child, child.queue or self.queue, root.id, self.queue)

    def _tree(self, node: Node, queue: str, parent: str | None, parent_queue: str | None) -> Steps[None]:
        """Depth first, a parent before its children."""
        keys = Keys(queue)
        yield from self._hold(keys, node)
        if parent is not None and parent_queue is not None:
            fields: list[Arg] = ["parent", parent]
            if parent_queue != queue:
                fields += ["parent_queue", parent_queue]
            yield Call("HSET", keys.job(node.id), *fields, "parent_policy", node.policy)
        for child in node.children:
            child_queue = child.queue or queue
            if child.children:
                yield from self._tree(child, child_queue, node.id, queue)
            else:
                yield from self._leaf(child, child_queue, node.id, queue)

    @staticmethod
    def _hold(keys: Keys, node: Node) -> Steps[None]:
        key_list = (keys.job(node.id), keys.dependencies(node.id))
        yield RunScript("hold_parent", key_list, (node.id, node.payload, len(node.children)))

    @staticmethod
    def _leaf(child: Node, queue: str, parent: str, parent_queue: str) -> Steps[None]:
        keys = Keys(queue)
        row = keys.job(child.id)
        elsewhere = "" if parent_queue == queue else parent_queue
        args = (child.id, child.payload, parent, elsewhere)
        yield RunScript("enqueue_flow_child", (row, keys.pending, keys.wake), args)
        yield Call("HSET", row, "parent_policy", child.policy)

    # -- reading ---------------------------------------------------------------------------------

    @procedure
    def children_values(self, parent: str) -> Steps[dict[str, bytes]]:
        """The results of completed children, by id."""
        return (yield from _hash(self.keys.processed(parent)))

    @procedure
    def ignored_failures(self, parent: str) -> Steps[dict[str, bytes]]:
        """The errors of dead children that were ignored, by id."""
        return (yield from _hash(self.keys.unsuccessful(parent)))

    @procedure
    def failures(self, parent: str) -> Steps[dict[str, bytes]]:
        """The errors of dead children that failed the parent, by id."""
        return (yield from _hash(self.keys.failed(parent)))

    @procedure
    def dependencies(self, parent: str) -> Steps[int]:
        """How many children are outstanding."""
        return int((yield Call("GET", self.keys.dependencies(parent))) or 0)

    # -- delivering ------------------------------------------------------------------------------

    @procedure
    def deliver(self, batch: int = 100) -> Steps[int]:
        """Carry up to ``batch`` entries of this queue's outbox to their parents; how many.

        Stops at the first entry that cannot be delivered; the ones before it are trimmed.
        """
        positive_int("batch", batch)
        entries = yield Call("LRANGE", self.keys.outbox, 0, batch - 1)
        delivered = 0
        for entry in entries:
            if not (yield from self._deliver(entry)):
                break
            delivered += 1
        if delivered:
            yield Call("LTRIM", self.keys.outbox, delivered, -1)
        return delivered

    def _deliver(self, entry: bytes) -> Steps[bool]:
        failed = entry.startswith(b"\0fail\0")
        parts = entry.split(b"\0", 6 if failed else 3)
        if len(parts) != (7 if failed else 4):
            return False
        queue, parent_id = parts[2:4] if failed else parts[:2]
        try:
            keys, parent = Keys(queue.decode()), parent_id.decode()
            row = keys.job(parent)
        except (ArgumentError, UnicodeDecodeError):
            return False
        if failed:
            return (yield from self._deliver_failure(keys, parent, parts[4], parts[5], parts[6]))
        key_list = (keys.dependencies(parent), keys.processed(parent), row)
        reply = yield RunScript("flow_deliver", key_list, (parts[2], parts[3], parent, keys.base))
        return bool(reply == 1)

    @staticmethod
    def _deliver_failure(keys: Keys, parent: str, child: bytes, policy: bytes, error: bytes) -> Steps[bool]:
        row = keys.job(parent)
        before = yield Call("HGET", row, "state")
        key_list = (keys.dependencies(parent), keys.failed(parent), keys.unsuccessful(parent), row)
        reply = yield RunScript("flow_fail_deliver", key_list, (child, error, policy, keys.base, parent))
        if reply != 1:
            return False
        if before != b"dead":
            fields = ("state", "parent", "parent_queue", "parent_policy")
            state, above, above_queue, own = yield Call("HMGET", row, *fields)
            if state == b"dead" and above is not None:
                above_queue = above_queue if above_queue is not None else keys.queue.encode()
                own = b"id" if own == b"id" else b"fp"
                entry = fail_entry(above_queue, above, parent.encode(), own, error)
                yield Call("RPUSH", keys.outbox, entry)
        return True


def _hash(key: str) -> Steps[dict[str, bytes]]:
    reply = yield Call("HGETALL", key)
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
    return {field.decode(): value for field, value in pairs}


def _walk(node: Node, depth: int) -> Iterator[tuple[Node, int]]:
    yield node, depth
    if depth <= MAX_DEPTH:
        for child in node.children:
            yield from _walk(child, depth + 1)


def _landed(node: Node) -> Landed:
    return Landed(node.id, tuple(map(_landed, node.children)))
