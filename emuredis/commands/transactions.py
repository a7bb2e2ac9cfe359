"""MULTI, EXEC, DISCARD, WATCH, UNWATCH.

Queueing happens in the engine's slow path; EXEC runs the queue inside its own unit, so the whole transaction
sees one instant and nobody is served or told anything before it ends. A watch is broken by a touch, not by a
different value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuredis.errors import ReplyError
from emuredis.replies import NULL_ARRAY, OK, Reply, Spoken
from emuredis.spec import command

if TYPE_CHECKING:
    from emuredis.engine.session import Session


@command("MULTI", "noscript loading stale fast no_multi allow_busy", group="transactions", since="1.2.0",
         complexity="O(1)")  # fmt: skip
def multi(ctx: Session, argv: list[bytes]) -> Reply:
    """Starts a transaction."""
    ctx.queue = []
    ctx.multi_failed = False
    ctx.update_gate()
    return OK


@command("EXEC", "noscript loading stale skip_commandlog", group="transactions", since="1.2.0",
         complexity="Depends on commands in the transaction")  # fmt: skip
def exec_(ctx: Session, argv: list[bytes]) -> Reply:
    """Runs the queued commands as one unit."""
    queue = ctx.queue
    if queue is None:
        raise ReplyError("ERR EXEC without MULTI")
    failed, broken = ctx.multi_failed, ctx.watch_broken
    forget_transaction(ctx)
    if failed:
        raise ReplyError("EXECABORT Transaction discarded because of previous errors.")
    if broken:
        return NULL_ARRAY
    engine = ctx.engine
    replies: list[Reply] = []
    ctx.deny_blocking = True
    try:
        for cmd, queued in queue:
            protocol = ctx.protocol
            try:
                reply = engine.call(ctx, cmd, queued)
            except ReplyError as error:
                reply = error
            if ctx.protocol != protocol:  # a HELLO: what came before it stays as it was
                replies = [item if item.__class__ is Spoken else Spoken(item, protocol) for item in replies]
            replies.append(reply)
    finally:
        ctx.deny_blocking = False
    return replies


@command("DISCARD", "noscript loading stale fast allow_busy", group="transactions", since="2.0.0",
         complexity="O(N), when N is the number of queued commands")  # fmt: skip
def discard(ctx: Session, argv: list[bytes]) -> Reply:
    """Forgets the queued commands."""
    if ctx.queue is None:
        raise ReplyError("ERR DISCARD without MULTI")
    forget_transaction(ctx)
    return OK


@command("WATCH key...", "noscript loading stale fast no_multi allow_busy", keys="RO @1..-1", group="transactions",
         since="2.2.0", complexity="O(1) for every key.")  # fmt: skip
def watch(ctx: Session, argv: list[bytes]) -> Reply:
    """Makes the next EXEC depend on these keys not having been touched."""
    for key in argv[1:]:
        ctx.engine.watch(ctx, key)
    return OK


@command(
    "UNWATCH",
    "noscript loading stale fast allow_busy",
    group="transactions",
    since="2.2.0",
    complexity="O(1)",
)
def unwatch(ctx: Session, argv: list[bytes]) -> Reply:
    """Forgets the watched keys."""
    ctx.engine.unwatch(ctx)
    return OK


def forget_transaction(ctx: Session) -> None:
    """Drop the queue and the watches."""
    ctx.queue = None
    ctx.multi_failed = False
    ctx.engine.unwatch(ctx)
    ctx.update_gate()
