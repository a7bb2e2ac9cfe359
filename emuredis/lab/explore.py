"""``explore``: run a small concurrent program under every schedule, and show the one that breaks it.

    async def worker(client):
        job = await client.rpop("queue")
        if job is not None:
            await client.lpush("busy", job)

    found = emuredis.lab.explore(
        [worker, worker], setup=lambda client: client.call("RPUSH", "queue", "job"), crashes=1,
        check=exactly_one_place("job", "queue", "busy"),
    )
    print(found)

Each awaited command is one step, and between any two of them everything else may happen: another actor runs, an actor
crashes, a reply is lost, time goes by. See ``docs/explore.md``.
"""

from __future__ import annotations

import html
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from emuredis.errors import EmulatorError
from emuredis.lab.actors import Actor, ConnectionLost, NativeActor
from emuredis.lab.footprint import conflict, named
from emuredis.lab.oracles import Check, Oracle, State, oracles_of
from emuredis.lab.pictures import to_html, to_jsonl, to_mermaid, to_shiviz, to_svg
from emuredis.lab.search import Judge, Nondeterminism, exhaustive, guided, pct, random_walk
from emuredis.lab.shrink import shrink
from emuredis.lab.timeline import timeline
from emuredis.lab.world import LONGEST, Bounds, Event, World

__all__ = ["Counterexample", "Exploration", "Explorer", "Run", "explore", "parse_token", "replay", "world_of"]

SCHEDULERS = ("exhaustive", "random", "pct")
_PREFIX = "emu1:"


class Run:
    """One run, as it is shown.

    ``message``: what was wrong, "" if nothing was; ``choices``: the schedule; ``labels``: the actors; ``events``: the
    steps; ``start``: what the keys held, by (database, key); ``token``: the schedule as text for `replay`.
    """

    def __init__(self, message: str, world: World) -> None:
        self.message = message
        self.choices = list(world.taken)
        self.labels = [actor.label for actor in world.actors]
        self.events: list[Event] = world.events
        self.start = world.contents_at_start

    @property
    def token(self) -> str:
        return _PREFIX + "".join(self.choices)

    def timeline(self, width: int = 24) -> str:
        """The steps as text: a lane for each actor, time downwards, changed keys at the right."""
        return timeline(self.labels, self.events, width)

    def why(self, step: int) -> str:
        """Why step ``step`` (from 1) stands where it does: the steps of others it cannot be swapped with, and the keys.

        Raises IndexError for a step that there is not.
        """
        if not 0 < step <= len(self.events):
            raise IndexError(f"this run has {len(self.events)} steps, there is no step {step}")
        this = self.events[step - 1]
        found = []
        for number, other in enumerate(self.events, 1):
            if other.choice[0] == this.choice[0]:
                continue
            places = conflict(this.touched, other.touched)
            if places:
                order = "after" if number < step else "before"
                found.append(f"{order} step {number} of {other.actor or 'the clock'}, for {named(places)}")
        what = f"step {step} of {this.actor or 'the clock'}"
        return (
            f"{what} stands " + "; ".join(found)
            if found
            else f"{what} may be swapped with every step of the others"
        )

    def to_html(self, title: str = "A run") -> str:
        """A self-contained page with this run."""
        return to_html(title, "", [("this run", self)])

    def to_svg(self) -> str:
        """The lanes as SVG."""
        return to_svg(self)

    def to_mermaid(self) -> str:
        """A Mermaid sequence diagram."""
        return to_mermaid(self)

    def to_shiviz(self) -> str:
        """A log for ShiViz."""
        return to_shiviz(self)

    def to_jsonl(self) -> str:
        """One JSON object a step."""
        return to_jsonl(self)

    def _repr_html_(self) -> str:
        return _framed(self.to_html())

    def __str__(self) -> str:
        return f"{self.message or 'nothing is wrong'}\n\n{self.timeline()}\n\nreplay with {self.token!r}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.token!r}: {self.message}>"


class Counterexample(Run):
    """A schedule that breaks the program, made as short as could be, and run twice with the same outcome."""


def _framed(page: str) -> str:
    """A page for a notebook."""
    return f'<iframe srcdoc="{html.escape(page)}" style="width:100%;height:36rem;border:0"></iframe>'


class Exploration:
    """What came of exploring. It counts as false if something was wrong, so ``assert explore(...)`` does what it says.

    ``schedules``: those run to their end, ``cut``: those left early because nothing new could come of them,
    ``steps``: commands run in all; ``complete``: no schedule within the bounds was left out; ``failures``: schedules
    that broke the program; ``counterexample``: one of them, shrunk; ``unreached``: names of ``sometimes`` that never
    were.
    """

    def __init__(self) -> None:
        self.schedules = 0
        self.cut = 0
        self.steps = 0
        self.failures = 0
        self.complete = False
        self.counterexample: Counterexample | None = None
        self.example: Run | None = None
        self.unreached: list[str] = []
        self.how = ""

    @property
    def ok(self) -> bool:
        return self.counterexample is None and not self.unreached

    def __bool__(self) -> bool:
        return self.ok

    def assert_ok(self) -> Exploration:
        """Raises AssertionError with the whole report unless everything was well."""
        if not self.ok:
            raise AssertionError(str(self))
        return self

    @property
    def summary(self) -> str:
        """One line, honest about what was not tried."""
        count = f"{self.schedules:,} schedule{'s' * (self.schedules != 1)}"
        if self.complete:
            told = f"{count}, all of them"
        elif self.how:
            told = f"{count}, {self.how}"
        elif self.counterexample is not None:
            told = f"stopped at the first violation, after {count}"
        else:
            told = f"stopped at {self.schedules:,}; not exhaustive"
        if self.cut:
            told += f" ({self.cut:,} more cut short, being the same)"
        if self.failures:
            told += f"; {self.failures:,} broke it"
        elif self.ok:
            told += "; none broke it"
        return told

    def to_html(self, title: str = "Every schedule") -> str:
        """A self-contained page: the counterexample and, beside it, a run that went well."""
        runs: list[tuple[str, Run]] = []
        if self.counterexample is not None:
            runs.append(("the schedule that breaks it", self.counterexample))
        if self.example is not None:
            runs.append(("one that does not" if runs else "one of them", self.example))
        return to_html(title, self.summary, runs)

    def save(self, path: str | Path, title: str = "Every schedule") -> Path:
        """Write `to_html` to a file; its path."""
        target = Path(path)
        target.write_text(self.to_html(title), "utf-8")
        return target

    def _repr_html_(self) -> str:
        return _framed(self.to_html())

    def __str__(self) -> str:
        lines = [self.summary]
        lines += [f"never reached: {name}" for name in self.unreached]
        if self.counterexample is not None:
            lines += ["", str(self.counterexample)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Exploration {self.summary}>"


Program = Callable[..., Any]


def explore(
    actors: Sequence[Program] | Mapping[str, Program],
    *,
    setup: Callable[[Any], Any] | None = None,
    check: Check | Oracle | Sequence[Check | Oracle] | None = None,
    crashes: int = 0,
    lost_replies: int = 0,
    clock_steps: int = 0,
    restarts: int = 0,
    preemptions: int | None = None,
    scheduler: str = "exhaustive",
    schedules: int | None = None,
    seed: int = 0,
    reduce: bool = True,
    hashing: bool = False,
    longest: int = LONGEST,
    every: bool = False,
    allow: Sequence[str] = (),
    config: dict[str, Any] | None = None,
    scripts: Mapping[str, str | bytes] | None = None,
) -> Exploration:
    """Run ``actors`` under many schedules.

    ``actors``: programs, or a dict of them by name. An ``async def`` function with one parameter gets a
    `emuredis.lab.LabClient`; any other function an `emuredis.Redis`, on a thread of its own; see also
    `emuredis.lab.actor`. ``setup`` is called once with a native client and fills the emulator.
    ``check``: called with a `emuredis.lab.State` when nothing can happen any more; it complains by raising
    AssertionError, by a text or by False. Oracles of `emuredis.lab` look at every step. Independent of it, an exception
    that leaves an actor, and actors that wait for ever, are violations, unless ``allow`` names "errors" or "stuck".

    ``crashes``, ``lost_replies``: at most so many in a schedule; ``restarts``: how often each actor comes back.
    ``clock_steps``: how often the clock may move on although somebody could act (when nobody can, it always does).
    ``preemptions``: at most so many switches away from an actor that could go on.
    ``scheduler``: "exhaustive", at most ``schedules`` of them (default: 100,000), or "random" or "pct", so many
    (default: 1,000) from ``seed``. A run of ``longest`` steps that is not at its end is a violation. ``reduce=False``
    also tries schedules that differ only in the order of steps that do not touch the same; ``every=True`` goes on after
    the first violation and counts them.
    ``hashing=True`` leaves a schedule where it comes to a state that was met before (keys, time, and all that each
    actor was told); for checks of states, not of how they were reached, and actors that depend on replies only.
    ``scripts``: sources by name, so that timelines say "claim.lua" instead of a SHA1. ``config``: as for the emulator.

    Raises ValueError for a bad argument, EmulatorError if the program does not do the same in the same schedule.
    """
    numbers = {"crashes": crashes, "lost_replies": lost_replies, "clock_steps": clock_steps, "restarts": restarts,
               "preemptions": preemptions or 0, "longest": longest}  # fmt: skip
    _check_options(scheduler, numbers, allow)
    bounds = Bounds(crashes, lost_replies, clock_steps)
    world = world_of(actors, bounds, setup, seed, restarts, config)
    world.longest = longest
    for name, source in (scripts or {}).items():
        world.emulator.name_script(name, source)
    try:
        return Explorer(world, oracles_of(check), frozenset(allow)).run(
            scheduler, schedules, seed, reduce, preemptions, every, hashing
        )
    except Nondeterminism as problem:
        raise EmulatorError(str(problem)) from None
    finally:
        world.close()


def _check_options(scheduler: str, numbers: Mapping[str, int], allow: Sequence[str]) -> None:
    """Raises ValueError for what `explore` cannot be given."""
    if scheduler not in SCHEDULERS:
        raise ValueError(f"scheduler must be one of {', '.join(SCHEDULERS)}, not {scheduler!r}")
    for name, number in numbers.items():
        if not isinstance(number, int) or number < 0:
            raise ValueError(f"{name} must be a whole number of at least 0, not {number!r}")
    if unknown := set(allow) - {"errors", "stuck"}:
        raise ValueError(f"allow knows 'errors' and 'stuck', not {sorted(unknown)[0]!r}")


def replay(token: str, actors: Sequence[Program] | Mapping[str, Program], *, setup: Callable[[Any], Any] | None = None,
           check: Any = None, restarts: int = 0, seed: int = 0, allow: Sequence[str] = (),
           config: dict[str, Any] | None = None) -> Run:  # fmt: skip
    """Run the schedule that ``token`` names; what came of it.

    The other arguments: as for `explore`. Raises ValueError for what is no token.
    """
    choices = parse_token(token)
    world = world_of(actors, Bounds(len(choices), len(choices), len(choices)), setup, seed, restarts, config)
    try:
        judge = Explorer(world, oracles_of(check), frozenset(allow))
        message = guided(world, choices, judge.judge(), recording=True)
        return Run(message or "", world)
    finally:
        world.close()


def parse_token(token: str) -> list[str]:
    """The choices in a token. Raises ValueError."""
    body = token.removeprefix(_PREFIX)
    choices: list[str] = []
    for letter in body:
        if letter in "!?" and choices and len(choices[-1]) == 1 and choices[-1] != "+":
            choices[-1] += letter
        elif letter == "+" or (letter.isascii() and letter.islower()):
            choices.append(letter)
        else:
            raise ValueError(f"{token!r} is no token of a schedule")
    return choices


def world_of(actors: Any, bounds: Bounds, setup: Any = None, seed: int = 0, restarts: int = 0,
             config: Any = None) -> World:  # fmt: skip
    """The world of these actors."""
    named = _named(actors)

    def make(world: World) -> Iterator[Actor]:
        for index, (label, program) in enumerate(named.items()):
            yield make_actor(world, index, label, restarts, program)

    return World(lambda world: list(make(world)), bounds, setup, seed, config)


def make_actor(world: World, index: int, label: str, restarts: int, program: Program) -> Actor:
    """The driver for a program."""
    maker = getattr(program, "make_actor", None)
    if maker is not None:
        made: Actor = maker(world, index, label, restarts)
        return made
    if inspect.iscoroutinefunction(program):
        return NativeActor(world, index, label, restarts, program)
    from emuredis.lab.threads import ThreadActor

    return ThreadActor(world, index, label, restarts, program)


def _named(actors: Any) -> dict[str, Program]:
    """Programs by name; those of a list are called after their functions, and numbered where that is not enough."""
    if isinstance(actors, Mapping):
        named = dict(actors)
    else:
        names = [getattr(program, "__name__", "actor") for program in actors]
        named = {}
        for at, (name, program) in enumerate(zip(names, actors, strict=True)):
            if names.count(name) > 1:
                name = f"{name} {names[: at + 1].count(name)}"
            named[name] = program
    if not 0 < len(named) <= 26:
        raise ValueError(f"there must be 1 to 26 actors, not {len(named)}")
    return named


class Explorer:
    """Runs a world under a scheduler and judges what comes of it."""

    def __init__(self, world: World, oracles: list[Oracle], allow: frozenset[str]) -> None:
        self.world = world
        self.oracles = oracles
        self.allow = allow
        self.state = State(world)
        self.labels = [actor.label for actor in world.actors]

    def judge(self) -> Judge:
        stepping = [oracle for oracle in self.oracles if oracle.steps]
        ending = [oracle for oracle in self.oracles if oracle.ends]
        state = self.state

        def step(world: World) -> str | None:
            for oracle in stepping:
                if (message := oracle.step(state)) is not None:
                    return message
            return None

        def end(world: World) -> str | None:
            message = self._ended(world)
            for oracle in ending if message is None else ():
                if (message := oracle.end(state)) is not None:
                    return message
            return message

        return Judge(step if stepping else None, end)

    def _ended(self, world: World) -> str | None:
        """What is wrong whatever the program is about."""
        if "errors" not in self.allow:
            for actor in world.actors:
                if actor.error is not None and not isinstance(actor.error, ConnectionLost):
                    return f"{actor.label} ended with {type(actor.error).__name__}: {actor.error}"
        if "stuck" not in self.allow and (stuck := world.stuck):
            names = ", ".join(f"{actor.label} in {_words(actor.pending)}" for actor in stuck)
            return f"stuck for ever: {names}"
        return None

    def run(self, scheduler: str, limit: int | None, seed: int, reduce: bool, preemptions: int | None,
            every: bool, hashing: bool = False) -> Exploration:  # fmt: skip
        world, judge, found = self.world, self.judge(), Exploration()
        if scheduler == "exhaustive":
            limit = 100_000 if limit is None else limit
            world.hashing = hashing
            runs = exhaustive(world, judge, reduce, preemptions, hashing)
        else:
            limit = 1_000 if limit is None else limit
            draw = random_walk if scheduler == "random" else pct
            runs = draw(world, judge, limit, seed)
            found.how = f"drawn by {scheduler!r} from seed {seed}; not exhaustive"
        best, fine = self._count(runs, found, every, limit if scheduler == "exhaustive" else None)
        if preemptions is not None and found.complete:
            found.complete, found.how = False, f"all with at most {preemptions} preemptions; not exhaustive"
        if best is not None:
            found.counterexample = self._explain(*best)
        else:
            found.unreached = [oracle.name for oracle in self.oracles if not oracle.reached]
        if fine is not None:
            guided(world, fine, judge, recording=True)
            found.example = Run("", world)
        return found

    def _count(self, runs: Iterator[str | None], found: Exploration, every: bool,
               limit: int | None) -> tuple[tuple[list[str], str] | None, list[str] | None]:  # fmt: skip
        """Run them all, or up to the first failure, or ``limit``; the shortest that failed, the first that did not."""
        world = self.world
        best: tuple[list[str], str] | None = None
        fine: list[str] | None = None
        for outcome in runs:
            found.steps += len(world.taken)
            if outcome == "cut":
                found.cut += 1
            else:
                found.schedules += 1
                if outcome is None:
                    fine = fine or list(world.taken)
                else:
                    found.failures += 1
                    if best is None or len(world.taken) < len(best[0]):
                        best = list(world.taken), outcome
                    if not every:
                        break
            if limit is not None and found.schedules + found.cut >= limit:
                break
        else:
            found.complete = limit is not None
        return best, fine

    def _explain(self, choices: list[str], message: str) -> Counterexample:
        """The counterexample, as short as it gets, run twice."""
        world, judge = self.world, self.judge()
        choices, message = shrink(world, choices, message, judge)
        runs = []
        for _ in range(2):
            told = guided(world, choices, judge, recording=True)
            runs.append(Counterexample(told or "", world))
        first, second = runs
        if (
            list(map(_seen, first.events)) != list(map(_seen, second.events))
            or first.message != second.message
        ):
            raise Nondeterminism(_unlike(first.events, second.events))
        return second


def _seen(event: Event) -> tuple[Any, ...]:
    return event.choice, event.actor, event.argv, repr(event.reply), event.now_ms


def _unlike(first: list[Event], second: list[Event]) -> str:
    for number, (one, other) in enumerate(zip(first, second, strict=False), 1):
        if _seen(one) != _seen(other):
            return (
                f"the same schedule went two ways at step {number}: {_words(one.argv)} -> {one.reply!r}, then "
                f"{_words(other.argv)} -> {other.reply!r}: something in the program is not under control"
            )
    return (
        "the same schedule was judged in two ways: the check depends on something that is not under control"
    )


def _words(argv: list[bytes]) -> str:
    return " ".join(word.decode("utf-8", "backslashreplace") for word in argv) or "sleep"
