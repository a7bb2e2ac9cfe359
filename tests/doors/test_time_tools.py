"""freezegun and time-machine beside an emulator: they neither break it nor are needed. See docs/time.md."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

import emuredis
import emuredis.asyncio

LONG_AGO = 1_577_836_800  # 2020-01-01


async def in_a_loop(clock: Any = None) -> list[Any]:
    client = emuredis.asyncio.Redis(emulator=emuredis.Emulator(clock=clock), socket_timeout=None)
    await client.set("k", "v", px=60_000)
    out = [await client.blpop("q", 0.02), await client.pttl("k") > 59_000]
    await client.aclose()
    return out


def test_freezegun_is_not_noticed() -> None:
    """The clock of an emulator is not among what it replaces: deadlines and waits go on as ever."""
    freezegun: Any = pytest.importorskip("freezegun")
    client = emuredis.Redis(socket_timeout=None)
    with freezegun.freeze_time("2020-01-01") as frozen:
        assert time.time() == LONG_AGO
        assert client.time()[0] > LONG_AGO + 100_000_000
        client.set("k", "v", px=60_000)
        frozen.tick(3600)
        assert client.get("k") == b"v"
        assert client.blpop("q", 0.02) is None
        manual = emuredis.Emulator(clock=emuredis.ManualClock())
        assert emuredis.Redis(emulator=manual).blpop("q", 60) is None
    with freezegun.freeze_time("2020-01-01", real_asyncio=True):
        assert asyncio.run(in_a_loop()) == asyncio.run(in_a_loop(emuredis.ManualClock())) == [None, True]


def test_one_moves_the_other() -> None:
    """A test that freezes the program's own clock moves both."""
    freezegun: Any = pytest.importorskip("freezegun")
    clock = emuredis.ManualClock(LONG_AGO)
    client = emuredis.Redis(emulator=emuredis.Emulator(clock=clock))
    with freezegun.freeze_time("2020-01-01") as frozen:
        client.set("k", "v", exat=int(time.time()) + 10)
        frozen.tick(10)
        clock.set(time.time())
        assert client.get("k") is None


@pytest.mark.slow
def test_imported_while_frozen() -> None:
    pytest.importorskip("freezegun")
    code = """
import time, freezegun
with freezegun.freeze_time("2020-01-01"):
    import emuredis
    client = emuredis.Emulator().client()
    first = client.call("TIME")
    client.call("BLPOP", "q", 0.02)
    assert client.call("TIME") > first and int(first[0]) > time.time() + 100_000_000
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("tick", (True, False))
def test_time_machine_is_followed(tick: bool) -> None:
    """It replaces the machine's clock itself: the server's time is the traveller's, waits take real time."""
    time_machine: Any = pytest.importorskip("time_machine")
    client = emuredis.Redis(socket_timeout=None)
    with time_machine.travel(LONG_AGO, tick=tick) as traveller:
        assert client.time()[0] == LONG_AGO
        client.set("k", "v", px=60_000)
        assert client.blpop("q", 0.02) is None
        assert client.lock("l", timeout=5).acquire()
        assert not client.lock("l", sleep=0.001).acquire(blocking=False)
        assert asyncio.run(in_a_loop()) == [None, True]
        assert client.get("k") == b"v"
        traveller.shift(60)
        assert client.get("k") is None
        manual = emuredis.Emulator(clock=emuredis.ManualClock())
        assert emuredis.Redis(emulator=manual).blpop("q", 60) is None
        assert asyncio.run(in_a_loop(emuredis.ManualClock())) == [None, True]


def test_a_wait_goes_on_while_the_clock_is_stopped() -> None:
    time_machine: Any = pytest.importorskip("time_machine")
    emulator = emuredis.Emulator()
    got: list[Any] = []
    thread = threading.Thread(target=lambda: got.append(emulator.client().call("BLPOP", "q", "0")))
    thread.start()
    while emulator.engine.waiting.count == 0:
        pass
    with time_machine.travel(LONG_AGO, tick=False):
        emulator.client().call("RPUSH", "q", "x")
        thread.join(10)
    assert got == [[b"q", b"x"]]


def test_skew() -> None:
    """A client's own clock may be wrong; the server's is one."""
    emulator = emuredis.Emulator(clock=emuredis.ManualClock(LONG_AGO))
    right, fast = emulator.client(), emulator.client(skew_ms=1500)
    slow = emulator.client(skew_ms=-500)
    assert (right.time(), fast.time(), slow.time()) == (LONG_AGO, LONG_AGO + 1.5, LONG_AGO - 0.5)
    assert right.call("TIME") == fast.call("TIME") == [b"%d" % LONG_AGO, b"0"]
    fast.call("SET", "lease", "mine", "PXAT", int(fast.time() * 1000) + 1000)
    assert right.call("PTTL", "lease") == 2500
    emulator.clock.advance(2000)  # type: ignore[attr-defined]
    assert fast.time() == LONG_AGO + 3.5
    slow.skew_ms = 0
    assert slow.time() == right.time()
