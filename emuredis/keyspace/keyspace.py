"""All databases of one server, their common deadlines, and the journal of changes.

The engine sets `ns` once per outermost unit and calls `expire_due` when `due_ns` has come, so handlers
see one frozen instant and keys that are past their deadline are already gone. A key is gone from the
very millisecond of its deadline on (the server keeps it that one millisecond longer, which no client
can tell apart on a running clock, but a program that advances a manual clock by the time to live can).

`announce` files a change for others: it marks watching transactions, notes which waited-for keys may be
ready, and queues keyspace events. The engine drains these after the unit; nothing is sent during it.
"""

from __future__ import annotations

import sys
from heapq import heapify, heappop
from typing import Any, Protocol

from emuredis.keyspace import notify
from emuredis.keyspace.database import Database

__all__ = ["Keyspace", "Watcher"]

NEVER = sys.maxsize  # nanoseconds: later than any instant
SLICE = 500  # expired keys removed at the start of one unit; the rest are found by look-ups and ticks


class Watcher(Protocol):
    """What a watched key knows of its watcher."""

    watch_broken: bool


class Keyspace:
    __slots__ = (
        "databases", "dirty", "due_ns", "expired", "events", "heap", "hits", "hooks", "misses", "notify", "ns",
        "overdue", "ready", "subscribed", "waiting", "watchers",
    )  # fmt: skip

    def __init__(self, count: int) -> None:
        self.ns = 0
        self.due_ns = NEVER
        self.overdue = False
        self.heap: list[tuple[int, int, bytes]] = []
        self.databases = [Database(self, index) for index in range(count)]
        self.dirty = 0
        self.hits = self.misses = self.expired = 0
        self.notify = 0
        self.hooks = False
        self.subscribed = False  # set by the engine while any session is subscribed to anything
        self.watchers: dict[tuple[int, bytes], dict[Watcher, None]] = {}
        self.waiting: dict[tuple[int, bytes], dict[Any, None]] = {}
        self.ready: dict[tuple[int, bytes], None] = {}
        self.events: list[tuple[bytes, bytes]] = []  # (channel, message) to publish

    @property
    def now(self) -> int:
        """The unit's instant, in Unix milliseconds."""
        return self.ns // 1_000_000

    def update_hooks(self) -> None:
        """To be called whenever one of the reasons to announce changes comes or goes."""
        self.hooks = bool(self.watchers or self.waiting or self.notify or self.subscribed)

    def announce(self, db: Database, key: bytes, event_class: int, event: bytes) -> None:
        """File the change for WATCH, blocked clients and keyspace events."""
        place = (db.index, key)
        if self.watchers and event_class not in (notify.MISS, notify.NEW):
            for watcher in self.watchers.get(place, ()):
                watcher.watch_broken = True
        if place in self.waiting:
            self.ready[place] = None
        if self.notify & event_class and event:
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
            if databases[index].deadlines.get(key) == deadline:
                databases[index].expire(key)
                limit -= 1
        self.overdue = False
        self.due_ns = heap[0][0] * 1_000_000 if heap else NEVER
        live = sum(len(db.deadlines) for db in databases)
        if len(heap) > 2 * live + 1000:
            self.rebuild_heap()

    def expire_all(self) -> None:
        """Remove every key whose deadline has come, for commands that look at the whole keyspace."""
        self.expire_due(sys.maxsize)

    def rebuild_heap(self) -> None:
        """Forget deadlines that were changed or taken away (also after SWAPDB and FLUSHALL)."""
        self.heap = [(at, db.index, key) for db in self.databases for key, at in db.deadlines.items()]
        heapify(self.heap)
        self.due_ns = self.heap[0][0] * 1_000_000 if self.heap else NEVER

    def swap(self, first: int, second: int) -> None:
        """Exchange the contents of two databases; watchers and waiters stay with the number."""
        one, two = self.databases[first], self.databases[second]
        for name in ("data", "deadlines", "scan_index"):
            mine, theirs = getattr(one, name), getattr(two, name)
            setattr(one, name, theirs)
            setattr(two, name, mine)
        self.rebuild_heap()
        if self.hooks:
            for place in [*self.watchers, *self.waiting]:
                index, key = place
                if index not in (first, second) or not (one.exists(key) or two.exists(key)):
                    continue
                self.announce(self.databases[index], key, 0, b"")
