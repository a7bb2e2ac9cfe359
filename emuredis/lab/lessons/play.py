"""One game of a lesson: choices made so far, what they led to, what may be chosen next.

Nothing is kept but the choices: each look runs them again, so going back is leaving the last one out, and a game is as
good as its token.
"""

from __future__ import annotations

from typing import Any

from emuredis.lab.actors import SLEEPING
from emuredis.lab.explore import Explorer, Run, parse_token, world_of
from emuredis.lab.lessons.lesson import Lesson
from emuredis.lab.oracles import oracles_of
from emuredis.lab.timeline import shown
from emuredis.lab.world import CLOCK, Bounds, Event, World

__all__ = ["Play"]


class Play:
    """``lesson`` in one of its variants, ``broken`` or ``right``. Close it, or use it in a ``with`` statement."""

    def __init__(self, lesson: Lesson, variant: str = "broken", token: str = "") -> None:
        self.lesson = lesson
        self.name = variant
        self.variant = one = lesson.variant(variant)
        self._world = world_of(one.actors, Bounds(one.crashes, one.lost_replies, one.clock_steps), one.setup)
        for name, source in one.scripts.items():
            self._world.emulator.name_script(name, source)
        self._judge = Explorer(self._world, oracles_of(one.check), frozenset(one.allow)).judge()
        self.message: str | None = None
        self.run: Run
        self._go(parse_token(token))

    @property
    def choices(self) -> list[tuple[str, str]]:
        """What may happen next: (choice, what it means); empty when the game is over."""
        if self.message is not None:
            return []
        return [(choice, meaning(self._world, choice)) for choice in self._world.choices()]

    @property
    def token(self) -> str:
        return "".join(self._world.taken)

    @property
    def over(self) -> bool:
        return not self.choices

    @property
    def state(self) -> dict[tuple[int, bytes], Any]:
        """What the keys hold, by (database, key)."""
        return self._world.contents()

    def take(self, choice: str) -> None:
        """Make a choice. Raises ValueError for one that there is not."""
        if choice not in [known for known, _ in self.choices]:
            raise ValueError(f"{choice!r} cannot be chosen now")
        self._go([*self._world.taken, choice])

    def undo(self) -> None:
        """Take the last choice back; does nothing at the beginning."""
        self._go(self._world.taken[:-1])

    def restart(self) -> None:
        self._go([])

    def _go(self, choices: list[str]) -> None:
        """Begin anew and make these choices, as far as they are possible."""
        world = self._world
        world.begin(recording=True)
        self.message = None
        for choice in list(choices):
            if self.message is not None or choice not in world.choices():
                break
            world.perform(choice)
            if self._judge.step is not None:
                self.message = self._judge.step(world)
        if self.message is None and not world.choices():
            self.message = self._judge.end(world)
        self.run = Run(self.message or "", world)

    def close(self) -> None:
        self._world.close()

    def __enter__(self) -> Play:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def meaning(world: World, choice: str) -> str:
    """A choice in words."""
    if choice == CLOCK:
        due = world.due_ns()
        assert due is not None
        return f"let time pass: {(due - world.engine.now_ns()) // 1_000_000} ms, to what is due next"
    actor = world.by_name[choice[0]]
    if choice[1:] == "!":
        where = "while it sleeps" if actor.state == SLEEPING else f"before {_next(world, choice)}"
        return f"{actor.label} crashes, {where}"
    said = f"{actor.label}: {_next(world, choice)}"
    return f"{said}, but the reply is lost" if choice[1:] == "?" else said


def _next(world: World, choice: str) -> str:
    actor = world.by_name[choice[0]]
    event = Event(choice, actor.label, actor.pending, None, 0, script=world.script_name(actor.pending))
    if event.script:
        return f"{event.script} {shown(event.argv[3:])}".strip()
    return shown(event.argv)
