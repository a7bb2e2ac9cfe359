"""Backoff policies: the protocol's vectors and their bounds."""

from __future__ import annotations

import pytest

from echomq.backoff import Exponential, Fixed, Jitter
from echomq.clock import new_random
from echomq.errors import ArgumentError

RNG = new_random(1)


@pytest.mark.parametrize(("attempts", "ms"), [(1, 100), (2, 200), (3, 400), (4, 800), (20, 10_000)])
def test_exponential(attempts: int, ms: int) -> None:
    assert Exponential(100, 10_000).delay_ms(attempts, RNG) == ms


@pytest.mark.parametrize("attempts", [5, 50, 5000])
def test_exponential_stops_at_its_cap(attempts: int) -> None:
    assert Exponential(100, 1000).delay_ms(attempts, RNG) == 1000


def test_fixed() -> None:
    assert [Fixed(70).delay_ms(n, RNG) for n in (1, 2, 90)] == [70, 70, 70]


def test_jitter_covers_its_whole_range() -> None:
    assert {Jitter(Fixed(3)).delay_ms(1, RNG) for _ in range(200)} == {0, 1, 2, 3}
    assert Jitter(Fixed(0)).delay_ms(1, RNG) == 0
    assert 0 <= Jitter(Exponential(100, 10_000)).delay_ms(50, RNG) <= 10_000


@pytest.mark.parametrize("make", [lambda: Fixed(-1), lambda: Exponential(0, 5), lambda: Exponential(5, 0)])
def test_bounds(make: object) -> None:
    with pytest.raises(ArgumentError):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("policy", [Fixed(1), Exponential(1, 2), Jitter(Fixed(1))])
def test_attempts_count_from_one(policy: Fixed) -> None:
    with pytest.raises(ArgumentError):
        policy.delay_ms(0, RNG)
