"""Whatever bytes a client sends, our server answers with the live server's bytes, and closes where it closes.

The bytes are sent in one go, then bisected, and one at a time: on our server the answers may not depend on that.
Nothing waits for time to pass: a server has seen what it was sent once CLIENT LIST counts the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import emuredis
from emuredis.protocol import decode
from emuredis.server import Server
from tests.server.requests import EVERY_BYTE, FORBIDDEN, REQUESTS, RESTRICTED
from tests.support.live import Connection, LiveServer, Lost

PASSWORD = ("AUTH", "pw")


class Side:
    """One server under comparison, with a connection to watch it by."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.control = Connection(path)
        self._seen = int(self.control.call("CLIENT", "ID").value)

    def send(self, pieces: list[bytes]) -> tuple[bytes, bool]:
        """What comes back when everything has been dealt with, and whether the connection was closed."""
        connection = Connection(self.path)
        number = self._newest()
        sent = 0
        for piece in pieces:
            try:
                connection.send_raw(piece)
            except Lost:
                break
            sent += len(piece)
            if len(pieces) > 1:
                self._settle(number, sent)
        self._settle(number, sent)
        self.control.call("PING")  # by its answer at the latest, those before it have left
        answer, closed = b"", False
        connection.socket.setblocking(False)
        try:
            while data := connection.socket.recv(1 << 20):
                answer += data
            closed = True
        except BlockingIOError:
            pass
        except ConnectionError:  # cut off with bytes unread
            closed = True
        connection.close()
        return answer, closed

    def _clients(self) -> dict[int, dict[bytes, bytes]]:
        listed = self.control.call("CLIENT", "LIST").value
        rows = [dict(part.partition(b"=")[::2] for part in line.split()) for line in listed.splitlines()]
        return {int(row[b"id"]): row for row in rows}

    def _newest(self) -> int:
        """The id of the client that has just connected, once it has been accepted."""
        while (number := max(self._clients())) <= self._seen:
            pass
        self._seen = number
        return number

    def _settle(self, number: int, sent: int) -> None:
        for _ in range(100_000):
            row = self._clients().get(number)
            if row is None or int(row[b"tot-net-in"]) >= sent:
                return
        raise AssertionError("the server does not read")


@pytest.fixture(scope="module")
def live_side(live_server: LiveServer) -> Iterator[Side]:
    side = Side(live_server.socket_path)
    yield side
    side.control.close()


READERS = [pytest.param(False, id="python")]
if decode.hiredis is not None:
    READERS.append(pytest.param(True, id="hiredis"))


@pytest.fixture(scope="module", params=READERS)
def our_side(request: pytest.FixtureRequest, directory: Path) -> Iterator[Side]:
    emulator = emuredis.Emulator(seed=1)
    path = str(directory / f"malformed-{request.param}")
    with Server(emulator, port=None, unix=path, hiredis=request.param).start():
        side = Side(path)
        yield side
        side.control.close()


def cuts(data: bytes) -> Iterator[list[bytes]]:
    yield [data]
    yield [data[: len(data) // 2], data[len(data) // 2 :]]
    if len(data) <= 60:
        yield [data[at : at + 1] for at in range(len(data))]


@pytest.mark.slow
def test_same_bytes_as_the_live_server(live_side: Side, our_side: Side) -> None:
    different = []
    for data in REQUESTS + FORBIDDEN + EVERY_BYTE:
        live = live_side.send([data])
        for pieces in cuts(data) if data in REQUESTS else [[data]]:
            ours = our_side.send(pieces)
            if ours != live:
                different.append((data[:80], len(pieces), live, ours))
                break
    assert not different


def test_same_limits_before_authentication(live_side: Side, our_side: Side) -> None:
    for side in (live_side, our_side):
        assert side.control.call("CONFIG", "SET", "requirepass", "pw").value == b"OK"
        side.control.call(*PASSWORD)
    try:
        for data in RESTRICTED:
            live = live_side.send([data])
            for pieces in cuts(data):
                assert our_side.send(pieces) == live, data[:80]
    finally:
        for side in (live_side, our_side):
            side.control.call("CONFIG", "SET", "requirepass", "")


def test_same_limit_of_a_value(live_side: Side, our_side: Side) -> None:
    for side in (live_side, our_side):
        side.control.call("CONFIG", "SET", "proto-max-bulk-len", "1mb")
    try:
        for size in (1048576, 1048577):
            data = b"*2\r\n$4\r\nECHO\r\n$%d\r\n" % size
            assert our_side.send([data]) == live_side.send([data])
    finally:
        for side in (live_side, our_side):
            side.control.call("CONFIG", "SET", "proto-max-bulk-len", "512mb")
