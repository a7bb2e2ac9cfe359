"""MIGRATE: keys from one node of a cluster to another of the same process, as a resharding moves them one by one.

What the target is asked is what a real server asks: AUTH, SELECT, RESTORE-ASKING. Servers of other processes cannot be
reached, and are refused by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.engine.cluster import Node
from emuredis.errors import ReplyError
from emuredis.keyspace import notify
from emuredis.keyspace.rdb import payload
from emuredis.replies import OK, Reply, Status
from emuredis.scalars import parse_int
from emuredis.spec import command

if TYPE_CHECKING:
    from emuredis.engine.session import Session


class _Options:
    """COPY, REPLACE, the arguments of AUTH, and the keys."""

    def __init__(self, argv: list[bytes]) -> None:
        self.copy = self.replace = False
        self.auth: list[bytes] = []
        self.keys = [argv[3]]
        at = 6
        while at < len(argv):
            word, left = argv[at].upper(), len(argv) - at - 1
            if word == b"COPY":
                self.copy = True
            elif word == b"REPLACE":
                self.replace = True
            elif word in (b"AUTH", b"AUTH2") and left >= len(word) - 3:
                self.auth = argv[at + 1 : at + len(word) - 2]
                at += len(word) - 3
            elif word == b"KEYS":
                if argv[3]:
                    raise errors.err(
                        "When using MIGRATE KEYS option, the key argument must be set to the empty string"
                    )
                self.keys = argv[at + 1 :]
                break
            else:
                raise errors.syntax()
            at += 1


@command('MIGRATE host port:integer key destination-db:integer timeout:integer [COPY] [REPLACE] '
         "authentication=[AUTH auth|AUTH2 auth2=(username password)] [KEYS keys:key...]", "write movablekeys",
         keys="RW access delete incomplete @KEYS/-2..-1, RW access delete @3", group="generic", since="2.6.0",
         acl="keyspace dangerous", tips="nondeterministic_output",
         complexity="O(N), N being the size of the keys")  # fmt: skip
def migrate(ctx: Session, argv: list[bytes]) -> Reply:
    """Moves keys to another server."""
    options = _Options(argv)
    index, _ = integer(argv[4]), integer(argv[5])
    keys = [key for key in options.keys if ctx.db.exists(key)]
    if not keys:
        return Status(b"NOKEY")
    target = _target(ctx, argv)
    session = target.engine.internal_session()
    session.authenticated = not target.engine.config.requirepass
    session.update_gate()
    if options.auth:
        _ask(target, session, [b"AUTH", *options.auth])
    _ask(target, session, [b"SELECT", b"%d" % index])
    for key in keys:
        deadline = ctx.db.deadline(key)
        words = [b"RESTORE-ASKING", key, b"%d" % (deadline or 0), payload.dump(ctx.db.peek(key)), b"ABSTTL"]
        _ask(target, session, [*words, b"REPLACE"] if options.replace else words)
        if not options.copy:
            ctx.db.remove(key)
            ctx.db.touch(key, notify.GENERIC, b"del")
    return OK


def _target(ctx: Session, argv: list[bytes]) -> Node:
    port, here = parse_int(argv[2]), ctx.engine.cluster
    target = None if here is None or port is None else here.cluster.at(errors.shown(argv[1]), port)
    if target is None:
        raise errors.unsupported("MIGRATE to a server that is not a node of its own cluster")
    if target is here:  # which cannot answer while it waits for itself
        raise ReplyError("IOERR error or timeout reading to target instance")
    return target


def _ask(target: Node, session: Any, argv: list[bytes]) -> None:
    reply = target.engine.execute(session, argv)
    if isinstance(reply, ReplyError):
        raise errors.err(f"Target instance replied with error: {reply.message}")
