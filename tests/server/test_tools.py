"""Programs of others: redis-cli, redis-benchmark, redis-py, against our server."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from emuredis.server import Server

CLI = shutil.which("redis-cli") or shutil.which("valkey-cli")
BENCHMARK = shutil.which("redis-benchmark") or shutil.which("valkey-benchmark")
ROOT = Path(__file__).resolve().parents[2]

needs_cli = pytest.mark.skipif(CLI is None, reason="redis-cli is not installed")


def cli(server: Server, *args: str, stdin: str | None = None) -> str:
    command = [CLI or "", "-h", server.host, "-p", str(server.port), *args]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


@needs_cli
def test_redis_cli(server: Server) -> None:
    assert cli(server, "PING") == "PONG\n"
    assert cli(server, "SET", "k", "a b") == "OK\n"
    assert cli(server, "--no-raw", "GET", "k") == '"a b"\n'
    assert cli(server, "--no-raw", "-3", "HSET", "h", "f", "v") == "(integer) 1\n"
    assert cli(server, "--no-raw", "-3", "HGETALL", "h") == '1# "f" => "v"\n'
    assert cli(server, "--no-raw", "GET") == "(error) ERR wrong number of arguments for 'get' command\n"
    assert cli(server, stdin="MULTI\nINCR n\nINCR n\nEXEC\n") == "OK\nQUEUED\nQUEUED\n1\n2\n"
    assert cli(server, "-x", "SET", "big", stdin="x" * 300_000) == "OK\n"
    assert cli(server, "STRLEN", "big") == "300000\n"
    assert sorted(cli(server, "--scan").split()) == ["big", "h", "k", "n"]


@needs_cli
def test_redis_cli_pipe_mode(server: Server) -> None:
    lines = "".join(f"*3\r\n$3\r\nSET\r\n$5\r\nk{number:04}\r\n$1\r\nv\r\n" for number in range(5000))
    assert "errors: 0, replies: 5000" in cli(server, "--pipe", stdin=lines)
    assert cli(server, "DBSIZE") == "5000\n"


@pytest.mark.slow
@pytest.mark.skipif(BENCHMARK is None, reason="redis-benchmark is not installed")
@pytest.mark.parametrize("pipeline", ["1", "16"])
def test_redis_benchmark(server: Server, pipeline: str) -> None:
    command = [
        BENCHMARK or "",
        "-p",
        str(server.port),
        "-n",
        "2000",
        "-c",
        "20",
        "-P",
        pipeline,
        "-r",
        "100",
        "-q",
    ]
    command += ["-t", "ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange_100,mset"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.count("requests per second") >= 15
    assert "rror" not in done.stdout + done.stderr


@pytest.mark.parametrize("protocol", [2, 3])
def test_redis_py(server: Server, protocol: int) -> None:
    redis = pytest.importorskip("redis")
    with redis.Redis(host=server.host, port=server.port, protocol=protocol, decode_responses=True) as client:
        assert client.set("k", "v") is True
        assert client.zadd("z", {"a": 1.5, "b": 2}) == 2
        assert [tuple(pair) for pair in client.zrange("z", 0, -1, withscores=True)] == [
            ("a", 1.5),
            ("b", 2.0),
        ]
        client.hset("h", mapping={"f": "1", "g": "2"})
        assert client.hgetall("h") == {"f": "1", "g": "2"}
        with client.pipeline() as pipe:
            assert pipe.set("n", 1).incr("n").get("n").execute() == [True, 2, "2"]
        with client.pubsub(ignore_subscribe_messages=True) as listening:
            listening.subscribe("c")
            assert listening.get_message(timeout=5) is None
            client.publish("c", "hello")
            assert listening.get_message(timeout=5)["data"] == "hello"
        with client.lock("lock", timeout=5, blocking=False):
            assert client.exists("lock")
        assert client.blpop("nothing", timeout=0.01) is None


class Program:
    """``python -m emuredis`` as a process."""

    def __init__(self, *args: str) -> None:
        command = [sys.executable, "-m", "emuredis", *args]
        env = dict(os.environ, PYTHONPATH=str(ROOT))
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
        )

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        """A failing test leaves nothing running."""
        self.process.kill()
        self.process.communicate()

    def first_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def end(self, number: int | None = None) -> tuple[int, str, str]:
        if number is not None:
            self.process.send_signal(number)
        out, errors = self.process.communicate(timeout=20)
        return self.process.returncode, out, errors


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_until_a_signal(directory: Path, number: int) -> None:
    path = str(directory / f"program{number}")
    with Program(
        "serve", "--port", "0", "--unix", path, "--enable-debug-command", "yes", "--requirepass", "pw"
    ) as program:
        line = program.first_line()
        assert line.startswith("emuredis ") and line.endswith(f" and {path}\n")
        port = int(line.split("127.0.0.1:")[1].split()[0])
        redis = pytest.importorskip("redis")
        with redis.Redis(port=port, password="pw") as client:
            assert client.config_get("enable-debug-command") == {"enable-debug-command": "yes"}
            assert client.execute_command("DEBUG", "SLEEP", "0") == b"OK"
        with redis.Redis(unix_socket_path=path) as client, pytest.raises(redis.AuthenticationError):
            client.ping()
        assert program.end(number) == (0, "", "")
    assert not os.path.exists(path)


@pytest.mark.slow
def test_what_goes_wrong_is_one_clear_line(server: Server) -> None:
    with Program("serve", "--port", str(server.port)) as program:
        status, out, errors = program.end()
    assert (status, out) == (1, "")
    assert errors == f"emuredis: cannot listen on 127.0.0.1:{server.port}: Address already in use\n"
    for args, said in {
        ("--port", "x"): "argument --port: 'x' is not a port (0 to 65535)",
        ("--port", "70000"): "argument --port: '70000' is not a port (0 to 65535)",
        ("--databases", "0"): "parameter 'databases': argument must be between 1 and 2147483647",
        ("--nonsense", "1"): "unrecognized arguments: --nonsense 1",
        ("--host", "no.such.host.invalid", "--port", "0"): "cannot listen on no.such.host.invalid:0: ",
    }.items():
        with Program("serve", *args) as program:
            status, out, errors = program.end()
        assert status in (1, 2) and out == ""
        assert said in errors.splitlines()[-1]
        assert "Traceback" not in errors
