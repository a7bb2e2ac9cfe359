"""What all stream commands read: ids, ends of intervals, groups; and how entries are written into a reply.

An id is ``milliseconds-sequence``, text that ends at its first zero byte. The first dash parts it, so the second number
may have a sign where the first cannot. What a missing sequence means is the caller's business.
"""

from __future__ import annotations

from typing import Any

from emuredis.errors import ReplyError, shown, wrong_type
from emuredis.replies import Reply
from emuredis.scalars import parse_unsigned
from emuredis.values.stream import LAST_ID, SEQ_MAX, Entry, Group, Stream

__all__ = ["find_group", "format_id", "interval", "interval_start", "invalid_id", "no_group", "parse_id",
           "parse_loose_id", "render", "render_all", "special"]  # fmt: skip

_MOST = 127  # bytes of an id


def invalid_id() -> ReplyError:
    return ReplyError("ERR Invalid stream ID specified as stream command argument")


def format_id(entry_id: int) -> bytes:
    return b"%d-%d" % (entry_id >> 64, entry_id & SEQ_MAX)


def special(text: bytes) -> bytes:
    """``text`` up to its first zero byte, to be compared with a word that stands for an id."""
    return text.partition(b"\0")[0]


def _part(text: bytes) -> int:
    """One number of an id; raises as `parse_id`."""
    number = parse_unsigned(text)
    if number is None:
        raise invalid_id()
    return number


def parse_id(text: bytes, missing: int = 0) -> int:
    """The id written by ``text``, its sequence ``missing`` if it has none; ERR unless it is one.

    ``-`` and ``+`` are none, see `parse_loose_id`.
    """
    first, dash, second = text.partition(b"-")
    if first.isdigit() and second.isdigit() and len(first) < 20 > len(second):
        return int(first) << 64 | int(second)
    if len(text) > _MOST:
        raise invalid_id()
    if b"\0" in text:
        first, dash, second = text[: text.index(b"\0")].partition(b"-")
    return _part(first) << 64 | (_part(second) if dash else missing)


def parse_loose_id(text: bytes, missing: int = 0) -> int:
    """As `parse_id`, and ``-`` is the least, ``+`` the greatest of all ids."""
    word = special(text)
    if word in (b"-", b"+") and len(text) <= _MOST:
        return 0 if word == b"-" else LAST_ID
    return parse_id(text, missing)


def interval(start: bytes, end: bytes) -> tuple[int, int]:
    """The least and the greatest id of an interval; ``(`` in front excludes the id itself."""
    return interval_start(start), interval_end(end)


def interval_start(text: bytes) -> int:
    if text[:1] != b"(" or len(text) == 1:
        return parse_loose_id(text)
    first = parse_id(text[1:]) + 1
    if first > LAST_ID:
        raise ReplyError("ERR invalid start ID for the interval")
    return first


def interval_end(text: bytes) -> int:
    if text[:1] != b"(" or len(text) == 1:
        return parse_loose_id(text, SEQ_MAX)
    last = parse_id(text[1:], SEQ_MAX) - 1
    if last < 0:
        raise ReplyError("ERR invalid end ID for the interval")
    return last


# -- groups ------------------------------------------------------------------------------------


def no_group(key: bytes, group: bytes, where: str = "") -> ReplyError:
    return ReplyError(f"NOGROUP No such key '{shown(key)}' or consumer group '{shown(group)}'{where}")


def find_group(value: Any, key: bytes, name: bytes) -> tuple[Stream, Group]:
    """``value``, which was found at ``key``, as a stream and its group; NOGROUP unless both are there."""
    if value.__class__ is Stream:
        group = value.groups.get(name)
        if group is not None:
            return value, group
    elif value is not None:
        raise wrong_type()
    raise no_group(key, name)


# -- replies -----------------------------------------------------------------------------------


def render(entry_id: int, entry: tuple[bytes, ...]) -> Reply:
    return [b"%d-%d" % (entry_id >> 64, entry_id & SEQ_MAX), list(entry)]


def render_all(entries: list[Entry]) -> Reply:
    return [[b"%d-%d" % (entry_id >> 64, entry_id & SEQ_MAX), list(entry)] for entry_id, entry in entries]
