"""What the demo prints: a live progress line, the timeline of set sizes, the audit."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .play import Result, Sample

__all__ = ["Progress", "print_run", "timeline"]

ROWS = 14
BAR = 24


class Progress:
    """One line that is rewritten on a terminal; silent elsewhere, so that a log stays readable."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()

    def show(self, sample: Sample, enqueued: int) -> None:
        if self._live:
            sys.stderr.write(
                f"\r  {_clock(sample.at_s)}  {sample.completed}/{enqueued} completed, {sample.schedule} scheduled, "
                f"{sample.pending} pending, {sample.active} active, {sample.dead} dead \033[K"
            )
            sys.stderr.flush()

    def end(self) -> None:
        if self._live:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def print_run(result: Result) -> None:
    """The report of one run."""
    print(f"notifications through {result.url}")
    print(f"  {result.refused}")
    print(f"  {result.notices} notices, {result.enqueued} jobs: {result.deferred} put off by the rate limit, "
          f"{result.retried} retries, {result.crashed} worker died, {result.reaped} lease reaped")  # fmt: skip
    for job_id, error in result.poison:
        print(f"  {job_id} is dead: {error}")
    print("\n".join(timeline(result.samples)))
    lost = "none lost" if not result.lost else "LOST: " + ", ".join(result.lost)
    twice = "none twice" if not result.twice else "TWICE: " + ", ".join(result.twice)
    equal = "=" if result.enqueued == result.completed + result.dead else "IS NOT"
    books = f"{result.enqueued} enqueued {equal} {result.completed} completed + {result.dead} dead"
    print(f"  audit: {books}, {lost}, {twice}")
    print(f"  {_clock(result.schedule_s)} of schedule, {result.round_trips} round trips "
          f"({result.round_trips / max(1, result.enqueued):.1f} a job)\n")  # fmt: skip


def timeline(samples: Sequence[Sample]) -> list[str]:
    """A table: in each stretch of time, the moment with most jobs waiting."""
    if not samples:
        return []
    end = samples[-1].at_s or 1.0
    chosen: dict[int, Sample] = {}
    for sample in samples:
        stretch = min(ROWS - 1, int(sample.at_s / end * ROWS))
        best = chosen.get(stretch)
        if best is None or sample.pending >= best.pending:
            chosen[stretch] = sample
    most = max(sample.schedule + sample.pending for sample in samples) or 1
    lines = [f"    {'time':>7} {'schedule':>9} {'pending':>8} {'active':>7} {'dead':>5} {'completed':>10}"]
    for sample in chosen.values():
        bar = "." * round(sample.schedule / most * BAR) + "#" * round(sample.pending / most * BAR)
        sizes = f"{sample.schedule:>9} {sample.pending:>8} {sample.active:>7} {sample.dead:>5} {sample.completed:>10}"
        lines.append(f"    {_clock(sample.at_s):>7} {sizes}  {bar}".rstrip())
    return lines


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"
