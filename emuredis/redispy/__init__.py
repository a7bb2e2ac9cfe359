"""In place of redis-py: the same classes, on an emulator instead of a network.

Three ways in, from the most faithful to the fastest; all give the same answers:

* `Connection` in any of redis-py's own pools (the reference door);
* `pool`, a pool with less ceremony, for a stock ``redis.Redis(connection_pool=emuredis.pool(emulator))``;
* `Redis`, a ``redis.Redis`` whose commands and pipelines take a short way.

`RedisCluster` is redis-py's for an ``Emulator(cluster=N)``.

`emuredis.asyncio` has the same for ``redis.asyncio``, `emuredis.valkey` for valkey-py. The modules here know a client
package by its `library.Library`; only `stock` and `stock_aio` mix them with redis-py's classes, and they are loaded
when first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emuredis.redispy.cluster import RedisCluster
    from emuredis.redispy.stock import Connection, ConnectionPool, Pipeline, Redis, from_url, pool

__all__ = ["Connection", "ConnectionPool", "Pipeline", "Redis", "RedisCluster", "from_url", "pool"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import redis  # noqa: F401
    except ImportError as problem:  # pragma: no cover - the message is the point
        raise ImportError("emuredis.Redis needs redis-py: pip install 'emuredis[redis]'") from problem
    if name == "RedisCluster":
        from emuredis.redispy.cluster import RedisCluster

        return RedisCluster
    from emuredis.redispy import stock

    return getattr(stock, name)
