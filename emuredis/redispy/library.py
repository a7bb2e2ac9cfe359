"""What the doors need to know of a client package, redis-py or valkey-py, of any version they work with.

The doors (`connection`, `pools`, `client`, `locks` and their asyncio twins) are written once, as classes that are
mixed with a package's own and hold its `Library`. valkey-py is a descendant of redis-py 5, so the differences are
those of versions: what a package does not have is None here, or is made up for by `Fallbacks`, which stand behind the
package's classes.
"""

from __future__ import annotations

import inspect
from functools import cache, cached_property
from importlib import import_module
from typing import Any

__all__ = ["Fallbacks", "Later", "Library"]

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


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


@cache
def _takes(function: Any, option: str) -> bool:
    return option in inspect.signature(function).parameters


class Library:
    """One client package, by its name: "redis" or "valkey"."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.package: Any = import_module(name)
        self.sync: Any = import_module(f"{name}.connection")
        self.aio: Any = import_module(f"{name}.asyncio.connection")
        errors: Any = import_module(f"{name}.exceptions")
        self.Error: Any = getattr(errors, "RedisError", None) or errors.ValkeyError
        self.ConnectionError, self.TimeoutError = errors.ConnectionError, errors.TimeoutError
        self.ResponseError, self.WatchError = errors.ResponseError, errors.WatchError
        self.ExecAbortError = errors.ExecAbortError
        #: Exceptions that a call on the short way never raises, so that retrying on them needs no client library.
        self.network_errors = (self.ConnectionError, self.TimeoutError, OSError)
        event, utils = _module(f"{name}.event"), _module(f"{name}.utils")
        self.dispatcher: Any = getattr(event, "EventDispatcher", None)
        self.released: Any = getattr(event, "AfterConnectionReleasedEvent", None)
        self.released_async: Any = getattr(event, "AsyncAfterConnectionReleasedEvent", None)
        self._parsers: dict[Any, Any] = {}
        self.unset = getattr(utils, "SENTINEL", None)
        self._recorder = _module(f"{name}.observability.recorder")
        self._maintenance = _module(f"{name}.maint_notifications")
        # redis-py takes maintenance notifications only from parsers of its own classes, and never from this server.
        halves = (False, self.sync), (True, self.aio)
        self._asking_connections = {
            asynchronous: _takes(half.AbstractConnection, "maint_notifications_config")
            for asynchronous, half in halves
        }
        #: The time of day as the package reads it for its health checks.
        self.wall_seconds: Any = getattr(self.sync.time, "time", self.sync.time)
        #: Whether a connection is told how long to read, and its parser with it.
        self.reads_with_timeout = _takes(self.sync.UnixDomainSocketConnection.read_response, "timeout")

    def measured(self) -> bool:
        """Whether the package's own metrics are switched on."""
        return getattr(self._recorder, "_metrics_collector", None) is not None

    def no_maintenance(self, client: Any) -> dict[str, Any]:
        """The option with which clients do not ask the server about maintenance, {} if they never do.

        ``client``: what makes them, a class or its ``__init__``.
        """
        if self._maintenance is None or not _takes(client, "maint_notifications_config"):
            return {}
        return {"maint_notifications_config": self._maintenance.MaintNotificationsConfig(enabled=False)}

    def calm(self, client: Any, options: dict[str, Any]) -> dict[str, Any]:
        """A cluster client's options with those of `no_maintenance`, which some refuse with RESP2, where none asks."""
        protocol = str(options.get("protocol"))
        if protocol == "2" or (protocol != "3" and self.package.__version__.startswith("7.")):
            return options
        return {**self.no_maintenance(client), **options}

    def connection_options(self, options: dict[str, Any], asynchronous: bool) -> dict[str, Any]:
        """The options of a connection as the package's own class takes them."""
        options = self.with_driver_info(options)
        if not self._asking_connections[asynchronous]:
            return options
        asked = options.get("maint_notifications_config")
        if asked is not None and asked.enabled is True:
            return options
        return {
            **options,
            "maint_notifications_config": self._maintenance.MaintNotificationsConfig(enabled=False),
        }

    @cached_property
    def _driver_info(self) -> Any:
        module = _module(f"{self.name}.driver_info")
        resolve = getattr(module, "resolve_driver_info", None)
        return (
            None if resolve is None else resolve(*[self.unset] * len(inspect.signature(resolve).parameters))
        )

    def with_driver_info(self, options: dict[str, Any]) -> dict[str, Any]:
        """``options`` with the package's default for driver_info: it would read its metadata each time."""
        if self._driver_info is None or options.keys() & {"driver_info", "lib_name", "lib_version"}:
            return options
        return {**options, "driver_info": self._driver_info}

    def drop_network_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """``options`` without those of a network. Raises the package's error for TLS, which would promise something."""
        refused = [name for name in options if name.startswith("ssl")]
        if refused:
            raise self.Error(f"emuredis has no network, so it does not support the option {refused[0]}")
        return {name: value for name, value in options.items() if name not in NETWORK_OPTIONS}

    def pool_options(self, theirs: Any, ssl_class: type) -> dict[str, Any]:
        """The options of the pool that the package has made from a client's, for a pool of ours."""
        if theirs.connection_class is ssl_class:
            raise self.Error("emuredis has no network, so it does not support the option ssl")
        kwargs = {
            name: value for name, value in theirs.connection_kwargs.items() if name != "himport_registry"
        }
        return {**kwargs, "max_connections": theirs.max_connections}

    def parsers(self, asynchronous: bool) -> frozenset[Any]:
        """The parser classes that one may ask for: all parse what the server sends alike."""
        prefix = "_Async" if asynchronous else "_"
        module: Any = import_module(f"{self.name}._parsers")
        names = [f"{prefix}{kind}Parser" for kind in ("Hiredis", "Libvalkey", "RESP2", "RESP3")]
        return frozenset(found for name in names if (found := getattr(module, name, None)) is not None)

    def parser(self, door: type, asynchronous: bool) -> Any:
        """A parser class for a connection: ``door`` mixed with the package's ways of handling pushes."""
        base: Any = import_module(f"{self.name}._parsers.base")
        pushes = getattr(base, f"{'Async' if asynchronous else ''}PushNotificationsParser", None)
        if pushes is None:
            pushes = _AsyncPushes if asynchronous else _Pushes
        return type("Parser", (door, base.BaseParser, pushes), {"library": self})

    def parser_for(self, theirs: Any, known: frozenset[Any], ours: Any) -> Any:
        """Our parser class in place of theirs: of ``known`` ones, or one of them that differs in its exceptions only.

        Raises the package's error for any other.
        """
        if theirs in known:
            return ours
        if theirs not in self._parsers:
            own = (
                {name for name in vars(theirs) if not name.startswith("_")}
                if isinstance(theirs, type)
                else {"?"}
            )
            if own - {"EXCEPTION_CLASSES"} or not known & {*theirs.__bases__}:
                raise self.Error(f"emuredis does not support the option parser_class={theirs!r}")
            self._parsers[theirs] = type("Parser", (ours,), {"EXCEPTION_CLASSES": theirs.EXCEPTION_CLASSES})
        return self._parsers[theirs]


class Later:
    """A dispatcher of events for a client that is being made; they are told when the client has the pool it keeps."""

    def __init__(self, library: Library, client: Any, given: Any) -> None:
        self._given, self._dispatcher = given, library.dispatcher
        self._events: list[Any] = []
        self.options = {"event_dispatcher": self} if _takes(client, "event_dispatcher") else {}

    def dispatch(self, event: Any) -> None:
        self._events.append(event)

    def tell(self, client: Any) -> None:
        """Give the client its dispatcher, and that one the events."""
        if not self.options:
            return
        dispatcher = client._event_dispatcher = self._given if self._given is not None else self._dispatcher()
        for event in self._events:
            event.connection_pools[:] = [client.connection_pool]
            dispatcher.dispatch(event)


class Fallbacks:
    """What newer versions' connections have, for older ones. Stands last among the bases."""

    _re_auth_token: Any = None
    client_cache: Any = None

    def should_reconnect(self) -> bool:
        return False

    async def connect_check_health(self: Any, check_health: bool = True) -> None:
        await self.connect()


class _Pushes:
    """Pushed messages, for packages whose parsers each have their own way."""

    pubsub_push_handler_func: Any
    invalidation_push_handler_func: Any = None

    def handle_push_response(self, response: Any, **_: Any) -> Any:
        if response[0] in (b"invalidate", "invalidate"):
            handler = self.invalidation_push_handler_func
            return handler(response) if handler is not None else None
        return self.pubsub_push_handler_func(response)

    def set_pubsub_push_handler(self, handler: Any) -> None:
        self.pubsub_push_handler_func = handler

    set_push_handler = set_pubsub_push_handler

    def set_invalidation_push_handler(self, handler: Any) -> None:
        self.invalidation_push_handler_func = handler


class _AsyncPushes(_Pushes):
    async def handle_push_response(self, response: Any, **_: Any) -> Any:
        result = super().handle_push_response(response)
        return await result if inspect.isawaitable(result) else result
