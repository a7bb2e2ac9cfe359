"""The script cache, shebang lines, and what EVAL and EVALSHA check before Lua runs.

A script is known by the SHA1 of its body. Scripts that EVAL brought are forgotten when more than 500 such are there,
the longest unused first; those of SCRIPT LOAD stay until SCRIPT FLUSH. A body that starts with ``#!`` says which
engine and which flags; one that does not runs in *compatibility mode*: only the commands it calls are checked.
"""

from __future__ import annotations

import hashlib
import importlib
from typing import TYPE_CHECKING, Any

from emuredis import errors
from emuredis.engine.memory import out_of_memory
from emuredis.errors import ReplyError
from emuredis.replies import Reply
from emuredis.scalars import parse_int
from emuredis.scripting.runtime import USER_SCRIPT, Runtime
from emuredis.scripting.shebang import CROSS_SLOT, FLAGS, NO_CLUSTER, cut_shebang, words
from emuredis.scripting.watch import Run, Watch, enrol, observers_of

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine
    from emuredis.engine.session import Session

__all__ = ["Script", "Scripts", "read_shebang"]

_KEPT = 500


class Script:
    """A compiled script. ``flags`` is None in compatibility mode; ``evictable``: it came by EVAL."""

    __slots__ = ("body", "evictable", "flags", "fn", "sha")
    chunk = USER_SCRIPT
    called = None

    def __init__(
        self, sha: bytes, body: bytes, fn: Any, flags: frozenset[bytes] | None, evictable: bool
    ) -> None:
        self.sha = sha
        self.body = body
        self.fn = fn
        self.flags = flags
        self.evictable = evictable


class Scripts:
    """All scripts of one engine and the interpreter they run in."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._runtime = Runtime(engine)
        self._watch: Watch | None = None
        self.rewatch()
        enrol(self)
        self._by_sha: dict[bytes, Script] = {}
        self._recent: dict[bytes, Script] = {}  # evictable ones by SHA1, the longest unused first
        self._by_body: dict[bytes, Script] = {}
        self._spare: dict[bytes, Script] | None = None  # compiled scripts to be used again, see `reset`
        self.evicted = 0

    def count(self) -> int:
        """How many scripts are known."""
        return len(self._by_sha)

    # -- running --------------------------------------------------------------------------------

    def eval(self, ctx: Session, argv: list[bytes], read_only: bool = False) -> Reply:
        """EVAL: compile at the first sight, then run."""
        if ctx.debugging is not None:
            return importlib.import_module("emuredis.scripting.ldb").debug_eval(self, ctx, argv, read_only)
        numkeys = _numkeys(argv)
        script = self._by_body.get(argv[1])
        if script is None:
            script = self._by_sha.get(_sha1(argv[1])) or self._add(argv[1], evictable=True)
        return self._run(ctx, script, numkeys, argv, read_only)

    def evalsha(self, ctx: Session, argv: list[bytes], read_only: bool = False) -> Reply:
        """EVALSHA: run what is known by this SHA1, or NOSCRIPT."""
        sha = argv[1]
        script = self._by_sha.get(sha)
        if script is None:
            if len(sha) != 40:
                raise _no_script()
            script = self._by_sha.get(sha.lower())
        if ctx.debugging is not None:
            raise errors.err("Please use EVAL instead of EVALSHA for debugging")
        numkeys = _numkeys(argv)
        if script is None:
            raise _no_script()
        return self._run(ctx, script, numkeys, argv, read_only)

    def _run(self, ctx: Session, script: Script, numkeys: int, argv: list[bytes], read_only: bool) -> Reply:
        flags = script.flags
        if self.engine.cluster is not None:
            told = (CROSS_SLOT,) if flags is None else flags  # without a shebang line, keys of any slot
            self.engine.cluster.begin_script(ctx, NO_CLUSTER in told, CROSS_SLOT in told)
        short = ctx.engine.memory.short
        if flags is not None:
            if short and b"allow-oom" in flags:
                short = False
            elif short and b"no-writes" not in flags:
                raise out_of_memory()
            if b"no-writes" in flags:
                read_only = True
            elif read_only:
                raise errors.err("Can not execute a script with write flag using *_ro command.")
        if script.evictable:
            recent = self._recent
            del recent[script.sha]
            recent[script.sha] = script
        if self._watch is not None:
            return self._run_watched(self._watch, ctx, script, numkeys, argv[3:], read_only, short)
        return self._runtime.run(script.fn, numkeys, argv[3:], read_only, short, ctx, script.sha)

    def _run_watched(self, watch: Watch, ctx: Session, script: Script, numkeys: int, args: list[bytes],
                     read_only: bool, short: bool) -> Reply:  # fmt: skip
        runtime = self._runtime
        run = Run(self.engine, runtime, script, args[:numkeys], args[numkeys:], read_only, ctx)
        fn = runtime.marked(script.sha, script.body) if watch.marked else script.fn
        return watch.run(run, lambda: runtime.run(fn, numkeys, args, read_only, short, ctx, script.sha))

    def rewatch(self) -> None:
        """The observers changed."""
        observers = observers_of(self.engine)
        self._watch = Watch(observers) if observers else None
        self._runtime.set_watch(self._watch)

    @property
    def runtime(self) -> Runtime:
        """The interpreter; SCRIPT FLUSH makes another."""
        return self._runtime

    # -- the cache ------------------------------------------------------------------------------

    def load(self, body: bytes) -> bytes:
        """SCRIPT LOAD: the SHA1 under which the script is kept from now on."""
        sha = _sha1(body)
        script = self._by_sha.get(sha)
        if script is None:
            self._add(body, evictable=False)
        elif script.evictable:
            script.evictable = False
            del self._recent[sha]
        return sha

    def exists(self, sha: bytes) -> bool:
        return sha.lower() in self._by_sha

    def show(self, sha: bytes) -> bytes:
        script = self._by_sha.get(sha.lower())
        if script is None:
            raise _no_script()
        return script.body

    def saved(self) -> list[tuple[bytes, bool]]:
        """The body of every script, and whether it may be evicted, for `replace`."""
        return [(script.body, script.evictable) for script in self._by_sha.values()]

    def replace(self, saved: list[tuple[bytes, bool]]) -> None:
        """Keep these scripts and no others."""
        if saved != self.saved():
            self.flush()
            for body, evictable in saved:
                self._add(body, evictable)

    def flush(self) -> None:
        """SCRIPT FLUSH: forget every script, and all state of the interpreter."""
        self._by_sha.clear()
        self._recent.clear()
        self._by_body.clear()
        if self._spare is None:
            self._runtime = Runtime(self.engine)
            self.rewatch()

    def known(self) -> list[Script]:
        """Every script that is known, for `reset`."""
        return list(self._by_sha.values())

    def reset(self, known: list[Script]) -> None:
        """Know these scripts and no others, as `known` gave them.

        What is compiled stays so from the first call on, and the interpreter is the same for ever: for whoever begins
        the same thing anew many thousand times.
        """
        if self._spare is None:
            self._spare = {}
        self._spare.update(self._by_body)
        self._by_sha = {script.sha: script for script in known}
        self._by_body = {script.body: script for script in known}
        self._recent = {script.sha: script for script in known if script.evictable}

    def _add(self, body: bytes, evictable: bool) -> Script:
        if self._spare is not None and body in self._spare:
            return self._add_spare(self._spare[body], evictable)
        flags, shebang = read_shebang(body)
        if self._runtime.crowding(body):
            self._forget_evictable()
        fn = self._runtime.compile(body[shebang:])
        sha = _sha1(body)
        if evictable and len(self._recent) >= _KEPT:
            oldest = next(iter(self._recent))
            del self._by_body[self._recent.pop(oldest).body], self._by_sha[oldest]
            self.evicted += 1
        script = self._by_sha[sha] = self._by_body[body] = Script(sha, body, fn, flags, evictable)
        if evictable:
            self._recent[sha] = script
        return script

    def _add_spare(self, spare: Script, evictable: bool) -> Script:
        script = Script(spare.sha, spare.body, spare.fn, spare.flags, evictable)
        self._by_sha[script.sha] = self._by_body[script.body] = script
        if evictable:
            self._recent[script.sha] = script
        return script

    def _forget_evictable(self) -> None:
        for script in self._recent.values():
            del self._by_body[script.body], self._by_sha[script.sha]
        self.evicted += len(self._recent)
        self._recent.clear()


def _sha1(body: bytes) -> bytes:
    return hashlib.sha1(body, usedforsecurity=False).hexdigest().encode()


def _no_script() -> ReplyError:
    return ReplyError("NOSCRIPT No matching script.")


def _numkeys(argv: list[bytes]) -> int:
    numkeys = parse_int(argv[2])
    if numkeys is None:
        raise errors.not_integer()
    if numkeys > len(argv) - 3:
        raise errors.err("Number of keys can't be greater than number of args")
    if numkeys < 0:
        raise errors.err("Number of keys can't be negative")
    return numkeys


def read_shebang(body: bytes) -> tuple[frozenset[bytes] | None, int]:
    """The flags a shebang line names and its length; (None, 0) without one. Raises ReplyError."""
    end = cut_shebang(body)
    if end is None:
        return None, 0
    if end < 0:
        raise errors.err("Invalid script shebang")
    parts = words(body[:end])
    if parts is None:
        raise errors.err("Invalid engine in script shebang")
    flags: set[bytes] = set()
    for part in parts[1:]:
        if not part.startswith(b"flags="):
            raise ReplyError(b"ERR Unknown lua shebang option: " + part)
        for flag in part[6:].split(b",") if part[6:] else ():
            if flag not in FLAGS:
                raise ReplyError(b"ERR Unexpected flag in script shebang: " + flag)
            flags.add(flag)
    engine = parts[0][2:]
    if engine.lower() != b"lua":
        raise ReplyError(b"ERR Could not find scripting engine '" + engine + b"'")
    return frozenset(flags), end
