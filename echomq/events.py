"""What happened to jobs, told on a channel: `emq:{queue}:events`, at most once, to whoever listens.

A message is a JSON object whose values are strings: `event` first, `job` second, then extras. Publishing is
its caller's business, after the verdict; only `progress` is published by a script.
"""

from __future__ import annotations

from collections.abc import Callable

from .connection import Connection
from .steps import Call, Part, Steps, procedure

__all__ = ["Events", "event_name", "message"]

EventHandler = Callable[[str, bytes], None]

_FIELD = b'"event":"'


def message(event: str, job_id: str, **extras: str) -> str:
    """The payload of an event; only backslashes and quotes are escaped."""
    pairs = {"event": event, "job": job_id} | extras
    return "{" + ",".join(f'"{_escape(name)}":"{_escape(value)}"' for name, value in pairs.items()) + "}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def event_name(payload: bytes) -> str:
    """The value of the `event` field, found by a scan; `unknown` when there is none."""
    start = payload.find(_FIELD)
    end = payload.find(b'"', start + len(_FIELD))
    if start < 0 or end < 0:
        return "unknown"
    return payload[start + len(_FIELD) : end].decode(errors="replace")


class Events(Part):
    """A queue's events."""

    @procedure
    def publish(self, /, event: str, job_id: str, **extras: str) -> Steps[int]:
        """Tell the listeners; how many there were."""
        heard: int = yield Call("PUBLISH", self.keys.events, message(event, job_id, **extras))
        return heard

    def subscribe(self, listener: Connection, handler: EventHandler) -> None:
        """Have ``handler(name, payload)`` called for each event, over a RESP3 connection; kept over reconnects."""
        listener.subscribe(self.keys.events, lambda _, payload: handler(event_name(payload), payload))

    def unsubscribe(self, listener: Connection) -> None:
        """Stop hearing."""
        listener.unsubscribe(self.keys.events)
