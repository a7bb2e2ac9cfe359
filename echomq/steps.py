"""Client-side procedures as step machines: what to ask next, separated from who asks.

A procedure ("claim: read the pause flag, then run the script") is a generator. It yields requests and is
sent their replies; errors are thrown into it. It owns no connection, thread or clock, so the same
procedure is driven by a blocking caller (`Link`), by a worker's thread, or step by step by a program
that wants to choose what happens between two requests.

    @procedure
    def claim(self, lease_ms):
        if (yield Call("HGET", self.keys.meta, "paused")) is not None:
            return None
        ...

`jobs.claim(30_000)` runs it to its end over the object's link; `jobs.claim.steps(30_000)` gives the
generator, to be driven by hand or joined to a larger machine with `yield from`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from .connection import Command, Connection
from .errors import EchoError, ServerError
from .keys import Keys
from .resp import Arg, Reply
from .script import Scripts, load, our_scripts

__all__ = [
    "Call",
    "Link",
    "Part",
    "Pipeline",
    "Request",
    "RunMany",
    "RunScript",
    "Steps",
    "drive",
    "procedure",
]

P = ParamSpec("P")
T = TypeVar("T")


class Request:
    """Something a procedure asks for; the reply is sent back into it."""

    __slots__ = ()


class Call(Request):
    """One plain command."""

    __slots__ = ("args", "timeout")

    def __init__(self, *args: Arg, timeout: float | None = None) -> None:
        self.args = args
        self.timeout = timeout

    def __repr__(self) -> str:
        return f"Call{self.args!r}"


class Pipeline(Request):
    """Several plain commands in one round trip; error replies are values."""

    __slots__ = ("commands",)

    def __init__(self, commands: Sequence[Command]) -> None:
        self.commands = commands


class RunScript(Request):
    """One script by its protocol name."""

    __slots__ = ("args", "keys", "name")

    def __init__(self, name: str, keys: Sequence[str], args: Sequence[Arg] = ()) -> None:
        self.name = name
        self.keys = keys
        self.args = args

    def __repr__(self) -> str:
        return f"RunScript({self.name!r}, {self.keys!r}, {self.args!r})"


class RunMany(Request):
    """One script, many calls: one SCRIPT LOAD, then one pipeline; error replies are values."""

    __slots__ = ("calls", "name")

    def __init__(self, name: str, calls: Sequence[tuple[Sequence[str], Sequence[Arg]]]) -> None:
        self.name = name
        self.calls = calls


Steps = Generator[Request, Reply, T]


def drive(steps: Steps[T], perform: Callable[[Request], Reply]) -> T:
    """Run a machine to its end: perform each request, send back the reply or throw the error."""
    try:
        request = next(steps)
        while True:
            try:
                reply = perform(request)
            except EchoError as error:
                request = steps.throw(error)
            else:
                request = steps.send(reply)
    except StopIteration as stop:
        result: T = stop.value
        return result


class Link:
    """A connection and a set of scripts: performs requests of procedures, blocking."""

    __slots__ = ("connection", "scripts")

    def __init__(self, connection: Connection, scripts: Scripts | None = None) -> None:
        self.connection = connection
        self.scripts = scripts if scripts is not None else our_scripts()

    def run(self, steps: Steps[T]) -> T:
        """Drive a procedure to its end."""
        return drive(steps, self.perform)

    def perform(self, request: Request) -> Reply:
        """Answer one request to the server."""
        kind = type(request)
        if kind is RunScript:
            script = self.scripts[request.name]  # type: ignore[attr-defined]
            return self.connection.eval(script, request.keys, request.args)  # type: ignore[attr-defined]
        if isinstance(request, Call):
            return self.connection.call(*request.args, timeout=request.timeout)
        if isinstance(request, Pipeline):
            return self.connection.pipeline(request.commands)
        if isinstance(request, RunMany):
            return self._run_many(request)
        raise TypeError(f"a link cannot perform {request!r}")

    def _run_many(self, request: RunMany) -> list[Reply]:
        script = self.scripts[request.name]
        load(self.connection.call, script)
        return self.connection.pipeline([script.command(keys, args) for keys, args in request.calls])


class _HasLink(Protocol):
    @property
    def link(self) -> Link: ...


class BoundProcedure(Generic[P, T]):
    """A procedure of one object: call it to run it, or take its steps."""

    __slots__ = ("_owner", "_steps")

    def __init__(self, owner: _HasLink, steps: Callable[Concatenate[Any, P], Steps[T]]) -> None:
        self._owner = owner
        self._steps = steps

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._owner.link.run(self._steps(self._owner, *args, **kwargs))

    def steps(self, *args: P.args, **kwargs: P.kwargs) -> Steps[T]:
        """The machine, not yet started."""
        return self._steps(self._owner, *args, **kwargs)


class procedure(Generic[P, T]):  # a decorator reads best in lower case
    """Turns a generator method into a `BoundProcedure`."""

    def __init__(self, steps: Callable[Concatenate[Any, P], Steps[T]]) -> None:
        self._steps = steps
        self.__doc__ = steps.__doc__
        self.__name__ = steps.__name__
        self.__wrapped__ = steps

    @overload
    def __get__(self, instance: None, owner: type) -> procedure[P, T]: ...
    @overload
    def __get__(self, instance: _HasLink, owner: type) -> BoundProcedure[P, T]: ...
    def __get__(self, instance: _HasLink | None, owner: type) -> procedure[P, T] | BoundProcedure[P, T]:
        if instance is None:
            return self
        return BoundProcedure(instance, self._steps)


class Part:
    """Base of the API objects: a link and a queue's keys."""

    def __init__(self, connection: Connection | Link, queue: str) -> None:
        self.link = connection if isinstance(connection, Link) else Link(connection)
        self.keys = Keys(queue)

    @property
    def queue(self) -> str:
        return self.keys.queue


def reraise(reply: Reply) -> Reply:
    """The reply, unless it is an error value, which is raised."""
    if isinstance(reply, ServerError):
        raise reply
    return reply
