"""Schedules for Hypothesis: drawn, and shrunk, by it.

    @given(schedules())
    def test_it(schedule):
        assert not schedule.run([worker, worker], setup=..., check=..., crashes=1).message

Worth while where other things are drawn too (how many jobs, which commands); to try every schedule of one program
there is `emuredis.lab.explore`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from emuredis.lab.explore import Explorer, Run, world_of
from emuredis.lab.oracles import oracles_of
from emuredis.lab.search import drawn
from emuredis.lab.world import Bounds

__all__ = ["Schedule", "schedules"]


class Schedule:
    """Which of the choices there are is taken, step by step; when the picks are used up, each actor goes on in turn."""

    def __init__(self, picks: Sequence[int]) -> None:
        self.picks = list(picks)

    def run(self, actors: Sequence[Callable[..., Any]] | Mapping[str, Callable[..., Any]], *,
            setup: Callable[[Any], Any] | None = None, check: Any = None, crashes: int = 0, lost_replies: int = 0,
            clock_steps: int = 0, restarts: int = 0, allow: Sequence[str] = ()) -> Run:  # fmt: skip
        """One run of the program; its ``message`` is "" if nothing was wrong. The arguments: as for `explore`."""
        world = world_of(actors, Bounds(crashes, lost_replies, clock_steps), setup, 0, restarts)
        try:
            message = drawn(world, self.picks, Explorer(world, oracles_of(check), frozenset(allow)).judge())
            return Run(message or "", world)
        finally:
            world.close()

    def __repr__(self) -> str:
        return f"Schedule({self.picks})"


def schedules(longest: int = 40) -> st.SearchStrategy[Schedule]:
    """Schedules that choose at the first ``longest`` steps at most; the simplest never switches and has no faults."""
    return st.lists(st.integers(0, 30), max_size=longest).map(Schedule)
