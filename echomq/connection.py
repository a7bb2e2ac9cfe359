"""What the queue asks of a connection, and nothing about how one is made.

`Connection` is the one seam between the queue and a server: a socket (`connector`), a round robin of
them (`pool`), or an emulator in this process (`embedded`). Error replies are raised by `call` and
`eval`, and are values inside the lists of `pipeline` and `transaction`, so one refused command does
not hide the others' answers.

Blocking commands (`BLPOP`) hold up everybody who shares a connection: give them their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from .resp import Arg, Reply
from .script import Script

__all__ = ["Command", "Connection", "Counters", "MessageHandler"]

Command = Sequence[Arg]
MessageHandler = Callable[[str, bytes], None]


@dataclass(slots=True)
class Counters:
    """What one connection has done. A round trip is one call or one whole pipeline."""

    commands: int = 0
    round_trips: int = 0
    connects: int = 0
    pushes: int = 0


class Connection(Protocol):
    """One conversation with a server, past its boot sequence and version fence."""

    @property
    def counters(self) -> Counters:
        """What was sent and received so far."""
        ...

    def call(self, *args: Arg, timeout: float | None = None) -> Reply:
        """Send one command; an error reply is raised as `ServerError`. ``timeout`` in seconds."""
        ...

    def pipeline(self, commands: Sequence[Command]) -> list[Reply]:
        """Send several commands together; error replies are values in the list."""
        ...

    def transaction(self, commands: Sequence[Command]) -> list[Reply]:
        """MULTI, the commands, EXEC: the answers of EXEC."""
        ...

    def noreply(self, commands: Sequence[Command]) -> None:
        """Send commands whose replies the server keeps to itself."""
        ...

    def eval(self, script: Script, keys: Sequence[str], args: Sequence[Arg]) -> Reply:
        """Run a script by its digest, loading it once when the server does not know it."""
        ...

    def subscribe(self, channel: str, handler: MessageHandler) -> None:
        """Have ``handler(channel, payload)`` called for each message; kept over reconnects."""
        ...

    def unsubscribe(self, channel: str) -> None:
        """Stop hearing a channel."""
        ...

    def close(self) -> None:
        """Give the connection up; whoever waits for a reply gets `ConnectionClosed`."""
        ...
