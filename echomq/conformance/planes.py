"""Scenarios 19-43 in part: the read plane, the operator's plane, the watch plane."""

from __future__ import annotations

import json

from ..errors import ArgumentError, Verdict
from ..events import Events, message
from ..stalled import Stalled
from .world import LEASE_MS, World, check, equal, scenario


@scenario
def counts(w: World) -> None:
    w.fill(4)
    w.take()
    w.jobs.enqueue_in(w.mint(), b"later", LEASE_MS)
    wanted = {"active": 1, "pending": 3, "schedule": 1, "dead": 0}
    equal("counts", w.metrics.get_counts(("active", "pending", "schedule", "dead")), wanted)
    try:
        w.metrics.get_counts(("wait",))
    except ArgumentError as error:
        check("unknown_state", str(error).startswith("unknown_state"))
    else:
        check("the name wait is refused", False)


@scenario
def state(w: World) -> None:
    w.fill(1)
    job = w.take()
    later = w.mint()
    w.jobs.enqueue_in(later, b"later", LEASE_MS)
    missing = w.mint()
    states = [w.metrics.get_job_state(job_id) for job_id in (job.id, later, missing)]
    equal("states", states, ["active", "scheduled", "absent"])
    equal("row", w.row(later), {"state": b"scheduled", "attempts": b"0", "payload": b"later"})
    equal("missing row", w.row(missing), None)


@scenario
def metrics(w: World) -> None:
    equal("before", w.metrics.get_metrics("completed"), (0, 0))
    w.fill(1)
    job = w.take()
    w.jobs.complete(job.id, job.token)
    equal("after", w.metrics.get_metrics("completed"), (1, 0))


@scenario
def dedup(w: World) -> None:
    job_id = w.mint()
    w.connection.call("SET", w.keys.dedup("invoice-7"), job_id)
    equal("parked", w.metrics.get_deduplication_job_id("invoice-7"), job_id)
    equal("another", w.metrics.get_deduplication_job_id("invoice-8"), None)


@scenario
def rate(w: World) -> None:
    w.connection.call("HSET", w.keys.meta, "concurrency", 1)
    w.fill(1)
    equal("below", w.metrics.is_maxed(), Verdict.OK)
    w.take()
    equal("at", w.metrics.is_maxed(), Verdict.RATE)


@scenario
def lane_depth(w: World) -> None:
    a, b = w.groups(2)
    w.fill(2, a)
    w.fill(1, b)
    equal("one by one", (w.metrics.lane_depth(a), w.metrics.lane_depth(b)), (2, 1))
    equal("together", w.metrics.lane_depths((a, b)), {a: 2, b: 1})


@scenario
def queue_pause(w: World) -> None:
    w.fill(1)
    w.admin.pause()
    equal("claim", w.jobs.claim(LEASE_MS), None)
    equal("pending", w.jobs.pending_size(), 1)
    w.admin.resume()
    check("claim after resume", w.jobs.claim(LEASE_MS))


@scenario
def drain(w: World) -> None:
    ids = w.fill(4)
    w.take()
    equal("drain", w.admin.drain(), 3)
    equal("counts", w.metrics.get_counts(("pending", "active")), {"pending": 0, "active": 1})
    check("drained rows are gone", all(w.gone(job_id) for job_id in ids[1:]))


@scenario
def obliterate(w: World) -> None:
    w.fill(3)
    equal("running", w.admin.obliterate(), Verdict.NOT_PAUSED)
    equal("unchanged", w.jobs.pending_size(), 3)
    w.admin.pause()
    equal("paused", w.admin.obliterate(), Verdict.OK)
    equal("counts", set(w.metrics.get_counts().values()), {0})


@scenario
def update_data(w: World) -> None:
    (job_id,) = w.fill(1)
    equal("update", w.jobs.update_data(job_id, b"new"), Verdict.OK)
    equal("payload", w.field(job_id, "payload"), b"new")
    equal("missing", w.jobs.update_data(w.mint(), b"new"), Verdict.GONE)


@scenario
def update_progress(w: World) -> None:
    heard: list[bytes] = []
    w.connect(3).subscribe(w.keys.events, lambda _, payload: heard.append(payload))
    (job_id,) = w.fill(1)
    equal("update", w.jobs.update_progress(job_id, "40"), Verdict.OK)
    equal("field", w.field(job_id, "progress"), b"40")
    w.until("the event arrives", lambda: heard)
    equal("event", json.loads(heard[0]), {"event": "progress", "job": job_id, "progress": "40"})
    equal("missing", w.jobs.update_progress(w.mint(), "40"), Verdict.GONE)


@scenario
def job_logs(w: World) -> None:
    (job_id,) = w.fill(1)
    equal("counts", [w.jobs.add_log(job_id, line) for line in ("one", "two")], [1, 2])
    equal("third", w.jobs.add_log(job_id, "three", keep=2), 2)
    equal("lines", w.jobs.get_job_logs(job_id), [b"two", b"three"])
    missing = w.mint()
    equal("missing", (w.jobs.add_log(missing, "x"), w.jobs.get_job_logs(missing)), ("gone", "gone"))


@scenario
def remove_job(w: World) -> None:
    free, held = w.fill(2)
    w.connection.call("SET", w.keys.dedup("d1"), free)
    equal("free", w.jobs.remove_job(free, "d1"), Verdict.OK)
    check("row gone", w.gone(free))
    equal("key released", w.metrics.get_deduplication_job_id("d1"), None)
    w.connection.call("SET", w.keys.lock(held), "1")
    equal("held", w.jobs.remove_job(held), Verdict.LOCKED)
    equal("still pending", w.metrics.get_job_state(held), "pending")


@scenario
def reprocess_job(w: World) -> None:
    w.fill(1)
    job = w.take()
    w.jobs.retry(job.id, job.token, 0, 1, "fatal")
    equal("dead", w.jobs.reprocess_job(job.id), Verdict.OK)
    equal("state", w.metrics.get_job_state(job.id), "pending")
    equal("last_error", w.field(job.id, "last_error"), None)
    equal("pending", w.jobs.reprocess_job(job.id), Verdict.NOT_DEAD)
    equal("unchanged", w.metrics.get_job_state(job.id), "pending")


@scenario
def lock_extend(w: World) -> None:
    w.fill(1)
    job = w.take(w.ms(50))
    equal("extend", w.jobs.extend_lock(job.id, job.token, LEASE_MS), Verdict.OK)
    w.wait(120)
    equal("reap", w.jobs.reap(), 0)
    equal("state", w.metrics.get_job_state(job.id), "active")
    equal("wrong token", w.jobs.extend_lock(job.id, 7, LEASE_MS), Verdict.STALE)
    equal("unknown", w.jobs.extend_lock(w.mint(), 1, LEASE_MS), Verdict.GONE)


@scenario
def stalled(w: World) -> None:
    sweeper = Stalled(w.link, w.queue)
    w.fill(1)
    job = w.take(w.ms(30))
    w.wait(60)
    equal("first sweep", sweeper.check(max_stalled=2), ([job.id], []))
    check("job_stalled", sweeper.job_stalled(job.id))
    equal("state", w.state(job.id), "pending")
    equal("token", w.take(w.ms(30)).token, 2)
    w.wait(60)
    equal("second sweep", sweeper.check(max_stalled=2), ([], [job.id]))
    equal("state", w.metrics.get_job_state(job.id), "dead")
    equal("last_error", w.field(job.id, "last_error"), b"stalled")


@scenario
def events(w: World) -> None:
    heard: list[tuple[str, bytes]] = []
    channel = Events(w.link, w.queue)
    channel.subscribe(w.connect(3), lambda name, payload: heard.append((name, payload)))
    w.fill(1)
    job = w.take()
    w.jobs.complete(job.id, job.token)
    channel.publish("completed", job.id)
    w.until("the event arrives", lambda: heard)
    equal("event", heard, [("completed", message("completed", job.id).encode())])


@scenario
def unknown_state(w: World) -> None:
    job_id = w.mint()
    w.connection.call("HSET", w.keys.job(job_id), "state", "pending", "attempts", "0")
    equal("a row in no set", w.metrics.get_job_state(job_id), "unknown")
    equal("no row", w.metrics.get_job_state(w.mint()), "absent")


@scenario
def rate_consult(w: World) -> None:
    w.connection.call("HSET", w.keys.meta, "concurrency", 1)
    w.fill(2)
    job = w.take()
    if w.metrics.is_maxed() == Verdict.OK:
        w.take()
    equal("skipped", w.metrics.get_counts(("active", "pending")), {"active": 1, "pending": 1})
    w.jobs.complete(job.id, job.token)
    equal("after complete", w.metrics.is_maxed(), Verdict.OK)


@scenario
def dedup_release(w: World) -> None:
    (job_id,) = w.fill(1)
    other = w.mint()
    w.connection.call("SET", w.keys.dedup("mine"), job_id)
    w.connection.call("SET", w.keys.dedup("orphan"), other)
    equal("remove", w.jobs.remove_job(job_id, "mine"), Verdict.OK)
    equal("released", w.metrics.get_deduplication_job_id("mine"), None)
    equal("orphan", w.metrics.get_deduplication_job_id("orphan"), other)


@scenario
def extend_locks_batch(w: World) -> None:
    w.fill(2)
    live, other = w.take(), w.take()
    missing = w.mint()
    held = [(live.id, live.token), (other.id, 9), (missing, 1)]
    equal("failed", w.jobs.extend_locks(held, LEASE_MS), [other.id, missing])


@scenario
def stalled_group(w: World) -> None:
    (group,) = w.groups(1)
    (job_id,) = w.fill(1, group)
    w.lanes.claim(w.ms(30))
    w.wait(60)
    equal("sweep", Stalled(w.link, w.queue).check(max_stalled=2), ([job_id], []))
    equal("lane and flat", (w.lanes.depth(group), w.jobs.pending_size()), (1, 0))
    job = w.lanes.claim(LEASE_MS)
    equal("claim", job and (job.id, job.token, job.group), (job_id, 2, group))


@scenario
def obliterate_grouped(w: World) -> None:
    (group,) = w.groups(1)
    (job_id,) = w.fill(1, group)
    w.admin.pause()
    equal("obliterate", w.admin.obliterate(), Verdict.OK)
    check("no row", w.gone(job_id))
    equal("depth", w.lanes.depth(group), 0)
    equal("no key at all", w.connection.call("KEYS", w.keys.base + "*"), [])
