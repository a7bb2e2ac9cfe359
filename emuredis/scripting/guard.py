"""What ends a script: SCRIPT KILL, a server that stops, and the limits of instructions, time and memory.

Lua calls `Guard.tick` every so many instructions of a script (a count hook, see ``sandbox.lua``); what it returns is
the error to end the script with. Time is real time: a script on a manual clock is as endless as any other.

The limit on memory has two marks. Past the lower one, the limit itself, a script is ended at its next tick or call of a
command, if a full collection does not help. At the upper one, `HEADROOM` above, the interpreter gets no memory any
more. Between the two is what the host needs: lupa turns replies into Lua strings where Lua's way of reporting lack of
memory would take down the process, so that must not happen there. What may not fit in the headroom is
converted with the upper mark lifted (`lifted`), or refused (`fits`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from emuredis.clock import monotonic

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine
    from emuredis.scripting.bridge import Bridge

__all__ = ["BIG", "HEADROOM", "NO_MEMORY", "Guard"]

#: Bytes between the two marks, and the size from which on a value is looked at before it is given to Lua.
HEADROOM, BIG = 128 << 20, 1 << 20
EVERY = 100_000  # instructions between two ticks
LOAD_MOST = 100_000_000  # instructions to load a library, which is to the server's half a second

#: How Lua says that memory was lacking; `Guard.explained` puts the words in its place.
NO_MEMORY = b"ERR not enough Lua memory"


class Guard:
    """The limits of one interpreter's scripts."""

    def __init__(self, engine: Engine, bridge: Bridge) -> None:
        self._busy = engine.busy
        self._config: Any = engine.config
        self._bridge = bridge
        self._name = b""
        self._command = "SCRIPT"
        self._ticks = 0
        self._step = EVERY
        self._started = 0.0
        self._memory = 0  # the limit as last set
        self.hurry = False  # FUNCTION LOAD: not longer than the server lets a library load
        self.pace: Any = None  # Lua: how many instructions between two ticks, counted from now
        self.mark: Any = None  # Lua: the lower mark, in bytes
        self.collect: Any = None  # Lua: free what is garbage

    # -- one run --------------------------------------------------------------------------------

    def begin(self, name: bytes, command: str = "SCRIPT") -> None:
        """A script starts. ``name``: for messages; ``command``: whose KILL ends it."""
        config = self._config
        self._name, self._command = name, command
        self._ticks, self._started = 0, 0.0
        self._busy.wrote = False
        if config.script_memory_limit != self._memory:
            self.set_memory()
        if config.script_instruction_limit:
            ticks = -(-config.script_instruction_limit // EVERY)
            self._step = -(-config.script_instruction_limit // ticks)
            self.pace(self._step)
        elif self._step != EVERY:
            self._step = EVERY
            self.pace(EVERY)
        if config.script_time_limit:
            self._started = monotonic()

    def end(self) -> None:
        if self._busy.on:
            self._busy.leave()

    def tick(self) -> bytes | None:
        """The message with which to end the script, or None to let it run on."""
        bridge, config, busy = self._bridge, self._config, self._busy
        try:
            if bridge.crash is not None:
                return b"ERR the command failed in the emulator"
            self._ticks += 1
            limit = config.script_instruction_limit
            if self.hurry and self._ticks * self._step >= min(limit or LOAD_MOST, LOAD_MOST):
                return b"ERR FUNCTION LOAD timeout"
            if limit and self._ticks * self._step >= limit:
                return self._over(f"more than {limit} Lua instructions", "instruction")
            now = monotonic()
            if not self._started:
                self._started = now
            elapsed = (now - self._started) * 1000
            limit = config.script_time_limit
            if limit and elapsed >= limit:
                return self._over(f"more than {limit} milliseconds", "time")
            if busy.on or 0 < config.busy_reply_threshold <= elapsed:
                if not busy.on:
                    busy.enter(self._command, self._started)
                busy.serve()
                if busy.reason is not None:
                    return busy.reason
            return busy.stopping()
        except BaseException as problem:  # a signal's, such as KeyboardInterrupt
            return bridge.crashed(problem)[2]  # type: ignore[no-any-return]

    def _over(self, what: str, limit: str) -> bytes:
        return b"ERR emuredis ended the script %b: it ran for %b (script-%b-limit)" % (
            self._name, what.encode(), limit.encode(),
        )  # fmt: skip

    # -- memory ---------------------------------------------------------------------------------

    def set_memory(self) -> None:
        """Take the limit from the configuration."""
        self._memory = limit = self._config.script_memory_limit
        self._bridge.lua.set_max_memory(limit + HEADROOM if limit else 0)
        self.mark(limit or float("inf"))

    def fits(self, size: int) -> bool:
        """Whether Lua may be given ``size`` bytes in one go."""
        if not self._memory or self._bridge.lua.get_memory_used() + size < self._memory:
            return True
        if size < self._memory:
            self.collect()
        return bool(self._bridge.lua.get_memory_used() + size < self._memory)

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """For making Lua values of any size in safety: no upper mark meanwhile."""
        lua = self._bridge.lua
        lua.set_max_memory(0)
        try:
            yield
        finally:
            if self._memory:
                lua.set_max_memory(max(self._memory + HEADROOM, lua.get_memory_used() + HEADROOM))

    def explained(self, message: bytes) -> bytes:
        """An error that a script ended with, lack of memory told in words."""
        if not message.startswith(NO_MEMORY):
            return message
        return b"ERR emuredis ended the script %b: it needed more than %d bytes of memory (script-memory-limit)%b" % (
            self._name, self._memory, message[len(NO_MEMORY) :],
        )  # fmt: skip
