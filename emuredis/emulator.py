"""The emulator a program holds: an engine with every command, a clock and a seed.

Responsible for putting the layers together and for the names in ``emuredis://name/db`` URLs. It imports
neither a client library nor asyncio nor lupa; doors load those when they are opened.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import emuredis.commands  # noqa: F401  (fills the command table)
from emuredis.client import Client
from emuredis.clock import Clock, SystemClock
from emuredis.engine.config import Config
from emuredis.engine.engine import Engine
from emuredis.forks import survive
from emuredis.spec import TABLE

if TYPE_CHECKING:
    from emuredis.server import Server

__all__ = ["Emulator"]

_named: dict[str, Emulator] = {}
_named_lock = threading.Lock()


class Emulator:
    """An in-memory Valkey 9.1.

    ``clock``: a `SystemClock` (default) or a `ManualClock`; several emulators may share one.
    ``seed``: makes everything random (RANDOMKEY, SPOP, SRANDMEMBER ...) repeat; None draws one.
    ``config``: parameters by the server's names, as in ``{"notify-keyspace-events": "KEA"}``.
    Raises ValueError for a parameter the emulator does not have.

    Two emulators share nothing. Any number of clients, in any threads, may share one.
    """

    def __init__(self, clock: Clock | None = None, seed: int | None = None,
                 config: dict[str, Any] | None = None) -> None:  # fmt: skip
        self.engine = Engine(TABLE, clock if clock is not None else SystemClock(), seed, Config(config))
        survive(self.engine)

    @classmethod
    def named(cls, name: str) -> Emulator:
        """The emulator of this process called ``name``, made at the first call; "" makes a private one."""
        if not name:
            return cls()
        with _named_lock:
            if name not in _named:
                _named[name] = cls()
            return _named[name]

    @classmethod
    def register(cls, name: str, emulator: Emulator) -> None:
        """Let ``emuredis://name`` URLs of this process mean ``emulator`` from now on."""
        if not name:
            raise ValueError("an emulator needs a name to be registered under")
        with _named_lock:
            _named[name] = emulator

    @property
    def clock(self) -> Clock:
        return self.engine.clock

    def client(self, db: int = 0, protocol: int = 3) -> Client:
        """A native in-process client, with a session of its own."""
        return Client(self.engine, db=db, protocol=protocol)

    def flushall(self) -> None:
        """Empty every database, as FLUSHALL."""
        engine = self.engine
        with engine.lock:
            engine.execute(engine.internal_session(), [b"FLUSHALL"])

    def save_rdb(self, path: str | os.PathLike[str] | None = None) -> None:
        """Write every database to an RDB file, as SAVE; ``path`` None is the one that SAVE writes.

        Atomic: whatever happens there is the old file or the new one. Raises OSError. O(n).
        """
        saves = self.engine.persistence
        self.engine.in_unit(lambda: saves.save(saves.path if path is None else Path(path)))

    def load_rdb(self, path: str | os.PathLike[str] | None = None) -> None:
        """Replace the contents of every database by those of an RDB file; ``path`` None is the one SAVE writes.

        Keys past their deadline are left out. Raises OSError, and `emuredis.RdbError` for a damaged or truncated
        file, which names the file, the place and the reason; nothing has changed then. O(n).
        """
        saves = self.engine.persistence
        self.engine.in_unit(lambda: saves.load(saves.path if path is None else Path(path)))

    def serve(
        self, host: str = "127.0.0.1", port: int = 0, unix: str | None = None, **options: Any
    ) -> Server:
        """Start a server for this emulator in a thread; see `emuredis.server.Server`.

        ``port`` 0 takes a free one: read ``server.address``. Use the result as a context manager or call
        ``stop()``. Raises OSError when the address cannot be bound.
        """
        from emuredis.server import Server

        return Server(self, host=host, port=port, unix=unix, **options).start()

    def __repr__(self) -> str:
        keys = sum(len(db.data) for db in self.engine.keyspace.databases)
        return f"<Emulator {keys} keys, {self.engine.clock!r}>"
