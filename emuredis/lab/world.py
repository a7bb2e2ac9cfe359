"""One run of a program under a scheduler: what may happen next, and making it happen.

A *choice* is a short text: ``a`` the actor of that name runs its next command, ``a!`` it crashes at this gap, ``a?`` it
runs the command but the reply is lost, ``+`` the clock moves to the next instant at which something is due. Everything
else follows: blocked actors are served as on the server, what an actor does between two commands is its own business.

A `World` is used for many runs; `begin` puts the emulator back to what ``setup`` left. It decides nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from emuredis.clock import ManualClock
from emuredis.emulator import Emulator
from emuredis.engine.engine import Engine
from emuredis.errors import ReplyError
from emuredis.keys import keys_of
from emuredis.lab.actors import PARKED, PENDING, SLEEPING, Actor
from emuredis.lab.contents import Content, contents
from emuredis.lab.footprint import EVERYTHING, NOTHING, Footprint, footprint
from emuredis.replies import BLOCKED, Reply
from emuredis.scripting.watch import Observer, Run, observe, unobserve
from emuredis.spec import Command

if TYPE_CHECKING:
    from emuredis.engine.session import Session

__all__ = ["CLOCK", "Bounds", "Event", "World"]

CLOCK = "+"
FOOTPRINTS_MOST = 10_000
LONGEST = 1_000
_EVALS = frozenset((b"EVAL", b"EVALSHA", b"EVAL_RO", b"EVALSHA_RO"))


#: The world whose run is on, if one is.
CURRENT: World | None = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many crashes, lost replies and early clock steps a schedule may have."""

    crashes: int = 0
    lost_replies: int = 0
    clock_steps: int = 0


@dataclass(slots=True)
class Event:
    """One step of a run, as it is kept for people. ``served``: names of actors whose blocked command it answered.

    ``calls``: (argv, reply) of what a script called; ``changes``: key to (before, after).
    """

    choice: str
    actor: str
    argv: list[bytes]
    reply: Any
    now_ms: int
    served: list[tuple[str, list[bytes], Any]] = field(default_factory=list)
    calls: list[tuple[list[bytes], Any]] = field(default_factory=list)
    changes: dict[tuple[int, bytes], tuple[Content | None, Content | None]] = field(default_factory=dict)
    problem: str = ""  # an exception that ended the actor
    script: str = ""  # the name of the script it runs, if it has one
    touched: Footprint = NOTHING


class _Calls(Observer):
    """Collects what scripts really touch."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.calls = 0

    def begin(self, run: Run) -> None:
        self.calls = 0

    def before_call(self, run: Run, argv: list[bytes], cmd: Command | None) -> None:
        world = self._world
        if world.watching:
            self.calls += 1
            world.longest_script = max(world.longest_script, self.calls)
            world.touched = world.touched | footprint(world.engine, run.runtime.bridge.session, cmd, argv)

    def after_call(self, run: Run, argv: list[bytes], reply: Reply, told: bytes | None) -> None:
        world = self._world
        if world.recording and world.events:
            world.events[-1].calls.append((argv, ReplyError(told) if told is not None else reply))


class World:
    """``make(world)`` gives the actors; ``setup(client)`` fills the emulator once."""

    def __init__(self, make: Callable[[World], Sequence[Actor]], bounds: Bounds, setup: Callable[[Any], Any] | None,
                 seed: int = 0, config: dict[str, Any] | None = None) -> None:  # fmt: skip
        self.emulator = Emulator(clock=ManualClock(autojump=False), seed=seed, config=config)
        self.engine: Engine = self.emulator.engine
        self.bounds = bounds
        self.touched = NOTHING
        self.watching = True  # footprints are wanted
        self.hashing = False  # `identity` is wanted
        self.longest = LONGEST  # steps that a run may have
        self.recording = False
        self.contents_at_start: dict[tuple[int, bytes], Content | None] = {}
        self.events: list[Event] = []
        self.served: list[Actor] = []
        self.pushes: list[tuple[str, Any]] = []
        self.operations: list[Any] = []  # see emuredis.lab.history
        self.acting: Actor | None = None  # whose code is running
        self.began_ns = self.last_crash_ns = self.longest_script = 0
        self.runs = 0
        self._footprints: dict[tuple[Any, ...], Footprint] = {}
        self.crashes = self.lost = self.steps = 0
        self.preempted = 0  # how often an actor lost its turn although it could go on
        self.taken: list[str] = []
        self.last: Actor | None = None
        self._choices: list[str] | None = None
        self._calls = _Calls(self)
        observe(self._calls, self.engine)
        if setup is not None:
            with self.emulator.client(protocol=2) as client:
                setup(client)
        self.start = self.emulator.snapshot()
        self._scripts: list[Any] = [] if self.engine.scripting is None else self.engine.scripting.known()
        self._connections = self.engine.connections
        clock: Any = self.engine.clock
        clock.attach(self)
        self.actors = list(make(self))
        self._threaded = any(type(actor).woken is not Actor.woken for actor in self.actors)
        self.by_name = {actor.name: actor for actor in self.actors}

    # -- a run ----------------------------------------------------------------------------------

    def begin(self, recording: bool = False) -> None:
        """Start anew."""
        global CURRENT
        self.end()
        CURRENT = self
        self.runs += 1
        self.recording = recording
        self.engine.connections = self._connections
        self._reset()
        if recording:
            self.contents_at_start = self.contents()
        self.events, self.taken, self.pushes, self.served = [], [], [], []
        self._choices = None
        self.operations, self.longest_script = [], 0
        self.began_ns = self.last_crash_ns = self.engine.now_ns()
        self.crashes = self.lost = self.steps = self.preempted = 0
        self.last = None
        for actor in self.actors:
            actor.incarnation, actor.heard = 0, None
            actor.restarts_left = actor.restarts
            actor.start()
        self._settle()

    def end(self) -> None:
        for actor in self.actors if hasattr(self, "actors") else ():
            actor.stop()

    def _reset(self) -> None:
        engine = self.engine
        if engine.scripting is not None:
            engine.scripting.reset(self._scripts)
        self.emulator.restore(self.start)

    def close(self) -> None:
        global CURRENT
        self.end()
        CURRENT = None
        unobserve(self._calls, self.engine)

    # -- what may happen -----------------------------------------------------------------------

    def choices(self) -> list[str]:
        """Every choice there is now, in a fixed order; empty when the run is over or stuck."""
        if self._choices is None:
            self._choices = self._find_choices()
        return self._choices

    def _find_choices(self) -> list[str]:
        running = [actor.name for actor in self.actors if actor.state == PENDING]
        found = list(running)
        if (not running or self.steps < self.bounds.clock_steps) and self.due_ns() is not None:
            found.append(CLOCK)
        if self.crashes < self.bounds.crashes:
            found += [actor.name + "!" for actor in self.actors if not actor.over]
        if self.lost < self.bounds.lost_replies:
            found += [name + "?" for name in running]
        return found

    def due_ns(self) -> int | None:
        """The next instant at which something happens by itself."""
        clock: Any = self.engine.clock
        due: int | None = clock.next_due_ns()
        return due

    @property
    def stuck(self) -> list[Actor]:
        """Actors that wait for what will never come; meaningful when there is no choice left."""
        return [actor for actor in self.actors if actor.state in (PARKED, SLEEPING)]

    # -- making it happen ----------------------------------------------------------------------

    def perform(self, choice: str) -> Footprint:
        """Make ``choice`` happen; what that touched."""
        touched = self._perform(choice)
        if self.recording:
            self.events[-1].touched = touched
        return touched

    def _perform(self, choice: str) -> Footprint:
        self.taken.append(choice)
        self._choices = None
        self.touched = NOTHING
        if choice == CLOCK:
            self._clock()
            return EVERYTHING
        actor = self.by_name[choice[0]]
        if self.last is not None and self.last is not actor and self.last.state == PENDING:
            self.preempted += 1
        self.last = actor
        if choice[1:] == "!":
            return self._crash(actor, choice)
        argv = actor.pending
        if self.recording:
            self._note(choice, actor.label, argv)
        if choice[1:] == "?":
            self.lost += 1
            answered = actor.lose()
        else:
            answered = actor.execute()
        if self.recording:
            self._note_reply("lost" if choice[1:] else actor.reply if answered else BLOCKED)
        if answered:
            actor.take()
            self._note_end(actor)
        self._settle()
        return self.touched

    def _crash(self, actor: Actor, choice: str) -> Footprint:
        if self.recording:
            self._note(choice, actor.label, [])
        self.crashes += 1
        self.last_crash_ns = self.engine.now_ns()
        for session in actor.sessions:
            if session.waiter is not None:
                self.touched |= _waited(session.waiter)
            if session.subscriptions:
                self.touched = EVERYTHING
        actor.crash()
        if actor.restarts_left:
            actor.restarts_left -= 1
            actor.incarnation += 1
            actor.start()
        self._settle()
        return self.touched

    def _clock(self) -> None:
        running = any(actor.state == PENDING for actor in self.actors)
        self.steps += running
        self.last = None
        if self.recording:
            self._note(CLOCK, "", [])
        clock: Any = self.engine.clock
        clock.advance_to_next()
        if self.recording:
            self.events[-1].now_ms = self.engine.now_ns() // 1_000_000
            self._note_changes()
        self._settle()

    def run(self, session: Session, argv: list[bytes]) -> Reply:
        """Run an actor's command, noting what it touches."""
        engine = self.engine
        if self.watching:
            self.touched = self._footprint(session, argv)
        reply = Engine.execute(engine, session, argv)
        waiter = session.waiter
        if waiter is not None and self.watching:
            self.touched = self.touched | _waited(waiter)
        return reply

    def _footprint(self, session: Session, argv: list[bytes]) -> Footprint:
        """What a command is going to touch; the same words mean the same keys, so it is looked up once."""
        if session.queue is not None or session.watched:
            return footprint(self.engine, session, self.command(argv), argv)
        asked = (session.db.index, *argv)
        found = self._footprints.get(asked)
        if found is None:
            found = footprint(self.engine, session, self.command(argv), argv)
            if len(self._footprints) < FOOTPRINTS_MOST:
                self._footprints[asked] = found
        return found

    def command(self, argv: list[bytes]) -> Command | None:
        try:
            return self.engine.resolve(argv)
        except ReplyError:
            return None

    def _settle(self) -> None:
        """Let those go on who were served meanwhile."""
        while self.served or (self._threaded and self._woken()):
            actor = self.served.pop(0)
            if actor.state not in (PARKED, SLEEPING):
                continue
            session = actor.session
            if session is not None and self.watching:
                cmd = self.command(actor.pending)
                self.touched = self.touched | footprint(self.engine, session, cmd, actor.pending)
                if cmd is not None:
                    index = session.db.index
                    self.touched |= Footprint(
                        frozenset(), frozenset((index, key) for key, _ in keys_of(cmd, actor.pending))
                    )
            if self.recording and self.events:
                self.events[-1].served.append((actor.label, actor.pending, actor.reply))
            actor.go_on()
            self._note_end(actor)

    def _woken(self) -> bool:
        """Find an actor on a thread that may go on."""
        for actor in self.actors:
            if actor.state in (PARKED, SLEEPING) and actor.woken:
                self.served.append(actor)
                return True
        return False

    # -- sleeping actors: the clock stops for them ----------------------------------------------

    def next_due_ns(self) -> int | None:
        return min((actor.wakes_ns for actor in self.actors if actor.state == SLEEPING), default=None)

    def run_due(self) -> None:
        now = self.engine.now_ns()
        for actor in self.actors:
            if actor.state == SLEEPING and actor.wakes_ns <= now:
                actor.reply = None
                actor.go_on()

    def pushed(self, actor: Actor, push: Reply) -> None:
        """An actor was sent a message out of band."""
        if self.recording:
            self.pushes.append((actor.label, push))

    def identity(self) -> tuple[Any, ...]:
        """What the rest of the run depends on: keys, time, budgets, and what each actor has been told so far."""
        actors = tuple((actor.state, tuple(actor.pending), actor.wakes_ns, actor.incarnation, actor.heard,
                        _standing(actor)) for actor in self.actors)  # fmt: skip
        keys = repr(sorted(self.contents().items()))
        scripts = () if self.engine.scripting is None else tuple(s.sha for s in self.engine.scripting.known())
        return actors, keys, self.engine.now_ns(), self.crashes, self.lost, self.steps, scripts

    # -- for people ----------------------------------------------------------------------------

    def _note(self, choice: str, label: str, argv: list[bytes]) -> None:
        self._before = self._contents()
        event = Event(choice, label, argv, None, self.engine.now_ns() // 1_000_000)
        event.script = self.script_name(argv)
        self.events.append(event)

    def script_name(self, argv: list[bytes]) -> str:
        """The name of the script that a command runs, "" if it has none."""
        if len(argv) < 3 or argv[0].upper() not in _EVALS:
            return ""
        sha = argv[1] if argv[0].upper().startswith(b"EVALSHA") else _sha1(argv[1])
        return self.engine.script_names.get(sha.lower(), "")

    def _note_reply(self, reply: Any) -> None:
        self.events[-1].reply = reply
        self._note_changes()

    def _note_changes(self) -> None:
        before, after = self._before, self._contents()
        for place in sorted({*before, *after}):
            old, new = before.get(place), after.get(place)
            if old != new:
                self.events[-1].changes[place] = old, new

    def _note_end(self, actor: Actor) -> None:
        if self.recording and actor.error is not None and self.events:
            self.events[-1].problem = f"{type(actor.error).__name__}: {actor.error}"

    def _contents(self) -> dict[tuple[int, bytes], Content | None]:
        return self.contents()

    def contents(self) -> dict[tuple[int, bytes], Content | None]:
        """All that the databases hold, by (database, key)."""
        engine = self.engine
        watching, self.watching = self.watching, False
        try:
            return {
                (db.index, key): contents(engine, db, key)
                for db in engine.keyspace.databases
                for key in list(db.data)
            }
        finally:
            self.watching = watching


def _standing(actor: Actor) -> tuple[Any, ...]:
    """What the server knows of an actor's connections: database, transaction, watched keys, place in queues."""
    return tuple(
        (session.db.index, session.protocol, repr(session.queue), tuple(session.watched), session.watch_broken,
         session.waiter is not None and session.waiter.order, tuple(session.channels), tuple(session.patterns))
        for session in actor.sessions
    )  # fmt: skip


def _sha1(body: bytes) -> bytes:
    return hashlib.sha1(body, usedforsecurity=False).hexdigest().encode()


def _waited(waiter: Any) -> Footprint:
    """Who waits for keys has a place in the queue of each."""
    index = waiter.session.db.index
    return Footprint(frozenset(), frozenset((index, key) for key in waiter.keys))
