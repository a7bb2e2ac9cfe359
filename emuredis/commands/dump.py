"""DUMP and RESTORE: a value as bytes, and back. The format is `emuredis.keyspace.rdb`'s."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.errors import ReplyError
from emuredis.keyspace import notify
from emuredis.keyspace.rdb import payload
from emuredis.keyspace.rdb.codec import RdbError
from emuredis.replies import OK, Reply
from emuredis.scalars import LLONG_MAX
from emuredis.spec import command

if TYPE_CHECKING:
    from emuredis.engine.session import Session


@command("DUMP key", "readonly", keys="RO access @1", group="generic", since="2.6.0", acl="keyspace",
         complexity="O(N), N being the bytes of the value", tips="nondeterministic_output")  # fmt: skip
def dump(ctx: Session, argv: list[bytes]) -> Reply:
    """Serializes a value."""
    value = ctx.db.look(argv[1])
    return None if value is None else payload.dump(value, ctx.engine.config.rdbcompression)


_COST = "O(N*log(N)) for sorted sets, O(N) for others, N being the bytes of the value"
_SYNTAX = ("key ttl:integer serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds:integer] "
           "[FREQ frequency:integer]")  # fmt: skip


@command(f"RESTORE {_SYNTAX}", "write denyoom", keys="OW update @1", group="generic", since="2.6.0",
         acl="keyspace dangerous", complexity=_COST)  # fmt: skip
def restore(ctx: Session, argv: list[bytes]) -> Reply:
    """Creates a key from a serialized value."""
    db, key = ctx.db, argv[1]
    flags = _options(argv)
    replace = b"REPLACE" in flags
    if not replace and db.peek(key) is not None:
        raise ReplyError("BUSYKEY Target key name already exists.")
    ttl = integer(argv[2])
    if ttl < 0:
        raise errors.err("Invalid TTL value, must be >= 0")
    value = _value(argv[3], ctx)
    deleted = replace and db.remove(key)
    deadline = ttl if b"ABSTTL" in flags else ttl + ctx.now
    # The sum wraps round, as in the server: a key that would live beyond all time is gone at once.
    if ttl and (deadline <= ctx.now or deadline > LLONG_MAX):
        if deleted:
            db.touch(key, notify.GENERIC, b"del")
        return OK
    db.add(key, value)
    if ttl:
        db.expire_at(key, deadline)
    if b"IDLETIME" in flags:
        ctx.engine.memory.set_idle(db, key, flags[b"IDLETIME"])
    if b"FREQ" in flags:
        ctx.engine.memory.set_frequency(db, key, flags[b"FREQ"])
    db.touch(key, notify.GENERIC, b"restore")
    db.adopt_fields(key, value)
    if key in db.volatile:
        db.expire_fields(key)  # their time may have come already
    return OK


@command(f"RESTORE-ASKING {_SYNTAX}", "write denyoom asking", keys="OW update @1", group="server", since="3.0.0",
         acl="keyspace dangerous", complexity=_COST)  # fmt: skip
def restore_asking(ctx: Session, argv: list[bytes]) -> Reply:
    """RESTORE, for servers of a cluster that move a key."""
    return restore(ctx, argv)


def _options(argv: list[bytes]) -> dict[bytes, int]:
    """The words REPLACE, ABSTTL, IDLETIME and FREQ that are there, the latter with their numbers."""
    given: dict[bytes, int] = {}
    at = 4
    while at < len(argv):
        word = argv[at].upper()
        given[word] = 0
        more = at + 1 < len(argv)
        if word == b"IDLETIME" and more and b"FREQ" not in given:
            at += 1
            given[word] = integer(argv[at])
            if given[word] < 0:
                raise errors.err("Invalid IDLETIME value, must be >= 0")
        elif word == b"FREQ" and more and b"IDLETIME" not in given:
            at += 1
            given[word] = integer(argv[at])
            if not 0 <= given[word] <= 255:
                raise errors.err("Invalid FREQ value, must be >= 0 and <= 255")
        elif word not in (b"REPLACE", b"ABSTTL"):
            raise errors.syntax()
        at += 1
    return given


def _value(data: bytes, ctx: Session) -> Any:
    try:
        return payload.restore(data, ctx.engine.limits)
    except payload.WrongPayload:
        raise errors.err("DUMP payload version or checksum are wrong") from None
    except RdbError:
        raise errors.err("Bad data format") from None
