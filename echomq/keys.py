"""The names of a queue's keys: `emq:{queue}:suffix`.

The braces are part of the name: they make the queue the hash tag, so all keys of one queue share one
cluster slot and one script may touch them all. The reserve `{emq}:` holds what belongs to no queue.
This is the only module that spells a key. It refuses a queue name, job id, group or deduplication id
that could not round-trip, before anything is sent.
"""

from __future__ import annotations

import binascii
import re

from .errors import ArgumentError
from .ids import check_id

__all__ = ["VERSION_KEY", "Keys", "check_queue", "hashtag", "slot"]

VERSION_KEY = "{emq}:version"

_QUEUE = re.compile(r"[A-Za-z0-9._-]{1,128}\Z")
_ARCHIVED = ":archived"
_DEDUP = re.compile(r"[A-Za-z0-9._-]{1,255}\Z")


def check_queue(queue: object) -> str:
    """``queue`` itself when it is a legal queue name, else ArgumentError."""
    if not isinstance(queue, str) or not _QUEUE.match(queue):
        raise ArgumentError(f"a queue name is 1-128 characters of A-Z a-z 0-9 . _ -, not {queue!r}")
    if queue == "emq":
        raise ArgumentError("the queue name 'emq' is reserved")
    return queue


def hashtag(key: bytes) -> bytes:
    """The part of a key that decides its slot: inside the first non-empty ``{…}``, else all of it."""
    start = key.find(b"{")
    if start < 0:
        return key
    end = key.find(b"}", start + 1)
    return key[start + 1 : end] if end > start + 1 else key


def slot(key: str | bytes) -> int:
    """The cluster slot of a key (CRC16-XMODEM modulo 16384)."""
    raw = key.encode() if isinstance(key, str) else key
    return binascii.crc_hqx(hashtag(raw), 0) % 16384


class Keys:
    """All key names of one queue. Fixed names are attributes, the others are methods."""

    __slots__ = (
        "active",
        "base",
        "dead",
        "events",
        "gactive",
        "glimit",
        "gweight",
        "job_prefix",
        "limiter",
        "meta",
        "outbox",
        "paused",
        "pending",
        "queue",
        "repeat",
        "ring",
        "schedule",
        "wake",
    )

    def __init__(self, queue: str) -> None:
        self.queue = check_queue(queue)
        base = self.base = "emq:{" + queue + "}:"
        self.job_prefix = base + "job:"
        self.pending = base + "pending"
        self.active = base + "active"
        self.schedule = base + "schedule"
        self.dead = base + "dead"
        self.ring = base + "ring"
        self.paused = base + "paused"
        self.glimit = base + "glimit"
        self.gactive = base + "gactive"
        self.gweight = base + "gweight"
        self.wake = base + "wake"
        self.meta = base + "meta"
        self.limiter = base + "limiter"
        self.repeat = base + "repeat"
        self.outbox = base + "flow:outbox"
        self.events = base + "events"

    def job(self, job_id: str) -> str:
        """The row of a job; the id may be of any namespace (the server refuses the wrong kind)."""
        return self.job_prefix + check_id(job_id, "job id")

    def logs(self, job_id: str) -> str:
        return self.job(job_id) + ":logs"

    def lock(self, job_id: str) -> str:
        return self.job(job_id) + ":lock"

    def dependencies(self, job_id: str) -> str:
        return self.job(job_id) + ":dependencies"

    def processed(self, job_id: str) -> str:
        return self.job(job_id) + ":processed"

    def failed(self, job_id: str) -> str:
        return self.job(job_id) + ":failed"

    def unsuccessful(self, job_id: str) -> str:
        return self.job(job_id) + ":unsuccessful"

    def lane(self, group: str) -> str:
        """The waiting set of one group."""
        return self.base + "g:" + check_id(group, "group") + ":pending"

    def repeat_record(self, name: str) -> str:
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"a repeat name is a non-empty string, not {name!r}")
        return self.base + "repeat:" + name

    def metric(self, name: str) -> str:
        return self.base + "metrics:" + name

    def dedup(self, dedup_id: str) -> str:
        if not isinstance(dedup_id, str) or not _DEDUP.match(dedup_id):
            raise ArgumentError(
                f"a deduplication id is 1-255 characters of A-Z a-z 0-9 . _ -, not {dedup_id!r}"
            )
        return self.base + "de:" + dedup_id

    def stream(self, name: str) -> str:
        """An event log; its name is the application's, and may not be mistaken for a mark of another."""
        if not isinstance(name, str) or not name or name.endswith(_ARCHIVED):
            raise ArgumentError(
                f"a stream's name is a non-empty string that does not end in {_ARCHIVED}, not {name!r}"
            )
        return self.base + "stream:" + name

    def stream_archived(self, name: str) -> str:
        return self.stream(name) + _ARCHIVED

    def __repr__(self) -> str:
        return f"Keys({self.queue!r})"
