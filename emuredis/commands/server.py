"""The server: TIME, CONFIG, DEBUG. INFO is in `info`, COMMAND in `introspection`.

CONFIG SET is all or nothing: every name and value is looked at before the first is set. What a parameter may hold is
known to `emuredis.engine.config`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from emuredis import errors
from emuredis.commands.help_texts import CONFIG, DEBUG
from emuredis.engine.config import ALIASES, FIXED, FREE, PARAMETERS, PROTECTED, UNSUPPORTED, Parameter
from emuredis.errors import ReplyError
from emuredis.patterns import match
from emuredis.replies import OK, Map, Reply, Status
from emuredis.spec import command, container

if TYPE_CHECKING:
    from emuredis.engine.session import Session


@command(
    "TIME",
    "loading stale fast",
    group="server",
    since="2.6.0",
    complexity="O(1)",
    tips="nondeterministic_output",
)
def time(ctx: Session, argv: list[bytes]) -> Reply:
    """The server's time: Unix seconds, and the microseconds of the current one."""
    seconds, nanoseconds = divmod(ctx.engine.keyspace.ns, 1_000_000_000)
    return [b"%d" % seconds, b"%d" % (nanoseconds // 1000)]


# -- CONFIG ------------------------------------------------------------------------------------

container("CONFIG", "Commands about the server's configuration.", group="server", since="2.0.0")

#: Every name CONFIG GET lists, with the parameter it stands for, in alphabetical order.
_NAMES = {name: PARAMETERS[ALIASES.get(name, name)] for name in sorted([*PARAMETERS, *ALIASES])}


@command("CONFIG GET parameter...", "admin noscript loading stale", group="server", since="2.0.0",
         complexity="O(N), N being the number of parameters asked for")  # fmt: skip
def config_get(ctx: Session, argv: list[bytes]) -> Reply:
    """The values of parameters, by name or pattern."""
    config = ctx.engine.config
    found: dict[str, tuple[str, Parameter]] = {}
    for pattern in argv[2:]:
        text = pattern.decode("utf-8", "surrogateescape")
        if not any(special in text for special in "*?["):
            # A name given in full comes back as it was written.
            parameter = _NAMES.get(text.lower())
            if parameter is not None:
                found.setdefault(text.lower(), (text, parameter))
            continue
        for name, parameter in _NAMES.items():
            if match(pattern, name.encode(), nocase=True):
                found.setdefault(name, (name, parameter))
    reply = Map()
    for _, (shown, parameter) in sorted(found.items()):
        reply.append(shown.encode("utf-8", "surrogateescape"))
        reply.append(config.get(parameter.name).encode("utf-8", "surrogateescape"))
    return reply


@command("CONFIG SET data=(parameter value)...", "admin noscript loading stale", group="server", since="2.0.0",
         complexity="O(N), N being the number of parameters given",
         tips="request_policy:all_nodes response_policy:all_succeeded")  # fmt: skip
def config_set(ctx: Session, argv: list[bytes]) -> Reply:
    """Changes parameters, all of them or none."""
    if len(argv) % 2:
        raise errors.syntax()
    words = [arg.decode("utf-8", "surrogateescape") for arg in argv[2:]]
    engine = ctx.engine
    parameters = _known(words[::2])
    values: list[Any] = []
    for (name, parameter), text in zip(parameters.items(), words[1::2], strict=True):
        try:
            value = parameter.parse(text)
        except ValueError as reason:
            raise _refused(name, str(reason)) from None
        if parameter.kind == FIXED and value != getattr(engine.config, parameter.attribute):
            raise errors.unsupported(f"CONFIG SET {name} {text}")
        values.append(value)
    for parameter, value in zip(parameters.values(), values, strict=True):
        setattr(engine.config, parameter.attribute, value)
    engine.configured()
    return OK


def _known(names: list[str]) -> dict[str, Parameter]:
    """The parameters of these names, each settable and named once."""
    parameters: dict[str, Parameter] = {}
    for name in names:
        lower = name.lower()
        parameter = _NAMES.get(lower)
        if parameter is None:
            if lower in UNSUPPORTED:
                raise errors.unsupported(f"CONFIG SET {lower}")
            shown = name.partition("\0")[0]
            raise ReplyError(f"ERR Unknown option or number of arguments for CONFIG SET - '{shown}'")
        if parameter.kind not in (FREE, FIXED):
            kind = "protected" if parameter.kind == PROTECTED else "immutable"
            raise _refused(name, f"can't set {kind} config")
        if lower in parameters:
            raise _refused(name, "duplicate parameter")
        parameters[lower] = parameter
    return parameters


def _refused(name: str, reason: str) -> ReplyError:
    return ReplyError(f"ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}")


@command("CONFIG RESETSTAT", "admin noscript loading stale", group="server", since="2.0.0", complexity="O(1)",
         tips="request_policy:all_nodes response_policy:all_succeeded")  # fmt: skip
def config_resetstat(ctx: Session, argv: list[bytes]) -> Reply:
    """Sets the counters that INFO tells to zero."""
    engine = ctx.engine
    keyspace = engine.keyspace
    keyspace.hits = keyspace.misses = keyspace.expired = keyspace.evicted = 0
    engine.commands = 1 - sum(session.commands for session in engine.sessions.values())
    engine.connections_before = engine.connections
    engine.persistence.saves = 0
    if engine.scripting is not None:
        engine.scripting.evicted = 0
    return OK


@command("CONFIG REWRITE", "admin noscript loading stale", group="server", since="2.8.0", complexity="O(1)",
         tips="request_policy:all_nodes response_policy:all_succeeded")  # fmt: skip
def config_rewrite(ctx: Session, argv: list[bytes]) -> Reply:
    """Writes the configuration back to its file, which there is none of."""
    raise ReplyError("ERR The server is running without a config file")


@command("CONFIG HELP", "loading stale", group="server", since="5.0.0", complexity="O(1)")
def config_help(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells about the subcommands."""
    return [Status(line) for line in CONFIG]


# -- DEBUG -------------------------------------------------------------------------------------

#: The server's subcommands, of which the emulator has SLEEP and HELP.
_DEBUG = frozenset(line.split()[0] for line in DEBUG[1:] if not line.startswith(b" "))
_SECONDS = re.compile(rb"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


@command("DEBUG subcommand [argument...]", "admin noscript loading stale", group="server", since="1.0.0",
         complexity="Depends on subcommand.", arity=-2)  # fmt: skip
def debug(ctx: Session, argv: list[bytes]) -> Reply:
    """Commands for testing a server; of them SLEEP, which makes everybody wait."""
    allowed = ctx.engine.config.enable_debug_command
    if allowed == "no" or (allowed == "local" and not _local(ctx)):
        raise ReplyError(
            'ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", you can run it '
            "from a local connection, otherwise you need to set this option in the configuration file, and then "
            "restart the server."
        )
    word = argv[1].upper()
    if word == b"SLEEP" and len(argv) == 3:
        number = _SECONDS.match(argv[2])
        seconds = float(number[0]) if number is not None else 0.0
        if seconds > 0:
            ctx.engine.sleep(seconds)
        return OK
    if word == b"HELP" and len(argv) == 2:
        return [Status(line) for line in DEBUG]
    shown = errors.shown(argv[1], 128)
    if word in _DEBUG and word != b"SLEEP":
        raise errors.unsupported(f"DEBUG {shown}")
    raise ReplyError(f"ERR unknown subcommand or wrong number of arguments for '{shown}'. Try DEBUG HELP.")


def _local(ctx: Session) -> bool:
    """A connection in this process, over a Unix socket or over the loopback interface."""
    return not ctx.addr or b"/" in ctx.addr or ctx.addr.startswith((b"127.", b"::1", b"[::1"))
