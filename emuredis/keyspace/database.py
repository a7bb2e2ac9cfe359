"""One logical database: keys, values, deadlines.

Responsible for: look-up by type, the difference between *replacing* a value (`put`, drops the time to
live) and *modifying* one (`update`, `add`, keeps it), deletion of emptied collections, and the choke
point `touch`, through which every change reaches WATCH, blocked clients, notifications and counters.
It may not know: sessions, commands, protocols. Values are plain ``bytes`` or the classes of
`emuredis.values`; their exact class is the key's type.

Invariants: every key of `deadlines` is in `data`; no collection but a stream is empty between units; while
`keyspace.overdue` is false no key and no field of a hash is past its deadline (the keyspace expires them at
the start of a unit, so look-ups need no clock).
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappush
from typing import TYPE_CHECKING, Any

from emuredis.errors import wrong_type
from emuredis.keyspace import notify
from emuredis.keyspace.access import RECORDED, Unrecorded
from emuredis.values.hash import Hash
from emuredis.values.scan import ScanIndex
from emuredis.values.stream import Stream

if TYPE_CHECKING:
    from emuredis.keyspace.keyspace import Keyspace

__all__ = ["Database", "room"]


def room(key: bytes) -> int:
    """Below how many bytes the server puts key and text, with their headers, into one block (``embstr``)."""
    return 114 if len(key) < 32 else 112


class Database:
    __slots__ = ("access", "data", "deadlines", "encodings", "index", "keyspace", "scan_index", "volatile")

    def __init__(self, keyspace: Keyspace, index: int) -> None:
        self.keyspace = keyspace
        self.index = index
        self.data: dict[bytes, Any] = {}
        self.deadlines: dict[bytes, int] = {}  # Unix milliseconds
        self.access: dict[
            bytes, int
        ] = {}  # the last use of each key in Unix nanoseconds, see `emuredis.keyspace.access`
        self.scan_index: ScanIndex | None = None  # built at the first SCAN, see `emuredis.values.scan`
        self.volatile: dict[bytes, None] = {}  # hashes that were given deadlines of fields
        self.encodings: dict[bytes, tuple[bytes, bytes]] = {}  # see `note_encoding`

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
        self.access[key] = ks.ns
        if value.__class__ is not kind:
            raise wrong_type()
        return value

    def write(self, key: bytes, kind: type) -> Any:
        """The value for a writing command, None when absent; WRONGTYPE unless its class is ``kind``."""
        value = self.data.get(key)
        ks = self.keyspace
        if value is None or (ks.overdue and self._overdue(key)):
            return None
        self.access[key] = ks.ns
        if value.__class__ is not kind:
            raise wrong_type()
        return value if ks.shared is None else self.own(key, value)

    def read_to_change(self, key: bytes, kind: type) -> Any:
        """As `read`, for the commands that count as reading and change what they read."""
        value = self.read(key, kind)
        return value if value is None or self.keyspace.shared is None else self.own(key, value)

    def own(self, key: bytes, value: Any) -> Any:
        """The collection to change in place of ``value``, the value of ``key``: a copy, if a snapshot holds it too."""
        shared = self.keyspace.shared
        if shared is not None and id(value) in shared and value.__class__ is not bytes:
            value = self.data[key] = value.copy()
        return value

    def look(self, key: bytes, use: bool = True) -> Any:
        """The value of any type for a reading command, None when absent; ``use``: it counts as a use of the key."""
        value = self.data.get(key)
        ks = self.keyspace
        if value is None or (ks.overdue and self._overdue(key)):
            ks.misses += 1
            if ks.notify & notify.MISS:
                ks.announce(self, key, notify.MISS, b"keymiss")
            return None
        ks.hits += 1
        if use:
            self.access[key] = ks.ns
        return value

    def peek(self, key: bytes, use: bool = False) -> Any:
        """The value of any type, None when absent; counts as neither hit nor miss, and as a use if ``use`` says so."""
        value = self.data.get(key)
        if value is not None and self.keyspace.overdue and self._overdue(key):
            return None
        if use and value is not None:
            self.access[key] = self.keyspace.ns
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
        if deadline is not None and deadline <= self.keyspace.now:
            self.expire(key)
            return True
        return key in self.volatile and self.expire_fields(key)

    # -- changing -------------------------------------------------------------------------------

    def put(self, key: bytes, value: Any) -> None:
        """Replace: whatever was there is gone, its time to live too."""
        if self.deadlines and key in self.deadlines:
            value = self._beside_deadline(key, value)
            del self.deadlines[key]
        if key not in self.data:
            self._created(key, value)
        self.access[key] = self.keyspace.ns
        self.data[key] = value

    def update(self, key: bytes, value: Any) -> None:
        """Modify: set the value and keep the time to live (a new key has none)."""
        if key not in self.data:
            self._created(key, value)
            self.access[key] = self.keyspace.ns
        elif self.deadlines and key in self.deadlines:
            value = self._beside_deadline(key, value)
        self.data[key] = value

    def add(self, key: bytes, value: Any) -> Any:
        """Put ``value`` under a key known to be absent, and return it."""
        self._created(key, value)
        self.access[key] = self.keyspace.ns
        self.data[key] = value
        return value

    def remove(self, key: bytes) -> bool:
        """Take the key away, without an event; whether it was there."""
        if self.keyspace.overdue:
            self._overdue(key)
        if self.data.pop(key, None) is None:
            return False
        self.access.pop(key, None)
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

    def note_encoding(self, key: bytes, value: bytes, encoding: bytes) -> bytes:
        """Remember for OBJECT ENCODING that this string is not encoded as its text suggests; the text to store.

        Any other write stores another object, so a note is good while the key holds the same one. Of a text of one
        byte, which Python has only once, a copy is made (`int.to_bytes` does make one, a test sees to that); the
        empty text cannot be copied, and is not noted. A longer text must be an object that nobody else holds.
        """
        if len(value) < 2:
            if not value:
                return value
            value = value[0].to_bytes(1, "big")
        notes = self.encodings
        if len(notes) > 64 + 2 * len(self.data):
            notes = {key: note for key, note in notes.items() if self.data.get(key) is note[0]}
            self.encodings = notes
        notes[key] = value, encoding
        return value

    def _beside_deadline(self, key: bytes, value: Any) -> Any:
        """``value``, about to replace that of a key with a deadline: 8 bytes of its block are taken."""
        if value.__class__ is bytes and room(key) - 8 <= len(key) + len(value) < room(key):
            return self.note_encoding(
                key, value[:1] + value[1:], b"raw"
            )  # a copy: the caller may use it again
        return value

    def noted_encoding(self, key: bytes, value: bytes) -> bytes | None:
        """What `note_encoding` remembers of ``value``, the value of ``key``."""
        note = self.encodings.get(key)
        return note[1] if note is not None and note[0] is value else None

    def load(self, key: bytes, value: Any, deadline: int | None) -> None:
        """Put a key of a file under a name known to be absent: no event, but who watches it or waits for it is told."""
        self.data[key] = value
        if deadline is not None:
            self.expire_at(key, deadline)
        self.adopt_fields(key, value)
        ks = self.keyspace
        if ks.hooks:
            ks.announce(self, key, 0, b"")
            if ks.waiting:
                ks.created(self, key, value.__class__)

    def clear(self) -> int:
        """Remove every key without events (FLUSHDB); how many there were."""
        keys, self.data = self.data, {}
        self.deadlines = {}
        if not self.keyspace.uses_matter:
            self.access = {}
        else:
            self.access.clear()
        self.scan_index = None
        self.encodings = {}
        self.volatile = {}
        if self.keyspace.hooks:
            for key in keys:
                self.keyspace.announce(self, key, 0, b"")
        return len(keys)

    def _created(self, key: bytes, value: Any) -> None:
        if len(self.data) == RECORDED and not self.keyspace.uses_matter:
            self.access = Unrecorded()
        if self.scan_index is not None:
            self.scan_index.add(key)
        ks = self.keyspace
        if ks.hooks:
            if ks.changed is not None:
                ks.changed[self.index, key] = None
            if ks.waiting:
                ks.created(self, key, value.__class__)
            if ks.notify & notify.NEW:
                ks.announce(self, key, notify.NEW, b"new")

    # -- deadlines ------------------------------------------------------------------------------

    def expire_at(self, key: bytes, deadline: int) -> None:
        """Have the (present) key expire at ``deadline``, in Unix milliseconds."""
        self.deadlines[key] = deadline
        self._file(key, deadline)

    def _file(self, key: bytes, deadline: int) -> None:
        """Have `Keyspace.expire_due` look at the key at ``deadline``."""
        ks = self.keyspace
        heappush(ks.heap, (deadline, self.index, key))
        due_ns = deadline * 1_000_000
        if due_ns < ks.due_ns:
            ks.due_ns = due_ns
        if len(ks.heap) > ks.heap_limit:
            ks.rebuild_heap()

    def deadline(self, key: bytes) -> int | None:
        """When the key expires, in Unix milliseconds; None for never (or no such key)."""
        return self.deadlines.get(key)

    def persist(self, key: bytes) -> bool:
        """Take the deadline away; whether there was one."""
        return self.deadlines.pop(key, None) is not None

    def expire(self, key: bytes) -> None:
        """The key's time has come: remove it and say so."""
        self.deadlines.pop(key, None)
        self.data.pop(key, None)
        self.access.pop(key, None)
        if self.scan_index is not None:
            self.scan_index.discard(key)
        self.keyspace.expired += 1
        self.touch(key, notify.EXPIRED, b"expired")

    # -- deadlines of hash fields ---------------------------------------------------------------
    #
    # For every hash with deadlines the heap holds an entry not later than the first of them; that entry
    # sees to the next when its time has come.

    def expire_field_at(self, key: bytes, value: Hash, field: bytes, deadline: int) -> None:
        """Have a field of the hash ``value``, the value of ``key``, expire at ``deadline``."""
        value.set_deadline(field, deadline)
        self.volatile[key] = None
        if value.next_deadline() == deadline:
            self._file(key, deadline)

    def adopt_fields(self, key: bytes, value: Any) -> None:
        """``value`` has come under ``key`` as a whole: see to the deadlines of its fields, if it has any."""
        if value.__class__ is Hash and (first := value.next_deadline()) is not None:
            self.volatile[key] = None
            self._file(key, first)

    def expire_fields(self, key: bytes) -> bool:
        """Remove the fields of a hash whose time has come; whether the whole hash is gone."""
        value = self.data.get(key)
        if value.__class__ is not Hash or value.deadlines is None:
            self.volatile.pop(key, None)
            return False
        value = self.own(key, value)
        gone = value.expire(self.keyspace.now)
        if gone:
            self.keyspace.expired_fields += len(gone)
            self.touch(key, notify.HASH, b"hexpired")
            self.drop_if_empty(key, value)
        following = value.next_deadline()
        if following is None:
            self.volatile.pop(key, None)
        else:
            self._file(key, following)
        return not value

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

    def signal(self, key: bytes, value: Any) -> None:
        """Have those that wait for ``value``, which was there before, look at it again (a new key does so itself)."""
        ks = self.keyspace
        if ks.waiting:
            ks.created(self, key, value.__class__)

    def mention(self, key: bytes, event_class: int, event: bytes) -> None:
        """An event without a change: the server sends a few, and they break no WATCH."""
        ks = self.keyspace
        if ks.notify & event_class:
            ks.tell(self, key, event)

    def alter(self, key: bytes, event_class: int, event: bytes) -> None:
        """A change that breaks no WATCH, such as all that happens to groups of a stream; ``event`` may be empty."""
        ks = self.keyspace
        ks.dirty += 1
        if ks.changed is not None:
            ks.changed[self.index, key] = None
        if event and ks.notify & event_class:
            ks.tell(self, key, event)

    def _check(self) -> None:
        """Assert the invariants, those of the values too. O(content)."""
        ks = self.keyspace
        filed = {(deadline, key) for deadline, index, key in ks.heap if index == self.index}
        for key, deadline in self.deadlines.items():
            assert key in self.data, key
            assert (deadline, key) in filed, key
        if self.scan_index is not None:
            self.scan_index._check(self.data)
        for key, value in self.data.items():
            if value.__class__ is bytes:
                continue
            value._check()
            assert value or value.__class__ is Stream, key
            if value.__class__ is Hash and (first := value.next_deadline()) is not None:
                assert key in self.volatile, key
                assert any(at <= first for at, name in filed if name == key), key
