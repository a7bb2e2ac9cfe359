"""What outlives the process: the keyspace in an RDB file, when it was last written, what has changed since.

There is no second process to write in the background, so a background save is done at once, too, or where a
transaction asks for it at the end of the unit, with all that the transaction did. A failed save leaves the old file.

Loading takes the place of the whole keyspace, or changes nothing when the file is damaged. It makes no events, but
watched keys count as touched and blocked commands are served, as after FLUSHALL and new keys.

Libraries of functions are loaded before anything is changed, for the file may hold one that does not load.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emuredis.errors import ReplyError
from emuredis.keyspace.rdb import file
from emuredis.keyspace.rdb.codec import RdbError
from emuredis.values.hash import Hash

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine

__all__ = ["Persistence"]

NS = 1_000_000_000
#: The version that files are said to be written by; their reader logs it.
_WRITER = b"9.1.2"
_log = logging.getLogger("emuredis")


class Persistence:
    """Attributes are what LASTSAVE and INFO tell. ``scheduled``: a transaction has asked for a background save.

    ``libraries``: gives the functions (`emuredis.scripting.functions.Functions`), whose sources belong to every file.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.last_save = engine.clock.now_ns() // NS
        self.last_ok = True  # of background saves
        self.tried = False  # whether there was a background save
        self.saves = 0
        self.scheduled = False
        self.loaded = self.expired = 0  # keys taken from the last file loaded, and left there
        self.libraries: Callable[[], Any] = _no_libraries

    @property
    def path(self) -> Path:
        """The file of SAVE."""
        config = self.engine.config
        return Path(config.dir or ".", config.dbfilename)

    def save(self, path: Path) -> None:
        """Write every database to ``path``, within a unit. Raises OSError, and has changed nothing then. O(n)."""
        keyspace = self.engine.keyspace
        keyspace.expire_all()
        now = keyspace.ns // NS
        functions = self.engine.functions
        libraries = [] if functions is None else functions.saved()
        facts = {b"valkey-ver": _WRITER, b"redis-bits": b"64", b"ctime": b"%d" % now, b"aof-base": b"0"}
        data = file.encode(keyspace.databases, facts, self.engine.config.rdbcompression, libraries)
        try:
            file.save(path, data)
        except OSError as problem:
            _log.warning("cannot save %s: %s", path, problem.strerror or problem)
            raise
        keyspace.dirty = 0
        self.last_save = now
        self.last_ok = True
        self.saves += 1

    def save_behind(self) -> None:
        """A background save: nobody is told whether it succeeded, but `last_ok` knows."""
        self.scheduled = False
        self.tried = True
        try:
            self.save(self.path)
        except OSError:
            self.last_ok = False

    def schedule(self) -> None:
        """Have the background save done when the open unit has ended, unless `cancel` comes first."""
        if not self.scheduled:
            self.scheduled = True
            self.engine.after_unit(self._save_if_scheduled)

    def cancel(self) -> bool:
        """Forget the scheduled save; whether there was one."""
        scheduled, self.scheduled = self.scheduled, False
        return scheduled

    def _save_if_scheduled(self) -> None:
        if self.scheduled:
            self.save_behind()

    def load(self, path: Path) -> None:
        """Put what ``path`` holds in place of the keyspace, within a unit. O(n).

        Raises OSError and `RdbError`, which names the file, the place and the reason; nothing has changed then.
        """
        engine, keyspace = self.engine, self.engine.keyspace
        contents = file.load(path, engine.limits, len(keyspace.databases))
        self._load_functions(path, contents.functions)
        for db in keyspace.databases:
            db.clear()
        keyspace.rebuild_heap()
        now = keyspace.now
        self.loaded = self.expired = 0
        for index, key, value, deadline in contents.items:
            if deadline is not None and deadline <= now:
                self.expired += 1
                continue
            if value.__class__ is Hash and value.expire(now) and not value:
                continue
            keyspace.databases[index].load(key, value, deadline)
            self.loaded += 1
        keyspace.dirty = 0

    def _load_functions(self, path: Path, codes: list[bytes]) -> None:
        if not codes and self.engine.functions is None:
            return
        try:
            self.libraries().replace(codes)
        except ReplyError as problem:
            raise RdbError(f"{path}: a library of functions does not load: {problem.message}") from problem


def _no_libraries() -> Any:
    raise ReplyError("ERR there is nothing to run Lua with")
