"""Batches: the pure decisions by table, the machine by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from echomq.batch import BatchConsumer, Shape, decide, partition, read_verdicts
from echomq.conformance.world import World
from echomq.errors import ArgumentError, Verdict
from echomq.jobs import Job
from echomq.machine import HandleBatch, Wait
from echomq.outcomes import Delay, Done, Failed, Outcome

SHAPE = Shape(min_size=4, timeout_ms=200)


@pytest.mark.parametrize(
    ("depth", "elapsed", "flush"),
    [(0, 0, 0), (3, 0, 0), (3, 199, 0), (3, 200, 3), (4, 0, 4), (9, 0, 9), (0, 200, 0), (1, 1e9, 1)],
)
def test_decide(depth: int, elapsed: float, flush: int) -> None:
    assert decide(SHAPE, depth, elapsed) == flush


@pytest.mark.parametrize("bad", [(0, 1), (1, 0), (1.5, 1), ("1", 1), (True, 1)])
def test_shapes_refused(bad: tuple[int, int]) -> None:
    with pytest.raises(ArgumentError):
        Shape(*bad)


BATCH = [Job(name, b"", 1) for name in "abcdef"]


def test_verdicts() -> None:
    said = {"a": Done(), "b": Failed("x"), "c": Delay(5), "d": "fine", "z": Done()}
    assert read_verdicts(BATCH[:5], said) == [
        Done(),
        Failed("x"),
        Delay(5),
        Failed("bad verdict: 'fine'"),
        Failed("missing verdict"),
    ]
    assert read_verdicts(BATCH[:2], None) == [Failed("bad verdict: None")] * 2


def test_every_member_is_in_exactly_one_bucket() -> None:
    outcomes: list[Outcome] = [Done(), Done(), Failed("x"), Failed("x"), Delay(1), Delay(1)]
    answers = [Verdict.OK, Verdict.STALE, Verdict.SCHEDULED, Verdict.DEAD, Verdict.OK, Verdict.GONE]
    report = partition(BATCH, outcomes, answers)
    assert (report.completed, report.retried, report.dead, report.delayed) == (
        ["a"],
        ["b", "c", "f"],
        ["d"],
        ["e"],
    )


class Hand:
    """A batch consumer driven by hand, its local clock in ``now``."""

    def __init__(self, world: World, answer: object) -> None:
        self.world = world
        self.now = 0.0
        self.answer = answer
        self.batches: list[Sequence[Job]] = []
        self.consumer = BatchConsumer(
            world.link,
            world.queue,
            print,
            lambda: self.now,
            shape=SHAPE,  # type: ignore[arg-type]
        )
        self.steps = self.consumer.steps()
        self.request = next(self.steps)

    def go_on(self) -> None:
        """Up to the next local wait, which is answered at once."""
        while not isinstance(self.request, Wait):
            if isinstance(self.request, HandleBatch):
                self.batches.append(self.request.batch)
                self.request = self.steps.send(self.answer)
            else:
                self.request = self.steps.send(self.world.runner.perform(self.request))
        self.now += self.request.milliseconds
        self.request = self.steps.send(None)


def test_the_window_starts_with_its_first_job(world: World) -> None:
    hand = Hand(world, {})
    hand.now = 10_000.0
    hand.go_on()
    world.fill(2)
    for _ in range(4):
        hand.go_on()
        assert not hand.batches
    hand.go_on()
    assert [len(batch) for batch in hand.batches] == [2]
    assert hand.consumer.reports[0].retried == [job.id for job in hand.batches[0]]


def test_a_full_window_goes_at_once(world: World) -> None:
    ids = world.fill(6)
    hand = Hand(world, {job_id: Done() for job_id in ids})
    hand.go_on()
    assert hand.consumer.reports[0].completed == ids


def test_a_raising_handler_fails_every_member(world: World) -> None:
    ids = world.fill(4)
    hand = Hand(world, RuntimeError("boom"))
    hand.go_on()
    assert hand.consumer.reports[0].retried == ids
    assert {world.field(job_id, "last_error") for job_id in ids} == {b"boom"}


def test_members_are_announced(world: World) -> None:
    heard: list[bytes] = []
    world.connect(3).subscribe(world.keys.events, lambda _, payload: heard.append(payload))
    a, b, c = world.fill(3)
    said: dict[str, Outcome] = {a: Done(), b: Failed("x"), c: Delay(5)}
    world.runner.run(world.batches(lambda _: said).flush(3))
    world.until("three events", lambda: len(heard) == 3)
    assert heard[0] == b'{"event":"completed","job":"%s"}' % a.encode()
    assert [b'"failed"' in heard[1], b'"delayed"' in heard[2]] == [True, True]


def test_stop(world: World) -> None:
    consumer = BatchConsumer(world.link, world.queue, print)  # type: ignore[arg-type]
    consumer.stop()
    world.runner.run(consumer.steps())
