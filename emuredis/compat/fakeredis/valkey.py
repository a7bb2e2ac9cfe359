"""The fakes over valkey-py."""

from __future__ import annotations

import emuredis.valkey as sync
import emuredis.valkey.asyncio as aio
from emuredis.compat.fakeredis.fakes import Fake, Served

__all__ = ["FakeAsyncValkey", "FakeAsyncValkeyConnection", "FakeValkey", "FakeValkeyConnection"]


class FakeValkeyConnection(Served, sync.Connection):
    """For ``valkey.ConnectionPool(connection_class=...)``, with or without ``server``."""


class FakeAsyncValkeyConnection(Served, aio.Connection):
    """For ``valkey.asyncio.ConnectionPool(connection_class=...)``, with or without ``server``."""


class _Pool(sync.ConnectionPool):
    connection_door = FakeValkeyConnection


class _AsyncPool(aio.ConnectionPool):
    connection_door = FakeAsyncValkeyConnection


class FakeValkey(Fake, sync.Valkey):
    """`valkey.Valkey` on an emulator, found as fakeredis finds its servers."""

    _pool_door = _Pool


class FakeAsyncValkey(Fake, aio.Valkey):  # type: ignore[misc]
    """`valkey.asyncio.Valkey` on an emulator, found as fakeredis finds its servers."""

    _pool_door = _AsyncPool
