"""All databases of one server, their common deadlines, and the journal of changes.

The engine sets `ns` once per outermost unit and calls `expire_due` when `due_ns` has come, so handlers
see one frozen instant and keys that are past their deadline are already gone. A key is gone from the
very millisecond of its deadline on (the server keeps it that one millisecond longer, which no client
can tell apart on a running clock, but a program that advances a manual clock by the time to live can).

`announce` files a change for others: it marks watching transactions and queues keyspace events; `created` notes
which waited-for keys may be ready. The engine drains these after the unit; nothing is sent during it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from heapq import heapify, heappop
from typing import Any, Protocol

from emuredis.keyspace import notify
from emuredis.keyspace.database import Database

__all__ = ["Keyspace", "Watcher"]

NEVER = sys.maxsize  # nanoseconds: later than any instant
STALE = 1000  # entries of the heap that may be out of date before anybody minds
SLICE = 500  # expired keys removed at the start of one unit; the rest are found by look-ups and ticks


class Watcher(Protocol):
    """What a watched key knows of its watcher."""

    watch_broken: bool


class Keyspace:
    __slots__ = (
        "changed", "databases", "deferred", "dirty", "due_ns", "events", "evicted", "expired", "expired_fields",
        "heap", "heap_limit", "hits", "hooks", "misses", "needed", "notify", "ns", "overdue", "ready", "shared",
        "waited_kinds",
        "uses_matter", "waiting", "watchers",
    )  # fmt: skip

    def __init__(self, count: int) -> None:
        self.ns = 0
        self.due_ns = NEVER
        self.overdue = False
        self.heap: list[tuple[int, int, bytes]] = []
        self.heap_limit = STALE  # above this size `rebuild_heap` is worth its while
        self.databases = [Database(self, index) for index in range(count)]
        self.dirty = 0
        self.hits = self.misses = self.expired = self.expired_fields = self.evicted = 0
        self.shared: set[int] | None = None  # ids of collections that snapshots hold too, see `Database.own`
        self.uses_matter = False  # the policy of maxmemory goes by the last use of keys
        self.changed: dict[tuple[int, bytes], None] | None = (
            None  # keys to measure anew, where memory is limited
        )
        self.notify = 0
        self.hooks = False
        self.watchers: dict[tuple[int, bytes], dict[Watcher, None]] = {}
        self.waiting: dict[tuple[int, bytes], dict[Any, None]] = {}
        self.waited_kinds: dict[type, int] = {}  # how many parked commands wait for a value of this class
        self.needed = 0  # how many parked commands end when one of their keys is lost
        self.ready: dict[tuple[int, bytes], None] = {}
        self.events: list[tuple[bytes, bytes]] = []  # (channel, message) to publish
        self.deferred: list[Callable[[], None]] = []  # what the engine does when the unit has ended

    @property
    def now(self) -> int:
        """The unit's instant, in Unix milliseconds."""
        return self.ns // 1_000_000

    def update_hooks(self) -> None:
        """To be called whenever one of the reasons to announce changes comes or goes."""
        self.hooks = bool(
            self.watchers or self.waiting or self.notify or self.deferred or self.changed is not None
        )

    def announce(self, db: Database, key: bytes, event_class: int, event: bytes) -> None:
        """File the change for WATCH and keyspace events."""
        place = (db.index, key)
        if self.changed is not None:
            self.changed[place] = None
        if self.watchers and event_class not in (notify.MISS, notify.NEW):
            for watcher in self.watchers.get(place, ()):
                watcher.watch_broken = True
        if self.needed and place in self.waiting:
            self.lost(db, key)
        if self.notify & event_class and event:
            self.tell(db, key, event)

    def created(self, db: Database, key: bytes, kind: type) -> None:
        """A key has come to be: the commands that wait for it will be run again.

        Only that wakes them, as in the server: a value written over another leaves them parked, and so does a later
        change of a value they did not take. Streams are not taken from, so there each XADD is as good as a new key
        (`Database.signal`).
        """
        place = (db.index, key)
        if place in self.waiting and kind in self.waited_kinds:
            self.ready[place] = None

    def lost(self, db: Database, key: bytes) -> None:
        """The key may be gone, or hold another type: commands that cannot do without it will be run again."""
        kind = db.data.get(key).__class__
        if any(waiter.needs_keys and waiter.kind is not kind for waiter in self.waiting[db.index, key]):
            self.ready[db.index, key] = None

    def tell(self, db: Database, key: bytes, event: bytes) -> None:
        """Queue the messages of a keyspace event."""
        if self.notify & notify.KEYSPACE:
            self.events.append((b"__keyspace@%d__:%s" % (db.index, key), event))
        if self.notify & notify.KEYEVENT:
            self.events.append((b"__keyevent@%d__:%s" % (db.index, event), key))

    # -- expiry ---------------------------------------------------------------------------------

    def expire_due(self, limit: int = SLICE) -> None:
        """Remove up to ``limit`` keys whose deadline has come, earliest first."""
        heap, now, databases = self.heap, self.now, self.databases
        while heap and heap[0][0] <= now:
            if limit <= 0:
                self.overdue = True
                self.due_ns = heap[0][0] * 1_000_000
                return
            deadline, index, key = heappop(heap)
            db = databases[index]
            if db.deadlines.get(key) == deadline:
                db.expire(key)
                limit -= 1
            elif key in db.volatile:
                db.expire_fields(key)
                limit -= 1
        self.overdue = False
        self.due_ns = heap[0][0] * 1_000_000 if heap else NEVER

    def expire_all(self) -> None:
        """Remove every key whose deadline has come, for commands that look at the whole keyspace."""
        self.expire_due(sys.maxsize)

    def rebuild_heap(self) -> None:
        """Forget deadlines that were changed or taken away (also after SWAPDB and FLUSHALL)."""
        self.heap[:] = [(at, db.index, key) for db in self.databases for key, at in db.deadlines.items()]
        heapify(self.heap)
        self.heap_limit = sys.maxsize  # not again while hashes file theirs
        for db in self.databases:
            keys, db.volatile = db.volatile, {}
            for key in keys:
                db.adopt_fields(key, db.data.get(key))
        self.heap_limit = 2 * len(self.heap) + STALE
        self.due_ns = self.heap[0][0] * 1_000_000 if self.heap else NEVER

    def swap(self, first: int, second: int) -> None:
        """Exchange the contents of two databases; watchers and waiters stay with the number."""
        one, two = self.databases[first], self.databases[second]
        for name in ("access", "data", "deadlines", "encodings", "scan_index", "volatile"):
            mine, theirs = getattr(one, name), getattr(two, name)
            setattr(one, name, theirs)
            setattr(two, name, mine)
        self.rebuild_heap()
        if self.changed is not None:
            self.changed.update(
                ((db.index, key), None) for db in (one, two) for key in {**one.data, **two.data}
            )
        for place in [*self.watchers]:
            index, key = place
            if index in (first, second) and (one.exists(key) or two.exists(key)):
                self.announce(self.databases[index], key, 0, b"")
        for db in (one, two):
            for index, key in self.waiting:
                if index == db.index:
                    if db.exists(key):
                        self.created(db, key, db.data[key].__class__)
                    self.lost(db, key)

    def _check(self) -> None:
        """Assert the invariants of every database. O(content)."""
        assert all(self.heap[(place - 1) // 2] <= entry for place, entry in enumerate(self.heap) if place)
        assert not self.heap or self.due_ns <= self.heap[0][0] * 1_000_000
        for db in self.databases:
            db._check()
