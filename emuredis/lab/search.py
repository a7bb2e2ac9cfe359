"""Which schedules to try: all of them, or some.

`exhaustive` walks the tree of choices depth first, running every schedule from its beginning. With ``reduce`` it
leaves out what cannot matter, by *sleep sets*: a choice that was tried at a node need not be tried again below one of
its siblings until something it conflicts with has happened. Of all schedules that differ in the order of independent
steps only, one is run to its end; every state in which a program can end is still reached.

`random_walk` and `pct` draw schedules from a seed; `guided` follows a list of choices as far as it can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from emuredis.clock import new_random
from emuredis.lab.footprint import Footprint, conflict
from emuredis.lab.world import CLOCK, World

__all__ = ["Nondeterminism", "drawn", "exhaustive", "guided", "pct", "random_walk"]

#: Called after a step of a run, or at its end; a text ends the run as a failure.
Watch = Callable[[World], str | None]


class Judge:
    """What is looked at: ``step`` after each step (None: nothing), ``end`` when nothing can happen any more."""

    __slots__ = ("end", "step")

    def __init__(self, step: Watch | None, end: Watch) -> None:
        self.step = step
        self.end = end


class Nondeterminism(Exception):
    """The same choices led to another command than before: something in the program is not under control."""


class Node:
    """A state on the path being tried. ``todo``: choices left; ``asleep``: choices that need not be tried, and what
    they touch."""

    __slots__ = ("asleep", "choice", "pending", "todo")

    def __init__(self, todo: list[str], asleep: dict[str, Footprint], pending: tuple[Any, ...]) -> None:
        self.todo = todo
        self.asleep = asleep
        self.pending = pending
        self.choice = ""


def exhaustive(
    world: World, judge: Judge, reduce: bool = True, preemptions: int | None = None, hashing: bool = False
) -> Iterator[str | None]:
    """Run schedule after schedule. Yields after each: None, ``"cut"`` if it was left before its end since nothing new
    can come of it, or what the judge said.

    ``hashing``: a state that was met before is left, if everything that was awake then has been tried.
    """
    tree = _Tree(world, judge, reduce and preemptions is None, preemptions, {} if hashing else None)
    while True:
        yield tree.run()
        while tree.path and not tree.path[-1].todo:
            tree.path.pop()
        if not tree.path:
            return


class _Tree:
    """The tree of choices, of which ``path`` is what the last run took. ``met``: states and what was asleep there."""

    def __init__(self, world: World, judge: Judge, reduce: bool, preemptions: int | None,
                 met: dict[Any, list[frozenset[str]]] | None) -> None:  # fmt: skip
        self.world = world
        self.judge = judge
        self.reduce = reduce
        self.preemptions = preemptions
        self.met = met
        self.path: list[Node] = []

    def run(self) -> str | None:
        """Go along the path, take the next choice at its end, and whatever comes first from there on."""
        world, judge, path, reduce = self.world, self.judge, self.path, self.reduce
        world.begin()
        asleep: dict[str, Footprint] = {}
        depth = 0
        while True:
            if depth < len(path):
                node = path[depth]
                if node.pending != _pending(world):
                    raise Nondeterminism(_difference(node.pending, _pending(world), world))
                if depth == len(path) - 1:
                    node.choice = node.todo.pop(0)
            else:
                todo = _allowed(world, self.preemptions)
                if asleep:
                    todo = [choice for choice in todo if choice not in asleep]
                if not todo:
                    return "cut" if asleep and world.choices() else judge.end(world)
                if self.met is not None and _met_before(self.met, world, frozenset(asleep)):
                    return "cut"
                node = Node(todo, asleep, _pending(world))
                node.choice = todo.pop(0)
                path.append(node)
            choice = node.choice
            touched = world.perform(choice)
            asleep = _still_asleep(node.asleep, choice, touched) if reduce else {}
            if reduce and depth == len(path) - 1:
                node.asleep = {**node.asleep, choice: touched}
            depth += 1
            if judge.step is not None and (outcome := judge.step(world)) is not None:
                return outcome
            if depth >= world.longest:
                return endless(world)


def endless(world: World) -> str:
    """What is wrong with a run that has as many steps as a run may have."""
    return f"it goes on for ever: not at its end after {world.longest:,} steps"


def _met_before(met: dict[Any, list[frozenset[str]]], world: World, asleep: frozenset[str]) -> bool:
    """Whether this state was met with no more choices asleep than now; it is noted otherwise."""
    known = met.setdefault(world.identity(), [])
    if any(before <= asleep for before in known):
        return True
    known.append(asleep)
    return False


def _allowed(world: World, preemptions: int | None) -> list[str]:
    """The choices, without those that would take the turn from an actor once too often."""
    choices = world.choices()
    if preemptions is None or world.last is None or world.last.name not in choices:
        return choices
    if world.preempted < preemptions:
        return choices
    return [choice for choice in choices if choice[0] == world.last.name]


def _pending(world: World) -> tuple[Any, ...]:
    return tuple([actor.pending if actor.state == "pending" else actor.state for actor in world.actors])


def _difference(before: tuple[Any, ...], now: tuple[Any, ...], world: World) -> str:
    for actor, old, new in zip(world.actors, before, now, strict=True):
        if old != new:
            return (
                f"after the same {len(world.taken)} choices ({' '.join(world.taken)}) actor {actor.label} did {old!r} "
                f"before and {new!r} now: something in the program is not under the scheduler's control (real time, "
                "randomness, the order of a set, state kept between runs)"
            )
    return "the same choices led to another state"


def _still_asleep(asleep: dict[str, Footprint], choice: str, touched: Footprint) -> dict[str, Footprint]:
    """Those that can be swapped with the step just taken."""
    return {
        other: print_ for other, print_ in asleep.items() if not dependent(other, print_, choice, touched)
    }


def dependent(one: str, its: Footprint, other: str, theirs: Footprint) -> bool:
    """Whether the order of two choices may matter."""
    if one == CLOCK or other == CLOCK or one[0] == other[0]:
        return True
    if one[1:] and one[1:] == other[1:]:
        return True  # there may be only so many of the kind
    return bool(conflict(its, theirs))


def guided(world: World, choices: Sequence[str], judge: Judge, recording: bool = False) -> str | None:
    """Follow ``choices``, passing over those that are not there; then each actor in turn to its end, without faults.

    What the judge said, or None. `World.taken` tells what was really done.
    """
    world.begin(recording)
    step = judge.step
    for choice in choices:
        if choice in world.choices():
            world.perform(choice)
            if step is not None and (outcome := step(world)) is not None:
                return outcome
    return _finish(world, judge)


def _finish(world: World, judge: Judge) -> str | None:
    """Each actor in turn to its end, without faults; what the judge said, or None."""
    while found := [choice for choice in world.choices() if choice == CLOCK or len(choice) == 1]:
        if len(world.taken) >= world.longest:
            return endless(world)
        last = world.last
        world.perform(last.name if last is not None and last.name in found else found[0])
        if judge.step is not None and (outcome := judge.step(world)) is not None:
            return outcome
    return judge.end(world)


def drawn(world: World, picks: Sequence[int], judge: Judge) -> str | None:
    """At each step the choice that the next of ``picks`` names, counted around; 0 keeps to the actor that ran last.

    When they are used up, each actor in turn to its end, without faults. What the judge said, or None.
    """
    world.begin(recording=True)
    for pick in picks:
        choices = world.choices()
        if not choices:
            break
        if world.last is not None and world.last.name in choices:
            choices = [world.last.name, *(choice for choice in choices if choice != world.last.name)]
        world.perform(choices[pick % len(choices)])
        if judge.step is not None and (outcome := judge.step(world)) is not None:
            return outcome
    return _finish(world, judge)


def random_walk(world: World, judge: Judge, schedules: int, seed: int) -> Iterator[str | None]:
    """``schedules`` runs in which every choice is as likely as any other at its node."""
    rng = new_random(seed)
    for _ in range(schedules):
        world.begin()
        outcome = None
        while outcome is None and (choices := world.choices()):
            world.perform(rng.choice(choices))
            outcome = judge.step(world) if judge.step is not None else None
            if len(world.taken) >= world.longest:
                outcome = outcome or endless(world)
        yield judge.end(world) if outcome is None else outcome


def pct(world: World, judge: Judge, schedules: int, seed: int, depth: int = 3) -> Iterator[str | None]:
    """``schedules`` runs by random priorities that change at ``depth - 1`` random places: few switches, well placed.

    A fault of a depth of so many orderings is found with a probability of at least 1/(actors * steps^(depth - 1)).
    """
    rng = new_random(seed)
    longest = 8
    for _ in range(schedules):
        world.begin()
        ranks: dict[str, float] = {}
        changes = {rng.randrange(longest) for _ in range(depth - 1)}
        outcome, at = None, 0
        while outcome is None and (choices := world.choices()):
            for choice in choices:
                if choice not in ranks:
                    ranks[choice] = rng.random()
            best = max(choices, key=lambda choice: ranks[choice])
            if at in changes:
                ranks[best] = -rng.random()
                best = max(choices, key=lambda choice: ranks[choice])
            world.perform(best)
            outcome = judge.step(world) if judge.step is not None else None
            if len(world.taken) >= world.longest:
                outcome = outcome or endless(world)
            at += 1
        longest = max(longest, at)
        yield judge.end(world) if outcome is None else outcome
