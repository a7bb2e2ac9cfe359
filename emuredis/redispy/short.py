"""The short way from a client library's call to the engine, shared by the sync and the asyncio classes.

The short way does what the long one does, on the connection that the pool would have given out: a connection's state
(a database chosen by SELECT, an open MULTI) is the same for both. It is taken only when nothing could tell the
difference; otherwise the call goes the long way through redis-py's own code (the reference door):

* for the whole client, with settings that see or change what happens between client and server (`is_plain`);
* for one call, when no connection is idle, or the idle one is in a special state (``gated``), or has unread data;
* for one call, when the command blocks: it is taken back before anybody can notice, and called again the long way;
* for one call, when the command may answer with other than one reply, or with redis-py's reading options.

This module knows the package's classes by their attributes only.
"""

from __future__ import annotations

from typing import Any

from emuredis.emulator import Emulator
from emuredis.errors import ReplyError
from emuredis.redispy.library import Library
from emuredis.replies import BLOCKED, Frames, NullArray, Push

__all__ = ["LONG", "ShortPipeline", "ShortSet", "ShortWay", "is_plain"]

#: "Go the long way": nothing has happened yet.
LONG = object()

#: Commands that answer with none or several replies, or that change how replies are read.
_LONG_NAMES = frozenset(
    ["CLIENT", "CLIENT REPLY", "HELLO", "MONITOR", "PSUBSCRIBE", "PSYNC", "PUNSUBSCRIBE", "QUIT", "SSUBSCRIBE",
     "SUBSCRIBE", "SUNSUBSCRIBE", "SYNC", "UNSUBSCRIBE"]
)  # fmt: skip

#: Reading options of the client packages, by their names there.
EMPTY_RESPONSE, NEVER_DECODE = "EMPTY_RESPONSE", "NEVER_DECODE"


def is_plain(client: Any) -> bool:
    """Whether a client's settings leave the way between client and server to itself."""
    pool, stock, library = client.connection_pool, client._stock, client.library
    kwargs = pool.connection_kwargs
    retry = kwargs.get("retry")
    errors = tuple(kwargs.get("retry_on_error") or ())
    if retry is not None:
        errors += tuple(getattr(retry, "_supported_errors", (Exception,)))
    own = ("parse_response", "_send_command_parse_response", "_execute_command")
    return (
        pool.connection_class is pool.connection_door
        and getattr(pool, "cache", None) is None
        and kwargs.get("event_dispatcher") is None
        and not kwargs.get("health_check_interval")
        and kwargs.get("credential_provider") is None
        and kwargs.get("command_packer") is None
        and kwargs.get("client_cache") is None
        and not kwargs.get("cache_enabled")
        and all(issubclass(error, library.network_errors) for error in errors)
        and all(getattr(type(client), name, None) is getattr(stock, name, None) for name in own)
        and not library.measured()
    )


class ShortSet:
    """SET without options, by far its commonest form: redis-py's method spends most of its time on their absence."""

    def set(self: Any, name: Any, value: Any, *args: Any, **options: Any) -> Any:
        if args or options:
            return super().set(name, value, *args, **options)  # type: ignore[misc]
        return self.execute_command("SET", name, value)


class ShortWay(ShortSet):
    """What a client class gets: `_short`, and the pool it may be used with in `_fast` (None: never).

    Also what its two flavours have in common otherwise: the emulator, and locks that know a manual clock.
    """

    library: Library
    _fast: Any = None
    _manual_lock: Any
    response_callbacks: Any
    connection_pool: Any

    @property
    def emulator(self) -> Emulator:
        """The emulator behind this client."""
        emulator: Emulator = self.connection_pool.connection_kwargs["emulator"]
        return emulator

    def set_retry(self: Any, retry: Any) -> None:
        super().set_retry(retry)  # type: ignore[misc]
        self._choose_way()

    def lock(self, name: Any, timeout: Any = None, sleep: float = 0.1, blocking: bool = True,
             blocking_timeout: Any = None, lock_class: Any = None, thread_local: bool = True,
             *more: Any, **named: Any) -> Any:  # fmt: skip
        """The package's lock; on a manual clock one that waits on that clock."""
        emulator = self.connection_pool.connection_kwargs.get("emulator")
        if lock_class is None and emulator is not None and emulator.clock.manual:
            lock_class = self._manual_lock
        client: Any = super()
        return client.lock(name, timeout, sleep, blocking, blocking_timeout, lock_class, thread_local,
                           *more, **named)  # fmt: skip

    def _short(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """The reply as redis-py would have returned it, or LONG. Raises redis-py's exceptions."""
        name = args[0]
        if name.__class__ is not str or not name.isupper() or name in _LONG_NAMES:
            return LONG
        if options and (NEVER_DECODE in options or EMPTY_RESPONSE in options):
            return LONG
        idle = self._fast._available_connections
        try:
            connection = idle.pop()
        except IndexError:
            return LONG
        try:
            link = connection.link
            if link is None or link.arrived or link.session.gated:
                return LONG
            converter, engine, session = connection.converter, link.engine, link.session
            argv = converter.command(args)
            with engine.lock:
                reply = engine.execute(session, argv)
                if reply is BLOCKED:
                    engine.waiting.remove(session.waiter)
                    return LONG
        finally:
            idle.append(connection)
        kind = reply.__class__
        if kind is ReplyError:
            error = converter.exception(reply)
            if isinstance(error, self.library.ConnectionError):  # the package connects and tries again
                return LONG
            raise error
        if kind is bytes:
            if converter.decode is not None:
                reply = converter.decode(reply)
        elif kind is not int and reply is not None:
            reply = (converter.view3 if session.protocol == 3 else converter.view2)(reply)
        callback = dict.get(self.response_callbacks, name)
        if callback is None:
            return reply
        options.pop("keys", None)
        return callback(reply, **options)


class ShortPipeline(ShortSet):
    """What a pipeline class gets: running a batch at once, and reading the outcome of a transaction."""

    library: Library
    response_callbacks: Any
    watching: bool

    def _batch(self, connection: Any, batch: list[Any], commands: Any) -> list[Any] | None:
        """The neutral replies to a batch, as far as they came at once; None where redis-py is to do it all.

        The commands behind one that blocks, or that answers with something else than one reply, are left to
        the link, and so are their replies.
        """
        link = connection.link
        if link is None or link.arrived or link.session.closing or link.session.reply_mode != "on":
            return None
        for args, options in commands:
            if options and (NEVER_DECODE in options or EMPTY_RESPONSE in options):
                return None
            if args[0].__class__ is str and args[0].startswith("HIMPORT"):
                return None
        command = connection.converter.command
        argvs = [command(args) for args in batch]
        engine, session = link.engine, link.session
        execute, replies = engine.execute, []
        with engine.lock:
            if engine.observers:
                engine.batch(len(argvs))
            for number, argv in enumerate(argvs, 1):
                reply = execute(session, argv)
                kind = reply.__class__
                if reply is BLOCKED or kind is Frames or kind is Push or session.closing:
                    link.leave(reply, argvs[number:])
                    break
                replies.append(reply)
        return replies

    def _called_back(self, name: Any, response: Any, options: dict[str, Any]) -> Any:
        """What redis-py's callback for the command makes of a response."""
        callbacks = self.response_callbacks
        callback = dict.get(callbacks, name)
        if callback is None:
            if name.isupper() or name not in callbacks:
                return response
            callback = callbacks[name]
        if options:
            options.pop("keys", None)
        return callback(response, **options)

    def _outcome(
        self: Any, connection: Any, commands: Any, replies: list[Any], raise_on_error: bool
    ) -> list[Any]:
        """The responses of a transaction, before callbacks, from the replies to MULTI, the commands and EXEC."""
        converter = connection.converter
        errors = []
        for number, reply in enumerate(replies[1:-1]):
            if reply.__class__ is ReplyError:
                error = converter.exception(reply)
                self.annotate_exception(error, number + 1, commands[number][0])
                errors.append(error)
        result = replies[-1]
        if result.__class__ is ReplyError:
            error = converter.exception(result)
            raise errors[0] if errors and isinstance(error, self.library.ExecAbortError) else error
        self.watching = False
        if result.__class__ is NullArray:
            raise self.library.WatchError("Watched variable changed.")
        response: list[Any] = converter.view(connection.link.session.protocol)(result)
        if len(response) != len(commands):
            raise self.library.ResponseError("Wrong number of response items from pipeline execution")
        if raise_on_error:
            self.raise_first_error(commands, response)
        return response
