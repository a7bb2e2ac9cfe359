"""Scenarios 62-73: batches, flat and grouped, their shaping, their partition, and delays."""

from __future__ import annotations

from collections.abc import Sequence

from ..batch import Shape, decide
from ..errors import Verdict
from ..jobs import Job
from ..outcomes import Delay, Done, Failed, Outcome
from .world import LEASE_MS, World, check, equal, scenario


def _deadlines(w: World, batch: Sequence[Job]) -> set[float | None]:
    return {w.score(w.keys.active, job.id) for job in batch}


@scenario
def batch_claim(w: World) -> None:
    ids = w.fill(8)
    batch = w.jobs.claim_batch(4, LEASE_MS)
    equal("the oldest four", [job.id for job in batch], ids[:4])
    equal("attempts", [job.attempts for job in batch], [1] * 4)
    deadlines = _deadlines(w, batch)
    check("one shared deadline", len(deadlines) == 1 and None not in deadlines)
    equal("states", [w.state(job.id) for job in batch], ["active"] * 4)


@scenario
def batch_claim_short(w: World) -> None:
    w.fill(3)
    equal("short", len(w.jobs.claim_batch(7, LEASE_MS)), 3)
    equal("empty", w.jobs.claim_batch(7, LEASE_MS), [])
    w.fill(2)
    w.admin.pause()
    equal("paused", w.jobs.claim_batch(7, LEASE_MS), [])
    equal("pending", w.jobs.pending_size(), 2)


@scenario
def batch_partial_failure(w: World) -> None:
    w.fill(3)
    bad, *good = w.jobs.claim_batch(3, LEASE_MS)
    equal("wrong token", w.jobs.retry(bad.id, 9, 0, 3, "no"), Verdict.STALE)
    equal("retry", w.jobs.retry(bad.id, bad.token, 0, 3, "no"), Verdict.SCHEDULED)
    equal("complete", [w.jobs.complete(job.id, job.token) for job in good], [Verdict.OK] * 2)
    equal("promote", w.jobs.promote(), 1)
    batch = w.jobs.claim_batch(3, LEASE_MS)
    equal("a new batch", [(job.id, job.token) for job in batch], [(bad.id, 2)])


@scenario
def batch_shaping_floor(w: World) -> None:
    shape = Shape(min_size=4, timeout_ms=200)
    ids = w.fill(6)
    equal("below the floor", decide(shape, 3, 0), 0)
    equal("at depth 6", decide(shape, w.jobs.pending_size(), 0), 6)
    seen: list[str] = []

    def answer(batch: Sequence[Job]) -> dict[str, Outcome]:
        seen.extend(job.id for job in batch)
        return {job.id: Done() for job in batch}

    report = w.runner.run(w.batches(answer, shape).flush(6))
    equal("order", seen, ids)
    equal("completed", report.completed, ids)


@scenario
def batch_shaping_timeout(w: World) -> None:
    shape = Shape(min_size=5, timeout_ms=200)
    w.fill(2)
    depth = w.jobs.pending_size()
    equal("at 199", decide(shape, depth, 199), 0)
    equal("at 200", decide(shape, depth, 200), 2)
    equal("nothing there", decide(shape, 0, 200), 0)


@scenario
def batch_shaping_partial_failure(w: World) -> None:
    poison, fine, missing = w.fill(3)
    report = w.runner.run(w.batches(lambda _: {poison: Failed("poison"), fine: Done()}).flush(3))
    equal("retried", report.retried, [poison, missing])
    equal("poison", w.field(poison, "last_error"), b"poison")
    check("row gone", w.gone(fine))
    equal("missing", w.field(missing, "last_error"), b"missing verdict")
    equal("promote", w.jobs.promote(), 2)
    batch = w.jobs.claim_batch(3, LEASE_MS)
    equal("tokens", [(job.id, job.token) for job in batch], [(poison, 2), (missing, 2)])


@scenario
def grouped_batch_affinity(w: World) -> None:
    a, b = w.groups(2)
    ids = w.fill(4, a)
    w.fill(4, b)
    batch = w.lanes.bclaim(LEASE_MS)
    equal("one lane", [(job.id, job.group) for job in batch], [(job_id, a) for job_id in ids])
    equal("rows", {w.field(job.id, "group") for job in batch}, {a.encode()})
    equal("one deadline", len(_deadlines(w, batch)), 1)


@scenario
def grouped_batch_ceiling(w: World) -> None:
    (group,) = w.groups(1)
    w.lanes.limit(group, 3)
    ids = w.fill(8, group)
    batch = w.lanes.bclaim(LEASE_MS)
    equal("served", [job.id for job in batch], ids[:3])
    equal("in flight", w.connection.call("HGET", w.keys.gactive, group), b"3")
    equal("at the ceiling", w.lanes.bclaim(LEASE_MS), [])
    equal("complete", w.jobs.complete(batch[0].id, batch[0].token), Verdict.OK)
    equal("the next one", [job.id for job in w.lanes.bclaim(LEASE_MS)], ids[3:4])


@scenario
def grouped_batch_fairness(w: World) -> None:
    heavy, *light = w.groups(3)
    for group, count in ((heavy, 40), (light[0], 4), (light[1], 4)):
        w.lanes.limit(group, 2)
        w.fill(count, group)
    early: set[str | None] = set()
    for turn in range(60):
        batch = w.lanes.bclaim(LEASE_MS)
        if turn < 9:
            early.update(job.group for job in batch)
        for job in batch:
            w.jobs.complete(job.id, job.token)
    check("both light lanes in the first 9 batches", set(light) <= early)
    equal("depths", [w.lanes.depth(group) for group in (heavy, *light)], [0, 0, 0])


@scenario
def batch_partition(w: World) -> None:
    capped, done, failed, delayed, missing = ids = w.fill(5)
    for _ in range(2):  # the first one is brought to its last attempt
        job = w.jobs.claim_batch(1, LEASE_MS)[0]
        equal("the capped one", job.id, capped)
        w.jobs.retry(job.id, job.token, 0, 3, "earlier")
        w.jobs.promote()
    said: dict[str, Outcome] = {
        done: Done(),
        failed: Failed("below the cap"),
        capped: Failed("at the cap"),
        delayed: Delay(w.ms(1000)),
    }
    report = w.runner.run(w.batches(lambda _: said).flush(5))
    equal("completed", report.completed, [done])
    equal("retried", report.retried, [failed, missing])
    equal("dead", report.dead, [capped])
    equal("delayed", report.delayed, [delayed])
    states = [w.state(job_id) for job_id in ids]
    equal("row states", states, ["dead", None, "scheduled", "scheduled", "scheduled"])


@scenario
def batch_delay(w: World) -> None:
    w.fill(1)
    (job,) = w.jobs.claim_batch(1, LEASE_MS)
    equal("delay", w.jobs.delay(job.id, job.token, w.ms(40)), Verdict.OK)
    equal("state", (w.state(job.id), w.field(job.id, "attempts")), ("scheduled", b"1"))
    equal("not active", w.score(w.keys.active, job.id), None)
    equal("claim", w.jobs.claim(LEASE_MS), None)
    w.wait(60)
    equal("promote", w.jobs.promote(), 1)
    equal("token", w.take().token, 2)


@scenario
def batch_delay_stale(w: World) -> None:
    w.fill(1)
    (old,) = w.jobs.claim_batch(1, w.ms(30))
    w.wait(60)
    equal("reap", w.jobs.reap(), 1)
    new = w.take()
    deadline = w.score(w.keys.active, new.id)
    equal("old token", w.jobs.delay(old.id, old.token, 10), Verdict.STALE)
    equal("the new lease", w.score(w.keys.active, new.id), deadline)
    equal("new token", w.jobs.delay(new.id, new.token, 10), Verdict.OK)
    equal("unknown", w.jobs.delay(w.mint(), 1, 10), Verdict.GONE)
