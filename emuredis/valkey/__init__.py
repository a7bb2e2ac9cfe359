"""In place of valkey-py: the same classes, on an emulator instead of a network; as `emuredis.redispy` for redis-py.

`emuredis.valkey.asyncio` has the same for ``valkey.asyncio``. Only these two modules import valkey-py.
"""

from __future__ import annotations

from typing import Any

try:
    import valkey
    import valkey.client
    import valkey.connection
    import valkey.lock
except ImportError as problem:  # pragma: no cover - the message is the point
    raise ImportError("emuredis.valkey needs valkey-py: pip install 'emuredis[valkey]'") from problem

from emuredis.emulator import Emulator
from emuredis.redispy.client import ClientDoor, PipelineDoor
from emuredis.redispy.connection import ConnectionDoor, ParserDoor
from emuredis.redispy.library import Fallbacks, Library
from emuredis.redispy.locks import LockDoor
from emuredis.redispy.pools import PoolDoor

__all__ = ["Connection", "ConnectionPool", "Pipeline", "Valkey", "from_url", "pool"]

_LIBRARY = Library("valkey")


class Connection(ConnectionDoor, valkey.connection.UnixDomainSocketConnection, Fallbacks):
    """A connection to an emulator, for any of valkey's pools. ``emulator``: the one to talk to."""

    library = _LIBRARY
    parsers = _LIBRARY.parsers(asynchronous=False)
    parser = _LIBRARY.parser(ParserDoor, asynchronous=False)


class ConnectionPool(PoolDoor, valkey.ConnectionPool):
    """A pool of connections to one emulator, a new private one unless ``emulator`` is given.

    Further options are those of `valkey.ConnectionPool` and its connections.
    """

    library = _LIBRARY
    connection_door = Connection


class Pipeline(PipelineDoor, valkey.client.Pipeline):
    """valkey-py's pipeline; a batch runs under the engine's lock, without a stop at every reply."""

    library = _LIBRARY


class Lock(LockDoor, valkey.lock.Lock):
    """valkey-py's lock, waiting on the emulator's clock."""


class Valkey(ClientDoor, valkey.Valkey):
    """`valkey.Valkey` on an emulator: a new private one, unless ``emulator`` or a ``connection_pool`` is given.

    Takes every option of `valkey.Valkey`; host, port and the options of a socket mean nothing. Raises
    ValkeyError for TLS, which there is none of.
    """

    library = _LIBRARY
    _stock = valkey.Valkey
    _pool_door = ConnectionPool
    _pipeline_door = Pipeline
    _manual_lock = Lock


def from_url(url: str, **kwargs: Any) -> Valkey:
    """`Valkey.from_url`."""
    client: Valkey = Valkey.from_url(url, **kwargs)
    return client


def pool(emulator: Emulator | None = None, **options: Any) -> ConnectionPool:
    """A pool for ``valkey.Valkey(connection_pool=...)``; see `ConnectionPool`."""
    return ConnectionPool(emulator, **options)
