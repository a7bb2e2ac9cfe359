"""Hashes: fields to values.

A field's value is text like any string: HINCRBY reads and writes canonical integers, HINCRBYFLOAT computes with
80-bit floats. Setting a field drops its deadline, changing its number keeps it; what concerns deadlines of fields is
in `hash_expiry`. A hash that lost its last field is gone, with a ``del`` event after that of the command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.commands.scanning import parse_cursor, parse_scan_options
from emuredis.errors import ReplyError
from emuredis.keyspace.notify import HASH
from emuredis.replies import OK, Map, Pairs, Reply
from emuredis.scalars import (
    LLONG_MAX,
    LLONG_MIN,
    format_long_double,
    parse_int,
    parse_long_double,
    sum_long_double,
)
from emuredis.spec import command
from emuredis.values.hash import Hash

if TYPE_CHECKING:
    from emuredis.engine.session import Session

#: A reply has to fit into memory: more choices (with repeats) than this are refused, where the server tries.
_MOST_CHOICES = 1 << 24

# -- setting -----------------------------------------------------------------------------------


@command("HSET key data=(field value)...", "write denyoom fast", keys="RW update @1", group="hash", since="2.0.0",
         complexity="O(N), N being the number of fields set")  # fmt: skip
def hset(ctx: Session, argv: list[bytes]) -> Reply:
    """Sets fields of a hash; how many are new."""
    db, key = ctx.db, argv[1]
    if len(argv) == 4:
        value = db.write(key, Hash)
        if value is None:
            value = db.add(key, Hash(ctx.engine.limits))
        created = 1 if value.set(argv[2], argv[3]) else 0
    else:
        created = _set_many(ctx, argv, "hset")
    db.touch(key, HASH, b"hset")
    return created


@command("HMSET key data=(field value)...", "write denyoom fast", keys="RW update @1", group="hash", since="2.0.0",
         complexity="O(N), N being the number of fields set")  # fmt: skip
def hmset(ctx: Session, argv: list[bytes]) -> Reply:
    """Sets fields of a hash; HSET does the same and tells how many are new."""
    _set_many(ctx, argv, "hmset")
    ctx.db.touch(argv[1], HASH, b"hset")
    return OK


def _set_many(ctx: Session, argv: list[bytes], name: str) -> int:
    if len(argv) & 1:
        raise errors.wrong_arity(name)
    return _writable(ctx, argv[1]).update(argv[2:])


def _writable(ctx: Session, key: bytes) -> Hash:
    """The hash of a key, made if there is none."""
    value: Hash | None = ctx.db.write(key, Hash)
    return value if value is not None else ctx.db.add(key, Hash(ctx.engine.limits))


@command("HSETNX key field value", "write denyoom fast", keys="RW insert @1", group="hash", since="2.0.0",
         complexity="O(1)")  # fmt: skip
def hsetnx(ctx: Session, argv: list[bytes]) -> Reply:
    """Sets a field that does not exist; 1 if it was set."""
    db, key, field = ctx.db, argv[1], argv[2]
    value = db.write(key, Hash)
    if value is not None and field in value.fields:
        return 0
    _writable(ctx, key).set(field, argv[3])
    db.touch(key, HASH, b"hset")
    return 1


@command("HDEL key field...", "write fast", keys="RW delete @1", group="hash", since="2.0.0",
         complexity="O(N), N being the number of fields")  # fmt: skip
def hdel(ctx: Session, argv: list[bytes]) -> Reply:
    """Deletes fields; how many existed. A hash without fields is deleted too."""
    db, key = ctx.db, argv[1]
    value = db.write(key, Hash)
    if value is None:
        return 0
    discard = value.discard
    count = sum([discard(field) for field in argv[2:]])
    if count:
        db.touch(key, HASH, b"hdel")
        db.drop_if_empty(key, value)
    return count


# -- reading -----------------------------------------------------------------------------------


@command(
    "HGET key field", "readonly fast", keys="RO access @1", group="hash", since="2.0.0", complexity="O(1)"
)
def hget(ctx: Session, argv: list[bytes]) -> Reply:
    """Reads a field."""
    value = ctx.db.read(argv[1], Hash)
    return None if value is None else value.fields.get(argv[2])


@command("HMGET key field...", "readonly fast", keys="RO access @1", group="hash", since="2.0.0",
         complexity="O(N), N being the number of fields")  # fmt: skip
def hmget(ctx: Session, argv: list[bytes]) -> Reply:
    """Reads several fields."""
    value = ctx.db.read(argv[1], Hash)
    if value is None:
        return [None] * (len(argv) - 2)
    find = value.fields.get
    return [find(field) for field in argv[2:]]


@command("HGETALL key", "readonly", keys="RO access @1", group="hash", since="2.0.0",
         complexity="O(N), N being the size of the hash", tips="nondeterministic_output_order")  # fmt: skip
def hgetall(ctx: Session, argv: list[bytes]) -> Reply:
    """Reads every field and value."""
    value = ctx.db.read(argv[1], Hash)
    return Map() if value is None else Map(value.flat())


@command("HKEYS key", "readonly", keys="RO access @1", group="hash", since="2.0.0",
         complexity="O(N), N being the size of the hash", tips="nondeterministic_output_order")  # fmt: skip
def hkeys(ctx: Session, argv: list[bytes]) -> Reply:
    """Lists the fields."""
    value = ctx.db.read(argv[1], Hash)
    return [] if value is None else list(value.fields)


@command("HVALS key", "readonly", keys="RO access @1", group="hash", since="2.0.0",
         complexity="O(N), N being the size of the hash", tips="nondeterministic_output_order")  # fmt: skip
def hvals(ctx: Session, argv: list[bytes]) -> Reply:
    """Lists the values."""
    value = ctx.db.read(argv[1], Hash)
    return [] if value is None else list(value.fields.values())


@command("HLEN key", "readonly fast", keys="RO @1", group="hash", since="2.0.0", complexity="O(1)")
def hlen(ctx: Session, argv: list[bytes]) -> Reply:
    """Counts the fields."""
    value = ctx.db.read(argv[1], Hash)
    return 0 if value is None else len(value.fields)


@command("HSTRLEN key field", "readonly fast", keys="RO @1", group="hash", since="3.2.0", complexity="O(1)")
def hstrlen(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells the length of a field's value in bytes."""
    value = ctx.db.read(argv[1], Hash)
    return 0 if value is None else len(value.fields.get(argv[2], b""))


@command("HEXISTS key field", "readonly fast", keys="RO @1", group="hash", since="2.0.0", complexity="O(1)")
def hexists(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells whether a field exists."""
    value = ctx.db.read(argv[1], Hash)
    return 1 if value is not None and argv[2] in value.fields else 0


@command("HRANDFIELD key options=[count:integer [WITHVALUES]]", "readonly", keys="RO access @1", group="hash",
         since="6.2.0", complexity="O(N), N being the number of fields returned",
         tips="nondeterministic_output")  # fmt: skip
def hrandfield(ctx: Session, argv: list[bytes]) -> Reply:
    """Picks fields by chance: distinct ones, or with a negative count any."""
    if len(argv) == 2:
        value = ctx.db.read(argv[1], Hash)
        return None if value is None else value.random(ctx.rng)
    count = integer(argv[2])
    if count == LLONG_MIN:
        raise ReplyError(f"ERR value is out of range, value must between {-LLONG_MAX} and {LLONG_MAX}")
    with_values = len(argv) == 4 and argv[3].upper() == b"WITHVALUES"
    if len(argv) > 3 and not with_values:
        raise errors.syntax()
    if with_values and abs(count) > LLONG_MAX // 2:
        raise ReplyError("ERR value is out of range")
    if count < -_MOST_CHOICES:
        raise errors.unsupported(f"HRANDFIELD of more than {_MOST_CHOICES} fields")
    value = ctx.db.read(argv[1], Hash)
    if value is None or count == 0:
        return []
    fields = value.sample(ctx.rng, count) if count > 0 else value.choices(ctx.rng, -count)
    if not with_values:
        return fields
    return Pairs([part for field in fields for part in (field, value.fields[field])])


@command("HSCAN key cursor:integer [MATCH pattern:pattern] [COUNT count:integer] [NOVALUES]", "readonly",
         keys="RO access @1", group="hash", since="2.8.0",
         complexity="O(1) a call, O(N) a whole scan, N being the size of the hash",
         tips="nondeterministic_output")  # fmt: skip
def hscan(ctx: Session, argv: list[bytes]) -> Reply:
    """Walks over the fields, a page at a time."""
    cursor = parse_cursor(argv[2])
    value = ctx.db.read(argv[1], Hash)
    if value is None:
        return [b"0", []]
    options = parse_scan_options(argv, 3, b"hscan")
    following, page = value.scan(cursor, options.count)
    if options.match is not None:
        page = list(filter(options.match, page))
    if not options.novalues:
        page = [part for field in page for part in (field, value.fields[field])]
    return [b"%d" % following, page]


# -- counters ----------------------------------------------------------------------------------


@command("HINCRBY key field increment:integer", "write denyoom fast", keys="RW access update @1", group="hash",
         since="2.0.0", complexity="O(1)")  # fmt: skip
def hincrby(ctx: Session, argv: list[bytes]) -> Reply:
    """Adds to the integer that a field holds, 0 when it does not exist."""
    db, key, field = ctx.db, argv[1], argv[2]
    number = integer(argv[3])
    value = db.write(key, Hash)
    old = None if value is None else value.fields.get(field)
    if old is not None:
        before = parse_int(old)
        if before is None:
            raise ReplyError("ERR hash value is not an integer")
        number += before
        if not LLONG_MIN <= number <= LLONG_MAX:
            raise ReplyError("ERR increment or decrement would overflow")
    if value is None:
        value = db.add(key, Hash(ctx.engine.limits))
    value.replace(field, b"%d" % number)
    db.touch(key, HASH, b"hincrby")
    return number


@command("HINCRBYFLOAT key field increment:double", "write denyoom fast", keys="RW access update @1",
         group="hash", since="2.6.0", complexity="O(1)")  # fmt: skip
def hincrbyfloat(ctx: Session, argv: list[bytes]) -> Reply:
    """Adds to the number that a field holds, 0 when it does not exist."""
    db, key, field = ctx.db, argv[1], argv[2]
    increment = parse_long_double(argv[3])
    if increment is None:
        raise errors.not_float()
    if increment.__class__ is not tuple:
        raise ReplyError("ERR value is NaN or Infinity")
    value = db.write(key, Hash)
    old = parse_long_double(b"0" if value is None else value.fields.get(field, b"0"))
    if old is None:
        raise ReplyError("ERR hash value is not a float")
    total = sum_long_double(old, increment) if old.__class__ is tuple else None
    if total is None:
        raise ReplyError("ERR increment would produce NaN or Infinity")
    text = format_long_double(total)
    _writable(ctx, key).replace(field, text)
    db.touch(key, HASH, b"hincrbyfloat")
    return text
