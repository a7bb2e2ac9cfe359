"""Streams without groups: appending, reading, waiting for entries, trimming, deleting.

Responsible for the commands that treat a stream as a log, and for the options that XREAD has in common with XREADGROUP,
which is in `emuredis.commands.stream_groups`. What XINFO tells is in `emuredis.commands.stream_info`.

Unlike other collections a stream stays when it is empty, and unlike them it is not taken from by those who wait for it:
every XADD wakes all of them. ``$`` means "what comes after now", so it is made a real id before the command is parked.

To add a command: its handler here, and its lines in the conformance file ``streams``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.args import integer, milliseconds
from emuredis.commands.scanning import TYPE_NAMES
from emuredis.commands.stream_ids import format_id, interval, parse_id, render_all, special
from emuredis.errors import ReplyError
from emuredis.keyspace.notify import STREAM
from emuredis.replies import NULL_ARRAY, OK, PairMap, Reply
from emuredis.scalars import parse_int
from emuredis.spec import command
from emuredis.values.stream import LAST_ID, SEQ_MAX, Stream

if TYPE_CHECKING:
    from emuredis.engine.session import Session

__all__ = ["ReadOptions"]

TYPE_NAMES[Stream] = b"stream"

# What one approximate trimming removes at most unless LIMIT says otherwise: so many full nodes, so many entries.
_MOST_NODES, _MOST_TRIMMED = 100, 1_000_000
_USUAL_ENTRIES = 100


# -- appending and trimming --------------------------------------------------------------------


class _Trim:
    """MAXLEN or MINID with their options; ``maxlen`` is None when it is MINID."""

    __slots__ = ("approx", "limit", "maxlen", "minid")

    def __init__(self) -> None:
        self.maxlen: int | None = None
        self.minid = 0
        self.approx = False
        self.limit = 0

    def read(self, argv: list[bytes], at: int) -> int:
        """Read the word at ``at`` and what follows it; the position of the threshold."""
        minid = argv[at].lower() == b"minid"
        at += 1
        if at + 1 < len(argv) and argv[at] in (b"~", b"="):
            self.approx = argv[at] == b"~"
            at += 1
        if minid:
            self.minid = parse_id(argv[at])
        else:
            self.maxlen = integer(argv[at])
            if self.maxlen < 0:
                raise ReplyError("ERR The MAXLEN argument must be >= 0.")
        return at

    def apply(self, stream: Stream) -> int:
        return stream.trim(self.maxlen, self.minid, self.approx, self.limit)


def _parse_options(ctx: Session, argv: list[bytes], xadd: bool) -> tuple[_Trim | None, bool, int]:
    """What stands between the key and the id of XADD, or behind the key of XTRIM: trimming, NOMKSTREAM, its end."""
    trim, nomkstream, limit = None, False, None
    at, size = 2, len(argv)
    while at < size:
        word, more = argv[at].lower(), at + 1 < size
        if word in (b"maxlen", b"minid") and more:
            if trim is not None:
                raise ReplyError(
                    "ERR syntax error, MAXLEN and MINID options at the same time are not compatible"
                )
            trim = _Trim()
            at = trim.read(argv, at)
        elif word == b"limit" and more:
            at += 1
            limit = integer(argv[at])
            if limit < 0:
                raise ReplyError("ERR The LIMIT argument must be >= 0.")
        elif xadd and word == b"nomkstream":
            nomkstream = True
        elif xadd:
            _parse_new_id(argv[at])
            break
        else:
            raise errors.syntax()
        at += 1
    _set_limit(trim, limit, xadd, ctx.engine.limits.stream_node_entries)
    return trim, nomkstream, at


def _set_limit(trim: _Trim | None, limit: int | None, xadd: bool, node_entries: int) -> None:
    """Take over LIMIT, or what holds without: only an approximate trimming has one."""
    if limit and trim is None:
        raise ReplyError("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy")
    if trim is None and not xadd:
        raise ReplyError("ERR syntax error, XTRIM must be called with a trimming strategy")
    if limit is not None:
        if trim is None or not trim.approx:
            raise ReplyError("ERR syntax error, LIMIT cannot be used without the special ~ option")
        trim.limit = limit
    elif trim is not None and trim.approx:
        trim.limit = min(_MOST_NODES * node_entries, _MOST_TRIMMED) or _MOST_NODES * _USUAL_ENTRIES


def _parse_new_id(text: bytes) -> tuple[int | None, bool]:
    """The id given to XADD, None for ``*``, and whether its sequence was given."""
    word = special(text)
    if word == b"*":
        return None, False
    head, _, sequence = word.partition(b"-")
    if sequence == b"*":
        return parse_id(head), False
    return parse_id(text), True


def _new_id(stream: Stream, given: int | None, whole: bool, now: int) -> int:
    """The id of the next entry; ERR unless it is greater than every id before."""
    last = stream.last_id
    if last == LAST_ID:
        raise ReplyError("ERR The stream has exhausted the last possible ID, unable to add more items")
    if given is None:
        return now << 64 if now > last >> 64 else last + 1
    if not whole and given >> 64 == last >> 64 and last & SEQ_MAX < SEQ_MAX:
        return last + 1
    if given <= last:
        raise ReplyError("ERR The ID specified in XADD is equal or smaller than the target stream top item")
    return given


@command("XADD key [NOMKSTREAM] trim=[strategy=(MAXLEN|MINID) operator=[equal= =|approximately= ~] threshold "
         "[LIMIT count:integer]] id-selector=(auto-id= *|id) data=(field value)...",
         "write denyoom fast", keys="RW update @1", group="stream", since="5.0.0",
         complexity="O(1), and O(N) for N entries trimmed", tips="nondeterministic_output")  # fmt: skip
def xadd(ctx: Session, argv: list[bytes]) -> Reply:
    """Appends an entry to a stream and answers its id."""
    trim, nomkstream, at = (None, False, 2) if argv[2] == b"*" else _parse_options(ctx, argv, True)
    if len(argv) - at < 3 or not (len(argv) - at) & 1:
        raise errors.wrong_arity("xadd")
    given, whole = _parse_new_id(argv[at])
    if given == 0 and whole:
        raise ReplyError("ERR The ID specified in XADD must be greater than 0-0")
    key, db = argv[1], ctx.db
    stream = db.write(key, Stream)
    if stream is None:
        if nomkstream:
            return None
        stream = db.add(key, Stream(ctx.engine.limits))
    entry_id = _new_id(stream, given, whole, ctx.now)
    stream.append(entry_id, tuple(argv[at + 1 :]))
    db.touch(key, STREAM, b"xadd")
    if trim is not None and trim.apply(stream):
        db.notify(key, STREAM, b"xtrim")
    db.signal(key, stream)
    return format_id(entry_id)


@command("XTRIM key trim=(strategy=(MAXLEN|MINID) operator=[equal= =|approximately= ~] threshold "
         "[LIMIT count:integer])", "write", keys="RW delete @1",
         group="stream", since="5.0.0", complexity="O(N) in the number of entries removed",
         tips="nondeterministic_output")  # fmt: skip
def xtrim(ctx: Session, argv: list[bytes]) -> Reply:
    """Removes the oldest entries of a stream; how many were removed."""
    trim, _, _ = _parse_options(ctx, argv, False)
    key, db = argv[1], ctx.db
    stream = db.write(key, Stream)
    if stream is None:
        return 0
    assert trim is not None
    deleted = trim.apply(stream)
    if deleted:
        db.touch(key, STREAM, b"xtrim")
    return deleted


@command("XDEL key id...", "write fast", keys="RW delete @1", group="stream", since="5.0.0",
         complexity="O(1) for each entry, whatever the length of the stream")  # fmt: skip
def xdel(ctx: Session, argv: list[bytes]) -> Reply:
    """Removes entries by their ids; how many there were."""
    key, db = argv[1], ctx.db
    stream = db.write(key, Stream)
    if stream is None:
        return 0
    deleted = sum([stream.delete(entry_id) for entry_id in [parse_id(text) for text in argv[2:]]])
    if deleted:
        db.touch(key, STREAM, b"xdel")
    return deleted


@command("XSETID key last-id [ENTRIESADDED entries-added:integer] [MAXDELETEDID max-deleted-id]", "write denyoom fast",
         keys="RW update @1", group="stream", since="5.0.0", complexity="O(1)")  # fmt: skip
def xsetid(ctx: Session, argv: list[bytes]) -> Reply:
    """Sets what a stream remembers of its past, as replication needs it."""
    last_id = parse_id(argv[2])
    entries_added, max_deleted_id = None, 0
    at = 3
    while at < len(argv):
        word = argv[at].lower()
        at += 1
        if word == b"entriesadded" and at < len(argv):
            entries_added = integer(argv[at])
            if entries_added < 0:
                raise ReplyError("ERR entries_added must be positive")
        elif word == b"maxdeletedid" and at < len(argv):
            max_deleted_id = parse_id(argv[at])
            if last_id < max_deleted_id:
                raise ReplyError(
                    "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id"
                )
        else:
            raise errors.syntax()
        at += 1
    key, db = argv[1], ctx.db
    stream = db.write(key, Stream)
    if stream is None:
        raise errors.no_such_key()
    if last_id < stream.max_deleted_id:
        raise ReplyError("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id")
    if stream.length:
        if last_id < stream.top_id():
            raise ReplyError("ERR The ID specified in XSETID is smaller than the target stream top item")
        if entries_added is not None and entries_added < stream.length:
            raise ReplyError(
                "ERR The entries_added specified in XSETID is smaller than the target stream length"
            )
    stream.last_id = last_id
    if entries_added is not None:
        stream.entries_added = entries_added
    if max_deleted_id:
        stream.max_deleted_id = max_deleted_id
    db.alter(key, STREAM, b"xsetid")
    return OK


# -- ranges ------------------------------------------------------------------------------------


@command("XLEN key", "readonly fast", keys="RO @1", group="stream", since="5.0.0", complexity="O(1)")
def xlen(ctx: Session, argv: list[bytes]) -> Reply:
    """Counts the entries of a stream."""
    stream = ctx.db.read(argv[1], Stream)
    return 0 if stream is None else stream.length


def _range(ctx: Session, argv: list[bytes], start: bytes, end: bytes, reverse: bool) -> Reply:
    first, last = interval(start, end)
    count = -1
    for at in range(4, len(argv), 2):
        if argv[at].lower() != b"count" or at + 1 == len(argv):
            raise errors.syntax()
        count = max(integer(argv[at + 1]), 0)
    stream = ctx.db.read(argv[1], Stream)
    if stream is None:
        return []
    return render_all(stream.range(first, last, max(count, 0), reverse)) if count else NULL_ARRAY


_RANGE = "O(log(N)+M) with N the number of entries and M the number returned"


@command("XRANGE key start end [COUNT count:integer]", "readonly", keys="RO access @1", group="stream", since="5.0.0",
         complexity=_RANGE)  # fmt: skip
def xrange(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the entries between two ids."""
    return _range(ctx, argv, argv[2], argv[3], False)


@command("XREVRANGE key end start [COUNT count:integer]", "readonly", keys="RO access @1", group="stream",
         since="5.0.0", complexity=_RANGE)  # fmt: skip
def xrevrange(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the entries between two ids, the last one first."""
    return _range(ctx, argv, argv[3], argv[2], True)


# -- reading what is new -----------------------------------------------------------------------


class ReadOptions:
    """The arguments of XREAD and XREADGROUP; ``wait`` is None without BLOCK."""

    __slots__ = ("consumer", "count", "group", "ids", "ids_at", "keys", "noack", "wait")

    def __init__(self, argv: list[bytes], now: int, with_group: bool) -> None:
        self.count = 0
        self.wait: int | None = None
        self.noack = False
        self.group: bytes | None = None
        self.consumer = b""
        at, size = 1, len(argv)
        while at < size:
            word, more = argv[at].lower(), size - at - 1
            if word == b"streams" and more:
                break
            at += 1 + self._read(word, argv, at, more, now, with_group)
        else:
            raise errors.syntax()
        if (size - at) % 2 == 0:
            name, symbol = ("xreadgroup", ">") if with_group else ("xread", "$")
            raise ReplyError(
                f"ERR Unbalanced '{name}' list of streams: for each stream key an ID or '{symbol}' must be specified."
            )
        self.ids_at = at + 1 + (size - at) // 2
        self.keys, self.ids = argv[at + 1 : self.ids_at], argv[self.ids_at :]
        if with_group and self.group is None:
            raise ReplyError("ERR Missing GROUP option for XREADGROUP")

    def _read(self, word: bytes, argv: list[bytes], at: int, more: int, now: int, with_group: bool) -> int:
        """Read one option; how many arguments it has."""
        if word == b"block" and more:
            wait = parse_int(argv[at + 1])
            if wait is None:
                raise ReplyError("ERR timeout is not an integer or out of range")
            self.wait = milliseconds(wait, now)
            return 1
        if word == b"count" and more:
            self.count = max(integer(argv[at + 1]), 0)
            return 1
        if (word == b"group" and more >= 2) or word == b"noack":
            if not with_group:
                raise ReplyError(
                    f"ERR The {word.decode().upper()} option is only supported by XREADGROUP. You called XREAD instead."
                )
            if word == b"noack":
                self.noack = True
                return 0
            self.group, self.consumer = argv[at + 1 : at + 3]
            return 2
        raise errors.syntax()


def _after(stream: Stream | None, text: bytes) -> int:
    """The id that XREAD reads behind."""
    word = special(text)
    if word == b"$":
        return 0 if stream is None else stream.last_id
    if word == b"+":  # the last entry, if it is still there
        return 0 if stream is None else max(stream.last_id - 1, 0)
    if word == b">":
        raise ReplyError(
            "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option."
        )
    return parse_id(text)


@command("XREAD [COUNT count:integer] [BLOCK milliseconds:integer] STREAMS streams=(key... id...)",
         "readonly blocking movablekeys", keys="RO access @STREAMS/1..-1%2", group="stream", since="5.0.0")  # fmt: skip
def xread(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns what was added to streams after given ids, waiting for it with BLOCK."""
    options = ReadOptions(argv, ctx.now, False)
    read = ctx.db.read
    ids = [_after(read(key, Stream), text) for key, text in zip(options.keys, options.ids, strict=True)]
    reply = PairMap()
    for key, after in zip(options.keys, ids, strict=True):
        stream = read(key, Stream)
        if stream is not None and stream.length and stream.top_id() > after:
            reply += [key, render_all(stream.range(after + 1, LAST_ID, options.count))]
    if reply:
        return reply
    if options.wait is None:
        return NULL_ARRAY
    resolved = argv[: options.ids_at]
    resolved += [
        format_id(after) if special(text) == b"$" else text
        for text, after in zip(options.ids, ids, strict=True)
    ]
    return ctx.park(options.keys, Stream, options.wait, NULL_ARRAY, resolved=resolved)
