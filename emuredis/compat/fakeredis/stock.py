"""The fakes over redis-py."""

from __future__ import annotations

import emuredis.redispy.stock as sync
import emuredis.redispy.stock_aio as aio
from emuredis.compat.fakeredis.fakes import Fake, Served

__all__ = ["FakeAsyncRedis", "FakeAsyncRedisConnection", "FakeRedis", "FakeRedisConnection"]


class FakeRedisConnection(Served, sync.Connection):
    """For ``redis.ConnectionPool(connection_class=...)``, with or without ``server``."""


class FakeAsyncRedisConnection(Served, aio.Connection):
    """For ``redis.asyncio.ConnectionPool(connection_class=...)``, with or without ``server``."""


class _Pool(sync.ConnectionPool):
    connection_door = FakeRedisConnection


class _AsyncPool(aio.ConnectionPool):
    connection_door = FakeAsyncRedisConnection


class FakeRedis(Fake, sync.Redis):
    """`redis.Redis` on an emulator, found as fakeredis finds its servers."""

    _pool_door = _Pool


class FakeAsyncRedis(Fake, aio.Redis):  # type: ignore[misc]
    """`redis.asyncio.Redis` on an emulator, found as fakeredis finds its servers."""

    _pool_door = _AsyncPool
