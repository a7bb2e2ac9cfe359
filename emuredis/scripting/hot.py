"""Callers written out by hand for the commands that queue scripts call most, in their commonest shape.

They do what the command's handler does for that shape, without an argument list and without turning numbers
into text and back; any other shape goes to the generic caller (see `emuredis.scripting.bridge`). The handlers
in `emuredis.commands` stay the truth: a test runs both on the same calls and compares replies, data and events.

To add one: a function that takes the bridge and the generic caller, and a row in `CALLERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from emuredis.keyspace.notify import HASH, ZSET
from emuredis.scalars import format_double
from emuredis.scripting.guard import BIG
from emuredis.values.hash import Hash
from emuredis.values.zset import ZSet

if TYPE_CHECKING:
    from emuredis.scripting.bridge import Bridge

__all__ = ["CALLERS"]

Caller = Callable[..., Any]


def hget(bridge: Bridge, generic: Caller) -> Caller:
    """HGET key field."""
    session = bridge.session

    def caller(*args: Any) -> Any:
        if len(args) == 3:
            _, key, field = args
            if key.__class__ is bytes and field.__class__ is bytes:
                try:
                    value = session.db.read(key, Hash)
                    found = None if value is None else value.fields.get(field)
                    if found is None:
                        return False
                    return found if len(found) < BIG else bridge.large(found)
                except BaseException as problem:
                    return bridge.failed(problem)
        return generic(*args)

    return caller


def hset(bridge: Bridge, generic: Caller) -> Caller:
    """HSET key field value."""
    session, limits, busy = bridge.session, bridge.engine.limits, bridge.busy

    def caller(*args: Any) -> Any:
        if len(args) == 4 and not bridge.restricted:
            _, key, field, text = args
            if key.__class__ is bytes and field.__class__ is bytes and text.__class__ is bytes:
                busy.wrote = True
                try:
                    db = session.db
                    value = db.write(key, Hash)
                    if value is None:
                        value = db.add(key, Hash(limits))
                    created = 1 if value.set(field, text) else 0
                    db.touch(key, HASH, b"hset")
                    return created
                except BaseException as problem:
                    return bridge.failed(problem)
        return generic(*args)

    return caller


def zadd(bridge: Bridge, generic: Caller) -> Caller:
    """ZADD key score member, the score a number or digits."""
    session, limits, busy = bridge.session, bridge.engine.limits, bridge.busy

    def caller(*args: Any) -> Any:
        if len(args) == 4 and not bridge.restricted:
            _, key, score, member = args
            kind = score.__class__
            if (
                (kind is int or (kind is float and score == score) or (kind is bytes and score.isdigit()))
                and key.__class__ is bytes
                and member.__class__ is bytes
            ):
                busy.wrote = True
                try:
                    score = float(score)
                    db = session.db
                    value = db.write(key, ZSet)
                    if value is None:
                        value = db.add(key, ZSet(limits))
                    old = value.scores.get(member)
                    if old != score:
                        value.add(member, score)
                        db.touch(key, ZSET, b"zadd")
                        if old is None:
                            return 1
                    return 0
                except BaseException as problem:
                    return bridge.failed(problem)
        return generic(*args)

    return caller


def zrem(bridge: Bridge, generic: Caller) -> Caller:
    """ZREM key member."""
    session, busy = bridge.session, bridge.busy

    def caller(*args: Any) -> Any:
        if len(args) == 3 and not bridge.restricted:
            _, key, member = args
            if key.__class__ is bytes and member.__class__ is bytes:
                busy.wrote = True
                try:
                    db = session.db
                    value = db.write(key, ZSet)
                    if value is None or not value.discard(member):
                        return 0
                    db.touch(key, ZSET, b"zrem")
                    if not value.scores:
                        db.drop_if_empty(key, value)
                    return 1
                except BaseException as problem:
                    return bridge.failed(problem)
        return generic(*args)

    return caller


def zpopmin(bridge: Bridge, generic: Caller) -> Caller:
    """ZPOPMIN key; an array, so the generic caller's results are the array's elements."""
    session, busy = bridge.session, bridge.busy

    def caller(*args: Any) -> Any:
        if len(args) == 2 and not bridge.restricted and args[1].__class__ is bytes:
            key = args[1]
            busy.wrote = True
            try:
                db = session.db
                value = db.write(key, ZSet)
                if value is None:
                    return ()
                member, score = value.pop_min()
                db.touch(key, ZSET, b"zpopmin")
                if not value.scores:
                    db.drop_if_empty(key, value)
                return member, format_double(score)
            except BaseException as problem:
                return bridge.failed(problem)
        return generic(*args)

    return caller


#: Command name to the maker of its caller: ``make(bridge, generic caller)``.
CALLERS: dict[str, Callable[[Any, Caller], Caller]] = {
    "hget": hget,
    "hset": hset,
    "zadd": zadd,
    "zrem": zrem,
    "zpopmin": zpopmin,
}
