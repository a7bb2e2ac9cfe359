"""Arguments that many commands read: numbers, time-outs, counts, keywords. Each raises the server's error."""

from __future__ import annotations

from emuredis import errors
from emuredis.errors import ReplyError
from emuredis.scalars import LLONG_MAX, parse_float, parse_int, parse_timeout_ms

__all__ = ["integer", "milliseconds", "number", "timeout"]


def integer(text: bytes) -> int:
    """A signed 64-bit integer, or ``ERR value is not an integer or out of range``."""
    value = parse_int(text)
    if value is None:
        raise errors.not_integer()
    return value


def number(text: bytes) -> float:
    """A double, or ``ERR value is not a valid float``."""
    value = parse_float(text)
    if value is None:
        raise errors.not_float()
    return value


def timeout(text: bytes, now: int) -> int:
    """The time-out of a blocking command, given in seconds: milliseconds, rounded up as the server does."""
    if len(text) < 10 and text.isdigit():
        return int(text) * 1000
    value = parse_timeout_ms(text)
    if value is None:
        raise ReplyError("ERR timeout is not a float or out of range")
    return milliseconds(value, now)


def milliseconds(value: int, now: int) -> int:
    """A time-out already in milliseconds: not negative, and its deadline within 64 bits."""
    if value < 0:
        raise ReplyError("ERR timeout is negative")
    if value > LLONG_MAX - now:
        raise ReplyError("ERR timeout is out of range")
    return value
