"""Memory: what the keys would take in the server, and ``maxmemory`` with its policies.

Sizes are estimates (`emuredis.values.memory`). While ``maxmemory`` is 0 nothing is counted. Otherwise changed keys are
noted in `Keyspace.changed` and measured before the next command, which is then refused if it may use memory and there
is too little, after keys were evicted as the policy says.

The server takes a few keys at random and evicts the best of them; here the best of all keys is taken, from a list of
candidates that is made anew when it is used up. So who goes next can be foretold, but for the random policies.
"""

from __future__ import annotations

from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING

from emuredis.errors import ReplyError, unsupported
from emuredis.keyspace import notify
from emuredis.keyspace.access import RECORDED, Frequencies, Unrecorded
from emuredis.keyspace.database import Database
from emuredis.spec import DENYOOM, Command
from emuredis.values.memory import memory_usage

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine
    from emuredis.engine.session import Session

__all__ = ["BASE", "Memory", "out_of_memory"]

#: What the server takes with no key in it.
BASE = 1_000_000
_SAMPLES = 5
#: Without a limit a keyspace larger than this is not measured key by key.
_MEASURED = 1000
_PER_DATABASE = 64  # of each key, its place in the table included
_FEWEST = 16

Place = tuple[int, bytes]
#: Keys in order of eviction, the first one last: what made the key eligible, and where it is.
Candidates = list[tuple[tuple[float, ...], Place]]


def out_of_memory() -> ReplyError:
    return ReplyError("OOM command not allowed when used memory > 'maxmemory'.")


class Memory:
    """``short``: the command that runs found too little memory, and what a script calls will, too."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.short = False
        self.peak = BASE
        self._sizes: dict[Place, int] = {}
        self._total = 0
        self._candidates: Candidates = []
        self._policy = ""

    # -- how much is used ------------------------------------------------------------------------

    def configure(self) -> None:
        """Follow ``maxmemory`` and ``maxmemory-policy``."""
        engine, config = self.engine, self.engine.config
        keyspace = engine.keyspace
        limited = config.maxmemory > 0
        if limited != (keyspace.changed is not None):
            keyspace.changed = {} if limited else None
            self._sizes, self._total, self.short = {}, 0, False
            if limited:
                self.recount()
                engine.gates.insert(0, self.admit)
            else:
                engine.gates.remove(self.admit)
            keyspace.update_hooks()
            engine.update_gates()
        if config.maxmemory_policy != self._policy:
            self._policy, self._candidates = config.maxmemory_policy, []
            keyspace.uses_matter = self._policy.endswith(("lru", "lfu"))
        self._count_uses("lfu" in self._policy)

    def _count_uses(self, lfu: bool) -> None:
        config = self.engine.config
        for db in self.engine.keyspace.databases:
            access = db.access
            if lfu != isinstance(access, Frequencies):
                db.access = Frequencies(self.engine.rng.random, 0, 0) if lfu else {}
            elif self.engine.keyspace.uses_matter and isinstance(access, Unrecorded):
                db.access = {}
            if db.access is not access:
                now = self.engine.keyspace.ns
                for key in db.data:
                    db.access[key] = access.get(key, now)
            if isinstance(db.access, Frequencies):
                db.access.log_factor, db.access.decay_minutes = config.lfu_log_factor, config.lfu_decay_time

    def recount(self) -> None:
        """Measure every key before the next command."""
        keyspace = self.engine.keyspace
        if keyspace.changed is not None:
            keyspace.changed.update(((db.index, key), None) for db in keyspace.databases for key in db.data)

    def used(self) -> int:
        """Bytes that the server would use for what is stored."""
        changed = self.engine.keyspace.changed
        if changed is None:
            used = BASE + sum(map(self._estimate, self.engine.keyspace.databases))
        else:
            self._measure(changed)
            used = BASE + self._total
        self.peak = max(self.peak, used)
        return used

    def _estimate(self, db: Database) -> int:
        keys = list(islice(db.data, _MEASURED))
        if not keys:
            return 0
        return sum(self._size(db, key) for key in keys) * len(db.data) // len(keys)

    def _measure(self, changed: dict[Place, None]) -> None:
        databases, sizes = self.engine.keyspace.databases, self._sizes
        for place in changed:
            db = databases[place[0]]
            old = sizes.pop(place, 0)
            new = 0
            if place[1] in db.data:
                new = sizes[place] = self._size(db, place[1])
            self._total += new - old
        changed.clear()

    def _size(self, db: Database, key: bytes) -> int:
        return _PER_DATABASE + memory_usage(key, db.data[key], key in db.deadlines, _SAMPLES)

    # -- too little ------------------------------------------------------------------------------

    def admit(self, session: Session, cmd: Command, argv: list[bytes]) -> None:
        """Make room before a command. Raises ReplyError if there is none and the command may need some."""
        self.short = not self.make_room()
        if not self.short:
            return
        refused = cmd.flags & DENYOOM
        if cmd.name == "exec" and session.queue is not None:
            refused = any(queued.flags & DENYOOM for queued, _ in session.queue)
        if refused:
            raise out_of_memory()

    def make_room(self) -> bool:
        """Evict keys until what is left fits; whether it does."""
        limit = self.engine.config.maxmemory
        while self.used() > limit:
            place = self._next()
            if place is None:
                return False
            db = self.engine.keyspace.databases[place[0]]
            db.remove(place[1])
            self.engine.keyspace.evicted += 1
            db.touch(place[1], notify.EVICTED, b"evicted")
        return True

    def _next(self) -> Place | None:
        """The key to evict next; None if the policy allows none."""
        if self._policy == "noeviction":
            return None
        while True:
            if not self._candidates:
                self._candidates = self._find()
                if not self._candidates:
                    return None
            rank, place = self._candidates.pop()
            db = self.engine.keyspace.databases[place[0]]
            if place[1] in self._eligible(db) and (self._random or self._rank(db, place[1]) == rank):
                return place

    @property
    def _random(self) -> bool:
        return self._policy.endswith("random")

    def _eligible(self, db: Database) -> dict[bytes, object]:
        return db.deadlines if self._policy.startswith("volatile") else db.data  # type: ignore[return-value]

    def _find(self) -> Candidates:
        places = [(db, key) for db in self.engine.keyspace.databases for key in self._eligible(db)]
        count = max(_FEWEST, len(places) // 8)
        if self._random:
            chosen = self.engine.rng.sample(places, min(count, len(places)))
            return [((), (db.index, key)) for db, key in chosen]
        ranked = ((self._rank(db, key), (db.index, key)) for db, key in places)
        return nsmallest(count, ranked)[::-1]

    def _rank(self, db: Database, key: bytes) -> tuple[float, ...]:
        """The smaller, the sooner the key goes."""
        if self._policy == "volatile-ttl":
            return (db.deadlines[key],)
        access = db.access
        used = access.get(key, 0)
        if isinstance(access, Frequencies):
            return (access.counter(key, self.engine.keyspace.ns), used)
        return (used,)

    # -- what OBJECT and RESTORE know of a key ---------------------------------------------------

    def idle_seconds(self, db: Database, key: bytes) -> int:
        """Whole seconds since the last use of a key. Raises ReplyError in a large database without an LRU policy."""
        if isinstance(db.access, Unrecorded):
            raise unsupported(
                f"OBJECT IDLETIME in a database of more than {RECORDED} keys, unless maxmemory-policy is an LRU one"
            )
        now = self.engine.keyspace.ns
        return max(now // 1_000_000_000 - db.access.get(key, now) // 1_000_000_000, 0)

    def set_idle(self, db: Database, key: bytes, seconds: int) -> None:
        """RESTORE IDLETIME: the key was last used so long ago. Without effect under an LFU policy, as in the server."""
        if not isinstance(db.access, Frequencies):
            db.access[key] = self.engine.keyspace.ns - seconds * 1_000_000_000

    def frequency(self, db: Database, key: bytes) -> int | None:
        """The counter of an LFU policy; None under another."""
        access = db.access
        return access.counter(key, self.engine.keyspace.ns) if isinstance(access, Frequencies) else None

    def set_frequency(self, db: Database, key: bytes, counter: int) -> None:
        """RESTORE FREQ. Without effect unless an LFU policy is chosen, as in the server."""
        if isinstance(db.access, Frequencies):
            db.access.restore(key, self.engine.keyspace.ns, counter)
