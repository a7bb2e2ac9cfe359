"""MEMORY: what values would take in the server, by `emuredis.values.memory`; there is no allocator to tell about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.commands.help_texts import MEMORY
from emuredis.engine.memory import BASE
from emuredis.replies import OK, Map, Reply, Status, Verbatim
from emuredis.spec import command, container
from emuredis.values.memory import memory_usage

if TYPE_CHECKING:
    from emuredis.engine.session import Session

container("MEMORY", "A container for memory diagnostics commands.", group="server", since="4.0.0")

_TIPS = "nondeterministic_output request_policy:all_shards response_policy:special"
_SLOW = "Depends on how much memory is allocated, could be slow"
_SMALL = 5 << 20


@command("MEMORY USAGE key [SAMPLES count:integer]", "readonly", keys="RO @2", group="server", since="4.0.0",
         complexity="O(N) where N is the number of samples.")  # fmt: skip
def usage(ctx: Session, argv: list[bytes]) -> Reply:
    """Estimates the memory usage of a key."""
    samples = 5
    at = 3
    while at < len(argv):
        if argv[at].upper() != b"SAMPLES" or at + 1 == len(argv):
            raise errors.syntax()
        samples = integer(argv[at + 1])
        if samples < 0:
            raise errors.syntax()
        at += 2
    db, key = ctx.db, argv[2]
    value = db.peek(key)
    if value is None:
        return None
    return memory_usage(key, value, db.deadline(key) is not None, samples)


@command("MEMORY STATS", group="server", since="4.0.0", complexity="O(1)", tips=_TIPS)
def stats(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns details about memory usage."""
    engine = ctx.engine
    memory = engine.memory
    used = memory.used()
    keys = sum(len(db.data) for db in engine.keyspace.databases)
    reply = Map([b"peak.allocated", memory.peak, b"total.allocated", used, b"startup.allocated", BASE])
    reply += [b"keys.count", keys, b"keys.bytes-per-key", (used - BASE) // keys if keys else 0]
    reply += [b"dataset.bytes", used - BASE, b"dataset.percentage", 100.0 if keys else 0.0]
    reply += [b"peak.percentage", used * 100 / memory.peak]
    return reply


@command("MEMORY DOCTOR", group="server", since="4.0.0", complexity="O(1)", tips=_TIPS)
def doctor(ctx: Session, argv: list[bytes]) -> Reply:
    """Outputs a memory problems report."""
    if ctx.engine.memory.used() < _SMALL:
        return Verbatim(_TOO_SMALL)
    return Verbatim(_HEALTHY)


@command("MEMORY MALLOC-STATS", "loading", group="server", since="4.0.0", complexity=_SLOW, tips=_TIPS)
def malloc_stats(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the allocator statistics."""
    return b"Stats not supported for the current allocator"


@command("MEMORY PURGE", "loading", group="server", since="4.0.0", complexity=_SLOW,
         tips="request_policy:all_shards response_policy:all_succeeded")  # fmt: skip
def purge(ctx: Session, argv: list[bytes]) -> Reply:
    """Asks the allocator to release memory."""
    return OK


@command("MEMORY HELP", "loading stale", group="server", since="4.0.0", complexity="O(1)")
def help_(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns helpful text about the different subcommands."""
    return [Status(line) for line in MEMORY]


_TOO_SMALL = (
    b"Hi Sam, this instance is empty or is using very little memory, my issues detector can't be used in these "
    b"conditions. Please, leave for your mission on Earth and fill it with some data. The new Sam and I will be back "
    b"to our programming as soon as I finished rebooting.\n"
)
_HEALTHY = (
    b"Hi Sam, I can't find any memory issue in your instance. "
    b"I can only account for what occurs on this base.\n"
)
