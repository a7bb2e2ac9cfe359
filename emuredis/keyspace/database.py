"""One logical database: keys, values, deadlines.

Responsible for: look-up by type, the difference between *replacing* a value (`put`, drops the time to
live) and *modifying* one (`update`, `add`, keeps it), deletion of emptied collections, and the choke
point `touch`, through which every change reaches WATCH, blocked clients, notifications and counters.
It may not know: sessions, commands, protocols. Values are plain ``bytes`` or the classes of
`emuredis.values`; their exact class is the key's type.

Invariants: every key of `deadlines` is in `data`; no collection but a stream is empty between units; while
`keyspace.overdue` is false no key is past its deadline (the keyspace expires keys at the start of a
unit, so look-ups need no clock).
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappush
from typing import TYPE_CHECKING, Any

from emuredis.errors import wrong_type
from emuredis.keyspace import notify
from emuredis.values.scan import ScanIndex

if TYPE_CHECKING:
    from emuredis.keyspace.keyspace import Keyspace

__all__ = ["Database"]


class Database:
    __slots__ = ("data", "deadlines", "index", "keyspace", "scan_index")

    def __init__(self, keyspace: Keyspace, index: int) -> None:
        self.keyspace = keyspace
        self.index = index
        self.data: dict[bytes, Any] = {}
        self.deadlines: dict[bytes, int] = {}  # Unix milliseconds
        self.scan_index: ScanIndex | None = None  # built at the first SCAN, see `emuredis.values.scan`

    def __len__(self) -> int:
        if self.keyspace.overdue:
            self.keyspace.expire_all()
        return len(self.data)

    # -- looking up -----------------------------------------------------------------------------

    def read(self, key: bytes, kind: type) -> Any:
        """The value for a reading command, None when absent; WRONGTYPE unless its class is ``kind``."""
        value = self.data.get(key)
        ks = self.keyspace
        if value is None or (ks.overdue and self._overdue(key)):
            ks.misses += 1
            if ks.notify & notify.MISS:
                ks.announce(self, key, notify.MISS, b"keymiss")
            return None
        ks.hits += 1
        if value.__class__ is not kind:
            raise wrong_type()
        return value

    def write(self, key: bytes, kind: type) -> Any:
        """The value for a writing command, None when absent; WRONGTYPE unless its class is ``kind``."""
        value = self.data.get(key)
        if value is None or (self.keyspace.overdue and self._overdue(key)):
            return None
        if value.__class__ is not kind:
            raise wrong_type()
        return value

    def peek(self, key: bytes) -> Any:
        """The value of any type, None when absent; counts as neither hit nor miss."""
        value = self.data.get(key)
        if value is not None and self.keyspace.overdue and self._overdue(key):
            return None
        return value

    def exists(self, key: bytes) -> bool:
        return self.peek(key) is not None

    def keys(self) -> Iterator[bytes]:
        """Every live key, in order of creation."""
        if self.keyspace.overdue:
            self.keyspace.expire_all()
        return iter(self.data)

    def _overdue(self, key: bytes) -> bool:
        deadline = self.deadlines.get(key)
        if deadline is None or deadline > self.keyspace.now:
            return False
        self.expire(key)
        return True

    # -- changing -------------------------------------------------------------------------------

    def put(self, key: bytes, value: Any) -> None:
        """Replace: whatever was there is gone, its time to live too."""
        if self.deadlines:
            self.deadlines.pop(key, None)
        if key not in self.data:
            self._created(key)
        self.data[key] = value

    def update(self, key: bytes, value: Any) -> None:
        """Modify: set the value and keep the time to live (a new key has none)."""
        if key not in self.data:
            self._created(key)
        self.data[key] = value

    def add(self, key: bytes, value: Any) -> Any:
        """Put ``value`` under a key known to be absent, and return it."""
        self._created(key)
        self.data[key] = value
        return value

    def remove(self, key: bytes) -> bool:
        """Take the key away, without an event; whether it was there."""
        if self.keyspace.overdue:
            self._overdue(key)
        if self.data.pop(key, None) is None:
            return False
        if self.deadlines:
            self.deadlines.pop(key, None)
        if self.scan_index is not None:
            self.scan_index.discard(key)
        return True

    def drop_if_empty(self, key: bytes, value: Any) -> None:
        """After a collection shrank: an emptied key disappears, with its ``del`` event."""
        if not value and self.data.get(key) is value:
            self.remove(key)
            self.notify(key, notify.GENERIC, b"del")

    def clear(self) -> int:
        """Remove every key without events (FLUSHDB); how many there were."""
        count = len(self.data)
        if self.keyspace.hooks:
            for key in list(self.data):
                self.keyspace.announce(self, key, 0, b"")
        self.data = {}
        self.deadlines = {}
        self.scan_index = None
        return count

    def _created(self, key: bytes) -> None:
        if self.scan_index is not None:
            self.scan_index.add(key)
        if self.keyspace.notify & notify.NEW:
            self.keyspace.announce(self, key, notify.NEW, b"new")

    # -- deadlines ------------------------------------------------------------------------------

    def expire_at(self, key: bytes, deadline: int) -> None:
        """Have the (present) key expire at ``deadline``, in Unix milliseconds."""
        self.deadlines[key] = deadline
        ks = self.keyspace
        heappush(ks.heap, (deadline, self.index, key))
        due_ns = deadline * 1_000_000
        if due_ns < ks.due_ns:
            ks.due_ns = due_ns

    def deadline(self, key: bytes) -> int | None:
        """When the key expires, in Unix milliseconds; None for never (or no such key)."""
        return self.deadlines.get(key)

    def persist(self, key: bytes) -> bool:
        """Take the deadline away; whether there was one."""
        return self.deadlines.pop(key, None) is not None

    def expire(self, key: bytes) -> None:
        """The key's time has come: remove it and say so."""
        del self.deadlines[key]
        self.data.pop(key, None)
        if self.scan_index is not None:
            self.scan_index.discard(key)
        self.keyspace.expired += 1
        self.touch(key, notify.EXPIRED, b"expired")

    # -- the choke point ------------------------------------------------------------------------

    def touch(self, key: bytes, event_class: int, event: bytes) -> None:
        """Announce one change of ``key``: the only way a change becomes known to anybody."""
        ks = self.keyspace
        ks.dirty += 1
        if ks.hooks:
            ks.announce(self, key, event_class, event)

    def notify(self, key: bytes, event_class: int, event: bytes) -> None:
        """A further event of a change already announced by `touch`."""
        ks = self.keyspace
        if ks.hooks:
            ks.announce(self, key, event_class, event)
