"""The asyncio fakes under the names that they have in ``fakeredis.aioredis``."""

from __future__ import annotations

from emuredis.compat.fakeredis.fakes import FakeServer
from emuredis.compat.fakeredis.stock import FakeAsyncRedis as FakeRedis
from emuredis.compat.fakeredis.stock import FakeAsyncRedisConnection as FakeConnection

FakeStrictRedis = FakeRedis

__all__ = ["FakeConnection", "FakeRedis", "FakeServer", "FakeStrictRedis"]
