"""Event logs beyond the scenarios: what is refused, what consumers do after a crash, how long records are kept."""

from __future__ import annotations

from typing import Any

import pytest

from echomq.clock import Movable, now_ms
from echomq.conformance.world import World
from echomq.errors import ArgumentError, ServerError, Verdict
from echomq.ids import encode, pack, stream_id
from echomq.streams import MaxLen, MinId, Record, StreamConsumer, StreamRecord, StreamRetention, Streams

START_MS = 1_750_000_000_000


def event(milliseconds: int) -> str:
    return encode("EVT", pack(START_MS + milliseconds, 7, 0))


@pytest.fixture
def streams(world: World) -> Streams:
    return Streams(world.link, world.queue, world.minter, world.clock)


@pytest.fixture
def filled(streams: Streams) -> list[str]:
    """Three records in ``log``."""
    return [str(streams.append_id("log", event(n), {"n": str(n)})) for n in range(3)]


class Seen:
    """A handler that notes what it gets and fails for the records of ``bad``."""

    def __init__(self, *bad: str) -> None:
        self.bad = bad
        self.records: list[StreamRecord] = []

    def __call__(self, record: StreamRecord) -> None:
        self.records.append(record)
        if record.id in self.bad:
            raise RuntimeError("not this one")

    @property
    def ids(self) -> list[str]:
        return [record.id for record in self.records]


def consumer(world: World, name: str, handler: Any, **options: Any) -> StreamConsumer:
    options = {"start": "head", "beat_ms": 20, **options}
    return StreamConsumer(world.link, world.queue, "log", "g", name, handler, **options)


def prepare(world: World, made: StreamConsumer) -> None:
    world.runner.run(made.prepare.steps())


def serve(world: World, made: StreamConsumer) -> int:
    return world.runner.run(made.round.steps())


def pending(world: World) -> int:
    return int(world.connection.call("XPENDING", world.keys.stream("log"), "g")[0])


# -- writing and reading -----------------------------------------------------------------------


def test_a_batch_has_a_receipt_for_each(streams: Streams, world: World) -> None:
    ids = streams.append_batch("log", [{"n": "1"}, {"n": b"\xff"}])
    assert streams.read("log") == [Record(str(ids[0]), {"n": b"1"}), Record(str(ids[1]), {"n": b"\xff"})]
    world.connection.call("XADD", world.keys.stream("log"), "99999999999999-1", "id", "later")
    assert streams.append_batch("log", [{}, {}]) == [Verdict.NONMONOTONIC] * 2
    assert streams.append("log", {}) == Verdict.NONMONOTONIC


def test_ranges_and_counts(streams: Streams, filled: list[str]) -> None:
    assert [r.id for r in streams.read("log", count=2)] == filled[:2]
    assert [r.id for r in streams.read("log", stream_id(filled[1]), stream_id(filled[1]))] == [filled[1]]
    assert streams.read("none") == []


def test_what_is_refused_before_anything_is_sent(streams: Streams, world: World) -> None:
    before = world.connection.counters.commands
    for call in (
        lambda: streams.append_id("log", world.mint("JOB"), {}),
        lambda: streams.append_id("log", "EVT", {}),
        lambda: streams.append("log", {"id": "x"}),
        lambda: streams.append("", {}),
        lambda: streams.append("log:archived", {}),
        lambda: streams.append_batch("log", []),
        lambda: streams.read("log", count=0),
        lambda: streams.read_window("log", 2, 1),
        lambda: streams.read_window("log", -1, 1),
        lambda: streams.mark_archived("log", world.mint("JOB")),
        lambda: streams.trim("log", MaxLen(-1)),
        lambda: streams.trim("log", MinId()),
        lambda: streams.trim("log", MinId(1, 1)),
        lambda: streams.trim("log", 5),  # type: ignore[arg-type]
        lambda: consumer(world, "a", Seen(), start="middle"),
        lambda: consumer(world, "a", Seen(), count=0),
    ):
        with pytest.raises(ArgumentError):
            call()
    assert world.connection.counters.commands == before


def test_other_errors_pass_through(streams: Streams, world: World) -> None:
    world.connection.call("SET", world.keys.stream("log"), "a string")
    with pytest.raises(ServerError, match="WRONGTYPE"):
        streams.append("log", {})
    with pytest.raises(ServerError, match="WRONGTYPE"):
        streams.append_batch("log", [{}])


# -- consumers ---------------------------------------------------------------------------------


def test_records_are_handled_and_acknowledged(world: World, streams: Streams, filled: list[str]) -> None:
    seen = Seen()
    made = consumer(world, "a", seen)
    prepare(world, made)
    assert serve(world, made) == 3
    assert seen.records == [StreamRecord(i, {"n": b"%d" % n}, 1, "g") for n, i in enumerate(filled)]
    assert pending(world) == 0
    assert serve(world, made) == 0
    streams.append_id("log", event(9), {})
    assert serve(world, made) == 1
    assert seen.ids[-1] == event(9)


def test_a_new_group_may_begin_at_the_end(world: World, streams: Streams, filled: list[str]) -> None:
    seen = Seen()
    made = consumer(world, "a", seen, start="new")
    prepare(world, made)
    prepare(world, made)  # a second start is fine
    streams.append_id("log", event(9), {})
    serve(world, made)
    assert seen.ids == [event(9)]


def test_a_restarted_consumer_settles_its_own_backlog_first(
    world: World, streams: Streams, filled: list[str]
) -> None:
    failing = consumer(world, "a", Seen(*filled))
    prepare(world, failing)
    serve(world, failing)
    assert pending(world) == 3
    streams.append_id("log", event(9), {})
    seen = Seen(filled[1])
    again = consumer(world, "a", seen)
    prepare(world, again)  # ends although one record keeps failing
    assert [(r.id, r.attempts) for r in seen.records] == [(record_id, 2) for record_id in filled]
    assert pending(world) == 1
    serve(world, again)
    assert seen.ids[-1] == event(9)


def test_a_dead_peers_records_are_taken_over(world: World, filled: list[str]) -> None:
    dead = consumer(world, "a", Seen(*filled))
    prepare(world, dead)
    serve(world, dead)
    seen = Seen()
    heir = consumer(world, "b", seen, min_idle_ms=world.ms(60_000))
    prepare(world, heir)
    assert serve(world, heir) == 0
    heir.min_idle_ms = 0
    assert serve(world, heir) == 3
    assert [(r.id, r.attempts) for r in seen.records] == [(record_id, 2) for record_id in filled]
    assert pending(world) == 0


def test_a_deleted_record_is_not_handled(world: World, filled: list[str]) -> None:
    failing = consumer(world, "a", Seen(*filled))
    prepare(world, failing)
    serve(world, failing)
    world.connection.call("XDEL", world.keys.stream("log"), stream_id(filled[0]))
    seen = Seen()
    prepare(world, consumer(world, "a", seen))
    assert seen.ids == filled[1:]
    assert pending(world) == 0


def test_a_key_that_is_no_stream_ends_the_consumer(world: World) -> None:
    world.connection.call("SET", world.keys.stream("log"), "a string")
    with pytest.raises(ServerError, match="WRONGTYPE"):
        world.runner.run(consumer(world, "a", Seen()).steps())


def test_a_consumer_runs_until_it_is_stopped(world: World, filled: list[str]) -> None:
    handled: list[str] = []

    def handler(record: StreamRecord) -> None:
        handled.append(record.id)
        if len(handled) == 2:
            made.stop()

    made = consumer(world, "a", handler)
    world.runner.run(made.steps())
    assert handled == filled[:2]
    assert pending(world) == 1, "the third was delivered and is left for the next life"


# -- retention ---------------------------------------------------------------------------------


def test_a_sweep_trims_each_stream_to_its_window(world: World, streams: Streams, filled: list[str]) -> None:
    if isinstance(world.clock, Movable):  # away from the epoch of ids
        world.clock.advance(10_000)
    now = now_ms(world.clock)
    for age in (5000, 3000, 1000):
        streams.append_id("aged", encode("EVT", pack(now - age, 1, 0)), {})
    retention = StreamRetention(world.link, world.clock)
    retention.keep(world.queue, "log", MaxLen(1, approx=False))
    retention.keep(world.queue, "aged", MinId(ago_ms=4000, approx=False))
    assert retention.sweep() == 3
    assert [r.id for r in streams.read("log")] == filled[2:]
    assert len(streams.read("aged")) == 2
    assert retention.release(world.queue, "log") and not retention.release(world.queue, "log")


def test_a_trim_that_fails_is_logged_and_passed_over(
    world: World, filled: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    world.connection.call("SET", world.keys.stream("bad"), "a string")
    retention = StreamRetention(world.link, world.clock)
    retention.keep(world.queue, "bad", MaxLen(1))
    retention.keep(world.queue, "log", MinId(START_MS + 2, approx=False))
    assert retention.sweep() == 2
    assert "bad" in caplog.text and "WRONGTYPE" in caplog.text


def test_a_malformed_window_is_refused_when_it_is_given(world: World) -> None:
    retention = StreamRetention(world.link, world.clock)
    for window in (MaxLen(-1), MinId(), MinId(-1), MinId(ago_ms=-1), (1, True)):
        with pytest.raises(ArgumentError):
            retention.keep(world.queue, "log", window)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError):
        retention.keep("not a queue", "log", MaxLen(1))
