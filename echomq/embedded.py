"""The adapter for `emuredis://`: a `Connection` to an emulator inside this process.

The only module of the package that imports the emulator. It asks of it: `Emulator.named(name)`,
`Emulator(clock=…)`, `emulator.clock`, `emulator.name_script`, `emulator.client(protocol=2)`,
`client.call(*args)`, `client.close()`, `client.on_push`, and from the client's session `closing` and the
`on_close` hook.

A connection that the server ends (CLIENT KILL) is revived before the next call that anybody makes to the
same emulator through this module: booted and subscribed again, as a socket's would be, but without a
thread, so a program on a manual clock stays reproducible.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

import emuredis

from .boot import boot, drive_boot
from .clock import Clock
from .connection import Command, Counters, MessageHandler
from .endpoint import Options, Target
from .errors import ArgumentError, ConnectionClosed, Disconnected, EchoError, RequiresResp3, ServerError
from .resp import Arg, Reply
from .script import Script, evaluate

__all__ = ["EmbeddedConnection", "Emulated", "manual_clock"]

_lost: weakref.WeakKeyDictionary[emuredis.Emulator, list[EmbeddedConnection]] = weakref.WeakKeyDictionary()


def manual_clock() -> Clock:
    """A clock the program moves, which moves the emulator too."""
    return emuredis.ManualClock()


class Emulated:
    """The emulator behind a URL, and its clock."""

    def __init__(self, target: Target, clock: Clock | None) -> None:
        theirs = (emuredis.ManualClock, emuredis.SystemClock, type(None))
        if not isinstance(clock, theirs):
            raise ArgumentError(f"an emuredis:// server needs one of emuredis's clocks, not {clock!r}")
        self.target = target
        if target.name:
            self.emulator = emuredis.Emulator.named(target.name)
            if clock is not None and self.emulator.clock is not clock:
                raise ArgumentError(f"the emulator named {target.name!r} has a clock already")
        else:
            given: Any = clock
            self.emulator = emuredis.Emulator(clock=given)

    @property
    def clock(self) -> Clock:
        return self.emulator.clock

    def connect(self, options: Options) -> EmbeddedConnection:
        """A new session, past the boot sequence and the version fence."""
        return EmbeddedConnection(self.emulator, self.target, options)


class EmbeddedConnection:
    """A `Connection` to an emulator in this process.

    Calls are carried out on the calling thread; a lock gives each its turn. Messages are handed to their
    handler on the thread that published them.
    """

    def __init__(self, emulator: emuredis.Emulator, target: Target, options: Options) -> None:
        self.emulator = emulator
        self.target = target
        self.options = options
        self.protocol = 0
        self.counters = Counters()
        self._handlers: dict[str, MessageHandler] = {}
        self._named: set[str] = set()  # scripts whose names the emulator knows, for its messages
        self._lock = threading.RLock()
        self._closed = False
        self._open()

    def _open(self) -> None:
        client = self.emulator.client(protocol=2)
        self._client = client
        self.protocol = drive_boot(boot(self.target, self.options), self._value)
        client.on_push = self._push
        self.counters.connects += 1
        client.session.on_close = self._gone

    def _value(self, args: Command) -> Reply:
        """One command on the session; error replies are values."""
        client = self._client
        try:
            reply = client.call(*args)
        except emuredis.ReplyError as error:
            return ServerError(str(error))
        except emuredis.EmulatorError as error:
            if client.session.closing:
                raise Disconnected(f"lost {self.target.url}: {error}") from error
            raise
        kind = type(reply)
        return reply if kind is bytes or kind is int or reply is None else _plain(reply)

    def call(self, *args: Arg, timeout: float | None = None) -> Reply:
        """Carry one command out; an error reply is raised. ``timeout`` does not apply: nothing travels."""
        self._revive()
        with self._lock:
            self._usable()
            self.counters.commands += 1
            self.counters.round_trips += 1
            reply = self._value(args)
            if not self._client.session.closing:
                self._client.session.on_close = self._gone  # a blocking call puts its own hook there
        if isinstance(reply, ServerError):
            raise reply
        return reply

    def pipeline(self, commands: Sequence[Command]) -> list[Reply]:
        """Carry several commands out; error replies are values in the list."""
        self._revive()
        with self._lock:
            self._usable()
            self.counters.commands += len(commands)
            self.counters.round_trips += 1
            return [self._value(command) for command in commands]

    def transaction(self, commands: Sequence[Command]) -> list[Reply]:
        """MULTI, the commands, EXEC: the answers of EXEC."""
        replies = self.pipeline([("MULTI",), *commands, ("EXEC",)])
        answer = replies[-1]
        if isinstance(answer, ServerError):
            raise next((reply for reply in replies if isinstance(reply, ServerError)), answer)
        return list(answer)

    def noreply(self, commands: Sequence[Command]) -> None:
        """Carry commands out and drop their replies."""
        self.pipeline(commands)

    def eval(self, script: Script, keys: Sequence[str], args: Sequence[Arg]) -> Reply:
        """Run a script by its digest, loading it once when the server does not know it."""
        if script.sha not in self._named:
            self._named.add(script.sha)
            self.emulator.name_script(f"{script.name}.lua", script.source)
        return evaluate(self.call, script, keys, args)

    def subscribe(self, channel: str, handler: MessageHandler) -> None:
        """Hear a channel."""
        if self.protocol != 3:
            raise RequiresResp3("subscribe needs a RESP3 connection")
        self._handlers[channel] = handler
        self.call("SUBSCRIBE", channel)

    def unsubscribe(self, channel: str) -> None:
        """Stop hearing a channel."""
        if self._handlers.pop(channel, None) is not None:
            self.call("UNSUBSCRIBE", channel)

    def _push(self, frame: list[object]) -> None:
        self.counters.pushes += 1
        if frame[0] == b"message" and isinstance(frame[1], bytes) and isinstance(frame[2], bytes):
            channel = frame[1].decode(errors="surrogateescape")
            handler = self._handlers.get(channel)
            if handler is not None:
                handler(channel, frame[2])

    def _gone(self) -> None:
        """The server ended this session."""
        if not self._closed:
            _lost.setdefault(self.emulator, []).append(self)

    def _revive(self) -> None:
        """Reconnect every connection of this emulator that was lost."""
        while lost := _lost.get(self.emulator):
            lost.pop()._reopen()

    def _reopen(self) -> None:
        with self._lock:
            if self._closed or not self._client.session.closing:
                return
            self._open()
            for channel in self._handlers:
                reply = self._value(("SUBSCRIBE", channel))
                if isinstance(reply, EchoError):
                    raise reply

    def _usable(self) -> None:
        if self._closed:
            raise ConnectionClosed("this connection was closed")
        if self._client.session.closing:
            self._gone()
            raise Disconnected(f"lost {self.target.url}; reconnecting")

    def close(self) -> None:
        """Give the session up."""
        self._closed = True
        self._client.close()

    def __enter__(self) -> EmbeddedConnection:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _plain(reply: Reply) -> Reply:
    """The emulator's value as this package's: errors as `ServerError`, sets as sorted lists."""
    if isinstance(reply, emuredis.ReplyError):
        return ServerError(str(reply))
    if isinstance(reply, list):
        return [_plain(item) for item in reply]
    if isinstance(reply, dict):
        return {key: _plain(value) for key, value in reply.items()}
    if isinstance(reply, (set, frozenset)):
        return sorted(reply)
    return reply
