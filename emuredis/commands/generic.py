"""Keys of any type: DEL, EXISTS, TYPE, RENAME, COPY, MOVE ...; and whole databases: DBSIZE, FLUSHDB, SWAPDB.

Times to live are in `expiry`, SCAN in `scanning`, OBJECT in `objects`, SORT in `sorting`.

A value belongs to one key: COPY copies it, RENAME and MOVE hand it over with its deadline. A destination that is
replaced goes first and the key counts as new; both ends are announced, so clients blocked on the destination wake.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.commands.scanning import type_name
from emuredis.errors import ReplyError
from emuredis.keyspace.notify import GENERIC
from emuredis.patterns import compile
from emuredis.replies import OK, Reply, Status
from emuredis.scalars import parse_int
from emuredis.spec import command

if TYPE_CHECKING:
    from emuredis.engine.session import Session
    from emuredis.keyspace.database import Database

_INT_MAX = (1 << 31) - 1

# -- deleting and looking ----------------------------------------------------------------------


@command("DEL key...", "write", keys="RM delete @1..-1", group="generic", since="1.0.0",
         complexity="O(N), N being the number of keys",
         tips="request_policy:multi_shard response_policy:agg_sum")  # fmt: skip
def del_(ctx: Session, argv: list[bytes]) -> Reply:
    """Deletes keys; how many existed."""
    db = ctx.db
    count = 0
    for key in argv[1:]:
        if db.remove(key):
            db.touch(key, GENERIC, b"del")
            count += 1
    return count


@command("UNLINK key...", "write fast", keys="RM delete @1..-1", group="generic", since="4.0.0",
         complexity="O(N), N being the number of keys",
         tips="request_policy:multi_shard response_policy:agg_sum")  # fmt: skip
def unlink(ctx: Session, argv: list[bytes]) -> Reply:
    """Deletes keys; how many existed. Nothing is left to be freed later."""
    return del_(ctx, argv)


@command("EXISTS key...", "readonly fast", keys="RO @1..-1", group="generic", since="1.0.0",
         complexity="O(N), N being the number of keys",
         tips="request_policy:multi_shard response_policy:agg_sum")  # fmt: skip
def exists(ctx: Session, argv: list[bytes]) -> Reply:
    """Counts which of the keys exist; a key named twice counts twice."""
    look = ctx.db.look
    if len(argv) == 2:
        return 0 if look(argv[1], False) is None else 1
    return sum([look(key, False) is not None for key in argv[1:]])


@command("TOUCH key...", "readonly fast", keys="RO @1..-1", group="generic", since="3.2.1",
         complexity="O(N), N being the number of keys",
         tips="request_policy:multi_shard response_policy:agg_sum")  # fmt: skip
def touch(ctx: Session, argv: list[bytes]) -> Reply:
    """Counts which of the keys exist, as a use of them."""
    look = ctx.db.look
    return sum([look(key) is not None for key in argv[1:]])


@command("TYPE key", "readonly fast", keys="RO @1", group="generic", since="1.0.0", complexity="O(1)")
def type_(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells the type of the value of a key."""
    return Status(type_name(ctx.db.look(argv[1], False)))


@command("KEYS pattern:pattern", "readonly", group="generic", since="1.0.0", acl="keyspace dangerous",
         complexity="O(N), N being the number of keys in the database",
         tips="request_policy:all_shards nondeterministic_output_order")  # fmt: skip
def keys(ctx: Session, argv: list[bytes]) -> Reply:
    """Lists the keys whose names match a pattern."""
    return list(filter(compile(argv[1]), ctx.db.keys()))


@command("RANDOMKEY", "readonly", group="generic", since="1.0.0",
         complexity="O(N), N being the number of keys in the database",
         tips="request_policy:all_shards response_policy:special nondeterministic_output")  # fmt: skip
def randomkey(ctx: Session, argv: list[bytes]) -> Reply:
    """Names a key by chance, each as likely as any other."""
    size = len(ctx.db)
    return next(islice(ctx.db.keys(), int(ctx.rng.random() * size), None)) if size else None


# -- renaming, copying, moving -----------------------------------------------------------------


def _hand_over(source: Database, key: bytes, target: Database, newkey: bytes, value: Any) -> None:
    """Put ``value``, the value of ``key``, under ``newkey``, which is absent, with the same deadline."""
    deadline = source.deadline(key)
    if source.encodings and (encoding := source.noted_encoding(key, value)):
        value = target.note_encoding(newkey, value, encoding)
    target.add(newkey, value)
    if deadline is not None:
        target.expire_at(newkey, deadline)
    target.adopt_fields(newkey, value)


def _rename(ctx: Session, argv: list[bytes], replace: bool) -> bool:
    db, key, newkey = ctx.db, argv[1], argv[2]
    value = db.peek(key)
    if value is None:
        raise errors.no_such_key()
    if key == newkey:
        return False
    if db.exists(newkey):
        if not replace:
            return False
        db.remove(newkey)
    _hand_over(db, key, db, newkey, value)
    db.remove(key)
    db.touch(key, GENERIC, b"rename_from")
    db.touch(newkey, GENERIC, b"rename_to")
    return True


@command("RENAME key newkey:key", "write", keys="RW access delete @1, OW update @2", group="generic",
         since="1.0.0", complexity="O(1)")  # fmt: skip
def rename(ctx: Session, argv: list[bytes]) -> Reply:
    """Gives a key another name, replacing what has that name."""
    _rename(ctx, argv, True)
    return OK


@command("RENAMENX key newkey:key", "write fast", keys="RW access delete @1, OW insert @2", group="generic",
         since="1.0.0", complexity="O(1)")  # fmt: skip
def renamenx(ctx: Session, argv: list[bytes]) -> Reply:
    """Gives a key another name unless that name is taken; 1 if it was renamed."""
    return int(_rename(ctx, argv, False))


def _database(ctx: Session, text: bytes) -> Database:
    index = integer(text)
    if not -_INT_MAX - 1 <= index <= _INT_MAX:
        raise ReplyError(f"ERR value is out of range, value must between {-_INT_MAX - 1} and {_INT_MAX}")
    databases = ctx.engine.keyspace.databases
    if not 0 <= index < len(databases):
        raise ReplyError("ERR DB index is out of range")
    return databases[index]


def _same_objects() -> ReplyError:
    return ReplyError("ERR source and destination objects are the same")


@command("COPY source:key destination:key [DB destination-db:integer] [REPLACE]", "write denyoom",
         keys="RO access @1, OW update @2", group="generic", since="6.2.0",
         complexity="O(N) for a collection of N elements, O(1) for a string")  # fmt: skip
def copy(ctx: Session, argv: list[bytes]) -> Reply:
    """Copies a value to another key; 1 if it was copied."""
    source, target, replace = ctx.db, ctx.db, False
    at = 3
    while at < len(argv):
        word = argv[at].upper()
        if word == b"REPLACE":
            replace = True
        elif word == b"DB" and at + 1 < len(argv):
            at += 1
            target = _database(ctx, argv[at])
        else:
            raise errors.syntax()
        at += 1
    key, newkey = argv[1], argv[2]
    if source is target and key == newkey:
        raise _same_objects()
    value = source.look(key)
    if value is None:
        return 0
    if target.exists(newkey):
        if not replace:
            return 0
        target.remove(newkey)
    _hand_over(source, key, target, newkey, value if value.__class__ is bytes else value.copy())
    target.touch(newkey, GENERIC, b"copy_to")
    return 1


@command("MOVE key db:integer", "write fast", keys="RW access update @1", group="generic", since="1.0.0",
         complexity="O(1)")  # fmt: skip
def move(ctx: Session, argv: list[bytes]) -> Reply:
    """Moves a key to another database; 1 if it was moved."""
    source, target, key = ctx.db, _database(ctx, argv[2]), argv[1]
    if source is target:
        raise _same_objects()
    value = source.peek(key)
    if value is None or target.exists(key):
        return 0
    _hand_over(source, key, target, key, value)
    source.remove(key)
    source.touch(key, GENERIC, b"move_from")
    target.touch(key, GENERIC, b"move_to")
    return 1


# -- whole databases ---------------------------------------------------------------------------


@command("DBSIZE", "readonly fast", group="server", since="1.0.0", acl="keyspace", complexity="O(1)",
         tips="request_policy:all_shards response_policy:agg_sum")  # fmt: skip
def dbsize(ctx: Session, argv: list[bytes]) -> Reply:
    """Counts the keys of the database."""
    return len(ctx.db)


def _check_flush(argv: list[bytes]) -> None:
    """SYNC and ASYNC mean the same here: nothing is left to be freed later."""
    if len(argv) > 2 or (len(argv) == 2 and argv[1].upper() not in (b"SYNC", b"ASYNC")):
        raise errors.syntax()


@command("FLUSHDB flush-type=[ASYNC|SYNC]", "write", group="server", since="1.0.0", acl="keyspace dangerous",
         complexity="O(N), N being the number of keys in the database",
         tips="request_policy:all_shards response_policy:all_succeeded")  # fmt: skip
def flushdb(ctx: Session, argv: list[bytes]) -> Reply:
    """Removes every key of the database."""
    _check_flush(argv)
    keyspace = ctx.engine.keyspace
    keyspace.dirty += ctx.db.clear()
    keyspace.rebuild_heap()
    return OK


@command("FLUSHALL flush-type=[ASYNC|SYNC]", "write", group="server", since="1.0.0", acl="keyspace dangerous",
         complexity="O(N), N being the number of keys in all databases",
         tips="request_policy:all_shards response_policy:all_succeeded")  # fmt: skip
def flushall(ctx: Session, argv: list[bytes]) -> Reply:
    """Removes every key of every database."""
    _check_flush(argv)
    keyspace = ctx.engine.keyspace
    keyspace.dirty += sum([db.clear() for db in keyspace.databases])
    keyspace.rebuild_heap()
    return OK


@command("SWAPDB index1:integer index2:integer", "write fast", group="server", since="4.0.0",
         acl="keyspace dangerous",
         complexity="O(N), N clients watching or blocked on keys of both databases")  # fmt: skip
def swapdb(ctx: Session, argv: list[bytes]) -> Reply:
    """Exchanges the contents of two databases; every client at one sees the other at once."""
    if ctx.engine.cluster is not None:
        raise ReplyError("ERR SWAPDB is not allowed in cluster mode")
    places = []
    for text, word in ((argv[1], "first"), (argv[2], "second")):
        index = parse_int(text)
        if index is None or not -_INT_MAX - 1 <= index <= _INT_MAX:
            raise ReplyError(f"ERR invalid {word} DB index")
        places.append(index)
    keyspace = ctx.engine.keyspace
    if not all(0 <= index < len(keyspace.databases) for index in places):
        raise ReplyError("ERR DB index is out of range")
    if places[0] != places[1]:
        keyspace.dirty += 1
        keyspace.swap(*places)
    return OK
