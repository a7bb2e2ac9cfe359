"""In place of redis-py: the same classes, on an emulator. The doors of this package mixed with redis-py's own."""

from __future__ import annotations

from typing import Any

import redis
import redis.client
import redis.connection
import redis.lock

from emuredis.emulator import Emulator
from emuredis.redispy.client import ClientDoor, PipelineDoor
from emuredis.redispy.connection import ConnectionDoor, ParserDoor
from emuredis.redispy.library import Fallbacks, Library
from emuredis.redispy.locks import LockDoor
from emuredis.redispy.pools import PoolDoor

__all__ = ["Connection", "ConnectionPool", "Pipeline", "Redis", "from_url", "pool"]

_LIBRARY = Library("redis")


class Connection(ConnectionDoor, redis.connection.UnixDomainSocketConnection, Fallbacks):
    """A connection to an emulator, for any of redis's pools. ``emulator``: the one to talk to."""

    library = _LIBRARY
    parsers = _LIBRARY.parsers(asynchronous=False)
    parser = _LIBRARY.parser(ParserDoor, asynchronous=False)


class ConnectionPool(PoolDoor, redis.ConnectionPool):
    """A pool of connections to one emulator, a new private one unless ``emulator`` is given.

    Further options are those of `redis.ConnectionPool` and its connections.
    """

    library = _LIBRARY
    connection_door = Connection


class Pipeline(PipelineDoor, redis.client.Pipeline):
    """redis-py's pipeline; a batch runs under the engine's lock, without a stop at every reply."""

    library = _LIBRARY


class Lock(LockDoor, redis.lock.Lock):
    """redis-py's lock, waiting on the emulator's clock."""


class Redis(ClientDoor, redis.Redis):
    """`redis.Redis` on an emulator: a new private one, unless ``emulator`` or a ``connection_pool`` is given.

    Takes every option of `redis.Redis`; host, port and the options of a socket mean nothing. Raises
    RedisError for TLS, which there is none of.
    """

    library = _LIBRARY
    _stock = redis.Redis
    _pool_door = ConnectionPool
    _pipeline_door = Pipeline
    _manual_lock = Lock


def from_url(url: str, **kwargs: Any) -> Redis:
    """`Redis.from_url`."""
    client: Redis = Redis.from_url(url, **kwargs)
    return client


def pool(emulator: Emulator | None = None, **options: Any) -> ConnectionPool:
    """A pool for ``redis.Redis(connection_pool=...)``; see `ConnectionPool`."""
    return ConnectionPool(emulator, **options)
