"""Servers for the queue's tests: `endpoint` is first an emulator on a manual clock, then the live server."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from echomq.conformance.world import World
from echomq.connection import Connection
from echomq.endpoint import Endpoint, Options
from echomq.ids import Minter
from echomq.script import our_scripts

TIME_SCALE = 3


@pytest.fixture
def live_endpoint(live_url: str) -> Endpoint:
    """The live server."""
    return Endpoint(live_url)


@pytest.fixture
def embedded_endpoint() -> Endpoint:
    """A private emulator on a manual clock."""
    from echomq.embedded import manual_clock

    return Endpoint("emuredis://", clock=manual_clock())


@pytest.fixture(params=["emuredis", pytest.param("live", marks=pytest.mark.wall)])
def endpoint(request: pytest.FixtureRequest) -> Endpoint:
    """Both servers in turn; time passes by hand on the first."""
    name = "embedded_endpoint" if request.param == "emuredis" else "live_endpoint"
    found: Endpoint = request.getfixturevalue(name)
    return found


@pytest.fixture
def world(endpoint: Endpoint) -> Iterator[World]:
    """A queue called ``t`` on either server, with all its parts."""
    yield from _world(endpoint)


@pytest.fixture
def live_world(live_endpoint: Endpoint) -> Iterator[World]:
    """A queue called ``t`` on the live server."""
    yield from _world(live_endpoint)


def _world(endpoint: Endpoint) -> Iterator[World]:
    connection = endpoint.connect()
    minter = Minter(7, endpoint.clock)
    made = World(endpoint, connection, "t", scripts=our_scripts(), minter=minter, time_scale=TIME_SCALE)
    yield made
    made.close()
    connection.close()


@pytest.fixture
def connect(endpoint: Endpoint) -> Iterator[Callable[..., Connection]]:
    """More connections to the same server, closed after the test."""
    opened: list[Connection] = []

    def open_one(**options: object) -> Connection:
        opened.append(endpoint.connect(Options(**options)))  # type: ignore[arg-type]
        return opened[-1]

    yield open_one
    for connection in opened:
        connection.close()
