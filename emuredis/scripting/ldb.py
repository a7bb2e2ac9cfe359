"""The server's Lua debugger, LDB, as ``redis-cli --ldb`` speaks to it.

After SCRIPT DEBUG YES or SYNC an EVAL becomes a session: at each stop the client is sent what was logged since, an
array of statuses, and answers with an array of words, the debugger's commands (`_COMMANDS`). At the end come
``<endsession>``, the reply of the EVAL, and the connection is closed. The words, their errors and even an error in
removing breakpoints are the server's.

With SYNC the script runs on the data, and the server does nothing else meanwhile; with YES it runs on a copy
(`emuredis.engine.copying`), so all changes are gone afterwards, and the server goes on. Bytes travel over a
`Channel` that the door gives.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from emuredis import errors
from emuredis.engine.copying import copied
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
)  # fmt: skip
from emuredis.scalars import format_decimals, format_double, parse_int
from emuredis.scripting.bridge import NO_ARITY, NO_COMMAND, NOT_FROM_SCRIPT
from emuredis.scripting.debugger import Debugger

if TYPE_CHECKING:
    from emuredis.engine.session import Session
    from emuredis.scripting.scripts import Scripts

__all__ = ["Channel", "Ldb", "debug_eval", "human"]

_MAXLEN, _MAXLEN_LEAST = 256, 60
_ARGS_SHOWN = 10
_WORDS_MOST = _WORD_LONGEST = 1024
_BREAKPOINTS = 64
_EVERYTHING = 1_000_000
_UNKNOWN = "<error> Unknown debugger command or wrong number of arguments."

_HELP = """\
LUA debugger help:
[h]elp               Show this help.
[max]len [len]       Trim logged replies to len. Specifying zero as
                     <len> means unlimited. If no <len> is specified,
                     the current value is shown. Usage: maxlen [len]
[s]tep               Run current line and stop again.
[n]ext               Alias for step.
[c]ontinue           Run till next breakpoint.
[l]ist [line] [ctx]  List source code around a specific line. If no
                     line is specified the list is printed around the
                     current line. [ctx] specifies how many lines to
                     show before/after [line].
[w]hole              List all source code. Alias for 'list 1 1000000'.
[p]rint [var]        Show the value of the specified variable [var].
                     Can also show global vars KEYS and ARGV. If no
                     [var] is specidied, shows the value of all local
                     variables.
[b]reak [line|-line] Add/Remove a breakpoint to the specified line.
                     If no [line] is specified, it shows all
                     breakpoints. When line = 0, it removes all
                     breakpoints.
[t]race              Show a backtrace.
[e]val <code>        Execute some Lua code (in a different callframe).
[v]alkey <cmd>       Execute a command.
[a]bort              Stop the execution of the script. In sync mode
                     dataset changes will be retained.
"""


class Channel(Protocol):
    """The client's connection while a session lasts."""

    def send(self, data: bytes) -> None: ...

    def receive(self) -> bytes:
        """Some bytes of the client; empty when it has gone."""


def debug_eval(scripts: Scripts, ctx: Session, argv: list[bytes], read_only: bool) -> Reply:
    """EVAL of a client that debugs: a session on its connection. Its reply, or none: a copy will answer."""
    mode, ctx.debugging = ctx.debugging, None
    if mode == "sync":
        ctx.closing = True
        ctx.update_gate()
        return _session(scripts, ctx, argv, read_only, ctx.door.channel())
    if ctx.deny_blocking:
        raise errors.unsupported("SCRIPT DEBUG YES for an EVAL inside MULTI")
    engine = copied(ctx.engine)
    twin = engine.internal_session()
    twin.db, twin.user, twin.protocol = engine.keyspace.databases[ctx.db.index], ctx.user, ctx.protocol
    theirs = type(scripts)(engine)
    engine.scripting = theirs

    def job(channel: Channel) -> Reply:
        try:
            with engine.lock:
                return _session(theirs, twin, argv, read_only, channel)
        except ReplyError as error:
            return error

    ctx.door.detach(job)
    ctx.closing = True
    ctx.update_gate()
    return Frames()


def _session(scripts: Scripts, ctx: Session, argv: list[bytes], read_only: bool, channel: Channel) -> Reply:
    ldb = Ldb(channel)
    try:
        return ldb.around(ctx.engine, lambda: scripts.eval(ctx, argv, read_only))
    finally:
        ldb.log("<endsession>")
        ldb.send()


class Ldb(Debugger):
    """One session."""

    main_thread = True

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel
        self._log: list[str] = []
        self._maxlen, self._hinted = _MAXLEN, False
        self._places = Breakpoints()
        self._gone = False

    def log(self, line: str) -> None:
        self._log.append(line)

    def log_trimmed(self, line: str) -> None:
        """A line that may be long, cut at `maxlen` bytes."""
        raw = line.encode("utf-8", "surrogateescape")
        if self._maxlen and len(raw) > self._maxlen:
            line = raw[: self._maxlen].decode("utf-8", "surrogateescape") + " ..."
            self.log(line)
            if not self._hinted:
                self._hinted = True
                self.log("<hint> The above reply was trimmed. Use 'maxlen 0' to disable trimming.")
        else:
            self.log(line)

    def send(self) -> None:
        lines, self._log = self._log, []
        out = [b"*%d\r\n" % len(lines)]
        for line in lines:
            text = line.replace("\r", " ").replace("\n", " ")
            out.append(b"+%s\r\n" % text.encode("utf-8", "surrogateescape"))
        if not self._gone:
            self._channel.send(b"".join(out))

    # -- what the script does -------------------------------------------------------------------

    def told(self, argv: list[bytes], reply: Reply, error: bytes | None) -> None:
        words = [word.decode("utf-8", "surrogateescape") for word in argv[:_ARGS_SHOWN]]
        if len(argv) > _ARGS_SHOWN:
            words.append(f"... ({len(argv) - _ARGS_SHOWN - 1} more)")
        self.log("<command> " + " ".join(words))
        assert self.run is not None
        self.log_trimmed("<reply> " + human(reply, self.run.runtime.bridge.session.protocol))
        if error in (NO_ARITY, NO_COMMAND, NOT_FROM_SCRIPT):
            self.log(f"<error> {error[4:].decode()}")
        elif error is not None:
            self.log(f"<error> -{error.decode('utf-8', 'surrogateescape')}  ")

    def complained(self, text: str) -> None:
        self.log(f"<error> {text}")

    def said(self, text: str) -> None:
        self.log(f"<debug> line {self.line}: {text}")

    def stopped(self, reason: str) -> None:
        self.log(f"* Stopped at {self.line}, stop reason = {reason}")
        self._list_line(self.line)
        self.send()
        while True:
            words = self._receive()
            if words is None:  # the client has gone: the script runs to its end
                self._gone = True
                self._places.clear()
                self.breakpoints = []
                return
            if self._obey(words):
                return
            self.send()

    def _receive(self) -> list[bytes] | None:
        """The next command; what follows it in the same read is dropped, as the server does."""
        held = b""
        while True:
            data = self._channel.receive()
            if not data:
                return None
            held += data
            try:
                words = _parse(held)
            except ValueError:
                raise self.abort("protocol error") from None
            if words is not None:
                return words

    # -- the client's commands ------------------------------------------------------------------

    def _obey(self, words: list[bytes]) -> bool:
        """Carry a command out; whether the script goes on."""
        name = words[0].lower()
        known = _COMMANDS.get(name)
        if known is None or not known[1] <= len(words) <= known[2]:
            self.log(_UNKNOWN)
            return False
        return bool(known[0](self, words))

    def _help(self, words: list[bytes]) -> None:
        self._log += _HELP.splitlines()

    def _step(self, words: list[bytes]) -> bool:
        self.stepping = True
        return True

    def _continue(self, words: list[bytes]) -> bool:
        return True

    def _abort(self, words: list[bytes]) -> bool:
        raise self.abort("script aborted for user request")

    def _trace(self, words: list[bytes]) -> None:
        inner = self.in_coroutine  # the main thread's innermost frame is coroutine.resume then
        for depth, (name, line) in enumerate(self.stack(), inner):
            self.log(f"{'From' if depth else 'In'} {name or 'top level'}:")
            self._list_line(line)

    def _maxlen_set(self, words: list[bytes]) -> None:
        if len(words) == 1:
            self.log(f"Current maxlen is {self._maxlen}")
            return
        size = parse_int(words[1])
        if size is None or size < 0:
            self.log("<error> Invalid maxlen value.")
            return
        self._hinted = True
        self._maxlen = max(size, _MAXLEN_LEAST) if size else 0
        if size:
            self.log(f"<value> replies are truncated at {self._maxlen} bytes.")
        else:
            self.log("<value> replies are not truncated.")

    def _print(self, words: list[bytes]) -> None:
        if len(words) == 2:
            text = self.variable(words[1])
            if text is None:
                self.log("No such variable.")
            else:
                self.log_trimmed("<value> " + text.decode("utf-8", "surrogateescape"))
            return
        found = self.locals()
        for name, text in found:
            self.log_trimmed(f"<value> {(name + b' = ' + text).decode('utf-8', 'surrogateescape')}")
        if not found:
            self.log("No local variables in the current context.")

    def _eval(self, words: list[bytes]) -> None:
        kind, text = self.evaluate(b" ".join(words[1:]))
        shown = "(null)" if text is None else text.decode("utf-8", "surrogateescape")
        if kind == "value":
            self.log_trimmed(f"<retval> {shown}")
        else:
            self.log(("<error> " if kind == "error" else "Error compiling code: ") + shown)

    def _command(self, words: list[bytes]) -> None:
        self.command(words[1:])

    def _break(self, words: list[bytes]) -> None:
        places = self._places
        if len(words) == 1:
            if not places.lines:
                self.log("No breakpoints set. Use 'b <line>' to add one.")
                return
            self.log(f"{len(places.lines)} breakpoints set:")
            for line in places.lines:
                self._list_line(line)
            return
        line_or_none = parse_int(words[1])
        if line_or_none is None:
            self.log(f"Invalid argument:'{words[1].decode('utf-8', 'surrogateescape')}'")
            return
        line = line_or_none
        if line == 0:
            places.clear()
            self.log("All breakpoints removed.")
        elif line > 0:
            if len(places.lines) == _BREAKPOINTS:
                self.log("Too many breakpoints set.")
            elif line > len(self.shown_source) or line in places.lines:
                self.log("Wrong line number.")
            else:
                places.add(line)
                self._list_around(line, 1)
        else:
            removed = places.remove(-line)
            self.log("Breakpoint removed." if removed else "No breakpoint in the specified line.")
        self.breakpoints = places.lines

    def _list(self, words: list[bytes]) -> None:
        around = _atoi(words[1]) if len(words) > 1 else 0
        self._list_around(around if around > 0 else self.line, _atoi(words[2]) if len(words) > 2 else 5)

    def _whole(self, words: list[bytes]) -> None:
        self._list_around(1, _EVERYTHING)

    @property
    def shown_source(self) -> list[str]:
        """The lines as the server counts them: without line breaks at the end of the text."""
        lines = self.source
        while lines and not lines[-1].strip("\r"):
            lines.pop()
        if lines:
            lines[-1] = lines[-1].rstrip("\r")
        return lines

    def _list_around(self, line: int, context: int) -> None:
        for number in range(1, len(self.shown_source) + 1):
            if abs(line - number) <= context:
                self._list_line(number)

    def _list_line(self, line: int) -> None:
        source = self.shown_source
        text = source[line - 1] if 0 < line <= len(source) else "<out of range source code line>"
        mark = ("->" if line == self.line else "  ") + ("#" if line in self._places.lines else " ")
        self.log(f"{mark}{line:<3} {text}")


Obey = Callable[[Ldb, list[bytes]], Any]

#: Word, method, and how many words a command may have.
_COMMANDS: dict[bytes, tuple[Obey, int, int]] = {
    word: (method, least, most)
    for words, method, least, most in (
        (b"h help", Ldb._help, 1, 1),
        (b"s step n next", Ldb._step, 1, 1),
        (b"c continue", Ldb._continue, 1, 1),
        (b"t trace", Ldb._trace, 1, 1),
        (b"max maxlen", Ldb._maxlen_set, 1, 2),
        (b"b break", Ldb._break, 1, 2),
        (b"e eval", Ldb._eval, 2, _WORDS_MOST),
        (b"a abort", Ldb._abort, 1, 1),
        (b"p print", Ldb._print, 1, 2),
        (b"l list", Ldb._list, 1, 3),
        (b"w whole", Ldb._whole, 1, 1),
        (b"r redis v valkey server", Ldb._command, 2, _WORDS_MOST),
    )
    for word in words.split()
}


class Breakpoints:
    """The lines to stop at, in the server's array of 64 integers.

    Removing one moves as many *bytes* as breakpoints follow it, where so many integers were meant. Users of the
    real server see the result, so users of this one do.
    """

    def __init__(self) -> None:
        self._array = bytearray(4 * _BREAKPOINTS)
        self._count = 0

    @property
    def lines(self) -> list[int]:
        return list(struct.unpack_from(f"<{self._count}i", self._array))

    def clear(self) -> None:
        self._count = 0

    def add(self, line: int) -> None:
        struct.pack_into("<i", self._array, 4 * self._count, line)
        self._count += 1

    def remove(self, line: int) -> bool:
        lines = self.lines
        if line not in lines:
            return False
        at = lines.index(line)
        self._count -= 1
        size = self._count - at
        self._array[4 * at : 4 * at + size] = self._array[4 * at + 4 : 4 * at + 4 + size]
        return True


def _parse(data: bytes) -> list[bytes] | None:
    """The first command in ``data``; None if it is not complete. Raises ValueError for what is none."""
    if data[:1] != b"*":
        raise ValueError("not an array")
    end = data.find(b"\r\n")
    if end < 0:
        return None
    count, at = int(data[1:end]), end + 2
    if not 0 < count <= _WORDS_MOST:
        raise ValueError("too many words")
    words = []
    for _ in range(count):
        if at >= len(data):
            return None
        if data[at : at + 1] != b"$":
            raise ValueError("not a string")
        end = data.find(b"\r\n", at)
        if end < 0:
            return None
        size, at = int(data[at + 1 : end]), end + 2
        if not 0 < size <= _WORD_LONGEST:
            raise ValueError("too long")
        if len(data) < at + size + 2:
            return None
        words.append(data[at : at + size])
        at += size + 2
    return words


def _atoi(text: bytes) -> int:
    match = re.match(rb"\s*([+-]?\d+)", text)
    return int(match[1]) if match else 0


# -- replies as text -------------------------------------------------------------------------------

_ESCAPES = {0x5C: "\\\\", 0x22: '\\"', 0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x07: "\\a", 0x08: "\\b"}


def _quoted(text: bytes) -> str:
    return '"' + "".join(_ESCAPES.get(c) or (chr(c) if 32 <= c < 127 else f"\\x{c:02x}") for c in text) + '"'


def human(reply: Any, protocol: int) -> str:
    """A reply as the debugger shows it."""
    kind = reply.__class__
    if reply is None or kind is NullArray:
        return "(null)" if protocol == 3 else "NULL"
    if kind is Status:
        return _quoted(b"+" + reply)
    if kind is ReplyError:
        return _quoted(b"-" + reply.encode())
    if kind is bool:
        return f"#{str(reply).lower()}" if protocol == 3 else str(int(reply))
    if kind in (bytes, Verbatim):
        return _quoted(bytes(reply))
    if kind is int:
        return str(reply)
    if kind is BigNumber:
        return _quoted(b"%d" % reply)
    if kind is float or kind is LongFloat:
        text = format_decimals(reply) if kind is LongFloat else format_double(reply)
        return f"(double) {text.decode()}" if protocol == 3 else _quoted(text)
    items = [human(item, protocol) for item in reply]
    couples = list(zip(items[::2], items[1::2], strict=False))
    if protocol == 3:
        if kind in (Map, PairMap):
            return "{" + ",".join(f"{key} => {value}" for key, value in couples) + "}"
        if kind is Set:
            return "~(" + ",".join(items) + ")"
        if kind is Pairs:
            return "[" + ",".join(f"[{key},{value}]" for key, value in couples) + "]"
    elif kind is PairMap:
        return "[" + ",".join(f"[{key},{value}]" for key, value in couples) + "]"
    assert kind in (list, Map, Pairs, Set, Push, Frames), kind
    return "[" + ",".join(items) + "]"
