"""SLOWLOG and COMMANDLOG; what is logged, and when, is `emuredis.engine.logs`."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.help_texts import COMMANDLOG, SLOWLOG
from emuredis.engine.logs import KINDS, Logged
from emuredis.replies import OK, Reply, Status
from emuredis.scalars import parse_int
from emuredis.spec import command, container

if TYPE_CHECKING:
    from emuredis.engine.session import Session

container("SLOWLOG", "A container for slow log commands.", group="server", since="2.2.12")
container("COMMANDLOG", "A container for command log commands.", group="server", since="8.1.0")

_FLAGS = "admin loading stale"
_GET = "nondeterministic_output request_policy:all_nodes"
_LEN = "nondeterministic_output request_policy:all_nodes response_policy:agg_sum"
_RESET = "request_policy:all_nodes response_policy:all_succeeded"
_TYPE = "type=(SLOW|LARGE-REQUEST|LARGE-REPLY)"


def _log(ctx: Session, kind: bytes) -> deque[Logged]:
    if kind.lower() not in KINDS:
        raise errors.err("type should be one of the following: slow, large-request, large-reply")
    return ctx.engine.logs.logs[kind.lower()]


def _entries(ctx: Session, kind: bytes, text: bytes) -> Reply:
    count = parse_int(text)
    if count is None or count < -1:
        raise errors.err("count should be greater than or equal to -1")
    return [list(entry) for entry in islice(_log(ctx, kind), None if count == -1 else count)]


@command("SLOWLOG GET [count:integer]", _FLAGS, group="server", since="2.2.12", tips=_GET,
         complexity="O(N) where N is the number of entries returned")  # fmt: skip
def slowlog_get(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the slow log's entries."""
    if len(argv) > 3:
        word = errors.shown(argv[1], 128)
        raise errors.err(f"unknown subcommand or wrong number of arguments for '{word}'. Try SLOWLOG HELP.")
    return _entries(ctx, b"slow", argv[2] if len(argv) == 3 else b"10")


@command("SLOWLOG LEN", _FLAGS, group="server", since="2.2.12", complexity="O(1)", tips=_LEN)
def slowlog_len(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the number of entries in the slow log."""
    return len(_log(ctx, b"slow"))


@command("SLOWLOG RESET", _FLAGS, group="server", since="2.2.12", tips=_RESET,
         complexity="O(N) where N is the number of entries in the slowlog")  # fmt: skip
def slowlog_reset(ctx: Session, argv: list[bytes]) -> Reply:
    """Clears all entries from the slow log."""
    _log(ctx, b"slow").clear()
    return OK


@command("SLOWLOG HELP", "loading stale", group="server", since="6.2.0", complexity="O(1)")
def slowlog_help(ctx: Session, argv: list[bytes]) -> Reply:
    """Lists the subcommands."""
    return [Status(line) for line in SLOWLOG]


@command(f"COMMANDLOG GET count:integer {_TYPE}", _FLAGS, group="server", since="8.1.0", tips=_GET,
         complexity="O(N) where N is the number of entries returned")  # fmt: skip
def commandlog_get(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the entries of one of the command logs."""
    return _entries(ctx, argv[3], argv[2])


@command(f"COMMANDLOG LEN {_TYPE}", _FLAGS, group="server", since="8.1.0", complexity="O(1)", tips=_LEN)
def commandlog_len(ctx: Session, argv: list[bytes]) -> Reply:
    """Returns the number of entries in one of the command logs."""
    return len(_log(ctx, argv[2]))


@command(f"COMMANDLOG RESET {_TYPE}", _FLAGS, group="server", since="8.1.0", tips=_RESET,
         complexity="O(N) where N is the number of entries in the commandlog")  # fmt: skip
def commandlog_reset(ctx: Session, argv: list[bytes]) -> Reply:
    """Clears one of the command logs."""
    _log(ctx, argv[2]).clear()
    return OK


@command("COMMANDLOG HELP", "loading stale", group="server", since="8.1.0", complexity="O(1)")
def commandlog_help(ctx: Session, argv: list[bytes]) -> Reply:
    """Lists the subcommands."""
    return [Status(line) for line in COMMANDLOG]
