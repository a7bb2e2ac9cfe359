"""What a lone server answers to commands about its replicas and its append-only file: it has neither."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.args import integer, milliseconds
from emuredis.errors import ReplyError
from emuredis.replies import Reply
from emuredis.scalars import parse_int
from emuredis.spec import command

if TYPE_CHECKING:
    from emuredis.engine.session import Session

_TIPS = "request_policy:all_shards response_policy:agg_min"


def _timeout(text: bytes, now: int) -> int:
    value = parse_int(text)
    if value is None:
        raise ReplyError("ERR timeout is not an integer or out of range")
    return milliseconds(value, now)


def _as_int(number: int) -> int:
    """What is left of a number of replicas in the 32 bits that the server has for it."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


@command("WAIT numreplicas:integer timeout:integer", "blocking", group="generic", since="3.0.0", acl="connection",
         complexity="O(1)", tips=_TIPS)  # fmt: skip
def wait(ctx: Session, argv: list[bytes]) -> Reply:
    """Waits until so many replicas have the client's writes: with none, as long as the time-out says."""
    replicas = integer(argv[1])
    timeout = _timeout(argv[2], ctx.now)
    return 0 if replicas <= 0 or _as_int(replicas) <= 0 else ctx.park([], object, timeout, 0)


@command("WAITAOF numlocal:integer numreplicas:integer timeout:integer", "blocking", group="generic", since="7.2.0",
         acl="connection", complexity="O(1)", tips=_TIPS)  # fmt: skip
def waitaof(ctx: Session, argv: list[bytes]) -> Reply:
    """Waits until the client's writes are on disk, here and on replicas: there is no file and no replica."""
    local = integer(argv[1])
    if not 0 <= local <= 1:
        raise errors.err("value is out of range, value must between 0 and 1")
    replicas = parse_int(argv[2])
    if replicas is None or replicas < 0:
        raise errors.err("value is out of range, must be positive")
    timeout = _timeout(argv[3], ctx.now)
    if local:
        raise errors.err("WAITAOF cannot be used when numlocal is set but appendonly is disabled.")
    return [0, 0] if _as_int(replicas) <= 0 else ctx.park([], object, timeout, [0, 0])
