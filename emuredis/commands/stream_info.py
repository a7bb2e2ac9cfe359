"""XINFO: what a stream, its groups and their consumers are like.

Counters are 64-bit integers in the server and wrap round there; here they do so when they are shown.

To add a field: in the order in which the server gives it, and a line in the conformance file ``streams``.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.commands.help_texts import XINFO
from emuredis.commands.stream_ids import format_id, render, render_all
from emuredis.errors import ReplyError, shown
from emuredis.replies import Map, Reply, Status
from emuredis.spec import command, container
from emuredis.values.stream import LAST_ID, SEQ_MAX, UNKNOWN, Consumer, Group, Stream

if TYPE_CHECKING:
    from emuredis.engine.session import Session

__all__: list[str] = []

_COUNT = 10  # of what XINFO STREAM FULL shows unless told otherwise

container("XINFO", "Commands that look into streams.", group="stream", since="5.0.0")


def _signed(number: int) -> int:
    return (number + (1 << 63) & SEQ_MAX) - (1 << 63)


def _stream(ctx: Session, key: bytes) -> Stream:
    stream: Stream | None = ctx.db.read(key, Stream)
    if stream is None:
        raise errors.no_such_key()
    return stream


def _full_count(argv: list[bytes]) -> int | None:
    """The count of FULL, 0 for no limit; None without FULL."""
    if len(argv) == 3:
        return None
    if (
        len(argv) not in (4, 6)
        or argv[3].lower() != b"full"
        or (len(argv) == 6 and argv[4].lower() != b"count")
    ):
        name = shown(argv[1])
        raise ReplyError(f"ERR unknown subcommand or wrong number of arguments for '{name}'. Try XINFO HELP.")
    count = integer(argv[5]) if len(argv) == 6 else _COUNT
    return _COUNT if count < 0 else count


@command("XINFO STREAM key full-block=[FULL [COUNT count:integer]]", "readonly", keys="RO access @2", group="stream",
         since="5.0.0", complexity="O(1), and O(N) in what FULL shows")  # fmt: skip
def xinfo_stream(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells about a stream; with FULL, about everything in it."""
    stream = _stream(ctx, argv[2])
    count = _full_count(argv)
    told = Map([
        b"length", stream.length,
        b"radix-tree-keys", stream.node_count(),
        b"radix-tree-nodes", stream.tree_nodes(),
        b"last-generated-id", format_id(stream.last_id),
        b"max-deleted-entry-id", format_id(stream.max_deleted_id),
        b"entries-added", _signed(stream.entries_added),
        b"recorded-first-entry-id", format_id(stream.first_id),
    ])  # fmt: skip
    if count is None:
        first, last = stream.range(0, LAST_ID, 1), stream.range(0, LAST_ID, 1, reverse=True)
        told += [b"groups", len(stream.groups)]
        told += [b"first-entry", render(*first[0]) if first else None]
        told += [b"last-entry", render(*last[0]) if last else None]
    else:
        told += [b"entries", render_all(stream.range(0, LAST_ID, count))]
        groups = sorted(stream.groups.items())
        told += [b"groups", [_full_group(stream, name, group, count) for name, group in groups]]
    return told


def _progress(stream: Stream, group: Group) -> list[Reply]:
    read, lag = group.entries_read, stream.lag(group)
    return [
        b"last-delivered-id", format_id(group.last_id),
        b"entries-read", None if read == UNKNOWN else _signed(read),
        b"lag", None if lag is None else _signed(lag),
    ]  # fmt: skip


def _full_group(stream: Stream, name: bytes, group: Group, count: int) -> Reply:
    pending = [
        [format_id(entry_id), entry.consumer.name, entry.time, entry.count]
        for entry_id, entry in islice(group.pel.items(), count or None)
    ]
    consumers = [_full_consumer(consumer, count) for _, consumer in sorted(group.consumers.items())]
    return Map([
        b"name", name, *_progress(stream, group),
        b"pel-count", len(group.pel), b"pending", pending, b"consumers", consumers,
    ])  # fmt: skip


def _full_consumer(consumer: Consumer, count: int) -> Reply:
    pending = [
        [format_id(entry_id), entry.time, entry.count]
        for entry_id, entry in islice(consumer.pel.items(), count or None)
    ]
    return Map([
        b"name", consumer.name, b"seen-time", consumer.seen, b"active-time", consumer.active,
        b"pel-count", len(consumer.pel), b"pending", pending,
    ])  # fmt: skip


@command(
    "XINFO GROUPS key", "readonly", keys="RO access @2", group="stream", since="5.0.0", complexity="O(1)"
)
def xinfo_groups(ctx: Session, argv: list[bytes]) -> Reply:
    """Lists the consumer groups of a stream."""
    stream = _stream(ctx, argv[2])
    return [
        Map([
            b"name", name, b"consumers", len(group.consumers), b"pending", len(group.pel), *_progress(stream, group),
        ])
        for name, group in sorted(stream.groups.items())
    ]  # fmt: skip


@command("XINFO CONSUMERS key group", "readonly", keys="RO access @2", group="stream", since="5.0.0",
         complexity="O(1)", tips="nondeterministic_output")  # fmt: skip
def xinfo_consumers(ctx: Session, argv: list[bytes]) -> Reply:
    """Lists the consumers of a group."""
    group = _stream(ctx, argv[2]).groups.get(argv[3])
    if group is None:
        raise ReplyError(f"NOGROUP No such consumer group '{shown(argv[3])}' for key name '{shown(argv[2])}'")
    now = ctx.now
    return [
        Map([
            b"name", name, b"pending", len(consumer.pel), b"idle", max(now - consumer.seen, 0),
            b"inactive", UNKNOWN if consumer.active == UNKNOWN else now - consumer.active,
        ])
        for name, consumer in sorted(group.consumers.items())
    ]  # fmt: skip


@command("XINFO HELP", "loading stale", group="stream", since="5.0.0", complexity="O(1)")
def xinfo_help(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells about the subcommands."""
    return [Status(line) for line in XINFO]
