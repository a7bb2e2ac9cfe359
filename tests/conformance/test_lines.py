"""Every block of lines, RESP2 and RESP3: emuredis in process and over the wire against the live server.

What the live server answers is asked once per block and protocol; where there is none, the recording stands in
for it. A recording that no longer agrees with the lines or with the live server fails here too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.emulated import EmulatorEndpoint, WireEndpoint
from tests.support.endpoints import Endpoint, SocketEndpoint
from tests.support.live import binary

from . import recorded
from .compare import differences
from .lines import Block, files, load
from .run import Entry, run

BLOCKS = [(block, protocol) for path in files() for block in load(path) for protocol in block.protocols]
# On a server real time passes where a block waits.
WALL = [pytest.mark.wall, pytest.mark.slow]
PARAMETERS = [pytest.param(b, p, marks=WALL if b.waits else [], id=f"{b.id}-resp{p}") for b, p in BLOCKS]
EACH = pytest.mark.parametrize(("block", "protocol"), PARAMETERS)
_answers: dict[tuple[str, int], list[Entry]] = {}


@pytest.fixture(scope="module")
def truth(request: pytest.FixtureRequest) -> Iterator[Endpoint | None]:
    """The live server as an endpoint, or None where there is none."""
    if binary() is None:
        yield None
        return
    endpoint = SocketEndpoint("live", request.getfixturevalue("live_server").socket_path)
    yield endpoint
    endpoint.close()


@pytest.fixture(scope="module")
def inprocess() -> EmulatorEndpoint:
    return EmulatorEndpoint()


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WireEndpoint]:
    endpoint = WireEndpoint(str(tmp_path_factory.mktemp("wire") / "s"))
    yield endpoint
    endpoint.close()


def answers(block: Block, protocol: int, truth: Endpoint | None) -> list[Entry]:
    if truth is None:
        return recorded.read(block, protocol)
    key = (block.id, protocol)
    if key not in _answers:
        _answers[key] = run(block, protocol, truth)
    return _answers[key]


def agree(want: list[Entry], got: list[Entry], name: str) -> None:
    found = differences(want, got, ("live", name))
    if found:
        pytest.fail("\n".join(found), pytrace=False)


@EACH
def test_in_process(block: Block, protocol: int, truth: Endpoint | None, inprocess: EmulatorEndpoint) -> None:
    if "inprocess" not in block.skipped:
        agree(answers(block, protocol, truth), run(block, protocol, inprocess), "inprocess")


@EACH
def test_over_the_wire(block: Block, protocol: int, truth: Endpoint | None, wire: WireEndpoint) -> None:
    if "wire" not in block.skipped:
        agree(answers(block, protocol, truth), run(block, protocol, wire), "wire")


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_recording_is_up_to_date(path: Path, truth: Endpoint | None) -> None:
    for block in load(path):
        for protocol in block.protocols:
            kept = recorded.read(block, protocol)
            if truth is not None:
                agree(answers(block, protocol, truth), kept, "recorded")
