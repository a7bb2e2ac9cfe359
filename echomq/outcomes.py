"""What a handler may say about a job it was given."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import non_negative_int

__all__ = ["Delay", "Done", "Failed", "Outcome"]


@dataclass(frozen=True, slots=True)
class Done:
    """The job is finished; a flow child's ``result`` reaches its parent."""

    result: bytes | str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The job failed: retried with backoff, or dead at its last attempt."""

    reason: str


@dataclass(frozen=True, slots=True)
class Delay:
    """Not now: again after ``ms``, without using an attempt up."""

    ms: int

    def __post_init__(self) -> None:
        non_negative_int("ms", self.ms)


Outcome = Done | Failed | Delay
