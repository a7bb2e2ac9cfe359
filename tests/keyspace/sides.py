"""The emulator and the live server, asked for plain values."""

from __future__ import annotations

from typing import Any

from emuredis.emulator import Emulator
from emuredis.protocol.encode import encode
from tests.support.live import Connection
from tests.support.resp import Frame, parse

__all__ = ["Failure", "emulated", "ours", "plain", "theirs"]

CONFIG = {"enable-debug-command": "yes"}


class Failure(str):
    """The text of an error."""


def plain(frame: Frame) -> Any:
    """A frame as bytes, integers, None, lists and `Failure`."""
    if frame.is_error:
        return Failure(frame.value.decode("utf-8", "backslashreplace"))
    return [plain(item) for item in frame.value] if isinstance(frame.value, list) else frame.value


def emulated(emulator: Emulator | None = None) -> Any:
    """Ask an emulator, with its encoder between: exactly what would be on the wire."""
    engine = (emulator or Emulator(seed=1, config=CONFIG)).engine
    session = engine.connect()

    def ask(*argv: bytes) -> Any:
        return plain(parse(encode(engine.execute(session, list(argv)), 2))[0])

    return ask


ours = emulated


def theirs(connection: Connection) -> Any:
    """Ask the live server."""

    def ask(*argv: bytes) -> Any:
        return plain(connection.call(*argv))

    return ask
