"""A client package's asyncio connection and pool without a network: the reference door of the asyncio side.

As `emuredis.redispy.connection`: all of it is the package's own but for the stream (an `AsyncLink`), the packer and
the parser. Commands run at once, in the task that sends them; only a reply that is not there yet is awaited.

Two rules of its own. A task that only ever calls an emulator would never let others run, so every sixteenth command
gives way once (`Turns`). And a task that is cancelled while its command is parked takes the command back:
redis-py disconnects, and with the session goes the record, before anybody could serve it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Generator, Iterable
from typing import Any

from emuredis.emulator import Emulator
from emuredis.engine.engine import Engine
from emuredis.errors import ReplyError
from emuredis.redispy.convert import Converter
from emuredis.redispy.idle import Wait, idler
from emuredis.redispy.library import Library
from emuredis.redispy.link import Closed, Link
from emuredis.redispy.pools import emulator_for, url_options
from emuredis.replies import Push, Reply

__all__ = ["AsyncConnectionDoor", "AsyncLink", "AsyncPoolDoor", "Turns"]

_CLOSED = "Connection closed by server."
_Base: Any = object
#: Commands after which a task gives way to others once.
PER_TURN = 16


class Turns:
    """Counts commands; awaiting it lets the other tasks run once."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = PER_TURN

    def over(self) -> bool:
        """Count one command; whether it is somebody else's turn."""
        self._left -= 1
        if self._left > 0:
            return False
        self._left = PER_TURN
        return True

    def __await__(self) -> Generator[None, None, None]:
        yield


class AsyncLink(Link):
    """A link whose reader is a task. Also what redis-py takes for its stream writer."""

    __slots__ = ("_wait", "turns")

    def __init__(self, engine: Engine) -> None:
        self._wait: Wait | None = None
        self.turns = Turns()
        super().__init__(engine)

    def _wake(self) -> None:
        wait, self._wait = self._wait, None
        if wait is not None:
            wait.wake()

    async def read_async(self, seconds: float | None) -> Reply:
        """As `read`, awaiting what is not there yet."""
        while not self.ready():
            with self.engine.lock:
                if self.arrived:
                    break
                wait = self._wait = Wait(self.engine, seconds, self._blame, keys_wake=not self.parked)
            try:
                if not await idler(asyncio.get_running_loop()).wait(wait):
                    raise TimeoutError
            finally:
                if self._wait is wait:
                    self._wait = None
        return self.arrived.popleft()

    # -- as a stream writer -----------------------------------------------------------------------

    def writelines(self, items: Iterable[Any]) -> None:
        for item in items:
            self.sendall(item)

    async def drain(self) -> None:
        if self.turns.over():
            await self.turns

    async def wait_closed(self) -> None:
        """It is closed."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


class AsyncParserDoor(_Base):
    """Takes replies from the link of its connection."""

    library: Library

    def __init__(self) -> None:
        self.pubsub_push_handler_func = self.handle_pubsub_push_response
        self._connection: AsyncConnectionDoor | None = None

    async def handle_pubsub_push_response(self, response: Any) -> Any:
        return response

    def on_connect(self, connection: Any) -> None:
        self._connection = connection

    def on_disconnect(self) -> None:
        self._connection = None

    def _link(self) -> AsyncLink:
        link = self._connection.link if self._connection is not None else None
        if link is None:
            raise self.library.ConnectionError(_CLOSED)
        return link

    async def can_read(self) -> bool:
        try:
            return self._link().ready()
        except Closed:
            raise self.library.ConnectionError(_CLOSED) from None

    can_read_destructive = can_read

    async def read_response(self, disable_decoding: bool = False, push_request: bool | None = False,
                            seconds: float | None = None) -> Any:  # fmt: skip
        while True:
            link = self._link()
            try:
                reply = await link.read_async(seconds)
            except Closed:
                raise self.library.ConnectionError(_CLOSED) from None
            connection: Any = self._connection
            response = connection.converter.view(link.session.protocol, disable_decoding)(reply)
            if reply.__class__ is Push and link.session.protocol == 3:
                response = await self.handle_push_response(response)
                if push_request:
                    return response
                continue
            if isinstance(response, self.library.ConnectionError):
                raise response
            return response


class AsyncConnectionDoor(_Base):
    """A connection to an emulator, for any of the package's asyncio pools. ``emulator``: the one to talk to."""

    library: Library
    parsers: frozenset[Any]
    parser: Any
    converter: Converter

    def __init__(self, *, emulator: Emulator, command_packer: Any = None, **options: Any) -> None:
        if command_packer is not None:
            raise self.library.Error(
                "emuredis does not support the option command_packer of an asyncio connection"
            )
        self.emulator = emulator
        options = self.library.drop_network_options(options)
        super().__init__(path="", **self.library.connection_options(options, asynchronous=True))

    @property
    def link(self) -> AsyncLink | None:
        """What stands for the streams; None while not connected."""
        link: Any = self._writer
        return link  # type: ignore[no-any-return]

    def repr_pieces(self) -> list[tuple[str, Any]]:
        pieces = [("emulator", self.emulator), ("db", self.db)]
        return [*pieces, ("client_name", self.client_name)] if self.client_name else pieces

    def set_parser(self, parser_class: Any) -> None:
        self._parser = self.library.parser_for(parser_class, self.parsers, self.parser)()
        self.converter = Converter(self.encoder, self._parser.parse_error)

    async def _connect(self) -> None:
        link: Any = AsyncLink(self.emulator.engine)
        self._reader = self._writer = link

    def _host_error(self) -> str:
        return "the emulator"

    def pack_command(self, *args: Any) -> list[Any]:
        return [self.converter.command(args)]

    def pack_commands(self, commands: Iterable[Iterable[Any]]) -> list[Any]:
        return [self.converter.command(tuple(command)) for command in commands]

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        """As redis-py's, without a time limit: nothing is ever in the way of sending."""
        if self._writer is None:
            await self.connect_check_health(check_health=False)
        if check_health and self.health_check_interval:
            await self.check_health()
        if isinstance(command, (str, bytes)):
            command = [command.encode() if isinstance(command, str) else command]
        link: Any = self._writer
        try:
            for item in command:
                link.sendall(item)
        except OSError as error:
            await self.disconnect(nowait=True)
            raise self.library.ConnectionError(
                f"Error {error.errno} while writing to socket. {error.strerror}."
            ) from error
        except BaseException:
            await self.disconnect(nowait=True)
            raise
        if link.turns.over():
            await link.turns

    async def read_response(self, disable_decoding: bool = False, timeout: float | None = None, *,
                            disconnect_on_error: bool = True, push_request: bool | None = False) -> Any:  # fmt: skip
        """As redis-py's: ``timeout`` None stands for socket_timeout, infinity for no limit."""
        link, parser = self.link, self._parser
        if link is not None and link.arrived and link.arrived[0].__class__ not in (Push, ReplyError):
            response = self.converter.view(link.session.protocol, disable_decoding)(link.arrived.popleft())
        else:
            try:
                response = await parser.read_response(disable_decoding, push_request, self._limit(timeout))
            except TimeoutError:
                if timeout is not None:
                    return None
                if disconnect_on_error:
                    await self.disconnect(nowait=True)
                raise self.library.TimeoutError(f"Timeout reading from {self._host_error()}") from None
            except BaseException:
                if disconnect_on_error:
                    await self.disconnect(nowait=True)
                raise
        if self.health_check_interval:
            self.next_health_check = asyncio.get_running_loop().time() + self.health_check_interval
        if isinstance(response, self.library.ResponseError):
            raise response from None
        return response

    def _limit(self, timeout: float | None) -> float | None:
        if timeout is None:
            limit: float | None = None if self.emulator.clock.manual else self.socket_timeout
            return limit
        return None if timeout == math.inf else timeout


class AsyncPoolDoor(_Base):
    """A pool of asyncio connections to one emulator, with a short way in and out; see the synchronous one."""

    library: Library
    connection_door: Any

    def __init__(self, emulator: Emulator | None = None, connection_class: Any = None,
                 max_connections: int | None = None, version: Any = None, server_type: str | None = None,
                 **options: Any) -> None:  # fmt: skip
        self.emulator = emulator_for(emulator, version, server_type)
        super().__init__(connection_class=connection_class or self.connection_door,
                         max_connections=max_connections, emulator=self.emulator,
                         **self.library.drop_network_options(options))  # fmt: skip
        self._plain_events = options.get("event_dispatcher") is None

    @classmethod
    def from_url(cls, url: str, **kwargs: Any) -> Any:
        """A pool for an ``emuredis://`` URL; what the URL says goes before ``kwargs``."""
        return cls(**{**kwargs, **url_options(url, cls.library)})

    async def get_connection(self, command_name: Any = None, *keys: Any, **options: Any) -> Any:
        """A connection that is ready for a command."""
        connection = self.get_available_connection()
        link = connection.link
        if link is None or link.arrived or link.closed or link.session.closing:
            try:
                await self.ensure_connection(connection)
            except BaseException:
                await self.release(connection)
                raise
        return connection

    async def release(self, connection: Any) -> None:
        """Take a connection back."""
        self._in_use_connections.remove(connection)
        if connection.should_reconnect():
            await connection.disconnect()
        self._available_connections.append(connection)
        if connection._re_auth_token is not None or not self._plain_events:
            await self._event_dispatcher.dispatch_async(self.library.released_async(connection))
