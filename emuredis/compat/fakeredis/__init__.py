"""The names of fakeredis, on emulators: ``from emuredis.compat import fakeredis`` instead of ``import fakeredis``.

`FakeServer` is one emulator. A client without ``server``, host, port or path has a server of its own; with an address,
or made by ``from_url``, it shares one with all others of that address. ``connected = False`` closes every connection of
a server and lets none in. By default the release is not limited; ``version`` and ``server_type`` are as for
`Emulator`.

Clients do not retry by default, so that a server that is not connected says so at once. ``lua_modules`` is refused by
name; other types of servers, and what is not in the emulator, raise as they do there.
"""

from __future__ import annotations

from typing import Any

from emuredis.compat.fakeredis import aioredis
from emuredis.compat.fakeredis.fakes import FakeServer
from emuredis.compat.fakeredis.stock import (
    FakeAsyncRedis,
    FakeAsyncRedisConnection,
    FakeRedis,
    FakeRedisConnection,
)

FakeStrictRedis = FakeRedis
FakeConnection = FakeRedisConnection
FakeAsyncConnection = FakeAsyncRedisConnection

_OF_VALKEY = {
    "FakeValkey": "FakeValkey",
    "FakeStrictValkey": "FakeValkey",
    "FakeAsyncValkey": "FakeAsyncValkey",
}

__all__ = [
    "FakeAsyncConnection",
    "FakeAsyncRedis",
    "FakeAsyncRedisConnection",
    "FakeConnection",
    "FakeRedis",
    "FakeRedisConnection",
    "FakeServer",
    "FakeStrictRedis",
    "aioredis",
]


def __getattr__(name: str) -> Any:
    """The fakes over valkey-py, which is imported only for them."""
    if name not in _OF_VALKEY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from emuredis.compat.fakeredis import valkey

    return getattr(valkey, _OF_VALKEY[name])
