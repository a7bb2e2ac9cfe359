"""Every block of cluster lines, RESP2 and RESP3, over the wire against a live cluster of three primaries.

Where there is no live server, its recorded answers stand in for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.compare import differences
from tests.conformance.lines import Block
from tests.support.live import binary

from . import recorded
from .harness import Side, blocks, emulated, live, transcript

EACH = [
    pytest.param(block, protocol, id=f"{block.id}-resp{protocol}")
    for block in blocks()
    for protocol in block.protocols
]


@pytest.fixture(scope="module")
def ours() -> Iterator[Side]:
    side, servers = emulated()
    yield side
    side.close()
    servers.stop()


@pytest.fixture(scope="module")
def truth(request: pytest.FixtureRequest) -> Iterator[Side | None]:
    """The live cluster, or None where there is none."""
    if binary() is None:
        yield None
        return
    side = live(request.getfixturevalue("live_cluster"))
    yield side
    side.close()


@pytest.mark.slow
@pytest.mark.parametrize(("block", "protocol"), EACH)
def test_as_the_live_cluster(block: Block, protocol: int, ours: Side, truth: Side | None) -> None:
    want = recorded.read(block, protocol) if truth is None else transcript(block, protocol, truth)
    found = differences(want, transcript(block, protocol, ours), ("live", "emuredis"))
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def test_the_recording_is_complete() -> None:
    missing = [f"{block.id} {protocol}" for block in blocks() for protocol in block.protocols
               if not recorded.has(block, protocol)]  # fmt: skip
    assert not missing, "run `make record`"
