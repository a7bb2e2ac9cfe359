"""Lua scripts and functions: EVAL, FCALL and their families, on the Lua 5.1 of ``lupa``.

    scripts   names, cache, which script runs how       (knows the runtime only by compile and run)
    functions libraries and their functions             (the same, by load and run)
    function_dump  the payload of FUNCTION DUMP
    shebang   the first line of either
    runtime   one Lua interpreter, the only importer of lupa
    bridge    redis.call: arguments in, replies out
    guard     the limits of instructions, time and memory
    texts     how numbers are stored that scripts write
    hot       the same for the commands that matter most, written out
    native    32-bit logic and binary numbers for the libraries
    bytecode  keeps the frames that errors are blamed on
    known     the server's command names, for errors that name what the emulator lacks

    sandbox.lua   read-only views, errors and their frames, running and ending scripts
    library.lua   register_function, loading a library, calling its functions
    calls.lua     redis.call and the table `server`
    replies.lua   what a script returned
    builtins.lua  Lua's own functions, as scripts see them
    cjson.lua, cmsgpack.lua, struct.lua, bit.lua

A script runs inside the unit of the command that called it, on a session of its own: it sees one instant, nobody
is served before it ends, and SELECT or setresp in it do not leak out. Whatever it wrote before failing stays.

Nothing here is imported before the first EVAL (see `emuredis.commands.scripting`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuredis.scripting.scripts import Scripts

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine

__all__ = ["Scripts", "scripts_of"]


def scripts_of(engine: Engine) -> Scripts:
    """The engine's scripts, made at the first call. Raises ReplyError when lupa is not installed."""
    if engine.scripting is None:
        engine.scripting = Scripts(engine)
    scripts: Scripts = engine.scripting
    return scripts
