"""Every case on emuredis, in process and over the wire, and on the live server (where a wrong case would show).

Over TCP, as they were recorded: a client on a Unix socket has another flag in CLIENT INFO.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support.emulated import EmulatorEndpoint, WireEndpoint
from tests.support.endpoints import SocketEndpoint
from tests.support.live import LiveServer

from .runner import Case, load, outside, run

CASES = load()
OUTSIDE = outside()
EACH = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
# On a server real time passes where the case waits.
WALL = [pytest.mark.wall, pytest.mark.slow]
EACH_ON_A_SERVER = pytest.mark.parametrize(
    "case", [pytest.param(case, marks=WALL if case.waits else [], id=case.id) for case in CASES]
)


@pytest.fixture(scope="module")
def live_endpoint(live_server: LiveServer) -> Iterator[SocketEndpoint]:
    endpoint = SocketEndpoint("live", ("127.0.0.1", live_server.port))
    yield endpoint
    endpoint.close()


@pytest.fixture(scope="module")
def wire() -> Iterator[WireEndpoint]:
    endpoint = WireEndpoint(None)
    yield endpoint
    endpoint.close()


def leave_out(case: Case) -> None:
    if case.id in OUTSIDE:
        pytest.skip("needs commands that are not there, see tests/cases/outside.txt")


def check(wrong: list[str]) -> None:
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@EACH
def test_in_process(case: Case, notes: dict[str, Counter[str]]) -> None:
    if case.id in OUTSIDE:
        notes["cases left out for want of commands"][OUTSIDE[case.id][0]] += 1
    leave_out(case)
    check(run(case, EmulatorEndpoint()))


@EACH_ON_A_SERVER
def test_over_the_wire(case: Case, wire: WireEndpoint) -> None:
    leave_out(case)
    check(run(case, wire))


@EACH_ON_A_SERVER
def test_on_the_live_server(case: Case, live_endpoint: SocketEndpoint) -> None:
    check(run(case, live_endpoint))


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_left_out_cannot_be_run(name: str) -> None:
    """A case is outside no longer than it has to be: one that agrees belongs inside."""
    by_id = {case.id: case for case in CASES}
    assert run(by_id[name], EmulatorEndpoint()), f"{name} runs now: take it out of outside.txt"
