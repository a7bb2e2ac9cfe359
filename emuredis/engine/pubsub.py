"""Channels, patterns and who listens.

A message is put on the engine's outbox at the moment of PUBLISH (which counts its receivers) and handed to
the doors after the unit, so a push never lands inside a reply. Subscriptions are kept in order of arrival: messages
go out in that order, plain channels before patterns, as from the server.

It knows sessions only as the holders of three dicts of names (`KINDS`); what a confirmation looks like is the business
of `emuredis.commands.pubsub`.

Invariant: a session is among the listeners of a name exactly if the name is in the session's own dict, and no name
without listeners is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuredis.patterns import match
from emuredis.replies import Push

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine
    from emuredis.engine.session import Session

__all__ = ["KINDS", "PubSub"]

#: The attributes, of a session as of `PubSub`, that hold subscriptions.
KINDS = ("channels", "patterns", "shard_channels")


class PubSub:
    __slots__ = ("_engine", "channels", "patterns", "shard_channels")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.channels: dict[bytes, dict[Session, None]] = {}
        self.patterns: dict[bytes, dict[Session, None]] = {}
        self.shard_channels: dict[bytes, dict[Session, None]] = {}

    def publish(self, channel: bytes, message: bytes) -> int:
        """Queue the message for every subscriber; how many will get it."""
        outbox = self._engine.outbox
        count = 0
        for session in self.channels.get(channel, ()):
            outbox.append((session, Push([b"message", channel, message])))
            count += 1
        for pattern, sessions in self.patterns.items():
            if match(pattern, channel):
                for session in sessions:
                    outbox.append((session, Push([b"pmessage", pattern, channel, message])))
                    count += 1
        return count

    def publish_shard(self, channel: bytes, message: bytes) -> int:
        """SPUBLISH: as `publish`, for sharded channels."""
        for session in self.shard_channels.get(channel, ()):
            self._engine.outbox.append((session, Push([b"smessage", channel, message])))
        return len(self.shard_channels.get(channel, ()))

    def subscribe(self, kind: str, session: Session, name: bytes) -> None:
        """``kind``: one of `KINDS`. A second subscription to the same name changes nothing."""
        getattr(session, kind)[name] = None
        getattr(self, kind).setdefault(name, {})[session] = None
        session.update_gate()

    def unsubscribe(self, kind: str, session: Session, name: bytes) -> bool:
        """Whether the session was subscribed."""
        if getattr(session, kind).pop(name, 0) == 0:
            return False
        listeners = getattr(self, kind)
        del listeners[name][session]
        if not listeners[name]:
            del listeners[name]
        session.update_gate()
        return True

    def leave(self, session: Session) -> None:
        """Drop every subscription of a session."""
        for kind in KINDS:
            for name in list(getattr(session, kind)):
                self.unsubscribe(kind, session, name)
