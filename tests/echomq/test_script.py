"""Script calls: digest first, one reload; a folder of other scripts; every file's header."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest

from echomq.conformance.world import World
from echomq.errors import ArgumentError, ServerError, ShaMismatch
from echomq.script import OUR_FOLDER, Script, Scripts, evaluate
from echomq.states import BY_SCRIPT, READS

SCRIPT = Script("echo", "return ARGV[1] -- ä".encode())


def test_the_digest_is_over_the_bytes() -> None:
    assert SCRIPT.sha == hashlib.sha1("return ARGV[1] -- ä".encode()).hexdigest()
    assert SCRIPT.command(["k"], ["a"]) == ("EVALSHA", SCRIPT.sha, 1, "k", "a")


class Fake:
    """A server that answers from a list."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.sent: list[tuple[Any, ...]] = []

    def call(self, *args: Any) -> Any:
        self.sent.append(args)
        reply = self.replies.pop(0)
        if isinstance(reply, ServerError):
            raise reply
        return reply


NOSCRIPT = ServerError("NOSCRIPT No matching script.")
LOAD = ("SCRIPT", "LOAD", SCRIPT.source)
CALL = SCRIPT.command([], ["x"])


def test_no_load_when_the_server_knows_it() -> None:
    fake = Fake(b"x")
    assert evaluate(fake.call, SCRIPT, [], ["x"]) == b"x"
    assert fake.sent == [CALL]


def test_one_load_and_one_more_try() -> None:
    fake = Fake(NOSCRIPT, SCRIPT.sha.encode(), b"x")
    assert evaluate(fake.call, SCRIPT, [], ["x"]) == b"x"
    assert fake.sent == [CALL, LOAD, CALL]


def test_a_second_noscript_is_an_error() -> None:
    fake = Fake(NOSCRIPT, SCRIPT.sha.encode(), NOSCRIPT)
    with pytest.raises(ServerError, match="NOSCRIPT"):
        evaluate(fake.call, SCRIPT, [], ["x"])


def test_another_digest_is_an_error() -> None:
    with pytest.raises(ShaMismatch):
        evaluate(Fake(NOSCRIPT, b"0" * 40).call, SCRIPT, [], ["x"])


def test_on_a_server(world: World) -> None:
    world.connection.call("SCRIPT", "FLUSH")
    assert world.connection.eval(SCRIPT, [], [b"\xff\0"]) == b"\xff\0"
    assert world.connection.eval(SCRIPT, ["k"], [5]) == b"5"


def test_a_folder_replaces_by_name(tmp_path: Path) -> None:
    (tmp_path / "claim.lua").write_text("return {}")
    scripts = Scripts(tmp_path)
    assert scripts["claim"].source == b"return {}"
    assert scripts["promote"].source == (OUR_FOLDER / "promote.lua").read_bytes()
    assert scripts.replaced() == ["claim"]


@pytest.mark.parametrize("files", [None, [], ["other.lua"]])
def test_a_folder_without_scripts_is_refused(tmp_path: Path, files: list[str] | None) -> None:
    folder = tmp_path / "scripts"
    if files is not None:
        folder.mkdir()
        for name in files:
            (folder / name).touch()
    with pytest.raises(ArgumentError):
        Scripts(folder)


NAMES = Scripts().names()


def test_there_are_the_protocols_45_and_our_one() -> None:
    assert len(NAMES) == 46
    assert "outlook" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_file_opens_with_its_contract(name: str) -> None:
    source = (OUR_FOLDER / f"{name}.lua").read_text("ascii")
    header = re.match(r"(?:--.*\n)+", source)
    assert header is not None
    lines = header[0].splitlines()
    assert lines[0].startswith(f"-- {name}: ")
    for word in ("-- KEYS ", "-- Reply ", "-- Keeps: "):
        assert any(line.startswith(word) for line in lines), word
    if "ARGV[" in source:
        assert any(line.startswith("-- ARGV ") for line in lines)


@pytest.mark.parametrize("name", NAMES)
def test_each_file_has_a_row_or_moves_no_job(name: str) -> None:
    assert (name in BY_SCRIPT) != (name in READS)


@pytest.mark.parametrize("name", NAMES)
def test_each_file_loads(live_world: World, name: str) -> None:
    script = Scripts()[name]
    assert live_world.connection.call("SCRIPT", "LOAD", script.source) == script.sha.encode()
