"""The worker machine: what it asks, in which order, how often; and the worker on a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from echomq.backoff import Exponential, Fixed
from echomq.clock import monotonic
from echomq.conformance.world import World
from echomq.connection import Connection
from echomq.consumer import Consumer, ConsumerThread, park_ms
from echomq.endpoint import Endpoint, Options
from echomq.errors import Disconnected, ServerError, Verdict
from echomq.jobs import Job
from echomq.machine import Handle, Park, Runner, Wait
from echomq.metrics import Outlook
from echomq.outcomes import Delay, Done, Failed
from echomq.states import audit
from echomq.steps import Call, Request, RunMany, RunScript


def serve(world: World, handler: Callable[[Job], object], **options: object) -> Consumer:
    """A consumer run until it finds nothing to do."""
    consumer = Consumer(world.link, world.queue, handler, **options)  # type: ignore[arg-type]
    world.runner.run(consumer.until_idle())
    return consumer


# -- what it does --------------------------------------------------------------------------------


def test_flat_and_lane_take_turns(world: World) -> None:
    (group,) = world.groups(1)
    flat, laned = world.fill(4), world.fill(2, group)
    seen: list[str] = []
    serve(world, lambda job: seen.append(job.id))
    assert seen == [flat[0], laned[0], flat[1], laned[1], flat[2], flat[3]]


def test_the_handler_is_given_the_fencing_token(world: World) -> None:
    world.fill(1)
    seen: list[Job] = []

    def handler(job: Job) -> None:
        seen.append(job)
        if job.token == 1:
            raise RuntimeError("once more")

    consumer = Consumer(world.link, world.queue, handler, backoff=Fixed(0))
    world.runner.run(consumer.until_idle())
    assert [(job.payload, job.token) for job in seen] == [(b"0", 1), (b"0", 2)]
    assert (consumer.tally.retried, consumer.tally.completed) == (1, 1)


def test_a_holder_that_overran_its_lease_is_refused(world: World) -> None:
    (job_id,) = world.fill(1)
    other = Consumer(world.link, world.queue, lambda job: None)

    def slow(job: Job) -> None:
        world.wait(60)
        world.runner.run(other.until_idle())

    consumer = serve(world, slow, lease_ms=world.ms(30))
    assert (consumer.tally.refused, other.tally.completed) == (1, 1)
    assert world.gone(job_id)
    assert world.metrics.get_metrics("completed").total == 1


@pytest.mark.parametrize(
    ("answer", "place", "error"),
    [
        (Done(), None, None),
        (None, None, None),
        (17, None, None),
        (Failed("no luck"), b"scheduled", b"no luck"),
        (ValueError("bad"), b"scheduled", b"bad"),
        (KeyError(), b"scheduled", b"KeyError"),
        (SystemExit(3), b"scheduled", b"exit: 3"),
        (Delay(60_000), b"scheduled", None),
    ],
)
def test_outcomes(world: World, answer: object, place: bytes | None, error: bytes | None) -> None:
    (job_id,) = world.fill(1)

    def handler(job: Job) -> object:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    serve(world, handler, backoff=Fixed(60_000))
    assert (world.field(job_id, "state"), world.field(job_id, "last_error")) == (place, error)
    assert world.field(job_id, "attempts") == (None if place is None else b"1")


def test_a_keyboard_interrupt_is_no_outcome(world: World) -> None:
    world.fill(1)

    def handler(job: Job) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        serve(world, handler)


def test_a_poison_job_ends_in_the_morgue(world: World) -> None:
    (job_id,) = world.fill(1)

    def handler(job: Job) -> None:
        raise RuntimeError(f"boom {job.attempts}")

    consumer = Consumer(world.link, world.queue, handler, backoff=Exponential(world.ms(1), world.ms(10)))
    while not consumer.tally.dead:
        world.runner.run(consumer.until_idle())
        world.wait(10)
    assert world.field(job_id, "last_error") == b"boom 3"
    assert world.jobs.browse_dead() == [job_id]


def test_a_paused_queue_is_left_alone_but_time_goes_on(world: World) -> None:
    world.fill(1)
    world.jobs.enqueue_at(world.mint(), b"", 1)
    world.admin.pause()
    consumer = serve(world, lambda job: None)
    assert (consumer.tally.served, consumer.tally.promoted, world.jobs.pending_size()) == (0, 1, 2)


def test_a_stale_ring_entry_does_not_stop_it(world: World) -> None:
    a, b = world.groups(2)
    world.connection.call("RPUSH", world.keys.ring, a)
    world.fill(2, b)
    assert serve(world, lambda job: None).tally.completed == 2
    assert world.connection.call("EXISTS", world.keys.ring) == 0


@pytest.mark.slow
def test_ten_thousand_due_jobs_drain_without_the_clock(world: World) -> None:
    ids = [world.mint() for _ in range(10_000)]
    keys = world.keys
    calls = [((keys.job(job_id), keys.schedule), (job_id, b"x", "at", 1)) for job_id in ids]
    for start in range(0, len(calls), 2000):
        world.link.perform(RunMany("schedule", calls[start : start + 2000]))
    before = world.clock.now_ns()
    seen: list[str] = []
    consumer = serve(world, lambda job: seen.append(job.id))
    assert consumer.tally.promoted == consumer.tally.completed == 10_000
    assert sorted(seen) == ids
    if world.clock.manual:
        assert world.clock.now_ns() == before
    assert world.metrics.get_counts(("pending", "active", "schedule", "completed")) == {
        "pending": 0,
        "active": 0,
        "schedule": 0,
        "completed": 10_000,
    }


def test_lapsed_leases_come_back_in_full_batches(world: World) -> None:
    world.fill(250)
    world.jobs.claim_batch(250, 1)
    world.wait(2)
    consumer = serve(world, lambda job: None)
    assert consumer.tally.reaped == consumer.tally.completed == 250


@pytest.mark.wall
def test_a_job_due_in_200_ms_starts_at_200_ms(world: World, connect: Callable[..., Connection]) -> None:
    consumer: Consumer
    started: list[int] = []

    def handler(job: Job) -> None:
        started.append(world.server_ms())
        consumer.stop()

    consumer = Consumer(connect(), world.queue, handler)
    begun = world.server_ms()
    world.jobs.enqueue_in(world.mint(), b"", 200)
    Runner(consumer.jobs.link, world.clock).run(consumer.steps())
    late = started[0] - begun - 200
    if world.clock.manual:
        assert late == 0
    else:  # the server looks at its time-outs ten times a second
        assert 0 <= late <= 250


# -- what it asks --------------------------------------------------------------------------------


def rounds(world: World, consumer: Consumer, count: int) -> list[list[Request]]:
    """The requests of ``count`` rounds; parking takes no time here."""
    asked: list[list[Request]] = [[]]
    steps = consumer.steps()
    request = next(steps)
    while True:
        asked[-1].append(request)
        if isinstance(request, Park):
            if len(asked) == count:
                return asked
            asked.append([])
            request = steps.send(None)
        elif isinstance(request, Wait):
            request = steps.send(None)
        else:
            request = steps.send(world.runner.perform(request))


def test_an_idle_worker_sends_at_most_five_commands_a_beat(world: World) -> None:
    world.jobs.enqueue_in(world.mint(), b"", 600_000)
    for asked in rounds(world, Consumer(world.link, world.queue, print), 3):
        assert [type(request) for request in asked] == [RunScript, Park]
        assert len(asked) <= 5


@pytest.mark.parametrize(
    ("next_run", "ms"), [(None, 1000), (5000, 1000), (1999, 999), (1001, 1), (1000, 1), (10, 1)]
)
def test_how_long_to_park(next_run: int | None, ms: int) -> None:
    assert park_ms(Outlook(1000, False, 0, 0, next_run, None), 1000) == ms


@pytest.mark.parametrize(("ms", "text"), [(1, "0.001"), (1000, "1.000"), (12345, "12.345")])
def test_the_command_that_parks(ms: int, text: str) -> None:
    assert Park("wake", ms).command == ("BLPOP", "wake", text)


def test_a_lost_connection_is_waited_out(world: World) -> None:
    steps = Consumer(world.link, world.queue, print).steps()
    waits = []
    request = next(steps)
    for _ in range(7):
        request = steps.throw(Disconnected("gone"))
        assert isinstance(request, Wait)
        waits.append(request.milliseconds)
        request = steps.send(None)
        assert isinstance(request, RunScript) and request.name == "outlook"
    assert waits == [100, 200, 400, 800, 1600, 2000, 2000]


def test_a_server_that_is_loading_is_waited_out_but_a_mistake_is_not(world: World) -> None:
    steps = Consumer(world.link, world.queue, print).steps()
    next(steps)
    assert isinstance(steps.throw(ServerError("LOADING in progress")), Wait)
    steps.send(None)
    with pytest.raises(ServerError):
        steps.throw(ServerError("NOPERM no"))


def until(world: World, steps: Iterator[Request], wanted: Callable[[Request], bool]) -> Request:
    """Drive a machine up to a request that is not performed."""
    request = next(steps)
    while not wanted(request):
        request = steps.send(world.runner.perform(request))  # type: ignore[attr-defined]
    return request


def is_complete(request: Request) -> bool:
    return isinstance(request, RunScript) and request.name == "complete"


@pytest.mark.parametrize("arrived", [False, True])
def test_a_completion_without_an_answer_is_sent_again(world: World, arrived: bool) -> None:
    (job_id,) = world.fill(1)
    consumer = Consumer(world.link, world.queue, lambda job: None)
    steps = consumer.steps()
    request = until(world, steps, is_complete)
    if arrived:
        world.runner.perform(request)
    assert isinstance(steps.throw(Disconnected("gone")), Wait)
    request = steps.send(None)
    while not isinstance(request, Park):
        request = steps.send(world.runner.perform(request))
    assert consumer.tally.completed == 1
    assert world.gone(job_id)
    assert world.metrics.get_metrics("completed").total == 1


def test_stop_is_honoured_between_jobs(world: World) -> None:
    world.fill(3)
    consumer: Consumer

    def handler(job: Job) -> None:
        consumer.stop()

    consumer = Consumer(world.link, world.queue, handler)
    world.runner.run(consumer.steps())
    assert consumer.tally.completed == 1
    assert world.metrics.get_counts(("pending", "active")) == {"pending": 2, "active": 0}


@pytest.mark.parametrize("crash", range(1, 7))
def test_a_worker_that_vanishes_at_any_step_loses_nothing(world: World, crash: int) -> None:
    (job_id,) = world.fill(1)
    steps = Consumer(world.link, world.queue, lambda job: None, lease_ms=world.ms(30)).steps()
    request = next(steps)
    for _ in range(crash):
        request = steps.send(world.runner.perform(request))
    steps.close()
    assert audit(world.connection, world.keys, [job_id]) == [] or world.gone(job_id)
    world.wait(60)
    serve(world, lambda job: None)
    assert world.gone(job_id)
    assert world.metrics.get_metrics("completed").total == 1


# -- on a thread ---------------------------------------------------------------------------------


class Desk:
    """A handler that other threads can wait for."""

    def __init__(self) -> None:
        self.seen: list[Job] = []
        self._changed = threading.Condition()

    def __call__(self, job: Job) -> None:
        with self._changed:
            self.seen.append(job)
            self._changed.notify_all()

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.seen) >= count, 10)


@pytest.mark.wall
def test_an_idle_worker_wakes_on_arrival(live_world: World, live_endpoint: Endpoint) -> None:
    desk = Desk()
    (group,) = live_world.groups(1)
    worker = ConsumerThread(live_endpoint, live_world.queue, desk, beat_ms=8_000)
    worker.start()
    started = monotonic()
    for count in (1, 2, 3):
        live_world.until("parked", lambda: b"cmd=blpop" in live_world.connection.call("CLIENT", "LIST"))
        live_world.fill(1, group if count == 2 else None)
        desk.wait_for(count)
    assert monotonic() - started < 5
    worker.consumer.stop()
    live_world.fill(1)
    worker.stop()


@pytest.mark.wall
def test_it_survives_a_lost_connection(live_world: World, live_url: str) -> None:
    desk = Desk()
    endpoint = Endpoint(live_url, options=Options(reconnect_ms=1, client_name="worker"))
    worker = ConsumerThread(endpoint, live_world.queue, desk, beat_ms=200).start()
    call = live_world.connection.call
    for count in (1, 2):
        live_world.until("parked", lambda: b"cmd=blpop" in call("CLIENT", "LIST"))
        live_world.until("killed", lambda: call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))
        live_world.fill(1)
        desk.wait_for(count)
    worker.stop()
    assert worker.consumer.tally.troubles >= 1
    assert live_world.metrics.get_metrics("completed").total == 2


@pytest.mark.wall
def test_what_ends_a_worker_is_told_to_its_owner(live_world: World, live_endpoint: Endpoint) -> None:
    live_world.connection.call("SET", live_world.keys.pending, "not a set")
    worker = ConsumerThread(live_endpoint, live_world.queue, print).start()
    worker.join(10)
    with pytest.raises(ServerError, match="WRONGTYPE"):
        worker.stop()


def test_requests_describe_themselves() -> None:
    job = Job("JOB0JZGkP8stGK", b"", 1)
    texts = [repr(r) for r in (Call("PING"), RunScript("claim", ["k"], [1]), Handle(job, print), Wait(5))]
    assert (
        texts[0] == "Call('PING',)" and "claim" in texts[1] and job.id in texts[2] and texts[3] == "Wait(5)"
    )
    assert Verdict.OK == "ok"
