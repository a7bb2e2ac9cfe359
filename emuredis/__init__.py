"""emuredis: Valkey 9.1 in memory, in pure Python, for tests and for teaching.

    >>> import emuredis
    >>> client = emuredis.Emulator().client()
    >>> client.call("INCR", "visits")
    1

One engine, three doors: `Emulator.client` in process, `emuredis.Redis` and `emuredis.asyncio.Redis` in place of
redis-py's classes, and `Emulator.serve` (or ``python -m emuredis serve``) for any client in any language. Importing
this package loads neither a client library nor asyncio nor Lua.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emuredis.clock import ManualClock, SystemClock
from emuredis.emulator import Emulator
from emuredis.errors import EmulatorError, ReplyError, WaitForever
from emuredis.keyspace.rdb.codec import RdbError

if TYPE_CHECKING:
    from emuredis.redispy import Redis, RedisCluster, from_url, pool
    from emuredis.redispy.patching import patch

__all__ = [
    "Emulator",
    "EmulatorError",
    "ManualClock",
    "RdbError",
    "Redis",
    "RedisCluster",
    "ReplyError",
    "SystemClock",
    "WaitForever",
    "from_url",
    "patch",
    "pool",
]

__version__ = "0.1.0"

_FROM_REDISPY = ("Redis", "RedisCluster", "from_url", "pool")


def __getattr__(name: str) -> Any:
    if name in _FROM_REDISPY:
        from emuredis import redispy

        return getattr(redispy, name)
    if name == "patch":
        from emuredis.redispy.patching import patch

        return patch
    if name in ("asyncio", "valkey"):
        import importlib

        return importlib.import_module(f"emuredis.{name}")
    raise AttributeError(f"module 'emuredis' has no attribute {name!r}")
