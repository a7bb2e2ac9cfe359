"""RESP as the tests read it: written apart from the package's own protocol code, so that a fault
there cannot hide itself.

A frame is parsed into a `Frame`: its kind (the first byte on the wire), its value, and the raw bytes
it came from. Exact comparisons look at the raw bytes; every looser one looks at kinds and values.
Nothing here knows a server or a socket.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Frame", "Incomplete", "parse", "parse_all", "request", "show"]

NULLS = (b"$-1\r\n", b"*-1\r\n", b"_\r\n")


class Incomplete(Exception):
    """The buffer ends in the middle of a frame."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One reply or push. ``kind`` is ``+ - : $ * _ # , ( = % ~ > !``; a map's value is a flat list."""

    kind: str
    value: Any
    raw: bytes

    @property
    def is_error(self) -> bool:
        return self.kind in "-!"


def request(argv: list[bytes] | tuple[bytes, ...]) -> bytes:
    """The bytes a client sends for ``argv``."""
    parts = [b"*%d\r\n" % len(argv)]
    for arg in argv:
        parts.append(b"$%d\r\n%b\r\n" % (len(arg), arg))
    return b"".join(parts)


def _line(buffer: bytes, at: int) -> tuple[bytes, int]:
    end = buffer.find(b"\r\n", at)
    if end < 0:
        raise Incomplete
    return buffer[at:end], end + 2


def parse(buffer: bytes, at: int = 0) -> tuple[Frame, int]:
    """The frame at ``at`` and the place after it; raises `Incomplete` or ValueError."""
    head, after = _line(buffer, at)
    kind, rest = chr(head[0]) if head else "", head[1:]
    if kind in ("+", "-", ":", ",", "(", "#", "_") and kind:
        value: Any = int(rest) if kind in ":(" else None if kind == "_" else rest
    elif kind in ("$", "=", "!") and kind:
        size = int(rest)
        if size < 0:
            value = None
        else:
            if len(buffer) < after + size + 2:
                raise Incomplete
            value = buffer[after : after + size]
            if buffer[after + size : after + size + 2] != b"\r\n":
                raise ValueError(f"no line end after {size} bytes")
            after += size + 2
    elif kind in ("*", "~", ">", "%") and kind:
        count = int(rest) * (2 if kind == "%" else 1)
        value = None if count < 0 else []
        for _ in range(count):
            item, after = parse(buffer, after)
            value.append(item)
    else:
        raise ValueError(f"not RESP: {head[:60]!r}")
    return Frame(kind, value, bytes(buffer[at:after])), after


def parse_all(buffer: bytes) -> list[Frame]:
    """Every frame of ``buffer``, which must end with one."""
    frames, at = [], 0
    while at < len(buffer):
        frame, at = parse(buffer, at)
        frames.append(frame)
    return frames


def show(frame: Frame | None, indent: str = "") -> str:
    """A frame for people, close to what redis-cli prints but with every type visible."""
    if frame is None:
        return "(nothing)"
    kind, value = frame.kind, frame.value
    if value is None:
        return "(null array)" if kind == "*" else "(null)" if kind == "$" else "(null _)"
    if isinstance(value, list):
        names = {"*": "array", "%": "map", "~": "set", ">": "push"}
        inner = indent + "  "
        body = "".join(f"\n{inner}{show(item, inner)}" for item in value)
        return f"({names[kind]} {len(value) // (2 if kind == '%' else 1)}){body}"
    if kind in "+-!,#":
        return kind + value.decode("utf-8", "backslashreplace")
    text = repr(value)[1:] if isinstance(value, bytes) else str(value)
    return text if kind in "$ " else kind + text
