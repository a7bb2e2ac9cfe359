"""RESP without sockets: commands to bytes, bytes to values.

Commands are arrays of bulk strings. Replies of RESP2 and RESP3 become plain Python values: bytes for
simple, bulk and verbatim strings (the three-letter format is dropped), int for integers and big
numbers, float, bool, None for every kind of null, list for arrays and sets, dict for maps, `ServerError`
for errors (as a value, also inside an array) and `Push` for out-of-band frames. Attributes are read and
dropped.

`Decoder` is incremental and keeps a stack of open aggregates, so a frame may be split at any byte and
no byte is looked at twice however large the reply is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .errors import ProtocolError, ServerError

__all__ = ["NEED_DATA", "Arg", "Decoder", "Push", "Reply", "encode", "encode_many"]

Arg = bytes | str | int
Reply = Any

MAX_BULK = 512 * 1024 * 1024
MAX_ITEMS = 1024 * 1024 * 1024
MAX_LINE = 64 * 1024
MAX_DEPTH = 512
MAX_DIGITS = 4096


class _NeedData:
    __slots__ = ()

    def __repr__(self) -> str:
        return "NEED_DATA"


NEED_DATA = _NeedData()


class Push(list[Any]):
    """An out-of-band frame: its items."""

    __slots__ = ()


def encode(args: Sequence[Arg]) -> bytes:
    """One command. Text goes out as UTF-8, integers as plain decimals; anything else is a TypeError."""
    if not args:
        raise TypeError("a command needs at least its name")
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        if type(arg) is bytes:
            raw = arg
        elif type(arg) is str:
            raw = arg.encode()
        elif isinstance(arg, int) and not isinstance(arg, bool):
            raw = b"%d" % arg
        elif isinstance(arg, (bytes, bytearray, memoryview)):
            raw = bytes(arg)
        elif isinstance(arg, str):
            raw = str.encode(arg)
        else:
            raise TypeError(f"a command argument is bytes, str or int, not {arg!r}")
        parts.append(b"$%d\r\n%b\r\n" % (len(raw), raw))
    return b"".join(parts)


def encode_many(commands: Iterable[Sequence[Arg]]) -> bytes:
    """Several commands back to back."""
    return b"".join(map(encode, commands))


class _Frame:
    """An aggregate that is still being read."""

    __slots__ = ("items", "kind", "left")

    def __init__(self, kind: int, left: int) -> None:
        self.kind = kind
        self.left = left
        self.items: list[Any] = []


_ARRAY, _SET, _PUSH, _MAP, _ATTRIBUTE = b"*~>%|"
_DROPPED = object()


class Decoder:
    """Feed bytes, take replies."""

    __slots__ = ("_buffer", "_bulk", "_bulk_kind", "_pos", "_scan", "_stack")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._pos = 0  # first byte not yet consumed
        self._scan = 0  # where the search for the line's end continues
        self._bulk = -1  # length of the bulk being waited for, or -1
        self._bulk_kind = 0
        self._stack: list[_Frame] = []

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        if self._pos > 65536 and self._pos * 2 > len(self._buffer):
            del self._buffer[: self._pos]
            self._scan -= self._pos
            self._pos = 0
        self._buffer += data

    def __bool__(self) -> bool:
        """Whether a frame has been begun but not finished."""
        return bool(self._stack) or self._bulk >= 0 or self._pos < len(self._buffer)

    def next(self) -> Reply:
        """The next complete reply, or `NEED_DATA`."""
        while True:
            value = self._bulk_value() if self._bulk >= 0 else self._line_value()
            if value is NEED_DATA:
                return value
            if value is _OPENED:
                continue
            value = self._fold(value)
            if value is not _DROPPED:
                return value

    def take(self) -> list[Reply]:
        """All replies that are complete."""
        replies = []
        while (value := self.next()) is not NEED_DATA:
            replies.append(value)
        return replies

    def _line_value(self) -> Any:
        buffer = self._buffer
        end = buffer.find(b"\r\n", max(self._scan, self._pos))
        if end < 0:
            self._scan = max(self._pos, len(buffer) - 1)
            if len(buffer) - self._pos > MAX_LINE:
                raise ProtocolError("a line without an end")
            return NEED_DATA
        if end == self._pos:
            raise ProtocolError("an empty line in place of a reply")
        kind = buffer[self._pos]
        line = bytes(buffer[self._pos + 1 : end])
        self._pos = self._scan = end + 2
        return self._atom(kind, line)

    def _atom(self, kind: int, line: bytes) -> Any:
        if kind == 0x24:  # $
            return self._open_bulk(kind, line)
        if kind == 0x3A:  # :
            return _integer(line)
        if kind == 0x2B:  # +
            return line
        if kind == 0x2D:  # -
            return ServerError(line.decode(errors="replace"))
        if kind in b"*~>%|":
            return self._open_aggregate(kind, line)
        if kind in b"=!":
            return self._open_bulk(kind, line)
        return _scalar3(kind, line)

    def _open_bulk(self, kind: int, line: bytes) -> Any:
        length = _integer(line)
        if length == -1 and kind == 0x24:
            return None
        if not 0 <= length <= MAX_BULK:
            raise ProtocolError(f"bulk length {length}")
        self._bulk = length
        self._bulk_kind = kind
        return _OPENED

    def _bulk_value(self) -> Any:
        start, length = self._pos, self._bulk
        end = start + length
        buffer = self._buffer
        if len(buffer) < end + 2:
            return NEED_DATA
        if buffer[end] != 13 or buffer[end + 1] != 10:
            raise ProtocolError("a bulk string longer than announced")
        raw = bytes(buffer[start:end])
        self._pos = self._scan = end + 2
        self._bulk = -1
        if self._bulk_kind == 0x24:
            return raw
        if self._bulk_kind == 0x21:  # !
            return ServerError(raw.decode(errors="replace"))
        if raw[3:4] != b":":
            raise ProtocolError("a verbatim string without a format")
        return raw[4:]

    def _open_aggregate(self, kind: int, line: bytes) -> Any:
        count = _integer(line)
        if count == -1 and kind == _ARRAY:
            return None
        if not 0 <= count <= MAX_ITEMS:
            raise ProtocolError(f"aggregate length {count}")
        if len(self._stack) >= MAX_DEPTH:
            raise ProtocolError(f"a reply nested deeper than {MAX_DEPTH}")
        if count == 0 and kind != _ATTRIBUTE:
            return _close(kind, [])
        if count == 0:
            return _OPENED
        self._stack.append(_Frame(kind, count * 2 if kind in b"%|" else count))
        return _OPENED

    def _fold(self, value: Any) -> Any:
        """Put a finished value into its aggregate; a value outside any is a reply."""
        stack = self._stack
        while stack:
            frame = stack[-1]
            frame.items.append(value)
            frame.left -= 1
            if frame.left:
                return _DROPPED
            stack.pop()
            if frame.kind == _ATTRIBUTE:
                return _DROPPED
            value = _close(frame.kind, frame.items)
        return value


_OPENED = object()


def _close(kind: int, items: list[Any]) -> Any:
    if kind == _PUSH:
        return Push(items)
    if kind != _MAP:
        return items
    try:
        return dict(zip(items[::2], items[1::2], strict=True))
    except TypeError:  # a key that cannot be hashed: keep the pairs
        return [list(pair) for pair in zip(items[::2], items[1::2], strict=True)]


def _integer(line: bytes) -> int:
    digits = line[1:] if line[:1] in (b"-", b"+") else line
    if not digits.isdigit() or len(digits) > MAX_DIGITS:
        raise ProtocolError(f"not an integer: {line[:40]!r}")
    return int(line)


def _scalar3(kind: int, line: bytes) -> Any:
    if kind == 0x5F and not line:  # _
        return None
    if kind == 0x23 and line in (b"t", b"f"):  # #
        return line == b"t"
    if kind == 0x28:  # (
        return _integer(line)
    if kind == 0x2C:  # ,
        try:
            return float(line)
        except ValueError:
            raise ProtocolError(f"not a double: {line[:40]!r}") from None
    raise ProtocolError(f"unknown reply type {bytes([kind]) + line[:40]!r}")
