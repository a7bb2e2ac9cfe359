"""Sets: members, chance, and the algebra of several sets.

Replies list members in the set's own order, never in hash order. The ``*STORE`` commands replace their destination
whatever it holds, or delete it when there is nothing to store; each is its reading twin followed by `_store`.

To add a command: its handler here, and its lines in the conformance file ``sets``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.commands.scanning import parse_cursor, parse_scan_options
from emuredis.errors import ReplyError
from emuredis.keyspace.notify import GENERIC, SET
from emuredis.replies import Reply
from emuredis.replies import Set as SetReply
from emuredis.scalars import LLONG_MAX, parse_int
from emuredis.spec import command
from emuredis.values.set import Set

if TYPE_CHECKING:
    from collections.abc import Collection

    from emuredis.engine.session import Session

__all__: list[str] = []


# -- members -----------------------------------------------------------------------------------


@command("SADD key member...", "write denyoom fast", keys="RW insert @1", group="set", since="1.0.0",
         complexity="O(1) for each member")  # fmt: skip
def sadd(ctx: Session, argv: list[bytes]) -> Reply:
    """Adds members to a set, which is made if it is not there."""
    key = argv[1]
    db = ctx.db
    value = db.write(key, Set)
    if value is None:
        value = db.add(key, Set(ctx.engine.limits))
        value.reserve(len(argv) - 2, argv[2])
    added: int = value.add(argv[2]) if len(argv) == 3 else value.update(argv[2:])
    if added:
        db.touch(key, SET, b"sadd")
        return added + 0  # not a boolean
    return 0


@command("SREM key member...", "write fast", keys="RW delete @1", group="set", since="1.0.0",
         complexity="O(1) for each member")  # fmt: skip
def srem(ctx: Session, argv: list[bytes]) -> Reply:
    """Removes members from a set."""
    key = argv[1]
    db = ctx.db
    value = db.write(key, Set)
    if value is None:
        return 0
    removed = 0
    for member in argv[2:]:
        if value.discard(member):
            removed += 1
    if removed:
        db.touch(key, SET, b"srem")
        if not value:
            db.drop_if_empty(key, value)
    return removed


@command("SMEMBERS key", "readonly", keys="RO access @1", group="set", since="1.0.0", complexity="O(N)",
         tips="nondeterministic_output_order")  # fmt: skip
def smembers(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns all members of a set."""
    value = ctx.db.read(argv[1], Set)
    return SetReply(() if value is None else value)


@command("SISMEMBER key member", "readonly fast", keys="RO @1", group="set", since="1.0.0", complexity="O(1)")
def sismember(ctx: Session, argv: list[bytes]) -> Reply:
    """Says whether a set has a member."""
    value = ctx.db.read(argv[1], Set)
    return 1 if value is not None and argv[2] in value.members else 0


@command("SMISMEMBER key member...", "readonly fast", keys="RO access @1", group="set", since="6.2.0",
         complexity="O(1) for each member")  # fmt: skip
def smismember(ctx: Session, argv: list[bytes]) -> Reply:
    """Says of each of several members whether a set has it."""
    value = ctx.db.read(argv[1], Set)
    if value is None:
        return [0] * (len(argv) - 2)
    members = value.members
    return [1 if member in members else 0 for member in argv[2:]]


@command("SCARD key", "readonly fast", keys="RO @1", group="set", since="1.0.0", complexity="O(1)")
def scard(ctx: Session, argv: list[bytes]) -> Reply:
    """Says how many members a set has."""
    value = ctx.db.read(argv[1], Set)
    return 0 if value is None else len(value)


@command("SMOVE source:key destination:key member", "write fast", keys="RW access delete @1, RW insert @2", group="set",
         since="1.0.0", complexity="O(1)")  # fmt: skip
def smove(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes a member from one set to another."""
    _, source, destination, member = argv
    db = ctx.db
    value = db.write(source, Set)
    if value is None:
        return 0
    target = db.write(destination, Set)
    if source == destination:
        return 1 if member in value.members else 0
    if not value.discard(member):
        return 0
    db.touch(source, SET, b"srem")
    db.drop_if_empty(source, value)
    if target is None:
        target = db.add(destination, Set(ctx.engine.limits))
    if target.update([member]):
        db.touch(destination, SET, b"sadd")
    return 1


@command("SSCAN key cursor:integer [MATCH pattern:pattern] [COUNT count:integer]", "readonly", keys="RO access @1",
         group="set", since="2.8.0", complexity="O(1) for every call, O(N) for a whole scan",
         tips="nondeterministic_output")  # fmt: skip
def sscan(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns a page of a set's members."""
    cursor = parse_cursor(argv[2])
    value = ctx.db.read(argv[1], Set)
    if value is None:
        return [b"0", []]
    options = parse_scan_options(argv, 3, b"sscan")
    following, page = value.scan(cursor, options.count)
    if options.match is not None:
        page = list(filter(options.match, page))
    return [b"%d" % following, page]


# -- chance ------------------------------------------------------------------------------------


@command("SPOP key [count:integer]", "write fast", keys="RW access delete @1", group="set", since="1.0.0",
         complexity="O(N) in the number of members taken", tips="nondeterministic_output")  # fmt: skip
def spop(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes random members from a set."""
    key, count = argv[1], None
    if len(argv) > 3:
        raise errors.syntax()
    if len(argv) == 3:
        count = parse_int(argv[2])
        if count is None or count < 0:
            raise ReplyError("ERR value is out of range, must be positive")
    value = ctx.db.write(key, Set)
    if value is None:
        return None if count is None else SetReply()
    if count == 0:
        return SetReply()
    taken = value.pop_random(ctx.rng, 1 if count is None else count)
    ctx.db.touch(key, SET, b"spop")
    if not value:
        ctx.db.drop_if_empty(key, value)
    return taken[0] if count is None else SetReply(taken)


@command("SRANDMEMBER key [count:integer]", "readonly", keys="RO access @1", group="set", since="1.0.0",
         complexity="O(N) in the number of members returned", tips="nondeterministic_output")  # fmt: skip
def srandmember(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns random members of a set."""
    if len(argv) > 3:
        raise errors.syntax()
    if len(argv) == 2:
        value = ctx.db.read(argv[1], Set)
        return None if value is None else value.random(ctx.rng)
    count = integer(argv[2])
    if count < -LLONG_MAX:
        raise ReplyError(f"ERR value is out of range, value must between {-LLONG_MAX} and {LLONG_MAX}")
    value = ctx.db.read(argv[1], Set)
    if value is None or count == 0:
        return []
    return value.sample(ctx.rng, count) if count > 0 else value.choices(ctx.rng, -count)


# -- algebra -----------------------------------------------------------------------------------


def _sets(ctx: Session, keys: list[bytes]) -> list[Set | None]:
    """The set at each key, None where there is none; every type is checked."""
    read = ctx.db.read
    return [read(key, Set) for key in keys]


def _intersection(ctx: Session, keys: list[bytes], limit: int = 0) -> list[bytes]:
    sets = _sets(ctx, keys)
    present = [value for value in sets if value is not None]
    return Set.intersection(present, limit) if len(present) == len(sets) else []


def _union(ctx: Session, keys: list[bytes]) -> Collection[bytes]:
    return Set.union([value for value in _sets(ctx, keys) if value is not None])


def _difference(ctx: Session, keys: list[bytes]) -> list[bytes]:
    first, *others = _sets(ctx, keys)
    if first is None:
        return []
    return Set.difference(first, [value for value in others if value is not None])


def _store(ctx: Session, key: bytes, value: Set, event: bytes) -> int:
    """Replace what ``key`` holds by this set, or delete it when the set is empty."""
    db = ctx.db
    if value:
        db.put(key, value)
        db.touch(key, SET, event)
    elif db.remove(key):
        db.touch(key, GENERIC, b"del")
    return len(value)


@command("SINTER key...", "readonly", keys="RO access @1..-1", group="set", since="1.0.0",
         complexity="O(N*M) with N the size of the smallest set and M the number of sets",
         tips="nondeterministic_output_order")  # fmt: skip
def sinter(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the members that all of several sets have."""
    return SetReply(_intersection(ctx, argv[1:]))


@command("SINTERSTORE destination:key key...", "write denyoom", keys="OW update @1, RO access @2..-1", group="set",
         since="1.0.0", complexity="O(N*M) with N the size of the smallest set and M the number of sets")  # fmt: skip
def sinterstore(ctx: Session, argv: list[bytes]) -> Reply:
    """Stores the members that all of several sets have."""
    members = _intersection(ctx, argv[2:])
    return _store(ctx, argv[1], Set.from_common(members, ctx.engine.limits), b"sinterstore")


@command("SINTERCARD numkeys:integer key... [LIMIT limit:integer]", "readonly movablekeys", keys="RO access @1#",
         group="set", since="7.0.0",
         complexity="O(N*M) with N the size of the smallest set and M the number of sets")  # fmt: skip
def sintercard(ctx: Session, argv: list[bytes]) -> Reply:
    """Counts the members that all of several sets have."""
    numkeys = parse_int(argv[1])
    if numkeys is None or numkeys < 1:
        raise ReplyError("ERR numkeys should be greater than 0")
    if numkeys > len(argv) - 2:
        raise ReplyError("ERR Number of keys can't be greater than number of args")
    limit = 0
    for at in range(2 + numkeys, len(argv), 2):
        if argv[at].lower() != b"limit" or at + 1 == len(argv):
            raise errors.syntax()
        number = parse_int(argv[at + 1])
        if number is None or number < 0:
            raise ReplyError("ERR LIMIT can't be negative")
        limit = number
    return len(_intersection(ctx, argv[2 : 2 + numkeys], limit))


@command("SUNION key...", "readonly", keys="RO access @1..-1", group="set", since="1.0.0",
         complexity="O(N) in the number of members of all sets", tips="nondeterministic_output_order")  # fmt: skip
def sunion(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the members that any of several sets has."""
    return SetReply(_union(ctx, argv[1:]))


@command("SUNIONSTORE destination:key key...", "write denyoom", keys="OW update @1, RO access @2..-1", group="set",
         since="1.0.0", complexity="O(N) in the number of members of all sets")  # fmt: skip
def sunionstore(ctx: Session, argv: list[bytes]) -> Reply:
    """Stores the members that any of several sets has."""
    members = _union(ctx, argv[2:])
    return _store(ctx, argv[1], Set.from_members(members, ctx.engine.limits), b"sunionstore")


@command("SDIFF key...", "readonly", keys="RO access @1..-1", group="set", since="1.0.0",
         complexity="O(N) in the number of members of all sets", tips="nondeterministic_output_order")  # fmt: skip
def sdiff(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the members of the first set that no other set has."""
    return SetReply(_difference(ctx, argv[1:]))


@command("SDIFFSTORE destination:key key...", "write denyoom", keys="OW update @1, RO access @2..-1", group="set",
         since="1.0.0", complexity="O(N) in the number of members of all sets")  # fmt: skip
def sdiffstore(ctx: Session, argv: list[bytes]) -> Reply:
    """Stores the members of the first set that no other set has."""
    first, *others = _sets(ctx, argv[2:])
    limits = ctx.engine.limits
    left = Set(limits)
    if first is not None:
        left = Set.from_difference(first, [value for value in others if value is not None], limits)
    return _store(ctx, argv[1], left, b"sdiffstore")
