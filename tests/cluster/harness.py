"""Conformance lines for clusters: the same commands to a served emulator of three nodes and to a live cluster.

The format is that of `tests.conformance.lines`. A client's name begins with the number of its node: ``@0 GET k``,
``@1b> BLPOP k 0``. ``{id:0}`` and ``{port:0}`` stand for a node's id and port, ``:wait 0`` waits until every
node of the live cluster has heard of a change. What differs from cluster to cluster is masked before
answers are compared: ids, ports, times, and the order of nodes in texts.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import emuredis
from tests.conformance.lines import Block, Line, Variant, load
from tests.conformance.run import CLOSED, NOTHING, Entry, Run
from tests.support.endpoints import Client, SocketEndpoint
from tests.support.live import Connection
from tests.support.live_cluster import LiveCluster
from tests.support.resp import Frame

__all__ = ["Side", "blocks", "emulated", "frame_of", "live", "transcript"]

LINES = Path(__file__).parent / "lines"
_PLACE = re.compile(rb"\{(id|port):(\d)\}")
_ID = re.compile(rb"[0-9a-f]{40}")
_TIMES = range(1_500_000_000, 10_000_000_000_000)  # seconds or milliseconds since 1970


def blocks() -> list[Block]:
    return [block for path in sorted(LINES.glob("*.txt")) for block in load(path)]


class Side:
    """One of the two clusters, reached through sockets. ``settle``: wait until its nodes agree."""

    def __init__(self, name: str, addresses: list[tuple[str, int]], cluster: Any) -> None:
        self.name = name
        self.cluster = cluster
        self.nodes = [SocketEndpoint(f"{name} {number}", address) for number, address in enumerate(addresses)]
        self.ports = [port for _, port in addresses]
        self.ids = [self.ask(number, "CLUSTER", "MYID").value for number in range(len(addresses))]
        self.shards = [self.ask(number, "CLUSTER", "MYSHARDID").value for number in range(len(addresses))]
        self.layout = self.masked(self.ask(0, "CLUSTER", "SLOTS"))

    def ask(self, number: int, *words: str | bytes | int) -> Frame:
        connection = Connection(self.nodes[number].address)
        try:
            return connection.call(*words)
        finally:
            connection.close()

    def begin(self, block: Block) -> None:
        for node in self.nodes:
            node.begin(block)
        layout = self.masked(self.ask(0, "CLUSTER", "SLOTS"))
        assert layout == self.layout, f"the block before {block.id} left slots elsewhere on {self.name}"

    def settle(self, client: Client | None) -> None:
        if client is None:
            for node in self.nodes:
                node.settle(None)
        else:
            client.endpoint.settle(client)  # type: ignore[attr-defined]

    def wait(self, milliseconds: int) -> None:
        """``:wait 0``: until every node knows the same."""
        if self.cluster is not None:
            self.cluster.settled()

    def now_ms(self) -> int:
        return self.nodes[0].now_ms()

    def close(self) -> None:
        for node in self.nodes:
            node.close()

    # -- masking --------------------------------------------------------------------------------

    def masked(self, frame: Frame) -> Frame:
        value = self._value(frame.value)
        if isinstance(value, list):
            value = [self.masked(item) if isinstance(item, Frame) else item for item in value]
        return frame_of(frame.kind, value)

    def _value(self, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            if value in self.ports:
                return -7000 - self.ports.index(value)
            return -1 if value in _TIMES else value
        if not isinstance(value, bytes):
            return value
        for number in range(len(self.ids)):
            value = value.replace(self.ids[number], b"id%d" % number)
            value = value.replace(self.shards[number], b"shard%d" % number)
            value = re.sub(rb"\b%d(@\d+)?\b" % self.ports[number], b"port%d" % number, value)
        value = _ID.sub(b"other id", value)
        if b" connected " in value:  # CLUSTER NODES
            value = re.sub(rb" \d{10,} ", b" time ", value)
            value = re.sub(rb" \d+ connected ", b" epoch connected ", value)  # it has lived through more
            value = b"\n".join(sorted(value.removeprefix(b"txt:").split(b"\n")))
        return value


def frame_of(kind: str, value: Any) -> Frame:
    """A masked frame; what stands for its bytes is made from its value."""
    return Frame(kind, value, repr(_plain(kind, value)).encode())


def _plain(kind: str, value: Any) -> Any:
    if isinstance(value, list):
        items = [_plain(item.kind, item.value) for item in value]
        return kind, items
    return kind, value


class ClusterRun(Run):
    """A block on its way through one cluster."""

    def __init__(self, side: Side, protocol: int) -> None:
        super().__init__(side, protocol)  # type: ignore[arg-type]
        self.side = side

    def client(self, name: str) -> Client:
        if name not in self.clients:
            self.clients[name] = self.side.nodes[int(name[0])].open(self.protocol)
        return self.clients[name]

    def fill(self, argv: tuple[bytes, ...]) -> list[bytes]:
        return super().fill(tuple(_PLACE.sub(self._place, arg) for arg in argv))

    def _place(self, match: re.Match[bytes]) -> bytes:
        number = int(match[2])
        return self.side.ids[number] if match[1] == b"id" else b"%d" % self.side.ports[number]

    def note(self, line: Line, frame: Frame) -> None:
        super().note(line, frame if frame in (NOTHING, CLOSED) else self.side.masked(frame))

    def finish(self, block: Block) -> None:
        self.endpoint.settle(None)
        for name, client in self.clients.items():
            while (frame := self.read(client, wait=False)) is not NOTHING:
                self.entries.append(Entry(0, f"(left unread by {name})", Variant(), self.side.masked(frame)))
                if frame is CLOSED:
                    break
            client.close()
        for number in range(len(self.side.nodes)):
            keys = self.side.masked(self.side.ask(number, "KEYS", "*"))
            self.entries.append(Entry(0, f"(keys of node {number})", Variant("unordered"), keys))


def transcript(block: Block, protocol: int, side: Side) -> list[Entry]:
    """What the cluster answers to a block."""
    side.begin(block)
    state = ClusterRun(side, protocol)
    for line in block.lines:
        state.step(line)
    state.finish(block)
    return state.entries


def emulated() -> tuple[Side, Any]:
    """A served emulator of three nodes, and what to stop at the end."""
    emulator = emuredis.Emulator(cluster=3, seed=1, config={"enable-debug-command": "yes"})
    servers = emulator.serve()
    return Side("emuredis", servers.addresses, None), servers


def live(cluster: LiveCluster) -> Side:
    return Side("live", cluster.addresses, cluster)
