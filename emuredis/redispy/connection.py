"""redis-py's `Connection` without a network: the reference door.

Everything is redis-py's own (pool, handshake, retries, health checks, push handlers, errors) but for the three things
that know of a wire: the *socket* is a `Link` to an engine, the *packer* hands over words instead of bytes, and the
*parser* takes neutral replies from the link and makes of them what redis-py would have parsed.

It works in any of redis-py's pools::

    redis.Redis(connection_pool=redis.ConnectionPool(connection_class=Connection, emulator=emulator))

``socket_timeout`` counts real seconds on a system clock, as over TCP. On a manual clock nothing takes real time, and a
read waits as long as the emulator's clock says.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from redis._parsers import _HiredisParser, _RESP2Parser, _RESP3Parser
from redis._parsers.base import BaseParser, PushNotificationsParser
from redis.connection import DefaultParser, UnixDomainSocketConnection
from redis.driver_info import resolve_driver_info
from redis.exceptions import ConnectionError, RedisError
from redis.utils import SENTINEL

from emuredis.emulator import Emulator
from emuredis.errors import ReplyError
from emuredis.redispy.convert import Converter
from emuredis.redispy.link import Closed, Link
from emuredis.replies import Push

__all__ = ["NETWORK_OPTIONS", "Connection", "drop_network_options", "with_driver_info"]

_CLOSED = "Connection closed by server."
_PARSERS = (DefaultParser, _HiredisParser, _RESP2Parser, _RESP3Parser)

#: Options that say where the server is or how its socket behaves: there is none, any value is as good as another.
NETWORK_OPTIONS = frozenset(
    [
        "host",
        "port",
        "path",
        "socket_keepalive",
        "socket_keepalive_options",
        "socket_type",
        "socket_read_size",
    ]
)


@cache
def _driver_info() -> Any:
    return resolve_driver_info(SENTINEL, SENTINEL, SENTINEL)


def with_driver_info(options: dict[str, Any]) -> dict[str, Any]:
    """``options`` with redis-py's default for driver_info: it would read its package's metadata each time."""
    if options.keys() & {"driver_info", "lib_name", "lib_version"}:
        return options
    return {**options, "driver_info": _driver_info()}


def drop_network_options(options: dict[str, Any]) -> dict[str, Any]:
    """``options`` without those of a network. Raises RedisError for TLS, which would promise something."""
    refused = [name for name in options if name.startswith("ssl")]
    if refused:
        raise RedisError(f"emuredis has no network, so it does not support the option {refused[0]}")
    return {name: value for name, value in options.items() if name not in NETWORK_OPTIONS}


class Parser(BaseParser, PushNotificationsParser):
    """Takes replies from the link of its connection."""

    def __init__(self) -> None:
        self.pubsub_push_handler_func = self.handle_pubsub_push_response
        self._link: Link | None = None
        self._connection: Connection | None = None

    def handle_pubsub_push_response(self, response: Any) -> Any:
        return response

    def on_connect(self, connection: Any, **kwargs: Any) -> None:
        self._connection, self._link = connection, connection._sock

    def on_disconnect(self) -> None:
        self._connection = self._link = None

    def can_read(self, timeout: float = 0) -> bool:
        link = self._link
        if link is None:
            raise ConnectionError(_CLOSED)
        try:
            return link.ready() or bool(timeout != 0 and link.wait(timeout))
        except Closed:
            raise ConnectionError(_CLOSED) from None

    def read_response(
        self, disable_decoding: bool = False, push_request: bool = False, timeout: Any = SENTINEL
    ) -> Any:
        link, connection = self._link, self._connection
        if link is None or connection is None:
            raise ConnectionError(_CLOSED)
        if timeout is SENTINEL:
            timeout = None if link.engine.clock.manual else connection.socket_timeout
        while True:
            try:
                reply = link.read(timeout)
            except Closed:
                raise ConnectionError(_CLOSED) from None
            response = connection.converter.view(link.session.protocol, disable_decoding)(reply)
            if reply.__class__ is Push and link.session.protocol == 3:
                response = self.handle_push_response(response)
                if push_request:
                    return response
                continue
            if isinstance(response, ConnectionError):
                raise response
            return response


class Packer:
    """Gives a command's words instead of bytes."""

    def __init__(self, converter: Converter) -> None:
        self.pack = lambda *args: [converter.command(args)]


class Connection(UnixDomainSocketConnection):
    """A connection to an emulator, for any of redis-py's connection pools. ``emulator``: the one to talk to."""

    def __init__(self, *, emulator: Emulator, **options: Any) -> None:
        self.emulator = emulator
        super().__init__(path="", **with_driver_info(drop_network_options(options)))

    @property
    def link(self) -> Link | None:
        """What stands for the socket; None while not connected."""
        link: Link | None = self._sock
        return link

    def repr_pieces(self) -> list[tuple[str, Any]]:
        pieces = [("emulator", self.emulator), ("db", self.db)]
        return [*pieces, ("client_name", self.client_name)] if self.client_name else pieces

    def set_parser(self, parser_class: Any) -> None:
        if parser_class not in _PARSERS:
            raise RedisError(f"emuredis does not support the option parser_class={parser_class!r}")
        self._parser = Parser()
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
            raise ConnectionError(
                f"Error {error.errno} while writing to socket. {error.strerror}."
            ) from error
        except BaseException:
            self.disconnect()
            raise

    def read_response(self, disable_decoding: bool = False, *, timeout: Any = SENTINEL,
                      disconnect_on_error: bool = True, push_request: bool = False) -> Any:  # fmt: skip
        link: Link | None = self._sock
        if link is None or not link.arrived or push_request or self.health_check_interval:
            return super().read_response(disable_decoding, timeout=timeout, disconnect_on_error=disconnect_on_error,
                                         push_request=push_request)  # fmt: skip
        reply = link.arrived[0]
        kind = reply.__class__
        if kind is Push or kind is ReplyError:
            return super().read_response(
                disable_decoding, timeout=timeout, disconnect_on_error=disconnect_on_error
            )
        link.arrived.popleft()
        if kind is int or reply is None or (kind is bytes and self.converter.decode is None):
            return reply
        return self.converter.view(link.session.protocol, disable_decoding)(reply)
