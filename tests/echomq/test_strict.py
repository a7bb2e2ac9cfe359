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
