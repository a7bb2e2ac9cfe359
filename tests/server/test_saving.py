"""``python -m emuredis serve`` with a file: what it begins with, what its end leaves; SHUTDOWN on any server."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest

import emuredis
from tests.support.live import Connection, Lost

from .test_tools import Program

pytestmark = pytest.mark.slow


class Serving(Program):
    """A server on a Unix socket, with a file in ``directory``."""

    def __init__(self, directory: Path, *args: str) -> None:
        self.path = str(directory / "s.sock")
        super().__init__("serve", "--unix", self.path, "--dir", str(directory), *args)
        assert self.first_line().endswith(f" ready on {self.path}\n")

    def connect(self) -> Connection:
        return Connection(self.path)


def stored(path: Path) -> object:
    emulator = emuredis.Emulator()
    emulator.load_rdb(path)
    return emulator.client().call("GET", "k")


def test_what_is_saved_is_there_at_the_next_start(tmp_path: Path) -> None:
    with Serving(tmp_path, "--dbfilename", "x.rdb") as program:
        connection = program.connect()
        connection.call("SET", "k", "v")
        assert connection.call("BGSAVE").value == b"Background saving started"
        connection.call("SET", "k", "lost")
        connection.close()
        assert program.end(signal.SIGTERM) == (0, "", "")
    with Serving(tmp_path, "--dbfilename", "x.rdb") as program:
        connection = program.connect()
        assert connection.call("GET", "k").value == b"v"
        connection.close()
        assert program.end(signal.SIGINT) == (0, "", "")


@pytest.mark.parametrize(("number", "option"), [(signal.SIGTERM, "sigterm"), (signal.SIGINT, "sigint")])
def test_a_signal_saves_when_asked_to(number: int, option: str, tmp_path: Path) -> None:
    with Serving(tmp_path, f"--shutdown-on-{option}", "save") as program:
        connection = program.connect()
        connection.call("SET", "k", "v")
        connection.close()
        assert program.end(number) == (0, "", "")
    assert stored(tmp_path / "dump.rdb") == b"v"


def test_a_signal_ends_nothing_when_the_file_cannot_be_written(tmp_path: Path) -> None:
    with Serving(tmp_path, "--dbfilename", "taken", "--shutdown-on-sigterm", "save") as program:
        (tmp_path / "taken").mkdir()
        connection = program.connect()
        connection.call("SET", "k", "v")
        program.process.send_signal(signal.SIGTERM)
        assert program.process.stderr is not None
        assert "cannot save" in program.process.stderr.readline()
        assert "not ended" in program.process.stderr.readline()
        assert connection.call("GET", "k").value == b"v"
        assert connection.call("SHUTDOWN", "SAVE").value == b"ERR Errors trying to SHUTDOWN. Check logs."
        assert connection.call("CONFIG", "SET", "shutdown-on-sigterm", "save force").value == b"OK"
        connection.close()
        assert program.end(signal.SIGTERM)[0] == 0


@pytest.mark.parametrize(("words", "kept"), [(("SAVE",), b"new"), (("NOSAVE", "NOW"), b"old"), ((), b"old")])
def test_shutdown(words: tuple[str, ...], kept: bytes, tmp_path: Path) -> None:
    with Serving(tmp_path) as program:
        connection, other = program.connect(), program.connect()
        for line in (("SET", "k", "old"), ("SAVE",), ("SET", "k", "new")):
            connection.call(*line)
        with pytest.raises(Lost):
            connection.call("SHUTDOWN", *words)
        with pytest.raises(Lost):
            other.call("PING")
        connection.close()
        other.close()
        assert program.end() == (0, "", "")
    assert stored(tmp_path / "dump.rdb") == kept


def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "dump.rdb"
    emulator = emuredis.Emulator()
    emulator.client().call("SET", "k", "v" * 100)
    emulator.save_rdb(path)
    path.write_bytes(path.read_bytes()[:-30])
    with Program("serve", "--port", "0", "--dir", str(tmp_path)) as program:
        status, out, errors = program.end()
    assert (status, out) == (1, "")
    assert errors.startswith(f"emuredis: cannot load {path}: damaged or truncated at byte ")
    assert errors.count("\n") == 1


def test_bad_places_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "dump.rdb").mkdir()
    for args, said in {
        ("--dir", str(tmp_path / "none")): "configuration parameter 'dir': No such file or directory",
        ("--dbfilename", "../x"): "'dbfilename': dbfilename can't be a path, just a filename",
        ("--dir", str(tmp_path)): f"cannot load {tmp_path}/dump.rdb: Is a directory",
    }.items():
        with Program("serve", "--port", "0", *args) as program:
            status, out, errors = program.end()
        assert status in (1, 2) and out == ""
        assert said in errors.splitlines()[-1]


def test_shutdown_runs_nothing_that_came_behind_it() -> None:
    emulator = emuredis.Emulator()
    with emulator.serve() as server, socket.create_connection(server.address) as sock:
        sock.sendall(b"SET k v\r\nSHUTDOWN NOSAVE\r\nSET k late\r\n")
        sock.settimeout(10)
        while sock.recv(4096):
            pass
    assert emulator.client().call("GET", "k") == b"v"


def test_shutdown_from_within_the_process_ends_the_server() -> None:
    emulator = emuredis.Emulator()
    with emulator.serve() as server, socket.create_connection(server.address) as sock:
        with pytest.raises(emuredis.EmulatorError, match="closed the connection"):
            emulator.client().call("SHUTDOWN", "NOSAVE")
        sock.settimeout(10)
        assert sock.recv(1) == b""


def test_without_a_server_there_is_nothing_to_shut_down() -> None:
    with pytest.raises(
        emuredis.ReplyError, match="emuredis does not support SHUTDOWN where there is no server"
    ):
        emuredis.Emulator().client().call("SHUTDOWN")
