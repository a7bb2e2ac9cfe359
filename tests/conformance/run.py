"""Running a block on one endpoint: the transcript of what it answered.

Responsible for the meaning of each kind of line. It knows endpoints (`tests.support.endpoints`), not
what is behind them: the live server, the emulator in process and over the wire are all driven by this code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.support.endpoints import Client, Endpoint
from tests.support.live import Lost
from tests.support.resp import Frame

from .digest import digest
from .lines import Block, Line, Variant

__all__ = ["CLOSED", "NOTHING", "Entry", "Run", "run"]

NOTHING = Frame(" ", b"nothing arrived", b"")
CLOSED = Frame(" ", b"connection closed", b"\0")
_PLACEHOLDER = re.compile(rb"\{(rep|now|sec|id|saved)([:+-])([^{}]*)\}")
_MANY_DATABASES = ("SELECT", "SWAPDB", "MOVE", "COPY", "FLUSHALL", "DB")


@dataclass(frozen=True, slots=True)
class Entry:
    """One compared answer: where it belongs, how it is compared, what came."""

    number: int
    text: str
    variant: Variant
    frame: Frame


class Run:
    """One endpoint on its way through a block: its clients, what it saved, what it answered so far."""

    def __init__(self, endpoint: Endpoint, protocol: int) -> None:
        self.endpoint = endpoint
        self.protocol = protocol
        self.clients: dict[str, Client] = {}
        self.ids: dict[str, bytes] = {}
        self.saved: dict[str, bytes] = {}
        self.last = NOTHING
        self.entries: list[Entry] = []
        self.began_ms = endpoint.now_ms()

    # -- clients --------------------------------------------------------------------------------

    def client(self, name: str) -> Client:
        if name not in self.clients:
            self.clients[name] = client = self.endpoint.open(self.protocol)
            self.ids[name] = b"%d" % client.id
        return self.clients[name]

    def read(self, client: Client, wait: bool) -> Frame:
        try:
            frame = client.receive(wait)
        except Lost:
            return CLOSED
        return NOTHING if frame is None else frame

    # -- arguments ------------------------------------------------------------------------------

    def fill(self, argv: tuple[bytes, ...]) -> list[bytes]:
        return [_PLACEHOLDER.sub(self._placeholder, arg) if b"{" in arg else arg for arg in argv]

    def _placeholder(self, match: re.Match[bytes]) -> bytes:
        kind, sign, value = match[1], match[2], match[3]
        if kind in (b"now", b"sec") and sign != b":":
            now = self.endpoint.now_ms() // (1 if kind == b"now" else 1000)
            return b"%d" % (now + int(sign + value))
        if kind == b"rep" and sign == b":":
            text, _, times = value.rpartition(b":")
            return text * int(times)
        if kind == b"id" and sign == b":":
            self.client(value.decode())
            return self.ids[value.decode()]
        if kind == b"saved" and sign == b":":
            return self.saved[value.decode()]
        return match[0]

    # -- lines ----------------------------------------------------------------------------------

    def step(self, line: Line) -> None:
        getattr(self, "_" + line.action)(line)

    def note(self, line: Line, frame: Frame) -> None:
        self.last = frame
        if line.variant.name == "instant":
            frame = self._distance(frame)
        self.entries.append(Entry(line.number, line.text, line.variant, frame))

    def _distance(self, frame: Frame) -> Frame:
        """Times of day (seconds or milliseconds, by their size) as their distance from the block's start.

        What is too small for a time since 2001 is a number of something else.
        """
        if isinstance(frame.value, list):
            items = [self._distance(item) for item in frame.value]
            head = frame.raw[: frame.raw.index(b"\n") + 1]
            return Frame(frame.kind, items, head + b"".join(item.raw for item in items))
        if frame.kind != ":" or frame.value < 1_000_000_000:
            return frame
        since = self.began_ms if frame.value > 100_000_000_000 else self.began_ms // 1000
        return Frame(":", frame.value - since, b":%d\r\n" % (frame.value - since))

    def _transmit(self, client: Client, send: Callable[[Client], None]) -> bool:
        try:
            send(client)
        except Lost:
            return False
        return True

    def _call(self, line: Line) -> None:
        client, argv = self.client(line.client), self.fill(line.argv)
        sent = self._transmit(client, lambda c: c.send(argv))
        self.note(line, self.read(client, wait=True) if sent else CLOSED)

    def _repeat(self, line: Line) -> None:
        client, argv = self.client(line.client), self.fill(line.argv[1:])
        for _ in range(int(line.argv[0])):
            client.send(argv)
            frame = self.read(client, wait=True)
        self.note(line, frame)

    def _send(self, line: Line) -> None:
        client, argv = self.client(line.client), self.fill(line.argv)
        self._transmit(client, lambda c: c.send(argv))
        self.endpoint.settle(client)

    def _raw(self, line: Line) -> None:
        client, data = self.client(line.client), self.fill(line.argv)[0]
        self._transmit(client, lambda c: c.send_raw(data))
        self.endpoint.settle(client)

    def _receive(self, line: Line) -> None:
        self.note(line, self.read(self.client(line.client), wait=True))

    def _quiet(self, line: Line) -> None:
        self.endpoint.settle(None)
        self.note(line, self.read(self.client(line.client), wait=False))

    def _close(self, line: Line) -> None:
        self.client(line.client).close()  # opened just for that, where the lines before were taken away
        del self.clients[line.client]
        self.endpoint.settle(None)

    def _wait(self, line: Line) -> None:
        self.endpoint.wait(int(line.argv[0]))

    def _save(self, line: Line) -> None:
        part = self.last
        for index in line.argv[1:]:
            part = part.value[int(index)]
        self.saved[line.argv[0].decode()] = (
            part.value if isinstance(part.value, bytes) else b"%d" % part.value
        )

    def _digest(self, line: Line) -> None:
        text = "\n".join(digest(self.endpoint, self.began_ms)).encode()
        self.entries.append(
            Entry(
                line.number, line.text, line.variant, Frame("$", text, b"$%d\r\n%b\r\n" % (len(text), text))
            )
        )

    # -- the end --------------------------------------------------------------------------------

    def finish(self, block: Block) -> None:
        """What is still unread, then the content of the databases."""
        self.endpoint.settle(None)
        for name, client in self.clients.items():
            while (frame := self.read(client, wait=False)) is not NOTHING:
                self.entries.append(Entry(0, f"(left unread by {name})", Variant(), frame))
                if frame is CLOSED:
                    break
            client.close()
        databases = range(16 if block.mentions(*_MANY_DATABASES) else 1)
        for text, variant, frame in _content(self.endpoint, databases):
            self.entries.append(Entry(0, text, variant, frame))


_CONTENT = {
    b"string": ([b"GET"], [], Variant()),
    b"list": ([b"LRANGE"], [b"0", b"-1"], Variant()),
    b"set": ([b"SMEMBERS"], [], Variant("unordered")),
    b"hash": ([b"HGETALL"], [], Variant("unordered", 2)),
    b"zset": ([b"ZRANGE"], [b"0", b"-1", b"WITHSCORES"], Variant()),
    b"stream": ([b"XRANGE"], [b"-", b"+"], Variant()),
}


def _content(endpoint: Endpoint, databases: range) -> list[tuple[str, Variant, Frame]]:
    """Every key's type, value and whether it expires, read through a connection of its own."""
    out: list[tuple[str, Variant, Frame]] = []
    client = endpoint.open(2)

    def ask(*argv: bytes) -> Frame:
        client.send(list(argv))
        frame = client.receive(True)
        return NOTHING if frame is None else frame

    for index in databases:
        ask(b"SELECT", b"%d" % index)
        keys = ask(b"KEYS", b"*")
        out.append((f"(keys of database {index})", Variant("unordered"), keys))
        for key in sorted(item.value for item in keys.value) if keys.kind == "*" else ():
            kind = ask(b"TYPE", key)
            head, tail, variant = _CONTENT.get(kind.value, ([b"TYPE"], [], Variant()))
            name = key.decode("utf-8", "backslashreplace")
            out.append((f"(value of {name})", variant, ask(*head, key, *tail)))
            deadline = ask(b"PEXPIRETIME", key)
            expires = Frame("#", b"t" if deadline.value and int(deadline.value) > 0 else b"f", b"")
            out.append((f"(whether {name} expires)", Variant("value"), expires))
    client.close()
    return out


def run(block: Block, protocol: int, endpoint: Endpoint) -> list[Entry]:
    """The transcript of ``block`` on ``endpoint``."""
    endpoint.begin(block)
    state = Run(endpoint, protocol)
    for line in block.lines:
        state.step(line)
    state.finish(block)
    return state.entries
