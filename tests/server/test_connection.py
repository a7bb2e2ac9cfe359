"""What one client sees of others, of order, of closing: on raw sockets to our server."""

from __future__ import annotations

import socket
from typing import Any

import pytest

import emuredis
from emuredis.server import Server
from emuredis.server import connection as connection_module
from tests.server.conftest import Connect
from tests.support.live import Connection, LiveServer, Lost
from tests.support.resp import request


def wait_for(connection: Connection, field: str, value: int) -> None:
    """Ask until ``INFO clients`` says so: how a test waits for another connection's blocking or closing."""
    for _ in range(20_000):
        if b"%s:%d\r\n" % (field.encode(), value) in connection.call("INFO", "clients").value:
            return
    raise AssertionError(f"{field} never became {value}")


def raw(connection: Connection) -> bytes:
    frame = connection.receive()
    assert frame is not None
    return frame.raw


def test_a_blocked_client_is_served_by_another(connect: Connect) -> None:
    waiting, pushing = connect(), connect()
    waiting.send([b"BLPOP", b"q", b"0"])
    wait_for(pushing, "blocked_clients", 1)
    assert waiting.receive(0) is None
    assert pushing.call("LPUSH", "q", "job").value == 1
    assert raw(waiting) == b"*2\r\n$1\r\nq\r\n$3\r\njob\r\n"
    assert pushing.call("EXISTS", "q").value == 0


def test_waiters_are_served_in_the_order_they_came(connect: Connect) -> None:
    first, second, pushing = connect(), connect(), connect()
    for number, waiting in enumerate((first, second), 1):
        waiting.send([b"BLPOP", b"q", b"0"])
        wait_for(pushing, "blocked_clients", number)
    pushing.call("RPUSH", "q", "a", "b")
    assert raw(first) == b"*2\r\n$1\r\nq\r\n$1\r\na\r\n"
    assert raw(second) == b"*2\r\n$1\r\nq\r\n$1\r\nb\r\n"


def test_what_is_sent_behind_a_blocked_command_waits_for_its_reply(connect: Connect) -> None:
    waiting, other = connect(), connect()
    waiting.send_raw(request([b"BLPOP", b"q", b"0"]) + request([b"SET", b"k", b"1"]) + b"PING\r\n")
    wait_for(other, "blocked_clients", 1)
    waiting.send_raw(request([b"BLPOP", b"q", b"0"]) + b"ECHO one\r\n")
    waiting.send_raw(b"ECHO tw")
    waiting.send_raw(b"o\r\n*x\r\n")
    assert other.call("EXISTS", "k").value == 0
    other.call("RPUSH", "q", "a")
    assert [raw(waiting) for _ in range(3)] == [b"*2\r\n$1\r\nq\r\n$1\r\na\r\n", b"+OK\r\n", b"+PONG\r\n"]
    wait_for(other, "blocked_clients", 1)
    other.call("RPUSH", "q", "b")
    assert raw(waiting) == b"*2\r\n$1\r\nq\r\n$1\r\nb\r\n"
    assert raw(waiting) == b"$3\r\none\r\n"
    assert raw(waiting) == b"$3\r\ntwo\r\n"
    assert raw(waiting) == b"-ERR Protocol error: invalid multibulk length\r\n"
    with pytest.raises(Lost):
        waiting.receive()


def test_a_client_that_goes_away_is_not_served(connect: Connect) -> None:
    gone, waiting, pushing = connect(), connect(), connect()
    gone.send([b"BLPOP", b"q", b"0"])
    wait_for(pushing, "blocked_clients", 1)
    waiting.send([b"BLPOP", b"q", b"0"])
    wait_for(pushing, "blocked_clients", 2)
    gone.close()
    wait_for(pushing, "blocked_clients", 1)
    pushing.call("RPUSH", "q", "a")
    assert raw(waiting) == b"*2\r\n$1\r\nq\r\n$1\r\na\r\n"


def test_half_closing_ends_the_connection_after_the_replies(connect: Connect) -> None:
    client, other = connect(), connect()
    client.send_raw(b"PING\r\nPING\r\n")
    client.socket.shutdown(socket.SHUT_WR)
    assert raw(client) + raw(client) == b"+PONG\r\n" * 2
    with pytest.raises(Lost):
        client.receive()
    wait_for(other, "connected_clients", 1)


def test_a_wait_ends_at_its_time(connect: Connect) -> None:
    client = connect()
    assert client.call("BLPOP", "q", "0.01").raw == b"*-1\r\n"
    assert client.call("HELLO", "3").kind == "%"
    assert client.call("BLPOP", "q", "0.01").raw == b"_\r\n"


def test_moving_a_manual_clock_ends_waits_and_keys(directory: Any) -> None:
    clock = emuredis.ManualClock()
    emulator = emuredis.Emulator(clock=clock, config={"notify-keyspace-events": "Ex"})
    with emulator.serve(unix=str(directory / "manual")) as server:
        waiting, other, listening = (Connection(server.unix or "") for _ in range(3))
        listening.call("SUBSCRIBE", "__keyevent@0__:expired")
        other.call("SET", "k", "v", "PX", "500")
        waiting.send([b"BLPOP", b"q", b"1"])
        wait_for(other, "blocked_clients", 1)
        clock.advance(999)
        message = b"*3\r\n$7\r\nmessage\r\n$22\r\n__keyevent@0__:expired\r\n$1\r\nk\r\n"
        assert raw(listening) == message
        assert waiting.receive(0) is None
        clock.advance(1)
        assert raw(waiting) == b"*-1\r\n"
        for connection in (waiting, other, listening):
            connection.close()


def test_in_process_clients_and_sockets_meet(server: Server, connect: Connect) -> None:
    waiting, subscribed, other = connect(), connect(), connect()
    inside = server.emulator.client()
    waiting.send_raw(request([b"BLPOP", b"q", b"0"]) + b"PING\r\n")
    wait_for(other, "blocked_clients", 1)
    subscribed.call("SUBSCRIBE", "c")
    assert inside.call("RPUSH", "q", "a") == 1
    assert raw(waiting) == b"*2\r\n$1\r\nq\r\n$1\r\na\r\n"
    assert raw(waiting) == b"+PONG\r\n"
    assert inside.call("PUBLISH", "c", "m") == 1
    assert raw(subscribed) == b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n"
    killed = connect()
    number = killed.call("CLIENT", "ID").value
    assert inside.call("CLIENT", "KILL", "ID", number) == 1
    with pytest.raises(Lost):
        killed.receive()


def test_an_in_process_key_runs_out_in_time(server: Server, connect: Connect) -> None:
    subscribed = connect()
    subscribed.call("CONFIG", "SET", "notify-keyspace-events", "Ex")
    subscribed.call("SUBSCRIBE", "__keyevent@0__:expired")
    server.emulator.client().call("SET", "k", "v", "PX", "5")
    assert b"__keyevent@0__:expired" in raw(subscribed)


PUSHES = [
    b"HELLO 3\r\nSUBSCRIBE c\r\nPUBLISH c m\r\nPING\r\n",
    b"HELLO 3\r\nSUBSCRIBE c\r\nMULTI\r\nPUBLISH c 1\r\nPUBLISH c 2\r\nEXEC\r\nPING\r\n",
    b"HELLO 3\r\nCONFIG SET notify-keyspace-events KEA\r\nPSUBSCRIBE __key*__:*\r\nSET k v\r\nPING\r\nDEL k\r\n"
    b"CONFIG SET notify-keyspace-events \"\"\r\n",
    b"HELLO 3\r\nSUBSCRIBE a b a\r\nUNSUBSCRIBE\r\nUNSUBSCRIBE\r\nPING\r\n",
    b"HELLO 3\r\nCLIENT REPLY OFF\r\nSUBSCRIBE c\r\nPUBLISH c m\r\nCLIENT REPLY ON\r\n",
    b"HELLO 3\r\nSUBSCRIBE c\r\nCLIENT REPLY SKIP\r\nPUBLISH c m\r\nPING\r\n",
    b"HELLO 3\r\nPING\r\nHELLO 2\r\nBLPOP q 0.001\r\nHELLO 3\r\nBLPOP q 0.001\r\nGET nokey\r\nRESET\r\nGET nokey\r\n",
    b"SUBSCRIBE c\r\nPUBLISH c m\r\nPING\r\nUNSUBSCRIBE c\r\nPUBLISH c m\r\n",
    b"RPUSH q a\r\nMULTI\r\nBLPOP q 0\r\nBLPOP q 0\r\nEXEC\r\n",
]  # fmt: skip


def _conversation(address: str, data: bytes) -> list[bytes]:
    connection = Connection(address)
    connection.send_raw(data + b"ECHO the-end\r\n")
    frames = []
    while not frames or b"the-end" not in frames[-1]:
        frames.append(raw(connection))
    connection.close()
    return frames


@pytest.mark.parametrize("data", PUSHES)
def test_pushes_come_where_the_live_server_puts_them(
    server: Server, live_server: LiveServer, data: bytes
) -> None:
    ours = _conversation(server.unix or "", data)
    live = _conversation(live_server.socket_path, data)
    assert [_without_id(frame) for frame in ours] == [_without_id(frame) for frame in live]


def _without_id(frame: bytes) -> bytes:
    before, found, after = frame.partition(b"$2\r\nid\r\n:")
    return before + found + after.partition(b"\r\n")[2]


def test_maxclients(connect: Connect) -> None:
    first = connect()
    first.call("CONFIG", "SET", "maxclients", "2")
    second = connect()
    assert second.call("PING").raw == b"+PONG\r\n"
    third = connect()
    assert raw(third) == b"-ERR max number of clients reached\r\n"
    with pytest.raises(Lost):
        third.receive()
    second.close()
    wait_for(first, "connected_clients", 1)
    assert connect().call("PING").raw == b"+PONG\r\n"


def test_idle_clients_are_cut_off_unless_they_wait(directory: Any) -> None:
    clock = emuredis.ManualClock()
    with emuredis.Emulator(clock=clock).serve(unix=str(directory / "idle")) as server:
        idle, blocked, subscribed, active = (Connection(server.unix or "") for _ in range(4))
        idle.call("PING")
        subscribed.call("SUBSCRIBE", "c")
        blocked.send([b"BLPOP", b"q", b"0"])
        active.call("CONFIG", "SET", "timeout", "10")
        wait_for(active, "blocked_clients", 1)
        clock.advance(6_000)
        active.call("PING")
        clock.advance(4_500)
        active.call("PING")
        active.call("PING")
        with pytest.raises(Lost):
            idle.receive()
        assert active.call("PUBLISH", "c", "m").value == 1
        assert active.call("RPUSH", "q", "a").value == 1
        assert raw(blocked) == b"*2\r\n$1\r\nq\r\n$1\r\na\r\n"
        assert raw(subscribed).endswith(b"$1\r\nm\r\n")
        for connection in (idle, blocked, subscribed, active):
            connection.close()


def test_a_slow_reader_is_waited_for(connect: Connect) -> None:
    slow, other = connect(), connect()
    value = b"x" * 1_000_000
    other.call("SET", "k", value)
    slow.send_raw(request([b"GET", b"k"]) * 20 + b"PING\r\n")
    assert other.call("PING").raw == b"+PONG\r\n"  # nobody waits for it
    assert [raw(slow) == b"$1000000\r\n%b\r\n" % value for _ in range(20)] == [True] * 20
    assert raw(slow) == b"+PONG\r\n"


def test_quit_sends_what_is_left_first(connect: Connect) -> None:
    slow, other = connect(), connect()
    other.call("SET", "k", b"x" * 1_000_000)
    slow.send_raw(request([b"GET", b"k"]) * 5 + b"QUIT\r\nPING\r\n")
    other.call("PING")
    frames = [raw(slow) for _ in range(6)]
    assert [len(frame) for frame in frames[:5]] == [1_000_012] * 5
    assert frames[5] == b"+OK\r\n"
    with pytest.raises(Lost):
        slow.receive()


def test_a_subscriber_that_does_not_read_is_cut_off(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "OUTPUT_LIMIT_SUBSCRIBER", 3_000_000)
    slow, other = connect(), connect()
    slow.call("SUBSCRIBE", "c")
    message = b"x" * 500_000
    received = [other.call("PUBLISH", "c", message).value for _ in range(30)]
    assert received[0] == 1 and received[-1] == 0
    wait_for(other, "connected_clients", 1)


def test_a_reader_that_never_reads_is_cut_off_at_last(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "OUTPUT_LIMIT", 3_000_000)
    slow, other = connect(), connect()
    other.call("SET", "k", b"x" * 500_000)
    slow.send_raw(request([b"GET", b"k"]) * 30)
    wait_for(other, "connected_clients", 1)


def test_requests_without_end_are_cut_off(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "QUERY_LIMIT", 300_000)
    endless, ahead, other = connect(), connect(), connect()
    ahead.send([b"BLPOP", b"q", b"0"])
    wait_for(other, "blocked_clients", 1)
    for connection, data in (
        (endless, b"*2147483647\r\n" + b"$1\r\na\r\n" * 60_000),
        (ahead, b"PING\r\n" * 60_000),
    ):
        with pytest.raises(Lost):
            connection.send_raw(data)
            connection.receive()
    wait_for(other, "connected_clients", 1)
    wait_for(other, "blocked_clients", 0)


def test_a_fault_of_ours_is_an_answer_not_an_end(
    server: Server, connect: Connect, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client = connect()
    execute = server.engine.execute

    def faulty(session: Any, argv: list[bytes]) -> Any:
        if argv[0] == b"FAULT":
            raise ZeroDivisionError("oops")
        return execute(session, argv)

    monkeypatch.setattr(server.engine, "execute", faulty)
    client.send_raw(b"PING\r\nFAULT\r\nPING\r\n")
    assert raw(client) == b"+PONG\r\n"
    assert raw(client) == b"-ERR emuredis internal error: ZeroDivisionError: oops\r\n"
    assert raw(client) == b"+PONG\r\n"
    assert "ZeroDivisionError: oops" in capsys.readouterr().err


def test_client_list_tells_of_the_socket(connect: Connect) -> None:
    client = connect()
    line = client.call("CLIENT", "LIST").value
    fields = dict(part.partition(b"=")[::2] for part in line.split())
    assert int(fields[b"fd"]) > 0
    assert int(fields[b"tot-net-in"]) == len(request([b"CLIENT", b"LIST"]))
    assert fields[b"addr"] == fields[b"laddr"] and fields[b"addr"].endswith(b":0")
