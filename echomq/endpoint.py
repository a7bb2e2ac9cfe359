"""Where a server is: URLs, what they mean, and `connect`.

`redis://[:password@]host[:port][/db]` and `valkey://…` are TCP; `unix://path[?db=n]` is a Unix socket;
`emuredis://[name[/db]]` is an emulator inside this process (the same name is the same emulator; no name
is a private one). An `Endpoint` makes any number of connections to one server; for `emuredis://` they
all share one emulator, and `clock` is the clock that the program may move.

This module imports the emulator, and only when such a URL is opened (by way of `embedded`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

from .clock import Clock, SystemClock
from .connection import Connection
from .errors import ArgumentError

if TYPE_CHECKING:
    from .embedded import Emulated

__all__ = ["WIRE_VERSION", "Endpoint", "Options", "Target", "connect", "parse_url"]

WIRE_VERSION = "echomq:3.0.0"
DEFAULT_PORT = 6379


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed URL."""

    url: str
    scheme: str
    host: str = ""
    port: int = 0
    path: str = ""
    name: str = ""
    db: int = 0
    username: str = "default"
    password: str | None = field(default=None, repr=False)

    @property
    def embedded(self) -> bool:
        """Whether the server lives in this process, so that no other process can see it."""
        return self.scheme == "emuredis"

    @property
    def address(self) -> str:
        """Host and port, or the socket's path, for messages."""
        return self.path or f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Options:
    """How a connection behaves; times in milliseconds (protocol: connection behaviour)."""

    protocol: int | None = None  # None: RESP3, falling back to RESP2
    client_name: str | None = None
    version: str = WIRE_VERSION
    call_timeout_ms: int = 5_000
    connect_timeout_ms: int = 3_000
    send_timeout_ms: int = 5_000
    heartbeat_ms: int = 30_000
    max_pending: int = 10_000
    reconnect_ms: int = 100
    reconnect_cap_ms: int = 2_000

    def __post_init__(self) -> None:
        if self.protocol not in (None, 2, 3):
            raise ArgumentError(f"protocol is 2, 3 or None, not {self.protocol!r}")


def parse_url(url: str) -> Target:
    """The target of a URL; ArgumentError says what is wrong with it."""
    try:
        parts = urlsplit(url)
        port = parts.port if parts.scheme in ("redis", "valkey") else None
    except ValueError as problem:  # an impossible port, a bracket left open
        raise ArgumentError(f"{url}: {problem}") from None
    if port == 0:
        raise ArgumentError(f"{url}: 0 is not a port")
    query = parse_qs(parts.query, keep_blank_values=True)
    unknown = sorted(set(query) - {"db"})
    if unknown:
        raise ArgumentError(f"{url}: unknown option {unknown[0]!r} (only db is known)")
    if parts.scheme in ("redis", "valkey"):
        db = _db(url, parts.path.strip("/") or query.get("db", ["0"])[0])
        username, password = _login(url)
        host = parts.hostname or "127.0.0.1"
        return Target(
            url, parts.scheme, host, port or DEFAULT_PORT, db=db, username=username, password=password
        )
    if parts.scheme == "unix":
        path = unquote(parts.netloc.rpartition("@")[2] + parts.path)
        if not path:
            raise ArgumentError(f"{url}: a unix:// URL needs the socket's path")
        username, password = _login(url)
        db = _db(url, query.get("db", ["0"])[0])
        return Target(url, "unix", path=path, db=db, username=username, password=password)
    if parts.scheme == "emuredis":
        db = _db(url, parts.path.strip("/") or query.get("db", ["0"])[0])
        return Target(url, "emuredis", name=unquote(parts.netloc), db=db)
    raise ArgumentError(f"{url}: a URL starts with redis://, valkey://, unix:// or emuredis://")


def _db(url: str, text: str) -> int:
    if not text.isdecimal():
        raise ArgumentError(f"{url}: {text!r} is not a database number")
    return int(text)


def _login(url: str) -> tuple[str, str | None]:
    parts = urlsplit(url)
    return unquote(parts.username or "default"), None if parts.password is None else unquote(parts.password)


class Endpoint:
    """One server; makes connections to it."""

    def __init__(self, url: str, *, clock: Clock | None = None, options: Options | None = None) -> None:
        self.target = parse_url(url)
        self.options = options if options is not None else Options()
        self._emulated: Emulated | None = None
        if self.target.embedded:
            from .embedded import Emulated  # the only road to the emulator

            self._emulated = Emulated(self.target, clock)
            clock = self._emulated.clock
        self.clock: Clock = clock if clock is not None else SystemClock()

    @property
    def url(self) -> str:
        return self.target.url

    def connect(self, options: Options | None = None) -> Connection:
        """A new connection, past the boot sequence and the version fence."""
        options = options if options is not None else self.options
        if self._emulated is not None:
            return self._emulated.connect(options)
        from .connector import Connector  # sockets and threads load only when used

        return Connector(self.target, options)

    def __repr__(self) -> str:
        return f"Endpoint({self.target.url!r})"


def connect(
    url: str = "emuredis://", *, clock: Clock | None = None, options: Options | None = None
) -> Connection:
    """One connection to the server at ``url``."""
    return Endpoint(url, clock=clock, options=options).connect()
