"""Neutral reply values: what a command handler returns, before any protocol is chosen.

A handler never asks which protocol a client speaks; it returns one of these and
`emuredis.protocol` turns it into RESP2 or RESP3 bytes or into the Python object a client
library would have parsed, and `emuredis.scripting` into a Lua value.

| Python value        | RESP2                | RESP3                    |
| ------------------- | -------------------- | ------------------------ |
| ``int``             | integer              | integer                  |
| ``bytes``           | bulk string          | bulk string              |
| ``None``            | null bulk string     | null                     |
| ``NULL_ARRAY``      | null array           | null                     |
| ``Status``          | simple string        | simple string            |
| ``ReplyError``      | error                | error                    |
| ``float``           | bulk string          | double                   |
| ``LongFloat``       | bulk string          | double, both with up to 17 decimals |
| ``bool``            | integer 1 or 0       | boolean                  |
| ``list``            | array                | array                    |
| ``Map``             | flat array           | map                      |
| ``Pairs``           | flat array           | array of 2-element arrays|
| ``PairMap``         | array of 2-element arrays | map                 |
| ``Set``             | array                | set                      |
| ``Push``            | array                | push                     |
| ``Verbatim``        | bulk string          | verbatim string          |
| ``BigNumber``       | bulk string          | big number               |
| ``Frames``          | each item as a reply of its own, one after the other      |
| ``Spoken``          | as its ``resp`` says, whichever is spoken now             |

Invariant: dispatch is on the exact class (``reply.__class__``), so a new kind of value is a new
class here and one entry in each table of `emuredis.protocol` and `emuredis.scripting`.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "BLOCKED",
    "NULL_ARRAY",
    "OK",
    "PONG",
    "QUEUED",
    "BigNumber",
    "Blocked",
    "Frames",
    "LongFloat",
    "Map",
    "NullArray",
    "PairMap",
    "Pairs",
    "Push",
    "Reply",
    "Set",
    "Spoken",
    "Status",
    "Verbatim",
]

# A reply is recursive over the table above; Any keeps handlers readable and checked at the edges.
Reply = Any


class Status(bytes):
    """A simple string such as ``+OK``."""

    __slots__ = ()


class Map(list):  # type: ignore[type-arg]
    """Keys and values in turn: ``Map([k1, v1, k2, v2])``."""

    __slots__ = ()


class Pairs(list):  # type: ignore[type-arg]
    """Members and companions in turn, nested by two only in RESP3 (ZRANGE WITHSCORES)."""

    __slots__ = ()


class PairMap(list):  # type: ignore[type-arg]
    """Keys and values in turn, nested by two in RESP2 and a map in RESP3 (XREAD)."""

    __slots__ = ()


class Set(list):  # type: ignore[type-arg]
    """Distinct elements; a RESP3 set."""

    __slots__ = ()


class Push(list):  # type: ignore[type-arg]
    """An out-of-band message: pub/sub, tracking, monitor."""

    __slots__ = ()


class Frames(list):  # type: ignore[type-arg]
    """Zero or more replies to one command (SUBSCRIBE to three channels answers three times)."""

    __slots__ = ()


class Verbatim(bytes):
    """Text for humans (INFO, CLIENT LIST); ``format``: three letters, which only a script makes other than ``txt``."""

    format = b"txt"


class Spoken:
    """``reply`` for protocol ``resp``: what an EXEC ran before a HELLO in it (no script ever meets one)."""

    __slots__ = ("reply", "resp")

    def __init__(self, reply: Reply, resp: int) -> None:
        self.reply = reply
        self.resp = resp

    def __repr__(self) -> str:
        return f"Spoken({self.reply!r}, {self.resp})"


class LongFloat(float):
    """A double told in full: coordinates."""

    __slots__ = ()


class BigNumber(int):
    """An integer outside 64 bits."""

    __slots__ = ()


class NullArray:
    """The class of `NULL_ARRAY`, RESP2's ``*-1``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NULL_ARRAY"

    def __bool__(self) -> bool:
        return False


class Blocked:
    """The class of `BLOCKED`: the session was parked, its reply comes later."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "BLOCKED"


NULL_ARRAY = NullArray()
BLOCKED = Blocked()
OK = Status(b"OK")
PONG = Status(b"PONG")
QUEUED = Status(b"QUEUED")
