"""`redis.asyncio.Redis` with a short way to the engine; the asyncio twin of `emuredis.redispy.client`."""

from __future__ import annotations

import inspect
from typing import Any

import redis.asyncio
import redis.asyncio.client
from redis.asyncio.connection import SSLConnection
from redis.exceptions import ConnectionError, ResponseError
from redis.maint_notifications import MaintNotificationsConfig

from emuredis.emulator import Emulator
from emuredis.redispy.aio import Connection, ConnectionPool, Turns
from emuredis.redispy.client import pool_options
from emuredis.redispy.connection import with_driver_info
from emuredis.redispy.locks import AsyncLock
from emuredis.redispy.pools import url_options
from emuredis.redispy.short import LONG, ShortPipeline, ShortWay, is_plain

__all__ = ["Pipeline", "Redis", "from_url"]

#: Classes of responses that are never awaitable, to spare the question.
_VALUES = frozenset([bytes, str, int, float, bool, type(None), list, dict, tuple, set])


class Redis(ShortWay, redis.asyncio.Redis):  # type: ignore[misc]
    """`redis.asyncio.Redis` on an emulator: a new private one, unless ``emulator`` or a ``connection_pool`` is given.

    Takes every option of `redis.asyncio.Redis`; host, port and the options of a socket mean nothing.
    """

    _manual_lock = AsyncLock

    def __init__(self, *, emulator: Emulator | None = None, connection_pool: Any = None,
                 maint_notifications_config: Any = None, **options: Any) -> None:  # fmt: skip
        if connection_pool is not None:
            if emulator is not None:
                raise TypeError("give an emulator or a connection_pool, not both: the pool has its emulator")
            super().__init__(connection_pool=connection_pool, **options)
        else:
            # redis-py turns its options into those of a pool; nothing is connected yet.
            super().__init__(**with_driver_info(options),
                             maint_notifications_config=MaintNotificationsConfig(enabled=False))  # fmt: skip
            ours = pool_options(self.connection_pool, SSLConnection)
            ours["maint_notifications_config"] = maint_notifications_config
            self.connection_pool = ConnectionPool(emulator, **ours)
        self._turns = Turns()
        self._choose_way()

    def _choose_way(self) -> None:
        fast = type(self.connection_pool) is ConnectionPool and not self.single_connection_client
        self._fast = (
            self.connection_pool if fast and is_plain(self, redis.asyncio.Redis, Connection) else None
        )

    @classmethod
    def from_url(cls, url: str, **kwargs: Any) -> Redis:  # type: ignore[override]
        """A client for ``emuredis://[name][/db][?option=value...]``; what the URL says goes before ``kwargs``."""
        options = {**kwargs, **url_options(url)}
        single = options.pop("single_connection_client", False)
        auto_close = options.pop("auto_close_connection_pool", True)
        client = cls(connection_pool=ConnectionPool(**options), single_connection_client=single)
        client.auto_close_connection_pool = auto_close
        return client

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Any:
        """A pipeline, executed the short way where this client's commands are."""
        if self._fast is None:
            return super().pipeline(transaction, shard_hint)
        return Pipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Run one command and return what redis-py's callbacks make of its reply."""
        if self._fast is None:
            return await super().execute_command(*args, **options)
        if self._turns.over():
            await self._turns
        response = self._short(args, options)
        if response is LONG:
            return await super().execute_command(*args, **options)
        if response.__class__ not in _VALUES and inspect.isawaitable(response):
            return await response
        return response


class Pipeline(ShortPipeline, redis.asyncio.client.Pipeline):  # type: ignore[misc]
    """redis-py's pipeline; a batch runs under the engine's lock, without a stop at every reply."""

    async def _execute_pipeline(self, connection: Any, commands: Any, raise_on_error: bool) -> Any:
        replies = self._batch(connection, [args for args, _ in commands], commands)
        if replies is None:
            return await super()._execute_pipeline(connection, commands, raise_on_error)
        if connection.link.turns.over():
            await connection.link.turns
        view = connection.converter.view(connection.link.session.protocol)
        responses = []
        for (args, options), reply in zip(commands, replies, strict=False):
            response = view(reply)
            if not isinstance(response, Exception):
                response = await _settled(self._called_back(args[0], response, options))
            responses.append(response)
        for args, options in commands[len(replies) :]:
            try:
                responses.append(await self.parse_response(connection, args[0], **options))
            except ResponseError as error:
                responses.append(error)
        if raise_on_error:
            self.raise_first_error(commands, responses)
        return responses

    async def _execute_transaction(self, connection: Any, commands: Any, raise_on_error: bool) -> Any:
        batch = [("MULTI",), *[args for args, _ in commands], ("EXEC",)]
        replies = self._batch(connection, batch, commands)
        if replies is None:
            return await super()._execute_transaction(connection, commands, raise_on_error)
        if len(replies) < len(batch):  # one of them closed the connection
            await connection.disconnect()
            raise ConnectionError("Connection closed by server.")
        if connection.link.turns.over():
            await connection.link.turns
        response = self._outcome(connection, commands, replies, raise_on_error)
        return [
            item if isinstance(item, Exception) else await _settled(self._called_back(args[0], item, options))
            for item, (args, options) in zip(response, commands, strict=True)
        ]


async def _settled(response: Any) -> Any:
    """The response of a callback, which may be a coroutine."""
    if response.__class__ not in _VALUES and inspect.isawaitable(response):
        return await response
    return response


def from_url(url: str, **kwargs: Any) -> Redis:
    """`Redis.from_url`."""
    return Redis.from_url(url, **kwargs)
