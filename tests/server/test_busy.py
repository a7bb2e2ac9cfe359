"""A script that does not end, and the other clients: the same on our server as on the live one.

Nobody sleeps: who needs the server to be busy asks it until it says so.
"""

from __future__ import annotations

import os
import socket
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import emuredis
from emuredis.server import Server
from tests.support.live import Connection, LiveServer, Lost, binary

pytestmark = pytest.mark.slow

BUSY = b"-BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n"
KILLED = b"-ERR Script killed by user with SCRIPT KILL. script: on @user_script:%d.\r\n"
UNKILLABLE = b"-UNKILLABLE Sorry the script already executed write commands"
ENDLESS = "while true do end"
ASKED_MOST = 100_000


class Host:
    """A server of either kind, whose threshold is twenty milliseconds, and connections to it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.made: list[Connection] = []
        self.connect().call("CONFIG", "SET", "busy-reply-threshold", 20)

    def connect(self) -> Connection:
        self.made.append(Connection(self.path))
        return self.made[-1]

    def running(self, script: str, *args: str) -> Connection:
        """A connection whose script keeps the server busy."""
        runner = self.connect()
        runner.send([b"EVAL", script.encode(), b"0", *(arg.encode() for arg in args)])
        self.wait_until_busy()
        return runner

    def wait_until_busy(self) -> None:
        asker = self.connect()
        for _ in range(ASKED_MOST):
            if asker.call("PING").raw[:5] == b"-BUSY":
                return
        raise AssertionError("the server was never busy")

    def wait_until_idle(self) -> None:
        asker = self.connect()
        for _ in range(ASKED_MOST):
            if asker.call("PING").raw == b"+PONG\r\n":
                return
        raise AssertionError("the server is busy for ever")

    def kill(self) -> bytes:
        return self.connect().call("SCRIPT", "KILL").raw


@pytest.fixture(params=["emuredis", "live"])
def host(request: pytest.FixtureRequest, directory: Path) -> Iterator[Host]:
    if request.param == "live":
        if binary() is None:
            pytest.skip("no live server for this platform")
        with LiveServer() as live:
            yield from _hosted(live.socket_path)
    else:
        with Server(emuredis.Emulator(), port=None, unix=str(directory / "busy")).start() as server:
            yield from _hosted(server.unix or "")


def _hosted(path: str) -> Iterator[Host]:
    made = Host(path)
    yield made
    for connection in made.made:
        connection.close()


def answered(connection: Connection) -> bytes:
    frame = connection.receive()
    assert frame is not None
    return frame.raw


# -- while it is busy --------------------------------------------------------------------------------

#: What a client says meanwhile, in this order, and the beginning of the answer.
SAID = [
    ("PING", BUSY), ("GET x", BUSY), ("SET x 1", BUSY), ("NOSUCH", b"-ERR unknown command 'NOSUCH'"),
    ("GET", b"-ERR wrong number of arguments for 'get'"), ("MULTI", b"+OK"), ("SET a 1", BUSY),
    ("EXEC", b"-EXECABORT Transaction discarded because of: BUSY Valkey is busy"), ("MULTI", b"+OK"),
    ("DISCARD", b"+OK"), ("WATCH a", b"+OK"), ("UNWATCH", b"+OK"), ("AUTH x", b"-ERR AUTH <password> called without"),
    ("CLIENT ID", b":"), ("CLIENT SETNAME foo", b"+OK"), ("CLIENT GETNAME", b"$3\r\nfoo"), ("CLIENT LIST", BUSY),
    ("CLIENT NOSUCH", b"-ERR unknown subcommand 'NOSUCH'"), ("SCRIPT EXISTS a", BUSY), ("SCRIPT FLUSH", BUSY),
    ("SCRIPT KILL a", b"-ERR wrong number of arguments for 'script|kill'"), ("EVAL return 0", BUSY),
    ("EVAL", b"-ERR wrong number of arguments for 'eval'"), ("INFO", BUSY), ("CONFIG GET port", BUSY),
    ("SUBSCRIBE c", BUSY), ("PUBLISH c m", BUSY), ("BLPOP q 0", BUSY), ("SHUTDOWN", BUSY), ("SHUTDOWN NOW", BUSY),
    ("SHUTDOWN SAVE NOSAVE", b"-ERR syntax error"), ("SHUTDOWN ABORT", b"-ERR No shutdown in progress."),
    ("HELLO 3", b"%7\r\n$6\r\nserver"), ("CLIENT GETNAME", b"$3\r\nfoo"), ("HELLO 2", b"*14\r\n$6\r\nserver"),
    ("RESET", b"+RESET"), ("QUIT", b"+OK"),
]  # fmt: skip


def test_what_other_clients_hear(host: Host) -> None:
    runner = host.running(ENDLESS)
    client = host.connect()
    for said, heard in SAID:
        assert client.call(*said.split()).raw.startswith(heard), said
    with pytest.raises(Lost):
        client.receive()
    assert host.kill() == b"+OK\r\n"
    assert answered(runner) == KILLED % 1
    assert host.connect().call("PING").raw == b"+PONG\r\n"
    assert host.kill() == b"-NOTBUSY No scripts in execution right now.\r\n"


def test_nothing_of_a_pipeline_is_lost(host: Host) -> None:
    runner = host.running(ENDLESS)
    runner.send_raw(b"ECHO after\r\nSET mine 1\r\n")
    other = host.connect()
    other.send_raw(b"PING\r\nSET p 1\r\nSCRIPT KILL\r\n")
    assert [answered(other) for _ in range(3)] == [BUSY, BUSY, b"+OK\r\n"]
    assert [answered(runner) for _ in range(3)] == [KILLED % 1, b"$5\r\nafter\r\n", b"+OK\r\n"]
    assert other.call("MGET", "p", "mine").raw == b"*2\r\n$-1\r\n$1\r\n1\r\n"


def test_a_client_without_a_password_hears_so_first(host: Host) -> None:
    host.connect().call("CONFIG", "SET", "requirepass", "pw")
    runner, client = host.connect(), host.connect()
    runner.call("AUTH", "pw")
    runner.send([b"EVAL", ENDLESS.encode(), b"0"])
    asker = host.connect()
    while asker.call("AUTH", "pw").raw == b"+OK\r\n" and asker.call("PING").raw != BUSY:
        pass
    assert client.call("GET", "y").raw == b"-NOAUTH Authentication required.\r\n"
    assert client.call("AUTH", "pw").raw == b"+OK\r\n"
    assert client.call("GET", "y").raw == BUSY
    assert client.call("SCRIPT", "KILL").raw == b"+OK\r\n"
    assert answered(runner) == KILLED % 1


def test_blocked_and_subscribed_clients_wait(host: Host) -> None:
    blocked, subscribed = host.connect(), host.connect()
    subscribed.call("SUBSCRIBE", "c")
    blocked.send([b"BLPOP", b"q", b"0.05"])
    asker = host.connect()
    while b"blocked_clients:1" not in asker.call("INFO", "clients").value:
        pass
    runner = host.running("redis.call('PUBLISH', 'c', 'm')\nwhile true do end")
    assert answered(subscribed) == b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n"
    assert subscribed.call("PING").raw == BUSY
    assert blocked.receive(0.2) is None
    assert host.kill() == b"+OK\r\n"
    assert answered(runner) == KILLED % 2
    assert answered(blocked) == b"*-1\r\n"


def test_a_new_client_and_one_that_leaves(host: Host) -> None:
    runner = host.running(ENDLESS)
    leaving = host.connect()
    leaving.call("WATCH", "k")
    leaving.close()
    runner.close()  # noticed when its script has ended
    assert host.kill() == b"+OK\r\n"
    host.wait_until_idle()


def test_watching_begins_while_busy(host: Host) -> None:
    """What the script wrote afterwards counts as a change."""
    runner = host.running("for i = 1, 2000000000 do if i % 1000000 == 0 then redis.call('GET', 'k') end end")
    watcher = host.connect()
    assert watcher.call("WATCH", "k").raw == b"+OK\r\n"
    host.kill()
    answered(runner)
    host.connect().call("SET", "k", "v")
    watcher.call("MULTI")
    watcher.call("PING")
    assert watcher.call("EXEC").raw == b"*-1\r\n"


# -- what may be killed, and how it dies -------------------------------------------------------------


@pytest.mark.parametrize("write", [
    "redis.call('SET', 'k', 1)", "redis.call('DEL', 'none')", "redis.pcall('LPUSH', 's', 1)",
    "redis.call('EXPIRE', 'k', 1)",
    "redis.call('HSET', 'h', 'f', 'v')", "redis.call('HSET', 'h', 'f', 'v') redis.call('HSET', 'h', 'f', 'w')",
    "for i = 1, 2 do redis.call('ZPOPMIN', 'z') end", "for i = 1, 2 do redis.call('ZREM', 'z', 'm') end",
])  # fmt: skip
def test_a_script_that_wrote_cannot_be_killed(host: Host, write: str) -> None:
    host.connect().call("SET", "s", "string")
    runner = host.running(f"{write} for i = 1, 40000000 do end return 'end'")
    assert host.kill().startswith(UNKILLABLE)
    runner.timeout = 60.0
    assert answered(runner) == b"$3\r\nend\r\n"


@pytest.mark.parametrize("other", [
    "redis.pcall('INCR')", "redis.call('PUBLISH', 'c', 'm')", "redis.call('GET', 'k')", "redis.pcall('NOSUCH')",
    "redis.pcall('SCRIPT', 'KILL')",
])  # fmt: skip
def test_one_that_did_not_can(host: Host, other: str) -> None:
    runner = host.running(f"{other} while true do end")
    assert host.kill() == b"+OK\r\n"
    assert answered(runner) == KILLED % 1


LIBRARY = """#!lua name=l
server.register_function('f', function() while true do end end)
server.register_function('w', function() redis.call('SET', 'k', 1) for i = 1, 40000000 do end return 'end' end)"""


def test_a_function_is_killed_by_its_own_command(host: Host) -> None:
    runner, other = host.connect(), host.connect()
    runner.call("FUNCTION", "LOAD", LIBRARY)
    runner.send([b"fcall", b"F", b"1", b"k", b"x"])
    host.wait_until_busy()
    busy = BUSY.replace(b"SCRIPT KILL", b"FUNCTION KILL")
    assert other.call("PING").raw == busy
    assert host.kill() == busy
    told = other.call("FUNCTION", "STATS").raw
    assert (
        b"$14\r\nrunning_script\r\n*6\r\n$4\r\nname\r\n$1\r\nf\r\n$7\r\ncommand\r\n*5\r\n$5\r\nfcall\r\n"
        in told
    )
    assert b"$11\r\nduration_ms\r\n:" in told
    assert other.call("FUNCTION", "KILL").raw == b"+OK\r\n"
    assert (
        answered(runner) == b"-ERR Script killed by user with FUNCTION KILL. script: on @user_function:2.\r\n"
    )
    assert b"$14\r\nrunning_script\r\n$-1" in other.call("FUNCTION", "STATS").raw


def test_a_function_that_wrote_cannot_be_killed(host: Host) -> None:
    runner, other = host.connect(), host.connect()
    runner.call("FUNCTION", "LOAD", LIBRARY)
    runner.send([b"FCALL", b"w", b"0"])
    host.wait_until_busy()
    assert host.kill().startswith(UNKILLABLE)
    assert other.call("FUNCTION", "KILL").raw.startswith(UNKILLABLE)
    runner.timeout = 60.0
    assert answered(runner) == b"$3\r\nend\r\n"


def test_function_commands_while_a_script_runs(host: Host) -> None:
    runner, other = host.running(ENDLESS), host.connect()
    for command in ("STATS", "KILL"):
        assert other.call("FUNCTION", command).raw == BUSY
    assert host.kill() == b"+OK\r\n"
    assert answered(runner) == KILLED % 1


def test_the_writes_of_the_last_script_do_not_count(host: Host) -> None:
    host.connect().call("EVAL", "redis.call('SET', 'k', 1)", 0)
    runner = host.running(ENDLESS)
    assert host.kill() == b"+OK\r\n"
    assert answered(runner) == KILLED % 1


DYING = [
    ("while true do\n local x = 1 end", KILLED % 2),
    ("while true do pcall(function() while true do end end) end", KILLED % 1),
    ("local ok, e = pcall(function() while true do end end) return e",
     b"$43\r\nERR Script killed by user with SCRIPT KILL.\r\n"),
    ("local ok, e = pcall(function() while true do end end)\nreturn e", KILLED % 2),
    ("return coroutine.wrap(function() while true do end end)()", KILLED % 1),
    ("local co = coroutine.create(function() while true do end end)\nlocal ok, e = coroutine.resume(co)\nreturn e",
     b"-ERR Script killed by user with SCRIPT KILL.\r\n"),
    ("local f = coroutine.wrap(function() while true do end end)\nlocal ok, e = pcall(f)\nreturn e",
     b"$43\r\nERR Script killed by user with SCRIPT KILL.\r\n"),
    ("while true do redis.pcall('PING') end", KILLED % 1),
    ("string.gsub('aaa', 'a', function() while true do end end)", KILLED % 1),
    ("table.sort({3, 2, 1}, function()\n while true do end end)", KILLED % 2),
    ("local t = setmetatable({}, {__index = function() while true do end end}) return t.x", KILLED % 1),
    ("return xpcall(function() while true do end end, function(e) return 'handled' end)", b"$-1\r\n"),
]  # fmt: skip


@pytest.mark.parametrize(("script", "answer"), DYING)
def test_how_it_dies(host: Host, script: str, answer: bytes) -> None:
    runner = host.running(script)
    assert host.kill() == b"+OK\r\n"
    assert answered(runner) == answer
    assert runner.call("EVAL", "return 7", 0).raw == b":7\r\n"


def test_in_a_transaction_only_the_script_dies(host: Host) -> None:
    runner = host.connect()
    for command in ("MULTI", "SET x 1"):
        runner.call(*command.split())
    runner.call("EVAL", ENDLESS, 0)
    runner.call("INCR", "x")
    runner.send([b"EXEC"])
    host.wait_until_busy()
    assert host.kill() == b"+OK\r\n"
    assert answered(runner) == b"*3\r\n+OK\r\n" + KILLED % 1 + b":2\r\n"


def test_no_threshold(host: Host) -> None:
    host.connect().call("CONFIG", "SET", "lua-time-limit", 0)
    runner = host.connect()
    runner.send([b"EVAL", b"for i = 1, 30000000 do end return 'end'", b"0"])
    asker = host.connect()
    asker.timeout = runner.timeout = 60.0
    assert asker.call("PING").raw == b"+PONG\r\n"
    assert answered(runner) == b"$3\r\nend\r\n"


def listening(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


@pytest.mark.parametrize("script", [ENDLESS, "redis.call('SET', 'k', 1) while true do end"])
def test_shutdown_ends_everything(host: Host, script: str) -> None:
    runner = host.running(script)
    runner.send_raw(b"SET late 1\r\n")
    other = host.connect()
    other.send_raw(b"CLIENT GETNAME\r\nSHUTDOWN NOSAVE\r\nCLIENT GETNAME\r\n")
    for connection in (other, runner):
        with pytest.raises(Lost):
            while True:
                connection.receive()
    until(lambda: not listening(host.path))


# -- ours alone --------------------------------------------------------------------------------------


def test_shutdown_leaves_the_emulator() -> None:
    """Whoever was connected is cut, also in the process; what is stored stays, for the next to come."""
    emulator = emuredis.Emulator()
    with emulator.client() as inside, emulator.serve() as server:
        inside.call("SET", "k", "v")
        client = Connection(server.address)
        client.send([b"SHUTDOWN"])
        with pytest.raises(Lost):
            client.receive()
        client.close()
        server.stop()
        with pytest.raises(emuredis.EmulatorError, match="this client is closed"):
            inside.call("GET", "k")
    with (
        emulator.client() as inside,
        pytest.raises(emuredis.ReplyError, match="SHUTDOWN where there is no server"),
    ):
        inside.call("SHUTDOWN", "NOSAVE")
    with emulator.serve() as again:
        client = Connection(again.address)
        assert client.call("GET", "k").value == b"v"
        client.close()


def test_stopping_ends_the_script() -> None:
    """Even before the threshold."""
    emulator = emuredis.Emulator()
    with emulator.serve() as server:
        runner = Connection(server.address)
        runner.send([b"EVAL", b"redis.call('SET', 'begun', 1) while true do pcall(error) end", b"0"])
        while not emulator.engine.keyspace.databases[0].data:
            pass
    runner.close()
    assert emulator.client().call("GET", "begun") == b"1"


def endless(emulator: emuredis.Emulator, script: str, out: list[Any]) -> threading.Thread:
    """A thread of this process whose script keeps ``emulator`` busy; what came of it goes to ``out``."""

    def run() -> None:
        with emulator.client() as client:
            try:
                out.append(client.call("EVAL", script, 0))
            except emuredis.ReplyError as error:
                out.append(str(error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def until(done: Callable[[], bool]) -> None:
    for _ in range(ASKED_MOST):
        if done():
            return
    raise AssertionError("it never happened")


def is_busy(client: Any) -> bool:
    try:
        client.call("PING")
    except emuredis.ReplyError as error:
        return str(error).startswith("BUSY")
    return False


@pytest.mark.parametrize("manual", [False, True])
def test_another_thread_kills(manual: bool) -> None:
    clock = emuredis.ManualClock() if manual else None
    emulator = emuredis.Emulator(clock=clock, config={"busy-reply-threshold": 20})
    out: list[Any] = []
    with emulator.client() as client:
        client.call("SET", "k", "v", "PX", 5)
        thread = endless(emulator, "local x = redis.call('GET', 'k') while true do end", out)
        until(lambda: is_busy(client))
        with pytest.raises(emuredis.ReplyError, match="BUSY"):
            emulator.flushall()
        if clock is not None:
            clock.advance(1000)  # in the midst of the script: what is due is done when it has ended
            assert emulator.engine.keyspace.databases[0].data
        assert client.call("SCRIPT", "KILL") == b"OK"
        thread.join()
        assert "Script killed by user" in out[0]
        if clock is not None:
            assert not emulator.engine.keyspace.databases[0].data
        assert client.call("EVAL", "return 7", 0) == 7


def test_clients_of_a_server_while_another_thread_runs_the_script() -> None:
    emulator = emuredis.Emulator(config={"busy-reply-threshold": 20})
    out: list[Any] = []
    with emulator.serve() as server:
        client = Connection(server.address)
        thread = endless(emulator, ENDLESS, out)
        until(lambda: client.call("PING").raw == BUSY)
        assert client.call("SCRIPT", "KILL").raw == b"+OK\r\n"
        thread.join()
        assert client.call("PING").raw == b"+PONG\r\n"
        client.close()
    assert "Script killed" in out[0]


def test_the_lock_is_whole_again() -> None:
    """After a script that let others in, and one that others were let in to while nested in EXEC."""
    emulator = emuredis.Emulator(config={"busy-reply-threshold": 20})
    out: list[Any] = []
    with emulator.client() as client:
        thread = endless(emulator, ENDLESS, out)
        until(lambda: is_busy(client))
        client.call("SCRIPT", "KILL")
        thread.join()
        lock = emulator.engine.lock
        assert lock.acquire(blocking=False)
        lock.release()
        with pytest.raises(RuntimeError):
            lock.release()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_leaves_the_script_behind() -> None:
    """The child has no thread that would ever end it."""
    emulator = emuredis.Emulator(config={"busy-reply-threshold": 20})
    out: list[Any] = []
    with emulator.client() as client:
        thread = endless(emulator, ENDLESS, out)
        until(lambda: is_busy(client))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            status = 1
            try:
                status = 0 if client.call("EVAL", "return redis.call('PING')", 0) == b"PONG" else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        client.call("SCRIPT", "KILL")
        thread.join()
