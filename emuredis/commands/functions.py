"""FUNCTION, FCALL and FCALL_RO: the declarations and the checks of arguments.

Libraries live in `emuredis.scripting.functions`, which is loaded, and Lua with it, at the first library; a command that
finds none answers without.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from emuredis import errors
from emuredis.commands.help_texts import FUNCTION
from emuredis.errors import ReplyError
from emuredis.replies import OK, Map, Reply, Status
from emuredis.spec import command, container

if TYPE_CHECKING:
    from emuredis.engine.session import Session

_RUN = "noscript stale skip_monitor no_mandatory_keys movablekeys"
_COST = "Depends on the function that is executed."
_EVERYWHERE = "request_policy:all_shards response_policy:all_succeeded"
_POLICIES = (b"flush", b"append", b"replace")


def _functions(ctx: Session) -> Any:
    if ctx.engine.functions is None:
        ctx.engine.functions = importlib.import_module("emuredis.scripting.functions").functions_of(
            ctx.engine
        )
    return ctx.engine.functions


@command("FCALL function numkeys:integer [key...] [arg...]", _RUN, keys="RW access update @2#", group="scripting",
         since="7.0.0", complexity=_COST)  # fmt: skip
def fcall(ctx: Session, argv: list[bytes]) -> Reply:
    """Runs a function of a library."""
    return _call(ctx, argv, read_only=False)


@command("FCALL_RO function numkeys:integer [key...] [arg...]", "readonly " + _RUN, keys="RO access @2#",
         group="scripting", since="7.0.0", complexity=_COST)  # fmt: skip
def fcall_ro(ctx: Session, argv: list[bytes]) -> Reply:
    """Runs a function that may only read."""
    return _call(ctx, argv, read_only=True)


def _call(ctx: Session, argv: list[bytes], read_only: bool) -> Reply:
    functions = ctx.engine.functions
    if functions is None:
        raise errors.err("Function not found")
    reply: Reply = functions.call(ctx, argv, read_only)
    return reply


container("FUNCTION", "Looks after the libraries of functions.", group="scripting", since="7.0.0")


def _too_many(name: str) -> ReplyError:
    return errors.err(f"unknown subcommand or wrong number of arguments for '{name}'. Try FUNCTION HELP.")


@command("FUNCTION LOAD [REPLACE] function-code", "write denyoom noscript", group="scripting", since="7.0.0",
         complexity="O(1) (considering compilation time is redundant)", acl="scripting", tips=_EVERYWHERE)  # fmt: skip
def function_load(ctx: Session, argv: list[bytes]) -> Reply:
    """Creates a library of functions."""
    for option in argv[2:-1]:
        if option.lower() != b"replace":
            raise ReplyError(b"ERR Unknown option given: " + option.partition(b"\0")[0])
    name: bytes = _functions(ctx).load(argv[-1], replace=len(argv) > 3)
    return name


@command("FUNCTION DELETE library-name", "write noscript", group="scripting", since="7.0.0", complexity="O(1)",
         acl="scripting", tips=_EVERYWHERE)  # fmt: skip
def function_delete(ctx: Session, argv: list[bytes]) -> Reply:
    """Deletes a library and its functions."""
    if ctx.engine.functions is None:
        raise errors.err("Library not found")
    ctx.engine.functions.delete(argv[2])
    return OK


@command("FUNCTION FLUSH flush-type=[ASYNC|SYNC]", "write noscript", group="scripting", since="7.0.0",
         complexity="O(N) where N is the number of functions deleted", acl="scripting", tips=_EVERYWHERE)  # fmt: skip
def function_flush(ctx: Session, argv: list[bytes]) -> Reply:
    """Deletes every library."""
    if len(argv) > 3:
        raise _too_many(argv[1].decode("latin-1"))
    if len(argv) == 3 and argv[2].lower() not in (b"sync", b"async"):
        raise errors.err("FUNCTION FLUSH only supports SYNC|ASYNC option")
    if ctx.engine.functions is None:
        ctx.engine.keyspace.dirty += 1
    else:
        ctx.engine.functions.flush()
    return OK


@command("FUNCTION LIST [LIBRARYNAME library-name-pattern] [WITHCODE]", "noscript", group="scripting", since="7.0.0",
         complexity="O(N) where N is the number of functions", acl="scripting",
         tips="nondeterministic_output_order")  # fmt: skip
def function_list(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells about the libraries and their functions."""
    pattern, with_code = None, False
    words = iter(argv[2:])
    for word in words:
        if word.lower() == b"withcode" and not with_code:
            with_code = True
        elif word.lower() == b"libraryname" and pattern is None:
            pattern = next(words, None)
            if pattern is None:
                raise errors.err("library name argument was not given")
        else:
            raise ReplyError(b"ERR Unknown argument " + word.partition(b"\0")[0])
    if ctx.engine.functions is None:
        return []
    told: Reply = ctx.engine.functions.describe(pattern, with_code)
    return told


@command("FUNCTION STATS", "noscript allow_busy", group="scripting", since="7.0.0", complexity="O(1)", acl="scripting",
         tips="nondeterministic_output request_policy:all_shards response_policy:special")  # fmt: skip
def function_stats(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells which function is running, and how many there are."""
    functions = ctx.engine.functions
    elapsed = ctx.engine.busy.elapsed_ms()
    running = None
    if elapsed is not None:
        name, command = functions.running
        running = Map([b"name", name, b"command", command, b"duration_ms", elapsed])
    libraries, count = (0, 0) if functions is None else functions.counts()
    lua = Map([b"libraries_count", libraries, b"functions_count", count])
    return Map([b"running_script", running, b"engines", Map([b"LUA", lua])])


@command("FUNCTION KILL", "noscript allow_busy", group="scripting", since="7.0.0", complexity="O(1)", acl="scripting",
         tips="request_policy:all_shards response_policy:one_succeeded")  # fmt: skip
def function_kill(ctx: Session, argv: list[bytes]) -> Reply:
    """Ends the function that is running."""
    ctx.engine.busy.kill("FUNCTION")
    return OK


@command("FUNCTION DUMP", "noscript", group="scripting", since="7.0.0",
         complexity="O(N) where N is the number of functions", acl="scripting")  # fmt: skip
def function_dump(ctx: Session, argv: list[bytes]) -> Reply:
    """Gives all libraries as one payload."""
    payload: bytes = _functions(ctx).dump()
    return payload


@command("FUNCTION RESTORE serialized-value policy=[FLUSH|APPEND|REPLACE]", "write denyoom noscript", group="scripting",
         since="7.0.0", complexity="O(N) where N is the number of functions on the payload", acl="scripting",
         tips=_EVERYWHERE)  # fmt: skip
def function_restore(ctx: Session, argv: list[bytes]) -> Reply:
    """Creates the libraries of a payload."""
    if len(argv) > 4:
        raise _too_many(argv[1].decode("latin-1"))
    policy = argv[3].lower() if len(argv) == 4 else b"append"
    if policy not in _POLICIES:
        raise errors.err("Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")
    _functions(ctx).restore(argv[2], policy)
    return OK


@command(
    "FUNCTION HELP", "loading stale", group="scripting", since="7.0.0", complexity="O(1)", acl="scripting"
)
def function_help(ctx: Session, argv: list[bytes]) -> Reply:
    """Lists the subcommands."""
    return [Status(line) for line in FUNCTION]
