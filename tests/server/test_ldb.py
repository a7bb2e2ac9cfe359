"""SCRIPT DEBUG: sessions of ``redis-cli --ldb`` have the live server's every byte."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable

import pytest

from emuredis import Emulator, ReplyError
from emuredis.server import Server
from tests.support.live import Connection, LiveServer, Lost, binary
from tests.support.resp import request

from .ldb_sessions import SESSIONS, SUM, WRITES, Session, converse, recorded

Connect = Callable[[], Connection]
EACH = pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.name)


@EACH
def test_as_recorded(connect: Connect, session: Session) -> None:
    assert converse(connect, session) == recorded()[session.name]


@pytest.mark.slow
@pytest.mark.skipif(binary() is None, reason="no live server for this platform")
def test_the_recording_is_true() -> None:
    with LiveServer() as server:
        for session in SESSIONS:
            assert converse(server.connect, session) == recorded()[session.name], session.name


def stops(connection: Connection, mode: str, script: str) -> None:
    assert connection.call("SCRIPT", "DEBUG", mode).value == b"OK"
    assert b"Stopped at 1" in connection.call("EVAL", script, "0").raw


def test_others_are_served_while_a_copy_is_debugged(connect: Connect) -> None:
    debugging, other = connect(), connect()
    stops(debugging, "yes", WRITES)
    debugging.call("s")
    assert other.call("GET", "x").value is None
    assert other.call("SET", "x", "theirs").value == b"OK"
    assert b'"1"' in debugging.call("redis", "GET", "x").raw
    assert b"<endsession>" in debugging.call("c").raw
    assert debugging.receive().value == 1  # type: ignore[union-attr]
    assert other.call("MGET", "x", "y").value[1].value is None


def test_a_client_that_goes_leaves_the_script_running(connect: Connect) -> None:
    debugging, other = connect(), connect()
    stops(debugging, "sync", WRITES)
    debugging.close()
    assert [frame.value for frame in other.call("MGET", "x", "y").value] == [b"1", b"2"]


@pytest.mark.parametrize("mode", ["yes", "sync"])
def test_stopping_the_server_ends_sessions(server: Server, connect: Connect, mode: str) -> None:
    debugging = connect()
    stops(debugging, mode, SUM)
    server.stop()
    with pytest.raises(Lost):
        while debugging.receive() is not None:
            pass


def test_off_again(connect: Connect) -> None:
    connection = connect()
    connection.call("SCRIPT", "DEBUG", "YES")
    assert connection.call("PING").value == b"PONG"
    sha = connection.call("SCRIPT", "LOAD", SUM).value
    refusal = b"ERR Please use EVAL instead of EVALSHA for debugging"
    assert connection.call("EVALSHA", sha, "0").value == refusal
    assert connection.call("EVALSHA", "x", "0").value == b"NOSCRIPT No matching script."
    connection.call("SCRIPT", "DEBUG", "NO")
    assert connection.call("EVAL", SUM, "0").value == 3


def test_not_in_a_pipeline(connect: Connect) -> None:
    connection = connect()
    debug = [[b"SCRIPT", b"DEBUG", *rest] for rest in ([b"NO"], [b"YES"], [b"foo"], [b"NO", b"foo"])]
    connection.send_raw(b"".join(map(request, [[b"PING"], *debug])))
    assert connection.receive().value == b"PONG"  # type: ignore[union-attr]
    for _ in debug:
        refusal = b"ERR SCRIPT DEBUG must be called outside a pipeline"
        assert connection.receive().value == refusal  # type: ignore[union-attr]


def test_transactions(connect: Connect) -> None:
    connection = connect()
    connection.call("MULTI")
    connection.call("SCRIPT", "DEBUG", "SYNC")
    (refused,) = connection.call("EXEC").value
    assert refused.value == b"ERR SCRIPT DEBUG must be called outside a pipeline"
    connection.call("SCRIPT", "DEBUG", "SYNC")
    connection.call("MULTI")
    connection.call("EVAL", SUM, "0")
    assert b"Stopped at 1" in connection.call("EXEC").raw
    assert connection.call("c").raw == b"*1\r\n+<endsession>\r\n"
    assert connection.receive().raw == b"*1\r\n:3\r\n"  # type: ignore[union-attr]


def test_what_has_no_socket_is_refused() -> None:
    with pytest.raises(ReplyError, match="does not support SCRIPT DEBUG YES without a socket"):
        Emulator().client().call("SCRIPT", "DEBUG", "YES")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("redis-cli") is None, reason="no redis-cli")
def test_redis_cli(server: Server, tmp_path: object) -> None:
    file = f"{tmp_path}/s.lua"
    with open(file, "w", encoding="utf-8") as out:
        out.write("local x = redis.call('SET', KEYS[1], ARGV[1])\nreturn {KEYS[1], x}\n")
    done = subprocess.run(
        ["redis-cli", "-p", str(server.port), "--ldb", "--eval", file, "key", ",", "arg"],
        input="step\nprint x\ncontinue\nquit\n", capture_output=True, text=True, timeout=20,
    )  # fmt: skip
    assert '<reply> "+OK"' in done.stdout and "<value> {[ok]=OK; }" in done.stdout, done
    assert '1) "key"' in done.stdout and "OK" in done.stdout
