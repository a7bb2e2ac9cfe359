"""What `make soak` is made of: a short sequence of every machine, the finding of a planted fault, the digest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from emuredis.keyspace.keyspace import Keyspace
from emuredis.spec import TABLE
from tests.support.emulated import EmulatorEndpoint
from tests.support.endpoints import SocketEndpoint
from tests.support.live import LiveServer

from . import soak
from .digest import digest
from .lines import load, parse_text, split_arguments
from .machines import MACHINES, Machine, Sequence, quote
from .soak import Play, Tally


@pytest.fixture(scope="module")
def truth(live_server: LiveServer) -> Iterator[SocketEndpoint]:
    endpoint = SocketEndpoint("live", live_server.socket_path, soak.PATIENCE)
    yield endpoint
    endpoint.begin(soak.Anything())
    endpoint.close()


@pytest.mark.slow
@pytest.mark.wall
@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_a_sequence_of_every_machine(machine: Machine, truth: SocketEndpoint) -> None:
    sequence = Sequence(machine, Random(f"test:{machine.name}"))
    sequence.opening(notify=True)
    tally = Tally()
    found = Play(sequence, 3, truth).go(300, tally)
    assert found is None, found.what
    assert tally.commands >= 300


@pytest.mark.slow
@pytest.mark.wall
@pytest.mark.usefixtures("live_server")
def test_a_planted_fault_is_found_shortened_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = TABLE[b"STRLEN"]
    right = command.fn
    monkeypatch.setattr(command, "fn", lambda ctx, argv: right(ctx, argv) + 1)
    monkeypatch.setattr(soak, "FOUND", tmp_path / "found.txt")
    assert soak.main(["--machine", "string", "--count", "2", "--seed", "1"]) == 1
    assert "differences (seed 1)" in capsys.readouterr().out
    (line,) = load(tmp_path / "found.txt")[0].lines
    assert b"STRLEN" in [word.upper() for word in line.argv]


def test_no_fault_is_no_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, truth: SocketEndpoint) -> None:
    monkeypatch.setattr(soak, "FOUND", tmp_path / "found.txt")
    lines = parse_text("SET k v\nHSET h f v\n:digest", "text")[0].lines
    assert soak.look(lines, 2, truth) == []


@pytest.mark.parametrize(
    "word",
    [b"plain", b"", b" ", b'"', b"'", b"\\", b"a\\x00", b"\x00\xff\r\n", b"{x}", b"~1", bytes(range(256))],
)
def test_arguments_are_written_as_they_are_read(word: bytes) -> None:
    assert split_arguments(f"X {quote(word)}") == [b"X", word]


@pytest.mark.parametrize(
    "change",
    [
        "EXPIRE s 100000",
        "PEXPIREAT s 4000000000001",
        "HEXPIRE h 100000 FIELDS 1 f",
        "HSET h f w",
        "ZADD z 1.5 m",
        "SADD t x",
        "XADD x 2-1 a b",
        "XGROUP CREATE x g 0",
        "XGROUP CREATECONSUMER x h c",
        "XREADGROUP GROUP h d STREAMS x >",
        "XACK x h 1-1",
        "APPEND s y",
        "SETRANGE s 0 v",
        "SWAPDB 0 1",
        "RENAME s r",
    ],
)
def test_a_digest_tells(change: str) -> None:
    endpoint = EmulatorEndpoint()
    client = endpoint.open(2)

    def content() -> list[str]:
        return digest(endpoint, endpoint.now_ms())

    before = (
        "SET s v;HSET h f v;ZADD z 1 m;SADD t 1 2;RPUSH l a b;XADD x 1-1 a b;"
        "XGROUP CREATE x h 0;XREADGROUP GROUP h d STREAMS x >;XADD x 1-2 a b"
    )
    for text in before.split(";"):
        client.send(split_arguments(text))
    first = content()
    assert len(first) == 6 and first == content()
    client.send(split_arguments(change))
    assert content() != first


def _lose_value(keyspace: Keyspace) -> None:
    del keyspace.databases[0].data[b"s"]


def _lose_entry(keyspace: Keyspace) -> None:
    keyspace.heap.clear()


def _lose_volatile(keyspace: Keyspace) -> None:
    keyspace.databases[0].volatile.clear()


def _leave_empty(keyspace: Keyspace) -> None:
    keyspace.databases[0].data[b"t"].discard(b"x")


def _sleep_too_long(keyspace: Keyspace) -> None:
    keyspace.due_ns = 1 << 62


def _forget_key(keyspace: Keyspace) -> None:
    assert keyspace.databases[0].scan_index is not None
    keyspace.databases[0].scan_index.discard(b"t")


@pytest.mark.parametrize(
    "damage", [_lose_value, _lose_entry, _lose_volatile, _leave_empty, _sleep_too_long, _forget_key]
)
def test_the_check_of_a_keyspace_notices(damage: Callable[[Keyspace], None]) -> None:
    endpoint = EmulatorEndpoint()
    client = endpoint.open(2)
    for text in (
        "SET s v EX 100000",
        "SADD t x",
        "HSET h f v",
        "HEXPIRE h 200000 FIELDS 1 f",
        "SCAN 0 COUNT 1",
    ):
        client.send(split_arguments(text))
    keyspace = endpoint.engine.keyspace
    keyspace._check()
    damage(keyspace)
    with pytest.raises(AssertionError):
        keyspace._check()
