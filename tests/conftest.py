"""Fixtures for every test: the live server, and an honest word at the end about what was not run.

`live_url` is the address of a real Valkey that the whole session shares, `live` a raw connection to it after a
FLUSHALL. A test that uses either is skipped where the platform has no server binary, and counted in the closing
summary; conformance lines and cases then compare with recorded answers instead.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.live import Connection, LiveServer, binary

_HEALTH = [HealthCheck.too_slow, HealthCheck.data_too_large]
# `default` repeats the same examples in every run; `new` (HYPOTHESIS_PROFILE=new) looks for others.
settings.register_profile("default", deadline=None, derandomize=True, suppress_health_check=_HEALTH)
settings.register_profile("new", deadline=None, max_examples=2000, suppress_health_check=_HEALTH)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

NO_LIVE = "no live server for this platform"
_notes: pytest.StashKey[dict[str, Counter[str]]] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_notes] = defaultdict(Counter)


@pytest.fixture(scope="session")
def live_server() -> Iterator[LiveServer]:
    """The session's real Valkey, on a Unix socket in a temporary directory and on a loopback port."""
    if binary() is None:
        pytest.skip(NO_LIVE)
    with LiveServer(tcp=True) as server:
        yield server


@pytest.fixture
def live_url(live_server: LiveServer) -> str:
    """``unix://`` address of the real Valkey, emptied."""
    with_connection = live_server.connect()
    with_connection.call("FLUSHALL")
    with_connection.close()
    return live_server.url


@pytest.fixture
def live(live_server: LiveServer) -> Iterator[Connection]:
    """A raw RESP2 connection to the real Valkey, emptied."""
    connection = live_server.connect()
    connection.call("FLUSHALL")
    yield connection
    connection.close()


@pytest.fixture(scope="session")
def notes(request: pytest.FixtureRequest) -> dict[str, Counter[str]]:
    """What the closing summary should count: for each thing left out, the reasons."""
    return request.config.stash[_notes]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lines = []
    for what, reasons in config.stash[_notes].items():
        counted = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
        lines.append(f"{reasons.total()} {what}: {counted}")
    if binary() is None:
        lines.insert(0, f"{NO_LIVE}: lines and cases were compared with recorded answers")
    if lines:
        terminalreporter.section("what was not run, or not live")
        for line in lines:
            terminalreporter.write_line(line)
