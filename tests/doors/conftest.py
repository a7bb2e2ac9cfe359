"""The doors as a parameter of tests: ``check(body)`` compares a body's transcript with the live server's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import emuredis
from tests.support.live import LiveServer, binary

from .doors import DOORS, Body, Door, run, transcript


@pytest.fixture(params=DOORS, ids=str)
def door(request: pytest.FixtureRequest) -> Door:
    chosen: Door = request.param
    return chosen


@pytest.fixture(scope="session")
def tcp() -> Iterator[tuple[emuredis.Emulator, tuple[str, int]]]:
    """An emulator behind a server on a loopback port."""
    emulator = emuredis.Emulator(seed=1)
    with emulator.serve() as server:
        yield emulator, server.address


@pytest.fixture
def address(door: Door, request: pytest.FixtureRequest) -> Any:
    """Where the door's server is: an emulator, or a host and port; empty in either case."""
    if door.kind != "tcp":
        return emuredis.Emulator(seed=1)
    emulator, where = request.getfixturevalue("tcp")
    emulator.flushall()
    emulator.client().call("SCRIPT", "FLUSH")
    emulator.client().call("FUNCTION", "FLUSH")
    return where


@pytest.fixture
def check(door: Door, address: Any, request: pytest.FixtureRequest) -> Callable[[Body], Any]:
    """Run a body through the door; compare with the live server where there is one; the transcript."""

    def compare(body: Body) -> Any:
        seen = run(door, address, body)
        if binary() is not None:
            server: LiveServer = request.getfixturevalue("live_server")
            assert seen == transcript(body, door, server)
        return seen

    return compare
