"""The emulator a program holds: an engine with every command, a clock and a seed.

Responsible for putting the layers together and for the names in ``emuredis://name/db`` URLs. It imports
neither a client library nor asyncio nor lupa; doors load those when they are opened.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import emuredis.commands  # noqa: F401  (fills the command table)
from emuredis.client import Client
from emuredis.clock import Clock, ManualClock, SystemClock
from emuredis.engine.config import PARAMETERS, Config
from emuredis.engine.engine import Engine
from emuredis.engine.snapshot import Snapshot as State
from emuredis.engine.snapshot import restore, take
from emuredis.errors import EmulatorError, ReplyError
from emuredis.forks import survive
from emuredis.kit.assertions import Assertions
from emuredis.releases import table_of

if TYPE_CHECKING:
    from emuredis.clusters import Cluster
    from emuredis.kit.faults import Faults
    from emuredis.kit.journal import Budget, Journal

__all__ = ["Emulator", "Snapshot"]

_named: dict[str, Emulator] = {}
_named_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What `Emulator.snapshot` returns. ``len()`` is the number of keys."""

    state: State
    scripts: list[tuple[bytes, bool]]
    libraries: list[bytes]

    def __len__(self) -> int:
        return len(self.state)


class Emulator(Assertions):
    """An in-memory Valkey 9.1.

    ``clock``: a `SystemClock` (default) or a `ManualClock`; several emulators may share one.
    ``seed``: makes everything random (RANDOMKEY, SPOP, SRANDMEMBER ...) repeat; None draws one.
    ``config``: parameters by the server's names, as in ``{"notify-keyspace-events": "KEA"}``.
    ``strict_keys``: "declared": a script may touch only its KEYS; "slot": keys in the cluster slot of its KEYS, too,
    and no command, transaction or script has keys in several slots. Violations are error replies that name
    key, script and line. None: as a server without a cluster. May be set at any time.
    ``script_instructions``, ``script_seconds``: see the properties; no limits by default.
    ``cluster``: so many primaries instead of one server. This is the first of them, `cluster` has them all
    (`emuredis.clusters.Cluster`); it is None without.
    ``version``, ``server_type`` ("valkey" or "redis"): commands that this release does not have yet are unknown; a
    short version is the last of its kind: ``7`` has what 7.2 has. Options and replies stay those of Valkey 9.1.
    Raises ValueError for a parameter the emulator does not have, and for another type of server.

    Two emulators share nothing. Any number of clients, in any threads, may share one.
    """

    def __init__(self, clock: Clock | None = None, seed: int | None = None,
                 config: dict[str, Any] | None = None, *, strict_keys: str | None = None,
                 script_instructions: int | None = None, script_seconds: float | None = None,
                 version: Any = None, server_type: str | None = None,
                 cluster: int | None = None, _node_of: Cluster | None = None) -> None:  # fmt: skip
        settings = Config(config)
        settings.cluster_enabled = cluster is not None or _node_of is not None
        table = table_of(version, server_type)
        self.engine = Engine(table, clock if clock is not None else SystemClock(), seed, settings)
        self.engine.persistence.libraries = partial(_libraries_of, self.engine)
        self._faults: Faults | None = None
        if script_instructions is not None:
            self.script_instructions = script_instructions
        if script_seconds is not None:
            self.script_seconds = script_seconds
        survive(self.engine)
        if strict_keys is not None:
            self.strict_keys = strict_keys
        self.cluster = _node_of
        if cluster is not None:
            from emuredis.clusters import Cluster

            self.cluster = Cluster(self, cluster)

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

    @property
    def strict_keys(self) -> str | None:
        """The strict mode: "declared", "slot" or None. Setting another raises ValueError."""
        strict = self.engine.strict
        return None if strict is None else str(strict.mode)

    @strict_keys.setter
    def strict_keys(self, mode: str | None) -> None:
        if mode is not None or self.engine.strict is not None:
            from emuredis.scripting.strict import set_strict

            set_strict(self.engine, mode)

    def name_script(self, name: str, source: str | bytes) -> None:
        """Call the script of this exact text ``name`` in messages of strict modes, coverage and debugger."""
        text = source.encode() if isinstance(source, str) else source
        self.engine.script_names[hashlib.sha1(text, usedforsecurity=False).hexdigest().encode()] = name

    @property
    def script_instructions(self) -> int | None:
        """How many Lua instructions a script may run before it is ended with an error that names script and line;
        None for any number. May be set at any time; the parameter ``script-instruction-limit``.

        Counted roughly: a coroutine has a count of its own. Raises ValueError unless it is positive.
        """
        limit: int = self.engine.config.script_instruction_limit
        return limit or None

    @script_instructions.setter
    def script_instructions(self, limit: int | None) -> None:
        if limit is not None and limit < 1:
            raise ValueError(f"script_instructions must be None or at least 1, not {limit!r}")
        self.engine.config.script_instruction_limit = limit or 0

    @property
    def script_seconds(self) -> float | None:
        """How many real seconds a script may run before it is ended with an error that names script and line, on
        whatever clock; None for any time. May be set at any time; the parameter ``script-time-limit``, in
        milliseconds.

        Looked at every 100,000 Lua instructions, not within a command or a search for a pattern.
        Raises ValueError unless it is at least a millisecond.
        """
        limit: int = self.engine.config.script_time_limit
        return limit / 1000 if limit else None

    @script_seconds.setter
    def script_seconds(self, limit: float | None) -> None:
        if limit is not None and not 0.001 <= limit < 1e12:
            raise ValueError(f"script_seconds must be None or at least 0.001, not {limit!r}")
        self.engine.config.script_time_limit = 0 if limit is None else round(limit * 1000)

    def client(self, db: int = 0, protocol: int = 3, skew_ms: float = 0) -> Client:
        """A native in-process client, with a session of its own; ``skew_ms``: how far its own clock is ahead."""
        return Client(self.engine, db=db, protocol=protocol, skew_ms=skew_ms)

    def flushall(self) -> None:
        """Empty every database, as FLUSHALL; on every node of a cluster.

        Raises ReplyError (BUSY) while a script keeps the server busy.
        """
        for emulator in (self,) if self.cluster is None else self.cluster:
            engine = emulator.engine
            with engine.lock:
                reply = engine.execute(engine.internal_session(), [b"FLUSHALL"])
            if isinstance(reply, ReplyError):
                raise reply

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

    # -- the test kit ----------------------------------------------------------------------------

    @property
    def faults(self) -> Faults:
        """Rules that make commands fail, wait or lose their connection; see `emuredis.kit.faults.Faults`."""
        if self._faults is None:
            from emuredis.kit.faults import Faults

            self._faults = Faults(self.engine)
        return self._faults

    def journal(self, values: bool = False, limit: int | None = None) -> Journal:
        """A journal of what clients ask, for a ``with`` block; see `emuredis.kit.journal.Journal`.

        ``values``: keep the value of each named key before and after. ``limit``: keep the latest entries only.
        """
        from emuredis.kit.journal import Journal

        return Journal(self.engine, values, limit)

    def budget(self, round_trips: int | None = None, commands: int | None = None) -> Budget:
        """Fails at the end of its ``with`` block, with a list, if more was asked: AssertionError.

        ``round_trips``: how often clients waited for an answer, once for a pipeline; ``commands``: how many
        commands they sent, those in scripts not counted. Gives the journal of the block.
        """
        from emuredis.kit.journal import Budget

        return Budget(self.journal(), round_trips, commands)

    def restart(self, keep_data: bool = True) -> None:
        """Be as a server after a restart: no connections, scripts or counters, and no keys unless they are kept."""
        with self._at_rest():
            self.engine.current_session = None
            self.engine.restart(keep_data)

    def dump(self) -> str:
        """The whole content as JSON text, in an order that depends on nothing but the content; for `load` and
        for diffs.

        Bytes are shown as text where they are UTF-8, else as ``hex:`` and digits; deadlines in Unix milliseconds.
        """
        from emuredis.kit.contents import describe, to_json

        with self.engine.lock:
            self.engine.run_due()
            return to_json(describe(self.engine))

    def load(self, source: Any) -> None:
        """Put content into place; other keys stay. Raises EmulatorError, and changes nothing, for what cannot be taken.

        ``source``: a dict (what `dump` gives, or ``{key: value}`` with str, list, set and dict for the types),
        the text of
        `dump`, or the path of a file with it (``.json``, or ``.yaml`` with PyYAML); an RDB file (``.rdb``) replaces
        everything, as `load_rdb`; a file of MONITOR output (``.log``) is run.
        """
        from emuredis.kit.sources import load

        load(self, source)

    # -- snapshots -------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The state now: keys, deadlines, scripts, libraries, settings, the random source and the time.

        It costs a shallow copy of the keyspace; values are copied when somebody changes them later. Snapshots
        are independent of each other and of what happens to the emulator. Raises EmulatorError while a client is
        blocked, naming it, or a command runs.
        """
        with self._at_rest():
            return self.snapshot_now()

    def snapshot_now(self) -> Snapshot:
        """As `snapshot`, for a command that runs at this moment and has changed nothing."""
        return Snapshot(take(self.engine), self._scripts(), self._libraries())

    def restore(self, snapshot: Snapshot) -> None:
        """Be again as at `snapshot`, of this emulator or of another one.

        Connections stay; a key that a client watches counts as changed. A manual clock goes back, too.
        Raises EmulatorError while a client is blocked or a command runs, or if the numbers of databases differ.
        """
        with self._at_rest():
            self.restore_now(snapshot)

    def restore_now(self, snapshot: Snapshot) -> None:
        """As `restore`, for a command that runs at this moment and has changed nothing."""
        restore(self.engine, snapshot.state)
        if snapshot.scripts != self._scripts():
            from emuredis.scripting import scripts_of

            scripts_of(self.engine).replace(snapshot.scripts)
        if snapshot.libraries != self._libraries():
            _libraries_of(self.engine).replace(snapshot.libraries)

    def fork(self) -> Emulator:
        """Another emulator in the same state, with no clients; what happens to one, the other never sees.

        A manual clock is forked, too: both show the same time and are moved apart. Random choices are the same in both
        from here on. Raises EmulatorError as `snapshot` does.
        """
        if self.cluster is not None:
            raise EmulatorError("a node of a cluster cannot be forked")
        snapshot = self.snapshot()
        clock = self.clock
        if isinstance(clock, ManualClock):
            clock = ManualClock(autojump=clock.autojump)
        config = {p.name: self.engine.config.get(p.name) for p in PARAMETERS.values() if p.choosable}
        twin = Emulator(clock=clock, config=config)
        twin.engine.table = self.engine.table
        twin.restore(snapshot)
        return twin

    def _scripts(self) -> list[tuple[bytes, bool]]:
        return [] if self.engine.scripting is None else self.engine.scripting.saved()

    def _libraries(self) -> list[bytes]:
        return [] if self.engine.functions is None else self.engine.functions.saved()

    @contextmanager
    def _at_rest(self) -> Iterator[None]:
        lock = self.engine.lock
        if lock._is_owned():  # type: ignore[attr-defined]
            raise EmulatorError("not while a command runs")
        with lock:
            yield

    def serve(self, host: str = "127.0.0.1", port: Any = 0, unix: str | None = None, **options: Any) -> Any:
        """Start a server for this emulator in a thread; see `emuredis.server.Server`. For a cluster, one for each
        node: `emuredis.clusters.Cluster.serve`.

        ``port`` 0 takes a free one: read ``server.address``. Use the result as a context manager or call
        ``stop()``. Raises OSError when the address cannot be bound.
        """
        if self.cluster is not None:
            return self.cluster.serve(host, port, **({} if unix is None else {"unix": unix}), **options)
        from emuredis.server import Server

        return Server(self, host=host, port=port, unix=unix, **options).start()

    def __repr__(self) -> str:
        keys = sum(len(db.data) for db in self.engine.keyspace.databases)
        return f"<Emulator {keys} keys, {self.engine.clock!r}>"


def _libraries_of(engine: Engine) -> Any:
    """The engine's functions; loads Lua."""
    from emuredis.scripting.functions import functions_of

    return functions_of(engine)
