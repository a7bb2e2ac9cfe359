"""In place of ``valkey.asyncio``: the same classes, on an emulator instead of a network."""

from __future__ import annotations

from typing import Any

import valkey.asyncio
import valkey.asyncio.client
import valkey.asyncio.connection
import valkey.asyncio.lock

from emuredis.emulator import Emulator
from emuredis.redispy.aio import AsyncConnectionDoor, AsyncParserDoor, AsyncPoolDoor
from emuredis.redispy.aio_client import AsyncClientDoor, AsyncPipelineDoor
from emuredis.redispy.library import Fallbacks, Library
from emuredis.redispy.locks import AsyncLockDoor

__all__ = ["Connection", "ConnectionPool", "Pipeline", "Valkey", "from_url", "pool"]

_LIBRARY = Library("valkey")


class Connection(AsyncConnectionDoor, valkey.asyncio.connection.UnixDomainSocketConnection, Fallbacks):
    """A connection to an emulator, for any of valkey.asyncio's pools. ``emulator``: the one to talk to."""

    library = _LIBRARY
    parsers = _LIBRARY.parsers(asynchronous=True)
    parser = _LIBRARY.parser(AsyncParserDoor, asynchronous=True)


class ConnectionPool(AsyncPoolDoor, valkey.asyncio.ConnectionPool):
    """A pool of connections to one emulator, a new private one unless ``emulator`` is given.

    Further options are those of `valkey.asyncio.ConnectionPool` and its connections.
    """

    library = _LIBRARY
    connection_door = Connection


class Pipeline(AsyncPipelineDoor, valkey.asyncio.client.Pipeline):  # type: ignore[misc]
    """valkey-py's pipeline; a batch runs under the engine's lock, without a stop at every reply."""

    library = _LIBRARY


class Lock(AsyncLockDoor, valkey.asyncio.lock.Lock):
    """valkey-py's lock, waiting on the emulator's clock."""


class Valkey(AsyncClientDoor, valkey.asyncio.Valkey):  # type: ignore[misc]
    """`valkey.asyncio.Valkey` on an emulator: a new private one, unless ``emulator`` or a ``connection_pool`` is given.

    Takes every option of `valkey.asyncio.Valkey`; host, port and the options of a socket mean nothing. Raises
    ValkeyError for TLS, which there is none of.
    """

    library = _LIBRARY
    _stock = valkey.asyncio.Valkey
    _pool_door = ConnectionPool
    _pipeline_door = Pipeline
    _manual_lock = Lock


def from_url(url: str, **kwargs: Any) -> Valkey:
    """`Valkey.from_url`."""
    client: Valkey = Valkey.from_url(url, **kwargs)
    return client


def pool(emulator: Emulator | None = None, **options: Any) -> ConnectionPool:
    """A pool for ``valkey.asyncio.Valkey(connection_pool=...)``; see `ConnectionPool`."""
    return ConnectionPool(emulator, **options)
