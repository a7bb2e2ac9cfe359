"""`emuredis.patch`: while it lasts, clients that a program makes for itself with redis-py or valkey-py find emulators.

What is replaced is how the packages' connection pools are made, for every client has one: the pool gets a connection
class that is its own one (TCP, TLS, Unix socket or a class derived from them) with the reference door before it, and
the emulator of its address. All else, retries, pools and clients, stays the package's.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from weakref import WeakSet

from emuredis.emulator import Emulator
from emuredis.errors import EmulatorError
from emuredis.redispy.aio import AsyncConnectionDoor, AsyncParserDoor
from emuredis.redispy.connection import ConnectionDoor, ParserDoor
from emuredis.redispy.library import Fallbacks, Library

__all__ = ["Patch", "patch"]

_ENDED = "this client was made inside emuredis.patch(), which has ended"
#: What does not go through one pool to one address.
_CLUSTERS = {"redis": "RedisCluster", "valkey": "ValkeyCluster"}
_HERE = ("localhost", "127.0.0.1", "::1", "")


def address_of(options: Mapping[str, Any]) -> str:
    """Where a connection with these options would go: ``host:port``, or the path of a Unix socket."""
    path = options.get("path")
    if path:
        return str(path)
    host = str(options.get("host") or "localhost")
    return f"{'localhost' if host in _HERE else host}:{int(options.get('port') or 6379)}"


class _Patched:
    """What both connection classes have in common: they belong to a patch."""

    patch: Patch

    def _emulator(self) -> Emulator:
        if self.patch.ended:
            error: Any = self.library  # type: ignore[attr-defined]
            raise error.Error(_ENDED)
        return self.emulator  # type: ignore[attr-defined,no-any-return]


class _Connection(_Patched, ConnectionDoor):
    def __init__(self, *, emulator: Emulator, patch: Patch, **options: Any) -> None:
        self.emulator, self.patch = emulator, patch
        super(ConnectionDoor, self).__init__(**self.library.connection_options(options, asynchronous=False))
        patch.connections.add(self)

    def cut(self) -> None:
        link: Any = self.link
        if link is not None:
            link.close()

    def repr_pieces(self) -> Any:
        return super(ConnectionDoor, self).repr_pieces()

    def _host_error(self) -> Any:
        return super(ConnectionDoor, self)._host_error()

    def _connect(self) -> Any:
        self._emulator()
        return super()._connect()


class _AsyncConnection(_Patched, AsyncConnectionDoor):
    def __init__(self, *, emulator: Emulator, patch: Patch, **options: Any) -> None:
        self.emulator, self.patch = emulator, patch
        super(AsyncConnectionDoor, self).__init__(
            **self.library.connection_options(options, asynchronous=True)
        )
        patch.connections.add(self)

    def cut(self) -> None:
        link: Any = self.link
        if link is not None:
            link.close()
        self._reader = self._writer = None  # not to be complained of as unclosed: its loop may be gone

    def repr_pieces(self) -> Any:
        return super(AsyncConnectionDoor, self).repr_pieces()

    def _host_error(self) -> Any:
        return super(AsyncConnectionDoor, self)._host_error()

    async def _connect(self) -> Any:
        self._emulator()
        await super()._connect()


class _Half:
    """The synchronous or the asyncio half of a package."""

    def __init__(self, library: Library, asynchronous: bool) -> None:
        self.library, self.asynchronous = library, asynchronous
        self.module: Any = library.aio if asynchronous else library.sync
        self._door: Any = _AsyncConnection if asynchronous else _Connection
        self._contents = {
            "library": library,
            "parsers": library.parsers(asynchronous),
            "parser": library.parser(AsyncParserDoor if asynchronous else ParserDoor, asynchronous),
        }
        self._made: dict[Any, Any] = {}

    def connection_class(self, theirs: Any) -> Any:
        """A class with the door before ``theirs``. Raises EmulatorError where the two are at odds."""
        if theirs not in self._made:
            self._check(theirs)
            names = {**self._contents, "__module__": theirs.__module__, "__qualname__": theirs.__qualname__}
            self._made[theirs] = type(theirs.__name__, (self._door, theirs, Fallbacks), names)
        return self._made[theirs]

    def _check(self, theirs: Any) -> None:
        where = f"{theirs.__module__}.{theirs.__qualname__}"
        if not isinstance(theirs, type) or not issubclass(theirs, self.module.AbstractConnection):
            raise EmulatorError(f"emuredis.patch() does not support the connection class {where}")
        if "Sentinel" in theirs.__name__:
            raise EmulatorError(f"emuredis.patch() does not support Sentinel ({where})")
        door = {*vars(AsyncConnectionDoor if self.asynchronous else ConnectionDoor)} - {
            "__init__",
            "__module__",
            "__doc__",
        }
        for base in theirs.__mro__:
            if base.__module__.partition(".")[0] == self.library.name or base is object:
                continue
            own = sorted(door & {*vars(base)} - {"__annotations__", "__dict__", "__weakref__", "repr_pieces"})
            if own:
                raise EmulatorError(
                    f"emuredis.patch() cannot stand in for {where}, which has its own {own[0]}"
                )


class _Installed:
    """The replaced functions, while any patch lasts; the innermost patch is the one that counts."""

    def __init__(self) -> None:
        self.active: list[Patch] = []
        self.lock = threading.Lock()
        self._originals: list[tuple[Any, Any]] = []
        self._halves: dict[str, list[_Half]] = {}

    def enter(self, one: Patch) -> None:
        with self.lock:
            if not self.active:
                self._install()
            self.active.append(one)

    def leave(self, one: Patch) -> None:
        with self.lock:
            self.active.remove(one)
            if not self.active:
                while self._originals:
                    target, original = self._originals.pop()
                    target.__init__ = original

    def _install(self) -> None:
        for name in ("redis", "valkey"):
            if find_spec(name) is None:
                continue
            if name not in self._halves:
                library = Library(name)
                self._halves[name] = [_Half(library, asynchronous) for asynchronous in (False, True)]
            for one in self._halves[name]:
                self._replace(one.module.ConnectionPool, functools.partial(self._pool, one))
            for half in (name, f"{name}.asyncio"):
                self._replace(import_module(f"{half}.sentinel").Sentinel, _refuse)
                self._replace(getattr(import_module(f"{half}.cluster"), _CLUSTERS[name]), self._cluster)
            nodes: Any = import_module(f"{name}.asyncio.cluster").ClusterNode  # has no pool
            self._replace(nodes, functools.partial(self._pool, self._halves[name][1]))

    def _replace(self, target: Any, hook: Callable[..., None]) -> None:
        original = target.__init__

        @functools.wraps(original)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            hook(self, original, args, kwargs)

        self._originals.append((target, original))
        target.__init__ = __init__

    def _pool(self, half: _Half, pool: Any, original: Any, args: Any, kwargs: Any) -> None:
        original(pool, *args, **kwargs)
        if "emulator" in pool.connection_kwargs or not self.active:
            return
        one = self.active[-1]
        pool.connection_class = half.connection_class(pool.connection_class)
        # An asyncio cluster's node tells its address itself.
        where = address_of(
            {
                "host": getattr(pool, "host", None),
                "port": getattr(pool, "port", None),
                **pool.connection_kwargs,
            }
        )
        pool.connection_kwargs.update(emulator=one.emulator_at(where), patch=one)

    def _cluster(self, client: Any, original: Any, args: Any, kwargs: Any) -> None:
        if self.active and not self.active[-1].has_clusters:
            _refuse(client, original, args, kwargs)
        library = self._halves[original.__module__.partition(".")[0]][0].library
        original(client, *args, **library.calm(original, kwargs))


def _refuse(client: Any, original: Any, args: Any, kwargs: Any) -> None:
    kind = type(client)
    raise EmulatorError(f"emuredis.patch() does not support {kind.__module__}.{kind.__qualname__}")


_installed = _Installed()


class Patch:
    """What `patch` returns: a context manager (``with``, ``async with``), a decorator, or ``start()`` and ``stop()``.

    ``emulators``: by address, those that clients have asked for so far and those given.
    """

    def __init__(
        self, emulator: Emulator | None, emulators: Mapping[str, Emulator], make: Callable[[], Emulator]
    ) -> None:
        self.emulators: dict[str, Emulator] = {}
        for given in (emulator, *emulators.values()):
            if given is not None and given.cluster is not None:
                for node, (host, port) in zip(given.cluster.nodes, given.cluster.addresses, strict=True):
                    self.emulators[_normal(f"{host}:{port}")] = node
        self.has_clusters = bool(self.emulators)
        self.emulators.update((_normal(address), given) for address, given in emulators.items())
        self.connections: WeakSet[Any] = WeakSet()
        self.ended = True
        self._only = emulator
        self._given = dict(self.emulators)
        self._make = make
        self._lock = threading.Lock()

    def emulator_at(self, address: str = "localhost:6379") -> Emulator:
        """The emulator that clients of ``host:port``, or of a Unix socket's path, find; made when first asked for."""
        address = _normal(address)
        with self._lock:
            if address not in self.emulators:
                self.emulators[address] = self._make() if self._only is None else self._only
            return self.emulators[address]

    def start(self) -> Patch:
        """Begin. Raises EmulatorError if it has begun already."""
        if not self.ended:
            raise EmulatorError("this emuredis.patch() is in use already; make another one")
        self.ended = False
        self.emulators = dict(self._given)
        self.connections = WeakSet()
        try:
            _installed.enter(self)
        except BaseException:
            self.ended = True
            raise
        return self

    def stop(self) -> None:
        """End: what was replaced is put back, and clients made meanwhile work no more."""
        _installed.leave(self)
        self.ended = True
        for connection in list(self.connections):
            connection.cut()

    def __enter__(self) -> Patch:
        return self.start()

    def __exit__(self, *problem: object) -> None:
        self.stop()

    async def __aenter__(self) -> Patch:
        return self.start()

    async def __aexit__(self, *problem: object) -> None:
        self.stop()

    def __call__(self, function: Any) -> Any:
        """Decorate a function, or a coroutine function: each call has a patch of its own."""
        if (
            inspect.isclass(function)
            or inspect.isgeneratorfunction(function)
            or inspect.isasyncgenfunction(function)
        ):
            raise EmulatorError(
                f"emuredis.patch() decorates functions and coroutine functions, not {function!r}"
            )
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def asynchronous(*args: Any, **kwargs: Any) -> Any:
                with self._again():
                    return await function(*args, **kwargs)

            return asynchronous

        @functools.wraps(function)
        def synchronous(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return function(*args, **kwargs)

        return synchronous

    def _again(self) -> Patch:
        return Patch(self._only, self._given, self._make)


def _normal(address: str) -> str:
    if "/" in address:
        return address
    host, colon, port = address.rpartition(":")
    if not colon:
        host, port = address, "6379"
    return address_of({"host": host, "port": port})


def patch(
    emulator: Emulator | None = None, *, emulators: Mapping[str, Emulator] | None = None, **options: Any
) -> Patch:
    """While it lasts, clients made with redis-py or valkey-py find emulators, whatever address they are made for.

    Each ``host:port`` and each Unix socket has an emulator of its own, made with ``options`` (those of `Emulator`),
    unless ``emulators`` has one for it; or all have ``emulator``. Databases are those of the emulator. Nests: the
    innermost counts. Clients made before it began are left alone; those made in it raise an error once it has ended.

    Clients of a cluster find one if an ``Emulator(cluster=N)`` is given; otherwise they are refused by name
    (EmulatorError), as are Sentinel, and connection classes that send or read in their own way.
    """
    if emulator is not None and options:
        raise TypeError(
            "options are for emulators that the patch makes; give an emulator or options, not both"
        )
    return Patch(emulator, emulators or {}, functools.partial(Emulator, **options))
