"""What a server without replicas and modules says of itself: ROLE, REPLICAOF, FAILOVER, MODULE, LOLWUT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.commands.help_texts import MODULE
from emuredis.errors import ReplyError
from emuredis.replies import OK, Map, Reply, Status, Verbatim
from emuredis.scalars import parse_int
from emuredis.spec import command, container

if TYPE_CHECKING:
    from emuredis.engine.session import Session

container("MODULE", "A container for module commands.", group="server", since="4.0.0")


@command(
    "ROLE",
    "fast loading noscript stale",
    group="server",
    since="2.8.12",
    complexity="O(1)",
    acl="admin dangerous",
)
def role(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells the part that the server plays in replication: a primary without replicas."""
    return [b"master", 0, []]


def _replicate(ctx: Session, argv: list[bytes]) -> Reply:
    """Nobody's replica, or refused: there is one process."""
    if argv[1].upper() == b"NO" and argv[2].upper() == b"ONE":
        return OK
    port = parse_int(argv[2])
    if port is None or not 0 <= port <= 65535:
        raise errors.err("Invalid master port")
    raise errors.err("emuredis does not support REPLICAOF another server")


@command("REPLICAOF args=(host-port=(host port:integer)|no-one=(NO ONE))", "admin no_async_loading noscript stale",
         group="server", since="5.0.0", complexity="O(1)")  # fmt: skip
def replicaof(ctx: Session, argv: list[bytes]) -> Reply:
    """Makes the server a replica of another one, or nobody's."""
    return _replicate(ctx, argv)


@command("SLAVEOF args=(host-port=(host port:integer)|no-one=(NO ONE))", "admin no_async_loading noscript stale",
         group="server", since="1.0.0", complexity="O(1)")  # fmt: skip
def slaveof(ctx: Session, argv: list[bytes]) -> Reply:
    """Makes the server a replica of another one, or nobody's. Called REPLICAOF now."""
    return _replicate(ctx, argv)


@command("FAILOVER [TO target=(host port:integer [FORCE])] [ABORT] [TIMEOUT milliseconds:integer]",
         "admin noscript stale", group="server", since="6.2.0", complexity="O(1)")  # fmt: skip
def failover(ctx: Session, argv: list[bytes]) -> Reply:
    """Hands the part of the primary to a replica: there is none."""
    at, left = 1, len(argv)
    if left == 2 and argv[1].upper() == b"ABORT":
        raise errors.err("No failover in progress.")
    while at < left:
        word = argv[at].upper()
        if word == b"TIMEOUT" and at + 1 < left:
            if integer(argv[at + 1]) <= 0:
                raise errors.err("FAILOVER timeout must be greater than 0")
            at += 2
        elif word == b"TO" and at + 2 < left:
            integer(argv[at + 2])
            at += 3
        elif word == b"FORCE":
            at += 1
        else:
            raise errors.syntax()
    raise errors.err("FAILOVER requires connected replicas.")


# -- modules ---------------------------------------------------------------------------------------

_REFUSED = (
    'ERR MODULE command not allowed. If the enable-module-command option is set to "local", you can run it from a '
    "local connection, otherwise you need to set this option in the configuration file, and then restart the server."
)


@command("MODULE LIST", "admin noscript", group="server", since="4.0.0", tips="nondeterministic_output_order",
         complexity="O(N) where N is the number of loaded modules.")  # fmt: skip
def module_list(ctx: Session, argv: list[bytes]) -> Reply:
    """Lists the modules: the server counts its engine for scripts as one."""
    return [Map([b"name", b"lua", b"ver", 1, b"path", b"lua", b"args", []])]


@command("MODULE LOAD path [arg ...]", "admin no_async_loading noscript", group="server", since="4.0.0",
         complexity="O(1)")  # fmt: skip
def module_load(ctx: Session, argv: list[bytes]) -> Reply:
    """Loads a module: as on a server that does not allow it."""
    raise ReplyError(_REFUSED)


@command("MODULE LOADEX path [CONFIG configs=(name value) ...] [ARGS args ...]", "admin no_async_loading noscript",
         group="server", since="7.0.0", complexity="O(1)")  # fmt: skip
def module_loadex(ctx: Session, argv: list[bytes]) -> Reply:
    """Loads a module with parameters: as on a server that does not allow it."""
    raise ReplyError(_REFUSED)


@command(
    "MODULE UNLOAD name", "admin no_async_loading noscript", group="server", since="4.0.0", complexity="O(1)"
)
def module_unload(ctx: Session, argv: list[bytes]) -> Reply:
    """Unloads a module: as on a server that does not allow it."""
    raise ReplyError(_REFUSED)


@command("MODULE HELP", "loading stale", group="server", since="5.0.0", complexity="O(1)")
def module_help(ctx: Session, argv: list[bytes]) -> Reply:
    """Lists the subcommands."""
    return [Status(line) for line in MODULE]


# -- art -------------------------------------------------------------------------------------------

_USE = "ERR Syntax error. Use: LOLWUT [columns rows] [real imaginary]"
_SHADES = " .:-=+*#%@"


@command(
    "LOLWUT [VERSION version:integer]",
    "fast readonly",
    group="server",
    since="5.0.0",
    complexity="",
    acl="read",
)
def lolwut(ctx: Session, argv: list[bytes]) -> Reply:
    """Draws something, and tells the version. The drawing is this emulator's own."""
    words = argv[1:]
    if words[:1] and words[0].upper() == b"VERSION" and len(words) > 1:
        integer(words[1])
        words = words[2:]
    numbers = [parse_int(word) for word in words[:2]]
    if len(words) not in (0, 2, 4) or None in numbers:
        raise ReplyError(_USE)
    columns, rows = (max(1, min(number or 1, 160)) for number in numbers or (80, 40))
    real, imaginary = ctx.rng.uniform(-0.8, 0.4), ctx.rng.uniform(-0.7, 0.7)
    if len(words) == 4:
        try:
            real, imaginary = float(words[2]), float(words[3])
        except ValueError:
            raise ReplyError(_USE) from None
    drawn = "\n".join(_row(row, rows, columns, complex(real, imaginary)) for row in range(rows))
    told = f"{drawn}\nAscii representation of Julia set with constant {real:.2f} + {imaginary:.2f}i\n"
    return Verbatim(f"{told}Don't forget to have fun! Valkey ver. 9.1.2\n".encode())


def _row(row: int, rows: int, columns: int, constant: complex) -> str:
    return "".join(
        _shade(column / columns * 3 - 1.5, row / rows * 2 - 1, constant) for column in range(columns)
    )


def _shade(x: float, y: float, constant: complex) -> str:
    z = complex(x, y)
    for step in range(30):
        if abs(z) > 2:
            return _SHADES[step // 3]
        z = z * z + constant
    return _SHADES[-1]
