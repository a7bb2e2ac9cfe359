"""Event logs: a queue's streams, consumer groups on them, and how long they are kept.

A record is a stream entry with a branded `EVT` id in its field ``id``; the entry's own id is made of that id's
instant, node and sequence (`ids.stream_id`), so records lie in mint order and a window of time is a range of entries.
The branded id is the receipt. The server refuses an entry that is not newer than the last: `Verdict.NONMONOTONIC`,
never tried again.

`StreamConsumer` is a step machine like the other workers, to be run by a `Runner` on a connection of its own: first
what it left unacknowledged in an earlier life, then for ever what others left too long and what is new. A record whose
handler fails stays pending, and comes back once it has been idle for ``min_idle_ms``.

Retention is a list kept by the process, nothing of it is on the server. No scripts here: these are plain commands.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from .clock import Clock, SystemClock, now_ms
from .connection import Connection
from .errors import (
    ArgumentError,
    ConnectionTrouble,
    EchoError,
    ServerError,
    Verdict,
    non_negative_int,
    positive_int,
)
from .ids import Minter, decode, default_minter, stream_id
from .keys import Keys
from .machine import PARK_GRACE_MS, Handle, Wait
from .outcomes import Done, Outcome
from .resp import Arg, Reply
from .steps import Call, Link, Part, Pipeline, Steps, procedure, reraise

__all__ = [
    "MaxLen",
    "MinId",
    "Record",
    "StreamConsumer",
    "StreamRecord",
    "StreamRetention",
    "Streams",
    "Window",
]

_log = logging.getLogger("echomq")

NAMESPACE = "EVT"
NONMONOTONIC = "ERR The ID specified in XADD is equal or smaller than the target stream top item"
LAST_SEQUENCE = (1 << 22) - 1
TROUBLE_MS = 100

Fields = Mapping[str, bytes | str]


class Record(NamedTuple):
    """A record as it was read: its branded id and its other fields."""

    id: str
    fields: dict[str, bytes]


class StreamRecord(NamedTuple):
    """A record as a consumer's handler gets it; ``attempts`` counts its deliveries."""

    id: str
    payload: dict[str, bytes]
    attempts: int
    group: str


class MaxLen(NamedTuple):
    """Keep the newest ``records``; ``approx``: or some more, which is cheaper."""

    records: int
    approx: bool = True


class MinId(NamedTuple):
    """Keep what is not older than an instant: ``at_ms`` (Unix), or ``ago_ms`` before now."""

    at_ms: int | None = None
    ago_ms: int | None = None
    approx: bool = True


Window = MaxLen | MinId


def trim_words(window: Window, now: int) -> tuple[str, str, str]:
    """The words of XTRIM behind the key; ArgumentError for a malformed window."""
    if isinstance(window, MaxLen):
        strategy, threshold = "MAXLEN", str(non_negative_int("records", window.records))
    elif isinstance(window, MinId) and (window.at_ms is None) != (window.ago_ms is None):
        if window.ago_ms is not None:
            instant = max(now - non_negative_int("ago_ms", window.ago_ms), 0)
        else:
            instant = non_negative_int("at_ms", window.at_ms)
        strategy, threshold = "MINID", f"{instant}-0"
    else:
        raise ArgumentError(f"a window is MaxLen(records) or MinId with at_ms or ago_ms, not {window!r}")
    return strategy, "~" if window.approx else "=", threshold


def _record(entry: Reply) -> Record:
    """An entry of XRANGE and its kin."""
    flat = entry[1] or ()
    fields = {name.decode(): value for name, value in zip(flat[::2], flat[1::2], strict=True)}
    return Record(fields.pop("id", b"").decode(), fields)


def _entries(reply: Reply) -> list[Reply]:
    """The entries in the answer of a read of one stream, whatever the protocol."""
    if not reply:
        return []
    entries: list[Reply] = next(iter(reply.values())) if isinstance(reply, dict) else reply[0][1]
    return entries


def _appending(key: str, record_id: str, fields: Fields) -> tuple[Arg, ...]:
    """The XADD of a record; ArgumentError unless its id is an event's."""
    space, _ = decode(record_id)
    if space != NAMESPACE:
        raise ArgumentError(f"a record's id is of the namespace {NAMESPACE}, not {record_id!r}")
    if "id" in fields:
        raise ArgumentError("the field 'id' of a record is its own id")
    return (
        "XADD",
        key,
        stream_id(record_id),
        "id",
        record_id,
        *[part for pair in fields.items() for part in pair],
    )


def _receipt(record_id: str, reply: Reply) -> str | Verdict:
    """The receipt for what XADD answered; other errors than the one verdict are raised."""
    if isinstance(reply, ServerError) and reply.message == NONMONOTONIC:
        return Verdict.NONMONOTONIC
    reraise(reply)
    return record_id


class Streams(Part):
    """A queue's event logs.

    ``minter`` mints the ids of `append`, the default is this process's own; ``clock`` says what is "ago" in `trim`.
    """

    def __init__(
        self,
        connection: Connection | Link,
        queue: str,
        minter: Minter | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(connection, queue)
        self.minter = minter if minter is not None else default_minter()
        self.clock: Clock = clock if clock is not None else SystemClock()

    # -- writing ---------------------------------------------------------------------------------

    @procedure
    def append(self, name: str, fields: Fields) -> Steps[str | Verdict]:
        """Append a record with a fresh id: that id, or NONMONOTONIC."""
        return (yield from self.append_id.steps(name, self.minter.mint(NAMESPACE), fields))

    @procedure
    def append_id(self, name: str, record_id: str, fields: Fields) -> Steps[str | Verdict]:
        """Append a record under an id minted before: that id, or NONMONOTONIC."""
        try:
            reply = yield Call(*_appending(self.keys.stream(name), record_id, fields))
        except ServerError as error:
            reply = error
        return _receipt(record_id, reply)

    @procedure
    def append_batch(self, name: str, batch: Sequence[Fields]) -> Steps[list[str | Verdict]]:
        """Append several records in one round trip: what `append` answers for each, in order; not atomic."""
        if not batch:
            raise ArgumentError("empty_pipeline: append_batch needs at least one record")
        key = self.keys.stream(name)
        ids = [self.minter.mint(NAMESPACE) for _ in batch]
        replies = yield Pipeline([_appending(key, *pair) for pair in zip(ids, batch, strict=True)])
        return [_receipt(*pair) for pair in zip(ids, replies, strict=True)]

    # -- reading ---------------------------------------------------------------------------------

    @procedure
    def read(
        self, name: str, start: str = "-", end: str = "+", count: int | None = None
    ) -> Steps[list[Record]]:
        """The records between two entry ids, both included."""
        limit = () if count is None else ("COUNT", positive_int("count", count))
        entries = yield Call("XRANGE", self.keys.stream(name), start, end, *limit)
        return [_record(entry) for entry in entries]

    @procedure
    def read_window(self, name: str, from_ms: int, to_ms: int) -> Steps[list[Record]]:
        """The records minted between two instants, both milliseconds included whole."""
        if non_negative_int("to_ms", to_ms) < non_negative_int("from_ms", from_ms):
            raise ArgumentError(f"a window ends no earlier than it begins, not at {to_ms} after {from_ms}")
        return (yield from self.read.steps(name, f"{from_ms}-0", f"{to_ms}-{LAST_SEQUENCE}"))

    @procedure
    def read_since(self, name: str, from_ms: int) -> Steps[list[Record]]:
        """The records minted at an instant or later."""
        return (yield from self.read.steps(name, f"{non_negative_int('from_ms', from_ms)}-0"))

    # -- keeping ---------------------------------------------------------------------------------

    @procedure
    def trim(self, name: str, window: Window) -> Steps[int]:
        """Remove what lies outside ``window``: how many records."""
        words = trim_words(window, now_ms(self.clock))
        return int((yield Call("XTRIM", self.keys.stream(name), *words)))

    @procedure
    def mark_archived(self, name: str, record_id: str) -> Steps[None]:
        """Note the last record that was archived elsewhere."""
        if decode(record_id)[0] != NAMESPACE:
            raise ArgumentError(f"a record's id is of the namespace {NAMESPACE}, not {record_id!r}")
        yield Call("SET", self.keys.stream_archived(name), record_id)

    @procedure
    def archived(self, name: str) -> Steps[str | None]:
        """The last record that was archived, None when there is no mark."""
        found = yield Call("GET", self.keys.stream_archived(name))
        return None if found is None else found.decode()

    @procedure
    def forget_archived(self, name: str) -> Steps[bool]:
        """Remove the mark; whether there was one."""
        return bool((yield Call("DEL", self.keys.stream_archived(name))))


class _HandleRecord(Handle):
    """Run a handler on a record; the reply is an `Outcome`, as for a job."""

    __slots__ = ()

    def __init__(self, record: StreamRecord, handler: Callable[[StreamRecord], object]) -> None:
        super().__init__(record, handler)  # type: ignore[arg-type]


class StreamConsumer(Part):
    """One consumer of a group. ``start``: where a group that does not exist yet begins, ``new`` or ``head``."""

    def __init__(
        self,
        connection: Connection | Link,
        queue: str,
        stream: str,
        group: str,
        consumer: str,
        handler: Callable[[StreamRecord], object],
        *,
        start: str,
        min_idle_ms: int = 30_000,
        beat_ms: int = 1_000,
        count: int = 100,
    ) -> None:
        super().__init__(connection, queue)
        if start not in ("new", "head"):
            raise ArgumentError(f"start is 'new' or 'head', not {start!r}")
        self.key = self.keys.stream(stream)
        self.group = group
        self.consumer = consumer
        self.handler = handler
        self.start = "$" if start == "new" else "0"
        self.min_idle_ms = non_negative_int("min_idle_ms", min_idle_ms)
        self.beat_ms = positive_int("beat_ms", beat_ms)
        self.count = positive_int("count", count)
        self.stopping = False

    def stop(self) -> None:
        """End after the record in hand; takes at most a beat."""
        self.stopping = True

    def steps(self) -> Steps[None]:
        """Make the group, settle one's own backlog, then serve until stopped."""
        ready = False
        while not self.stopping:
            try:
                if not ready:
                    yield from self.prepare.steps()
                    ready = True
                yield from self.round.steps()
            except ConnectionTrouble:
                yield Wait(TROUBLE_MS)

    @procedure
    def prepare(self) -> Steps[None]:
        """Create the group unless it is there, then settle what this consumer left pending, each record once."""
        try:
            yield Call("XGROUP", "CREATE", self.key, self.group, self.start, "MKSTREAM")
        except ServerError as error:
            if error.code != "BUSYGROUP":
                raise
        cursor: Arg = "0"
        while not self.stopping:
            entries = _entries((yield Call(*self._reading(), "STREAMS", self.key, cursor)))
            if not entries:
                break
            yield from self._settle(entries)
            cursor = entries[-1][0]

    @procedure
    def round(self) -> Steps[int]:
        """Take over what others left too long, then wait up to a beat for what is new: how many records."""
        claim = (
            "XAUTOCLAIM",
            self.key,
            self.group,
            self.consumer,
            self.min_idle_ms,
            "0",
            "COUNT",
            self.count,
        )
        claimed = (yield Call(*claim))[1]
        yield from self._settle(claimed)
        if self.stopping:
            return len(claimed)
        grace = (self.beat_ms + PARK_GRACE_MS) / 1000
        reading = (*self._reading(), "BLOCK", self.beat_ms, "STREAMS", self.key, ">")
        entries = _entries((yield Call(*reading, timeout=grace)))
        yield from self._settle(entries)
        return len(claimed) + len(entries)

    def _reading(self) -> tuple[Arg, ...]:
        return ("XREADGROUP", "GROUP", self.group, self.consumer, "COUNT", self.count)

    def _settle(self, entries: Sequence[Reply]) -> Steps[None]:
        """Handle each record and acknowledge those that succeed; what was deleted meanwhile is acknowledged too."""
        for entry in entries:
            if self.stopping:
                return
            entry_id = entry[0]
            outcome: Outcome = Done()
            if entry[1]:
                told = yield Call("XPENDING", self.key, self.group, entry_id, entry_id, 1)
                record_id, fields = _record(entry)
                attempts = int(told[0][3]) if told else 1
                outcome = yield _HandleRecord(
                    StreamRecord(record_id, fields, attempts, self.group), self.handler
                )
            if isinstance(outcome, Done):
                yield Call("XACK", self.key, self.group, entry_id)


class StreamRetention:
    """Trims streams of any queues every tick, to the windows it was given."""

    def __init__(
        self, connection: Connection | Link, clock: Clock | None = None, *, tick_ms: int = 1_000
    ) -> None:
        self.link = connection if isinstance(connection, Link) else Link(connection)
        self.clock: Clock = clock if clock is not None else SystemClock()
        self.tick_ms = positive_int("tick_ms", tick_ms)
        self.stopping = False
        self._windows: dict[tuple[str, str], Window] = {}

    def keep(self, queue: str, stream: str, window: Window) -> None:
        """Keep a stream to a window; ArgumentError for a malformed one."""
        Keys(queue)
        trim_words(window, 0)
        self._windows[queue, stream] = window

    def release(self, queue: str, stream: str) -> bool:
        """Trim a stream no more; whether it was."""
        return self._windows.pop((queue, stream), None) is not None

    def stop(self) -> None:
        """End after the sweep in hand; takes at most a tick."""
        self.stopping = True

    @procedure
    def sweep(self) -> Steps[int]:
        """Trim every stream once: how many records went. A trim that fails is logged and passed over."""
        removed = 0
        for (queue, stream), window in list(self._windows.items()):
            words = trim_words(window, now_ms(self.clock))
            try:
                removed += int((yield Call("XTRIM", Keys(queue).stream(stream), *words)))
            except EchoError as error:
                _log.warning("stream %s of queue %s was not trimmed: %s", stream, queue, error)
        return removed

    def steps(self) -> Steps[None]:
        """Sweep every tick, until stopped."""
        while not self.stopping:
            yield from self.sweep.steps()
            yield Wait(self.tick_ms)
