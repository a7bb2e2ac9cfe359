"""The live cluster of three primaries, shared by the tests of this directory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import NO_LIVE
from tests.support.live import binary
from tests.support.live_cluster import LiveCluster


@pytest.fixture(scope="session")
def live_cluster() -> Iterator[LiveCluster]:
    if binary() is None:
        pytest.skip(NO_LIVE)
    with LiveCluster(3) as cluster:
        yield cluster
