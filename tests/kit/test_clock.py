"""The manual clock: from one due instant to the next, and until something is so."""

from __future__ import annotations

import threading

import pytest

from emuredis.clock import ManualClock
from emuredis.emulator import Emulator
from emuredis.errors import WaitForever


def test_to_the_next_deadline() -> None:
    clock = ManualClock()
    emulator = Emulator(clock=clock)
    client = emulator.client()
    assert clock.advance_to_next() is None
    client.call("SET", "a", "v", "PX", 300)
    client.call("SET", "b", "v", "PX", 100)
    client.call("HSET", "h", "f", "v", "g", "w")
    client.call("HPEXPIRE", "h", 200, "FIELDS", 1, "f")
    assert clock.advance_to_next() == 100
    emulator.assert_keys("a", "h")
    assert clock.advance_to_next() == 100
    emulator.assert_hash("h", {"g": "w"})
    assert clock.advance_to_next() == 100
    emulator.assert_keys("h")
    assert clock.advance_to_next() is None


def test_to_the_end_of_a_wait() -> None:
    clock = ManualClock(autojump=False)
    emulator = Emulator(clock=clock)
    replies: list[object] = []
    thread = threading.Thread(target=lambda: replies.append(emulator.client().call("BLPOP", "l", 30)))
    thread.start()
    while not emulator.engine.waiting.count:
        pass
    assert clock.advance_to_next() == 30_000
    thread.join()
    assert replies == [None]


def test_until_something_is_so() -> None:
    clock = ManualClock()
    emulator = Emulator(clock=clock)
    client = emulator.client()
    for number in range(5):
        client.call("SET", f"k{number}", "v", "PX", 100 * (number + 1))
    assert clock.run_until(lambda: client.call("DBSIZE") == 2) == 300
    assert clock.run_until(lambda: True) == 0
    with pytest.raises(WaitForever, match="nothing is due any more"):
        clock.run_until(lambda: client.call("EXISTS", "never"))
    client.call("SET", "far", "v", "EX", 100)
    with pytest.raises(WaitForever, match="has not happened within 5000 ms"):
        clock.run_until(lambda: client.call("DBSIZE") == 0, limit_ms=5000)
    assert client.call("DBSIZE") == 1


def test_two_emulators_on_one_clock() -> None:
    clock = ManualClock()
    one, two = Emulator(clock=clock), Emulator(clock=clock)
    one.client().call("SET", "k", "v", "PX", 200)
    two.client().call("SET", "k", "v", "PX", 100)
    assert clock.advance_to_next() == 100
    two.assert_keys()
    one.assert_keys("k")
