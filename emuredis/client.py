"""The native in-process client.

`Client.call` is the shortest way to the engine: encode the arguments, run, turn the reply into the Python
value a RESP2 or RESP3 client library would have parsed. A blocking command waits for its own parked record
(`emuredis.waits`), never for a socket.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from emuredis.engine.engine import Engine
from emuredis.engine.session import Session
from emuredis.errors import EmulatorError, ReplyError
from emuredis.protocol.views import view2, view3
from emuredis.replies import BLOCKED, Frames, Reply
from emuredis.waits import forever, wait

__all__ = ["Client", "encode_args", "wait_for_reply"]


def encode_args(args: tuple[Any, ...]) -> list[bytes]:
    """Command arguments as bytes: str as UTF-8, numbers in decimal. Raises TypeError for anything else."""
    out = []
    for arg in args:
        kind = arg.__class__
        if kind is bytes:
            out.append(arg)
        elif kind is str:
            out.append(arg.encode("utf-8", "surrogateescape"))
        elif kind is int:
            out.append(b"%d" % arg)
        elif kind is float:
            out.append(repr(arg).encode())
        elif isinstance(arg, (bytes, bytearray, memoryview)):
            out.append(bytes(arg))
        elif isinstance(arg, (str, int, float)) and not isinstance(arg, bool):
            out.append(str(arg).encode("utf-8", "surrogateescape"))
        else:
            raise TypeError(f"a command argument must be bytes, str, int or float, not {type(arg).__name__}")
    return out


class Client:
    """A client of one `emuredis.Emulator`. Usable from one thread at a time.

    ``skew_ms``: how far this client's own wall clock is ahead of the server's, see `time`.
    ``on_push``: called with each out-of-band message (a list, as in RESP3), from the thread that caused it.
    """

    def __init__(self, engine: Engine, db: int = 0, protocol: int = 3, skew_ms: float = 0) -> None:
        if protocol not in (2, 3):
            raise ValueError(f"protocol must be 2 or 3, not {protocol!r}")
        if not 0 <= db < len(engine.keyspace.databases):
            raise ValueError(f"database {db!r} is out of range: there are {len(engine.keyspace.databases)}")
        self._engine = engine
        self.skew_ms = skew_ms
        with engine.lock:
            self.session = engine.connect()
        self.session.protocol = protocol
        self.session.db = engine.keyspace.databases[db]
        self.session.on_push = self._push
        self.on_push: Callable[[Any], None] | None = None

    def time(self) -> float:
        """What the wall clock of this client's machine shows, in Unix seconds: the emulator's clock and the skew.

        For programs that send their own time as an argument; TIME and all deadlines are the server's.
        """
        return self._engine.clock.now_ns() / 1e9 + self.skew_ms / 1000

    def call(self, *args: Any) -> Any:
        """Run one command: ``client.call("SET", "k", 1)``.

        Returns int, bytes, None, list, and with protocol 3 also float, bool, dict and set; a status is bytes.
        Raises ReplyError for an error reply; errors inside an EXEC's list stay ReplyError objects.
        """
        reply = self.execute(encode_args(args))
        kind = reply.__class__
        if kind is bytes or kind is int or reply is None:
            return reply
        if kind is ReplyError:
            raise reply
        return view3(reply) if self.session.protocol == 3 else view2(reply)

    def execute(self, argv: list[bytes]) -> Reply:
        """Run ``argv`` and return the neutral reply (see `emuredis.replies`); waits where the server blocks."""
        if not argv:
            raise TypeError("call() needs the name of a command")
        engine, session = self._engine, self.session
        if session.closing:
            raise EmulatorError("this client is closed")
        with engine.lock:
            reply = engine.execute(session, argv)
            if reply is not BLOCKED:
                if session.closing and reply.__class__ is Frames:
                    raise EmulatorError("the server closed the connection before it replied")
                return reply
            waiter = Parked(session)
        return wait_for_reply(engine, waiter)

    def close(self) -> None:
        """Disconnect: subscriptions, watches and a parked command are dropped. Safe to call twice.

        A thread that waits in `call` meanwhile gets an EmulatorError.
        """
        with self._engine.lock:
            self._engine.disconnect(self.session)
            self.session.on_close()

    def _push(self, push: Reply) -> None:
        if self.on_push is not None:
            self.on_push(view3(push))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self.session!r}>"


class Parked:
    """The reply that a blocked session will get, and the event its thread waits for.

    Made under the engine's lock, straight after `Engine.execute` answered BLOCKED.
    """

    __slots__ = ("event", "reply", "session")

    def __init__(self, session: Session) -> None:
        self.session = session
        self.reply: Reply = BLOCKED
        self.event = threading.Event()
        session.on_reply = self._served
        session.on_close = self._closed

    def _served(self, reply: Reply) -> None:
        self.reply = reply
        self.event.set()

    def _closed(self) -> None:
        if self.reply is BLOCKED:
            self.reply = EmulatorError("the connection was closed while its command was blocked")
        self.event.set()


def wait_for_reply(engine: Engine, parked: Parked) -> Reply:
    """Wait, without holding the lock, until the parked session has its reply; returns it.

    Raises WaitForever (on a manual clock) when nobody is left who could end the wait, EmulatorError when the
    session is closed meanwhile. Whatever interrupts the wait (KeyboardInterrupt ...) takes the command back.
    """
    try:
        wait(engine, parked.event, None, lambda: forever(engine, parked.session.waiter))
    except BaseException:
        with engine.lock:
            if parked.session.waiter is not None:
                engine.waiting.remove(parked.session.waiter)
        raise
    if parked.reply.__class__ is EmulatorError:
        raise parked.reply
    return parked.reply
