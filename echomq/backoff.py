"""How long to wait before the next attempt: pure policies, no clock and no server.

`attempts` is the attempt that just failed, counted from 1, so the first retry of an exponential policy
waits its base. The caller passes the delay to `retry` as a literal number of milliseconds.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Protocol

from .errors import ArgumentError, non_negative_int, positive_int

__all__ = ["Backoff", "Exponential", "Fixed", "Jitter"]


class Backoff(Protocol):
    """A policy: the delay in milliseconds after attempt number ``attempts`` failed."""

    def delay_ms(self, attempts: int, rng: random.Random) -> int: ...


def _attempt(attempts: int) -> int:
    if attempts < 1:
        raise ArgumentError(f"attempts counts from 1, not {attempts!r}")
    return attempts


@dataclass(frozen=True, slots=True)
class Fixed:
    """The same delay every time."""

    ms: int

    def __post_init__(self) -> None:
        non_negative_int("ms", self.ms)

    def delay_ms(self, attempts: int, rng: random.Random) -> int:
        _attempt(attempts)
        return self.ms


@dataclass(frozen=True, slots=True)
class Exponential:
    """base · 2^(attempts-1), at most cap; exact for any number of attempts."""

    base: int
    cap: int

    def __post_init__(self) -> None:
        positive_int("base", self.base)
        positive_int("cap", self.cap)

    def delay_ms(self, attempts: int, rng: random.Random) -> int:
        return min(self.base << (_attempt(attempts) - 1), self.cap)


@dataclass(frozen=True, slots=True)
class Jitter:
    """A whole number drawn evenly from 0 … the inner policy's delay, both included."""

    inner: Backoff

    def delay_ms(self, attempts: int, rng: random.Random) -> int:
        return rng.randint(0, self.inner.delay_ms(attempts, rng))
