"""Lists: pushing, popping, looking and changing by position, moving from one list to another.

Responsible for the list commands that need one or two keys and never wait; those that take from the first of
several keys, or wait, are in `emuredis.commands.blocking`, which uses `move` and `popped` from here. What a list
is made of is the business of `emuredis.values.list`.

Every removal ends in `popped` or does the same itself: the event of the removal first, then ``del`` if the list is
empty.
To add a command: its handler here, and its lines in the conformance file ``lists``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.errors import ReplyError
from emuredis.keyspace.notify import LIST
from emuredis.replies import NULL_ARRAY, OK, Reply
from emuredis.scalars import LLONG_MAX, parse_int
from emuredis.spec import command
from emuredis.values.list import List

if TYPE_CHECKING:
    from emuredis.engine.session import Session
    from emuredis.keyspace.database import Database

__all__ = ["move", "popped", "side"]

_EACH = "O(1) for each element"


# -- pushing -----------------------------------------------------------------------------------


@command("LPUSH key element...", "write denyoom fast", keys="RW insert @1", group="list", since="1.0.0",
         complexity=_EACH)  # fmt: skip
def lpush(ctx: Session, argv: list[bytes]) -> Reply:
    """Puts elements in front of a list, which is made if it is not there."""
    key = argv[1]
    db = ctx.db
    value = db.write(key, List)
    if value is None:
        value = db.add(key, List(ctx.engine.limits))
    if len(argv) == 3:
        value.push_left(argv[2])
    else:
        value.extend_left(argv[2:])
    db.touch(key, LIST, b"lpush")
    return len(value)


@command("RPUSH key element...", "write denyoom fast", keys="RW insert @1", group="list", since="1.0.0",
         complexity=_EACH)  # fmt: skip
def rpush(ctx: Session, argv: list[bytes]) -> Reply:
    """Puts elements at the end of a list, which is made if it is not there."""
    key = argv[1]
    db = ctx.db
    value = db.write(key, List)
    if value is None:
        value = db.add(key, List(ctx.engine.limits))
    if len(argv) == 3:
        value.push_right(argv[2])
    else:
        value.extend_right(argv[2:])
    db.touch(key, LIST, b"rpush")
    return len(value)


@command("LPUSHX key element...", "write denyoom fast", keys="RW insert @1", group="list", since="2.2.0",
         complexity=_EACH)  # fmt: skip
def lpushx(ctx: Session, argv: list[bytes]) -> Reply:
    """Puts elements in front of a list that exists."""
    value = ctx.db.write(argv[1], List)
    if value is None:
        return 0
    value.extend_left(argv[2:])
    ctx.db.touch(argv[1], LIST, b"lpush")
    return len(value)


@command("RPUSHX key element...", "write denyoom fast", keys="RW insert @1", group="list", since="2.2.0",
         complexity=_EACH)  # fmt: skip
def rpushx(ctx: Session, argv: list[bytes]) -> Reply:
    """Puts elements at the end of a list that exists."""
    value = ctx.db.write(argv[1], List)
    if value is None:
        return 0
    value.extend_right(argv[2:])
    ctx.db.touch(argv[1], LIST, b"rpush")
    return len(value)


@command("LINSERT key where=(BEFORE|AFTER) pivot element", "write denyoom", keys="RW insert @1", group="list",
         since="2.2.0",
         complexity="O(N) in the distance of the pivot from the front")  # fmt: skip
def linsert(ctx: Session, argv: list[bytes]) -> Reply:
    """Puts an element next to another one."""
    key, where = argv[1], argv[2].lower()
    if where not in (b"before", b"after"):
        raise errors.syntax()
    value = ctx.db.write(key, List)
    if value is None:
        return 0
    length = value.insert(argv[3], argv[4], where == b"before")
    if length > 0:
        ctx.db.touch(key, LIST, b"linsert")
    return length


# -- popping -----------------------------------------------------------------------------------


def popped(db: Database, key: bytes, value: List, left: bool) -> None:
    """Announce that elements were taken from an end of the list at ``key``."""
    db.touch(key, LIST, b"lpop" if left else b"rpop")
    if not value:
        db.drop_if_empty(key, value)


@command("LPOP key [count:integer]", "write fast", keys="RW access delete @1", group="list", since="1.0.0",
         complexity="O(N) in the number of elements taken")  # fmt: skip
def lpop(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes elements from the front of a list."""
    if len(argv) != 2:
        return _pop_many(ctx, argv, True)
    key = argv[1]
    db = ctx.db
    value = db.write(key, List)
    if value is None:
        return None
    element = value.pop_left()
    db.touch(key, LIST, b"lpop")
    if not value:
        db.drop_if_empty(key, value)
    return element


@command("RPOP key [count:integer]", "write fast", keys="RW access delete @1", group="list", since="1.0.0",
         complexity="O(N) in the number of elements taken")  # fmt: skip
def rpop(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes elements from the end of a list."""
    if len(argv) != 2:
        return _pop_many(ctx, argv, False)
    key = argv[1]
    db = ctx.db
    value = db.write(key, List)
    if value is None:
        return None
    element = value.pop_right()
    db.touch(key, LIST, b"rpop")
    if not value:
        db.drop_if_empty(key, value)
    return element


def _pop_many(ctx: Session, argv: list[bytes], left: bool) -> Reply:
    if len(argv) > 3:
        raise errors.wrong_arity("lpop" if left else "rpop")
    count = parse_int(argv[2])
    if count is None or count < 0:
        raise ReplyError("ERR value is out of range, must be positive")
    key, db = argv[1], ctx.db
    value = db.write(key, List)
    if value is None:
        return NULL_ARRAY
    if count == 0:
        return []
    taken = value.pop_left_many(count) if left else value.pop_right_many(count)
    popped(db, key, value, left)
    return taken


@command("LREM key count:integer element", "write", keys="RW delete @1", group="list", since="1.0.0",
         complexity="O(N) in the length of the list")  # fmt: skip
def lrem(ctx: Session, argv: list[bytes]) -> Reply:
    """Removes elements equal to the one given."""
    count = integer(argv[2])
    if count < -LLONG_MAX:
        raise _out_of_long_range()
    key, db = argv[1], ctx.db
    value = db.write(key, List)
    if value is None:
        return 0
    removed = value.remove(argv[3], count)
    if removed:
        db.touch(key, LIST, b"lrem")
        if not value:
            db.drop_if_empty(key, value)
    return removed


@command("LTRIM key start:integer stop:integer", "write", keys="RW delete @1", group="list", since="1.0.0",
         complexity="O(N) in the number of elements removed")  # fmt: skip
def ltrim(ctx: Session, argv: list[bytes]) -> Reply:
    """Removes all elements outside a range."""
    start, stop = integer(argv[2]), integer(argv[3])
    key, db = argv[1], ctx.db
    value = db.write(key, List)
    if value is None:
        return OK
    length = len(value)
    value.trim(start if start >= 0 else start + length, (stop if stop >= 0 else stop + length) + 1)
    if len(value) == length:
        db.mention(key, LIST, b"ltrim")
        return OK
    db.touch(key, LIST, b"ltrim")
    if not value:
        db.drop_if_empty(key, value)
    return OK


# -- looking -----------------------------------------------------------------------------------


@command("LLEN key", "readonly fast", keys="RO @1", group="list", since="1.0.0", complexity="O(1)")
def llen(ctx: Session, argv: list[bytes]) -> Reply:
    """Says how long a list is."""
    value = ctx.db.read(argv[1], List)
    return 0 if value is None else len(value)


@command("LRANGE key start:integer stop:integer", "readonly", keys="RO access @1", group="list", since="1.0.0",
         complexity="O(log(S)+N) with S the size of the list and N the number of elements returned")  # fmt: skip
def lrange(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the elements in a range of positions."""
    start, stop = integer(argv[2]), integer(argv[3])
    value = ctx.db.read(argv[1], List)
    if value is None:
        return []
    if start < 0:
        start += len(value)
    if stop < 0:
        stop += len(value)
    return value.slice(start, stop + 1)


@command("LINDEX key index:integer", "readonly", keys="RO access @1", group="list", since="1.0.0",
         complexity="O(log(N)), O(1) at the ends")  # fmt: skip
def lindex(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the element at a position."""
    value = ctx.db.read(argv[1], List)
    if value is None:
        return None
    return value.get(integer(argv[2]))


@command("LSET key index:integer element", "write denyoom", keys="RW update @1", group="list", since="1.0.0",
         complexity="O(log(N)), O(1) at the ends")  # fmt: skip
def lset(ctx: Session, argv: list[bytes]) -> Reply:
    """Replaces the element at a position."""
    key = argv[1]
    value = ctx.db.write(key, List)
    if value is None:
        raise errors.no_such_key()
    # The server keeps this index in 32 bits: 4294967296 is 0, and the greatest integer is -1.
    index = (integer(argv[2]) + (1 << 31)) % (1 << 32) - (1 << 31)
    if not value.set(index, argv[3]):
        raise errors.index_out_of_range()
    ctx.db.touch(key, LIST, b"lset")
    return OK


@command("LPOS key element [RANK rank:integer] [COUNT num-matches:integer] [MAXLEN len:integer]", "readonly",
         keys="RO access @1", group="list", since="6.0.6",
         complexity="O(N) in the number of elements looked at")  # fmt: skip
def lpos(ctx: Session, argv: list[bytes]) -> Reply:
    """Finds the positions of elements equal to the one given."""
    rank, count, maxlen = _position_options(argv)
    value = ctx.db.read(argv[1], List)
    if value is None:
        return None if count is None else []
    found = value.positions(argv[2], rank, 1 if count is None else count, maxlen)
    if count is not None:
        return found
    return found[0] if found else None


def _position_options(argv: list[bytes]) -> tuple[int, int | None, int]:
    rank, count, maxlen = 1, None, 0
    for at in range(3, len(argv), 2):
        word = argv[at].lower()
        if word not in (b"rank", b"count", b"maxlen") or at + 1 == len(argv):
            raise errors.syntax()
        number = parse_int(argv[at + 1])
        if word == b"rank":
            rank = _rank(number)
        elif number is None or number < 0:
            raise ReplyError(f"ERR {word.decode().upper()} can't be negative")
        elif word == b"count":
            count = number
        else:
            maxlen = number
    return rank, count, maxlen


def _rank(number: int | None) -> int:
    if number is None:
        raise errors.not_integer()
    if number < -LLONG_MAX:
        raise _out_of_long_range()
    if number == 0:
        raise ReplyError(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... "
            "or use negative to start from the end of the list"
        )
    return number


def _out_of_long_range() -> ReplyError:
    return ReplyError(f"ERR value is out of range, value must between {-LLONG_MAX} and {LLONG_MAX}")


# -- moving ------------------------------------------------------------------------------------


def side(word: bytes) -> bool:
    """Whether ``word`` is LEFT rather than RIGHT."""
    if word in (b"LEFT", b"left"):
        return True
    if word in (b"RIGHT", b"right"):
        return False
    lower = word.lower()
    if lower not in (b"left", b"right"):
        raise errors.syntax()
    return lower == b"left"


def move(ctx: Session, source: bytes, destination: bytes, from_left: bool, to_left: bool) -> Reply:
    """Take an element from one list to another, perhaps the same; None if there is none."""
    db = ctx.db
    taken_from = db.write(source, List)
    if taken_from is None:
        return None
    element: bytes
    if destination == source:
        element = taken_from.rotate(from_left, to_left)
    else:
        put_to = db.write(destination, List)
        element = taken_from.pop_left() if from_left else taken_from.pop_right()
        if put_to is None:
            put_to = db.add(destination, List(ctx.engine.limits))
        if to_left:
            put_to.push_left(element)
        else:
            put_to.push_right(element)
    db.touch(destination, LIST, b"lpush" if to_left else b"rpush")
    db.touch(source, LIST, b"lpop" if from_left else b"rpop")
    if not taken_from:
        db.drop_if_empty(source, taken_from)
    return element


@command("LMOVE source:key destination:key wherefrom=(LEFT|RIGHT) whereto=(LEFT|RIGHT)", "write denyoom",
         keys="RW access delete @1, RW insert @2", group="list", since="6.2.0", complexity="O(1)")  # fmt: skip
def lmove(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes an element from an end of one list to an end of another."""
    return move(ctx, argv[1], argv[2], side(argv[3]), side(argv[4]))


@command("RPOPLPUSH source:key destination:key", "write denyoom",
         keys="RW access delete @1, RW insert @2", group="list", since="1.2.0", complexity="O(1)")  # fmt: skip
def rpoplpush(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes the last element of one list to the front of another."""
    return move(ctx, argv[1], argv[2], False, True)
