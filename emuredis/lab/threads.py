"""Ordinary code as an actor: a function on a thread of its own, which stops before each command.

One runs at a time: who runs holds the baton, and hands it back where it wants to run a command, waits, or ends. With
the package greenlet, the "threads" are greenlets of the scheduler's own thread, which is many times faster. So code
that knows nothing of this (redis-py, a worker of echomq, blocking calls and all) is explored as it is. A coroutine
function runs in an event loop on a real thread; its tasks take their turns as that loop decides.

What is asked stops in `Engine.execute` and `emuredis.waits.wait`; the doors above them are the real ones.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from emuredis.engine.engine import NO_REPLY, Engine
from emuredis.engine.threads import this_thread
from emuredis.errors import EmulatorError
from emuredis.lab.actors import CRASHED, DONE, FAILED, PARKED, PENDING, SLEEPING, Actor, ActorCrashed
from emuredis.replies import BLOCKED, Reply

try:
    import greenlet
except ImportError:  # threads do as well
    greenlet = None

if TYPE_CHECKING:
    from emuredis.engine.session import Session
    from emuredis.lab.world import World

__all__ = ["ThreadActor", "actor"]

#: What a client library says of itself when it connects is no step of the program.
_SETTING_UP = frozenset((b"HELLO", b"AUTH", b"SELECT", b"CLIENT SETINFO", b"CLIENT SETNAME", b"CLIENT ID"))
#: A crashed actor that goes on asking so often has code that catches everything; it is left alone.
PROTESTS_MOST = 20
PATIENCE = 60.0  # seconds that an actor may take between two commands


def _redis(world: World) -> Any:
    import emuredis

    client: Any = emuredis.Redis(emulator=world.emulator)
    client._fast = None  # the short way would ask twice where a command blocks
    return client


def _redis_asyncio(world: World) -> Any:
    import emuredis.asyncio

    client: Any = emuredis.asyncio.Redis(emulator=world.emulator)
    client._fast = None
    return client


DOORS: dict[str, Callable[[World], Any]] = {
    "redis": _redis,
    "asyncio": _redis_asyncio,
    "native": lambda world: world.emulator.client(protocol=2),
    "emulator": lambda world: world.emulator,
}


class actor:
    """A program and the door it is given: ``explore([actor(work, door="native"), ...])``.

    ``door``: "redis" (`emuredis.Redis`), "asyncio" (`emuredis.asyncio.Redis`; ``program`` is a coroutine function, run
    in an event loop of its own), "native" (`emuredis.Client` with RESP2) or "emulator" (the `emuredis.Emulator`, for
    code that opens its own connections). Raises ValueError for another. ``threads``: on a real thread even where
    greenlets could take its place, for code that uses thread-local state.
    """

    def __init__(self, program: Callable[[Any], Any], door: str = "redis", threads: bool = False) -> None:
        if door not in DOORS:
            raise ValueError(f"door must be one of {', '.join(DOORS)}, not {door!r}")
        self.program = program
        self.door = door
        self.threads = threads
        self.__name__ = getattr(program, "__name__", "actor")

    def make_actor(self, world: World, index: int, label: str, restarts: int) -> Actor:
        return ThreadActor(world, index, label, restarts, self.program, self.door, self.threads)


class ThreadActor(Actor):
    """A function on a thread. Everything here but `_main`, `ask` and `wait` runs on the scheduler's thread."""

    def __init__(self, world: World, index: int, label: str, restarts: int, program: Callable[[Any], Any],
                 door: str = "redis", threads: bool = False) -> None:  # fmt: skip
        super().__init__(world, index, label, restarts)
        self._program = program
        self._door = DOORS[door]
        self._redis: Any = None
        with_loop = inspect.iscoroutinefunction(program)  # a thread has one running loop at most
        self._life: Callable[[ThreadActor], _Life] = (
            _OnThread if greenlet is None or with_loop or threads else _OnGreenlet
        )
        self._thread: _Life | None = None

    def start(self) -> None:
        install(self.world)
        self.result = self.error = None
        self.state = PENDING
        self._thread = self._life(self)
        self.world.acting = self
        self._thread.turn()

    def client(self) -> Any:
        """What the program is given: each life has connections of its own, the object around them may be the same."""
        if self._redis is not None:
            self._redis.connection_pool.reset()
            return self._redis
        made = self._door(self.world)
        if self._door is _redis:
            self._redis = made
        return made

    @property
    def sessions(self) -> list[Session]:
        return [] if self._thread is None else list(self._thread.sessions)

    @property
    def woken(self) -> bool:
        return self._thread is not None and self._thread.woken

    def execute(self) -> bool:
        return self._go("run")

    def lose(self) -> bool:
        return self._go("lose")

    def _go(self, fate: str) -> bool:
        """Have the command run by the actor's own thread, which goes on to its next command, or parks in this one."""
        thread = self._thread
        assert thread is not None
        self.world.acting = self
        thread.fate = fate
        thread.answered = True
        thread.turn()
        return thread.answered

    def take(self) -> None:
        """It has gone on already."""

    def go_on(self) -> None:
        assert self._thread is not None
        self.state = PENDING
        self.world.acting = self
        self._thread.turn()

    def crash(self) -> None:
        self._kill()
        self.state = CRASHED

    def stop(self) -> None:
        state = self.state
        if not self.over:
            self._kill()
        self.state = state
        self._thread = None

    def _kill(self) -> None:
        """End the thread: nothing it still says is heard, and its connections are closed."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        for session in thread.sessions:
            self.world.engine.disconnect(session)
        thread.dead = True
        while not thread.ended:
            thread.turn()


class _Life(ABC):
    """One life of an actor's code: it runs in `turn`, up to where it calls `back`.

    ``fate``: whether the reply of the next command gets lost; ``answered``: the last one had its reply at once;
    ``dead``: crashed, ``ended``: nothing of it runs any more; ``events``: what it waits for (`is_set`).
    """

    def __init__(self, owner: ThreadActor) -> None:
        self.owner = owner
        self.fate = "run"
        self.answered = True
        self.dead = self.ended = False
        self.sessions: dict[Session, None] = {}
        self.events: list[Any] = []
        self.protests = 0

    @abstractmethod
    def turn(self) -> None:
        """The scheduler's side: let it run until it gives the baton back."""

    @abstractmethod
    def hand_over(self) -> None:
        """The actor's side: give the baton back, and wait for it."""

    def run(self) -> None:
        """All of the actor's code."""
        owner = self.owner
        state, result, error = DONE, None, None
        try:
            client = owner.client()
            if inspect.iscoroutinefunction(owner._program):
                result = asyncio.run(_closing(owner._program, client))
            else:
                result = owner._program(client)
        except ActorCrashed:
            pass
        except BaseException as problem:
            state, error = FAILED, problem
        self.ended = True
        if not self.dead:
            owner.state, owner.result, owner.error = state, result, error
            for session in self.sessions:
                owner.world.engine.disconnect(session)

    def back(self) -> None:
        """Give the baton back, and wait for it. Raises ActorCrashed if there is nothing left to wait for."""
        lock: Any = self.owner.world.engine.lock
        state = lock._release_save() if lock._is_owned() else None
        self.hand_over()
        if state is not None:
            lock._acquire_restore(state)
        if self.dead:
            raise ActorCrashed

    def protest(self) -> NoReturn:
        """Code that crashed says something. Raises ActorCrashed; who catches that for ever is left where it is."""
        self.protests += 1
        if self.protests > PROTESTS_MOST:
            self.ended = True
            _abandoned.append(self)
            lock: Any = self.owner.world.engine.lock
            if lock._is_owned():
                lock._release_save()
            while True:
                self.hand_over()
        raise ActorCrashed

    def ask(self, session: Session, argv: list[bytes]) -> Reply:
        """`Engine.execute`, when it is this actor's turn."""
        owner = self.owner
        world = owner.world
        if self.dead:
            self.protest()
        self.sessions[session] = None
        if argv[0].upper() in _SETTING_UP or b" ".join(argv[:2]).upper() in _SETTING_UP:
            return Engine.execute(world.engine, session, argv)
        owner.session, owner.pending, owner.state = session, argv, PENDING
        self.back()
        fate, self.fate = self.fate, "run"
        reply = world.run(session, argv)
        owner.reply = reply
        if world.hashing:
            owner.heard = hash((owner.heard, fate, repr(reply)))
        if reply is BLOCKED:
            if fate == "lose" and session.waiter is not None:
                session.waiter.lost = True
            owner.state = PARKED
            self.answered = False
            return reply  # the door waits, which gives the baton back
        if fate == "lose":
            session.cut = True
            world.engine.drop(session)
            session.on_close()
            return NO_REPLY
        return reply

    def wait(self, event: threading.Event, seconds: float | None) -> bool:
        """`emuredis.waits.wait`: park until ``event`` is set, or the clock has gone on by ``seconds``."""
        owner = self.owner
        engine = owner.world.engine
        end = None if seconds is None else engine.now_ns() + round(seconds * 1e9)
        self.events.append(event)
        try:
            while not event.is_set():
                if end is not None and engine.now_ns() >= end:
                    return False
                if end is not None:
                    owner.state, owner.wakes_ns = SLEEPING, end
                else:
                    owner.state = PARKED
                self.back()
            return True
        finally:
            self.events.remove(event)

    def park(self, waits: list[Any]) -> None:
        """An event loop has nothing to do until one of ``waits`` (`emuredis.redispy.idle.Wait`) is over."""
        owner = self.owner
        ends = [wait.end for wait in waits if wait.end is not None]
        owner.state = SLEEPING if ends else PARKED
        owner.wakes_ns = min(ends, default=0)
        self.events += waits
        try:
            self.back()
        except ActorCrashed as crash:  # a loop takes no notice of what a callback raises: its task shall
            for wait in waits:
                if not wait.future.done():
                    wait.future.set_exception(crash)
        finally:
            for wait in waits:
                self.events.remove(wait)

    @property
    def woken(self) -> bool:
        return any(event.is_set() for event in self.events)


async def _closing(program: Callable[[Any], Any], client: Any) -> Any:
    """Run a coroutine function, and close the client in the same event loop."""
    try:
        return await program(client)
    finally:
        if hasattr(client, "aclose"):
            await client.aclose()


class _OnThread(_Life):
    """On a thread of its own. ``here`` is free when it is this thread's turn, ``there`` when it is the scheduler's."""

    def __init__(self, owner: ThreadActor) -> None:
        super().__init__(owner)
        self._here, self._there = threading.Lock(), threading.Lock()
        self._here.acquire()
        self._there.acquire()
        threading.Thread(target=self._main, daemon=True, name=f"actor {owner.label}").start()

    def turn(self) -> None:
        if self.ended:
            return
        self._here.release()
        if not self._there.acquire(timeout=PATIENCE):
            raise EmulatorError(
                f"actor {self.owner.label} has not come to its next command within {PATIENCE:g} s: it waits for "
                "something that is not the emulator"
            )

    def hand_over(self) -> None:
        self._there.release()
        self._here.acquire()

    def _main(self) -> None:
        self._here.acquire()
        _lives[this_thread()] = self
        try:
            self.run()
        finally:
            del _lives[this_thread()]
            self._there.release()


class _OnGreenlet(_Life):
    """On a stack of its own in the scheduler's thread: a switch takes a microsecond instead of dozens."""

    def __init__(self, owner: ThreadActor) -> None:
        super().__init__(owner)
        self._greenlet = greenlet.greenlet(self.run)
        self._home: Any = None
        _lives[self._greenlet] = self

    def turn(self) -> None:
        if not self.ended:
            self._home = greenlet.getcurrent()
            self._greenlet.parent = self._home
            self._greenlet.switch()
            if self.ended:
                _lives.pop(self._greenlet, None)

    def hand_over(self) -> None:
        self._home.switch()


_lives: dict[Any, _Life] = {}
_abandoned: list[_Life] = []  # kept, for a greenlet that is let go of has to be ended


def here() -> _Life | None:
    """The actor whose code is running."""
    if not _lives:
        return None
    found = _lives.get(this_thread())
    return _lives.get(greenlet.getcurrent()) if found is None and greenlet is not None else found


class Scheduler:
    """What an engine asks instead of waiting; see `Engine.scheduler`."""

    def __init__(self, world: World) -> None:
        self._world = world

    def execute(self, session: Session, argv: list[bytes]) -> Reply:
        thread = here()
        if thread is None or thread.owner.world is not self._world:
            return Engine.execute(self._world.engine, session, argv)
        return thread.ask(session, argv)

    def wait(self, event: threading.Event, seconds: float | None) -> bool | None:
        """Whether ``event`` was set; None where no actor waits."""
        thread = here()
        return None if thread is None else thread.wait(event, seconds)

    def park(self, waits: list[Any]) -> bool:
        """An event loop is idle: wait for one of ``waits``; False where no actor's loop is."""
        thread = here()
        if thread is None:
            return False
        thread.park(waits)
        return True


def install(world: World) -> None:
    """Have the engine of ``world`` ask its scheduler."""
    engine: Any = world.engine
    if engine.scheduler is None:
        engine.scheduler = scheduler = Scheduler(world)
        engine.execute = scheduler.execute
