"""The connection itself: PING, ECHO, HELLO, AUTH, SELECT, QUIT, RESET. What CLIENT can do is in `clients`.

There is one user, ``default``: with a ``requirepass`` it has that password, without one any password will do.
QUIT disconnects the session at once; the door still sends the reply and then sees ``closing``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.commands.transactions import forget_transaction
from emuredis.errors import ReplyError
from emuredis.replies import OK, PONG, Map, Reply, Status
from emuredis.scalars import parse_int
from emuredis.spec import command

if TYPE_CHECKING:
    from emuredis.engine.session import Session

#: What HELLO and INFO say of the server.
VALKEY_VERSION = b"9.1.2"

_INT_MAX = 2147483647


@command("PING [message]", "fast", group="connection", since="1.0.0", complexity="O(1)", subscribed=True,
         tips="request_policy:all_shards response_policy:all_succeeded")  # fmt: skip
def ping(ctx: Session, argv: list[bytes]) -> Reply:
    """Answers, to show that the server is alive."""
    if len(argv) > 2:
        raise errors.wrong_arity("ping")
    if ctx.protocol == 2 and ctx.subscriptions:
        # A RESP2 subscriber could not tell +PONG from a message: it gets a list as for one.
        return [b"pong", argv[1] if len(argv) == 2 else b""]
    return argv[1] if len(argv) == 2 else PONG


@command("ECHO message", "loading stale fast", group="connection", since="1.0.0", complexity="O(1)")
def echo(ctx: Session, argv: list[bytes]) -> Reply:
    """Answers with the message."""
    return argv[1]


@command("HELLO arguments=[protover:integer [AUTH auth=(username password)] [SETNAME clientname]]",
         "noscript loading stale fast no_auth allow_busy", group="connection", since="6.0.0",
         complexity="O(1)")  # fmt: skip
def hello(ctx: Session, argv: list[bytes]) -> Reply:
    """Chooses the protocol, and may authenticate and name the connection at once."""
    protocol, credentials, name = _hello_options(argv)
    if credentials is not None:
        authenticate(ctx, *credentials)
    if needs_auth(ctx):
        raise ReplyError(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH "
            "<user> <pass> option can be used to authenticate the client and select the RESP protocol version at "
            "the same time"
        )
    if name is not None:
        ctx.name = name
    if protocol is not None:
        ctx.protocol = protocol
        ctx.update_gate()
    return Map(
        [
            *(b"server", b"valkey", b"version", VALKEY_VERSION, b"proto", ctx.protocol, b"id", ctx.id),
            *(b"mode", b"standalone" if ctx.engine.cluster is None else b"cluster", b"role", b"master"),
            *(b"modules", [Map([b"name", b"lua", b"ver", 1, b"path", b"lua", b"args", []])]),
        ]
    )


def _hello_options(argv: list[bytes]) -> tuple[int | None, tuple[bytes, bytes] | None, bytes | None]:
    """Protocol version, user and password, name: each None when not given."""
    if len(argv) == 1:
        return None, None, None
    protocol = parse_int(argv[1])
    if protocol is None:
        raise ReplyError("ERR Protocol version is not an integer or out of range")
    if protocol not in (2, 3):
        raise ReplyError("NOPROTO unsupported protocol version")
    credentials, name, at = None, None, 2
    while at < len(argv):
        word = argv[at].upper()
        if word == b"AUTH" and at + 2 < len(argv):
            credentials = argv[at + 1], argv[at + 2]
            at += 3
        elif word == b"SETNAME" and at + 1 < len(argv):
            name = checked_name(argv[at + 1])
            at += 2
        else:
            raise ReplyError(
                f"ERR Syntax error in HELLO option '{argv[at].decode('utf-8', 'surrogateescape')}'"
            )
    return protocol, credentials, name


def checked_name(name: bytes) -> bytes:
    """A client's name: printable ASCII without spaces."""
    if not is_plain(name):
        raise ReplyError("ERR Client names cannot contain spaces, newlines or special characters.")
    return name


def is_plain(text: bytes) -> bool:
    return all(33 <= byte <= 126 for byte in text)


@command("AUTH [username] password", "noscript loading stale fast no_auth allow_busy", group="connection",
         since="1.0.0", complexity="O(N), N being the number of passwords of the user")  # fmt: skip
def auth(ctx: Session, argv: list[bytes]) -> Reply:
    """Authenticates the connection."""
    if len(argv) > 3:
        raise errors.syntax()
    if len(argv) == 3:
        authenticate(ctx, argv[1], argv[2])
        return OK
    if not ctx.engine.config.requirepass:
        raise ReplyError(
            "ERR AUTH <password> called without any password configured for the default user. Are you sure your "
            "configuration is correct?"
        )
    authenticate(ctx, b"default", argv[1])
    return OK


def authenticate(ctx: Session, user: bytes, password: bytes) -> None:
    """Log in, or raise WRONGPASS and leave the session as it was."""
    expected = ctx.engine.config.password
    if user != b"default" or (expected and password != expected):
        raise ReplyError("WRONGPASS invalid username-password pair or user is disabled.")
    ctx.authenticated = True
    ctx.update_gate()


def needs_auth(ctx: Session) -> bool:
    """Whether the session may do nothing but authenticate. Without a password nobody needs to."""
    return not ctx.authenticated and bool(ctx.engine.config.requirepass)


@command(
    "SELECT index:integer",
    "loading stale fast allow_busy",
    group="connection",
    since="1.0.0",
    complexity="O(1)",
)
def select(ctx: Session, argv: list[bytes]) -> Reply:
    """Chooses the database that the next commands work on."""
    index = integer(argv[1])
    if not -_INT_MAX - 1 <= index <= _INT_MAX:
        raise ReplyError(f"ERR value is out of range, value must between {-_INT_MAX - 1} and {_INT_MAX}")
    databases = ctx.engine.keyspace.databases
    if not 0 <= index < len(databases):
        raise ReplyError("ERR DB index is out of range")
    ctx.db = databases[index]
    return OK


@command("QUIT", "noscript loading stale fast no_auth allow_busy", group="connection", since="1.0.0",
         complexity="O(1)", arity=-1, subscribed=True)  # fmt: skip
def quit_(ctx: Session, argv: list[bytes]) -> Reply:
    """Closes the connection, after this reply."""
    ctx.engine.disconnect(ctx)
    return OK


@command("RESET", "noscript loading stale fast no_auth allow_busy", group="connection", since="6.2.0",
         complexity="O(1)", subscribed=True)  # fmt: skip
def reset(ctx: Session, argv: list[bytes]) -> Reply:
    """Brings the connection back to how it was when it was made."""
    forget_transaction(ctx)
    ctx.engine.pubsub.leave(ctx)
    if ctx.monitor:
        ctx.engine.monitors.remove(ctx)
    ctx.db = ctx.engine.keyspace.databases[0]
    ctx.protocol = 2
    ctx.name = b""
    if ctx.reply_mode != "skip":  # a CLIENT REPLY SKIP before it swallows even this reply
        ctx.reply_mode = "on"
    ctx.no_evict = ctx.no_touch = False
    ctx.asking, ctx.readonly = 0, False
    ctx.authenticated = not ctx.engine.config.requirepass
    ctx.update_gate()
    return Status(b"RESET")
