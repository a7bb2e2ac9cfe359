"""Our own server on a Unix socket and a loopback port, and raw connections to it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import emuredis
from emuredis.server import Server
from tests.support.live import Connection

Connect = Callable[[], Connection]


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    """A short path, for Unix sockets."""
    path = tempfile.mkdtemp(prefix="emu-")
    yield Path(path)
    shutil.rmtree(path)


@pytest.fixture
def server(directory: Path) -> Iterator[Server]:
    emulator = emuredis.Emulator(seed=1, config={"enable-debug-command": "yes"})
    with Server(emulator, port=0, unix=str(directory / f"s{os.getpid()}")).start() as running:
        yield running


@pytest.fixture
def connect(server: Server) -> Iterator[Connect]:
    """Makes connections to the server; they are closed at the end."""
    made: list[Connection] = []

    def make() -> Connection:
        made.append(Connection(server.unix or ""))
        return made[-1]

    yield make
    for connection in made:
        connection.close()
