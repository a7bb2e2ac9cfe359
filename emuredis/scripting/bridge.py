"""Between a script and the commands: ``redis.call`` arrives here as a Python call, its reply leaves as a Lua value.

A call that can stay on the fast path reaches a *caller*: one Python function per command, kept in Lua under the name
the script used. It gives back a scalar as it is; anything else as ``(None, kind, value)``, see ``sandbox.lua``.
Callers of commands that answer with a flat array give back a tuple, from which Lua makes the table.

Nothing is raised towards Lua: a Python exception there would be a Python object in the hands of a script. A
ReplyError becomes ``(None, ERROR, message)``; anything else ends the script (`Bridge.crash`) and is raised again when
Lua has unwound.

Everything a script may do to the server goes through `Bridge._permitted`. A new class of reply is one entry in `_RESP2`
and one in `_RESP3`.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from math import copysign
from typing import TYPE_CHECKING, Any

from emuredis import errors
from emuredis.errors import ReplyError
from emuredis.replies import (
    BigNumber,
    Frames,
    LongFloat,
    Map,
    NullArray,
    PairMap,
    Pairs,
    Push,
    Reply,
    Set,
    Status,
    Verbatim,
)
from emuredis.scalars import format_decimals, format_double
from emuredis.scripting import hot
from emuredis.scripting.guard import BIG, NO_MEMORY, Guard
from emuredis.scripting.known import SERVER_COMMANDS
from emuredis.spec import DENYOOM, NOSCRIPT, WRITE, Command
from emuredis.spec import TABLE as TABLE_OF_ALL

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine
    from emuredis.scripting.watch import Watch

__all__ = ["ERROR", "FATAL", "FLAT", "STATUS", "STRINGS", "TABLE", "TOKENS", "Bridge", "words"]

# Kinds of what crosses the border besides plain values; sandbox.lua has the same numbers.
ERROR, STATUS, TABLE, FATAL, STRINGS, FLAT, TOKENS = 1, 2, 3, 4, 5, 6, 7

#: Commands whose reply is a list of strings, numbers and nulls: their callers give back tuples.
_ARRAYS = frozenset(
    "blpop brpop hgetall hkeys hmget hvals keys lrange mget sdiff sinter smembers smismember sunion time zmscore "
    "zpopmax zpopmin zrange zrangebylex zrangebyscore zrevrange zrevrangebylex zrevrangebyscore".split()
)
_TUPLE_MOST = 5000  # values a tuple may give back to Lua; its C stack holds about 8,000

#: Commands that count as writes in a read-only script, for what they do replicates.
_REPLICATED = frozenset(("publish", "spublish", "pfcount"))

NOT_STRINGS = b"ERR Command arguments must be strings or integers"
NO_COMMAND = b"ERR Unknown command called from script"
NO_ARITY = b"ERR Wrong number of args calling command from script"
NOT_FROM_SCRIPT = b"ERR This Valkey command is not allowed from script"
OUT_OF_MEMORY = b"OOM command not allowed when used memory > 'maxmemory'."
#: How the server words `NOT_FROM_SCRIPT` in its log and its debugger.
_FORBIDDEN = b"ERR command '%s' is not allowed on script mode"
NO_WRITE = b"ERR Write commands are not allowed from read-only scripts."

_log = logging.getLogger("emuredis.script")
_log.addHandler(logging.NullHandler())
_LEVELS = (logging.DEBUG, logging.INFO, logging.INFO, logging.WARNING)

#: Integers up to here are printed as they are.
_EXACT = (1 << 62) - 1

Caller = Callable[..., Any]


def words(args: tuple[Any, ...]) -> list[bytes] | None:
    """The arguments of a call as the server writes them; None if one is neither string nor number."""
    if len(args) > 40 and set(map(type, args)) == {bytes}:
        return list(args)
    out = [
        arg if arg.__class__ is bytes
        else b"%d" % arg if arg.__class__ is int and -_EXACT <= arg <= _EXACT
        else _number_text(arg)
        for arg in args
    ]  # fmt: skip
    return None if None in out else out  # type: ignore[return-value]


def _number_text(arg: Any) -> bytes | None:
    """A number as the server prints it; None for what is no number."""
    kind = arg.__class__
    if kind is not float and kind is not int:
        return None
    number = float(arg)
    if number != number:
        return b"-nan" if copysign(1.0, number) < 0 else b"nan"
    return format_double(number)


class Bridge:
    """The host's side of one Lua runtime. `session` is the scripts' own: database and protocol never leak out."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.session = engine.internal_session()
        self.session.deny_blocking = True
        self.session.script = self  # SORT answers in a definite order to a script
        self.read_only = self.short = False  # may not write; may not use memory until it has written
        self.restricted = False  # one of them
        self.guard: Guard = None  # type: ignore[assignment]  # the runtime's
        self.busy = engine.busy
        self.node = engine.cluster  # then every call comes through `dispatch`
        self.crash: BaseException | None = None
        self.lua: Any = None  # the LuaRuntime
        self.take: Any = None  # gives the arguments of a call with very many
        self.register: Callable[[bytes, Caller, bool], None] = _nothing
        self._callers: dict[bytes, tuple[Command, Caller, bool]] = {}
        self.watch: Watch | None = None  # then every call comes through `dispatch`

    # -- the way in -----------------------------------------------------------------------------

    def call(self, *args: Any) -> Any:
        """Any call that has no caller yet, or speaks RESP3."""
        try:
            argv = words(args)
            if argv is None:
                if self.watch is not None:
                    self.watch.event("error", [NOT_STRINGS[4:]])
                return None, ERROR, NOT_STRINGS
            return self.dispatch(argv)
        except BaseException as problem:
            return self.crashed(problem)

    def call_packed(self) -> Any:
        """A call with very many arguments: Lua keeps them, `take` gives them back as results, which is linear."""
        try:
            argv = words(self.take())
            if argv is None:
                if self.watch is not None:
                    self.watch.event("error", [NOT_STRINGS[4:]])
                return None, ERROR, NOT_STRINGS
            return self.dispatch(argv)
        except BaseException as problem:
            return self.crashed(problem)

    def dispatch(self, argv: list[bytes]) -> Any:
        """A call whose arguments are in order."""
        if self.crash is not None:
            return self.crashed(self.crash)
        if self.watch is not None:
            return self._watched(self.watch, argv)
        try:
            cmd = self.engine.resolve(argv)
        except ReplyError as error:
            return None, ERROR, _refusal(error, argv[0])
        problem = self._permitted(cmd)
        if problem is not None:
            return None, ERROR, problem
        if cmd.flags & WRITE:
            self.busy.wrote = True
        try:
            if self.node is not None:
                self.node.check_call(self.session, cmd, argv)
            reply = self.engine.call(self.session, cmd, argv)
        except ReplyError as error:
            return None, ERROR, _message(error)
        if cmd.container is None and self.node is None:
            self._remember(argv[0], cmd)
        return self._converted(reply)

    def _converted(self, reply: Reply) -> Any:
        table = _RESP3 if self.session.protocol == 3 else _RESP2
        return self._crossing(table, reply)

    def _watched(self, watch: Watch, argv: list[bytes]) -> Any:
        """A call while somebody watches. What an observer raises ends the script."""
        cmd, told = None, None
        reply: Any
        try:
            cmd = self.engine.resolve(argv)
        except ReplyError as error:
            reply, told = error, _refusal(error, argv[0])
        watch.before(argv, cmd)
        if cmd is not None:
            told = self._permitted(cmd)
            if told is not None:
                reply = ReplyError(_FORBIDDEN % cmd.name.encode() if told is NOT_FROM_SCRIPT else told)
            else:
                if cmd.flags & WRITE:
                    self.busy.wrote = True
                try:
                    if self.node is not None:
                        self.node.check_call(self.session, cmd, argv)
                    reply = self.engine.call(self.session, cmd, argv)
                except ReplyError as error:
                    reply, told = error, _message(error)
        watch.after(argv, reply, told)
        if told is not None:
            return None, ERROR, told
        return self._converted(reply)

    def at_line(self, line: int) -> Any:
        """The script comes to a line: the message to end it with, or None."""
        try:
            if self.watch is not None:
                self.watch.at_line(line)
        except BaseException as problem:
            return self.crashed(problem)[2]
        return None

    def called_at(self, line: int) -> None:
        if self.watch is not None:
            self.watch.called_at(line)

    def event(self, name: bytes, *values: Any) -> Any:
        """``redis.breakpoint`` and ``redis.debug``: whether a debugger listens."""
        try:
            return self.watch is not None and self.watch.event(name.decode(), list(values))
        except BaseException as problem:
            return self.crashed(problem)

    def _permitted(self, cmd: Command) -> bytes | None:
        """The error with which ``cmd`` is refused from this script, None if it may run."""
        if cmd.flags & NOSCRIPT:
            return NOT_FROM_SCRIPT
        return self._forbidden(cmd) if self.restricted else None

    def _forbidden(self, cmd: Command) -> bytes | None:
        if self.short and cmd.flags & DENYOOM:
            return OUT_OF_MEMORY
        if not _writes(cmd):
            return None
        if self.read_only:
            return NO_WRITE
        self.short, self.restricted = False, self.read_only
        return None

    def _remember(self, name: bytes, cmd: Command) -> None:
        """From now on calls by this spelling go straight to the command's caller."""
        key = cmd.name.encode()
        known = self._callers.get(key)
        if known is None:
            flat = cmd.name in _ARRAYS
            specialised = hot.CALLERS.get(cmd.name)
            generic = self._caller(cmd, flat)
            caller = generic if specialised is None else specialised(self, generic)
            known = self._callers[key] = cmd, caller, flat
        self.register(name, known[1], known[2])

    # -- callers --------------------------------------------------------------------------------

    def _caller(self, cmd: Command, flat: bool) -> Caller:
        """What a script's call of ``cmd`` runs; ``flat``: an array's elements are the call's results."""
        fn, low, high, session = cmd.fn, cmd.min, cmd.max, self.session
        writes, dirties, busy = _writes(cmd), bool(cmd.flags & WRITE), self.busy

        def caller(*args: Any) -> Any:
            try:
                for arg in args:
                    if arg.__class__ is not bytes:
                        argv = words(args)
                        if argv is None:
                            return None, ERROR, NOT_STRINGS
                        break
                else:
                    argv = list(args)
                if not low <= len(argv) <= high:
                    return None, ERROR, NO_ARITY
                if writes:
                    if self.restricted and (problem := self._forbidden(cmd)):
                        return None, ERROR, problem
                    if dirties:
                        busy.wrote = True
                reply = fn(session, argv)
                if flat:
                    return self.flat(reply)
                kind = reply.__class__
                if kind is int or (kind is bytes and len(reply) < BIG):
                    return reply
                if reply is None:
                    return False
                if kind is Status:
                    return None, STATUS, bytes(reply)
                return self._crossing(_RESP2, reply)
            except ReplyError as error:
                return None, ERROR, _message(error)
            except BaseException as error:
                return self.crashed(error)

        return caller

    def flat(self, reply: Any) -> Any:
        """A RESP2 reply that should be an array, as the results of the call: its elements."""
        if isinstance(reply, list) and len(reply) <= _TUPLE_MOST and _heft(reply) < BIG:
            for item in reply:
                if item.__class__ is not bytes:
                    reply = [_RESP2[each.__class__](self, each) for each in reply]
                    for i, each in enumerate(reply):
                        if each.__class__ is Made:
                            reply[i] = each.table
                        elif each.__class__ is tuple:
                            reply[i] = self._status_table(each)
                    break
            return tuple(reply)
        value = self._crossing(_RESP2, reply)
        return (None, TABLE, value) if value.__class__ is not tuple else value

    def _crossing(self, table: dict[type, Callable[[Bridge, Any], Any]], reply: Any) -> Any:
        """Any reply as a Lua value, or what stands for it."""
        if isinstance(reply, bytes):
            return self.large(reply) if reply.__class__ is bytes else table[reply.__class__](self, reply)
        heft = _heft(reply)
        if heft < BIG:
            value = table[reply.__class__](self, reply)
        elif self.guard.fits(heft):
            with self.guard.lifted():
                value = table[reply.__class__](self, reply)
        else:
            return None, FATAL, NO_MEMORY
        return (None, TABLE, value.table) if value.__class__ is Made else value

    def large(self, reply: bytes) -> Any:
        """A large string as a caller's answer."""
        return reply if self.guard.fits(len(reply)) else (None, FATAL, NO_MEMORY)

    def _status_table(self, answer: Any) -> Any:
        return self.lua.table_from({b"ok" if answer[1] == STATUS else b"err": answer[2]})

    def failed(self, problem: BaseException) -> Any:
        """What a caller answers when its command raised ``problem``."""
        if problem.__class__ is ReplyError:
            return None, ERROR, _message(problem)
        return self.crashed(problem)

    def crashed(self, problem: BaseException) -> Any:
        """Something that is no reply went wrong: end the script; `emuredis.scripting.runtime` raises it again."""
        if self.crash is None:
            self.crash = problem
        return None, FATAL, b"ERR the command failed in the emulator"

    # -- functions that scripts call through server.* ----------------------------------------------

    def functions(self) -> dict[bytes, Any]:
        """What ``sandbox.lua`` gets as ``host``, besides what the runtime adds."""
        return {
            b"call": self.call,
            b"call_packed": self.call_packed,
            b"at_line": self.at_line,
            b"called_at": self.called_at,
            b"event": self.event,
            b"acl_check_cmd": self.acl_check_cmd,
            b"sha1hex": _sha1hex,
            b"log": _write_log,
            b"trim": _trim,
            b"setresp": self.setresp,
            b"crashed": self.crashed,
        }

    def setresp(self, version: int) -> None:
        self.session.protocol = version

    def acl_check_cmd(self) -> Any:
        """Whether the caller may run a command: everyone may run any that exists."""
        try:
            argv = words(_as_tuple(self.take()))
            if argv is None:
                return None, ERROR, NOT_STRINGS
            cmd = self.engine.table.find(argv[0])
            if cmd is not None and cmd.subs is not None and len(argv) > 1:
                cmd = cmd.subs.get(argv[1].lower())
            if cmd is None:
                return None, ERROR, b"ERR Invalid command passed to server.acl_check_cmd()"
            return True
        except BaseException as problem:
            return self.crashed(problem)


def _as_tuple(value: Any) -> tuple[Any, ...]:
    """lupa gives one result as it is, several as a tuple."""
    return value if value.__class__ is tuple else (value,)


def _writes(cmd: Command) -> bool:
    return bool(cmd.flags & WRITE) or cmd.name in _REPLICATED


def _heft(reply: Any) -> int:
    """About how many bytes a reply has, judged by its first and last elements."""
    if isinstance(reply, bytes):
        return len(reply)
    if reply and isinstance(reply, (list, tuple)):
        return (_heft(reply[0]) + _heft(reply[-1])) * len(reply) // 2
    return 16


def _nothing(name: bytes, caller: Caller, flat: bool) -> None:
    return None


def _refusal(error: ReplyError, name: bytes) -> bytes:
    """Why a command cannot be called at all, in the words that scripts get; a command's own errors stay as they are."""
    line = error.encode()
    if line.startswith(b"ERR wrong number of arguments for "):
        return NO_ARITY
    if line.startswith(b"ERR unknown command '"):
        known = name.decode("latin-1").lower()
        if (
            known in SERVER_COMMANDS and TABLE_OF_ALL.find(name) is None
        ):  # an older release lacks some that we have
            return errors.unsupported(known.upper()).encode()
        return NO_COMMAND
    return _message(error)


def _message(error: ReplyError) -> bytes:
    """The error's line, with a code in front."""
    line = error.encode()
    return line if b" " in line else b"ERR " + line


def _sha1hex(text: bytes) -> bytes:
    return hashlib.sha1(text, usedforsecurity=False).hexdigest().encode()


def _write_log(level: float, text: bytes) -> None:
    _log.log(_LEVELS[int(level)], "%s", text.decode("utf-8", "backslashreplace"))


def _trim(text: bytes) -> bytes:
    return text.strip(b"\r\n")


# -- replies as Lua values -------------------------------------------------------------------------


class Made:
    """A Lua table made by a converter, to tell it from a value."""

    __slots__ = ("table",)

    def __init__(self, table: Any) -> None:
        self.table = table


def _same(bridge: Bridge, reply: Any) -> Any:
    return reply


def _false(bridge: Bridge, reply: Any) -> bool:
    return False


def _nil(bridge: Bridge, reply: Any) -> None:
    return None


def _number(bridge: Bridge, reply: int) -> int:
    return int(reply)


def _string(bridge: Bridge, reply: bytes) -> bytes:
    return bytes(reply)


def _big_text(bridge: Bridge, reply: int) -> bytes:
    return b"%d" % reply


def _status(bridge: Bridge, reply: bytes) -> tuple[None, int, bytes]:
    return None, STATUS, bytes(reply)


def _error(bridge: Bridge, reply: ReplyError) -> tuple[None, int, bytes]:
    return None, ERROR, _message(reply)


def _double_text(bridge: Bridge, reply: float) -> bytes:
    return format_double(reply)


def _long_text(bridge: Bridge, reply: float) -> bytes:
    return format_decimals(reply)


def _one(bridge: Bridge, key: bytes, value: Any) -> Made:
    return Made(bridge.lua.table_from({key: value}))


def _items(bridge: Bridge, table: dict[type, Any], items: Any) -> list[Any]:
    """The elements of an array as Lua values, tables included."""
    out = []
    for item in items:
        value = table[item.__class__](bridge, item)
        kind = value.__class__
        if kind is Made:
            value = value.table
        elif kind is tuple:
            value = bridge._status_table(value)
        out.append(value)
    return out


def _array2(bridge: Bridge, reply: list[Any]) -> Made:
    return Made(bridge.lua.table_from(_items(bridge, _RESP2, reply)))


def _array3(bridge: Bridge, reply: list[Any]) -> Made:
    items = _items(bridge, _RESP3, reply)
    if None not in items:
        return Made(bridge.lua.table_from(items))
    table = bridge.lua.table()
    for at, item in enumerate(items, 1):
        if item is not None:
            table[at] = item
    return Made(table)


def _map3(bridge: Bridge, reply: Map | PairMap) -> Made:
    items = _items(bridge, _RESP3, reply)
    table = bridge.lua.table()
    for at in range(0, len(items), 2):
        if items[at + 1] is not None:
            table[items[at]] = items[at + 1]
    return _one(bridge, b"map", table)


def _set3(bridge: Bridge, reply: Set) -> Made:
    table = bridge.lua.table()
    for item in _items(bridge, _RESP3, reply):
        table[item] = True
    return _one(bridge, b"set", table)


def _pairs3(bridge: Bridge, reply: Pairs) -> Made:
    return _nested(bridge, _items(bridge, _RESP3, reply))


def _pair_map2(bridge: Bridge, reply: PairMap) -> Made:
    return _nested(bridge, _items(bridge, _RESP2, reply))


def _nested(bridge: Bridge, items: list[Any]) -> Made:
    make = bridge.lua.table_from
    return Made(make([make(items[at : at + 2]) for at in range(0, len(items), 2)]))


def _double3(bridge: Bridge, reply: float) -> Made:
    return _one(bridge, b"double", reply)


def _long3(bridge: Bridge, reply: float) -> Made:
    return _one(bridge, b"double", float(format_decimals(reply)))


def _big3(bridge: Bridge, reply: int) -> Made:
    return _one(bridge, b"big_number", b"%d" % reply)


def _verbatim3(bridge: Bridge, reply: bytes) -> Made:
    inner = bridge.lua.table_from({b"string": bytes(reply), b"format": b"txt"})
    return _one(bridge, b"verbatim_string", inner)


_RESP2: dict[type, Callable[[Bridge, Any], Any]] = {
    bytes: _same, int: _same, type(None): _false, NullArray: _false, Status: _status, ReplyError: _error,
    float: _double_text, bool: _number, list: _array2, Map: _array2, Pairs: _array2, Set: _array2, Push: _array2,
    PairMap: _pair_map2,
    Frames: _array2, Verbatim: _string, BigNumber: _big_text,
    LongFloat: _long_text,
}  # fmt: skip
_RESP3: dict[type, Callable[[Bridge, Any], Any]] = {
    bytes: _same, int: _same, type(None): _nil, NullArray: _nil, Status: _status, ReplyError: _error,
    float: _double3, bool: _same, list: _array3, Map: _map3, Pairs: _pairs3, Set: _set3, Push: _array3,
    PairMap: _map3,
    Frames: _array3, Verbatim: _verbatim3, BigNumber: _big3,
    LongFloat: _long3,
}  # fmt: skip
