"""A client package's `Connection` without a network: the reference door.

Everything is redis-py's or valkey-py's own (pool, handshake, retries, health checks, push handlers, errors) but for
the three things that know of a wire: the *socket* is a `Link` to an engine, the *packer* hands over words instead of
bytes, and the *parser* takes neutral replies from the link and makes of them what redis-py would have parsed.

It works in any of redis-py's pools::

    redis.Redis(connection_pool=redis.ConnectionPool(connection_class=Connection, emulator=emulator))

``socket_timeout`` counts real seconds on a system clock, as over TCP. On a manual clock nothing takes real time, and a
read waits as long as the emulator's clock says.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from emuredis.emulator import Emulator
from emuredis.errors import ReplyError
from emuredis.redispy.convert import Converter
from emuredis.redispy.library import Library
from emuredis.redispy.link import Closed, Link
from emuredis.replies import Push

__all__ = ["ConnectionDoor"]

_CLOSED = "Connection closed by server."
_Base: Any = object
#: "As long as the connection's socket_timeout."
_UNSET: Any = object()


class ParserDoor(_Base):
    """Takes replies from the link of its connection."""

    library: Library

    def __init__(self) -> None:
        self.pubsub_push_handler_func = self.handle_pubsub_push_response
        self._link: Link | None = None
        self._connection: ConnectionDoor | None = None

    def handle_pubsub_push_response(self, response: Any) -> Any:
        return response

    def on_connect(self, connection: Any, **kwargs: Any) -> None:
        self._connection, self._link = connection, connection._sock

    def on_disconnect(self) -> None:
        self._connection = self._link = None

    def can_read(self, timeout: float = 0) -> bool:
        link = self._link
        if link is None:
            raise self.library.ConnectionError(_CLOSED)
        try:
            return link.ready() or bool(timeout != 0 and link.wait(timeout))
        except Closed:
            raise self.library.ConnectionError(_CLOSED) from None

    def read_response(
        self, disable_decoding: bool = False, push_request: bool = False, timeout: Any = _UNSET
    ) -> Any:
        link, connection = self._link, self._connection
        if link is None or connection is None:
            raise self.library.ConnectionError(_CLOSED)
        if timeout is _UNSET or timeout is self.library.unset:
            timeout = None if link.engine.clock.manual else connection.socket_timeout
        while True:
            try:
                reply = link.read(timeout)
            except Closed:
                raise self.library.ConnectionError(_CLOSED) from None
            response = connection.converter.view(link.session.protocol, disable_decoding)(reply)
            if reply.__class__ is Push and link.session.protocol == 3:
                response = self.handle_push_response(response)
                if push_request:
                    return response
                continue
            if isinstance(response, self.library.ConnectionError):
                raise response
            return response


class Packer:
    """Gives a command's words instead of bytes."""

    def __init__(self, converter: Converter) -> None:
        self.pack = lambda *args: [converter.command(args)]


class ConnectionDoor(_Base):
    """A connection to an emulator, for any of the package's connection pools. ``emulator``: the one to talk to."""

    library: Library
    parsers: frozenset[Any]
    parser: Any
    converter: Converter

    def __init__(self, *, emulator: Emulator, **options: Any) -> None:
        self.emulator = emulator
        options = self.library.drop_network_options(options)
        super().__init__(path="", **self.library.connection_options(options, asynchronous=False))

    @property
    def link(self) -> Link | None:
        """What stands for the socket; None while not connected."""
        link: Link | None = self._sock
        return link

    def repr_pieces(self) -> list[tuple[str, Any]]:
        pieces = [("emulator", self.emulator), ("db", self.db)]
        return [*pieces, ("client_name", self.client_name)] if self.client_name else pieces

    def set_parser(self, parser_class: Any) -> None:
        self._parser = self.library.parser_for(parser_class, self.parsers, self.parser)()
        self.converter = Converter(self.encoder, self._parser.parse_error)

    def _construct_command_packer(self, packer: Any) -> Any:
        return Packer(self.converter) if packer is None else packer

    def pack_commands(self, commands: Iterable[tuple[Any, ...]]) -> list[Any]:
        pack = self._command_packer.pack
        return [item for command in commands for item in pack(*command)]

    def _connect(self) -> Link:
        return Link(self.emulator.engine)

    def _host_error(self) -> str:
        return "the emulator"

    # The two methods that every command calls: as redis-py's, but for a shorter way where all is well.

    def send_command(self, *args: Any, **kwargs: Any) -> None:
        link: Link | None = self._sock
        if link is None or self.health_check_interval or self._command_packer.__class__ is not Packer:
            super().send_command(*args, **kwargs)
            return
        argv = self.converter.command(args)
        try:
            link.run(argv)
        except OSError as error:
            self.disconnect()
            raise self.library.ConnectionError(
                f"Error {error.errno} while writing to socket. {error.strerror}."
            ) from error
        except BaseException:
            self.disconnect()
            raise

    def read_response(self, disable_decoding: bool = False, *, timeout: Any = _UNSET,
                      disconnect_on_error: bool = True, push_request: bool = False) -> Any:  # fmt: skip
        link: Link | None = self._sock
        if link is None or not link.arrived or push_request or self.health_check_interval:
            return self._read(disable_decoding, timeout, disconnect_on_error, push_request)
        reply = link.arrived[0]
        kind = reply.__class__
        if kind is Push or kind is ReplyError:
            return self._read(disable_decoding, timeout, disconnect_on_error, False)
        link.arrived.popleft()
        if kind is int or reply is None or (kind is bytes and self.converter.decode is None):
            return reply
        return self.converter.view(link.session.protocol, disable_decoding)(reply)

    def _read(
        self, disable_decoding: bool, timeout: Any, disconnect_on_error: bool, push_request: bool
    ) -> Any:
        """The package's own `read_response`; for versions that cannot ask our parser for all of it, the same here."""
        library = self.library
        if library.reads_with_timeout:
            limit = library.unset if timeout is _UNSET else timeout
            return super().read_response(disable_decoding, timeout=limit, disconnect_on_error=disconnect_on_error,
                                         push_request=push_request)  # fmt: skip
        try:
            response = self._parser.read_response(disable_decoding, push_request, timeout)
        except BaseException as error:
            if disconnect_on_error:
                self.disconnect()
            if isinstance(error, TimeoutError):
                raise library.TimeoutError(f"Timeout reading from {self._host_error()}") from error
            if isinstance(error, OSError):
                raise library.ConnectionError(
                    f"Error while reading from {self._host_error()} : {error.args}"
                ) from error
            raise
        if self.health_check_interval:
            self.next_health_check = library.wall_seconds() + self.health_check_interval
        if isinstance(response, library.ResponseError):
            raise response
        return response
