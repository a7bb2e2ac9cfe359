"""Ranges of a sorted set: by rank, by score, by member; returned, counted, stored or removed.

ZRANGE in its three kinds and the five older commands are one `_Range`: parsed as a whole before any key is looked at,
then cut out of a sorted set by `select`. REV swaps the ends that are given (the greater one stands first) and the
direction. ZRANGEBYSCORE without WITHSCORES, the queue's "what is due", has a path of its own.

To add a kind of range: its ends in `_parse_ends`, and its branch in `select`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.errors import ReplyError
from emuredis.keyspace.notify import GENERIC, ZSET
from emuredis.replies import Pairs, Reply
from emuredis.scalars import parse_bound
from emuredis.spec import command
from emuredis.values.zset import ZSet

if TYPE_CHECKING:
    from emuredis.engine.session import Session

__all__ = ["lex_ends", "score_ends"]

RANK, SCORE, LEX = "rank", "score", "lex"
_INF = float("inf")
_COMMON_ENDS = {b"-inf": (-_INF, False), b"+inf": (_INF, False), b"inf": (_INF, False), b"0": (0.0, False)}
_COST = "O(log(N)+M) with M the number of members returned"


# -- the ends of a range -----------------------------------------------------------------------


def score_ends(low: bytes, high: bytes) -> tuple[float, float, bool, bool]:
    """The ends of a range by score: low, high, and whether each is excluded."""
    lower = _COMMON_ENDS.get(low) or parse_bound(low)
    upper = _COMMON_ENDS.get(high) or parse_bound(high)
    if lower is None or upper is None:
        raise ReplyError("ERR min or max is not a float")
    return lower[0], upper[0], lower[1], upper[1]


def lex_ends(low: bytes, high: bytes) -> tuple[bytes | None, bytes | None, bool, bool] | None:
    """The ends of a range by member, as `ZSet.range_by_lex` takes them; None for a range that is empty."""
    lower, upper = _lex_end(low), _lex_end(high)
    if low == b"+" or high == b"-":
        return None
    return lower, upper, low[:1] == b"(", high[:1] == b"("


def _lex_end(text: bytes) -> bytes | None:
    """The member that ``[member`` or ``(member`` names; None for ``-`` and ``+``."""
    if text[:1] in (b"(", b"["):
        return text[1:]
    if text not in (b"-", b"+"):
        raise ReplyError("ERR min or max not valid string range item")
    return None


def rank_ends(start: int, stop: int, size: int) -> tuple[int, int]:
    """The ends of a range by rank as a half-open interval; negative ones count from the end."""
    if start < 0:
        start = max(start + size, 0)
    if stop < 0:
        stop += size
    return start, stop + 1


class _Range:
    """What ZRANGE and its kin ask for."""

    __slots__ = ("by", "count", "ends", "offset", "reverse", "withscores")

    def __init__(self, by: str, reverse: bool) -> None:
        self.by = by
        self.reverse = reverse
        self.withscores = False
        self.offset = 0
        self.count = -1
        self.ends: Any = None


def _parse(argv: list[bytes], at: int, wanted: _Range, general: bool, store: bool = False) -> _Range:
    """Read min and max at ``at`` and the options after them; ``general``: ZRANGE, where BYSCORE, BYLEX, REV exist."""
    _parse_options(argv, at + 2, wanted, general, store)
    if wanted.count != -1 and wanted.by == RANK:
        raise ReplyError(
            "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
        )
    if wanted.withscores and wanted.by == LEX:
        raise ReplyError("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
    low, high = argv[at], argv[at + 1]
    if wanted.by == RANK:
        wanted.ends = integer(low), integer(high)
        return wanted
    if wanted.reverse:
        low, high = high, low
    wanted.ends = score_ends(low, high) if wanted.by == SCORE else lex_ends(low, high)
    return wanted


def _parse_options(argv: list[bytes], at: int, wanted: _Range, general: bool, store: bool) -> None:
    size = len(argv)
    chosen = not general
    while at < size:
        word = argv[at].lower()
        if word == b"withscores" and not store:
            wanted.withscores = True
        elif word == b"limit" and at + 2 < size:
            wanted.offset, wanted.count = integer(argv[at + 1]), integer(argv[at + 2])
            at += 2
        elif word == b"rev" and general and not wanted.reverse:
            wanted.reverse = True
        elif word in (b"byscore", b"bylex") and not chosen:
            wanted.by = SCORE if word == b"byscore" else LEX
            chosen = True
        else:
            raise errors.syntax()
        at += 1


def select(value: ZSet, wanted: _Range) -> list[Any]:
    """The members of ``value`` in the range; flat with their scores if those are asked for."""
    if wanted.by == RANK:
        low, high = wanted.ends
        start, stop = rank_ends(low, high, len(value.scores))
        return value.slice(start, stop, wanted.reverse, wanted.withscores)
    if wanted.ends is None:
        return []
    search = value.range_by_score if wanted.by == SCORE else value.range_by_lex
    low, high, without_low, without_high = wanted.ends
    return search(
        low, high, without_low, without_high, wanted.offset, wanted.count, wanted.reverse, wanted.withscores
    )


def _reply(ctx: Session, key: bytes, wanted: _Range) -> Reply:
    value = ctx.db.read(key, ZSet)
    found = [] if value is None else select(value, wanted)
    return Pairs(found) if wanted.withscores else found


# -- returning a range -------------------------------------------------------------------------


@command("ZRANGE key start stop sortby=[BYSCORE|BYLEX] [REV] [LIMIT limit=(offset:integer count:integer)] "
         "[WITHSCORES]", "readonly",
         keys="RO access @1", group="sorted-set", since="1.2.0", complexity=_COST)  # fmt: skip
def zrange(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the members in a range of ranks, scores or names."""
    withscores = len(argv) == 5 and argv[4] in (b"WITHSCORES", b"withscores")
    if withscores or len(argv) == 4:
        start, stop = integer(argv[2]), integer(argv[3])
        value = ctx.db.read(argv[1], ZSet)
        if value is None:
            return []
        start, stop = rank_ends(start, stop, len(value.scores))
        found = value.slice(start, stop, False, withscores)
        return Pairs(found) if withscores else found
    return _reply(ctx, argv[1], _parse(argv, 2, _Range(RANK, False), True))


@command("ZRANGESTORE dst:key src:key min max sortby=[BYSCORE|BYLEX] [REV] [LIMIT limit=(offset:integer "
         "count:integer)]",
         "write denyoom", keys="OW update @1, RO access @2", group="sorted-set", since="6.2.0",
         complexity="O(log(N)+M) with M the number of members stored")  # fmt: skip
def zrangestore(ctx: Session, argv: list[bytes]) -> Reply:
    """Stores the members in a range, and their scores."""
    wanted = _parse(argv, 3, _Range(RANK, False), True, store=True)
    wanted.withscores = True
    db, destination = ctx.db, argv[1]
    value = db.read(argv[2], ZSet)
    flat = [] if value is None else select(value, wanted)
    if not flat:
        if db.remove(destination):
            db.touch(destination, GENERIC, b"del")
        return 0
    pairs = zip(flat[::2], flat[1::2], strict=True)
    hint = len(flat) // 2 if wanted.by == RANK else 0  # how many the server knows beforehand
    db.put(destination, ZSet.from_added(pairs, hint, ctx.engine.limits))
    db.touch(destination, ZSET, b"zrangestore")
    return len(flat) // 2


@command("ZREVRANGE key start:integer stop:integer [WITHSCORES]", "readonly", keys="RO access @1", group="sorted-set",
         since="1.2.0", complexity=_COST)  # fmt: skip
def zrevrange(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the members in a range of ranks counted from the greatest score."""
    return _reply(ctx, argv[1], _parse(argv, 2, _Range(RANK, True), False))


@command("ZRANGEBYSCORE key min:double max:double [WITHSCORES] [LIMIT limit=(offset:integer count:integer)]",
         "readonly",
         keys="RO access @1", group="sorted-set", since="1.0.5", complexity=_COST)  # fmt: skip
def zrangebyscore(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the members in a range of scores."""
    offset, count = 0, -1
    if len(argv) != 4:
        if len(argv) != 7 or argv[4] not in (b"LIMIT", b"limit"):
            return _reply(ctx, argv[1], _parse(argv, 2, _Range(SCORE, False), False))
        offset, count = integer(argv[5]), integer(argv[6])
    low, high, without_low, without_high = score_ends(argv[2], argv[3])
    value = ctx.db.read(argv[1], ZSet)
    if value is None:
        return []
    return value.range_by_score(low, high, without_low, without_high, offset, count)


@command("ZREVRANGEBYSCORE key max:double min:double [WITHSCORES] [LIMIT limit=(offset:integer count:integer)]",
         "readonly",
         keys="RO access @1", group="sorted-set", since="2.2.0", complexity=_COST)  # fmt: skip
def zrevrangebyscore(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the members in a range of scores, greatest first."""
    return _reply(ctx, argv[1], _parse(argv, 2, _Range(SCORE, True), False))


@command("ZRANGEBYLEX key min max [LIMIT limit=(offset:integer count:integer)]", "readonly", keys="RO access @1",
         group="sorted-set", since="2.8.9", complexity=_COST)  # fmt: skip
def zrangebylex(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the members between two names."""
    return _reply(ctx, argv[1], _parse(argv, 2, _Range(LEX, False), False))


@command("ZREVRANGEBYLEX key max min [LIMIT limit=(offset:integer count:integer)]", "readonly", keys="RO access @1",
         group="sorted-set", since="2.8.9", complexity=_COST)  # fmt: skip
def zrevrangebylex(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the members between two names, last first."""
    return _reply(ctx, argv[1], _parse(argv, 2, _Range(LEX, True), False))


# -- counting ----------------------------------------------------------------------------------


@command("ZCOUNT key min:double max:double", "readonly fast", keys="RO access @1", group="sorted-set", since="2.0.0",
         complexity="O(log(N))")  # fmt: skip
def zcount(ctx: Session, argv: list[bytes]) -> Reply:
    """Counts the members in a range of scores."""
    ends = score_ends(argv[2], argv[3])
    value = ctx.db.read(argv[1], ZSet)
    return 0 if value is None else value.count_by_score(*ends)


@command("ZLEXCOUNT key min max", "readonly fast", keys="RO access @1", group="sorted-set", since="2.8.9",
         complexity="O(log(N))")  # fmt: skip
def zlexcount(ctx: Session, argv: list[bytes]) -> Reply:
    """Counts the members between two names."""
    ends = lex_ends(argv[2], argv[3])
    value = ctx.db.read(argv[1], ZSet)
    return 0 if value is None or ends is None else value.count_by_lex(*ends)


# -- removing ----------------------------------------------------------------------------------


def _remove(ctx: Session, key: bytes, by: str, ends: Any, event: bytes) -> Reply:
    db = ctx.db
    value = db.write(key, ZSet)
    if value is None or ends is None:
        return 0
    if by == RANK:
        low, high = ends
        removed = value.remove_range_by_rank(*rank_ends(low, high, len(value.scores)))
    elif by == SCORE:
        removed = value.remove_range_by_score(*ends)
    else:
        removed = value.remove_range_by_lex(*ends)
    if removed:
        db.touch(key, ZSET, event)
        db.drop_if_empty(key, value)
    return len(removed)


@command("ZREMRANGEBYRANK key start:integer stop:integer", "write", keys="RW delete @1", group="sorted-set",
         since="2.0.0", complexity="O(log(N)+M) with M the number of members removed")  # fmt: skip
def zremrangebyrank(ctx: Session, argv: list[bytes]) -> Reply:
    """Removes the members in a range of ranks."""
    return _remove(ctx, argv[1], RANK, (integer(argv[2]), integer(argv[3])), b"zremrangebyrank")


@command("ZREMRANGEBYSCORE key min:double max:double", "write", keys="RW delete @1", group="sorted-set", since="1.2.0",
         complexity="O(log(N)+M) with M the number of members removed")  # fmt: skip
def zremrangebyscore(ctx: Session, argv: list[bytes]) -> Reply:
    """Removes the members in a range of scores."""
    return _remove(ctx, argv[1], SCORE, score_ends(argv[2], argv[3]), b"zremrangebyscore")


@command("ZREMRANGEBYLEX key min max", "write", keys="RW delete @1", group="sorted-set", since="2.8.9",
         complexity="O(log(N)+M) with M the number of members removed")  # fmt: skip
def zremrangebylex(ctx: Session, argv: list[bytes]) -> Reply:
    """Removes the members between two names."""
    return _remove(ctx, argv[1], LEX, lex_ends(argv[2], argv[3]), b"zremrangebylex")
