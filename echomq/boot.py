"""The words exchanged before a connection may be used, as a step machine without sockets.

Order: HELLO 3 (with AUTH when a password is set) or, on protocol 2 or a server that knows no HELLO,
AUTH and PING; SELECT when the database is not 0; CLIENT SETNAME when a name is set; the version fence.
The machine yields commands, is sent replies (errors as values), and returns the protocol spoken.
A refusal is raised as a `BootError`: trying again would not help.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from .connection import Command
from .endpoint import Options, Target
from .errors import AuthRefused, BootRefused, ServerError, VersionFence
from .keys import VERSION_KEY
from .resp import Reply

__all__ = ["boot", "drive_boot"]

Boot = Generator[Command, Reply, int]


def boot(target: Target, options: Options) -> Boot:
    """Everything between the socket and the first useful command."""
    protocol = yield from _greet(target, options)
    if target.db > 0:
        _expect(b"OK", (yield ("SELECT", target.db)), f"SELECT {target.db}")
    if options.client_name is not None:
        _expect(b"OK", (yield ("CLIENT", "SETNAME", options.client_name)), "CLIENT SETNAME")
    yield from _fence(options.version)
    return protocol


def _greet(target: Target, options: Options) -> Boot:
    if options.protocol != 2:
        login = () if target.password is None else ("AUTH", target.username, target.password)
        reply = yield ("HELLO", "3", *login)
        if isinstance(reply, dict) and reply.get(b"proto") == 3:
            return 3
        if isinstance(reply, ServerError) and reply.code in ("NOAUTH", "WRONGPASS"):
            raise AuthRefused(reply.message)
        if options.protocol == 3:
            raise BootRefused(f"HELLO 3 was answered {reply!r}")
    if target.password is not None:
        name = () if target.username == "default" else (target.username,)
        reply = yield ("AUTH", *name, target.password)
        if reply != b"OK":
            raise AuthRefused(str(reply))
    reply = yield ("PING",)
    if isinstance(reply, ServerError) and reply.code == "NOAUTH":
        raise AuthRefused(reply.message)
    _expect(b"PONG", reply, "PING")
    return 2


def _fence(version: str) -> Generator[Command, Reply, None]:
    found = yield ("GET", VERSION_KEY)
    if found is None:
        yield ("SET", VERSION_KEY, version, "NX")
        found = yield ("GET", VERSION_KEY)
    if isinstance(found, ServerError):
        raise BootRefused(f"GET {VERSION_KEY}: {found.message}")
    if found != version.encode():
        raise VersionFence(version, found.decode(errors="replace") if isinstance(found, bytes) else found)


def _expect(wanted: bytes, reply: Reply, what: str) -> None:
    if reply != wanted:
        raise BootRefused(f"{what} was answered {reply!r}")


def drive_boot(machine: Boot, exchange: Callable[[Command], Reply]) -> int:
    """Run the boot to its end; ``exchange`` gives replies, errors as values."""
    try:
        command = next(machine)
        while True:
            command = machine.send(exchange(command))
    except StopIteration as stop:
        protocol: int = stop.value
        return protocol
