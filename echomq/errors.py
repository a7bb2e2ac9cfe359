"""Every exception of the package, and the verdicts that are answers rather than errors.

A refusal that is part of the protocol (a duplicate, a stale token, a job that is gone) is a `Verdict`:
a worker meets them every day and branches on them. An exception means that the question could not be
asked or that the server said something no verdict covers.

A server's error reply becomes a `ServerError`; its first word (`code`) is what clients may branch on.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

__all__ = [
    "ArgumentError",
    "AuthRefused",
    "BootRefused",
    "CallTimeout",
    "ConnectionClosed",
    "ConnectionTrouble",
    "Disconnected",
    "EchoError",
    "Overloaded",
    "ProtocolError",
    "RequiresResp3",
    "ServerError",
    "ShaMismatch",
    "Unreachable",
    "Verdict",
    "VersionFence",
    "non_negative_int",
    "positive_int",
    "verdict_of",
]


class Verdict(StrEnum):
    """The word a call answers with when it is not a value (protocol: verdict table)."""

    ENQUEUED = "enqueued"
    DUPLICATE = "duplicate"
    KIND = "kind"
    SCHEDULED = "scheduled"
    DEAD = "dead"
    OK = "ok"
    GONE = "gone"
    STALE = "stale"
    LOCKED = "locked"
    NOT_DEAD = "not_dead"
    NOT_PAUSED = "not_paused"
    ACTIVE = "active"
    RATE = "rate"
    MORE = "more"
    SAME = "same"
    NOT_PENDING = "not_pending"
    REGISTERED = "registered"
    EXISTS = "exists"
    CANCELLED = "cancelled"
    ABSENT = "absent"
    ADVANCED = "advanced"
    NONMONOTONIC = "nonmonotonic"


class EchoError(Exception):
    """Base of everything this package raises on purpose."""


class ArgumentError(EchoError, ValueError):
    """An argument that is refused before anything is sent."""


class ServerError(EchoError):
    """An error reply. ``code`` is its first word, ``message`` the whole text."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.code = message.split(" ", 1)[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ServerError) and other.message == self.message

    def __hash__(self) -> int:
        return hash((ServerError, self.message))


class ProtocolError(EchoError):
    """Bytes that are not RESP, or a frame this client does not take."""


class ShaMismatch(EchoError):
    """SCRIPT LOAD answered another digest than the source has."""


class RequiresResp3(EchoError):
    """Publish/subscribe was asked for on a RESP2 connection."""


class ConnectionTrouble(EchoError):
    """The connection cannot answer now; another try may succeed."""


class Disconnected(ConnectionTrouble):
    """The connection was lost; the command may or may not have been carried out."""


class CallTimeout(ConnectionTrouble):
    """No reply in time; the command may or may not have been carried out."""


class Overloaded(ConnectionTrouble):
    """Too many commands in flight; nothing was sent."""


class ConnectionClosed(EchoError):
    """The owner closed this connection."""


class BootError(EchoError):
    """The server refused this client; trying again would not help."""


class Unreachable(ConnectionTrouble):
    """Nobody answers at the address."""


class AuthRefused(BootError):
    """Wrong or missing password."""


class BootRefused(BootError):
    """SELECT, CLIENT SETNAME or another boot command was refused."""


class VersionFence(BootError):
    """The store belongs to another wire version."""

    def __init__(self, wanted: str, found: object) -> None:
        super().__init__(f"version fence: the store holds {found!r}, this client speaks {wanted!r}")
        self.wanted = wanted
        self.found = found


def verdict_of(error: ServerError, verdicts: Mapping[str, Verdict]) -> Verdict:
    """The verdict for the error's first word; an error without one is raised again."""
    verdict = verdicts.get(error.code)
    if verdict is None:
        raise error
    return verdict


def positive_int(name: str, value: object) -> int:
    """``value`` if it is an int above 0, else ArgumentError naming it."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ArgumentError(f"{name} must be a positive integer, not {value!r}")
    return value


def non_negative_int(name: str, value: object) -> int:
    """``value`` if it is an int of at least 0, else ArgumentError naming it."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ArgumentError(f"{name} must be a non-negative integer, not {value!r}")
    return value
