"""Request bytes to commands: the server's side of RESP, and inline commands. Sans-IO.

`Parser.feed` takes whatever arrived and returns the commands it completes, each a list of bytes. A request
that breaks the protocol sets `Parser.error`, the server's own text; the commands before it are still
returned, and from then on the parser ignores its input, as the server closes the connection. The answers do
not depend on how the bytes were cut: a limit that the server checks once per read is checked here on the
bytes themselves.

Three readers share the work, fastest first, and whichever is not sure hands over to the next:

* `_read_hiredis`: hiredis, if installed, for pipelines that a reader made for replies cannot misread;
* `_read_split`: one ``split`` on line breaks, for values without line breaks in them;
* `_read_one`: the whole protocol, one command at a time: partial commands, inline commands, every error.

Input that completes nothing yet is kept in pieces and joined once enough has come; the arguments read of an
unfinished command are kept as arguments. So the work is linear in the bytes, wherever they are cut.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from itertools import chain
from typing import Any

from emuredis.errors import ReplyError
from emuredis.scalars import parse_int

__all__ = ["INLINE_MAX", "Parser", "split_inline"]

Argv = list[bytes]

#: The longest inline command, and the longest line that states a length.
INLINE_MAX = 64 * 1024
#: What a client that has not authenticated may send: arguments, bytes in one.
RESTRICTED_COUNT, RESTRICTED_BULK = 10, 16384
_COUNT_MAX = 2**31 - 1
_BULK_MAX = 512 * 1024 * 1024
#: A read of more lines than this is not looked at as a single command.
_FEW = 24
_STAR, _DOLLAR, _LF = b"*$\n"


class Parser:
    """The request stream of one connection.

    ``hiredis``: use hiredis for pipelines; None means if it is installed and the environment does not say
    EMUREDIS_PARSER=python. Raises RuntimeError for True when it is not installed.
    ``restricted``: the client has not authenticated: small limits hold, and `feed` returns at most one
    command (which may be AUTH); call ``feed(b"")`` for the next one until it returns none.
    ``max_bulk``: proto-max-bulk-len.
    ``held``: how many bytes of an unfinished command are kept, or up to one read more.
    """

    __slots__ = (
        "_argv", "_bulk", "_fresh", "_have", "_missing", "_need", "_pieces", "_read_many", "_used", "error", "max_bulk",
        "reader", "restricted",
    )  # fmt: skip

    def __init__(
        self, hiredis: bool | None = None, restricted: bool = False, max_bulk: int = _BULK_MAX
    ) -> None:
        self.error: ReplyError | None = None
        self.restricted = restricted
        self.max_bulk = max_bulk
        self._fresh = True  # between two commands, nothing kept
        self.reader: Any = None  # hiredis's, while it is in a state to be used again
        self._read_many = _choose(hiredis)
        self._pieces: list[bytes] = []  # input not parsed yet
        self._have = 0  # its size
        self._need = 1  # the size from which parsing it makes sense
        self._argv: Argv = []  # what has been read of an unfinished command
        self._missing = 0  # how many of its arguments are still to come
        self._bulk = -1  # size of the argument being read, once its header has been
        self._used = 0  # bytes that the unfinished command has used up

    @property
    def held(self) -> int:
        return self._have + self._used

    def feed(self, data: bytes) -> list[Argv]:
        """The commands completed by ``data``. An empty one (``*0``, an empty line) is an empty list."""
        if self._fresh and not self.restricted:  # most reads are one small command and nothing else
            lines = data.split(b"\r\n", _FEW)
            count = _COUNTS.get(lines[0])
            if count is not None and len(lines) == 2 * count + 2 and not lines[-1]:
                argv = lines[2:-1:2]
                for header, value in zip(lines[1::2], argv, strict=False):
                    if _SIZES.get(header) != len(value):
                        break
                else:
                    return [argv]
        if self.error is not None:
            return []
        if self._pieces:
            self._pieces.append(data)
            self._have += len(data)
            if self._have < self._need:
                return []
            data = b"".join(self._pieces)
        out: list[Argv] = []
        self._need = 1
        position = self._parse(data, out)
        self._have = len(data) - position
        self._pieces = [data[position:]] if self._have else []
        self._fresh = not self._have and not self._missing
        if not self._missing:
            self._used = 0
        else:
            self._used = position if out else self._used + position
        return out

    def _parse(self, data: bytes, out: list[Argv]) -> int:
        """Read commands into ``out``; returns the position up to which ``data`` is used up."""
        position, end = 0, len(data)
        many = not self.restricted  # once a read: what defeats the fast readers is not split again and again
        while position < end:
            if many and not self._missing and data[position] == _STAR:
                many = False
                position = self._read_many(self, data[position:] if position else data, out) + position
                continue
            position = self._read_one(data, position, out)
            if self._need > 1 or self.error is not None or (self.restricted and out):
                break
        return position

    # -- one command at a time ------------------------------------------------------------------

    def _read_one(self, data: bytes, position: int, out: list[Argv]) -> int:
        """Read one command, or what is there of it (then `_need` says how much more it takes)."""
        if not self._missing:
            if data[position] != _STAR:
                return self._read_inline(data, position, out)
            end = self._line_end(data, position, _STAR, "too big mbulk count string")
            if end < 0:
                return position
            count = parse_int(data[position + 1 : end])
            if count is None or count > _COUNT_MAX:
                return self._fail(position, "invalid multibulk length")
            if self.restricted and count > RESTRICTED_COUNT:
                return self._fail(position, "unauthenticated multibulk length")
            position = end + 2
            if count <= 0:
                out.append([])
                return position
            self._missing = count
        while self._missing:
            if self._bulk < 0:
                position = self._read_bulk_header(data, position)
                if self._bulk < 0:
                    return position
            stop = position + self._bulk
            if len(data) < stop + 2:
                self._need = stop + 2 - position
                return position
            if data[stop : stop + 2] != b"\r\n":
                return self._fail(position, "invalid CRLF in request")
            self._argv.append(data[position:stop])
            position = stop + 2
            self._bulk = -1
            self._missing -= 1
        out.append(self._argv)
        self._argv = []
        return position

    def _read_bulk_header(self, data: bytes, position: int) -> int:
        """Read ``$size`` into `_bulk`, which stays -1 if that is not possible (yet)."""
        end = self._line_end(data, position, _DOLLAR, "too big bulk count string")
        if end < 0:
            return position
        size = parse_int(data[position + 1 : end])
        if size is None or not 0 <= size <= self.max_bulk:
            return self._fail(position, "invalid bulk length")
        if self.restricted and size > RESTRICTED_BULK:
            return self._fail(position, "unauthenticated bulk length")
        self._bulk = size
        return end + 2

    def _line_end(self, data: bytes, position: int, kind: int, too_big: str) -> int:
        """Where the line break of a header of this kind is, or -1 if it is not there (yet)."""
        end = data.find(b"\r", position, position + INLINE_MAX + 1)
        if end < 0 or end + 1 == len(data):
            if len(data) - position > INLINE_MAX:
                self._fail(position, too_big)
            self._need = len(data) - position + 1
        elif data[position] != kind:
            got = data[position : position + 1].decode("utf-8", "surrogateescape")
            self._fail(position, f"expected '{chr(kind)}', got '{got}'")
        elif data[end + 1] != _LF:
            self._fail(position, "invalid CRLF in request")
        else:
            return end
        return -1

    def _read_inline(self, data: bytes, position: int, out: list[Argv]) -> int:
        end = data.find(b"\n", position, position + INLINE_MAX + 1)
        if end < 0 or data.find(b"\0", position, end) >= 0:  # the server looks no further than a NUL
            if len(data) - position > INLINE_MAX:
                return self._fail(position, "too big inline request")
            self._need = len(data) - position + 1
            return position
        line = data[position:end].removesuffix(b"\r")
        argv = split_inline(line)
        if argv is None:
            return self._fail(position, "unbalanced quotes in request")
        if argv or not line:
            out.append(argv)
        return end + 1

    def _fail(self, position: int, text: str) -> int:
        self.error = ReplyError("ERR Protocol error: " + text)
        return position


# -- many commands at a time -----------------------------------------------------------------------
# Both take a parser that is between two commands and data that begins with "*", append whole commands to
# ``out`` and return how many bytes those took; they may stop early, even before the first.


class _Headers(dict[int, bytes]):
    """``$n`` by n."""

    def __missing__(self, size: int) -> bytes:
        return b"$%d" % size


_HEADERS = _Headers((size, b"$%d" % size) for size in range(1024))
_SIZES = {header: size for size, header in _HEADERS.items()}
_COUNTS = {b"*%d" % count: count for count in range(1, 1024)}


def _read_split(parser: Parser, data: bytes, out: list[Argv]) -> int:
    lines = data.split(b"\r\n")
    last = len(lines) - 1  # this one has no line break behind it
    at = 0
    count_of, header_of = _COUNTS.get, _HEADERS.__getitem__
    while at < last:
        count = count_of(lines[at])
        if count is None:
            break
        after = at + 1 + 2 * count
        if after > last:
            break
        argv = lines[at + 2 : after : 2]
        if lines[at + 1 : after : 2] != list(map(header_of, map(len, argv))):
            break
        out.append(argv)
        at = after
    else:
        return len(data) - len(lines[last])
    return sum(map(len, lines[:at])) + 2 * at


try:
    import hiredis
except ImportError:  # an extra; everything works without it
    hiredis = None  # type: ignore[assignment]

#: A shorter pipeline is not worth hiredis's set-up.
_WORTH_HIREDIS = 256
#: hiredis reserves room for as many elements as a header claims.
_HUGE_COUNT = re.compile(rb"\*[0-9]{5}")
#: Marks of replies that hiredis returns just as it returns bulk strings and arrays.
_LOOKALIKES = [(mark, b"\r\n" + mark) for mark in (b"+", b"=", b"(", b"~", b"|")]
_NOTHING = object()


def _read_hiredis(parser: Parser, data: bytes, out: list[Argv]) -> int:
    """Let hiredis read, then make sure that the server would have read the same; if not, `_read_split`.

    hiredis accepts more than a server: other types than arrays of bulk strings, and any two bytes behind a
    value. The types show in the classes of what it returns, but for those of `_LOOKALIKES`. If no value has
    a carriage return in it, the number of line breaks tells whether one stands behind each value.
    """
    if len(data) < _WORTH_HIREDIS or _HUGE_COUNT.search(data) is not None:
        return _read_split(parser, data, out)
    for mark, line in _LOOKALIKES:
        if mark in data and line in data:
            return _read_split(parser, data, out)
    reader, parser.reader = parser.reader or hiredis.Reader(notEnoughData=_NOTHING), None
    commands: list[Argv] = []
    try:
        reader.feed(data)
        while (argv := reader.gets()) is not _NOTHING:
            if argv.__class__ is not list or not argv:
                return _read_split(parser, data, out)
            commands.append(argv)
        values = list(chain.from_iterable(commands))
        body = b"".join(values)
    except (hiredis.HiredisError, TypeError):  # a broken request, or a value that is no bulk string
        return _read_split(parser, data, out)
    if b"\r" in body:
        return _read_split(parser, data, out)
    used, breaks = len(data), len(commands) + 2 * len(values)
    # It takes the first byte of a reply at once: data that ends with one must not pass for used up.
    if not reader.has_data() and data.endswith(b"\r\n") and data.count(b"\r\n") == breaks:
        parser.reader = reader
    else:  # the last command is unfinished; this reader is in the middle of it
        used = sum(map(len, map(_HEADERS.__getitem__, map(len, values)))) + len(body) + 4 * len(values)
        used += sum(map(len, map(_HEADERS.__getitem__, map(len, commands)))) + 2 * len(commands)
        if data.count(b"\r\n", 0, used) != breaks:
            return _read_split(parser, data, out)
    out += commands
    return used


def _choose(wanted: bool | None) -> Callable[[Parser, bytes, list[Argv]], int]:
    if wanted and hiredis is None:
        raise RuntimeError("hiredis is not installed; pip install 'emuredis[speed]'")
    if wanted is None:
        wanted = hiredis is not None and os.environ.get("EMUREDIS_PARSER") != "python"
    return _read_hiredis if wanted else _read_split


# -- inline commands -------------------------------------------------------------------------------

_BLANKS = b" \t\n\v\f\r"  # skipped in front of a word
_WORD_ENDS = b" \t\n\r"
_ESCAPES = {ord("n"): 10, ord("r"): 13, ord("t"): 9, ord("b"): 8, ord("a"): 7}
_QUOTE, _APOSTROPHE, _BACKSLASH = b"\"'\\"
_IAC = 255
_PLAIN_LINE = re.compile(rb"""[^"'\v\f\xff]*\Z""")
_HEX_ESCAPE = re.compile(rb"x([0-9a-fA-F]{2})")


def split_inline(line: bytes) -> Argv | None:
    """The words of an inline command, or None for unbalanced quotes.

    Quotes may open and close anywhere in a word; ``"`` knows escapes, ``'`` only ``\\'``. Bytes 255 are
    dropped, as the server does (they are telnet's, not text), unless written as an escape.
    """
    if _PLAIN_LINE.match(line) is not None:
        return line.split()
    words: Argv = []
    at, end = 0, len(line)
    while True:
        while at < end and line[at] in _BLANKS:
            at += 1
        if at == end:
            return words
        word = bytearray()
        while at < end and line[at] not in _WORD_ENDS:
            if line[at] == _QUOTE:
                at = _double_quoted(line, at + 1, word)
            elif line[at] == _APOSTROPHE:
                at = _single_quoted(line, at + 1, word)
            else:
                if line[at] != _IAC:
                    word.append(line[at])
                at += 1
            if at < 0:
                return None
        words.append(bytes(word))


def _double_quoted(line: bytes, at: int, word: bytearray) -> int:
    """Read up to the closing quote into ``word``; the position after it, or -1 if there is none."""
    end = len(line)
    while at < end:
        byte = line[at]
        if byte == _QUOTE:
            return at + 1
        if byte == _BACKSLASH and at + 2 < end:  # the server takes no escape at the very end of the line
            hexadecimal = _HEX_ESCAPE.match(line, at + 1)
            if hexadecimal is not None:
                word.append(int(hexadecimal[1], 16))
                at += 4
                continue
            at += 1
            byte = _ESCAPES.get(line[at], line[at])
        if byte != _IAC:
            word.append(byte)
        at += 1
    return -1


def _single_quoted(line: bytes, at: int, word: bytearray) -> int:
    """As `_double_quoted`, for apostrophes."""
    end = len(line)
    while at < end:
        byte = line[at]
        if byte == _APOSTROPHE:
            return at + 1
        if byte == _BACKSLASH and at + 2 < end and line[at + 1] == _APOSTROPHE:
            at += 1
            byte = _APOSTROPHE
        if byte != _IAC:
            word.append(byte)
        at += 1
    return -1
