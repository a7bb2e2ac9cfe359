"""Scenarios 47-55: flows, within a queue and across queues."""

from __future__ import annotations

from ..errors import Verdict
from ..flows import Flows, Landed, Node
from ..jobs import Jobs
from .world import LEASE_MS, World, check, equal, scenario


class Branch:
    """Another queue that a scenario uses, cleaned with it."""

    def __init__(self, w: World, name: str) -> None:
        self.queue = f"{w.queue}.{name}"
        self.jobs = Jobs(w.link, self.queue, w.minter)
        self.flows = Flows(w.link, self.queue)
        self.keys = self.jobs.keys
        w.also(self.keys)

    def state(self, job_id: str) -> str | None:
        """The row's own state."""
        value = self.jobs.link.connection.call("HGET", self.keys.job(job_id), "state")
        return None if value is None else value.decode()

    def outbox(self) -> list[bytes]:
        """The entries that wait for delivery."""
        entries: list[bytes] = self.jobs.link.connection.call("LRANGE", self.keys.outbox, 0, -1)
        return entries

    def serve(self, *, result: bytes | None = None, dies: str | None = None) -> str:
        """Claim a job and complete or bury it; its id."""
        job = self.jobs.claim(LEASE_MS)
        check("a job to serve", job)
        assert job is not None
        if dies is None:
            equal("complete", self.jobs.complete(job.id, job.token, result), Verdict.OK)
        else:
            equal("bury", self.jobs.retry(job.id, job.token, 0, 1, dies), Verdict.DEAD)
        return job.id


def _here(w: World) -> Branch:
    branch = Branch(w, "here")
    branch.queue, branch.jobs, branch.keys = w.queue, w.jobs, w.keys
    branch.flows = Flows(w.link, w.queue)
    return branch


def _leaf(w: World, queue: str | None = None, *, ignore: bool = False) -> Node:
    return Node(w.mint(), b"child", queue=queue, ignore_failure=ignore)


@scenario
def flow_add(w: World) -> None:
    flows = Flows(w.link, w.queue)
    root = Node(w.mint(), b"parent", (_leaf(w), _leaf(w)))
    a, b = (child.id for child in root.children)
    equal("add", flows.add(root), Landed(root.id, (Landed(a), Landed(b))))
    equal("dependencies", flows.dependencies(root.id), 2)
    equal("parent", w.metrics.get_job_state(root.id), "awaiting_children")
    equal("claims", [w.take().id, w.take().id], [a, b])
    equal("no more", w.jobs.claim(LEASE_MS), None)


@scenario
def flow_fanin(w: World) -> None:
    here = _here(w)
    root = Node(w.mint(), b"parent", (_leaf(w), _leaf(w)))
    here.flows.add(root)
    first = w.take()
    w.jobs.complete(first.id, first.token)
    equal("after one", here.flows.dependencies(root.id), 1)
    equal("again", w.jobs.complete(first.id, first.token), Verdict.GONE)
    equal("still", here.flows.dependencies(root.id), 1)
    equal("parent", w.state(root.id), "awaiting_children")
    second = here.serve()
    equal("after two", here.flows.dependencies(root.id), 0)
    equal("processed", sorted(here.flows.children_values(root.id)), sorted((first.id, second)))
    equal("parent", w.take().id, root.id)


@scenario
def flow_children_values(w: World) -> None:
    here = _here(w)
    root = Node(w.mint(), b"parent", (_leaf(w), _leaf(w)))
    here.flows.add(root)
    a, b = (child.id for child in root.children)
    outstanding = [here.flows.dependencies(root.id)]
    for result in (b"one", b"two"):
        here.serve(result=result)
        outstanding.append(here.flows.dependencies(root.id))
    equal("dependencies", outstanding, [2, 1, 0])
    for _ in range(2):
        equal("values", here.flows.children_values(root.id), {a: b"one", b: b"two"})


@scenario
def flow_cross_queue(w: World) -> None:
    here, there = _here(w), Branch(w, "child")
    root = Node(w.mint(), b"parent", (_leaf(w, there.queue),))
    here.flows.add(root)
    child = there.serve(result=b"done\0whole")
    entries = there.outbox()
    equal("outbox", len(entries), 1)
    equal("held", w.state(root.id), "awaiting_children")
    equal("deliver", there.flows.deliver(), 1)
    equal("result", here.flows.children_values(root.id), {child: b"done\0whole"})
    w.connection.call("RPUSH", there.keys.outbox, entries[0])
    equal("deliver again", there.flows.deliver(), 1)
    equal("dependencies", here.flows.dependencies(root.id), 0)
    equal("claim", w.take().id, root.id)
    equal("only once", w.jobs.claim(LEASE_MS), None)


@scenario
def flow_fail_parent(w: World) -> None:
    here, there = _here(w), Branch(w, "child")
    same = Node(w.mint(), b"parent", (_leaf(w),))
    here.flows.add(same)
    child = here.serve(dies="boom")
    equal("same queue", w.metrics.get_job_state(same.id), "dead")
    equal("failed", here.flows.failures(same.id), {child: b"boom"})

    far = Node(w.mint(), b"parent", (_leaf(w, there.queue),))
    here.flows.add(far)
    child = there.serve(dies="bang")
    entries = there.outbox()
    equal("held", w.state(far.id), "awaiting_children")
    equal("deliver", there.flows.deliver(), 1)
    equal("dead", w.metrics.get_job_state(far.id), "dead")
    w.connection.call("RPUSH", there.keys.outbox, entries[0])
    there.flows.deliver()
    equal("failed once", here.flows.failures(far.id), {child: b"bang"})


@scenario
def flow_ignore_dep(w: World) -> None:
    here = _here(w)
    root = Node(w.mint(), b"parent", (_leaf(w, ignore=True), _leaf(w)))
    here.flows.add(root)
    ignored = here.serve(dies="boom")
    equal("dependencies", here.flows.dependencies(root.id), 1)
    equal("held", w.state(root.id), "awaiting_children")
    other = here.serve(result=b"fine")
    equal("parent", w.take().id, root.id)
    equal("ignored", here.flows.ignored_failures(root.id), {ignored: b"boom"})
    equal("values", here.flows.children_values(root.id), {other: b"fine"})
    equal("failed", here.flows.failures(root.id), {})


@scenario
def flow_add_bulk(w: World) -> None:
    here, there = _here(w), Branch(w, "child")
    good = [Node(w.mint(), b"parent", (_leaf(w),)) for _ in range(2)]
    bad = Node(w.mint(), b"parent", (Node(w.mint("ORD"), b"child", queue=there.queue),))
    landed = here.flows.add_bulk([*good, bad])
    equal("landed", [flow.id for flow in landed], [root.id for root in good])
    equal("third parent", w.state(bad.id), "awaiting_children")
    claimed = sorted((w.take().id, w.take().id))
    equal("children", claimed, sorted(root.children[0].id for root in good))


@scenario
def flow_grandchild(w: World) -> None:
    here = _here(w)
    node = Node(w.mint(), b"node", (_leaf(w),))
    root = Node(w.mint(), b"root", (node,))
    here.flows.add(root)
    equal("grandchild", here.serve(), node.children[0].id)
    equal("node", here.serve(), node.id)
    equal("root", here.serve(), root.id)

    middle, low = Branch(w, "middle"), Branch(w, "low")
    node = Node(w.mint(), b"node", (_leaf(w, low.queue),), queue=middle.queue)
    root = Node(w.mint(), b"root", (node,))
    here.flows.add(root)
    low.serve()
    equal("node is held", middle.state(node.id), "awaiting_children")
    equal("first hop", low.flows.deliver(), 1)
    equal("node", middle.serve(), node.id)
    equal("root is held", w.state(root.id), "awaiting_children")
    equal("second hop", middle.flows.deliver(), 1)
    equal("root", here.serve(), root.id)


@scenario
def flow_grandchild_fail(w: World) -> None:
    here = _here(w)
    _fail_within(w, here)
    _fail_four_levels(w, here)
    _fail_across(w, here)
    node = Node(w.mint(), b"node", (_leaf(w),), ignore_failure=True)
    root = Node(w.mint(), b"root", (node,))
    here.flows.add(root)
    here.serve(dies="boom")
    equal("deliver", here.flows.deliver(), 1)
    equal("the root goes on", w.state(root.id), "pending")
    equal("ignored", here.flows.ignored_failures(root.id), {node.id: b"boom"})


def _fail_within(w: World, here: Branch) -> None:
    node = Node(w.mint(), b"node", (_leaf(w),))
    root = Node(w.mint(), b"root", (node,))
    here.flows.add(root)
    here.serve(dies="boom")
    equal("node at once", w.state(node.id), "dead")
    equal("root not yet", w.state(root.id), "awaiting_children")
    equal("one deliver", here.flows.deliver(), 1)
    equal("root", w.state(root.id), "dead")
    equal("failed", here.flows.failures(root.id), {node.id: b"boom"})


def _fail_four_levels(w: World, here: Branch) -> None:
    low = Node(w.mint(), b"low", (_leaf(w),))
    high = Node(w.mint(), b"high", (low,))
    root = Node(w.mint(), b"root", (high,))
    here.flows.add(root)
    here.serve(dies="boom")
    equal("first deliver", (here.flows.deliver(), w.state(high.id)), (1, "dead"))
    equal("root not yet", w.state(root.id), "awaiting_children")
    equal("second deliver", (here.flows.deliver(), w.state(root.id)), (1, "dead"))
    equal("third deliver", here.flows.deliver(), 0)


def _fail_across(w: World, here: Branch) -> None:
    middle, low = Branch(w, "middle"), Branch(w, "low")
    node = Node(w.mint(), b"node", (_leaf(w, low.queue),), queue=middle.queue)
    root = Node(w.mint(), b"root", (node,))
    here.flows.add(root)
    low.serve(dies="boom")
    (entry,) = low.outbox()
    equal("first hop", (low.flows.deliver(), middle.state(node.id)), (1, "dead"))
    equal("second hop", (middle.flows.deliver(), w.state(root.id)), (1, "dead"))
    w.connection.call("RPUSH", low.keys.outbox, entry)
    equal("again", low.flows.deliver(), 1)
    equal("nothing new", (middle.outbox(), middle.flows.deliver()), ([], 0))
    equal("counted once", here.flows.failures(root.id), {node.id: b"boom"})
