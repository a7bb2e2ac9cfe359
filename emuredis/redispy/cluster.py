"""`redis.RedisCluster` on a cluster of emulators, without a network.

All of it is redis-py's own: slots, redirections, retries, pipelines, pub/sub. Only each node's pool is ours.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import redis
from redis.exceptions import ConnectionError

from emuredis.clusters import Cluster
from emuredis.emulator import Emulator
from emuredis.redispy.stock import Connection, ConnectionPool

__all__ = ["RedisCluster", "cluster_of", "emulator_at"]


class RedisCluster(redis.RedisCluster):
    """`redis.RedisCluster` for an ``Emulator(cluster=N)``: a new one of three nodes unless ``emulator`` is given.

    Further options are those of `redis.RedisCluster`; there is no host, port or URL.
    """

    def __init__(self, emulator: Emulator | None = None, **options: Any) -> None:
        cluster = cluster_of(emulator)
        host, port = cluster.addresses[0]
        # Nobody announces maintenance here, and no connection of ours could listen to it.
        options = Connection.library.calm(redis.RedisCluster, options)
        # With a URL redis-py asks for a pool's class, which is all we want to give it.
        super().__init__(
            url=f"redis://{host}:{port}", connection_pool_class=partial(_node_pool, cluster), **options
        )


def cluster_of(emulator: Emulator | None) -> Cluster:
    """The cluster that ``emulator`` is a node of. Raises ValueError if it is none."""
    found = Emulator(cluster=3).cluster if emulator is None else emulator.cluster
    if found is None:
        raise ValueError("this emulator is no cluster; make it with Emulator(cluster=3)")
    return found


def emulator_at(cluster: Cluster, host: Any, port: Any) -> Emulator:
    """The node that redis-py takes to be there. Raises ConnectionError if there is none."""
    for emulator, address in zip(cluster.nodes, cluster.addresses, strict=True):
        if address == (host, int(port)):
            return emulator
    raise ConnectionError(f"there is no node of this cluster at {host}:{port}")


def _node_pool(cluster: Cluster, host: Any = None, port: Any = None, **options: Any) -> ConnectionPool:
    # A cluster client asks a connection for its address, in metrics and errors.
    kind = type("NodeConnection", (Connection,), {"host": host, "port": port})
    return ConnectionPool(emulator_at(cluster, host, port), kind, **options)
