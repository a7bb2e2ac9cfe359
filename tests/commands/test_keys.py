"""What a single conversation with the server cannot show: whole scans, chance, notes that are forgotten."""

from __future__ import annotations

import pytest

from emuredis import Emulator, ManualClock, ReplyError
from emuredis.client import Client


def emulator(seed: int = 1) -> Emulator:
    return Emulator(clock=ManualClock(), seed=seed)


@pytest.fixture
def client() -> Client:
    return emulator().client()


def scanned(client: Client, *argv: object) -> list[bytes]:
    """A whole scan: ``argv`` is the command, its cursor left out (``SCAN`` or ``HSCAN key``), and the options."""
    words = 2 if argv[0] == "HSCAN" else 1
    found: list[bytes] = []
    cursor = b"0"
    while True:
        cursor, page = client.call(*argv[:words], cursor, *argv[words:])
        found += page
        if cursor == b"0":
            return found


def test_a_scan_finds_every_key_once(client: Client) -> None:
    names = [b"k%d" % number for number in range(1000)]
    for name in names:
        client.call("SET", name, "v")
    client.call("RPUSH", "list", "x")
    assert sorted(scanned(client, "SCAN")) == sorted([*names, b"list"])
    assert sorted(scanned(client, "SCAN", "COUNT", 7, "MATCH", "k1*")) == sorted(
        name for name in names if name.startswith(b"k1")
    )
    assert scanned(client, "SCAN", "TYPE", "list") == [b"list"]


def test_a_scan_survives_changes(client: Client) -> None:
    stay = [b"s%d" % number for number in range(500)]
    for number, name in enumerate(stay):
        client.call("SET", name, "v")
        client.call("SET", b"t%d" % number, "v")
    found: list[bytes] = []
    cursor, number = b"0", 0
    while True:
        cursor, page = client.call("SCAN", cursor, "COUNT", 20)
        found += page
        for _ in range(15):
            client.call("DEL", f"t{number}")
            client.call("SET", f"u{number}", "v")
            number += 1
        if cursor == b"0":
            break
    assert sorted(name for name in found if name in set(stay)) == sorted(stay)


def test_a_scan_of_a_large_hash(client: Client) -> None:
    fields = [b"f%d" % number for number in range(1000)]
    client.call("HSET", "h", *[part for field in fields for part in (field, b"v")])
    assert sorted(scanned(client, "HSCAN", "h", "NOVALUES")) == sorted(fields)
    flat = scanned(client, "HSCAN", "h", "COUNT", 50)
    assert sorted(flat[::2]) == sorted(fields)
    assert set(flat[1::2]) == {b"v"}


def test_chance_is_that_of_the_seed() -> None:
    def draw(seed: int) -> list[object]:
        client = emulator(seed).client()
        for number in range(50):
            client.call("SET", f"k{number}", "v")
            client.call("HSET", "h", f"f{number}", number)
        asked: list[list[object]] = [
            ["RANDOMKEY"],
            ["HRANDFIELD", "h"],
            ["HRANDFIELD", "h", 5],
            ["HRANDFIELD", "h", -5, "WITHVALUES"],
        ]
        return [client.call(*argv) for argv in asked * 5]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


def test_chance_reaches_every_key_and_field(client: Client) -> None:
    for number in range(5):
        client.call("SET", f"k{number}", "v")
        client.call("HSET", "h", f"f{number}", number)
    assert len({client.call("RANDOMKEY") for _ in range(200)}) == 6
    assert len({client.call("HRANDFIELD", "h") for _ in range(200)}) == 5
    assert {len(set(client.call("HRANDFIELD", "h", 3))) for _ in range(50)} == {3}


def test_more_choices_than_memory_are_refused_by_name(client: Client) -> None:
    client.call("HSET", "h", "f", 1)
    with pytest.raises(ReplyError, match="emuredis does not support HRANDFIELD of more than"):
        client.call("HRANDFIELD", "h", -(10**15))


def test_notes_about_encodings_do_not_pile_up() -> None:
    one = emulator()
    client = one.client()
    for number in range(1000):
        client.call("APPEND", f"k{number}", "ab")
        client.call("APPEND", f"k{number}", "c")
        client.call("DEL", f"k{number}")
    assert len(one.engine.keyspace.databases[0].encodings) < 100


FOOBAR = b"foobar"


@pytest.mark.parametrize(
    ("before", "change"),
    [(b"", ("APPEND", "k", FOOBAR)), (FOOBAR, ("APPEND", "k", "")), (b"ab", ("SETRANGE", "k", 0, FOOBAR))],
)
def test_a_note_about_an_encoding_ends_with_the_value(
    client: Client, before: bytes, change: tuple[object, ...]
) -> None:
    """Also when the same object is stored again: the note was of another."""
    client.call("SET", "k", before)
    client.call(*change)
    assert client.call("OBJECT", "ENCODING", "k") == b"raw"
    client.call("SET", "k", FOOBAR)
    assert client.call("OBJECT", "ENCODING", "k") == b"embstr"
