"""Scenarios 44-46: lanes under an operator's hand."""

from __future__ import annotations

from ..errors import Verdict
from .world import LEASE_MS, World, check, equal, scenario


def _in_flight(w: World, group: str) -> int:
    return int(w.connection.call("HGET", w.keys.gactive, group) or 0)


def _on_ring(w: World) -> list[str]:
    return [group.decode() for group in w.connection.call("LRANGE", w.keys.ring, 0, -1)]


@scenario
def reassign(w: World) -> None:
    source, destination = w.groups(2)
    (job_id,) = w.fill(1, source)
    equal("reassign", w.lanes.reassign(job_id, destination), Verdict.OK)
    equal("score", w.score(w.keys.lane(destination), job_id), 0.0)
    equal("source", w.score(w.keys.lane(source), job_id), None)
    equal("group", w.field(job_id, "group"), destination.encode())
    equal("again", w.lanes.reassign(job_id, destination), Verdict.SAME)
    job = w.lanes.claim(LEASE_MS)
    equal("claim", job and (job.id, job.group), (job_id, destination))
    equal("in flight", (_in_flight(w, source), _in_flight(w, destination)), (0, 1))
    equal("complete", w.jobs.complete(job_id, 1), Verdict.OK)
    equal("after", (w.gone(job_id), _in_flight(w, destination)), (True, 0))
    equal("gone", w.lanes.reassign(job_id, source), Verdict.GONE)


@scenario
def lane_drain(w: World) -> None:
    a, b = w.groups(2)
    ids = w.fill(3, a)
    job = w.lanes.claim(LEASE_MS)
    equal("in flight", job and job.id, ids[0])
    w.jobs.add_log(ids[1], "a line")
    (other,) = w.fill(1, b)
    w.repeat.register("tick", 1000, b"t", 100_000)
    equal("drain", w.lanes.drain(a), 2)
    check("rows gone", w.gone(ids[1]) and w.gone(ids[2]))
    equal("logs", w.connection.call("EXISTS", w.keys.logs(ids[1])), 0)
    equal("ring", _on_ring(w), [b])
    equal("depths", (w.lanes.depth(a), w.lanes.depth(b)), (0, 1))
    equal("the leased job", (w.state(ids[0]), _in_flight(w, a)), ("active", 1))
    equal("the other lane", w.state(other), "pending")
    equal("repeat", w.repeat.count(), 1)
    equal("unknown lane", w.lanes.drain(w.mint("PRT")), 0)


@scenario
def reap_group(w: World) -> None:
    a, b = w.groups(2)
    (first,) = w.fill(1, a)
    (second,) = w.fill(1, b)
    for _ in range(2):
        w.lanes.claim(w.ms(30))
    w.wait(60)
    equal("reap_group", w.lanes.reap_group(a), 1)
    equal("depths", (w.lanes.depth(a), w.lanes.depth(b)), (1, 0))
    equal("states", (w.state(first), w.state(second)), ("pending", "active"))
    equal("in flight", (_in_flight(w, a), _in_flight(w, b)), (0, 1))
    job = w.lanes.claim(LEASE_MS)
    equal("claim", job and (job.id, job.token), (first, 2))
    equal("unknown group", w.lanes.reap_group(w.mint("PRT")), 0)
