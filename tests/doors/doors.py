"""One test body for every door.

A *body* is written once, as ``async def body(world)``. Calls that are coroutines in redis.asyncio and plain in redis go
through ``await world.got(...)``; a synchronous run never really awaits, so it can be driven without an event loop.
What a body returns, usually a list of everything it saw, is the *transcript*; that of a door must equal that of the
same client library on the live server, in the same mode and protocol.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tests.support.live import LiveServer

__all__ = ["DOORS", "Body", "Door", "World", "comparable", "problem", "run", "transcript"]

Body = Callable[["World"], Coroutine[Any, Any, Any]]


@dataclass(frozen=True)
class Door:
    """How a client is made. ``kind``: short, lean, stock, tcp or live. ``package``: redis or valkey."""

    kind: str
    asynchronous: bool
    protocol: int
    package: str = "redis"

    def __str__(self) -> str:
        place = f"{self.kind}-{'async' if self.asynchronous else 'sync'}-resp{self.protocol}"
        return place if self.package == "redis" else f"{self.package}-{place}"

    @property
    def library(self) -> Any:
        """The client package, or its asyncio half."""
        return import_module(f"{self.package}.asyncio" if self.asynchronous else self.package)

    @property
    def ours(self) -> Any:
        """What emuredis has in its place."""
        place = {"redis": "emuredis", "valkey": "emuredis.valkey"}[self.package]
        if self.asynchronous:
            return import_module(f"{place}.asyncio")
        return import_module("emuredis.redispy" if self.package == "redis" else place)

    @property
    def client_name(self) -> str:
        return {"redis": "Redis", "valkey": "Valkey"}[self.package]

    @property
    def version(self) -> tuple[int, ...]:
        """The version as one of redis-py: all of valkey-py's go back to its 5.0."""
        if self.package != "redis":
            return (5, 0)
        return tuple(int(part) for part in import_module("redis").__version__.split(".")[:2])

    def error(self, name: str) -> Any:
        """The package's exception of that name."""
        return getattr(import_module(f"{self.package}.exceptions"), name)

    def retry(self, times: int) -> Any:
        """That many further attempts, at once."""
        half = f"{self.package}.asyncio" if self.asynchronous else self.package
        backoff = import_module(f"{self.package}.backoff").NoBackoff()
        return import_module(f"{half}.retry").Retry(backoff, times)


#: The client packages that are there; a run may be about one of them alone.
PACKAGES = [name for name in ("redis", "valkey") if find_spec(name) is not None]

DOORS = [
    Door(kind, asynchronous, protocol, package)
    for package in PACKAGES
    for kind in ("short", "lean", "stock", "tcp")
    for asynchronous in (False, True)
    for protocol in (2, 3)
]


@dataclass
class World:
    """What a body gets: clients of one server, and helpers that hide whether they are coroutines."""

    door: Door
    address: Any  # an Emulator, or (host, port)
    clients: list[Any] = field(default_factory=list)

    def client(self, **options: Any) -> Any:
        """A client of the server behind this door."""
        options.setdefault("protocol", self.door.protocol)
        client = self._make(options)
        self.clients.append(client)
        return client

    def _make(self, options: dict[str, Any]) -> Any:
        door, address = self.door, self.address
        library, ours = door.library, door.ours
        stock = getattr(library, door.client_name)
        if door.version < (6,):  # an older client tries once, and a connection may just have been closed
            options.setdefault("retry", door.retry(3))
            options.setdefault("retry_on_error", [door.error("ConnectionError")])
        if door.kind in ("tcp", "live"):
            return stock(host=address[0], port=address[1], **options)
        if door.kind == "short":
            return getattr(ours, door.client_name)(emulator=address, **options)
        # A pool made by hand has no retries; a client's own has.
        options.setdefault("retry", door.retry(3))
        single = options.pop("single_connection_client", False)
        if door.kind == "lean":
            pool = ours.pool(address, **options)
        else:
            pool = library.ConnectionPool(connection_class=ours.Connection, emulator=address, **options)
        client = stock(connection_pool=pool, single_connection_client=single)
        client.auto_close_connection_pool = True
        return client

    async def got(self, value: Any) -> Any:
        return await value if inspect.isawaitable(value) else value

    async def tried(self, value: Any) -> Any:
        """The value, or what went wrong."""
        try:
            return comparable(await self.got(value() if callable(value) else value))
        except Exception as error:
            return problem(error)

    async def close(self) -> None:
        for client in self.clients:
            await self.got(client.aclose() if self.door.asynchronous else client.close())


def problem(error: BaseException) -> tuple[str, str]:
    """An exception as something to compare: its class and its text."""
    return type(error).__name__, str(error)


def comparable(value: Any) -> Any:
    """A value in which exceptions can be compared too."""
    if isinstance(value, BaseException):
        return problem(value)
    return [comparable(item) for item in value] if isinstance(value, list) else value


async def _lived(world: World, body: Body) -> Any:
    try:
        return await body(world)
    finally:
        await world.close()


def run(door: Door, address: Any, body: Body) -> Any:
    """Run a body through a door; its transcript."""
    world = World(door, address)
    if door.asynchronous:
        return asyncio.run(_lived(world, body))
    return finish(_lived(world, body))


def finish(coroutine: Awaitable[Any]) -> Any:
    """Drive a coroutine that never waits for anything."""
    steps = coroutine.__await__()
    try:
        next(steps)
    except StopIteration as done:
        return done.value
    raise AssertionError("a synchronous body must not wait")


_live: dict[tuple[str, bool, int, str], Any] = {}


def transcript(body: Body, door: Door, server: LiveServer) -> Any:
    """What the body sees on the live server; asked once."""
    key = (f"{body.__module__}.{body.__qualname__}", door.asynchronous, door.protocol, door.package)
    if key not in _live:
        connection = server.connect()
        connection.call("FLUSHALL")
        connection.call("SCRIPT", "FLUSH")
        connection.call("FUNCTION", "FLUSH")
        connection.close()
        _live[key] = run(
            Door("live", door.asynchronous, door.protocol, door.package), ("127.0.0.1", server.port), body
        )
    return _live[key]
