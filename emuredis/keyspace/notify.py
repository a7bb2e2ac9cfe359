"""Keyspace-event classes: the letters of ``notify-keyspace-events`` and their canonical form.

A handler passes the class of its event to `Database.touch`; whether anybody hears it is decided once,
in `Keyspace.announce`. The letters and their order are the server's.
"""

from __future__ import annotations

__all__ = ["ALL", "EXPIRED", "GENERIC", "HASH", "KEYEVENT", "KEYSPACE", "LIST", "MISS", "NEW", "SET", "STREAM",
           "STRING", "ZSET", "format_flags", "parse_flags"]  # fmt: skip

KEYSPACE, KEYEVENT = 1, 2
GENERIC, STRING, LIST, SET, HASH, ZSET = 4, 8, 16, 32, 64, 128
EXPIRED, EVICTED, STREAM, MISS, MODULE, NEW = 256, 512, 1024, 2048, 8192, 16384
ALL = GENERIC | STRING | LIST | SET | HASH | ZSET | EXPIRED | EVICTED | STREAM | MODULE

_LETTERS = {
    "g": GENERIC, "$": STRING, "l": LIST, "s": SET, "h": HASH, "z": ZSET, "x": EXPIRED, "e": EVICTED,
    "t": STREAM, "d": MODULE, "K": KEYSPACE, "E": KEYEVENT, "m": MISS, "n": NEW,
}  # fmt: skip


def parse_flags(text: str) -> int | None:
    """The bits of a setting such as ``KEA``; None when it has an unknown letter."""
    bits = 0
    for letter in text:
        if letter == "A":
            bits |= ALL
        elif letter in _LETTERS:
            bits |= _LETTERS[letter]
        else:
            return None
    return bits


def format_flags(bits: int) -> str:
    """The setting as the server reads it back: the types (``A`` for all, which hides n), then K, E and m."""
    out = "A" if bits & ALL == ALL else "".join(c for c in "g$lshzxetdn" if bits & _LETTERS[c])
    return out + "".join(c for c in "KEm" if bits & _LETTERS[c])
