"""What a lesson is made of."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from emuredis.lab.explore import Exploration, explore

__all__ = ["Lesson", "Variant"]


@dataclass(frozen=True)
class Variant:
    """A program: ``actors`` by name, how it begins, what must hold, how much may go wrong. ``says``: one sentence."""

    says: str
    actors: dict[str, Callable[[Any], Any]]
    setup: Callable[[Any], Any] | None = None
    check: Any = None
    crashes: int = 0
    lost_replies: int = 0
    clock_steps: int = 0
    allow: tuple[str, ...] = ()
    scripts: dict[str, str] = field(default_factory=dict)

    @property
    def code(self) -> str:
        """The source of the programs and the scripts, for the reader."""
        parts = [f"-- {name}\n{textwrap.dedent(source).strip()}" for name, source in self.scripts.items()]
        programs = dict.fromkeys(self.actors.values())
        parts += [textwrap.dedent(inspect.getsource(program)).strip() for program in programs]
        return "\n\n".join(parts)

    def explore(self) -> Exploration:
        """Every schedule within the bounds."""
        return explore(
            self.actors, setup=self.setup, check=self.check, crashes=self.crashes, lost_replies=self.lost_replies,
            clock_steps=self.clock_steps, allow=self.allow, scripts=self.scripts, every=True,
        )  # fmt: skip


@dataclass(frozen=True)
class Lesson:
    """``number`` counts from 1; ``text`` introduces; ``task``: what to try; ``forbidden``: what must not come to be."""

    number: int
    title: str
    text: str
    task: str
    forbidden: str
    broken: Variant
    right: Variant
    moral: str

    def variant(self, name: str) -> Variant:
        """``broken`` or ``right``. Raises ValueError for another name."""
        if name not in ("broken", "right"):
            raise ValueError(f"a lesson has the variants broken and right, not {name!r}")
        found: Variant = getattr(self, name)
        return found
