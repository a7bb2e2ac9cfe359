"""One Lua interpreter: the only importer of lupa.

Responsible for creating the interpreter, loading our own Lua into it, compiling scripts and running them, and for
turning what a script returned into a reply. It may not know how scripts are named or cached, nor which commands exist.

Lua's state lives as long as the `Runtime`: what a script changed in the settings of ``cjson`` the next one sees, as on
the server; SCRIPT FLUSH makes a new one. Calls happen under the engine's lock.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from emuredis import errors
from emuredis.errors import ReplyError
from emuredis.replies import BigNumber, Map, Reply, Set, Status, Verbatim
from emuredis.scripting.blocks import marked
from emuredis.scripting.bridge import ERROR, FLAT, STRINGS, Bridge
from emuredis.scripting.bytecode import keep_frames, lines_of
from emuredis.scripting.guard import BIG, HEADROOM, NO_MEMORY, Guard
from emuredis.scripting.native import FUNCTIONS, Generator

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine
    from emuredis.scripting.watch import Watch

__all__ = ["USER_FUNCTION", "USER_SCRIPT", "Runtime"]

_OURS = b"=emuredis"
USER_SCRIPT = b"@user_script"  # the chunk name of a script
USER_FUNCTION = b"@user_function"  # and of a library
_PARTS = ("replies", "calls", "builtins", "inspect", "cjson", "bit", "struct", "cmsgpack")
_COMPILED = 3  # bytes of memory for each byte of source, roughly
_ARGS_MOST = 7000  # Lua's C stack; more keys and arguments travel as tables
_NESTED_MOST = 250  # the server goes on to about 8,000; clients in Python would not
_LLONG_MIN = -(1 << 63)

_VERSIONS = {
    b"REDIS_VERSION": b"7.2.4", b"REDIS_VERSION_NUM": 0x070204, b"VALKEY_VERSION": b"9.1.2",
    b"VALKEY_VERSION_NUM": 0x090102, b"SERVER_NAME": b"valkey",
}  # fmt: skip


#: Our own Lua, compiled once per process: reading it again as bytecode takes a sixth of the time.
_bytecode: dict[str, bytes] = {}


def _load(env: Any, name: str) -> Any:
    """The main function of one of our Lua files, in the interpreter whose globals are ``env``."""
    load = env[b"loadstring"]
    if name not in _bytecode:
        source = Path(__file__).with_name(f"{name}.lua").read_bytes()
        _bytecode[name] = env[b"string"][b"dump"](load(source, _OURS))
    return load(_bytecode[name], _OURS)


def _import_lupa() -> Any:
    try:
        import lupa.lua51 as lua51
    except ImportError as problem:
        raise errors.err("Lua scripts need the Python package lupa: pip install lupa") from problem
    return lua51


def without_shebang(body: bytes) -> bytes:
    """What Lua compiles: the first line, if it is a shebang, is left empty."""
    return body[body.find(b"\n") :] if body.startswith(b"#!") and b"\n" in body else body


def _refuse(*_: Any) -> Any:
    raise AttributeError("scripts have no access to the host")


class Runtime:
    """A Lua 5.1 interpreter with the server's sandbox. Raises ReplyError when lupa is not installed.

    ``libraries``: it holds the functions of FUNCTION LOAD instead of scripts; the server, too, has one of each kind.
    """

    def __init__(self, engine: Engine, libraries: bool = False) -> None:
        lua51 = _import_lupa()
        self.bridge = bridge = Bridge(engine)
        self._command = "FUNCTION" if libraries else "SCRIPT"
        self.guard = guard = Guard(engine, bridge)
        bridge.guard = guard
        self._memory_error = lua51.LuaMemoryError
        lua = bridge.lua = lua51.LuaRuntime(
            encoding=None, unpack_returned_tuples=True, register_eval=False, register_builtins=False,
            attribute_handlers=(_refuse, _refuse), max_memory=HEADROOM,
        )  # fmt: skip
        env = lua.globals()
        host = lua.table_from({**bridge.functions(), **FUNCTIONS, b"tick": guard.tick, b"patch": keep_frames})
        host[b"versions"] = lua.table_from(_VERSIONS)
        host[b"has_libraries"] = libraries
        if engine.lua_random is None:
            engine.lua_random = Generator()
        host[b"drawn"], host[b"seed"] = engine.lua_random.drawn, engine.lua_random.seed
        names = (*_PARTS, "library") if libraries else _PARTS
        parts = lua.table_from({name.encode(): _load(env, name)() for name in names})
        box = _load(env, "sandbox")(host, parts)
        self._compile, self._run, self._run_tables = box[b"compile"], box[b"run"], box[b"run_tables"]
        self.lua_watch, self.lua_inspect, self._seen = box[b"watch"], box[b"inspect"], box[b"seen"]
        self._dump = env[b"string"][b"dump"]
        self._marked: dict[bytes, Any] = {}
        self._set_resp, self._take, self._more = box[b"set_resp"], box[b"take"], box[b"more"]
        self._load_library, self._registered = box[b"load"], box[b"taken"]
        self.recover = box[b"recover"]
        guard.collect = box[b"collect"]
        guard.pace, guard.mark = box[b"pace"], box[b"mark"]
        guard.set_memory()
        scalars, arrays = box[b"scalars"], box[b"arrays"]
        env[b"debug"] = env[b"python"] = None  # lupa would ask debug.traceback at every call
        bridge.take = self._taken
        bridge.register = lambda name, caller, flat: (arrays if flat else scalars).__setitem__(name, caller)

    def _taken(self) -> tuple[Any, ...]:
        args = self._take()
        return args if args.__class__ is tuple else (args,)

    # -- watching (see emuredis.scripting.watch) ----------------------------------------------------

    def set_watch(self, watch: Watch | None) -> None:
        """From now on ``watch`` is told of calls and lines; None: nobody."""
        if watch is not self.bridge.watch:
            self.bridge.watch = watch
            self.lua_watch(watch is not None)

    def watch_lines(self, sha: bytes, chunk: bytes, how: str | None) -> None:
        """For the run to come: note the lines of ``chunk`` ("cover"), stop at each ("step") or neither."""
        self.lua_watch(True, sha, chunk, None if how is None else how.encode())

    def marked(self, sha: bytes, body: bytes) -> Any:
        """The compiled script with marks at its blocks, see `emuredis.scripting.blocks`."""
        fn = self._marked.get(sha)
        if fn is None:
            fn = self._marked[sha] = self.compile(marked(without_shebang(body))[0])
        return fn

    def code_lines(self, body: bytes) -> set[int]:
        """The lines of a script for which there is code. Raises ReplyError if it does not compile."""
        return lines_of(self._dump(self.compile(without_shebang(body))))

    def lines_seen(self, sha: bytes) -> set[int]:
        """The lines of this script that have run while watched, and minus the number of each mark passed."""
        lines = self._seen(sha)
        if lines is None:
            return set()
        return {int(line) for line in (lines if lines.__class__ is tuple else (lines,))}

    def compile(self, source: bytes) -> Any:
        """A Lua function for ``source``; ReplyError with the server's text if it does not compile."""
        if len(source) >= BIG and not self.guard.fits(_COMPILED * len(source)):
            raise errors.err(
                f"emuredis has no memory for a script of {len(source)} bytes (script-memory-limit)"
            )
        try:
            with self.guard.lifted():
                fn = self._compile(source, USER_SCRIPT)
        except self._memory_error:
            fn = None, b"not enough memory"
        if fn.__class__ is tuple:
            raise ReplyError(b"ERR Error compiling script (new function): " + fn[1].partition(b"\0")[0])
        return fn

    def load(self, source: bytes, hurry: bool) -> list[tuple[bytes, Any, int, bytes | None]]:
        """Run the source of a library: name, Lua function, flag bits and description of all that it registers.

        ``hurry``: end it as FUNCTION LOAD does one that takes too long. Raises ReplyError with the server's text.
        """
        bridge, guard = self.bridge, self.guard
        guard.begin(b"that loads a library", self._command)
        guard.hurry = hurry
        try:
            with guard.lifted():
                made = self._load_library(source.partition(b"\0")[0])
        except self._memory_error:
            made = self._short_of_memory()[1]
        finally:
            guard.hurry = False
            guard.end()
        if bridge.crash is not None:
            crash, bridge.crash = bridge.crash, None
            raise crash
        if made.__class__ is bytes:
            raise ReplyError(b"ERR " + made)
        return [self._registered(i) for i in range(1, int(made) + 1)]

    def load_covered(
        self, sha: bytes, source: bytes, hurry: bool
    ) -> list[tuple[bytes, Any, int, bytes | None]]:
        """The same with marks at its blocks; the lines that run meanwhile are noted."""
        self.watch_lines(sha, USER_FUNCTION, "cover")
        return self.load(marked(source)[0], hurry)

    def crowding(self, source: bytes) -> bool:
        """Whether there is no memory for one more script."""
        return not self.guard.fits(_COMPILED * len(source))

    def run(
        self,
        fn: Any,
        numkeys: int,
        args: list[bytes],
        read_only: bool,
        short: bool,
        caller: Any,
        name: bytes,
    ) -> Reply:
        """Run a compiled script for the session ``caller``; ``args``: the keys, then the other arguments.

        ``name``: what errors of ours call it.
        """
        bridge = self.bridge
        session = bridge.session
        session.db, session.user = caller.db, caller.user
        session.protocol = 2
        bridge.read_only, bridge.short = read_only, short
        bridge.restricted = read_only or short
        guard = self.guard
        guard.begin(name, self._command)
        try:
            if len(args) < _ARGS_MOST and sum(map(len, args)) < BIG:
                result = self._run(fn, numkeys, *args)
            else:
                result = self._run_with_tables(fn, args[:numkeys], args[numkeys:])
        except self._memory_error:
            result = self._short_of_memory()
        finally:
            guard.end()
        if bridge.crash is not None:
            result = self._crashed(bridge.crash)
        kind = result.__class__
        if kind is bytes:
            return result
        if kind is tuple and result[0] == STRINGS:
            return list(result[1:])
        reply = self._reply(result, kind, session.protocol)
        if session.protocol == 3:
            self._set_resp(2)
        return reply

    def _crashed(self, crash: BaseException) -> Any:
        """What a command raised is raised on; where memory was short, the result instead."""
        self.bridge.crash = None
        if isinstance(crash, self._memory_error):
            return self._short_of_memory()
        raise crash

    def _reply(self, result: Any, kind: type, protocol: int) -> Reply:
        if kind is not tuple:
            return _scalar(result, protocol)
        tag = result[0]
        if tag == FLAT:
            return [_scalar(item, protocol) for item in result[1:]]
        if tag == ERROR:
            raise ReplyError(self.guard.explained(result[1].rstrip(b"\r\n")))
        tokens = list(result[2:])
        while len(tokens) < result[1]:
            more = self._more(len(tokens) + 1)
            tokens.extend(more if more.__class__ is tuple else (more,))
        return _decode(tokens, protocol)

    def _run_with_tables(self, fn: Any, keys: list[bytes], args: list[bytes]) -> Any:
        """Run with more or larger arguments than a call takes."""
        make, guard = self.bridge.lua.table_from, self.guard
        self.recover()  # the last script's arguments, too
        if not guard.fits(sum(map(len, keys)) + sum(map(len, args))):
            return ERROR, NO_MEMORY
        with guard.lifted():
            tables = make(keys), make(args)
        return self._run_tables(fn, *tables)

    def _short_of_memory(self) -> Any:
        """Lua had no memory even to say so: give it back what the script used."""
        with self.guard.lifted():
            self.recover()
        return ERROR, NO_MEMORY


def _scalar(value: Any, protocol: int) -> Reply:
    """A Lua number, boolean, string or nil as a reply; numbers are cut to 64-bit integers as C does it."""
    kind = value.__class__
    if kind is bytes or value is None:
        return value
    if kind is bool:
        return value if protocol == 3 else (1 if value else None)
    if kind is float:
        if not -9.3e18 < value < 9.3e18:
            return _LLONG_MIN
        value = int(value)
    return value if _LLONG_MIN <= value < 1 << 63 else _LLONG_MIN


# -- tokens ----------------------------------------------------------------------------------------

_T_STRING, _T_NUMBER, _T_BOOLEAN, _T_NULL, _T_STATUS, _T_ERROR, _T_DOUBLE, _T_BIG, _T_VERBATIM = range(1, 10)
_CONTAINERS: dict[int, type[list[Any]]] = {10: list, 11: Map, 12: Set}


def _decode(tokens: list[Any], protocol: int) -> Reply:
    """The reply that ``tokens`` describe. Raises ReplyError when it is nested too deep for the doors."""
    out: list[Any] = []
    stack: list[tuple[list[Any], int]] = []
    into, left = out, 1
    at = 0
    while True:
        while not left:
            if not stack:
                return out[0]
            into, left = stack.pop()
        left -= 1
        code = tokens[at]
        if code == _T_NULL:
            into.append(None)
            at += 1
            continue
        payload: Any = tokens[at + 1]
        at += 2
        container = _CONTAINERS.get(code)
        if container is not None:
            if len(stack) == _NESTED_MOST:
                raise errors.err(f"emuredis does not send replies nested more than {_NESTED_MOST} deep")
            inner: list[Any] = container()
            into.append(inner)
            stack.append((into, left))
            into, left = inner, payload * 2 if container is Map else payload
        elif code == _T_VERBATIM:
            into.append(_verbatim(payload, tokens[at]))
            at += 1
        else:
            into.append(_leaf(code, payload, protocol))


def _leaf(code: int, payload: Any, protocol: int) -> Reply:
    if code == _T_STATUS:
        return Status(payload.replace(b"\r", b" ").replace(b"\n", b" "))
    if code == _T_ERROR:
        return ReplyError(payload.rstrip(b"\r\n"))
    if code == _T_DOUBLE:
        return float(payload)
    if code == _T_BIG:
        return _big(payload)
    return _scalar(payload, protocol)


def _big(text: bytes) -> Reply:
    digits = text[1:] if text[:1] == b"-" else text
    return BigNumber(int(text)) if digits.isdigit() and len(digits) < 4000 else text


def _verbatim(kind: bytes, text: bytes) -> Reply:
    reply = Verbatim(text)
    if kind != b"txt":
        reply.format = (kind + b"   ")[:3]
    return reply
