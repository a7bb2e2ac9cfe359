"""One client's state, and what handlers know as ``ctx``.

Responsible for: the selected database, protocol version, name, transaction, subscriptions and parked
command of one connection. It may not know how replies travel: a door gives it three callables
(`on_reply`, `on_push`, `on_close`) and reads `closing`.

`gated` is true while any state makes a command take the engine's slow path; `update_gate` must be called
after changing such state, so that the fast path needs one test only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from emuredis.errors import ReplyError
from emuredis.replies import BLOCKED, Frames, Push, Reply

if TYPE_CHECKING:
    import random

    from emuredis.engine.engine import Engine
    from emuredis.engine.waiting import Waiter
    from emuredis.keyspace.database import Database
    from emuredis.spec import Command

__all__ = ["NO_NET", "Session"]

#: The `net` of a session without a socket.
NO_NET = {"fd": -1, "in": 0, "out": 0}


class Session:
    __slots__ = (
        "__weakref__", "addr", "asking", "authenticated", "born_ns", "capa", "channels", "closing", "commands", "cut",
        "db", "debugging", "deny_blocking", "door", "engine", "gated", "id", "laddr", "last_command", "last_ns",
        "lib_name", "lib_ver", "monitor", "multi_failed", "name", "net", "no_evict", "no_touch", "on_close", "on_push",
        "on_reply", "patterns", "protocol", "queue", "readonly", "reply_mode", "script", "shard_channels", "user",
        "waiter", "watch_broken", "watched",
    )  # fmt: skip

    def __init__(self, engine: Engine, session_id: int) -> None:
        self.engine = engine
        self.id = session_id
        self.db: Database = engine.keyspace.databases[0]
        self.protocol = 2
        self.user = b"default"
        self.authenticated = not engine.config.password
        self.name = b""
        self.lib_name = b""
        self.lib_ver = b""
        self.capa = b""  # letters of CLIENT CAPA
        self.net = NO_NET  # what a door with a socket counts on it: fd, bytes in and out
        self.addr = b""
        self.laddr = b""
        self.born_ns = self.last_ns = engine.clock.now_ns()
        self.last_command: Command | None = None
        self.commands = 0
        self.queue: list[tuple[Any, list[bytes]]] | None = None  # MULTI
        self.multi_failed = False
        self.watched: dict[tuple[int, bytes], None] = {}
        self.watch_broken = False
        self.channels: dict[bytes, None] = {}
        self.patterns: dict[bytes, None] = {}
        self.shard_channels: dict[bytes, None] = {}
        self.waiter: Waiter | None = None
        self.deny_blocking = False  # inside EXEC or a script: a blocking command answers as at its time-out
        self.script: Any = None  # the running script, when this session is a script's caller
        self.debugging: str | None = None  # SCRIPT DEBUG: None | yes | sync
        self.door: Any = None  # what holds the connection, if a debugging session can be held over it
        self.reply_mode = "on"  # CLIENT REPLY: on | off | skip_next | skip
        self.no_evict = self.no_touch = False
        self.monitor = self.closing = False  # monitor: is sent every command
        self.readonly = False
        self.asking = 0  # of a cluster: for how many commands a slot that is being taken over may be used
        self.cut = False  # closed by the emulator in place of a reply
        self.on_reply: Callable[[Reply], None] = _ignore
        self.on_push: Callable[[Reply], None] = _ignore
        self.on_close: Callable[[], None] = _nothing
        self.gated = False
        self.update_gate()

    # -- what handlers use ----------------------------------------------------------------------

    @property
    def now(self) -> int:
        """The frozen instant of this unit, Unix milliseconds."""
        return self.engine.keyspace.ns // 1_000_000

    @property
    def rng(self) -> random.Random:
        """The emulator's one seeded source of chance."""
        return self.engine.rng

    def park(self, keys: list[bytes], kind: type, timeout: float, on_timeout: Reply, needs_keys: bool = False,
             resolved: list[bytes] | None = None) -> Reply:  # fmt: skip
        """Block until one of ``keys`` holds a value of class ``kind``, then run this command again.

        ``timeout``: milliseconds, 0 for ever. ``needs_keys``: run it again, too, when a key no longer does.
        ``resolved``: what to run again, where that is not the command as it came. Returns BLOCKED, or
        ``on_timeout`` where blocking is not possible (inside MULTI and scripts).
        """
        if self.deny_blocking:
            return on_timeout
        return self.engine.waiting.park(self, keys, kind, timeout, on_timeout, needs_keys, resolved)

    # -- gates ----------------------------------------------------------------------------------

    @property
    def subscriptions(self) -> int:
        return len(self.channels) + len(self.patterns) + len(self.shard_channels)

    def update_gate(self) -> None:
        """Recompute whether commands must take the slow path."""
        self.gated = bool(
            self.queue is not None
            or not self.authenticated
            or self.reply_mode != "on"
            or (self.protocol == 2 and self.subscriptions)
            or self.engine.gates
            or self.engine.observers
            or self.waiter is not None
            or self.monitor
            or self.closing
            or self.engine.busy.on
            or self.engine.cluster is not None
        )

    def fail_transaction(self) -> None:
        """A command could not be queued: EXEC will refuse."""
        if self.queue is not None:
            self.multi_failed = True

    # -- replies --------------------------------------------------------------------------------

    def heard(self, reply: Reply) -> Reply:
        """What of ``reply`` the client gets to see: CLIENT REPLY silences everything but pushes.

        ``skip_next`` was set by the command just run, ``skip`` concerns this reply.
        """
        if reply is BLOCKED or self.reply_mode == "on":
            return reply
        if self.reply_mode == "skip":
            self.reply_mode = "on"
            self.update_gate()
        elif self.reply_mode == "skip_next":
            self.reply_mode = "skip"
        pushes = reply if reply.__class__ in (list, Frames) else ()
        return Frames(item for item in pushes if item.__class__ is Push)

    def __repr__(self) -> str:
        return f"<Session {self.id} db={self.db.index} protocol={self.protocol}>"


def _ignore(reply: Reply | ReplyError) -> None:
    return None


def _nothing() -> None:
    return None
