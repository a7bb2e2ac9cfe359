"""Taking from the first key that has something: LMPOP, ZMPOP, and every list and sorted-set command that waits.

A waiting command is a handler like any other: it looks at its keys in order, answers with what it finds, and otherwise
parks itself; when one of the keys gets a value of the right type the engine runs it again. A key of a wrong type met
before anything is found is an error, both at first and when run again. Inside MULTI and scripts waiting is not possible
and the answer is that of a time-out, but a null of the type that the command's own twin gives.

To add such a command: a handler that ends in `_park`, and its lines in the conformance file ``blocking``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emuredis import errors
from emuredis.commands import lists, zsets
from emuredis.commands.args import timeout
from emuredis.errors import ReplyError
from emuredis.replies import NULL_ARRAY, Reply
from emuredis.scalars import parse_int
from emuredis.spec import command
from emuredis.values.list import List
from emuredis.values.zset import ZSet

if TYPE_CHECKING:
    from emuredis.engine.session import Session

__all__: list[str] = []

_SIDES = {b"left": True, b"right": False}
_ENDS = {b"min": True, b"max": False}
_FIRST = "O(N) in the number of keys"
_FIRST_MANY = "O(N+M) with N the number of keys and M the number of elements taken"


# -- the first key that has something ----------------------------------------------------------


def _first(ctx: Session, keys: list[bytes], kind: type) -> tuple[bytes, Any] | None:
    """The first key that holds anything, and its value; WRONGTYPE unless that is a ``kind``."""
    write = ctx.db.write
    for key in keys:
        value = write(key, kind)
        if value is not None:
            return key, value
    return None


def _parse_many(argv: list[bytes], at: int, ends: dict[bytes, bool]) -> tuple[list[bytes], bool, int]:
    """``numkeys key... end [COUNT count]`` from ``at`` on: the keys, whether the end is the first word, the count."""
    numkeys = parse_int(argv[at])
    if numkeys is None or numkeys < 1:
        raise ReplyError("ERR numkeys should be greater than 0")
    where = at + 1 + numkeys
    if where >= len(argv):
        raise errors.syntax()
    end = ends.get(argv[where].lower())
    if end is None:
        raise errors.syntax()
    rest = argv[where + 1 :]
    if not rest:
        return argv[at + 1 : where], end, 1
    if len(rest) == 1 or rest[0].lower() != b"count":
        raise errors.syntax()
    count = parse_int(rest[1])
    if count is None or count < 1:
        raise ReplyError("ERR count should be greater than 0")
    if len(rest) > 2:
        raise errors.syntax()
    return argv[at + 1 : where], end, count


def _take_list(ctx: Session, keys: list[bytes], left: bool, count: int) -> Reply:
    """``[key, elements]`` from the first key that has some, or None."""
    found = _first(ctx, keys, List)
    if found is None:
        return None
    key, value = found
    taken = value.pop_left_many(count) if left else value.pop_right_many(count)
    lists.popped(ctx.db, key, value, left)
    return [key, taken]


def _take_zset(ctx: Session, keys: list[bytes], least: bool, count: int) -> Reply:
    """``[key, [[member, score] ...]]`` from the first key that has some, or None."""
    found = _first(ctx, keys, ZSet)
    if found is None:
        return None
    key, value = found
    flat = value.pop_min(count) if least else value.pop_max(count)
    zsets.popped(ctx.db, key, value, least)
    return [key, [list(pair) for pair in zip(flat[::2], flat[1::2], strict=True)]]


# -- lists -------------------------------------------------------------------------------------


@command("LMPOP numkeys:integer key... where=(LEFT|RIGHT) [COUNT count:integer]", "write movablekeys",
         keys="RW access delete @1#", group="list", since="7.0.0", complexity=_FIRST_MANY)  # fmt: skip
def lmpop(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes elements from the first of several lists that has some."""
    return _take_list(ctx, *_parse_many(argv, 1, _SIDES)) or NULL_ARRAY


@command("BLMPOP timeout:double numkeys:integer key... where=(LEFT|RIGHT) [COUNT count:integer]",
         "write blocking movablekeys",
         keys="RW access delete @2#", group="list", since="7.0.0", complexity=_FIRST_MANY)  # fmt: skip
def blmpop(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes elements from the first of several lists that has some, waiting for one."""
    keys, left, count = _parse_many(argv, 2, _SIDES)
    wait = timeout(argv[1], ctx.now)
    return _take_list(ctx, keys, left, count) or ctx.park(keys, List, wait, NULL_ARRAY)


def _pop_list(ctx: Session, argv: list[bytes], left: bool) -> Reply:
    wait = timeout(argv[-1], ctx.now)
    keys = argv[1:-1]
    found = _first(ctx, keys, List)
    if found is None:
        return ctx.park(keys, List, wait, NULL_ARRAY)
    key, value = found
    element = value.pop_left() if left else value.pop_right()
    lists.popped(ctx.db, key, value, left)
    return [key, element]


@command("BLPOP key... timeout:double", "write blocking", keys="RW access delete @1..-2", group="list", since="2.0.0",
         complexity=_FIRST)  # fmt: skip
def blpop(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes the first element of the first list that has one, waiting for it."""
    return _pop_list(ctx, argv, True)


@command("BRPOP key... timeout:double", "write blocking", keys="RW access delete @1..-2", group="list", since="2.0.0",
         complexity=_FIRST)  # fmt: skip
def brpop(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes the last element of the first list that has one, waiting for it."""
    return _pop_list(ctx, argv, False)


def _move(ctx: Session, argv: list[bytes], from_left: bool, to_left: bool, wait: float) -> Reply:
    element = lists.move(ctx, argv[1], argv[2], from_left, to_left)
    if element is None:
        return None if ctx.deny_blocking else ctx.park([argv[1]], List, wait, NULL_ARRAY)
    return element


@command("BLMOVE source:key destination:key wherefrom=(LEFT|RIGHT) whereto=(LEFT|RIGHT) timeout:double",
         "write denyoom blocking",
         keys="RW access delete @1, RW insert @2", group="list", since="6.2.0", complexity="O(1)")  # fmt: skip
def blmove(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes an element from an end of one list to an end of another, waiting for it."""
    from_left, to_left = lists.side(argv[3]), lists.side(argv[4])
    return _move(ctx, argv, from_left, to_left, timeout(argv[5], ctx.now))


@command("BRPOPLPUSH source:key destination:key timeout:double", "write denyoom blocking",
         keys="RW access delete @1, RW insert @2", group="list", since="2.2.0", complexity="O(1)")  # fmt: skip
def brpoplpush(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes the last element of one list to the front of another, waiting for it."""
    return _move(ctx, argv, False, True, timeout(argv[3], ctx.now))


# -- sorted sets -------------------------------------------------------------------------------


@command("ZMPOP numkeys:integer key... where=(MIN|MAX) [COUNT count:integer]", "write movablekeys",
         keys="RW access delete @1#", group="sorted-set", since="7.0.0", complexity=_FIRST_MANY)  # fmt: skip
def zmpop(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes members from the first of several sorted sets that has some."""
    return _take_zset(ctx, *_parse_many(argv, 1, _ENDS)) or NULL_ARRAY


@command("BZMPOP timeout:double numkeys:integer key... where=(MIN|MAX) [COUNT count:integer]",
         "write blocking movablekeys",
         keys="RW access delete @2#", group="sorted-set", since="7.0.0", complexity=_FIRST_MANY)  # fmt: skip
def bzmpop(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes members from the first of several sorted sets that has some, waiting for one."""
    keys, least, count = _parse_many(argv, 2, _ENDS)
    wait = timeout(argv[1], ctx.now)
    return _take_zset(ctx, keys, least, count) or ctx.park(keys, ZSet, wait, NULL_ARRAY)


def _pop_zset(ctx: Session, argv: list[bytes], least: bool) -> Reply:
    wait = timeout(argv[-1], ctx.now)
    keys = argv[1:-1]
    found = _first(ctx, keys, ZSet)
    if found is None:
        return ctx.park(keys, ZSet, wait, NULL_ARRAY)
    key, value = found
    taken = value.pop_min() if least else value.pop_max()
    zsets.popped(ctx.db, key, value, least)
    return [key, *taken]


@command("BZPOPMIN key... timeout:double", "write blocking fast", keys="RW access delete @1..-2", group="sorted-set",
         since="5.0.0", complexity=_FIRST)  # fmt: skip
def bzpopmin(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes the member with the least score of the first sorted set that has one, waiting for it."""
    return _pop_zset(ctx, argv, True)


@command("BZPOPMAX key... timeout:double", "write blocking fast", keys="RW access delete @1..-2", group="sorted-set",
         since="5.0.0", complexity=_FIRST)  # fmt: skip
def bzpopmax(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes the member with the greatest score of the first sorted set that has one, waiting for it."""
    return _pop_zset(ctx, argv, False)
