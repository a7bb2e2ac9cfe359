"""Every declaration against what the live server says of the same command."""

from __future__ import annotations

from typing import Any

import pytest

from emuredis.emulator import Emulator
from tests.support.emulated import EmulatorEndpoint
from tests.support.endpoints import SocketEndpoint
from tests.support.live import LiveServer

from .live_commands import ask, kept

TABLE = Emulator().engine.table
NAMES = sorted(command.name for command in TABLE.everything())
LIVE = kept()
# "command field": why what we say differs.
EXCEPTIONS: dict[str, str] = {
    "migrate arguments": "its empty string cannot be written as a token in our declarations",
    "debug arguments": "the server describes none; ours are the least a client can be told",
}


@pytest.fixture(scope="module")
def said() -> dict[str, Any]:
    """What emuredis answers to COMMAND INFO and COMMAND DOCS."""
    return ask(EmulatorEndpoint().open(3), sorted({name.partition("|")[0] for name in NAMES}))


@pytest.mark.slow
def test_the_recording_is_up_to_date(live_server: LiveServer) -> None:
    endpoint = SocketEndpoint("live", live_server.socket_path)
    client = endpoint.open(3)
    assert ask(client) == LIVE
    client.close()
    endpoint.close()


def test_nothing_is_declared_that_the_server_does_not_have() -> None:
    assert [name for name in NAMES if name not in LIVE] == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("field", ["arity", "flags", "keys", "acl", "tips", "key_specs", "docs", "arguments"])
def test_declaration(name: str, field: str, said: dict[str, Any]) -> None:
    if f"{name} {field}" not in EXCEPTIONS:
        assert said[name][field] == LIVE[name][field]
