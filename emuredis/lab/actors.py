"""Actors: the programs whose interleavings are explored, each driven one command at a time.

`NativeActor` drives an ``async def`` program by hand: each command it awaits is one step, and there is no event loop.
`emuredis.lab.threads.ThreadActor` does the same to ordinary code on a thread of its own. Both look alike from
outside: `pending` is the command the actor wants to run next, `resume` hands it the reply.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any

from emuredis.client import encode_args
from emuredis.errors import EmulatorError, ReplyError
from emuredis.protocol.views import view2
from emuredis.replies import Reply

if TYPE_CHECKING:
    from emuredis.engine.session import Session
    from emuredis.lab.world import World

__all__ = ["Actor", "ActorCrashed", "ConnectionLost", "LabClient", "NativeActor"]

#: What an actor is doing. SLEEPING: until the clock shows `Actor.wakes_ns`.
PENDING, PARKED, SLEEPING, DONE, FAILED, CRASHED = (
    "pending",
    "parked",
    "sleeping",
    "done",
    "failed",
    "crashed",
)


class ConnectionLost(EmulatorError, ConnectionError):
    """The connection broke before the reply arrived; whether the command was run, its caller cannot know."""


class ActorCrashed(BaseException):
    """Raised in a crashed actor's code that tries to go on talking: nothing it says is heard."""


class Ask:
    """An awaitable command."""

    __slots__ = ("_argv",)

    def __init__(self, argv: list[bytes]) -> None:
        self._argv = argv

    def __await__(self) -> Generator[list[bytes], Any, Any]:
        return (yield self._argv)


class Sleep:
    """An awaitable that waits for the emulator's clock."""

    __slots__ = ("_ms",)

    def __init__(self, ms: float) -> None:
        self._ms = ms

    def __await__(self) -> Generator[float, Any, None]:
        yield self._ms


class LabClient:
    """What a native actor is given. Every command is a method, and awaiting it is one step of the schedule:

        job = await client.rpop("queue")
        await client("LMOVE", "queue", "busy", "RIGHT", "LEFT")

    Replies are those of `emuredis.Client` with RESP2: int, bytes, None or list; an error reply raises ReplyError, a
    lost one `ConnectionLost`, after which the client has a new connection. A method's ``_`` is a space:
    ``client.script_load(...)``. ``await client.sleep(ms)`` waits on the emulator's clock.
    """

    def __init__(self, actor: NativeActor) -> None:
        self._actor = actor

    def __call__(self, *args: Any) -> Ask:
        if self._actor.state == CRASHED:
            raise ActorCrashed
        return Ask(encode_args(args))

    def __getattr__(self, name: str) -> Callable[..., Ask]:
        if name.startswith("_"):
            raise AttributeError(name)
        words = tuple(name.upper().split("_", 1)) if name not in _ONE_WORD else (name.upper(),)

        def ask(*args: Any) -> Ask:
            if actor.state == CRASHED:
                raise ActorCrashed
            return Ask([*head, *encode_args(args)])

        actor, head = self._actor, encode_args(words)
        self.__dict__[name] = ask  # found at once the next time
        return ask

    def eval(self, script: str, keys: Any = (), args: Any = ()) -> Ask:
        """EVAL of ``script`` with lists of keys and arguments: one step, whatever it calls."""
        return self("EVAL", script, len(keys), *keys, *args)

    def evalsha(self, sha: str, keys: Any = (), args: Any = ()) -> Ask:
        """The same by SHA1."""
        return self("EVALSHA", sha, len(keys), *keys, *args)

    def sleep(self, ms: float) -> Sleep:
        """Wait until the emulator's clock has gone on by ``ms`` milliseconds."""
        return Sleep(ms)


_ONE_WORD = frozenset(
    "bitfield_ro eval_ro evalsha_ro fcall_ro geohash georadius_ro georadiusbymember_ro sort_ro".split()
)


class Actor(ABC):
    """One program. ``name`` is a letter; ``label`` what people call it.

    ``pending``: the command it wants to run next, while `state` is PENDING. ``restarts``: how often it comes back after
    a crash; ``incarnation`` counts from 0.
    """

    def __init__(self, world: World, index: int, label: str, restarts: int) -> None:
        self.world = world
        self.index = index
        self.name = "abcdefghijklmnopqrstuvwxyz"[index]
        self.label = label
        self.restarts = self.restarts_left = restarts
        self.incarnation = 0
        self.state = DONE
        self.pending: list[bytes] = []
        self.session: Session | None = None
        self.wakes_ns = 0
        self.result: Any = None
        self.error: BaseException | None = None
        self.reply: Reply = None  # of the command that was served while parked
        self.heard: Any = None  # a hash of all replies, for recognising states

    @property
    def sessions(self) -> list[Session]:
        """Its connections."""
        return [] if self.session is None else [self.session]

    @property
    def woken(self) -> bool:
        """Whether what it waits for has come, without `World.served` being told."""
        return False

    @property
    def over(self) -> bool:
        return self.state in (DONE, FAILED, CRASHED)

    @abstractmethod
    def start(self) -> None:
        """Run up to the first command."""

    @abstractmethod
    def execute(self) -> bool:
        """Run the pending command; whether it is answered, then `take` is to follow."""

    def take(self) -> None:
        """After `execute`: take the reply, and run up to the next command."""
        self.go_on()

    @abstractmethod
    def go_on(self) -> None:
        """The parked command has been answered: run up to the next one."""

    @abstractmethod
    def lose(self) -> bool:
        """As `execute`, but the reply will not arrive."""

    @abstractmethod
    def crash(self) -> None:
        """Stop for good, here; its connections are closed."""

    @abstractmethod
    def stop(self) -> None:
        """The run is over: let go of everything."""

    def __repr__(self) -> str:
        return f"<Actor {self.name} {self.label}: {self.state}>"


class NativeActor(Actor):
    """An ``async def program(client)``, driven by hand."""

    def __init__(self, world: World, index: int, label: str, restarts: int,
                 program: Callable[[LabClient], Coroutine[Any, Any, Any]]) -> None:  # fmt: skip
        super().__init__(world, index, label, restarts)
        self._program = program
        self._client = LabClient(self)
        self._running: Coroutine[Any, Any, Any] | None = None
        self._problem: BaseException | None = None

    def start(self) -> None:
        self.state = PENDING
        self.result = self.error = self._problem = None
        self._connect()
        self._running = self._program(self._client)
        self._step(None)

    def _connect(self) -> None:
        self.session = session = self.world.engine.connect()
        session.on_reply = self._served
        session.on_close = self._cut
        session.on_push = self._pushed

    def execute(self) -> bool:
        session = self.session
        assert session is not None
        self.reply = self.world.run(session, self.pending)
        if session.waiter is not None:
            self.state = PARKED
            return False
        if session.cut or session.closing:
            self._problem = ConnectionLost("the server closed the connection")
        return True

    def lose(self) -> bool:
        session = self.session
        assert session is not None
        engine = self.world.engine
        self.world.run(session, self.pending)
        if session.waiter is not None:
            session.waiter.lost = True
            self.state = PARKED
            return False
        engine.disconnect(session)
        self._problem = ConnectionLost("the connection broke before the reply arrived")
        return True

    def go_on(self) -> None:
        problem, self._problem = self._problem, None
        self.state = PENDING
        if self.world.hashing:
            self.heard = hash((self.heard, repr(problem or self.reply)))
        if problem is not None:
            self._connect()
            self._step(None, problem)
            return
        reply = self.reply
        if reply.__class__ is ReplyError:
            self._step(None, reply)
        else:
            kind = reply.__class__
            self._step(reply if kind is bytes or kind is int or reply is None else view2(reply))

    def _step(self, value: Any, problem: BaseException | None = None) -> None:
        running = self._running
        assert running is not None
        self.world.acting = self
        try:
            asked: Any = running.send(value) if problem is None else running.throw(problem)
        except StopIteration as end:
            self.state, self.result = DONE, end.value
            self._leave()
        except Exception as error:
            self.state, self.error = FAILED, error
            self._leave()
        else:
            if asked.__class__ is list:
                self.pending = asked
            elif isinstance(asked, (int, float)):
                self.state = SLEEPING
                self.wakes_ns = self.world.engine.now_ns() + round(asked * 1_000_000)
            else:
                raise TypeError(
                    f"actor {self.label} awaited {asked!r}: a native actor awaits its client's commands only"
                )

    def _leave(self) -> None:
        if self.session is not None:
            self.world.engine.disconnect(self.session)

    def _served(self, reply: Reply) -> None:
        self.reply = reply
        self.world.served.append(self)

    def _cut(self) -> None:
        if self.state == PARKED:
            self._problem = ConnectionLost("the connection broke before the reply arrived")
            self.world.served.append(self)

    def _pushed(self, push: Reply) -> None:
        self.world.pushed(self, push)

    def crash(self) -> None:
        self.state = CRASHED
        self._leave()
        self.stop()

    def stop(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            before, self.state = self.state, CRASHED  # whatever its handlers still want to say is not heard
            try:
                running.close()
            except (ActorCrashed, RuntimeError):
                pass  # it tried to
            self.state = before
        if self.session is not None:
            self.session.on_close = _nothing
            self.world.engine.disconnect(self.session)


def _nothing() -> None:
    return None
