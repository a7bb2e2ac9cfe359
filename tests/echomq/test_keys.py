"""Key names, cluster slots, and what is refused before anything is sent."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from echomq.connection import Connection
from echomq.errors import ArgumentError
from echomq.keys import VERSION_KEY, Keys, hashtag, slot

JOB = "JOB0JZGkP8stGK"
GROUP = "PRT0JZGkP8stGK"


@pytest.mark.parametrize(
    ("key", "number"),
    [
        ("123456789", 12739),
        ("q1", 7450),
        ("orders", 105),
        ("emq", 9051),
        ("emq:{orders}:pending", 105),
        (VERSION_KEY, 9051),
    ],
)
def test_slots(key: str, number: int) -> None:
    assert slot(key) == number


@pytest.mark.parametrize(
    ("key", "tag"),
    [
        (b"a{b}c", b"b"),
        (b"a{}c", b"a{}c"),
        (b"a{}{b}", b"a{}{b}"),
        (b"a{b", b"a{b"),
        (b"a}b{c}", b"c"),
        (b"{{x}}", b"{x"),
        (b"", b""),
    ],
)
def test_hashtags(key: bytes, tag: bytes) -> None:
    assert hashtag(key) == tag


def test_all_keys_of_a_queue_share_a_slot() -> None:
    keys = Keys("orders")
    names = [getattr(keys, name) for name in Keys.__slots__ if name not in ("queue", "job_prefix", "base")]
    names += [
        keys.job(JOB),
        keys.lane(GROUP),
        keys.dedup("x"),
        keys.repeat_record("tick"),
        keys.stream("log"),
    ]
    names += [keys.logs(JOB), keys.lock(JOB), keys.dependencies(JOB), keys.processed(JOB), keys.failed(JOB)]
    assert {slot(name) for name in names} == {105}


def test_spelling() -> None:
    keys = Keys("q")
    assert keys.job(JOB) == "emq:{q}:job:" + JOB
    assert keys.logs(JOB) == "emq:{q}:job:" + JOB + ":logs"
    assert keys.lane(GROUP) == "emq:{q}:g:" + GROUP + ":pending"
    assert keys.outbox == "emq:{q}:flow:outbox"
    assert keys.metric("completed") == "emq:{q}:metrics:completed"
    assert keys.unsuccessful(JOB) == "emq:{q}:job:" + JOB + ":unsuccessful"


@pytest.mark.parametrize(
    "queue", ["", "emq", "a b", "a{b", "a}b", "a\0b", "ä", "x" * 129, "a:b", "a\n", None, 7]
)
def test_queue_names_refused(queue: object) -> None:
    with pytest.raises(ArgumentError):
        Keys(queue)  # type: ignore[arg-type]


@pytest.mark.parametrize("queue", ["a", "x" * 128, "A-z_0.9", "emq2"])
def test_queue_names_taken(queue: str) -> None:
    assert Keys(queue).queue == queue


@pytest.mark.parametrize("what", ["job", "lane", "logs", "lock", "dependencies"])
@pytest.mark.parametrize("bad", ["", "JOB", "job0JZGkP8stGK", JOB + "0", None, b"JOB0JZGkP8stGK"])
def test_ids_refused(what: str, bad: object) -> None:
    builder: Callable[[object], str] = getattr(Keys("q"), what)
    with pytest.raises(ArgumentError):
        builder(bad)


@pytest.mark.parametrize("bad", ["", "a b", "x" * 256, "a{b}", None])
def test_deduplication_ids_refused(bad: object) -> None:
    with pytest.raises(ArgumentError):
        Keys("q").dedup(bad)  # type: ignore[arg-type]


def test_slots_agree_with_a_server(live_world: object, live_url: str) -> None:
    connection: Connection = live_world.connection  # type: ignore[attr-defined]
    for key in ("a{b}c", "a{}c", "a{b", "{{x}}", "emq:{q}:pending", "123456789"):
        try:
            found = connection.call("CLUSTER", "KEYSLOT", key)
        except Exception as error:
            pytest.skip(f"the server has no cluster support: {error}")
        assert found == slot(key)
