"""redis-cli's own cluster manager on ours: it looks for gaps, reshards and rebalances."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys

import pytest

import emuredis

CLI = shutil.which("redis-cli") or shutil.which("valkey-cli")

needs_cli = pytest.mark.skipif(CLI is None, reason="redis-cli is not installed")


def cli(port: int, *words: str) -> str:
    done = subprocess.run([CLI or "", "-p", str(port), *words], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return re.sub(r"\x1b\[[\d;]*m", "", done.stdout)


@needs_cli
def test_redis_cli_follows_redirections() -> None:
    with emuredis.Emulator(cluster=3).serve() as servers:
        port = servers.address[1]
        for key in ("a", "b", "c"):
            assert cli(port, "-c", "SET", key, key) == "OK\n"
            assert cli(port, "-c", "GET", key) == f"{key}\n"
        assert cli(port, "GET", "a").startswith("MOVED 15495 127.0.0.1:")


@needs_cli
@pytest.mark.slow
def test_redis_cli_manages_the_cluster() -> None:
    emulator = emuredis.Emulator(cluster=3, seed=1)
    with emulator.serve() as servers:
        port, other = servers.address[1], servers.addresses[1][1]
        place = f"127.0.0.1:{port}"
        with emuredis.RedisCluster(emulator) as client:
            for number in range(60):
                client.set(f"key{number}", number)
        told = cli(port, "--cluster", "check", place)
        assert "[OK] All 16384 slots covered." in told and "[OK] 60 keys in 3 masters." in told
        ids = [cli(each, "CLUSTER", "MYID").strip() for each in (port, other)]
        cli(port, "--cluster", "reshard", place, "--cluster-from", ids[0], "--cluster-to", ids[1],
            "--cluster-slots", "500", "--cluster-yes")  # fmt: skip
        told = cli(port, "--cluster", "check", place)
        assert "slots:[500-5460] (4961 slots) master" in told
        assert "[OK] All 16384 slots covered." in told and "[OK] 60 keys in 3 masters." in told
        cli(port, "--cluster", "rebalance", place)
        told = cli(port, "--cluster", "info", place)
        assert "[OK] 60 keys in 3 masters." in told and told.count(" slots | 0 slaves.") == 3


def test_serve_from_the_shell() -> None:
    command = [sys.executable, "-m", "emuredis", "serve", "--cluster", "2", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    try:
        ready = process.stdout.readline()
        ports = re.findall(r":(\d+)", ready)
        assert ready.startswith("emuredis ") and len(ports) == 2
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=10)
    assert process.returncode == 0


@pytest.mark.parametrize("words", ["--cluster 0", "--cluster x", "--cluster 2 --unix s"])
def test_bad_options(words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "emuredis", "serve", *words.split()], capture_output=True, text=True
    )
    assert done.returncode == 2 and ("nodes" in done.stderr or "ports only" in done.stderr)
