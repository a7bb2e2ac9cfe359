"""Strings: GET, SET and their kin, counters, parts of strings.

A string is plain ``bytes`` in the database; a command that changes a part stores a new value. Numbers are text:
INCR reads and writes the canonical form, INCRBYFLOAT computes with 80-bit floats as the server does.

SET (with any option), GETSET, MSET *replace* a value and drop its time to live; INCR, APPEND and SETRANGE *modify*
it and keep it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.commands.expiry import Options, expire_now, parse_options
from emuredis.commands.objects import as_text, given
from emuredis.errors import ReplyError
from emuredis.keyspace.notify import GENERIC, STRING
from emuredis.replies import OK, Reply
from emuredis.scalars import (
    LLONG_MAX,
    LLONG_MIN,
    format_long_double,
    parse_int,
    parse_long_double,
    sum_long_double,
)
from emuredis.spec import command

if TYPE_CHECKING:
    from emuredis.engine.session import Session

# -- reading -----------------------------------------------------------------------------------


@command("GET key", "readonly fast", keys="RO access @1", group="string", since="1.0.0", complexity="O(1)")
def get(ctx: Session, argv: list[bytes]) -> Reply:
    """Reads the value of a key."""
    db = ctx.db
    keyspace = db.keyspace
    value = db.data.get(argv[1])
    if value.__class__ is bytes and not keyspace.overdue:
        keyspace.hits += 1
        db.access[argv[1]] = keyspace.ns
        return value
    return db.read(argv[1], bytes)


@command("MGET key...", "readonly fast", keys="RO access @1..-1", group="string", since="1.0.0",
         complexity="O(N), N being the number of keys", tips="request_policy:multi_shard")  # fmt: skip
def mget(ctx: Session, argv: list[bytes]) -> Reply:
    """Reads the values of several keys; null for what is no string."""
    look = ctx.db.look
    values = [look(key) for key in argv[1:]]
    return [value if value.__class__ is bytes else None for value in values]


@command("STRLEN key", "readonly fast", keys="RO @1", group="string", since="2.2.0", complexity="O(1)")
def strlen(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells the length of a string in bytes."""
    return len(ctx.db.read(argv[1], bytes) or b"")


@command("GETRANGE key start:integer end:integer", "readonly", keys="RO access @1", group="string", since="2.4.0",
         complexity="O(N), N being the length of the part")  # fmt: skip
def getrange(ctx: Session, argv: list[bytes]) -> Reply:
    """Reads a part of a string."""
    start, end = integer(argv[2]), integer(argv[3])
    value = ctx.db.read(argv[1], bytes)
    if value is None or (end < start < 0):
        return b""
    size = len(value)
    start = max(start + size, 0) if start < 0 else start
    end = max(end + size, 0) if end < 0 else end
    return value[start : end + 1]


@command("SUBSTR key start:integer end:integer", "readonly", keys="RO access @1", group="string", since="1.0.0",
         complexity="O(N), N being the length of the part")  # fmt: skip
def substr(ctx: Session, argv: list[bytes]) -> Reply:
    """Reads a part of a string; the old name of GETRANGE."""
    return getrange(ctx, argv)


# -- setting -----------------------------------------------------------------------------------

_SET_WORDS = frozenset((b"NX", b"XX", b"IFEQ", b"GET", b"EX", b"PX", b"EXAT", b"PXAT", b"KEEPTTL"))


@command("SET key value condition=[NX|XX|IFEQ comparison-value] [GET] expiration=[EX seconds:integer|PX "
         "milliseconds:integer|"
         "EXAT unix-time-seconds:unix-time|PXAT unix-time-milliseconds:unix-time|KEEPTTL]", "write denyoom",
         keys="RW access update variable_flags @1", group="string", since="1.0.0", complexity="O(1)")  # fmt: skip
def set_(ctx: Session, argv: list[bytes]) -> Reply:
    """Makes a string the value of a key, whatever it held before."""
    if len(argv) == 3:
        db, key = ctx.db, argv[1]
        db.put(key, argv[2] if ctx.script is None else given(ctx, key, argv[2]))
        db.touch(key, STRING, b"set")
        return OK
    options = parse_options(argv, 3, len(argv), _SET_WORDS)
    when = options.deadline(ctx, "set")
    old = ctx.db.read(argv[1], bytes) if options.get else None
    done = _condition_holds(ctx, argv[1], options)
    if done:
        _set(ctx, argv[1], argv[2], when, options.expiry == b"KEEPTTL")
    if options.get:
        return old
    return OK if done else None


def _condition_holds(ctx: Session, key: bytes, options: Options) -> bool:
    if options.condition is None:
        return True
    if options.condition == b"IFEQ":
        return bool(ctx.db.write(key, bytes) == options.comparison)
    return (ctx.db.peek(key, True) is None) == (options.condition == b"NX")


def _set(ctx: Session, key: bytes, value: bytes, when: int | None, keepttl: bool = False) -> None:
    """Store a value with its deadline; one that has passed takes away what was there."""
    db, value = ctx.db, given(ctx, key, value)
    if when is None:
        if keepttl and db.exists(key):
            db.update(key, value)
        else:
            db.put(key, value)
        db.touch(key, STRING, b"set")
    elif when > ctx.now:
        db.put(key, value)
        db.expire_at(key, when)
        db.touch(key, STRING, b"set")
        db.notify(key, GENERIC, b"expire")
    elif db.exists(key):
        expire_now(ctx, key)


@command("SETNX key value", "write denyoom fast", keys="OW insert @1", group="string", since="1.0.0",
         complexity="O(1)")  # fmt: skip
def setnx(ctx: Session, argv: list[bytes]) -> Reply:
    """Sets a key that does not exist; 1 if it was set."""
    db, key = ctx.db, argv[1]
    if db.peek(key, True) is not None:
        return 0
    db.add(key, given(ctx, key, argv[2]))
    db.touch(key, STRING, b"set")
    return 1


@command("SETEX key seconds:integer value", "write denyoom", keys="OW update @1", group="string", since="2.0.0",
         complexity="O(1)")  # fmt: skip
def setex(ctx: Session, argv: list[bytes]) -> Reply:
    """Sets a key and its time to live in seconds."""
    return _set_for(ctx, argv, b"EX", "setex")


@command("PSETEX key milliseconds:integer value", "write denyoom", keys="OW update @1", group="string",
         since="2.6.0", complexity="O(1)")  # fmt: skip
def psetex(ctx: Session, argv: list[bytes]) -> Reply:
    """Sets a key and its time to live in milliseconds."""
    return _set_for(ctx, argv, b"PX", "psetex")


def _set_for(ctx: Session, argv: list[bytes], expiry: bytes, name: str) -> Reply:
    options = Options()
    options.expiry, options.time = expiry, argv[2]
    _set(ctx, argv[1], argv[3], options.deadline(ctx, name))
    return OK


@command("MSET data=(key value)...", "write denyoom", keys="OW update @1..-1/2", group="string", since="1.0.1",
         complexity="O(N), N being the number of keys",
         tips="request_policy:multi_shard response_policy:all_succeeded")  # fmt: skip
def mset(ctx: Session, argv: list[bytes]) -> Reply:
    """Sets several keys."""
    if not len(argv) & 1:
        raise errors.wrong_arity("mset")
    _set_all(ctx, argv)
    return OK


@command("MSETNX data=(key value)...", "write denyoom", keys="OW insert @1..-1/2", group="string", since="1.0.1",
         complexity="O(N), N being the number of keys")  # fmt: skip
def msetnx(ctx: Session, argv: list[bytes]) -> Reply:
    """Sets several keys if none of them exists; 1 if they were set."""
    if not len(argv) & 1:
        raise errors.wrong_arity("msetnx")
    if any(ctx.db.exists(key) for key in argv[1::2]):
        return 0
    _set_all(ctx, argv)
    return 1


def _set_all(ctx: Session, argv: list[bytes]) -> None:
    db = ctx.db
    for at in range(1, len(argv), 2):
        db.put(argv[at], given(ctx, argv[at], argv[at + 1]))
        db.touch(argv[at], STRING, b"set")


_MSETEX_WORDS = _SET_WORDS - {b"IFEQ", b"GET"}


@command("MSETEX numkeys:integer data=(key value)... condition=[NX|XX] expiration=[EX seconds:integer|PX "
         "milliseconds:integer|"
         "EXAT unix-time-seconds:unix-time|PXAT unix-time-milliseconds:unix-time|KEEPTTL]",
         "write denyoom movablekeys", keys="OW update @1#/2", group="string", since="9.1.0",
         complexity="O(N), N being the number of keys",
         tips="request_policy:multi_shard response_policy:all_succeeded")  # fmt: skip
def msetex(ctx: Session, argv: list[bytes]) -> Reply:
    """Sets several keys, on a condition for all of them, with one time to live; 1 if they were set."""
    count = parse_int(argv[1])
    if count is None or not 0 < count <= (1 << 31) - 1:
        raise ReplyError("ERR invalid numkeys value or out of range")
    stop = 2 + 2 * count
    if stop > len(argv):
        raise errors.syntax()
    options = parse_options(argv, stop, len(argv), _MSETEX_WORDS)
    when = options.deadline(ctx, "msetex")
    if not all(_condition_holds(ctx, key, options) for key in argv[2:stop:2]):
        return 0
    db = ctx.db
    for at in range(2, stop, 2):
        key, value = argv[at], given(ctx, argv[at], argv[at + 1])
        if db.exists(key) and options.expiry == b"KEEPTTL":
            db.update(key, value)
        else:
            db.put(key, value)
        db.touch(key, STRING, b"set")
        if when is not None:
            # The server keeps a key whose deadline has passed until somebody looks at it: so do we.
            db.expire_at(key, when)
            db.keyspace.overdue |= when <= ctx.now
            db.notify(key, GENERIC, b"expire")
    return 1


# -- reading and changing in one ---------------------------------------------------------------


@command("GETSET key value", "write denyoom fast", keys="RW access update @1", group="string", since="1.0.0",
         complexity="O(1)")  # fmt: skip
def getset(ctx: Session, argv: list[bytes]) -> Reply:
    """Sets a key and returns what it held."""
    db, key = ctx.db, argv[1]
    old = db.read(key, bytes)
    db.put(key, given(ctx, key, argv[2]))
    db.touch(key, STRING, b"set")
    return old


@command(
    "GETDEL key", "write fast", keys="RW access delete @1", group="string", since="6.2.0", complexity="O(1)"
)
def getdel(ctx: Session, argv: list[bytes]) -> Reply:
    """Reads the value of a key and deletes the key."""
    db, key = ctx.db, argv[1]
    value = db.read(key, bytes)
    if value is not None:
        db.remove(key)
        db.touch(key, GENERIC, b"del")
    return value


_GETEX_WORDS = frozenset((b"EX", b"PX", b"EXAT", b"PXAT", b"PERSIST"))


@command("GETEX key expiration=[EX seconds:integer|PX milliseconds:integer|EXAT unix-time-seconds:unix-time|"
         "PXAT unix-time-milliseconds:unix-time|PERSIST]", "write fast", keys="RW access update @1",
         group="string", since="6.2.0", complexity="O(1)")  # fmt: skip
def getex(ctx: Session, argv: list[bytes]) -> Reply:
    """Reads the value of a key and changes its time to live."""
    options = parse_options(argv, 2, len(argv), _GETEX_WORDS)
    when = options.deadline(ctx, "getex")
    db, key = ctx.db, argv[1]
    value = db.read(key, bytes)
    if value is None:
        return None
    if when is not None:
        if when <= ctx.now:
            expire_now(ctx, key)
        else:
            db.expire_at(key, when)
            db.touch(key, GENERIC, b"expire")
    elif options.expiry == b"PERSIST" and db.persist(key):
        db.touch(key, GENERIC, b"persist")
    return value


@command(
    "DELIFEQ key value", "write fast", keys="RM delete @1", group="string", since="9.0.0", complexity="O(1)"
)
def delifeq(ctx: Session, argv: list[bytes]) -> Reply:
    """Deletes a key if it holds this value; 1 if it was deleted."""
    db, key = ctx.db, argv[1]
    if db.write(key, bytes) != argv[2]:
        return 0
    db.remove(key)
    db.touch(key, GENERIC, b"del")
    return 1


# -- parts -------------------------------------------------------------------------------------


def _check_length(ctx: Session, length: int) -> None:
    if length > ctx.engine.config.proto_max_bulk_len:
        raise ReplyError("ERR string exceeds maximum allowed size (proto-max-bulk-len)")


@command("APPEND key value", "write denyoom fast", keys="RW insert @1", group="string", since="2.0.0",
         complexity="O(N), N being the new length")  # fmt: skip
def append(ctx: Session, argv: list[bytes]) -> Reply:
    """Appends to a string; its new length."""
    db, key, value = ctx.db, argv[1], argv[2]
    old = db.write(key, bytes)
    if old is not None:
        _check_length(ctx, len(old) + len(value))
        value = b"".join((old, value))  # a new object even where one of the two is empty
        value = db.note_encoding(key, value, b"raw")
    else:
        value = given(ctx, key, value)
    db.update(key, value)
    db.touch(key, STRING, b"append")
    return len(value)


@command("SETRANGE key offset:integer value", "write denyoom", keys="RW update @1", group="string", since="2.2.0",
         complexity="O(N), N being the new length")  # fmt: skip
def setrange(ctx: Session, argv: list[bytes]) -> Reply:
    """Overwrites a part of a string, filled up with zero bytes before it; the new length."""
    offset, part = integer(argv[2]), argv[3]
    if offset < 0:
        raise ReplyError("ERR offset is out of range")
    db, key = ctx.db, argv[1]
    old = db.write(key, bytes) or b""
    if not part:
        return len(old)
    _check_length(ctx, offset + len(part))
    value = b"".join((old[:offset].ljust(offset, b"\0"), part, old[offset + len(part) :]))  # a new object
    value = db.note_encoding(key, value, b"raw")
    db.update(key, value)
    db.touch(key, STRING, b"setrange")
    return len(value)


# -- counters ----------------------------------------------------------------------------------


def _increase(ctx: Session, key: bytes, increment: int) -> int:
    db = ctx.db
    old = db.data.get(key)
    if old.__class__ is not bytes or db.keyspace.overdue:
        old = db.write(key, bytes)
    if old is None:
        db.add(key, str(increment).encode())
    else:
        number = parse_int(old)
        if number is None:
            raise errors.not_integer()
        increment += number
        if not LLONG_MIN <= increment <= LLONG_MAX:
            raise ReplyError("ERR increment or decrement would overflow")
        db.data[key] = str(increment).encode()  # the key is there: this is all that `update` would do
        db.access[key] = db.keyspace.ns
    db.touch(key, STRING, b"incrby")
    return increment


@command("INCR key", "write denyoom fast", keys="RW access update @1", group="string", since="1.0.0",
         complexity="O(1)")  # fmt: skip
def incr(ctx: Session, argv: list[bytes]) -> Reply:
    """Adds one to the integer that a key holds, 0 when it does not exist."""
    return _increase(ctx, argv[1], 1)


@command("DECR key", "write denyoom fast", keys="RW access update @1", group="string", since="1.0.0",
         complexity="O(1)")  # fmt: skip
def decr(ctx: Session, argv: list[bytes]) -> Reply:
    """Subtracts one from the integer that a key holds, 0 when it does not exist."""
    return _increase(ctx, argv[1], -1)


@command("INCRBY key increment:integer", "write denyoom fast", keys="RW access update @1", group="string",
         since="1.0.0", complexity="O(1)")  # fmt: skip
def incrby(ctx: Session, argv: list[bytes]) -> Reply:
    """Adds to the integer that a key holds, 0 when it does not exist."""
    return _increase(ctx, argv[1], integer(argv[2]))


@command("DECRBY key decrement:integer", "write denyoom fast", keys="RW access update @1", group="string",
         since="1.0.0", complexity="O(1)")  # fmt: skip
def decrby(ctx: Session, argv: list[bytes]) -> Reply:
    """Subtracts from the integer that a key holds, 0 when it does not exist."""
    decrement = integer(argv[2])
    if decrement == LLONG_MIN:
        raise ReplyError("ERR decrement would overflow")
    return _increase(ctx, argv[1], -decrement)


@command("INCRBYFLOAT key increment:double", "write denyoom fast", keys="RW access update @1", group="string",
         since="2.6.0", complexity="O(1)")  # fmt: skip
def incrbyfloat(ctx: Session, argv: list[bytes]) -> Reply:
    """Adds to the number that a key holds, 0 when it does not exist."""
    db, key = ctx.db, argv[1]
    old = db.write(key, bytes)
    number = parse_long_double(b"0" if old is None else old)
    increment = parse_long_double(argv[2])
    if number is None or increment is None:
        raise errors.not_float()
    total = None
    if number.__class__ is tuple and increment.__class__ is tuple:
        total = sum_long_double(number, increment)
    if total is None:
        raise ReplyError("ERR increment would produce NaN or Infinity")
    value = format_long_double(total)
    if b"." not in value:
        value = as_text(db, key, value)
    db.update(key, value)
    db.touch(key, STRING, b"incrbyfloat")
    return value
