"""In place of ``redis.asyncio``: the same classes, on an emulator instead of a network.

`Redis` (the short way), `pool` for a stock ``redis.asyncio.Redis``, and `Connection` for any of its pools, as in
`emuredis.redispy`. The implementation is there too; this module only gives it its name.
"""

from __future__ import annotations

from emuredis.redispy.aio_cluster import RedisCluster
from emuredis.redispy.stock_aio import Connection, ConnectionPool, Pipeline, Redis, from_url, pool

__all__ = ["Connection", "ConnectionPool", "Pipeline", "Redis", "RedisCluster", "from_url", "pool"]
