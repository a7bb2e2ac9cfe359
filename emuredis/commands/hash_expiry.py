"""Deadlines of hash fields: HEXPIRE and its kin, HTTL and its kin, HPERSIST, HGETEX, HSETEX, HGETDEL.

Each names its fields as ``FIELDS numfields field ...``. The commands with options look for the first word FIELDS
anywhere, even as the key, and take what stands before it as options; the others want it in its place.

A field whose new deadline has come already is deleted at once (``hexpired``). Fields whose time comes later go with
`Keyspace.expire_due`, as keys do. The answers about single fields are numbers: see `_MISSING` and the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.commands.expiry import allows, instant, parse_expire_flags, parse_options
from emuredis.errors import ReplyError
from emuredis.keyspace.notify import GENERIC, HASH
from emuredis.replies import Reply
from emuredis.spec import command
from emuredis.values.hash import Hash

if TYPE_CHECKING:
    from emuredis.engine.session import Session

_MISSING, _NONE, _REFUSED, _DONE, _DELETED = -2, -1, 0, 1, 2


def _find_fields(argv: list[bytes], start: int) -> int | None:
    """Where the word FIELDS stands, at ``start`` or later but not at the very end."""
    for at in range(start, len(argv) - 1):
        if argv[at].upper() == b"FIELDS":
            return at
    return None


def _fields(argv: list[bytes], at: int | None, width: int = 1) -> list[bytes]:
    """What follows FIELDS and its number, ``width`` words for each field."""
    if at is not None:
        count = integer(argv[at + 1])
        if count > 0 and count * width == len(argv) - at - 2:
            return argv[at + 2 :]
    raise ReplyError("ERR numfields should be greater than 0 and match the provided number of fields")


def _plain_fields(argv: list[bytes]) -> list[bytes]:
    """As `_fields` for the commands that take FIELDS right after the key."""
    if argv[2].upper() != b"FIELDS":
        raise errors.syntax()
    return _fields(argv, 2)


# -- giving deadlines --------------------------------------------------------------------------


def _expire_field(ctx: Session, key: bytes, value: Hash, field: bytes, when: int, flags: set[bytes]) -> int:
    if field not in value:
        return _MISSING
    if flags and not allows(flags, value.deadline(field), when):
        return _REFUSED
    if when <= ctx.now:
        value.discard(field)
        return _DELETED
    ctx.db.expire_field_at(key, value, field, when)
    return _DONE


def _announce(ctx: Session, key: bytes, value: Hash, event: bytes) -> None:
    ctx.db.touch(key, HASH, event)
    ctx.db.drop_if_empty(key, value)


def _hexpire(ctx: Session, argv: list[bytes], seconds: bool, base: int, name: str) -> Reply:
    at = _find_fields(argv, 3)
    flags = parse_expire_flags(argv, 3, at) if at is not None else set()
    fields = _fields(argv, at)
    when = instant(argv[2], seconds, base, name, 0)
    key = argv[1]
    value = ctx.db.write(key, Hash)
    if value is None:
        return [_MISSING] * len(fields)
    results = [_expire_field(ctx, key, value, field, when, flags) for field in fields]
    if _DELETED in results:
        _announce(ctx, key, value, b"hexpired")
    elif _DONE in results:
        _announce(ctx, key, value, b"hexpire")
    return results


@command("HEXPIRE key seconds:integer condition=[NX|XX|GT|LT] FIELDS fields=(numfields:integer field...)", "write fast",
         keys="RW update @1", group="hash", since="9.0.0", complexity="O(N), N being the number of fields",
         arity=-6)  # fmt: skip
def hexpire(ctx: Session, argv: list[bytes]) -> Reply:
    """Gives fields a time to live in seconds."""
    return _hexpire(ctx, argv, True, ctx.now, "hexpire")


@command("HPEXPIRE key milliseconds:integer condition=[NX|XX|GT|LT] FIELDS fields=(numfields:integer field...)",
         "write fast",
         keys="RW update @1", group="hash", since="9.0.0", complexity="O(N), N being the number of fields",
         arity=-6)  # fmt: skip
def hpexpire(ctx: Session, argv: list[bytes]) -> Reply:
    """Gives fields a time to live in milliseconds."""
    return _hexpire(ctx, argv, False, ctx.now, "hpexpire")


@command("HEXPIREAT key unix-time-seconds:integer condition=[NX|XX|GT|LT] FIELDS fields=(numfields:integer field...)",
         "write fast", keys="RW update @1", group="hash", since="9.0.0",
         complexity="O(N), N being the number of fields", arity=-6)  # fmt: skip
def hexpireat(ctx: Session, argv: list[bytes]) -> Reply:
    """Gives fields the instant, in seconds since 1970, at which they expire."""
    return _hexpire(ctx, argv, True, 0, "hexpireat")


@command("HPEXPIREAT key unix-time-milliseconds:integer condition=[NX|XX|GT|LT] FIELDS fields=(numfields:integer "
         "field...)",
         "write fast", keys="RW update @1", group="hash", since="9.0.0",
         complexity="O(N), N being the number of fields", arity=-6)  # fmt: skip
def hpexpireat(ctx: Session, argv: list[bytes]) -> Reply:
    """Gives fields the instant, in milliseconds since 1970, at which they expire."""
    return _hexpire(ctx, argv, False, 0, "hpexpireat")


@command("HPERSIST key FIELDS fields=(numfields:integer field...)", "write fast", keys="RW update @1", group="hash",
         since="9.0.0", complexity="O(N), N being the number of fields", arity=-5)  # fmt: skip
def hpersist(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes the times to live of fields away."""
    fields = _plain_fields(argv)
    value = ctx.db.write(argv[1], Hash)
    if value is None:
        return [_MISSING] * len(fields)
    results = [
        _MISSING if field not in value else _DONE if value.persist(field) else _NONE for field in fields
    ]
    if _DONE in results:
        ctx.db.touch(argv[1], HASH, b"hpersist")
    return results


# -- looking at deadlines ----------------------------------------------------------------------


def _look(ctx: Session, argv: list[bytes], tell: Callable[[int], int]) -> Reply:
    if argv[2].upper() != b"FIELDS":
        raise errors.syntax()
    count = integer(argv[3])
    if count <= 0 or count != len(argv) - 4:
        raise errors.syntax()
    value = ctx.db.read(argv[1], Hash)
    results = []
    for field in argv[4:]:
        if value is None or field not in value:
            results.append(_MISSING)
        else:
            deadline = value.deadline(field)
            results.append(_NONE if deadline is None else tell(deadline))
    return results


@command("HTTL key FIELDS fields=(numfields:integer field...)", "readonly fast", keys="RO access @1", group="hash",
         since="9.0.0", complexity="O(N), N being the number of fields", arity=-5)  # fmt: skip
def httl(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells how many seconds fields have to live, rounded to the nearest."""
    now = ctx.now
    return _look(ctx, argv, lambda deadline: (deadline - now + 500) // 1000)


@command("HPTTL key FIELDS fields=(numfields:integer field...)", "readonly fast", keys="RO access @1", group="hash",
         since="9.0.0", complexity="O(N), N being the number of fields", arity=-5)  # fmt: skip
def hpttl(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells how many milliseconds fields have to live."""
    now = ctx.now
    return _look(ctx, argv, lambda deadline: deadline - now)


@command("HEXPIRETIME key FIELDS fields=(numfields:integer field...)", "readonly fast", keys="RO access @1",
         group="hash",
         since="9.0.0", complexity="O(N), N being the number of fields", arity=-5)  # fmt: skip
def hexpiretime(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells when fields expire, in seconds since 1970, rounded to the nearest."""
    return _look(ctx, argv, lambda deadline: (deadline + 500) // 1000)


@command("HPEXPIRETIME key FIELDS fields=(numfields:integer field...)", "readonly fast", keys="RO access @1",
         group="hash", since="9.0.0", complexity="O(N), N being the number of fields", arity=-5)  # fmt: skip
def hpexpiretime(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells when fields expire, in milliseconds since 1970."""
    return _look(ctx, argv, lambda deadline: deadline)


# -- reading or setting, and deadlines ---------------------------------------------------------

_HGETEX_WORDS = frozenset((b"EX", b"PX", b"EXAT", b"PXAT", b"PERSIST"))
_HSETEX_WORDS = frozenset((b"NX", b"XX", b"FNX", b"FXX", b"EX", b"PX", b"EXAT", b"PXAT", b"KEEPTTL"))


@command("HGETEX key expiration=[EX seconds:integer|PX milliseconds:integer|EXAT unix-time-seconds:unix-time|"
         "PXAT unix-time-milliseconds:unix-time|PERSIST] FIELDS fields=(numfields:integer field...)", "write fast",
         keys="RW access update @1", group="hash", since="9.0.0",
         complexity="O(N), N being the number of fields", arity=-5)  # fmt: skip
def hgetex(ctx: Session, argv: list[bytes]) -> Reply:
    """Reads fields and changes their times to live."""
    at = _find_fields(argv, 1)
    options = parse_options(argv, 2, at or 2, _HGETEX_WORDS)
    fields = _fields(argv, at)
    key = argv[1]
    value = ctx.db.read_to_change(key, Hash)
    when = options.deadline(ctx, "hgetex", 0)
    if value is None:
        return [None] * len(fields)
    values: list[Reply] = []
    changed, event = False, b"hpersist"
    for field in fields:
        values.append(value.get(field))
        if when is not None:
            result = _expire_field(ctx, key, value, field, when, set())
            changed |= result > 0
            event = b"hexpire" if when > ctx.now else b"hexpired"
        elif options.expiry == b"PERSIST":
            changed |= value.persist(field)
    if changed:
        _announce(ctx, key, value, event)
    return values


@command("HSETEX key key-condition=[NX|XX] fields-condition=[FNX|FXX] expiration=[EX seconds:integer|PX "
         "milliseconds:integer|"
         "EXAT unix-time-seconds:unix-time|PXAT unix-time-milliseconds:unix-time|KEEPTTL] "
         "FIELDS fields=(numfields:integer data=(field value)...)", "write denyoom fast", keys="RW insert @1",
         group="hash",
         since="9.0.0", complexity="O(N), N being the number of fields", arity=-6)  # fmt: skip
def hsetex(ctx: Session, argv: list[bytes]) -> Reply:
    """Sets fields and their times to live, all or none; 1 if they were set."""
    at = _find_fields(argv, 1)
    options = parse_options(argv, 2, at or 2, _HSETEX_WORDS)
    pairs = _fields(argv, at, 2)
    db, key = ctx.db, argv[1]
    value = db.write(key, Hash)
    if options.condition is not None and (value is None) != (options.condition == b"NX"):
        return 0
    when = options.deadline(ctx, "hsetex", 0)
    if options.field_condition is not None:
        present = options.field_condition == b"FXX"
        if any((value is not None and field in value) != present for field in pairs[::2]):
            return 0
    if value is None:
        value = db.add(key, Hash(ctx.engine.limits))
    if when is not None and when <= ctx.now:
        _hset_expired(ctx, key, value, pairs[::2])
        return 1
    put = value.replace if options.expiry == b"KEEPTTL" else value.set
    for at in range(0, len(pairs), 2):
        put(pairs[at], pairs[at + 1])
        if when is not None:
            db.expire_field_at(key, value, pairs[at], when)
    db.touch(key, HASH, b"hset")
    if when is not None:
        db.notify(key, HASH, b"hexpire")
    return 1


def _hset_expired(ctx: Session, key: bytes, value: Hash, fields: list[bytes]) -> None:
    """HSETEX with an instant that has passed: the fields go, with all the events of setting them."""
    db = ctx.db
    deleted = [value.discard(field) for field in fields]
    announce = db.mention
    if any(deleted):
        db.touch(key, HASH, b"")
        announce = db.notify
    for event in (b"hset", b"hexpire", b"hexpired"):
        announce(key, HASH, event)
    if not value:
        db.remove(key)
        announce(key, GENERIC, b"del")


@command("HGETDEL key FIELDS fields=(numfields:integer field...)", "write fast", keys="RW access delete @1",
         group="hash", since="9.1.0", complexity="O(N), N being the number of fields", arity=-5)  # fmt: skip
def hgetdel(ctx: Session, argv: list[bytes]) -> Reply:
    """Reads fields and deletes them."""
    fields = _plain_fields(argv)
    value = ctx.db.write(argv[1], Hash)
    if value is None:
        return [None] * len(fields)
    values: list[Reply] = []
    for field in fields:
        values.append(value.get(field))
        value.discard(field)
    if any(one is not None for one in values):
        _announce(ctx, argv[1], value, b"hdel")
    return values
