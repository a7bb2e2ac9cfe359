"""In place of ``redis.asyncio``: the same classes, on an emulator. The doors of this package mixed with its own."""

from __future__ import annotations

from typing import Any

import redis.asyncio
import redis.asyncio.client
import redis.asyncio.connection
import redis.asyncio.lock

from emuredis.emulator import Emulator
from emuredis.redispy.aio import AsyncConnectionDoor, AsyncParserDoor, AsyncPoolDoor
from emuredis.redispy.aio_client import AsyncClientDoor, AsyncPipelineDoor
from emuredis.redispy.library import Fallbacks, Library
from emuredis.redispy.locks import AsyncLockDoor

__all__ = ["Connection", "ConnectionPool", "Pipeline", "Redis", "from_url", "pool"]

_LIBRARY = Library("redis")


class Connection(AsyncConnectionDoor, redis.asyncio.connection.UnixDomainSocketConnection, Fallbacks):
    """A connection to an emulator, for any of redis.asyncio's pools. ``emulator``: the one to talk to."""

    library = _LIBRARY
    parsers = _LIBRARY.parsers(asynchronous=True)
    parser = _LIBRARY.parser(AsyncParserDoor, asynchronous=True)


class ConnectionPool(AsyncPoolDoor, redis.asyncio.ConnectionPool):
    """A pool of connections to one emulator, a new private one unless ``emulator`` is given.

    Further options are those of `redis.asyncio.ConnectionPool` and its connections.
    """

    library = _LIBRARY
    connection_door = Connection


class Pipeline(AsyncPipelineDoor, redis.asyncio.client.Pipeline):  # type: ignore[misc]
    """redis-py's pipeline; a batch runs under the engine's lock, without a stop at every reply."""

    library = _LIBRARY


class Lock(AsyncLockDoor, redis.asyncio.lock.Lock):
    """redis-py's lock, waiting on the emulator's clock."""


class Redis(AsyncClientDoor, redis.asyncio.Redis):  # type: ignore[misc]
    """`redis.asyncio.Redis` on an emulator: a new private one, unless ``emulator`` or a ``connection_pool`` is given.

    Takes every option of `redis.asyncio.Redis`; host, port and the options of a socket mean nothing. Raises
    RedisError for TLS, which there is none of.
    """

    library = _LIBRARY
    _stock = redis.asyncio.Redis
    _pool_door = ConnectionPool
    _pipeline_door = Pipeline
    _manual_lock = Lock


def from_url(url: str, **kwargs: Any) -> Redis:
    """`Redis.from_url`."""
    client: Redis = Redis.from_url(url, **kwargs)
    return client


def pool(emulator: Emulator | None = None, **options: Any) -> ConnectionPool:
    """A pool for ``redis.asyncio.Redis(connection_pool=...)``; see `ConnectionPool`."""
    return ConnectionPool(emulator, **options)
