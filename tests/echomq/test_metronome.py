"""The pool: one blocker, many workers."""

from __future__ import annotations

import threading

import pytest

from echomq.clock import monotonic
from echomq.conformance.world import World
from echomq.consumer import Consumer
from echomq.endpoint import Endpoint
from echomq.errors import Disconnected, ServerError
from echomq.jobs import Job
from echomq.machine import Park, Wait
from echomq.metronome import AwaitPoke, Board, Metronome, Poke, Poked, Queue
from echomq.steps import Request, RunScript, Steps


class Crew:
    """A handler that counts per thread and that other threads can wait for."""

    def __init__(self) -> None:
        self.by_thread: dict[str, int] = {}
        self.total = 0
        self.changed = threading.Condition()

    def __call__(self, job: Job) -> None:
        with self.changed:
            name = threading.current_thread().name
            self.by_thread[name] = self.by_thread.get(name, 0) + 1
            self.total += 1
            self.changed.notify_all()

    def wait_for(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.total >= count, 10), self.total


def requests(world: World, steps: Steps[None], stop: type[Request]) -> list[Request]:
    """What a machine asks until it asks for ``stop``."""
    asked = [next(steps)]
    while not isinstance(asked[-1], stop):
        poke = isinstance(asked[-1], Poke)
        asked.append(steps.send(None if poke else world.runner.perform(asked[-1])))
    return asked


def test_an_idle_metronome_looks_and_parks(world: World) -> None:
    asked = requests(world, Metronome(world.link, world.queue).steps(), Park)
    assert [type(request) for request in asked] == [RunScript, Park]


def test_it_promotes_and_pokes(world: World) -> None:
    world.jobs.enqueue_at(world.mint(), b"", 1)
    world.jobs.enqueue_in(world.mint(), b"", world.ms(700))
    asked = requests(world, Metronome(world.link, world.queue).steps(), Park)
    assert any(isinstance(request, Poke) for request in asked)
    assert isinstance(asked[-1], Park) and asked[-1].milliseconds <= world.ms(700)
    assert world.jobs.pending_size() == 1


def test_it_pokes_nobody_while_paused(world: World) -> None:
    world.fill(1)
    world.admin.pause()
    asked = requests(world, Metronome(world.link, world.queue).steps(), Park)
    assert not any(isinstance(request, Poke) for request in asked)


def test_it_waits_out_a_lost_connection(world: World) -> None:
    steps = Metronome(world.link, world.queue).steps()
    next(steps)
    assert isinstance(steps.throw(Disconnected("gone")), Wait)
    assert isinstance(steps.send(None), RunScript)


def test_a_poked_worker_serves_all_and_rests(world: World) -> None:
    world.fill(3)
    consumer = Consumer(world.link, world.queue, lambda job: None)
    asked = requests(world, Poked(consumer).steps(), AwaitPoke)
    assert consumer.tally.completed == 3
    assert isinstance(asked[-1], AwaitPoke)


def test_a_round_missed_while_serving_is_seen_at_once() -> None:
    board = Board()
    assert board.wait(-1) == 0
    board.poke()
    assert board.wait(0) == 1
    board.close()
    assert board.wait(1) == 1


@pytest.mark.wall
def test_served_long_before_the_beat(live_world: World, live_endpoint: Endpoint) -> None:
    crew = Crew()
    (group,) = live_world.groups(1)
    call = live_world.connection.call
    with Queue(live_endpoint, live_world.queue, crew, beat_ms=2_000):
        live_world.until("parked", lambda: b"cmd=blpop" in call("CLIENT", "LIST"))
        started = monotonic()
        for number in range(30):
            live_world.fill(1, group if number % 2 else None)
            crew.wait_for(number + 1)
        assert monotonic() - started < 4
        live_world.fill(1)
    assert live_world.metrics.get_counts(("active",)) == {"active": 0}


@pytest.mark.wall
def test_work_is_shared(live_world: World, live_endpoint: Endpoint) -> None:
    crew = Crew()
    meeting = threading.Barrier(4)
    first: set[str] = set()

    def handler(job: Job) -> None:
        name = threading.current_thread().name
        if name not in first:
            first.add(name)
            meeting.wait(10)  # nobody goes on before all four have a job
        crew(job)

    live_world.fill(40)
    with Queue(live_endpoint, live_world.queue, handler, beat_ms=200):
        crew.wait_for(40)
    assert len(crew.by_thread) == 4
    assert max(crew.by_thread.values()) <= 37
    assert live_world.metrics.get_metrics("completed").total == 40


@pytest.mark.wall
def test_the_first_error_reaches_the_owner(live_world: World, live_endpoint: Endpoint) -> None:
    live_world.connection.call("SET", live_world.keys.pending, "not a set")
    pool = Queue(live_endpoint, live_world.queue, print, size=1, beat_ms=50).start()
    live_world.until("an error", lambda: pool.errors)
    with pytest.raises(ServerError, match="WRONGTYPE"):
        pool.stop()
