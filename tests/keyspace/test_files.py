"""RDB files: between the emulator and the live server, damaged, and when writing them fails."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emuredis import Emulator, ManualClock, RdbError
from emuredis.keyspace.rdb import file
from emuredis.keyspace.rdb.crc64 import crc64
from emuredis.values.limits import DEFAULT
from tests.support.live import LiveServer, binary

from .files import contents, fill
from .sides import Failure, emulated, theirs

CONFIG = {"enable-debug-command": "yes"}
NOW = 1_800_000_000


def made(directory: Path, **config: Any) -> Emulator:
    return Emulator(seed=1, clock=ManualClock(NOW), config={**CONFIG, "dir": str(directory), **config})


@pytest.fixture
def full(tmp_path: Path) -> Emulator:
    emulator = made(tmp_path)
    fill(emulated(emulator))
    return emulator


@pytest.fixture
def saved(full: Emulator, tmp_path: Path) -> bytes:
    full.save_rdb()
    return (tmp_path / "dump.rdb").read_bytes()


def live_with(path: Path) -> Iterator[Any]:
    if binary() is None:
        pytest.skip("no live server for this platform")
    with LiveServer("--dir", str(path.parent), "--dbfilename", path.name) as server:
        connection = server.connect()
        yield theirs(connection)
        connection.close()


# -- both ways ---------------------------------------------------------------------------------


@pytest.mark.parametrize("compress", ["yes", "no"])
def test_the_live_server_loads_our_file(compress: str, tmp_path: Path) -> None:
    emulator = made(tmp_path, rdbcompression=compress)
    mine = emulated(emulator)
    fill(mine)
    before = contents(mine)
    assert mine(b"SAVE") == b"OK"
    for live in live_with(tmp_path / "dump.rdb"):
        assert contents(live) == before


@pytest.mark.parametrize("compress", [b"yes", b"no"])
def test_we_load_the_live_servers_file_and_it_loads_ours_again(compress: bytes, tmp_path: Path) -> None:
    source = b"#!lua name=lib\nserver.register_function('f', function(keys, args) return 'called' end)"
    path = tmp_path / "theirs.rdb"
    for live in live_with(path):
        fill(live)
        live(b"FUNCTION", b"LOAD", source)
        live(b"CONFIG", b"SET", b"rdbcompression", compress)
        before = contents(live)
        assert live(b"SAVE") == b"OK"
    emulator = made(tmp_path)
    emulator.load_rdb(path)
    assert contents(emulated(emulator)) == before
    assert file.load(path, DEFAULT, 16).functions == [source]
    assert emulated(emulator)(b"FCALL", b"f", b"0") == b"called"
    emulator.save_rdb(tmp_path / "ours.rdb")
    for live in live_with(tmp_path / "ours.rdb"):
        assert contents(live) == before
        assert live(b"FCALL", b"f", b"0") == b"called"


def test_a_file_and_back(full: Emulator, tmp_path: Path) -> None:
    before = contents(emulated(full))
    full.save_rdb(tmp_path / "x.rdb")
    other = made(tmp_path)
    other.load_rdb(str(tmp_path / "x.rdb"))
    assert contents(emulated(other)) == before
    for db in other.engine.keyspace.databases:
        for value in db.data.values():
            if value.__class__ is not bytes:
                value._check()


def test_libraries_of_ours_are_in_the_file(tmp_path: Path) -> None:
    emulator = made(tmp_path)
    ask = emulated(emulator)
    ask(b"FUNCTION", b"LOAD", b"#!lua name=ours\nserver.register_function('f', function() return 7 end)")
    assert ask(b"SAVE") == b"OK"
    ask(b"FUNCTION", b"FLUSH")
    emulator.load_rdb()
    assert ask(b"FCALL", b"f", b"0") == 7
    for live in live_with(tmp_path / "dump.rdb"):
        assert live(b"FCALL", b"f", b"0") == 7


def test_a_library_that_does_not_load_changes_nothing(tmp_path: Path) -> None:
    emulator = made(tmp_path)
    ask = emulated(emulator)
    ask(b"SET", b"k", b"v")
    file.save(tmp_path / "bad.rdb", file.encode([], {}, True, [b"#!lua name=bad\nthis is no Lua"]))
    with pytest.raises(RdbError, match=r"bad.rdb: a library of functions does not load: .*Error compiling"):
        emulator.load_rdb(tmp_path / "bad.rdb")
    assert ask(b"GET", b"k") == b"v"
    assert ask(b"FUNCTION", b"LIST") == []


# -- loading -----------------------------------------------------------------------------------


def test_what_has_expired_is_left_in_the_file(tmp_path: Path) -> None:
    emulator = made(tmp_path)
    ask = emulated(emulator)
    ask(b"SET", b"a", b"1", b"PX", b"5000")
    ask(b"SET", b"b", b"1", b"PX", b"5001")
    for key, fields in ((b"h", [b"f", b"g"]), (b"gone", [b"f"])):
        for field in fields:
            ask(b"HSET", key, field, b"v")
        ask(b"HPEXPIRE", key, b"5000", b"FIELDS", b"1", b"f")
    emulator.save_rdb()
    emulator.clock.advance(5000)
    other = Emulator(clock=emulator.clock, config={**CONFIG, "dir": str(tmp_path)})
    other.load_rdb()
    ask = emulated(other)
    assert ask(b"DBSIZE") == 2
    assert ask(b"PTTL", b"b") == 1
    assert ask(b"HKEYS", b"h") == [b"g"]
    told = ask(b"INFO", b"persistence").split(b"\r\n")
    assert b"rdb_last_load_keys_loaded:2" in told and b"rdb_last_load_keys_expired:1" in told
    emulator.clock.advance(1)
    assert ask(b"GET", b"b") is None


def test_loading_replaces_everything_and_tells_those_who_care(full: Emulator, tmp_path: Path) -> None:
    full.save_rdb()
    other = made(tmp_path)
    ask, waiter, watcher = emulated(other), other.client(), emulated(other)
    ask(b"SET", b"old", b"v", b"PX", b"10")
    watcher(b"WATCH", b"text")
    watcher(b"MULTI")
    watcher(b"GET", b"text")
    got: list[Any] = []
    waiter.session.on_reply = got.append
    with other.engine.lock:
        other.engine.execute(waiter.session, [b"BLPOP", b"short list", b"0"])
    other.load_rdb()
    assert got == [[b"short list", b"a"]]
    assert watcher(b"EXEC") is None
    assert ask(b"GET", b"old") is None
    assert ask(b"GET", b"text") == b"hello"
    other.clock.advance(1000)
    assert ask(b"GET", b"text") == b"hello"


def test_a_file_with_more_databases_is_refused(saved: bytes, tmp_path: Path) -> None:
    few = made(tmp_path, databases=4)
    with pytest.raises(RdbError, match=r"dump\.rdb.* byte \d+: it has a database 15, where there are 4"):
        few.load_rdb()


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        made(tmp_path).load_rdb(tmp_path / "none.rdb")


def test_a_truncated_file_is_refused_at_every_length(saved: bytes) -> None:
    sizes = {*range(60), *range(len(saved) - 30, len(saved)), *random.Random(1).sample(range(len(saved)), 60)}
    for size in sizes:
        with pytest.raises(RdbError, match=r"byte \d+|truncated|not an RDB file"):
            file.decode(saved[:size], DEFAULT, 16)


def test_a_flipped_bit_is_noticed_anywhere(saved: bytes) -> None:
    rng = random.Random(2)
    for at in rng.sample(range(len(saved)), 150):
        data = bytearray(saved)
        data[at] ^= 1 << rng.randrange(8)
        with pytest.raises(RdbError):
            file.decode(bytes(data), DEFAULT, 16)


def test_damage_with_a_right_checksum_is_refused_or_loads_sound_values(saved: bytes) -> None:
    rng = random.Random(3)
    refused = 0
    for _ in range(300):
        data = bytearray(saved[:-8])
        for _ in range(rng.choice((1, 2, 5))):
            at = rng.randrange(9, len(data))
            data[at : at + rng.choice((0, 1, 1, 2))] = rng.randbytes(rng.choice((0, 1, 1, 3)))
        made = bytes(data) + crc64(bytes(data)).to_bytes(8, "little")
        try:
            file.decode(made, DEFAULT, 16)
        except RdbError:
            refused += 1
    assert 100 < refused < 300


def test_a_damaged_file_changes_nothing_and_is_named(saved: bytes, tmp_path: Path) -> None:
    path = tmp_path / "damaged.rdb"
    path.write_bytes(saved[: len(saved) // 2])
    other = made(tmp_path)
    ask = emulated(other)
    ask(b"SET", b"k", b"v")
    with pytest.raises(RdbError, match=r"damaged\.rdb: damaged or truncated at byte \d+: "):
        other.load_rdb(path)
    assert contents(ask) == {(0, b"k"): [b"string", b"embstr", -1, b"v"]}
    assert ask(b"LASTSAVE") == NOW


# -- saving ------------------------------------------------------------------------------------


def test_what_info_tells(tmp_path: Path) -> None:
    emulator = made(tmp_path)
    ask = emulated(emulator)

    def told() -> dict[str, str]:
        lines = ask(b"INFO", b"persistence").decode().split("\r\n")
        return dict(line.split(":", 1) for line in lines if ":" in line)

    ask(b"SET", b"k", b"v")
    ask(b"SET", b"k", b"w")
    before = told()
    assert (before["rdb_changes_since_last_save"], before["rdb_last_save_time"]) == ("2", str(NOW))
    assert (before["rdb_saves"], before["rdb_last_bgsave_time_sec"]) == ("0", "-1")
    emulator.clock.advance(7000)
    assert ask(b"BGSAVE") == b"Background saving started"
    after = told()
    assert (after["rdb_changes_since_last_save"], after["rdb_last_save_time"]) == ("0", str(NOW + 7))
    assert (after["rdb_saves"], after["rdb_last_bgsave_status"]) == ("1", "ok")
    assert ask(b"LASTSAVE") == NOW + 7
    assert ask(b"CONFIG", b"RESETSTAT") == b"OK"
    assert told()["rdb_saves"] == "0"


def test_a_save_that_fails_leaves_the_old_file(
    saved: bytes, full: Emulator, tmp_path: Path, monkeypatch: Any
) -> None:
    ask = emulated(full)
    ask(b"SET", b"new", b"v")

    def fails(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    assert ask(b"SAVE") == Failure("ERR")
    assert ask(b"BGSAVE") == b"Background saving started"
    assert b"rdb_last_bgsave_status:err" in ask(b"INFO", b"persistence")
    assert b"rdb_changes_since_last_save:1\r" in ask(b"INFO", b"persistence")
    with pytest.raises(OSError, match="No space left"):
        full.save_rdb()
    assert [path.name for path in tmp_path.iterdir()] == ["dump.rdb"]
    assert (tmp_path / "dump.rdb").read_bytes() == saved
    monkeypatch.undo()
    assert ask(b"SAVE") == b"OK"
    assert b"rdb_last_bgsave_status:ok" in ask(b"INFO", b"persistence")


def test_a_background_save_of_a_transaction_has_all_of_it(tmp_path: Path) -> None:
    emulator = made(tmp_path)
    ask = emulated(emulator)
    for line in ([b"MULTI"], [b"SET", b"a", b"1"], [b"BGSAVE"], [b"SET", b"b", b"2"]):
        ask(*line)
    assert ask(b"EXEC") == [b"OK", b"Background saving scheduled", b"OK"]
    other = made(tmp_path)
    other.load_rdb()
    assert emulated(other)(b"DBSIZE") == 2


def test_a_cancelled_save_is_not_done(tmp_path: Path) -> None:
    ask = emulated(made(tmp_path))
    for line in ([b"MULTI"], [b"BGSAVE", b"SCHEDULE"], [b"BGSAVE", b"CANCEL"], [b"BGSAVE", b"CANCEL"]):
        ask(*line)
    assert ask(b"EXEC") == [
        b"Background saving scheduled",
        b"Scheduled background saving cancelled",
        Failure("ERR Background saving is currently not in progress or scheduled"),
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    inside = tmp_path / "inside"
    inside.mkdir()
    outside.write_bytes(b"precious")
    (inside / "dump.rdb").symlink_to(outside)
    (inside / f"temp-{os.getpid()}-0.rdb").symlink_to(outside)
    emulator = made(inside)
    assert emulated(emulator)(b"SAVE") == b"OK"
    assert outside.read_bytes() == b"precious"


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "a/b", "..", ".", "", "a\0b"])
def test_no_file_outside_the_directory(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="dbfilename"):
        made(tmp_path, dbfilename=name)


def test_the_directory_cannot_be_changed_by_a_client(tmp_path: Path) -> None:
    ask = emulated(made(tmp_path))
    for name, value in ((b"dir", b"/"), (b"dbfilename", b"x")):
        reply = ask(b"CONFIG", b"SET", name, value)
        assert (
            reply
            == f"ERR CONFIG SET failed (possibly related to argument '{name.decode()}') - can't set protected config"
        )
    assert ask(b"CONFIG", b"GET", b"dir") == [b"dir", str(tmp_path).encode()]


_ENDLESS_SAVES = """
import sys, emuredis
emulator = emuredis.Emulator(config={"dir": sys.argv[1]})
client = emulator.client()
client.call("SET", "big", "x" * 300_000)
client.call("CONFIG", "SET", "rdbcompression", "no")
while True:
    client.call("INCR", "n")
    client.call("SAVE")
    print("saved", flush=True)
"""


def test_killed_while_it_saves_there_is_a_whole_file(tmp_path: Path) -> None:
    for saves in (1, 2, 3):
        with subprocess.Popen(
            [sys.executable, "-c", _ENDLESS_SAVES, str(tmp_path)], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            for _ in range(saves):
                process.stdout.readline()
            os.kill(process.pid, signal.SIGKILL)
        other = made(tmp_path)
        other.load_rdb()
        assert emulated(other)(b"STRLEN", b"big") == 300_000
