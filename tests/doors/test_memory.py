"""Memory stays flat however often clients and emulators are made and closed. Measured in the process itself."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import emuredis
import emuredis.asyncio

#: A single object that is kept per so many cycles counts as a leak.
ONE_IN = 20
#: Bytes by which the process may grow over many cycles: fragments, not objects.
BYTES = 4 << 20


def resident() -> int:
    """Bytes of memory that this process occupies."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def native(emulator: Any) -> None:
    client = emulator.client()
    client.call("SET", "k", "v")
    client.close()


def over_redis_py(emulator: Any) -> None:
    with emuredis.Redis(emulator=emulator) as client:
        client.set("k", "v")


def dropped(emulator: Any) -> None:
    emuredis.Redis(emulator=emulator).set("k", "v")


def whole(_: Any) -> None:
    emuredis.Emulator(seed=1).client().call("SET", "k", "v")


def patched(_: Any) -> None:
    import redis

    with emuredis.patch():
        with redis.Redis() as client:
            client.set("k", "v")


def asynchronous(emulator: Any, cycles: int) -> None:
    async def main() -> None:
        for _ in range(cycles):
            async with emuredis.asyncio.Redis(emulator=emulator) as client:
                await client.set("k", "v")

    asyncio.run(main())


def loops(emulator: Any) -> None:
    async def main() -> None:
        async with emuredis.asyncio.Redis(emulator=emulator) as client:
            await client.set("k", "v")
            try:
                await asyncio.wait_for(client.blpop("q", 0), 0.0001)
            except TimeoutError:
                pass

    asyncio.run(main())


CYCLES: dict[str, Callable[[Any], None]] = {
    "native": native,
    "over_redis_py": over_redis_py,
    "dropped": dropped,
    "whole": whole,
    "patched": patched,
    "loops": loops,
}


def growth(name: str, cycles: int) -> tuple[float, float]:
    """Allocated blocks, and bytes of the process, per cycle, that a run of cycles left behind."""
    emulator = emuredis.Emulator(seed=1)

    def run(count: int) -> None:
        if name == "asynchronous":
            asynchronous(emulator, count)
        else:
            cycle = CYCLES[name]
            for _ in range(count):
                cycle(emulator)
        gc.collect()

    run(cycles // 5)  # what grows once: caches, free lists
    blocks, before = sys.getallocatedblocks(), resident()
    run(cycles)
    assert not emulator.engine.leaving and len(emulator.engine.sessions) <= 1
    return (sys.getallocatedblocks() - blocks) / cycles, (resident() - before) / cycles


def measured(name: str, cycles: int) -> list[float]:
    """`growth` in a process of its own."""
    code = f"from tests.doors.test_memory import growth; print(*growth({name!r}, {cycles}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return [float(word) for word in done.stdout.split()]


NAMES = [*CYCLES, "asynchronous"]
pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_flat_over_a_few_cycles(name: str) -> None:
    # Some hundred blocks come and go; one object kept per cycle would be a whole one.
    assert measured(name, 800)[0] < 0.8


@pytest.mark.slow
@pytest.mark.strict
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", NAMES)
def test_flat_over_a_hundred_thousand_cycles(name: str) -> None:
    # A patch takes milliseconds, most of it the client's own metadata.
    cycles = 20_000 if name in ("loops", "patched") else 100_000
    blocks, size = measured(name, cycles)
    assert blocks < 1 / ONE_IN and size * cycles < BYTES, (blocks, size)
