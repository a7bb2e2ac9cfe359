"""The parts' answers beyond the scenarios: verdicts, argument guards, the protocol's pinned quirks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from echomq.conformance.world import World
from echomq.connection import Connection
from echomq.endpoint import Endpoint
from echomq.errors import ArgumentError, ServerError, Verdict
from echomq.jobs import Jobs
from echomq.lanes import Lanes
from echomq.pool import Pool
from echomq.repeat import Repeat
from echomq.steps import Call, RunScript

JOB = "JOB0JZGkP8stGK"
PRT = "PRT0JZGkP8stGK"


class NothingIsSent:
    """A connection that must not be used."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"{name} was reached")


GUARDED: list[Callable[[Jobs, Lanes, Repeat], object]] = [
    lambda j, lanes, r: j.claim(0),
    lambda j, lanes, r: j.claim(-1),
    lambda j, lanes, r: j.claim("30"),  # type: ignore[arg-type]
    lambda j, lanes, r: j.claim(True),
    lambda j, lanes, r: j.claim_batch(0, 10),
    lambda j, lanes, r: j.claim_batch(1, 0),
    lambda j, lanes, r: j.browse(0),
    lambda j, lanes, r: j.promote(0),
    lambda j, lanes, r: j.enqueue("nonsense", b""),
    lambda j, lanes, r: j.enqueue(JOB, 5),  # type: ignore[arg-type]
    lambda j, lanes, r: j.enqueue_many([]),
    lambda j, lanes, r: j.enqueue_in(JOB, b"", -1),
    lambda j, lanes, r: j.enqueue_at(JOB, b"", 1.5),  # type: ignore[arg-type]
    lambda j, lanes, r: j.complete(JOB, "1"),  # type: ignore[arg-type]
    lambda j, lanes, r: j.retry(JOB, 1, -1, 3, "x"),
    lambda j, lanes, r: j.delay(JOB, 1, 5, mode="on"),
    lambda j, lanes, r: j.extend_lock(JOB, 1, 0),
    lambda j, lanes, r: j.extend_locks([("x", 1)], 5),
    lambda j, lanes, r: j.add_log(JOB, "x", keep=-1),
    lambda j, lanes, r: j.remove_job(JOB, "a b"),
    lambda j, lanes, r: lanes.claim(0),
    lambda j, lanes, r: lanes.wclaim(0),
    lambda j, lanes, r: lanes.bclaim(0),
    lambda j, lanes, r: lanes.enqueue("customers", JOB, b""),
    lambda j, lanes, r: lanes.pause("x"),
    lambda j, lanes, r: lanes.resume("x"),
    lambda j, lanes, r: lanes.limit("x", 1),
    lambda j, lanes, r: lanes.limit(PRT, 0),
    lambda j, lanes, r: lanes.weight("x", 1),
    lambda j, lanes, r: lanes.weight(PRT, 0),
    lambda j, lanes, r: lanes.reassign(JOB, "x"),
    lambda j, lanes, r: lanes.drain("x"),
    lambda j, lanes, r: lanes.reap_group("x"),
    lambda j, lanes, r: lanes.reap_group(PRT, 0),
    lambda j, lanes, r: lanes.depth("x"),
    lambda j, lanes, r: r.register("", 5, b""),
    lambda j, lanes, r: r.register("x", 0, b""),
    lambda j, lanes, r: r.register("x", 5, b"", -1),
    lambda j, lanes, r: r.due(0),
]


@pytest.mark.parametrize("number", range(len(GUARDED)))
def test_arguments_are_refused_before_anything_is_sent(number: int) -> None:
    connection: Connection = NothingIsSent()  # type: ignore[assignment]
    with pytest.raises(ArgumentError):
        GUARDED[number](Jobs(connection, "q"), Lanes(connection, "q"), Repeat(connection, "q"))


def test_enqueue_many_judges_each(world: World) -> None:
    a, b, order = world.mint(), world.mint(), world.mint("ORD")
    verdicts = world.jobs.enqueue_many([(a, b"1"), (a, b"2"), (order, b"3"), (b, b"4")])
    assert verdicts == [Verdict.ENQUEUED, Verdict.DUPLICATE, Verdict.KIND, Verdict.ENQUEUED]
    assert world.jobs.browse() == [b, a]
    assert world.field(a, "payload") == b"1"


def test_minted_early_scheduled_late_still_sorts_by_mint(world: World) -> None:
    early = world.mint()
    (later,) = world.fill(1)
    world.jobs.enqueue_at(early, b"", 1)
    assert world.jobs.promote() == 1
    assert world.jobs.browse() == [later, early]


def test_after_completion_the_same_id_is_new(world: World) -> None:
    (job_id,) = world.fill(1)
    world.jobs.complete(job_id, world.take().token)
    assert world.jobs.enqueue(job_id, b"again") == Verdict.ENQUEUED


def test_a_payload_is_bytes(world: World) -> None:
    job_id = world.mint()
    payload = bytes(range(256)) + b"\r\n\0"
    world.jobs.enqueue(job_id, payload)
    assert world.take().payload == payload


def test_a_missing_row(world: World) -> None:
    job_id = world.mint()
    jobs = world.jobs
    assert jobs.complete(job_id, 1) == Verdict.GONE
    assert jobs.retry(job_id, 1, 0, 3, "x") == Verdict.STALE
    assert jobs.delay(job_id, 1, 5) == Verdict.GONE
    assert jobs.delay(world.mint("ORD"), 1, 5) == Verdict.KIND
    assert jobs.reprocess_job(job_id) == Verdict.GONE
    assert jobs.remove_job(job_id) == Verdict.GONE


def test_max_attempts_zero_is_death_at_once(world: World) -> None:
    world.fill(1)
    job = world.take()
    assert world.jobs.retry(job.id, job.token, 0, 0, b"\xff\0") == Verdict.DEAD
    assert world.field(job.id, "last_error") == b"\xff\0"
    assert world.metrics.get_metrics("failed").total == 1


def test_an_id_without_a_row_is_served_with_no_payload(world: World) -> None:
    ghost = world.mint()
    world.connection.call("ZADD", world.keys.pending, 0, ghost)
    job = world.take()
    assert (job.id, job.payload, job.token) == (ghost, None, 1)


@pytest.mark.parametrize("claim", ["claim", "claim_batch", "lanes", "wclaim", "bclaim"])
def test_every_claim_reads_the_pause_flag_first(world: World, claim: str) -> None:
    steps = {
        "claim": lambda: world.jobs.claim.steps(5),
        "claim_batch": lambda: world.jobs.claim_batch.steps(3, 5),
        "lanes": lambda: world.lanes.claim.steps(5),
        "wclaim": lambda: world.lanes.wclaim.steps(5),
        "bclaim": lambda: world.lanes.bclaim.steps(5),
    }[claim]()
    first = next(steps)  # type: ignore[call-overload]
    assert isinstance(first, Call) and first.args == ("HGET", world.keys.meta, "paused")
    with pytest.raises(StopIteration):
        steps.send(b"0")  # type: ignore[attr-defined]  # any value means paused


@pytest.mark.parametrize("settle", ["complete", "retry"])
def test_settling_reads_the_parent_first(world: World, settle: str) -> None:
    parent = world.mint()
    steps = (
        world.jobs.complete.steps(JOB, 1)
        if settle == "complete"
        else world.jobs.retry.steps(JOB, 1, 0, 3, "boom")
    )
    first = next(steps)
    assert isinstance(first, Call) and first.args[0] == "HMGET"
    second = steps.send([parent.encode(), b"other", b"id"][: len(first.args) - 2])
    assert isinstance(second, RunScript)
    assert second.keys[-1] == world.keys.outbox
    wanted = (
        [parent.encode(), JOB, "xq", b"other"]
        if settle == "complete"
        else [b"xq:id", b"other", parent.encode()]
    )
    assert list(second.args)[-len(wanted) :] == wanted


def test_an_unknown_error_word_passes_through(world: World) -> None:
    world.connection.call("SET", world.keys.pending, "a string")
    with pytest.raises(ServerError, match="WRONGTYPE"):
        world.jobs.enqueue(world.mint(), b"")


def test_flat_arrivals_push_one_token_each_up_to_64(world: World) -> None:
    world.fill(3)
    assert world.connection.call("LLEN", world.keys.wake) == 3
    world.fill(70)
    assert world.connection.call("LLEN", world.keys.wake) == 64
    assert set(world.connection.call("LRANGE", world.keys.wake, 0, -1)) == {b"1"}


def test_ten_jobs_into_one_empty_lane_push_one_token(world: World) -> None:
    (group,) = world.groups(1)
    world.fill(10, group)
    assert world.connection.call("LLEN", world.keys.wake) == 1


def test_promotion_of_many_flat_jobs_pushes_one_token(world: World) -> None:
    for _ in range(5):
        world.jobs.enqueue_at(world.mint(), b"", 1)
    assert world.connection.call("LLEN", world.keys.wake) == 0
    assert world.jobs.promote(batch=3) == 3
    assert world.connection.call("LLEN", world.keys.wake) == 1


def test_promotion_goes_earliest_first(world: World) -> None:
    ids = [world.mint() for _ in range(4)]
    for at, job_id in zip((40, 10, 30, 20), ids, strict=True):
        world.jobs.enqueue_at(job_id, b"", at)
    assert world.jobs.promote(batch=2) == 2
    assert world.jobs.browse() == [ids[3], ids[1]]


def test_a_limit_raised_again_brings_the_lane_back(world: World) -> None:
    (group,) = world.groups(1)
    world.lanes.limit(group, 1)
    world.fill(3, group)
    assert world.lanes.claim(1000)
    assert world.lanes.claim(1000) is None
    world.lanes.limit(group, 2)
    assert world.lanes.claim(1000)
    assert world.lanes.claim(1000) is None


def test_a_delayed_group_job_stays_counted_in_flight(world: World) -> None:
    """A quirk of the protocol, kept: the count is not lowered."""
    (group,) = world.groups(1)
    world.fill(1, group)
    job = world.lanes.claim(1000)
    assert job is not None
    world.jobs.delay(job.id, job.token, 5)
    assert world.connection.call("HGET", world.keys.gactive, group) == b"1"


def test_obliterate_in_small_steps(world: World) -> None:
    (group,) = world.groups(1)
    world.fill(5)
    world.fill(3, group)
    world.take()
    world.admin.pause()
    assert world.admin.obliterate() == Verdict.ACTIVE
    steps = 1
    while world.admin.obliterate(force=True, budget=2) == Verdict.MORE:
        steps += 1
    assert steps >= 4
    assert world.connection.call("KEYS", world.keys.base + "*") == []


def test_repeat_fires_once_a_sweep_and_drops_a_dangling_name(world: World) -> None:
    every = world.ms(1000)
    world.repeat.register("tick", every, b"tock")
    world.connection.call("ZADD", world.keys.repeat, 1, "dangling")
    (fired,) = world.repeat.fire()
    assert world.take().id == fired
    assert world.repeat.count() == 1
    assert world.repeat.fire() == []
    assert world.repeat.advance("unknown", 5) == Verdict.ABSENT
    assert world.repeat.cancel("unknown") == Verdict.ABSENT


def test_rates(world: World) -> None:
    assert world.metrics.get_rate_limit_ttl() == 0
    world.connection.call("HSET", world.keys.meta, "max", 2)
    assert world.metrics.get_global_rate_limit() == 2
    world.connection.call("SET", world.keys.limiter, 2, "PX", 60_000)
    assert 0 < world.metrics.get_rate_limit_ttl() <= 60_000
    assert world.metrics.get_rate_limit_ttl(3) == 0


def test_sweep_of_stalled_jobs(world: World) -> None:
    (group,) = world.groups(1)
    world.fill(1)
    world.fill(1, group)
    flat, laned = world.take(1), world.lanes.claim(1)
    assert laned is not None
    world.wait(5)
    keys = world.keys
    sweep = RunScript("sweep_stalled", (keys.active, keys.pending, keys.dead), (keys.base, 1, 100))
    recovered, dead = world.link.perform(sweep)
    assert (recovered, sorted(dead)) == ([], sorted([flat.id.encode(), laned.id.encode()]))
    assert world.field(flat.id, "last_error") == b"stalled"
    assert world.connection.call("EXISTS", keys.gactive) == 0


def test_through_a_pool(endpoint: Endpoint) -> None:
    pool = Pool(endpoint.connect, 2)
    jobs = Jobs(pool, "pooled")
    ids = [jobs.add(b"x") for _ in range(5)]
    assert jobs.enqueue(ids[0], b"y") == Verdict.DUPLICATE
    assert jobs.browse() == ids[::-1]
    assert sum(pool.stats()) >= 7 and min(pool.stats()) > 0
    with pytest.raises(ArgumentError):
        pool.call("BLPOP", "x", "1")
    with pytest.raises(ArgumentError):
        pool.subscribe("x", print)
    assert pool.transaction([("SET", "a", "1")]) == [b"OK"]
    pool.noreply([("SET", "a", "2")])
    assert pool.pipeline([("GET", "a")]) == [b"2"]
    assert pool.counters.connects == 2 and pool.counters.round_trips >= 10
    pool.close()
