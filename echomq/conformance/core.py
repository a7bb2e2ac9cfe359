"""Scenarios 1-18: the queue core."""

from __future__ import annotations

from ..backoff import Exponential
from ..clock import new_random, now_ms
from ..endpoint import WIRE_VERSION
from ..errors import Verdict
from ..keys import VERSION_KEY
from .world import LEASE_MS, World, check, equal, scenario


@scenario
def fence(w: World) -> None:
    equal("version", w.connection.call("GET", VERSION_KEY), WIRE_VERSION.encode())


@scenario
def mint(w: World) -> None:
    job_id = w.mint()
    equal("enqueue", w.jobs.enqueue(job_id, b"hello"), Verdict.ENQUEUED)
    equal("row", w.row(job_id), {"state": b"pending", "attempts": b"0", "payload": b"hello"})


@scenario
def duplicate(w: World) -> None:
    job_id = w.mint()
    equal("first", w.jobs.enqueue(job_id, b"first"), Verdict.ENQUEUED)
    equal("second", w.jobs.enqueue(job_id, b"second"), Verdict.DUPLICATE)
    equal("payload", w.field(job_id, "payload"), b"first")


@scenario
def kind(w: World) -> None:
    order_id = w.mint("ORD")
    equal("enqueue", w.jobs.enqueue(order_id, b"x"), Verdict.KIND)
    check("no row", w.gone(order_id))


@scenario
def order(w: World) -> None:
    ids = w.fill(3)
    newest_first = w.connection.call("ZRANGE", w.keys.pending, "+", "-", "BYLEX", "REV")
    equal("newest first", [item.decode() for item in newest_first], ids[::-1])


@scenario
def claim(w: World) -> None:
    job_id = w.mint()
    w.jobs.enqueue(job_id, b"work")
    equal("claim", w.jobs.claim(LEASE_MS), (job_id, b"work", 1, None))
    equal("state", w.state(job_id), "active")


@scenario
def stale(w: World) -> None:
    w.fill(1)
    job = w.take()
    w.connection.call("SCRIPT", "FLUSH")
    equal("token 99", w.jobs.complete(job.id, 99), Verdict.STALE)
    equal("token 1", w.jobs.complete(job.id, 1), Verdict.OK)


@scenario
def complete(w: World) -> None:
    w.fill(1)
    job = w.take()
    equal("complete", w.jobs.complete(job.id, job.token), Verdict.OK)
    check("no row", w.gone(job.id))
    equal("active", w.connection.call("ZCARD", w.keys.active), 0)


@scenario
def retry(w: World) -> None:
    w.fill(1)
    job = w.take()
    equal("retry", w.jobs.retry(job.id, job.token, w.ms(10), 3, "oops"), Verdict.SCHEDULED)
    equal("state", w.state(job.id), "scheduled")
    equal("last_error", w.field(job.id, "last_error"), b"oops")
    w.wait(30)
    equal("promote", w.jobs.promote(), 1)
    again = w.take()
    equal("token", again.token, 2)
    equal("complete", w.jobs.complete(again.id, again.token), Verdict.OK)


@scenario
def dead(w: World) -> None:
    w.fill(1)
    job = w.take()
    equal("retry", w.jobs.retry(job.id, job.token, w.ms(10), 1, "fatal"), Verdict.DEAD)
    equal("state", w.state(job.id), "dead")
    equal("last_error", w.field(job.id, "last_error"), b"fatal")
    equal("morgue", w.jobs.browse_dead(), [job.id])


@scenario
def reap(w: World) -> None:
    w.fill(1)
    job = w.take(w.ms(30))
    w.wait(60)
    equal("reap", w.jobs.reap(), 1)
    equal("state", w.state(job.id), "pending")
    again = w.take()
    equal("token", again.token, 2)
    equal("complete", w.jobs.complete(again.id, again.token), Verdict.OK)


@scenario
def rotate(w: World) -> None:
    a, b = w.groups(2)
    for _ in range(2):
        for group in (a, b):
            w.fill(1, group)
    served = [w.lanes.claim(LEASE_MS) for _ in range(4)]
    equal("groups", [job and job.group for job in served], [a, b, a, b])


@scenario
def pause(w: World) -> None:
    a, b = w.groups(2)
    w.fill(2, a)
    w.fill(2, b)
    w.lanes.pause(a)
    served = [w.lanes.claim(LEASE_MS) for _ in range(3)]
    equal("groups", [job and job.group for job in served], [b, b, None])
    equal("depth", w.lanes.depth(a), 2)
    w.lanes.resume(a)
    job = w.lanes.claim(LEASE_MS)
    equal("after resume", job and job.group, a)


@scenario
def limit(w: World) -> None:
    (group,) = w.groups(1)
    w.lanes.limit(group, 1)
    w.fill(2, group)
    job = w.lanes.claim(LEASE_MS)
    check("first claim", job)
    assert job is not None
    equal("at the ceiling", w.lanes.claim(LEASE_MS), None)
    equal("complete", w.jobs.complete(job.id, job.token), Verdict.OK)
    check("second claim", w.lanes.claim(LEASE_MS))


@scenario
def schedule(w: World) -> None:
    job_id = w.mint()
    equal("enqueue_in", w.jobs.enqueue_in(job_id, b"later", w.ms(30)), Verdict.SCHEDULED)
    equal("state", w.state(job_id), "scheduled")
    equal("too early", w.jobs.claim(LEASE_MS), None)
    w.wait(50)
    equal("promote", w.jobs.promote(), 1)
    job = w.take()
    equal("claim", job.id, job_id)
    equal("complete", w.jobs.complete(job.id, job.token), Verdict.OK)


@scenario
def repeat(w: World) -> None:
    every = w.ms(10)
    equal("register", w.repeat.register("tick", every, b"tock"), Verdict.REGISTERED)
    equal("again", w.repeat.register("tick", every * 2, b"other"), Verdict.EXISTS)
    fired = []
    for _ in range(2):
        (due,) = w.repeat.due()
        equal("template", due.template, b"tock")
        job_id = w.mint()
        equal("enqueue", w.jobs.enqueue(job_id, due.template or b""), Verdict.ENQUEUED)
        equal("advance", w.repeat.advance("tick", now_ms(w.clock) + every), Verdict.ADVANCED)
        fired.append(job_id)
        w.wait(20)
    check("the second id is greater", fired[0] < fired[1])
    equal("cancel", w.repeat.cancel("tick"), Verdict.CANCELLED)
    equal("count", w.repeat.count(), 0)


@scenario
def backoff(w: World) -> None:
    w.fill(1)
    policy = Exponential(w.ms(1), w.ms(10))
    rng = new_random(0)
    for attempt in (1, 2, 3):
        job = w.take()
        equal("token", job.token, attempt)
        verdict = w.jobs.retry(job.id, job.token, policy.delay_ms(attempt, rng), 3, f"boom {attempt}")
        equal(f"attempt {attempt}", verdict, Verdict.DEAD if attempt == 3 else Verdict.SCHEDULED)
        if attempt < 3:
            w.wait(10)
            equal("promote", w.jobs.promote(), 1)
    equal("last_error", w.field(job.id, "last_error"), b"boom 3")
    equal("morgue", w.jobs.browse_dead(), [job.id])


@scenario
def resubscribe(w: World) -> None:
    heard: list[bytes] = []
    listener = w.connect(3)
    channel = w.keys.events
    listener.subscribe(channel, lambda _, payload: heard.append(payload))
    w.connection.call("PUBLISH", channel, "before")
    w.until("the first message arrives", lambda: b"before" in heard)
    client_id = listener.call("CLIENT", "ID")
    equal("kill", w.connection.call("CLIENT", "KILL", "ID", client_id), 1)
    w.until("the listener is back", lambda: w.connection.call("PUBLISH", channel, "after") == 1)
    w.until("a new message arrives", lambda: b"after" in heard)
