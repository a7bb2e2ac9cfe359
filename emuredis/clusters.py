"""A cluster as a program holds it: an `Emulator` per node, made by ``Emulator(cluster=3)``.

Responsible for making the nodes and serving them on ports of their own. What a node is, and how slots change hands, is
`emuredis.engine.cluster` and `emuredis.engine.moving`. All nodes share one clock, one random source and one lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from emuredis.engine import moving
from emuredis.engine.cluster import Cluster as Topology
from emuredis.engine.cluster import Node, share
from emuredis.errors import EmulatorError
from emuredis.slots import SLOTS, key_slot

if TYPE_CHECKING:
    from emuredis.emulator import Emulator
    from emuredis.server import Server

__all__ = ["Cluster", "Servers"]

#: Port of the first node in redirections while nobody serves it; the others follow.
FIRST_PORT = 7000


class Servers(Sequence[Any]):
    """The running servers of a cluster, in the order of its nodes. A context manager; or call `stop`."""

    def __init__(self, servers: list[Server]) -> None:
        self._servers = servers

    @property
    def address(self) -> Any:
        """``(host, port)`` of the first node: enough for a client to find the others."""
        return self._servers[0].address

    @property
    def addresses(self) -> list[Any]:
        return [server.address for server in self._servers]

    @property
    def url(self) -> str:
        return self._servers[0].url

    def stop(self) -> None:
        """End every server; safe to call twice."""
        for server in self._servers:
            server.stop()

    def __getitem__(self, index: Any) -> Any:
        return self._servers[index]

    def __len__(self) -> int:
        return len(self._servers)

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<emuredis servers on {', '.join(f'{host}:{port}' for host, port in self.addresses)}>"


class Cluster:
    """The nodes of one cluster, and what a test does with their slots.

    Wherever a node is asked for, its emulator or its number in `nodes` will do.
    """

    def __init__(self, first: Emulator, size: int) -> None:
        from emuredis.emulator import Emulator

        if size < 1 or size > SLOTS:
            raise ValueError(f"a cluster has 1 to {SLOTS} nodes, not {size!r}")
        self.nodes: list[Emulator] = [first]
        self._topology = Topology()
        for number in range(1, size):
            self.nodes.append(Emulator(clock=first.clock, config=_config(first, number), _node_of=self))
        for number, emulator in enumerate(self.nodes):
            self._join(emulator, number, size)

    def _join(self, emulator: Emulator, number: int, size: int) -> None:
        engine, first = emulator.engine, self.nodes[0].engine
        engine.lock, engine.rng, engine.threads = first.lock, first.rng, first.threads
        ids = [f"{first.rng.getrandbits(160):040x}" for _ in range(2)]
        if emulator is not self.nodes[0] and self.nodes[0].strict_keys is not None:
            emulator.strict_keys = self.nodes[0].strict_keys
        node = Node(self._topology, engine, ids[0], ids[1], FIRST_PORT + number)
        self._topology.assign(share(number, size), node)

    # -- looking --------------------------------------------------------------------------------

    def node_of(self, key: str | bytes) -> Emulator:
        """The node that has the key's slot. Raises EmulatorError if none has."""
        return self.owner(self.slot_of(key))

    def owner(self, slot: int) -> Emulator:
        """The node that has a slot. Raises EmulatorError if none has, ValueError if there is no such slot."""
        _check(slot)
        node = self._topology.owners[slot]
        if node is None:
            raise EmulatorError(f"slot {slot} is nobody's")
        return self._emulator(node)

    @staticmethod
    def slot_of(key: str | bytes) -> int:
        """The slot of a key, 0 to 16383."""
        return key_slot(key.encode() if isinstance(key, str) else key)

    def _emulator(self, node: Node) -> Emulator:
        return next(emulator for emulator in self.nodes if emulator.engine.cluster is node)

    def _node(self, which: Emulator | int) -> Node:
        emulator = self.nodes[which] if isinstance(which, int) else which
        node = emulator.engine.cluster
        if node is None or node.cluster is not self._topology:
            raise ValueError(f"{which!r} is no node of this cluster")
        return node

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Host and port of each node, as redirections name them; they mean something while it is served."""
        return [(node.host, node.port) for node in map(self._node, self.nodes)]

    # -- moving slots ---------------------------------------------------------------------------

    def move_slot(self, slot: int, to: Emulator | int) -> None:
        """Give a slot, with its keys, to another node: from now on the old one answers MOVED. O(keys in it).

        Clients blocked or listening there are told. Raises EmulatorError if the slot is nobody's, or in the midst of
        its move to a third node; ReplyError (BUSY) while a script keeps one of the two busy.
        """
        source, target = self._node(self.owner(slot)), self._node(to)
        with self.nodes[0].engine.lock:
            if source.migrating.get(slot, target) is not target:
                raise EmulatorError(f"slot {slot} is being moved to another node")
            if source is not target:
                moving.hand_over([(slot, slot)], source, target, None)

    def begin_move(self, slot: int, to: Emulator | int) -> None:
        """Leave a slot between two nodes, as in the midst of a resharding: keys that the old node has not got are
        answered with ASK. `move_key` moves single keys then, and `move_slot` ends it.

        Raises ValueError if ``to`` has the slot already, EmulatorError if it is being moved to a third node.
        """
        source, target = self._node(self.owner(slot)), self._node(to)
        if source is target:
            raise ValueError(f"slot {slot} is that node's already")
        with self.nodes[0].engine.lock:
            if source.migrating.get(slot, target) is not target:
                raise EmulatorError(f"slot {slot} is being moved to another node")
            source.migrating[slot], target.importing[slot] = target, source

    def move_key(self, key: str | bytes) -> bool:
        """Take a key to where its slot is being moved to; whether there was such a key (in database 0).

        Raises EmulatorError if its slot is not being moved.
        """
        name = key.encode() if isinstance(key, str) else key
        source = self._node(self.node_of(name))
        target = source.migrating.get(key_slot(name))
        if target is None:
            raise EmulatorError(f"slot {key_slot(name)} is not being moved")
        with self.nodes[0].engine.lock:
            db, other = (node.engine.keyspace.databases[0] for node in (source, target))
            if not db.exists(name):
                return False
            moving.within(
                source,
                None,
                lambda: moving.within(target, None, lambda: moving.move_key(db, other, name, target)),
            )
        return True

    # -- serving --------------------------------------------------------------------------------

    def serve(self, host: str = "127.0.0.1", port: int | Sequence[int] = 0, **options: Any) -> Servers:
        """Start a server for each node in a thread.

        ``port``: of the first node, the others take the ports behind it; 0 takes free ones; or one for each.
        Raises OSError when an address cannot be bound.
        """
        if "unix" in options:
            raise ValueError("a cluster is served on ports only")
        from emuredis.server import Server

        with ExitStack() as stack:
            servers = []
            for emulator, each in zip(self.nodes, self.ports(port), strict=True):
                server = Server(emulator, host=host, port=each, **options).bind()
                servers.append(server)
                stack.callback(server.stop)
            for server in servers:
                server.start()
            stack.pop_all()
        return Servers(servers)

    def ports(self, port: int | Sequence[int]) -> list[int]:
        """A port for each node. Raises ValueError if there are too many or too few."""
        size = len(self.nodes)
        ports = (
            [port + number if port else 0 for number in range(size)] if isinstance(port, int) else list(port)
        )
        if len(ports) != size:
            raise ValueError(f"{size} nodes need {size} ports, not {len(ports)}")
        return ports

    def __iter__(self) -> Iterator[Emulator]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"<Cluster of {len(self.nodes)} nodes>"


def _check(slot: int) -> None:
    if not 0 <= slot < SLOTS:
        raise ValueError(f"slots are 0 to {SLOTS - 1}, not {slot!r}")


def _config(first: Emulator, number: int) -> dict[str, Any]:
    """The first node's configuration for another one, which has a file of its own."""
    from emuredis.engine.config import PARAMETERS

    config = first.engine.config
    given = {p.name: config.get(p.name) for p in PARAMETERS.values() if p.choosable}
    file = PurePath(given["dbfilename"])
    given["dbfilename"] = f"{file.stem}-{number}{file.suffix}"
    return given
