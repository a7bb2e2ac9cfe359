"""A client package's asyncio client with a short way to the engine; the asyncio twin of `emuredis.redispy.client`."""

from __future__ import annotations

import inspect
from typing import Any

from emuredis.emulator import Emulator
from emuredis.redispy.aio import Turns
from emuredis.redispy.library import Later, Library
from emuredis.redispy.pools import url_options
from emuredis.redispy.short import LONG, ShortPipeline, ShortWay, is_plain

__all__ = ["AsyncClientDoor", "AsyncPipelineDoor"]

_Base: Any = object
#: Classes of responses that are never awaitable, to spare the question.
_VALUES = frozenset([bytes, str, int, float, bool, type(None), list, dict, tuple, set])


class AsyncClientDoor(ShortWay, _Base):
    """An asyncio client of an emulator: a new private one, unless ``emulator`` or a ``connection_pool`` is given.

    Takes every option of the package's client; host, port and the options of a socket mean nothing.
    """

    library: Library
    _stock: Any
    _pool_door: Any
    _pipeline_door: Any

    def __init__(self, *, emulator: Emulator | None = None, connection_pool: Any = None,
                 maint_notifications_config: Any = None, version: Any = None, server_type: str | None = None,
                 **options: Any) -> None:  # fmt: skip
        if connection_pool is not None:
            if emulator is not None or version is not None or server_type is not None:
                raise TypeError("give an emulator or a connection_pool, not both: the pool has its emulator")
            super().__init__(connection_pool=connection_pool, **options)
        else:
            # The package turns its options into those of a pool; nothing is connected yet.
            library = self.library
            quiet = library.no_maintenance(self._stock)
            later = Later(library, self._stock, options.pop("event_dispatcher", None))
            super().__init__(**library.with_driver_info(options), **quiet, **later.options)
            ours = library.pool_options(self.connection_pool, library.aio.SSLConnection)
            if quiet:
                ours["maint_notifications_config"] = maint_notifications_config
            self.connection_pool = self._pool_door(emulator, version=version, server_type=server_type, **ours)
            later.tell(self)
        self._turns = Turns()
        self._choose_way()

    def _choose_way(self) -> None:
        fast = type(self.connection_pool) is self._pool_door and not self.single_connection_client
        self._fast = self.connection_pool if fast and is_plain(self) else None

    @classmethod
    def from_url(cls, url: str, **kwargs: Any) -> Any:
        """A client for ``emuredis://[name][/db][?option=value...]``; what the URL says goes before ``kwargs``."""
        options = {**kwargs, **url_options(url, cls.library)}
        single = options.pop("single_connection_client", False)
        auto_close = options.pop("auto_close_connection_pool", True)
        client = cls(connection_pool=cls._pool_door(**options), single_connection_client=single)
        client.auto_close_connection_pool = auto_close
        return client

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Any:
        """A pipeline, executed the short way where this client's commands are."""
        if self._fast is None:
            return super().pipeline(transaction, shard_hint)
        return self._pipeline_door(self.connection_pool, self.response_callbacks, transaction, shard_hint)

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


class AsyncPipelineDoor(ShortPipeline, _Base):
    """The package's pipeline; a batch runs under the engine's lock, without a stop at every reply."""

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
            except self.library.ResponseError as error:
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
            raise self.library.ConnectionError("Connection closed by server.")
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
