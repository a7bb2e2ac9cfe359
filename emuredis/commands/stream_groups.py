"""Consumer groups: reading with one, acknowledging, and taking over what others left pending.

A group hands every new entry to one of its consumers (``>``); what was handed out and not acknowledged is pending, can
be read again by its consumer (any other id) and claimed by others. Consumers come to be when they are first named.

What happens to groups breaks no WATCH, as in the server, and only creating and dropping them is announced. A parked
XREADGROUP ends with an error when its key or its group goes.

To add a command: its handler here, and its lines in the conformance file ``streams``.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.commands.help_texts import XGROUP
from emuredis.commands.stream_ids import (
    find_group,
    format_id,
    interval,
    interval_start,
    no_group,
    parse_id,
    parse_loose_id,
    render,
    special,
)
from emuredis.commands.streams import ReadOptions
from emuredis.errors import ReplyError, shown
from emuredis.keyspace.notify import STREAM
from emuredis.replies import NULL_ARRAY, OK, PairMap, Reply, Status
from emuredis.scalars import LLONG_MAX, parse_int
from emuredis.spec import command, container
from emuredis.values.stream import LAST_ID, UNKNOWN, Consumer, Group, Pending, Stream

if TYPE_CHECKING:
    from emuredis.engine.session import Session

__all__: list[str] = []

_ATTEMPTS = 10  # entries that XAUTOCLAIM looks at for each it may return
_MOST_CLAIMED = LLONG_MAX // 16
_MEMORY = 1 << 32  # a COUNT for which no server has the memory


# -- XGROUP ------------------------------------------------------------------------------------

container("XGROUP", "Commands that manage consumer groups.", group="stream", since="5.0.0")


def _wrong_call(argv: list[bytes]) -> ReplyError:
    name = errors.shown(argv[1], 128)
    return ReplyError(
        f"ERR unknown subcommand or wrong number of arguments for '{name}'. Try {argv[0].upper().decode()} HELP."
    )


def _group_options(argv: list[bytes], create: bool) -> tuple[bool, int]:
    """MKSTREAM and ENTRIESREAD, from the fifth word on."""
    mkstream, entries_read = False, UNKNOWN
    at = 5
    while at < len(argv):
        word = argv[at].lower()
        if create and word == b"mkstream":
            mkstream = True
        elif word == b"entriesread" and at + 1 < len(argv):
            at += 1
            entries_read = integer(argv[at])
            if entries_read < 0 and entries_read != UNKNOWN:
                raise ReplyError("ERR value for ENTRIESREAD must be positive or -1")
        else:
            raise _wrong_call(argv)
        at += 1
    return mkstream, entries_read


def _stream_for_group(ctx: Session, key: bytes) -> Stream:
    stream: Stream | None = ctx.db.write(key, Stream)
    if stream is None:
        raise ReplyError(
            "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the "
            "MKSTREAM option to create an empty stream automatically."
        )
    return stream


def _group_to_change(ctx: Session, argv: list[bytes]) -> tuple[Stream, Group]:
    stream = _stream_for_group(ctx, argv[2])
    group = stream.groups.get(argv[3])
    if group is None:
        raise ReplyError(f"NOGROUP No such consumer group '{shown(argv[3])}' for key name '{shown(argv[2])}'")
    return stream, group


@command("XGROUP CREATE key group id-selector=(id|new-id= $) [MKSTREAM] "
         "[ENTRIESREAD entriesread=(entries-read:integer)]", "write denyoom",
         keys="RW insert @2", group="stream", since="5.0.0", complexity="O(1)")  # fmt: skip
def xgroup_create(ctx: Session, argv: list[bytes]) -> Reply:
    """Creates a consumer group."""
    mkstream, entries_read = _group_options(argv, True)
    key, db = argv[2], ctx.db
    stream = db.write(key, Stream) if mkstream else _stream_for_group(ctx, key)
    if len(argv) > 8:
        raise _wrong_call(argv)
    last = 0 if stream is None else stream.last_id
    last_id = last if special(argv[4]) == b"$" else parse_id(argv[4])
    announce = db.alter
    if stream is None:
        stream = db.add(key, Stream(ctx.engine.limits))
        announce = db.touch
    elif argv[3] in stream.groups:
        raise ReplyError("BUSYGROUP Consumer Group name already exists")
    stream.groups[argv[3]] = Group(last_id, entries_read)
    announce(key, STREAM, b"xgroup-create")
    return OK


@command("XGROUP SETID key group id-selector=(id|new-id= $) "
         "[ENTRIESREAD entriesread=(entries-read:integer)]", "write", keys="RW update @2",
         group="stream", since="5.0.0", complexity="O(1)")  # fmt: skip
def xgroup_setid(ctx: Session, argv: list[bytes]) -> Reply:
    """Sets how far a group has read."""
    _, entries_read = _group_options(argv, False)
    stream, group = _group_to_change(ctx, argv)
    if len(argv) > 7:
        raise _wrong_call(argv)
    group.last_id = stream.last_id if special(argv[4]) == b"$" else parse_loose_id(argv[4])
    group.entries_read = entries_read
    ctx.db.alter(argv[2], STREAM, b"xgroup-setid")
    return OK


@command("XGROUP DESTROY key group", "write", keys="RW delete @2", group="stream", since="5.0.0",
         complexity="O(N) in the number of pending entries")  # fmt: skip
def xgroup_destroy(ctx: Session, argv: list[bytes]) -> Reply:
    """Destroys a consumer group; 1 if there was one."""
    stream = _stream_for_group(ctx, argv[2])
    if stream.groups.pop(argv[3], None) is None:
        return 0
    ctx.db.alter(argv[2], STREAM, b"xgroup-destroy")
    ctx.db.signal(argv[2], stream)
    return 1


@command("XGROUP CREATECONSUMER key group consumer", "write denyoom", keys="RW insert @2", group="stream",
         since="6.2.0", complexity="O(1)")  # fmt: skip
def xgroup_createconsumer(ctx: Session, argv: list[bytes]) -> Reply:
    """Creates a consumer in a group; 1 if it is new."""
    _, group = _group_to_change(ctx, argv)
    if argv[4] in group.consumers:
        return 0
    _consumer(ctx, argv[2], group, argv[4])
    return 1


@command("XGROUP DELCONSUMER key group consumer", "write", keys="RW delete @2", group="stream", since="5.0.0",
         complexity="O(N) in the number of its pending entries")  # fmt: skip
def xgroup_delconsumer(ctx: Session, argv: list[bytes]) -> Reply:
    """Deletes a consumer and what is pending for it; how much that was."""
    _, group = _group_to_change(ctx, argv)
    pending = group.drop_consumer(argv[4])
    if pending is None:
        return 0
    ctx.db.alter(argv[2], STREAM, b"xgroup-delconsumer")
    return pending


@command("XGROUP HELP", "loading stale", group="stream", since="5.0.0", complexity="O(1)")
def xgroup_help(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells about the subcommands."""
    return [Status(line) for line in XGROUP]


def _consumer(ctx: Session, key: bytes, group: Group, name: bytes) -> Consumer:
    """The consumer of that name, new if need be."""
    consumer = group.consumers.get(name)
    if consumer is None:
        consumer = group.consumers[name] = Consumer(name, ctx.now)
        ctx.db.alter(key, STREAM, b"xgroup-createconsumer")
    return consumer


# -- reading -----------------------------------------------------------------------------------


def _place(stream: Stream | None, key: bytes, name: bytes, text: bytes) -> tuple[Group, int]:
    """The group and the id that XREADGROUP reads behind, `LAST_ID` for ``>``."""
    group = None if stream is None else stream.groups.get(name)
    if group is None:
        raise no_group(key, name, " in XREADGROUP with GROUP option")
    word = special(text)
    if word in (b"$", b"+"):
        raise ReplyError(
            f"ERR The {word.decode()} ID is meaningless in the context of XREADGROUP: you want to read the history of "
            "this consumer by specifying a proper ID, or use the > ID to get new messages. "
            f"The {word.decode()} ID would just return an empty result set."
        )
    return group, LAST_ID if word == b">" else parse_id(text)


def _deliver(stream: Stream, group: Group, consumer: Consumer, options: ReadOptions, now: int) -> list[Reply]:
    """New entries: note in the group that they were read, and by whom unless NOACK."""
    entries = stream.range(group.last_id + 1, LAST_ID, options.count)
    for entry_id, _ in entries:
        group.read(stream, entry_id)
        if not options.noack:
            group.deliver(entry_id, consumer, now)
            consumer.active = now
    return [render(entry_id, entry) for entry_id, entry in entries]


def _history(stream: Stream, consumer: Consumer, after: int, count: int, now: int) -> list[Reply]:
    """What is pending for the consumer; an entry deleted meanwhile has lost its fields."""
    found: list[Reply] = []
    for entry_id in islice(consumer.pel.irange(after + 1), count or None):
        entry = stream.get(entry_id)
        if entry is None:
            found.append([format_id(entry_id), NULL_ARRAY])
        else:
            pending = consumer.pel[entry_id]
            pending.time = now
            pending.count += 1
            found.append(render(entry_id, entry))
    return found


@command("XREADGROUP GROUP group-block=(group consumer) [COUNT count:integer] [BLOCK milliseconds:integer] [NOACK] "
         "STREAMS streams=(key... id...)", "write blocking movablekeys", keys="RO access @STREAMS/4..-1%2",
         group="stream", since="5.0.0", complexity="O(M) for each stream with M entries returned")  # fmt: skip
def xreadgroup(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns new entries, or what is pending for a consumer, waiting for new ones with BLOCK."""
    options, db, now = ReadOptions(argv, ctx.now, True), ctx.db, ctx.now
    assert options.group is not None
    places = [
        _place(db.read_to_change(key, Stream), key, options.group, text)
        for key, text in zip(options.keys, options.ids, strict=True)
    ]
    reply = PairMap()
    for key, (group, after) in zip(options.keys, places, strict=True):
        stream = db.read(key, Stream)
        consumer = _consumer(ctx, key, group, options.consumer)
        consumer.seen = now
        if after != LAST_ID:
            found = _history(stream, consumer, after, options.count, now)
        elif stream.length and stream.top_id() > group.last_id:
            found = _deliver(stream, group, consumer, options, now)
        else:
            continue
        db.alter(key, STREAM, b"")
        reply += [key, found]
    if reply:
        return reply
    if options.wait is None:
        return NULL_ARRAY
    return ctx.park(options.keys, Stream, options.wait, NULL_ARRAY, needs_keys=True)


# -- acknowledging and claiming ----------------------------------------------------------------


@command("XACK key group id...", "write fast", keys="RW update @1", group="stream", since="5.0.0",
         complexity="O(log(N)) for each id, N being the number of pending entries")  # fmt: skip
def xack(ctx: Session, argv: list[bytes]) -> Reply:
    """Acknowledges entries: they are pending no more; how many there were."""
    stream = ctx.db.read_to_change(argv[1], Stream)
    group = None if stream is None else stream.groups.get(argv[2])
    if group is None:
        return 0
    acknowledged = sum([group.acknowledge(entry_id) for entry_id in [parse_id(text) for text in argv[3:]]])
    if acknowledged:
        ctx.db.alter(argv[1], STREAM, b"")
    return acknowledged


def _claim(group: Group, entry_id: int, pending: Pending, consumer: Consumer, now: int) -> None:
    group.hand_over(entry_id, pending, consumer)
    consumer.active = now


class _ClaimOptions:
    """What follows the ids of XCLAIM. A ``time`` in the future, or before 1970, is taken for now."""

    __slots__ = ("force", "justid", "last_id", "retrycount", "time")

    def __init__(self, argv: list[bytes], at: int, now: int) -> None:
        self.force = self.justid = False
        self.last_id = 0
        self.retrycount = -1
        self.time = now
        while at < len(argv):
            word = argv[at].lower()
            if word == b"force":
                self.force = True
            elif word == b"justid":
                self.justid = True
            elif at + 1 == len(argv) or not self._read(word, argv[at + 1], now):
                name = shown(argv[at])
                raise ReplyError(f"ERR Unrecognized XCLAIM option '{name}'")
            else:
                at += 1
            at += 1
        if not 0 <= self.time <= now:
            self.time = now

    def _read(self, word: bytes, text: bytes, now: int) -> bool:
        if word == b"lastid":
            self.last_id = parse_id(text)
            return True
        if word not in (b"idle", b"time", b"retrycount"):
            return False
        number = parse_int(text)
        if number is None:
            raise ReplyError(f"ERR Invalid {word.decode().upper()} option argument for XCLAIM")
        if word == b"retrycount":
            self.retrycount = number
        else:
            self.time = now - number if word == b"idle" else number
        return True


def _min_idle(text: bytes, name: str) -> int:
    number = parse_int(text)
    if number is None:
        raise ReplyError(f"ERR Invalid min-idle-time argument for {name}")
    return max(number, 0)


def _leading_ids(argv: list[bytes], at: int) -> list[int]:
    """The ids from ``at`` on; the first word that is none begins the options."""
    ids = []
    for text in argv[at:]:
        try:
            ids.append(parse_id(text))
        except ReplyError:
            break
    return ids


@command("XCLAIM key group consumer min-idle-time id... [IDLE ms:integer] [TIME unix-time-milliseconds:unix-time] "
         "[RETRYCOUNT count:integer] [FORCE] [JUSTID] [LASTID lastid]", "write fast", keys="RW update @1",
         group="stream", since="5.0.0", complexity="O(log(N)) for each id, N being the number of pending entries",
         tips="nondeterministic_output")  # fmt: skip
def xclaim(ctx: Session, argv: list[bytes]) -> Reply:
    """Gives pending entries to a consumer; those it got."""
    key, now = argv[1], ctx.now
    stream, group = find_group(ctx.db.own(key, ctx.db.look(key)), key, argv[2])
    min_idle = _min_idle(argv[4], "XCLAIM")
    ids = _leading_ids(argv, 5)
    options = _ClaimOptions(argv, 5 + len(ids), now)
    changed = options.last_id > group.last_id
    group.last_id = max(group.last_id, options.last_id)
    consumer = _consumer(ctx, key, group, argv[3])
    consumer.seen = now
    claimed: list[Reply] = []
    for entry_id in ids:
        pending, entry = group.pel.get(entry_id), stream.get(entry_id)
        if entry is None:
            changed |= group.acknowledge(entry_id)
            continue
        if pending is None:
            if not options.force:
                continue
            group.deliver(entry_id, consumer, now)
            pending = group.pel[entry_id]
        elif min_idle and now - pending.time < min_idle:
            continue
        _claim(group, entry_id, pending, consumer, now)
        pending.time = options.time
        if options.retrycount >= 0:
            pending.count = options.retrycount
        elif not options.justid:
            pending.count += 1
        claimed.append(format_id(entry_id) if options.justid else render(entry_id, entry))
    if changed or claimed:
        ctx.db.alter(key, STREAM, b"")
    return claimed


def _autoclaim_options(argv: list[bytes]) -> tuple[int, bool]:
    count, justid = 100, False
    at = 6
    while at < len(argv):
        word = argv[at].lower()
        if word == b"count" and at + 1 < len(argv):
            at += 1
            number = parse_int(argv[at])
            if number is None or not 1 <= number <= _MOST_CLAIMED:
                raise ReplyError("ERR COUNT must be > 0")
            count = number
        elif word == b"justid":
            justid = True
        else:
            raise errors.syntax()
        at += 1
    return count, justid


@command("XAUTOCLAIM key group consumer min-idle-time start [COUNT count:integer] [JUSTID]", "write fast",
         keys="RW delete @1", group="stream", since="6.2.0", complexity="O(N) in COUNT",
         tips="nondeterministic_output")  # fmt: skip
def xautoclaim(ctx: Session, argv: list[bytes]) -> Reply:
    """Gives a consumer what has been pending for long; where to go on, what it got, and what is deleted."""
    key, now = argv[1], ctx.now
    value = ctx.db.own(key, ctx.db.look(key))
    min_idle = _min_idle(argv[4], "XAUTOCLAIM")
    start = interval_start(argv[5])
    count, justid = _autoclaim_options(argv)
    stream, group = find_group(value, key, argv[2])
    if count > _MEMORY:
        raise ReplyError("ERR Insufficient memory, failed allocating transient memory, COUNT too high.")
    consumer = _consumer(ctx, key, group, argv[3])
    consumer.seen = now
    claimed: list[Reply] = []
    deleted: list[Reply] = []
    attempts = count * _ATTEMPTS
    ids = list(islice(group.pel.irange(start), min(attempts, len(group.pel)) + 1))
    following = 0
    for tried, entry_id in enumerate(ids):
        if tried == attempts or len(claimed) + len(deleted) == count:
            following = entry_id
            break
        pending, entry = group.pel[entry_id], stream.get(entry_id)
        if entry is None:
            group.acknowledge(entry_id)
            deleted.append(format_id(entry_id))
        elif not min_idle or now - pending.time >= min_idle:
            _claim(group, entry_id, pending, consumer, now)
            pending.time = now
            pending.count += not justid
            claimed.append(format_id(entry_id) if justid else render(entry_id, entry))
    if claimed or deleted:
        ctx.db.alter(key, STREAM, b"")
    return [format_id(following), claimed, deleted]


# -- looking at what is pending ----------------------------------------------------------------


def _summary(group: Group) -> Reply:
    if not group.pel:
        return [0, None, None, NULL_ARRAY]
    consumers = [
        [name, b"%d" % len(consumer.pel)]
        for name, consumer in sorted(group.consumers.items())
        if consumer.pel
    ]
    return [
        len(group.pel),
        format_id(group.pel.peekitem(0)[0]),
        format_id(group.pel.peekitem(-1)[0]),
        consumers,
    ]


@command("XPENDING key group filters=[[IDLE min-idle-time:integer] start end count:integer [consumer]]", "readonly",
         keys="RO access @1", group="stream", since="5.0.0",
         complexity="O(N) in the number of entries looked at", tips="nondeterministic_output")  # fmt: skip
def xpending(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells what was delivered and not acknowledged: in sum, or entry by entry."""
    size = len(argv)
    if size == 3:
        return _summary(find_group(ctx.db.look(argv[1]), argv[1], argv[2])[1])
    if not 6 <= size <= 9:
        raise errors.syntax()
    at, min_idle = 3, 0
    if argv[3].lower() == b"idle":
        min_idle = integer(argv[4])
        if size < 8:
            raise errors.syntax()
        at = 5
    count = integer(argv[at + 2])
    first, last = interval(argv[at], argv[at + 1])
    _, group = find_group(ctx.db.look(argv[1]), argv[1], argv[2])
    pel = group.pel
    if at + 3 < size:
        consumer = group.consumers.get(argv[at + 3])
        if consumer is None:
            return []
        pel = consumer.pel
    now = ctx.now
    found: list[Reply] = []
    if count > 0 and first <= last:
        for entry_id in pel.irange(first, last):
            pending = pel[entry_id]
            idle = now - pending.time
            if min_idle and idle < min_idle:
                continue
            found.append([format_id(entry_id), pending.consumer.name, max(idle, 0), pending.count])
            if len(found) == count:
                break
    return found
