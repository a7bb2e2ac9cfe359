"""SORT and SORT_RO: the elements of a list, set or sorted set in another order, or other keys' values for them.

Numbers sort as doubles and ties by the bytes of the elements. ALPHA sorts texts, up to a zero byte unless the result
is stored; elements that tie under BY with ALPHA keep their order (where the server, given LIMIT as well, leaves it
open). BY a pattern without ``*`` means not to sort: lists and sorted sets keep their order, turned round by DESC. A
set has none, so it is sorted by text if the result is stored or seen by a script.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.errors import ReplyError
from emuredis.keyspace.notify import GENERIC, LIST
from emuredis.replies import Reply
from emuredis.scalars import parse_float
from emuredis.slots import key_slot, pattern_slot
from emuredis.spec import command
from emuredis.values.hash import Hash
from emuredis.values.list import List
from emuredis.values.set import Set
from emuredis.values.zset import ZSet

if TYPE_CHECKING:
    from emuredis.engine.session import Session
    from emuredis.keyspace.database import Database


class _Options:
    __slots__ = ("_slot", "alpha", "by", "count", "desc", "gets", "offset", "sort", "store")

    def __init__(self, argv: list[bytes], may_store: bool, in_cluster: bool) -> None:
        # In a cluster every key that a pattern can name has to be in the slot of the key that is sorted.
        self._slot = key_slot(argv[1]) if in_cluster else None
        self.desc = self.alpha = False
        self.by: bytes | None = None
        self.sort = True
        self.offset, self.count = 0, -1
        self.gets: list[bytes] = []
        self.store: bytes | None = None
        at, size = 2, len(argv)
        while at < size:
            word, left = argv[at].upper(), size - at - 1
            if word in (b"ASC", b"DESC"):
                self.desc = word == b"DESC"
            elif word == b"ALPHA":
                self.alpha = True
            elif word == b"LIMIT" and left >= 2:
                self.offset, self.count = integer(argv[at + 1]), integer(argv[at + 2])
                at += 2
            elif word in (b"BY", b"GET", b"STORE") and left >= 1 and (may_store or word != b"STORE"):
                at += 1
                self._take(word, argv[at])
            else:
                raise errors.syntax()
            at += 1

    def _take(self, word: bytes, argument: bytes) -> None:
        if word == b"STORE":
            self.store = argument
        elif word == b"GET":
            if argument != b"#":
                self._check_slot(word, argument)
            self.gets.append(argument)
        else:
            if b"*" in argument:
                self._check_slot(word, argument)
            # A second BY does not take back that a first one meant not to sort.
            self.by = argument
            self.sort &= b"*" in argument

    def _check_slot(self, word: bytes, pattern: bytes) -> None:
        if self._slot not in (None, pattern_slot(pattern)):
            raise errors.err(
                f"{word.decode()} option of SORT denied in Cluster mode when keys formed by the pattern may be in "
                "different slots."
            )


def _fetch(db: Database, pattern: bytes, element: bytes) -> bytes | None:
    """The value of the key, or of the field of a hash, that ``pattern`` names for an element."""
    if pattern == b"#":
        return element
    before, star, after = pattern.partition(b"*")
    if not star:
        return None
    name, arrow, field = after.partition(b"->")
    if not field:
        name, arrow = after, b""
    value = db.look(before + element + name)
    if arrow:
        return value.get(field) if value.__class__ is Hash else None
    return value if value.__class__ is bytes else None


def _numbers(weights: list[bytes | None]) -> list[float]:
    numbers = [0.0 if text is None else parse_float(text.partition(b"\0")[0]) for text in weights]
    if None in numbers:
        raise ReplyError("ERR One or more scores can't be converted into double")
    return numbers  # type: ignore[return-value]


def _sorted(db: Database, elements: list[bytes], options: _Options) -> list[bytes]:
    by = options.by
    weights: list[bytes | None] = list(elements) if by is None else [_fetch(db, by, one) for one in elements]
    keys: list[Any]
    if not options.alpha:
        keys = list(zip(_numbers(weights), elements, strict=True))
    else:
        # An element whose BY finds nothing comes first.
        cut = options.store is None
        keys = [(w is not None, w and (w.partition(b"\0")[0] if cut else w)) for w in weights]
    order = sorted(range(len(elements)), key=keys.__getitem__, reverse=options.desc)
    return [elements[at] for at in order]


def _elements(ctx: Session, key: bytes, options: _Options) -> list[bytes]:
    """The elements in the order asked for, before LIMIT."""
    db = ctx.db
    value = db.look(key)
    if value is None:
        return []
    if value.__class__ not in (List, Set, ZSet):
        raise errors.wrong_type()
    elements = list(value)
    if value.__class__ is ZSet:
        value.enlarge()  # as the server does, whatever the options
    if value.__class__ is Set and not options.sort:
        if options.store is None and ctx.script is None:
            return elements
        options.sort, options.alpha, options.by = True, True, None
    if options.sort:
        return _sorted(db, elements, options)
    return elements[::-1] if options.desc else elements


def _sort(ctx: Session, argv: list[bytes], options: _Options) -> list[bytes | None]:
    """The elements asked for, or what GET finds for them."""
    elements = _elements(ctx, argv[1], options)
    start = max(options.offset, 0)
    elements = elements[start:] if options.count < 0 else elements[start : start + options.count]
    if not options.gets:
        return list(elements)
    return [_fetch(ctx.db, pattern, element) for element in elements for pattern in options.gets]


@command("SORT key [BY by-pattern=(pattern:pattern)] [LIMIT limit=(offset:integer count:integer)] [(GET "
         "get-pattern=(pattern:pattern))...] "
         "order=[ASC|DESC] sorting=[ALPHA] [STORE destination:key]", "write denyoom movablekeys",
         keys="RO access @1, RO access @?, OW update @?", group="generic", since="1.0.0",
         acl="set sortedset list dangerous",
         complexity="O(N+M*log(N)), N elements and M of them returned")  # fmt: skip
def sort(ctx: Session, argv: list[bytes]) -> Reply:
    """Sorts the elements of a list, set or sorted set, and returns or stores them."""
    options = _Options(argv, True, ctx.engine.cluster is not None)
    found = _sort(ctx, argv, options)
    if options.store is None:
        return found
    db, destination = ctx.db, options.store
    if found:
        db.put(destination, List.from_elements([text or b"" for text in found], ctx.engine.limits))
        db.touch(destination, LIST, b"sortstore")
    elif db.remove(destination):
        db.touch(destination, GENERIC, b"del")
    return len(found)


@command("SORT_RO key [BY by-pattern=(pattern:pattern)] [LIMIT limit=(offset:integer count:integer)] [(GET "
         "get-pattern=(pattern:pattern))...] "
         "order=[ASC|DESC] sorting=[ALPHA]", "readonly movablekeys", keys="RO access @1, RO access @?", group="generic",
         since="7.0.0", acl="set sortedset list dangerous",
         complexity="O(N+M*log(N)), N elements and M of them returned")  # fmt: skip
def sort_ro(ctx: Session, argv: list[bytes]) -> Reply:
    """Sorts the elements of a list, set or sorted set."""
    return _sort(ctx, argv, _Options(argv, False, ctx.engine.cluster is not None))
