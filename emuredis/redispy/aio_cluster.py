"""`redis.asyncio.RedisCluster` on a cluster of emulators, without a network; see `emuredis.redispy.cluster`."""

from __future__ import annotations

from functools import partial
from typing import Any

import redis.asyncio

from emuredis.clusters import Cluster
from emuredis.emulator import Emulator
from emuredis.redispy.cluster import cluster_of, emulator_at
from emuredis.redispy.stock_aio import Connection

__all__ = ["RedisCluster"]


class RedisCluster(redis.asyncio.RedisCluster):
    """`redis.asyncio.RedisCluster` for an ``Emulator(cluster=N)``: a new one of three nodes unless given.

    Further options are those of `redis.asyncio.RedisCluster`; there is no host, port or URL.
    """

    def __init__(self, emulator: Emulator | None = None, **options: Any) -> None:
        cluster = cluster_of(emulator)
        host, port = cluster.addresses[0]
        # Nobody announces maintenance here, and no connection of ours could listen to it.
        options = Connection.library.calm(redis.asyncio.RedisCluster, options)
        super().__init__(host=host, port=port, **options)
        make: Any = partial(_connection, cluster)
        self.connection_kwargs["connection_class"] = make
        old = not hasattr(self, "startup_nodes")  # before redis-py 7
        nodes: Any = self.nodes_manager.startup_nodes.values() if old else self.startup_nodes
        for node in nodes:
            node.connection_class = make


def _connection(cluster: Cluster, host: Any = None, port: Any = None, **options: Any) -> Connection:
    connection: Any = Connection(emulator=emulator_at(cluster, host, port), **options)
    connection.host, connection.port = host, port  # which a cluster client asks for, in metrics and errors
    return connection  # type: ignore[no-any-return]
