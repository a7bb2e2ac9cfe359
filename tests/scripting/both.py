"""The same commands on the live server and on an emulator, compared as bytes."""

from __future__ import annotations

from typing import Any

from emuredis.emulator import Emulator
from emuredis.protocol.encode import encode
from tests.support.live import Connection

__all__ = ["Both", "error_of", "evaluate", "run"]


def run(emulator: Emulator, *argv: Any, protocol: int = 2) -> bytes:
    """The bytes with which a fresh emulator session would answer."""
    engine = emulator.engine
    session = engine.connect()
    session.protocol = protocol
    words = [arg if isinstance(arg, bytes) else str(arg).encode() for arg in argv]
    return encode(engine.execute(session, words), protocol)


def evaluate(emulator: Emulator, script: str, *args: Any, protocol: int = 2) -> bytes:
    return run(emulator, "EVAL", script, 0, *args, protocol=protocol)


class Both:
    """One emulator beside the live server; `check` runs a command on both."""

    def __init__(self, live: Connection, protocol: int = 2) -> None:
        self.live = live
        self.protocol = protocol
        self.engine = Emulator().engine
        self.session = self.engine.connect()
        self.session.protocol = protocol
        live.call("HELLO", protocol)
        live.call("FLUSHALL")
        live.call("SCRIPT", "FLUSH")

    def check(self, *argv: Any) -> bytes:
        """The answer of both, as bytes; fails when they differ."""
        words = [arg if isinstance(arg, bytes) else str(arg).encode() for arg in argv]
        want = self.live.call(*words).raw
        reply = self.engine.execute(self.session, words)
        got = encode(reply, self.protocol)
        assert got == want, (argv, want, got)
        return want

    def eval(self, script: str, *args: Any) -> bytes:
        return self.check("EVAL", script, 0, *args)


def error_of(answer: bytes) -> str:
    assert answer[:1] == b"-", answer
    return answer[1:-2].decode()
