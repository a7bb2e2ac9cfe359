"""The algebra of sorted sets: ZUNION, ZINTER, ZDIFF, ZINTERCARD and the commands that store their results.

An input is a sorted set or a plain set, whose members all score 1. `_parse` reads a whole command and looks its keys
up, in the server's order: the keys' types come before the options. Scores are combined in the order of the inputs'
sizes, as the server does, because the sum of three floats depends on the order; ``inf - inf`` counts as 0.

To add an operation: its function from inputs to scores, and the handlers that call `_reply` and `_store` with it.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.errors import ReplyError
from emuredis.keyspace.notify import GENERIC, ZSET
from emuredis.replies import Pairs, Reply
from emuredis.scalars import parse_float, parse_int
from emuredis.spec import command
from emuredis.values.set import Set
from emuredis.values.zset import ZSet

if TYPE_CHECKING:
    from emuredis.engine.session import Session

__all__: list[str] = []

Scores = dict[bytes, float]
Combine = Callable[[float, float], float]

_UNION_COST = "O(N)+O(M*log(M)) with N the sum of the sizes and M the size of the result"
_INTER_COST = "O(N*K)+O(M*log(M)) with N the size of the smallest of K inputs and M the size of the result"
_DIFF_COST = "O(L+M*log(M)) with L the sum of the sizes and M the size of the result"
_WEIGHTED = "[WEIGHTS weight:integer...] [AGGREGATE aggregate=(SUM|MIN|MAX)]"


# -- combining ---------------------------------------------------------------------------------


def _sum(one: float, other: float) -> float:
    total = one + other
    return total if total == total else 0.0


_AGGREGATES: dict[bytes, Combine] = {b"sum": _sum, b"min": min, b"max": max}


class _Query:
    """One command's inputs (None for a missing key) and options."""

    __slots__ = ("combine", "inputs", "limit", "weights", "withscores")

    def __init__(self, inputs: list[ZSet | Set | None]) -> None:
        self.inputs = inputs
        self.weights = [1.0] * len(inputs)
        self.combine: Combine = _sum
        self.withscores = False
        self.limit = 0


def _scores(value: ZSet | Set | None, weight: float) -> list[tuple[bytes, float]]:
    """The members of an input in its order, with weighted scores; ``inf`` times 0 is nan."""
    if value is None:
        return []
    if isinstance(value, Set):
        return [(member, weight) for member in value]
    if weight == 1.0:
        return list(value.items())
    return [(member, score * weight) for member, score in value.items()]


def _numbers(pairs: list[tuple[bytes, float]]) -> list[tuple[bytes, float]]:
    """The same with 0 for nan."""
    return [(member, score if score == score else 0.0) for member, score in pairs]


def _ordered(query: _Query) -> list[tuple[ZSet | Set | None, float]]:
    """Inputs and weights, smallest first."""
    pairs = list(zip(query.inputs, query.weights, strict=True))
    return sorted(pairs, key=lambda pair: 0 if pair[0] is None else len(pair[0]))


def _union(query: _Query) -> Scores:
    out: Scores = {}
    combine = query.combine
    for value, weight in _ordered(query):
        for member, score in _numbers(_scores(value, weight)):
            out[member] = combine(out[member], score) if member in out else score
    return out


def _intersection(query: _Query) -> Scores:
    ordered = _ordered(query)
    if ordered[0][0] is None:
        return {}
    # The server makes nan 0 in the first input and in sums, so that a nan of another one swallows what was before.
    out = dict(_numbers(_scores(*ordered[0])))
    for value, weight in ordered[1:]:
        others = dict(_scores(value, weight))
        out = {
            member: query.combine(score, others[member]) for member, score in out.items() if member in others
        }
    return out


def _difference(query: _Query) -> Scores:
    first, *others = query.inputs
    return {
        member: score
        for member, score in _scores(first, 1.0)
        if not any(other is not None and member in other for other in others)
    }


# -- parsing -----------------------------------------------------------------------------------


def _parse(ctx: Session, argv: list[bytes], at: int, allowed: str) -> _Query:
    """Read ``numkeys`` at ``at``, the keys and the options; ``allowed`` names the options the command has."""
    numkeys = integer(argv[at])
    if numkeys < 1:
        raise ReplyError(f"ERR at least 1 input key is needed for '{argv[0].decode().lower()}' command")
    end = at + 1 + numkeys
    if end > len(argv):
        raise errors.syntax()
    inputs = []
    for key in argv[at + 1 : end]:
        value = ctx.db.look(key)
        if value is not None and value.__class__ is not ZSet and value.__class__ is not Set:
            raise errors.wrong_type()
        inputs.append(value)
    query = _Query(inputs)
    while end < len(argv):
        word = argv[end].lower().decode("latin-1")
        if word not in allowed.split():
            raise errors.syntax()
        end = _option(query, argv, end, word)
    return query


def _option(query: _Query, argv: list[bytes], at: int, word: str) -> int:
    """Read the option at ``at``; the place after it."""
    left = len(argv) - at - 1
    if word == "withscores":
        query.withscores = True
        return at + 1
    if left < (len(query.inputs) if word == "weights" else 1):
        raise errors.syntax()
    if word == "weights":
        weights = [parse_float(text) for text in argv[at + 1 : at + 1 + len(query.inputs)]]
        query.weights = [weight for weight in weights if weight is not None]
        if len(query.weights) < len(weights):
            raise ReplyError("ERR weight value is not a float")
        return at + 1 + len(weights)
    if word == "aggregate":
        combine = _AGGREGATES.get(argv[at + 1].lower())
        if combine is None:
            raise errors.syntax()
        query.combine = combine
        return at + 2
    limit = parse_int(argv[at + 1])
    if limit is None or limit < 0:
        raise ReplyError("ERR LIMIT can't be negative")
    query.limit = limit
    return at + 2


# -- the commands ------------------------------------------------------------------------------


def _reply(scores: Scores, withscores: bool) -> Reply:
    ordered = sorted(scores.items(), key=itemgetter(1, 0))
    if withscores:
        return Pairs(part for pair in ordered for part in pair)
    return [member for member, _ in ordered]


def _store(ctx: Session, key: bytes, scores: Scores, event: bytes) -> int:
    """Replace what ``key`` holds by these members, or delete it when there are none."""
    db = ctx.db
    if scores:
        db.put(key, ZSet.from_items(scores.items(), ctx.engine.limits))
        db.touch(key, ZSET, event)
    elif db.remove(key):
        db.touch(key, GENERIC, b"del")
    return len(scores)


@command(f"ZUNION numkeys:integer key... {_WEIGHTED} [WITHSCORES]", "readonly movablekeys", keys="RO access @1#",
         group="sorted-set", since="6.2.0", complexity=_UNION_COST)  # fmt: skip
def zunion(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the members of any of several sorted sets."""
    query = _parse(ctx, argv, 1, "weights aggregate withscores")
    return _reply(_union(query), query.withscores)


@command(f"ZINTER numkeys:integer key... {_WEIGHTED} [WITHSCORES]", "readonly movablekeys", keys="RO access @1#",
         group="sorted-set", since="6.2.0", complexity=_INTER_COST)  # fmt: skip
def zinter(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the members that all of several sorted sets have."""
    query = _parse(ctx, argv, 1, "weights aggregate withscores")
    return _reply(_intersection(query), query.withscores)


@command("ZDIFF numkeys:integer key... [WITHSCORES]", "readonly movablekeys", keys="RO access @1#", group="sorted-set",
         since="6.2.0", complexity=_DIFF_COST)  # fmt: skip
def zdiff(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the members of the first sorted set that no other has."""
    query = _parse(ctx, argv, 1, "withscores")
    return _reply(_difference(query), query.withscores)


@command("ZINTERCARD numkeys:integer key... [LIMIT limit:integer]", "readonly movablekeys", keys="RO access @1#",
         group="sorted-set", since="7.0.0",
         complexity="O(N*K) with N the size of the smallest of K inputs")  # fmt: skip
def zintercard(ctx: Session, argv: list[bytes]) -> Reply:
    """Counts the members that all of several sorted sets have."""
    query = _parse(ctx, argv, 1, "limit")
    found = len(_intersection(query))
    return min(found, query.limit) if query.limit else found


@command(f"ZUNIONSTORE destination:key numkeys:integer key... {_WEIGHTED}", "write denyoom movablekeys",
         keys="OW update @1, RO access @2#", group="sorted-set", since="2.0.0", complexity=_UNION_COST)  # fmt: skip
def zunionstore(ctx: Session, argv: list[bytes]) -> Reply:
    """Stores the members of any of several sorted sets."""
    return _store(ctx, argv[1], _union(_parse(ctx, argv, 2, "weights aggregate")), b"zunionstore")


@command(f"ZINTERSTORE destination:key numkeys:integer key... {_WEIGHTED}", "write denyoom movablekeys",
         keys="OW update @1, RO access @2#", group="sorted-set", since="2.0.0", complexity=_INTER_COST)  # fmt: skip
def zinterstore(ctx: Session, argv: list[bytes]) -> Reply:
    """Stores the members that all of several sorted sets have."""
    return _store(ctx, argv[1], _intersection(_parse(ctx, argv, 2, "weights aggregate")), b"zinterstore")


@command("ZDIFFSTORE destination:key numkeys:integer key...", "write denyoom movablekeys",
         keys="OW update @1, RO access @2#", group="sorted-set", since="6.2.0", complexity=_DIFF_COST)  # fmt: skip
def zdiffstore(ctx: Session, argv: list[bytes]) -> Reply:
    """Stores the members of the first sorted set that no other has."""
    return _store(ctx, argv[1], _difference(_parse(ctx, argv, 2, "")), b"zdiffstore")
