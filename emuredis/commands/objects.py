"""OBJECT: how the server would store a value.

Collections know their encoding. That of a string follows from its text and the length of its key, except that
what changes a part of it (APPEND, SETRANGE, SETBIT, PFADD ...) leaves a ``raw`` one behind, INCRBYFLOAT and a script's
SET never an ``int``; `Database.note_encoding` remembers these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.keyspace.database import room
from emuredis.replies import Reply, Status
from emuredis.scalars import parse_int
from emuredis.spec import command, container

if TYPE_CHECKING:
    from emuredis.engine.session import Session
    from emuredis.keyspace.database import Database

container("OBJECT", "Commands that look at how values are stored.", group="generic", since="2.2.3")


_SWITCHING = (
    "Please note that when switching between policies at runtime "
    "LRU and LFU data will take some time to adjust."
)


def _string_encoding(key: bytes, value: bytes) -> bytes:
    if len(value) <= 20 and parse_int(value) is not None:
        return b"int"
    return _text_encoding(key, value)


def _text_encoding(key: bytes, value: bytes) -> bytes:
    return b"embstr" if len(key) + len(value) < room(key) else b"raw"


def as_text(db: Database, key: bytes, value: bytes) -> bytes:
    """What to store of ``value`` so that its encoding is that of a text, even if it is a number."""
    if len(value) > 20 or parse_int(value) is None:
        return value
    return db.note_encoding(key, value[:1] + value[1:], _text_encoding(key, value))


def given(ctx: Session, key: bytes, value: bytes) -> bytes:
    """What to store of a command's argument: the server keeps the text of a number that a script passes."""
    return value if ctx.script is None else as_text(ctx.db, key, value)


@command("OBJECT ENCODING key", "readonly", keys="RO @2", group="generic", since="2.2.3", acl="keyspace",
         complexity="O(1)", tips="nondeterministic_output")  # fmt: skip
def object_encoding(ctx: Session, argv: list[bytes]) -> Reply:
    """Names the encoding of a value."""
    db, key = ctx.db, argv[2]
    value = db.peek(key)
    if value is None:
        return None
    if value.__class__ is bytes:
        return db.noted_encoding(key, value) or _string_encoding(key, value)
    return value.encoding()


@command("OBJECT REFCOUNT key", "readonly", keys="RO @2", group="generic", since="2.2.3", acl="keyspace",
         complexity="O(1)", tips="nondeterministic_output")  # fmt: skip
def object_refcount(ctx: Session, argv: list[bytes]) -> Reply:
    """Counts the references to a value: one, that of its key."""
    return None if ctx.db.peek(argv[2]) is None else 1


@command("OBJECT IDLETIME key", "readonly", keys="RO @2", group="generic", since="2.2.3", acl="keyspace",
         complexity="O(1)", tips="nondeterministic_output")  # fmt: skip
def object_idletime(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells for how many seconds a value was not used."""
    db, key = ctx.db, argv[2]
    memory = ctx.engine.memory
    if db.peek(key) is None:
        return None
    if memory.frequency(db, key) is not None:
        raise errors.err(f"An LFU maxmemory policy is selected, idle time not tracked. {_SWITCHING}")
    return memory.idle_seconds(db, key)


@command("OBJECT FREQ key", "readonly", keys="RO @2", group="generic", since="4.0.0", acl="keyspace",
         complexity="O(1)", tips="nondeterministic_output")  # fmt: skip
def object_freq(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells how often a value is used, as the logarithmic counter of an LFU policy."""
    db, key = ctx.db, argv[2]
    if db.peek(key) is None:
        return None
    frequency = ctx.engine.memory.frequency(db, key)
    if frequency is None:
        raise errors.err(
            f"An LFU maxmemory policy is not selected, access frequency not tracked. {_SWITCHING}"
        )
    return frequency


@command("OBJECT HELP", "loading stale", group="generic", since="6.2.0", acl="keyspace", complexity="O(1)")
def object_help(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells about the subcommands."""
    return [Status(line) for line in _HELP]


_HELP = b"""\
OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:
ENCODING <key>
    Return the kind of internal representation used in order to store the value
    associated with a <key>.
FREQ <key>
    Return the access frequency index of the <key>. The returned integer is
    proportional to the logarithm of the recent access frequency of the key.
IDLETIME <key>
    Return the idle time of the <key>, that is the approximated number of
    seconds elapsed since the last access to the key.
REFCOUNT <key>
    Return the number of references of the value associated with the specified
    <key>.
HELP
    Print this help.""".split(b"\n")
