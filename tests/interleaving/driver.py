"""Echomq's own step machines as actors of the explorer: their requests become awaited commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from echomq.errors import ConnectionTrouble, ServerError
from echomq.keys import Keys
from echomq.machine import Handle, Park, Wait
from echomq.outcomes import Done
from echomq.script import Scripts
from echomq.steps import Call, Link, Pipeline, Request, RunMany, RunScript
from emuredis.errors import ReplyError
from emuredis.lab import ConnectionLost, LabClient, State

SCRIPTS = Scripts()
QUEUE = "q"
KEYS = Keys(QUEUE)
EFFECTS = "emq:{q}:effects"  # what handlers did, "id:token" each
COMPLETED = "emq:{q}:completed"  # completions that were accepted, the same


class _NoConnection:
    """For parts whose machines are only stepped, never run."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the machine asked for {name} by itself")


LINK = Link(_NoConnection(), SCRIPTS)  # type: ignore[arg-type]


async def call(client: LabClient, *args: Any) -> Any:
    """A command; errors as echomq knows them."""
    try:
        return await client(*args)
    except ConnectionLost as problem:
        raise ConnectionTrouble(str(problem)) from None
    except ReplyError as error:
        raise ServerError(error.message) from None


async def run_script(client: LabClient, name: str, keys: Any, args: Any) -> Any:
    """EVALSHA; on NOSCRIPT one SCRIPT LOAD and one more EVALSHA, as `echomq.script.evaluate`."""
    script = SCRIPTS[name]
    try:
        return await call(client, *script.command(keys, args))
    except ServerError as error:
        if error.code != "NOSCRIPT":
            raise
    await call(client, "SCRIPT", "LOAD", script.source)
    return await call(client, *script.command(keys, args))


async def effect(client: LabClient, request: Handle) -> Any:
    """The handler: leaves one mark."""
    await call(client, "RPUSH", EFFECTS, f"{request.job.id}:{request.job.token}")
    return request.handler(request.job) or Done()


async def perform(client: LabClient, request: Request) -> Any:
    """Answer one request of a machine."""
    if isinstance(request, RunScript):
        return await run_script(client, request.name, request.keys, request.args)
    if isinstance(request, Call):
        return await call(client, *request.args)
    if isinstance(request, Handle):
        return await effect(client, request)
    if isinstance(request, Park):
        return await call(client, *request.command)
    if isinstance(request, Wait):
        return await client.sleep(request.milliseconds)
    if isinstance(request, Pipeline):
        return [await call(client, *command) for command in request.commands]
    if isinstance(request, RunMany):
        return [await run_script(client, request.name, keys, args) for keys, args in request.calls]
    raise TypeError(f"nobody performs {request!r}")


async def drive(client: LabClient, steps: Any) -> Any:
    """Run a machine to its end."""
    try:
        request = next(steps)
        while True:
            try:
                reply = await perform(client, request)
            except (ConnectionTrouble, ServerError) as error:
                request = steps.throw(error)
            else:
                request = steps.send(reply)
    except StopIteration as stop:
        return stop.value


def machine(make: Callable[[], Any], name: str = "") -> Callable[[LabClient], Any]:
    """An actor that runs the machine which ``make`` gives. What a lost connection leaves undone ends it."""

    async def run(client: LabClient) -> Any:
        try:
            return await drive(client, make())
        except ConnectionTrouble:
            return "lost"

    run.__name__ = name or make.__name__
    return run


def one_script(name: str, keys: list[str], args: list[Any]) -> Callable[[LabClient], Any]:
    """An actor that runs one script; a refusal (EMQ...) is its result."""

    async def run(client: LabClient) -> Any:
        try:
            return await run_script(client, name, keys, args)
        except ServerError as error:
            if not error.code.startswith("EMQ"):
                raise
            return error.code
        except ConnectionTrouble:
            return "lost"

    run.__name__ = name
    return run


async def flusher(client: LabClient) -> None:
    """The server forgets every script, at any moment."""
    await client.script_flush()


class Looking:
    """A `State` as the connection that `echomq.states` asks."""

    def __init__(self, state: State) -> None:
        self._state = state

    def call(self, *args: Any) -> Any:
        return self._state.call(*args)
