"""EVAL, EVALSHA, their read-only forms, and SCRIPT.

Only the declarations and the checks of arguments are here. Lua lives in `emuredis.scripting`, which is loaded at the
first command that needs it, by name, for it is a layer above: importing the package loads no Lua.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from emuredis import errors
from emuredis.commands.help_texts import SCRIPT
from emuredis.errors import ReplyError
from emuredis.replies import OK, Reply, Status
from emuredis.spec import command, container

if TYPE_CHECKING:
    from emuredis.engine.session import Session

_RUN = "noscript stale skip_monitor no_mandatory_keys movablekeys"
_COST = "Depends on the script that is executed."


def _scripts(ctx: Session) -> Any:
    found = ctx.engine.scripting
    if found is not None:
        return found
    return importlib.import_module("emuredis.scripting").scripts_of(ctx.engine)


@command("EVAL script numkeys:integer [key...] [arg...]", _RUN, keys="RW access update @2#", group="scripting",
         since="2.6.0", complexity=_COST)  # fmt: skip
def eval_(ctx: Session, argv: list[bytes]) -> Reply:
    """Runs a Lua script in the server."""
    return (ctx.engine.scripting or _scripts(ctx)).eval(ctx, argv)


@command("EVALSHA sha1 numkeys:integer [key...] [arg...]", _RUN, keys="RW access update @2#", group="scripting",
         since="2.6.0", complexity=_COST)  # fmt: skip
def evalsha(ctx: Session, argv: list[bytes]) -> Reply:
    """Runs a Lua script that the server knows by its SHA1 digest."""
    return (ctx.engine.scripting or _scripts(ctx)).evalsha(ctx, argv)


@command("EVAL_RO script numkeys:integer [key...] [arg...]", "readonly " + _RUN, keys="RO access @2#",
         group="scripting", since="7.0.0", complexity=_COST)  # fmt: skip
def eval_ro(ctx: Session, argv: list[bytes]) -> Reply:
    """Runs a Lua script that may only read."""
    return _scripts(ctx).eval(ctx, argv, read_only=True)


@command("EVALSHA_RO sha1 numkeys:integer [key...] [arg...]", "readonly " + _RUN, keys="RO access @2#",
         group="scripting", since="7.0.0", complexity=_COST)  # fmt: skip
def evalsha_ro(ctx: Session, argv: list[bytes]) -> Reply:
    """Runs a known Lua script that may only read."""
    return _scripts(ctx).evalsha(ctx, argv, read_only=True)


container("SCRIPT", "Looks after the cached Lua scripts.", group="scripting", since="2.6.0")


@command("SCRIPT DEBUG mode=(YES|SYNC|NO) [engine]", "noscript", group="scripting", since="3.2.0", complexity="O(1)",
         acl="scripting")  # fmt: skip
def script_debug(ctx: Session, argv: list[bytes]) -> Reply:
    """Switches the debugger for this connection's scripts on or off."""
    if len(argv) > 4:
        raise errors.err("unknown subcommand or wrong number of arguments for 'DEBUG'. Try SCRIPT HELP.")
    if ctx.deny_blocking or (ctx.door is not None and ctx.door.pending()):
        raise errors.err("SCRIPT DEBUG must be called outside a pipeline")
    if len(argv) == 4 and argv[3].lower() != b"lua":
        raise ReplyError(b"ERR No scripting engine found with name '" + argv[3] + b"' to enable debug")
    mode = argv[2].lower()
    if mode not in (b"no", b"yes", b"sync"):
        raise errors.err("Use SCRIPT DEBUG YES/SYNC/NO")
    if mode == b"no":
        ctx.debugging = None
        return OK
    if ctx.door is None:
        raise errors.unsupported(
            f"SCRIPT DEBUG {mode.decode().upper()} without a socket; see emuredis.lab.debug"
        )
    ctx.debugging = mode.decode()
    return OK


@command("SCRIPT EXISTS sha1...", "noscript stale", group="scripting", since="2.6.0",
         complexity="O(N) with N being the number of digests.", acl="scripting",
         tips="request_policy:all_shards response_policy:agg_logical_and")  # fmt: skip
def script_exists(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells which scripts are in the cache."""
    found = ctx.engine.scripting
    return [1 if found is not None and found.exists(sha) else 0 for sha in argv[2:]]


@command("SCRIPT FLUSH flush-type=[ASYNC|SYNC]", "noscript stale", group="scripting", since="2.6.0",
         complexity="O(N) with N being the number of scripts.", acl="scripting",
         tips="request_policy:all_nodes response_policy:all_succeeded")  # fmt: skip
def script_flush(ctx: Session, argv: list[bytes]) -> Reply:
    """Forgets every cached script."""
    if len(argv) > 3 or (len(argv) == 3 and argv[2].lower() not in (b"sync", b"async")):
        raise errors.err("SCRIPT FLUSH only support SYNC|ASYNC option")
    if ctx.engine.scripting is not None:
        ctx.engine.scripting.flush()
    return OK


@command("SCRIPT HELP", "loading stale", group="scripting", since="5.0.0", complexity="O(1)", acl="scripting")
def script_help(ctx: Session, argv: list[bytes]) -> Reply:
    """Lists the subcommands."""
    return [Status(line) for line in SCRIPT]


@command("SCRIPT KILL", "noscript allow_busy", group="scripting", since="2.6.0", complexity="O(1)", acl="scripting",
         tips="request_policy:all_shards response_policy:one_succeeded")  # fmt: skip
def script_kill(ctx: Session, argv: list[bytes]) -> Reply:
    """Ends the script that is running."""
    ctx.engine.busy.kill("SCRIPT")
    return OK


@command("SCRIPT LOAD script", "noscript stale", group="scripting", since="2.6.0",
         complexity="O(N) with N being the length of the script.", acl="scripting",
         tips="request_policy:all_nodes response_policy:all_succeeded")  # fmt: skip
def script_load(ctx: Session, argv: list[bytes]) -> Reply:
    """Puts a script into the cache without running it."""
    return _scripts(ctx).load(argv[2])


@command(
    "SCRIPT SHOW sha1",
    "noscript stale",
    group="scripting",
    since="8.0.0",
    complexity="O(1).",
    acl="scripting",
)
def script_show(ctx: Session, argv: list[bytes]) -> Reply:
    """Gives the source of a cached script."""
    found = ctx.engine.scripting
    if found is None:
        raise ReplyError("NOSCRIPT No matching script.")
    return found.show(argv[2])
