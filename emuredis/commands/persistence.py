"""Files: SAVE, BGSAVE, LASTSAVE, and SHUTDOWN. What they do is `emuredis.engine.persistence`'s and the doors'."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.errors import ReplyError
from emuredis.replies import OK, Frames, Reply, Status
from emuredis.spec import command

if TYPE_CHECKING:
    from emuredis.engine.session import Session


@command("SAVE", "admin noscript no_async_loading no_multi", group="server", since="1.0.0",
         complexity="O(N), N being the number of keys in all databases")  # fmt: skip
def save(ctx: Session, argv: list[bytes]) -> Reply:
    """Writes all databases to the file."""
    persistence = ctx.engine.persistence
    try:
        persistence.save(persistence.path)
    except OSError:
        raise ReplyError("ERR") from None
    return OK


@command("BGSAVE operation=[SCHEDULE|CANCEL]", "admin noscript no_async_loading", group="server", since="1.0.0",
         complexity="O(1)")  # fmt: skip
def bgsave(ctx: Session, argv: list[bytes]) -> Reply:
    """Writes all databases to the file, at once or at the end of the transaction."""
    word = argv[1].upper() if len(argv) == 2 else b""
    if len(argv) > 1 and word not in (b"SCHEDULE", b"CANCEL"):
        raise errors.syntax()
    persistence = ctx.engine.persistence
    if word == b"CANCEL":
        if not persistence.cancel():
            raise ReplyError("ERR Background saving is currently not in progress or scheduled")
        return Status(b"Scheduled background saving cancelled")
    if ctx.deny_blocking:  # inside EXEC
        persistence.schedule()
        return Status(b"Background saving scheduled")
    persistence.save_behind()
    return Status(b"Background saving started")


@command("LASTSAVE", "fast loading stale", group="server", since="1.0.0", acl="admin dangerous",
         complexity="O(1)", tips="nondeterministic_output")  # fmt: skip
def lastsave(ctx: Session, argv: list[bytes]) -> Reply:
    """The time of the last save that succeeded, in Unix seconds."""
    return ctx.engine.persistence.last_save


_SHUTDOWN = (b"NOSAVE", b"SAVE", b"NOW", b"FORCE", b"SAFE", b"FAILOVER", b"ABORT")


@command("SHUTDOWN abort-selector=[save-selector-block=(save-selector=[NOSAVE|SAVE] [NOW] [FORCE] [SAFE] [FAILOVER])"
         "|ABORT]", "admin noscript loading stale no_multi allow_busy", group="server", since="1.0.0",
         complexity="O(N) when saving, N being the number of keys in all databases, else O(1)")  # fmt: skip
def shutdown(ctx: Session, argv: list[bytes]) -> Reply:
    """Ends the server, after a save if that is asked for."""
    words = {word.upper() for word in argv[1:]}
    if not words <= set(_SHUTDOWN) or (b"ABORT" in words and len(words) > 1) or {b"SAVE", b"NOSAVE"} <= words:
        raise errors.syntax()
    if b"FAILOVER" in words:
        raise errors.err("SHUTDOWN FAILOVER is only supported in cluster mode.")
    if b"ABORT" in words:  # there are no replicas to wait for, so it takes no time
        raise errors.err("No shutdown in progress.")
    engine = ctx.engine
    if engine.busy.on and b"NOSAVE" not in words:
        raise engine.busy.refusal()
    if not engine.doors:
        raise errors.unsupported("SHUTDOWN where there is no server to end")
    if b"SAVE" in words:
        try:
            engine.persistence.save(engine.persistence.path)
        except OSError:
            if b"FORCE" not in words:
                raise errors.err("Errors trying to SHUTDOWN. Check logs.") from None
    engine.shut_down()
    return Frames()
