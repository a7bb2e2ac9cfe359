"""Random commands of every kind that has keys, to every node: sent elsewhere exactly when the live cluster does it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import emuredis
from emuredis.spec import TABLE, Command
from tests.support.draw import Draw
from tests.support.live import Connection
from tests.support.live_cluster import LiveCluster
from tests.support.resp import Frame

ELSEWHERE = (b"MOVED", b"CROSSSLOT", b"ASK", b"TRYAGAIN", b"CLUSTERDOWN")
PER_COMMAND = 12
#: They change the connection, or wait, or ask a server that is not there; the lines have them.
LEFT_OUT = {"ssubscribe", "sunsubscribe", "migrate", "debug|object"}


def commands() -> list[Command]:
    return [cmd for cmd in TABLE.everything()
            if cmd.keys and "blocking" not in cmd.flag_words and cmd.name not in LEFT_OUT]  # fmt: skip


@pytest.fixture(scope="module")
def servers() -> Iterator[list[Connection]]:
    with emuredis.Emulator(cluster=3, seed=1).serve() as running:
        connections = [Connection(address) for address in running.addresses]
        yield connections
        for connection in connections:
            connection.close()


def where(frame: Frame, ports: list[int]) -> bytes:
    """The redirection a reply is, with the node's number for its port; empty for another reply."""
    if frame.kind != "-" or not frame.value.startswith(ELSEWHERE):
        return b""
    text: bytes = frame.value
    for number, port in enumerate(ports):
        text = text.replace(b":%d" % port, b":node %d" % number)
    return text


@pytest.mark.slow
@pytest.mark.parametrize("number", range(3))
def test_routes_as_the_live_cluster(
    number: int, servers: list[Connection], live_cluster: LiveCluster
) -> None:
    theirs, ours = live_cluster.connect(number), servers[number]
    ports = [port for _, port in live_cluster.addresses], [each.socket.getpeername()[1] for each in servers]
    draw = Draw(random.Random(number), keys=6)
    differences, sent_away = [], 0
    for cmd in commands():
        for _ in range(PER_COMMAND):
            argv = draw.argv(cmd)
            want, got = (
                where(side.call(*argv), each) for side, each in zip((theirs, ours), ports, strict=True)
            )
            sent_away += bool(want)
            if want != got:
                differences.append(f"{argv}: live {want!r}, emuredis {got!r}")
    theirs.close()
    assert not differences, "\n".join(differences)
    assert sent_away > 500
