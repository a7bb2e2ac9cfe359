"""emuredis as an endpoint of the tests: in process without sockets, and behind its own server.

`EmulatorEndpoint` makes a new emulator for every block, on a manual clock that starts at the machine's time.
Commands go straight to the engine, replies through the protocol layer's encoder, so that what is compared are the
bytes of the wire. A client whose command is parked takes its next command when it is served, as a connection does.
"""

from __future__ import annotations

import tempfile
import time
from collections import deque
from typing import Any

import emuredis
from emuredis.protocol.encode import encode
from emuredis.replies import BLOCKED

from .endpoints import Client, Resettable, SocketEndpoint
from .live import Lost
from .resp import Frame, parse, parse_all

__all__ = ["EmulatorEndpoint", "WireEndpoint", "wire_endpoint"]

_directory = tempfile.TemporaryDirectory(prefix="emulated-")  # for what is saved; it goes with the process
CONFIG = {"enable-debug-command": "yes", "dir": _directory.name}


class EngineClient:
    """One session of an engine, its replies kept as frames."""

    def __init__(self, engine: Any, protocol: int) -> None:
        self.engine = engine
        self.session = engine.connect(b"127.0.0.1:50000", b"127.0.0.1:6379")
        self.session.on_reply = self._arrived
        self.session.on_push = self._pushed
        self.id = self.session.id
        self._frames: deque[Frame] = deque()
        self._unsent: deque[list[bytes]] = deque()
        self._later: list[Any] | None = None  # pushes to itself that its running command causes
        if protocol == 3:
            self.send([b"HELLO", b"3"])
            self._frames.clear()

    def send(self, argv: list[bytes]) -> None:
        if self.session.id not in self.engine.sessions:
            raise Lost("closed by the server")
        self._unsent.append(argv)
        self._run()

    def send_raw(self, data: bytes) -> None:
        """Whole commands only; broken ones are the business of the wire."""
        at = 0
        while at < len(data):
            frame, at = parse(data, at)
            self.send([item.value for item in frame.value])

    def _run(self) -> None:
        while self._unsent and self.session.waiter is None and self.session.id in self.engine.sessions:
            self._later = later = []
            reply = self.engine.execute(self.session, self._unsent.popleft())
            self._later = None
            for each in [reply, *later]:
                if each is not BLOCKED:
                    self._arrived(each)
            if self.session.closing:
                self.engine.disconnect(self.session)

    def _arrived(self, reply: Any) -> None:
        self._frames.extend(parse_all(encode(reply, self.session.protocol)))

    def _pushed(self, push: Any) -> None:
        if self._later is None:
            self._arrived(push)
        else:
            self._later.append(push)

    def receive(self, wait: bool) -> Frame | None:
        self._run()
        while not self._frames and wait and self.session.waiter is not None:
            due = self.engine.next_due_ns()
            if due is None:
                break
            self.engine.clock.move_to(due)
            self._run()
        if self._frames:
            return self._frames.popleft()
        if self.session.closing or self.session.id not in self.engine.sessions:
            raise Lost("closed by the server")
        return None

    def close(self) -> None:
        self.engine.disconnect(self.session)


class EmulatorEndpoint:
    name = "inprocess"

    def __init__(self) -> None:
        self._make()

    def _make(self) -> None:
        self.clock = emuredis.ManualClock(time.time())
        self.engine = emuredis.Emulator(clock=self.clock, seed=1, config=CONFIG).engine

    def begin(self, block: Resettable) -> None:
        self._make()

    def open(self, protocol: int) -> Client:
        return EngineClient(self.engine, protocol)

    def settle(self, client: Client | None) -> None:
        """Everything sent has been run already."""

    def wait(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)

    def now_ms(self) -> int:
        return self.clock.now_ms

    def close(self) -> None:
        """Nothing outlives an emulator."""


class WireEndpoint(SocketEndpoint):
    """emuredis' own server on a Unix socket, or on a loopback port."""

    def __init__(self, unix: str | None) -> None:
        self.emulator = emuredis.Emulator(seed=1, config=CONFIG)
        self.server = self.emulator.serve(unix=unix) if unix else self.emulator.serve(port=0)
        address = unix or self.server.address
        super().__init__("wire", address)

    def close(self) -> None:
        super().close()
        self.server.stop()


def wire_endpoint(unix: str | None = None) -> WireEndpoint:
    return WireEndpoint(unix)
