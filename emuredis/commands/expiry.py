"""Times to live: EXPIRE and its kin, TTL and its kin, PERSIST; and the options EX, PX, NX ... of other commands.

Everything is kept as an instant in Unix milliseconds. An instant that has come already is no deadline: the key (or
field) goes at once, as if it had expired. What a command may be given is a set of words from `OPTIONS`; words of one
group exclude each other, and the group tells what they decide.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.errors import ReplyError
from emuredis.keyspace import notify
from emuredis.replies import Reply
from emuredis.scalars import LLONG_MAX, LLONG_MIN
from emuredis.spec import command

if TYPE_CHECKING:
    from emuredis.engine.session import Session

__all__ = ["Options", "allows", "expire_now", "instant", "parse_expire_flags", "parse_options"]

#: word: (its group, the attribute of `Options` for the argument that follows it)
OPTIONS: dict[bytes, tuple[str, str | None]] = {
    b"NX": ("condition", None),
    b"XX": ("condition", None),
    b"IFEQ": ("condition", "comparison"),
    b"FNX": ("field_condition", None),
    b"FXX": ("field_condition", None),
    b"GET": ("get", None),
    b"EX": ("expiry", "time"),
    b"PX": ("expiry", "time"),
    b"EXAT": ("expiry", "time"),
    b"PXAT": ("expiry", "time"),
    b"KEEPTTL": ("expiry", None),
    b"PERSIST": ("expiry", None),
}

#: (in seconds, counted from now)
_UNITS = {b"EX": (True, True), b"PX": (False, True), b"EXAT": (True, False), b"PXAT": (False, False)}


class Options:
    """The word chosen in each group, or None, and the arguments of IFEQ and of the expiry."""

    # Defaults of the class: most calls set one or two.
    condition: bytes | None = None
    field_condition: bytes | None = None
    get: bytes | None = None
    expiry: bytes | None = None
    comparison = b""
    time = b""

    def deadline(self, ctx: Session, name: str, least: int = 1) -> int | None:
        """The instant that EX, PX, EXAT or PXAT asks for, None without them. ``least``: the number allowed."""
        if self.expiry not in _UNITS:
            return None
        seconds, relative = _UNITS[self.expiry]
        return instant(self.time, seconds, ctx.now if relative else 0, name, least)


def parse_options(argv: list[bytes], start: int, stop: int, allowed: Container[bytes]) -> Options:
    """The options between ``start`` and ``stop``. A word may come again (the last counts), but not IFEQ."""
    options = Options()
    at = start
    while at < stop:
        word = argv[at].upper()
        if word not in allowed:
            raise errors.syntax()
        group, argument = OPTIONS[word]
        chosen = getattr(options, group)
        if chosen is not None and (chosen != word or word == b"IFEQ"):
            raise errors.syntax()
        setattr(options, group, word)
        if argument is not None:
            at += 1
            if at == stop:
                raise errors.syntax()
            setattr(options, argument, argv[at])
        at += 1
    return options


def instant(text: bytes, seconds: bool, base: int, name: str, least: int = LLONG_MIN) -> int:
    """So many seconds or milliseconds after ``base``, in Unix milliseconds, within 64 bits."""
    number = integer(text)
    milliseconds = number * 1000 if seconds else number
    if number < least or not LLONG_MIN <= milliseconds <= LLONG_MAX - base:
        raise ReplyError(f"ERR invalid expire time in '{name}' command")
    return milliseconds + base


def expire_now(ctx: Session, key: bytes) -> None:
    """Remove a present key: the deadline it was given has passed already."""
    ctx.db.expire(key)


# -- giving a deadline -------------------------------------------------------------------------

_FLAGS = frozenset((b"NX", b"XX", b"GT", b"LT"))


def parse_expire_flags(argv: list[bytes], start: int, stop: int) -> set[bytes]:
    """The words NX, XX, GT and LT between ``start`` and ``stop``."""
    flags: set[bytes] = set()
    for text in argv[start:stop]:
        word = text.upper()
        if word not in _FLAGS:
            shown = text.partition(b"\0")[0].decode("utf-8", "surrogateescape")
            raise ReplyError(f"ERR Unsupported option {shown}")
        flags.add(word)
    if b"NX" in flags and len(flags) > 1:
        raise ReplyError("ERR NX and XX, GT or LT options at the same time are not compatible")
    if b"GT" in flags and b"LT" in flags:
        raise ReplyError("ERR GT and LT options at the same time are not compatible")
    return flags


def allows(flags: set[bytes], current: int | None, when: int) -> bool:
    """Whether NX, XX, GT and LT let the deadline ``current`` (None: never) become ``when``."""
    if current is None:
        return b"XX" not in flags and b"GT" not in flags
    if b"NX" in flags or (b"GT" in flags and when <= current):
        return False
    return b"LT" not in flags or when < current


def _expire(ctx: Session, argv: list[bytes], seconds: bool, base: int, name: str) -> int:
    """Give a key a deadline; 1 if it was given, 0 if the key is missing or a flag forbids it."""
    flags = parse_expire_flags(argv, 3, len(argv)) if len(argv) > 3 else None
    when = instant(argv[2], seconds, base, name)
    db, key = ctx.db, argv[1]
    if db.peek(key, True) is None:
        return 0
    if flags and not allows(flags, db.deadline(key), when):
        return 0
    if when <= ctx.now:
        expire_now(ctx, key)
    else:
        db.expire_at(key, when)
        db.touch(key, notify.GENERIC, b"expire")
    return 1


@command("EXPIRE key seconds:integer condition=[NX|XX|GT|LT]", "write fast", keys="RW update @1", group="generic",
         since="1.0.0", complexity="O(1)")  # fmt: skip
def expire(ctx: Session, argv: list[bytes]) -> Reply:
    """Gives a key a time to live in seconds."""
    return _expire(ctx, argv, True, ctx.now, "expire")


@command("PEXPIRE key milliseconds:integer condition=[NX|XX|GT|LT]", "write fast", keys="RW update @1", group="generic",
         since="2.6.0", complexity="O(1)")  # fmt: skip
def pexpire(ctx: Session, argv: list[bytes]) -> Reply:
    """Gives a key a time to live in milliseconds."""
    return _expire(ctx, argv, False, ctx.now, "pexpire")


@command("EXPIREAT key unix-time-seconds:unix-time condition=[NX|XX|GT|LT]", "write fast", keys="RW update @1",
         group="generic", since="1.2.0", complexity="O(1)")  # fmt: skip
def expireat(ctx: Session, argv: list[bytes]) -> Reply:
    """Gives a key the instant, in seconds since 1970, at which it expires."""
    return _expire(ctx, argv, True, 0, "expireat")


@command("PEXPIREAT key unix-time-milliseconds:unix-time condition=[NX|XX|GT|LT]", "write fast", keys="RW update @1",
         group="generic", since="2.6.0", complexity="O(1)")  # fmt: skip
def pexpireat(ctx: Session, argv: list[bytes]) -> Reply:
    """Gives a key the instant, in milliseconds since 1970, at which it expires."""
    return _expire(ctx, argv, False, 0, "pexpireat")


@command("PERSIST key", "write fast", keys="RW update @1", group="generic", since="2.2.0", complexity="O(1)")
def persist(ctx: Session, argv: list[bytes]) -> Reply:
    """Takes the time to live of a key away."""
    db, key = ctx.db, argv[1]
    if db.peek(key, True) is None or not db.persist(key):
        return 0
    db.touch(key, notify.GENERIC, b"persist")
    return 1


# -- looking at deadlines ----------------------------------------------------------------------


def _deadline(ctx: Session, key: bytes) -> int:
    """The deadline of a key, -1 without one, -2 when there is no such key."""
    if ctx.db.look(key, False) is None:
        return -2
    deadline = ctx.db.deadline(key)
    return -1 if deadline is None else deadline


@command("TTL key", "readonly fast", keys="RO access @1", group="generic", since="1.0.0", complexity="O(1)",
         tips="nondeterministic_output")  # fmt: skip
def ttl(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells how many seconds a key has to live, rounded to the nearest."""
    deadline = _deadline(ctx, argv[1])
    return deadline if deadline < 0 else (max(deadline - ctx.now, 0) + 500) // 1000


@command("PTTL key", "readonly fast", keys="RO access @1", group="generic", since="2.6.0", complexity="O(1)",
         tips="nondeterministic_output")  # fmt: skip
def pttl(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells how many milliseconds a key has to live."""
    deadline = _deadline(ctx, argv[1])
    return deadline if deadline < 0 else max(deadline - ctx.now, 0)


@command("EXPIRETIME key", "readonly fast", keys="RO access @1", group="generic", since="7.0.0",
         complexity="O(1)")  # fmt: skip
def expiretime(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells when a key expires, in seconds since 1970, rounded to the nearest."""
    deadline = _deadline(ctx, argv[1])
    return deadline if deadline < 0 else (deadline + 500) // 1000


@command("PEXPIRETIME key", "readonly fast", keys="RO access @1", group="generic", since="7.0.0",
         complexity="O(1)")  # fmt: skip
def pexpiretime(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells when a key expires, in milliseconds since 1970."""
    return _deadline(ctx, argv[1])
