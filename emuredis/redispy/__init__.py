"""In place of redis-py: the same classes, on an emulator instead of a network.

Three ways in, from the most faithful to the fastest; all give the same answers:

* `Connection` in any of redis-py's own pools (the reference door);
* `pool`, a pool with less ceremony, for a stock ``redis.Redis(connection_pool=emuredis.pool(emulator))``;
* `Redis`, a ``redis.Redis`` whose commands and pipelines take a short way.

`RedisCluster` is redis-py's for an ``Emulator(cluster=N)``.

`emuredis.asyncio` has the same for ``redis.asyncio``. Only this package and `emuredis.asyncio` import redis-py.
"""

from __future__ import annotations

try:
    import redis  # noqa: F401
except ImportError as problem:  # pragma: no cover - the message is the point
    raise ImportError("emuredis.Redis needs redis-py: pip install 'emuredis[redis]'") from problem

from emuredis.redispy.client import Pipeline, Redis, from_url
from emuredis.redispy.cluster import RedisCluster
from emuredis.redispy.connection import Connection
from emuredis.redispy.pools import ConnectionPool, pool

__all__ = ["Connection", "ConnectionPool", "Pipeline", "Redis", "RedisCluster", "from_url", "pool"]
