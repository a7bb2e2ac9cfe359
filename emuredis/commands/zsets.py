"""Sorted sets: scores, ranks, chance, popping from the ends.

Responsible for the commands that name members or take from an end. Ranges are in `emuredis.commands.zset_ranges`, the
algebra of several sets in `emuredis.commands.zset_algebra`, and what takes from the first of several keys or waits in
`emuredis.commands.blocking`.

A score is a float, never nan; ``ZADD key score member`` has a path of its own, every other form goes through `_plan`
and `_apply`, which do what the flags say one member after the other.

To add a command: its handler here, and its lines in the conformance file ``zsets``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.args import integer, number
from emuredis.commands.scanning import parse_cursor, parse_scan_options
from emuredis.errors import ReplyError
from emuredis.keyspace.notify import ZSET
from emuredis.replies import NULL_ARRAY, Pairs, Reply
from emuredis.scalars import LLONG_MAX, format_double, format_double_17, parse_float, parse_int
from emuredis.spec import command
from emuredis.values.zset import ZSet

if TYPE_CHECKING:
    from emuredis.engine.session import Session
    from emuredis.keyspace.database import Database

__all__ = ["popped"]

_FLAGS = frozenset([b"nx", b"xx", b"gt", b"lt", b"ch", b"incr"])
_LOG = "O(log(N)) for each member"


# -- setting scores ----------------------------------------------------------------------------


@command("ZADD key condition=[NX|XX] comparison=[GT|LT] change=[CH] increment=[INCR] data=(score:double member)...",
         "write denyoom fast", keys="RW update @1",
         group="sorted-set", since="1.2.0", complexity=_LOG)  # fmt: skip
def zadd(ctx: Session, argv: list[bytes]) -> Reply:
    """Adds members to a sorted set, or changes their scores."""
    if len(argv) != 4 or (score := parse_float(argv[2])) is None:
        return _zadd_many(ctx, argv)
    key, member = argv[1], argv[3]
    db = ctx.db
    value = db.write(key, ZSet)
    if value is None:
        value = db.add(key, ZSet(ctx.engine.limits))
    old = value.scores.get(member)
    if old != score:
        value.add(member, score)
        db.touch(key, ZSET, b"zadd")
        if old is None:
            return 1
    return 0


def _zadd_many(ctx: Session, argv: list[bytes]) -> Reply:
    flags, pairs = _plan(argv, 2, False)
    if flags:
        return _apply(ctx, argv[1], flags, pairs)
    key, db = argv[1], ctx.db
    value = db.write(key, ZSet)
    if value is None:
        value = db.add(key, ZSet(ctx.engine.limits))
    scores = value.scores
    changed = any(scores.get(member) != score for member, score in pairs)
    added: int = value.update(pairs)
    if changed:
        db.touch(key, ZSET, b"zadd")
    return added


def _plan(argv: list[bytes], at: int, increment: bool) -> tuple[set[bytes], list[tuple[bytes, float]]]:
    """The flags from ``at`` on, and the (member, score) pairs after them."""
    flags = {b"incr"} if increment else set()
    size = len(argv)
    while at < size and (word := argv[at].lower()) in _FLAGS:
        flags.add(word)
        at += 1
    if at == size or (size - at) % 2:
        raise errors.syntax()
    if b"nx" in flags:
        if b"xx" in flags:
            raise ReplyError("ERR XX and NX options at the same time are not compatible")
        if b"gt" in flags or b"lt" in flags:
            raise ReplyError("ERR GT, LT, and/or NX options at the same time are not compatible")
    if b"gt" in flags and b"lt" in flags:
        raise ReplyError("ERR GT, LT, and/or NX options at the same time are not compatible")
    if b"incr" in flags and size - at > 2:
        raise ReplyError("ERR INCR option supports a single increment-element pair")
    return flags, [(argv[place + 1], number(argv[place])) for place in range(at, size, 2)]


def _apply(ctx: Session, key: bytes, flags: set[bytes], pairs: list[tuple[bytes, float]]) -> Reply:
    """ZADD with flags."""
    db = ctx.db
    value = db.write(key, ZSet)
    if value is None:
        if b"xx" in flags:
            return None if b"incr" in flags else 0
        value = db.add(key, ZSet(ctx.engine.limits))
    return _finish(ctx, key, flags, *_set_each(value, flags, pairs))


def _set_each(
    value: ZSet, flags: set[bytes], pairs: list[tuple[bytes, float]]
) -> tuple[int, int, float | None]:
    """Set each score the flags allow: how many members are new, how many changed, the last score set."""
    only_new, only_old = b"nx" in flags, b"xx" in flags
    greater, less, increment = b"gt" in flags, b"lt" in flags, b"incr" in flags
    added = updated = 0
    last: float | None = None
    value.reserve(len(pairs), max([len(member) for member, _ in pairs]))
    for member, score in pairs:
        old = value.scores.get(member)
        if old is None:
            if only_old:
                continue
            value.add(member, score)
            added += 1
        else:
            if only_new:
                continue
            if increment:
                score += old
                if score != score:
                    raise ReplyError("ERR resulting score is not a number (NaN)")
            if (greater and score <= old) or (less and score >= old):
                continue
            if score != old:
                value.add(member, score)
                updated += 1
        last = score
    return added, updated, last


def _finish(
    ctx: Session, key: bytes, flags: set[bytes], added: int, updated: int, last: float | None
) -> Reply:
    increment = b"incr" in flags
    if added or updated:
        ctx.db.touch(key, ZSET, b"zincr" if increment else b"zadd")
    if increment:
        return last
    return added + updated if b"ch" in flags else added


@command("ZINCRBY key increment:integer member", "write denyoom fast", keys="RW access update @1", group="sorted-set",
         since="1.2.0", complexity="O(log(N))")  # fmt: skip
def zincrby(ctx: Session, argv: list[bytes]) -> Reply:
    """Adds to the score of a member."""
    flags, pairs = _plan(argv, 2, True)
    return _apply(ctx, argv[1], flags, pairs)


@command("ZREM key member...", "write fast", keys="RW delete @1", group="sorted-set", since="1.2.0",
         complexity=_LOG)  # fmt: skip
def zrem(ctx: Session, argv: list[bytes]) -> Reply:
    """Removes members from a sorted set."""
    key = argv[1]
    db = ctx.db
    value = db.write(key, ZSet)
    if value is None:
        return 0
    removed = 0
    for member in argv[2:]:
        if value.discard(member):
            removed += 1
    if removed:
        db.touch(key, ZSET, b"zrem")
        if not value.scores:
            db.drop_if_empty(key, value)
    return removed


# -- looking -----------------------------------------------------------------------------------


@command("ZCARD key", "readonly fast", keys="RO @1", group="sorted-set", since="1.2.0", complexity="O(1)")
def zcard(ctx: Session, argv: list[bytes]) -> Reply:
    """Says how many members a sorted set has."""
    value = ctx.db.read(argv[1], ZSet)
    return 0 if value is None else len(value.scores)


@command("ZSCORE key member", "readonly fast", keys="RO access @1", group="sorted-set", since="1.2.0",
         complexity="O(1)")  # fmt: skip
def zscore(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the score of a member."""
    value = ctx.db.read(argv[1], ZSet)
    return None if value is None else value.scores.get(argv[2])


@command("ZMSCORE key member...", "readonly fast", keys="RO access @1", group="sorted-set", since="6.2.0",
         complexity="O(1) for each member")  # fmt: skip
def zmscore(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the scores of several members."""
    value = ctx.db.read(argv[1], ZSet)
    if value is None:
        return [None] * (len(argv) - 2)
    return [value.scores.get(member) for member in argv[2:]]


def _rank(ctx: Session, argv: list[bytes], reverse: bool) -> Reply:
    if len(argv) > 4:
        raise errors.wrong_arity("zrevrank" if reverse else "zrank")
    withscore = len(argv) == 4
    if withscore and argv[3].lower() != b"withscore":
        raise errors.syntax()
    value = ctx.db.read(argv[1], ZSet)
    rank = None if value is None else value.rank(argv[2], reverse)
    if not withscore:
        return rank
    return NULL_ARRAY if rank is None else [rank, value.scores[argv[2]]]


@command("ZRANK key member [WITHSCORE]", "readonly fast", keys="RO access @1", group="sorted-set", since="2.0.0",
         complexity="O(log(N))")  # fmt: skip
def zrank(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the place of a member, counted from the least score."""
    return _rank(ctx, argv, False)


@command("ZREVRANK key member [WITHSCORE]", "readonly fast", keys="RO access @1", group="sorted-set", since="2.0.0",
         complexity="O(log(N))")  # fmt: skip
def zrevrank(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the place of a member, counted from the greatest score."""
    return _rank(ctx, argv, True)


@command("ZRANDMEMBER key options=[count:integer [WITHSCORES]]", "readonly", keys="RO access @1", group="sorted-set",
         since="6.2.0", complexity="O(N) in the number of members returned",
         tips="nondeterministic_output")  # fmt: skip
def zrandmember(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns random members."""
    if len(argv) == 2:
        value = ctx.db.read(argv[1], ZSet)
        return None if value is None else value.random(ctx.rng)
    count = integer(argv[2])
    if count < -LLONG_MAX:
        raise ReplyError(f"ERR value is out of range, value must between {-LLONG_MAX} and {LLONG_MAX}")
    withscores = len(argv) > 3
    if withscores and (len(argv) > 4 or argv[3].lower() != b"withscores"):
        raise errors.syntax()
    if withscores and not -(LLONG_MAX // 2) <= count <= LLONG_MAX // 2:
        raise ReplyError("ERR value is out of range")
    value = ctx.db.read(argv[1], ZSet)
    if value is None or count == 0:
        return []
    chosen = value.sample(ctx.rng, count) if count > 0 else value.choices(ctx.rng, -count)
    if withscores:
        return Pairs(part for pair in chosen for part in pair)
    return [member for member, _ in chosen]


@command("ZSCAN key cursor:integer [MATCH pattern:pattern] [COUNT count:integer] [NOSCORES]", "readonly",
         keys="RO access @1", group="sorted-set", since="2.8.0",
         complexity="O(1) for every call, O(N) for a whole scan", tips="nondeterministic_output")  # fmt: skip
def zscan(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns a page of a sorted set's members and their scores."""
    cursor = parse_cursor(argv[2])
    value = ctx.db.read(argv[1], ZSet)
    if value is None:
        return [b"0", []]
    options = parse_scan_options(argv, 3, b"zscan")
    following, page = value.scan(cursor, options.count)
    if options.match is not None:
        page = list(filter(options.match, page))
    if not options.novalues:
        scores = value.scores
        text = format_double if value.encoding() == b"listpack" else format_double_17
        page = [part for member in page for part in (member, text(scores[member]))]
    return [b"%d" % following, page]


# -- popping -----------------------------------------------------------------------------------


def popped(db: Database, key: bytes, value: ZSet, least: bool) -> None:
    """Announce that members were taken from an end of the sorted set at ``key``."""
    db.touch(key, ZSET, b"zpopmin" if least else b"zpopmax")
    if not value.scores:
        db.drop_if_empty(key, value)


def _pop(ctx: Session, argv: list[bytes], least: bool) -> Reply:
    if len(argv) > 3:
        raise errors.syntax()
    count = None
    if len(argv) == 3:
        count = parse_int(argv[2])
        if count is None or count < 0:
            raise ReplyError("ERR value is out of range, must be positive")
    key, db = argv[1], ctx.db
    value = db.write(key, ZSet)
    if value is None or count == 0:
        return []
    taken = value.pop_min(count or 1) if least else value.pop_max(count or 1)
    popped(db, key, value, least)
    return taken if count is None else Pairs(taken)


@command("ZPOPMIN key [count:integer]", "write fast", keys="RW access delete @1", group="sorted-set", since="5.0.0",
         complexity="O(log(N)) for each member taken")  # fmt: skip
def zpopmin(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes the members with the least scores."""
    if len(argv) != 2:
        return _pop(ctx, argv, True)
    key = argv[1]
    db = ctx.db
    value = db.write(key, ZSet)
    if value is None:
        return []
    taken = value.pop_min()
    db.touch(key, ZSET, b"zpopmin")
    if not value.scores:
        db.drop_if_empty(key, value)
    return taken


@command("ZPOPMAX key [count:integer]", "write fast", keys="RW access delete @1", group="sorted-set", since="5.0.0",
         complexity="O(log(N)) for each member taken")  # fmt: skip
def zpopmax(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes the members with the greatest scores."""
    return _pop(ctx, argv, False)
