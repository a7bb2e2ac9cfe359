"""The queue's scripts are fit for a cluster: what they touch lies in the slot of a declared key."""

from __future__ import annotations

import pytest

import emuredis
from echomq import conformance
from echomq.endpoint import Endpoint


@pytest.fixture
def strict_endpoint() -> Endpoint:
    emulator = emuredis.Emulator(clock=emuredis.ManualClock(), strict_keys="slot")
    emuredis.Emulator.register("strict", emulator)
    return Endpoint("emuredis://strict", clock=emulator.clock)


@pytest.mark.parametrize("name", conformance.names())
def test_scenario(strict_endpoint: Endpoint, name: str) -> None:
    (result,) = conformance.run(strict_endpoint, only=name, time_scale=3)
    assert result.problem is None


def test_the_mode_was_on() -> None:
    """Rows are found by a prefix, so "declared" would refuse them, and names script and line."""
    emulator = emuredis.Emulator(clock=emuredis.ManualClock(), strict_keys="declared")
    emuredis.Emulator.register("declared", emulator)
    (result,) = conformance.run(
        Endpoint("emuredis://declared", clock=emulator.clock), only="claim", time_scale=3
    )
    assert "script claim.lua (" in str(result.problem) and "HINCRBY touches" in str(result.problem)
