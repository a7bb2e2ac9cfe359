"""redis-py's connection pool with a short way in and out.

redis-py spends more time on taking a connection from its pool and giving it back than on everything else it does for a
command: metrics, events, a look at the socket. None of it has anything to do here, so `get_connection` and `release`
keep only the book-keeping. Limits, forks, closing and whatever else a pool does are redis-py's own.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import unquote, urlsplit

from emuredis.emulator import Emulator
from emuredis.redispy.library import Library

__all__ = ["PoolDoor", "emulator_for", "url_options"]

_Base: Any = object


def url_options(url: str, library: Library) -> dict[str, Any]:
    """The options in ``emuredis://[[user]:password@][name][/db][?option=value...]``, as redis-py reads its URLs.

    The same name means the same emulator within this process; without a name it is a new one. Raises ValueError for
    another scheme and for what redis-py would refuse in its own URLs.
    """
    parts = urlsplit(url)
    if parts.scheme != "emuredis":
        raise ValueError(f"emuredis takes URLs such as emuredis://name/0, not {url!r}")
    options: dict[str, Any] = library.sync.parse_url(library.name + url[len("emuredis") :])
    options.pop("host", None)
    if options.pop("port", None) is not None:
        raise ValueError(f"an emulator has no port: {url!r}")
    for flag in ("decode_responses", "single_connection_client"):
        if flag in options:
            options[flag] = str(options[flag]).lower() in ("1", "true", "yes", "t", "y")
    name = unquote(parts.netloc.rpartition("@")[2].partition(":")[0])
    options["emulator"] = Emulator.named(name)
    return options


def emulator_for(emulator: Emulator | None, version: Any, server_type: str | None) -> Emulator:
    """The emulator of a pool: the given one, or a new one of that release."""
    if emulator is None:
        return Emulator(version=version, server_type=server_type)
    if version is not None or server_type is not None:
        raise TypeError("give an emulator, or the version and server_type of a new one, not both")
    return emulator


class PoolDoor(_Base):
    """A pool of connections to one emulator, a new private one unless ``emulator`` is given.

    Further options are those of the package's `ConnectionPool` and `Connection`.
    """

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

    def get_connection(self, command_name: Any = None, *keys: Any, **options: Any) -> Any:
        """A connection that is ready for a command."""
        if self.pid != os.getpid():
            self._checkpid()
        try:
            connection = self._available_connections.pop()
        except IndexError:
            with self._lock:
                connection = self.make_connection()
        self._in_use_connections.add(connection)
        link = connection._sock
        if link is None or link.arrived or link.closed or link.session.closing:
            self._make_ready(connection)
        return connection

    def _make_ready(self, connection: Any) -> None:
        """Connect, and connect again if something was left over from its last use."""
        errors = self.library
        try:
            connection.connect()
            try:
                if connection.can_read() and connection.client_cache is None:
                    raise errors.ConnectionError("Connection has data")
            except errors.network_errors:
                connection.disconnect()
                connection.connect()
                if connection.can_read():
                    raise errors.ConnectionError("Connection not ready") from None
        except BaseException:
            self.release(connection)
            raise

    def release(self, connection: Any) -> None:
        """Take a connection back."""
        if self.pid != os.getpid():
            self._checkpid()
        try:
            self._in_use_connections.remove(connection)
        except KeyError:  # not one of ours
            return
        if connection.should_reconnect():
            connection.disconnect()
        self._available_connections.append(connection)
        if connection._re_auth_token is not None or not self._plain_events:
            self._event_dispatcher.dispatch(self.library.released(connection))
