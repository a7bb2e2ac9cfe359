"""The things that answer commands in the tests, behind one small interface.

`SocketEndpoint` is any server reached through a socket: the live Valkey, or emuredis' own TCP server.
`EmulatorEndpoint` is a fresh emulator per block, driven without sockets: bytes go through the protocol layer
and the engine, time is a manual clock. A `Client` sends and gives back frames; `settle` returns when the
endpoint has dealt with everything sent so far, so that no test has to sleep.
"""

from __future__ import annotations

from typing import Protocol

from .live import Connection, Lost
from .resp import Frame

__all__ = ["Client", "Endpoint", "Resettable", "SocketEndpoint"]

SETTLE_TRIES = 2000
GRACE = 0.3  # seconds in which what the server does by itself (expiring a key) becomes known


class Client(Protocol):
    id: int

    def send(self, argv: list[bytes]) -> None: ...

    def send_raw(self, data: bytes) -> None: ...

    def receive(self, wait: bool) -> Frame | None: ...

    def close(self) -> None: ...


class Resettable(Protocol):
    """What an endpoint looks at before a block: which words occur in it."""

    def mentions(self, *words: str) -> bool: ...


class Endpoint(Protocol):
    name: str

    def begin(self, block: Resettable) -> None: ...

    def open(self, protocol: int) -> Client: ...

    def settle(self, client: Client | None) -> None: ...

    def wait(self, milliseconds: int) -> None: ...

    def now_ms(self) -> int: ...

    def close(self) -> None: ...


class SocketClient:
    """A connection that counts the bytes it sent, to know when the server has seen them."""

    def __init__(self, endpoint: SocketEndpoint, protocol: int) -> None:
        self.endpoint = endpoint
        self.connection = Connection(endpoint.address, endpoint.patience)
        self.sent = 0
        self.id = 0
        if protocol == 3:
            self.send([b"HELLO", b"3"])
            self.receive(True)
        self.send([b"CLIENT", b"ID"])
        frame = self.receive(True)
        self.id = frame.value if frame is not None and frame.kind == ":" else 0

    def send(self, argv: list[bytes]) -> None:
        parts = [b"*%d\r\n" % len(argv)]
        for arg in argv:
            parts.append(b"$%d\r\n%b\r\n" % (len(arg), arg))
        self.send_raw(b"".join(parts))

    def send_raw(self, data: bytes) -> None:
        self.sent += len(data)
        self.connection.send_raw(data)

    def receive(self, wait: bool) -> Frame | None:
        """The next frame. Waiting is given up as soon as nothing can be expected: the client is not blocked."""
        if not wait:
            return self.connection.receive(0)
        for _ in range(int(self.endpoint.patience / GRACE)):
            frame = self.connection.receive(GRACE)
            if frame is not None:
                return frame
            if self.id and not self.endpoint.blocked(self.id):
                break
        return self.connection.receive(0)

    def close(self) -> None:
        self.connection.close()


class SocketEndpoint:
    """A server behind a socket. ``patience``: how many seconds a reply may take."""

    def __init__(self, name: str, address: str | tuple[str, int], patience: float = 5.0) -> None:
        self.name = name
        self.address = address
        self.patience = patience
        self._control = Connection(address, patience)
        self._config = self._read_config()
        self._dirty = True

    def _read_config(self) -> list[bytes]:
        return [item.value for item in self._control.call("CONFIG", "GET", "*").value]

    def begin(self, block: Resettable) -> None:
        call = self._control.call
        call("FLUSHALL")
        call("SCRIPT", "FLUSH")
        call("FUNCTION", "FLUSH")
        if self._dirty:
            self._restore_config()
        self._dirty = block.mentions("CONFIG", "DEBUG")

    def _restore_config(self) -> None:
        now = self._read_config()
        before = dict(zip(self._config[::2], self._config[1::2], strict=True))
        for name, value in zip(now[::2], now[1::2], strict=True):
            if before.get(name) != value:
                self._control.call("CONFIG", "SET", name, before.get(name, b""))

    def open(self, protocol: int) -> Client:
        return SocketClient(self, protocol)

    def settle(self, client: Client | None) -> None:
        """Once the server has read all of the client's bytes it has acted on them; a blocked client's wait."""
        if client is None:
            self._control.call("PING")
            return
        assert isinstance(client, SocketClient)
        for _ in range(SETTLE_TRIES):
            fields = self._listed(client.id)
            blocked = b"b" in fields.get(b"flags", b"")
            if not fields or blocked or int(fields.get(b"tot-net-in", 0)) >= client.sent:
                return
        raise Lost(f"{self.name} did not take what client {client.id} sent: {fields!r}")

    def _listed(self, client_id: int) -> dict[bytes, bytes]:
        """What CLIENT LIST says about a client; empty when it is gone."""
        listed = self._control.call("CLIENT", "LIST", "ID", client_id).value or b""
        return dict(part.partition(b"=")[::2] for part in listed.split())

    def blocked(self, client_id: int) -> bool:
        """Whether the client waits for something: a key, the end of a pause."""
        return b"b" in self._listed(client_id).get(b"flags", b"")

    def wait(self, milliseconds: int) -> None:
        until = self._micros() + milliseconds * 1000
        while self._micros() < until:
            pass

    def _micros(self) -> int:
        seconds, micros = self._control.call("TIME").value
        return int(seconds.value) * 1_000_000 + int(micros.value)

    def now_ms(self) -> int:
        return self._micros() // 1000

    def close(self) -> None:
        self._control.close()
