"""What is at a key, as plain Python, to be compared before and after a command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from emuredis.keys import keys_of
from emuredis.protocol.views import view2

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine
    from emuredis.keyspace.database import Database
    from emuredis.spec import Command

__all__ = ["Change", "Content", "contents", "touched"]

_READ = {
    "string": ("GET",), "hash": ("HGETALL",), "list": ("LRANGE", "0", "-1"), "set": ("SMEMBERS",),
    "zset": ("ZRANGE", "0", "-1", "WITHSCORES"), "stream": ("XRANGE", "-", "+"),
}  # fmt: skip


class Content(NamedTuple):
    """A key's type by the server's name, its value, and when it expires (Unix milliseconds, None: never).

    Values: bytes for a string; dict of bytes for a hash; list of bytes for a list; sorted list of bytes for a set;
    list of (member, score) for a sorted set; the reply of XRANGE for a stream.
    """

    type: str
    value: Any
    expires_at: int | None

    def __str__(self) -> str:
        text = _text(self.value)
        return text if self.expires_at is None else f"{text} expires at {self.expires_at}"


class Change(NamedTuple):
    """A key and what it held before and after; None: nothing."""

    key: bytes
    before: Content | None
    after: Content | None

    def __str__(self) -> str:
        return f"{_text(self.key)}: {_or_nothing(self.before)} -> {_or_nothing(self.after)}"


def touched(cmd: Command | None, argv: list[bytes]) -> list[bytes]:
    """The keys a call names, each once."""
    return [] if cmd is None else list(dict.fromkeys(key for key, _ in keys_of(cmd, argv)))


def contents(engine: Engine, db: Database, key: bytes) -> Content | None:
    """What ``key`` holds now; it does not count as a look-up. The engine's lock is held."""
    if not db.exists(key):
        return None
    session = engine.internal_session()
    session.db = db
    hits, misses = engine.keyspace.hits, engine.keyspace.misses
    kind = bytes(_ask(engine, session, "TYPE", key)).decode()
    words = _READ.get(kind)
    value: Any = None if words is None else view2(_ask(engine, session, words[0], key, *words[1:]))
    engine.keyspace.hits, engine.keyspace.misses = hits, misses
    if kind == "hash" and value.__class__ is list:
        value = dict(zip(value[::2], value[1::2], strict=True))
    elif kind == "set":
        value = sorted(value)
    elif kind == "zset":
        value = [(member, float(score)) for member, score in zip(value[::2], value[1::2], strict=True)]
    return Content(kind, value, db.deadline(key))


def _ask(engine: Engine, session: Any, name: str, key: bytes, *words: str) -> Any:
    argv = [name.encode(), key, *(word.encode() for word in words)]
    return engine.call(session, engine.resolve(argv), argv)


def _or_nothing(content: Content | None) -> str:
    return "nothing" if content is None else str(content)


def _text(value: Any) -> str:
    """A value for people: bytes without the b."""
    if isinstance(value, bytes):
        return repr(value.decode("utf-8", "backslashreplace"))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(key)}: {_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_text, value)) + ")"
    return f"{value:.17g}" if isinstance(value, float) else str(value)
