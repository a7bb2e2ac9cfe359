"""The socket connection: boot and fence, calls, time-outs, losing and finding the server again."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from echomq.boot import boot
from echomq.connector import Connector
from echomq.endpoint import Endpoint, Options, Target, connect, parse_url
from echomq.errors import (
    ArgumentError,
    AuthRefused,
    BootRefused,
    CallTimeout,
    ConnectionClosed,
    Disconnected,
    Overloaded,
    ProtocolError,
    RequiresResp3,
    ServerError,
    Unreachable,
    VersionFence,
)
from echomq.keys import VERSION_KEY
from echomq.resp import Reply

OPTIONS = Options(reconnect_ms=1, reconnect_cap_ms=5)


@pytest.fixture
def open_one(live_url: str) -> Iterator[Callable[..., Connector]]:
    opened: list[Connector] = []

    def make(**options: object) -> Connector:
        merged = {"reconnect_ms": 1, "reconnect_cap_ms": 5} | options
        opened.append(Connector(parse_url(live_url), Options(**merged)))  # type: ignore[arg-type]
        return opened[-1]

    yield make
    for connector in opened:
        connector.close()


# -- URLs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("redis://", ("redis", "127.0.0.1", 6379, "", "", 0, "default", None)),
        ("valkey://h:7/3", ("valkey", "h", 7, "", "", 3, "default", None)),
        ("redis://:p%40ss@h", ("redis", "h", 6379, "", "", 0, "default", "p@ss")),
        ("redis://u:p@h/1", ("redis", "h", 6379, "", "", 1, "u", "p")),
        ("redis://[::1]:5", ("redis", "::1", 5, "", "", 0, "default", None)),
        ("redis://h?db=4", ("redis", "h", 6379, "", "", 4, "default", None)),
        ("unix:///a/b.sock?db=2", ("unix", "", 0, "/a/b.sock", "", 2, "default", None)),
        ("unix://:pw@/a/b.sock", ("unix", "", 0, "/a/b.sock", "", 0, "default", "pw")),
        ("emuredis://", ("emuredis", "", 0, "", "", 0, "default", None)),
        ("emuredis://lab/5", ("emuredis", "", 0, "", "lab", 5, "default", None)),
    ],
)
def test_urls(url: str, wanted: tuple[object, ...]) -> None:
    t = parse_url(url)
    assert (t.scheme, t.host, t.port, t.path, t.name, t.db, t.username, t.password) == wanted


@pytest.mark.parametrize(
    "url", ["", "http://x", "redis://h/x", "redis://h?timeout=5", "unix://", "emuredis://a/b", "redis://h/-1"]
)
def test_urls_refused(url: str) -> None:
    with pytest.raises(ArgumentError):
        parse_url(url)


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(Options()) + repr(parse_url("redis://:secret@h")).replace(
        "redis://:secret@h", ""
    )


# -- boot ----------------------------------------------------------------------------------------


def talk(options: Options, replies: dict[tuple[object, ...], Reply], target: Target | None = None) -> object:
    """Run a boot against scripted replies; the commands sent and what it returned."""
    machine = boot(target or Target("x", "redis"), options)
    sent = []
    try:
        command = next(machine)
        while True:
            sent.append(command)
            reply = replies[tuple(command)]
            command = machine.send(reply.pop(0) if isinstance(reply, list) else reply)
    except StopIteration as stop:
        return sent, stop.value


GET = ("GET", VERSION_KEY)
SET = ("SET", VERSION_KEY, "echomq:3.0.0", "NX")
MINE = b"echomq:3.0.0"
HELLO = ("HELLO", "3")


def test_boot_order() -> None:
    target = Target("x", "redis", db=2, password="pw")
    replies = {
        ("HELLO", "3", "AUTH", "default", "pw"): {b"proto": 3},
        ("SELECT", 2): b"OK",
        ("CLIENT", "SETNAME", "w1"): b"OK",
        GET: MINE,
    }
    assert talk(Options(client_name="w1"), replies, target) == (list(replies), 3)


def test_boot_falls_back_to_resp2() -> None:
    replies = {HELLO: ServerError("ERR unknown command 'HELLO'"), ("PING",): b"PONG", GET: MINE}
    assert talk(Options(), replies) == (list(replies), 2)


def test_boot_on_protocol_2_with_a_password() -> None:
    replies = {("AUTH", "pw"): b"OK", ("PING",): b"PONG", GET: MINE}
    assert talk(Options(protocol=2), replies, Target("x", "redis", password="pw")) == (list(replies), 2)


@pytest.mark.parametrize(
    ("options", "replies", "error"),
    [
        (Options(), {HELLO: ServerError("NOAUTH HELLO must be called")}, AuthRefused),
        (Options(protocol=3), {HELLO: ServerError("ERR unknown command")}, BootRefused),
        (Options(protocol=2), {("PING",): ServerError("NOAUTH Authentication required.")}, AuthRefused),
        (Options(protocol=2), {("PING",): b"LOADING"}, BootRefused),
        (
            Options(client_name="w"),
            {HELLO: {b"proto": 3}, ("CLIENT", "SETNAME", "w"): ServerError("ERR x")},
            BootRefused,
        ),
        (Options(), {HELLO: {b"proto": 3}, GET: b"echomq:2.4.2"}, VersionFence),
        (Options(), {HELLO: {b"proto": 3}, GET: [None, b"other"], SET: None}, VersionFence),
        (Options(), {HELLO: {b"proto": 3}, GET: ServerError("WRONGTYPE x")}, BootRefused),
    ],
)
def test_boot_refusals(options: Options, replies: dict[tuple[object, ...], Reply], error: type) -> None:
    with pytest.raises(error):
        talk(options, replies)


def test_a_fresh_store_is_stamped() -> None:
    replies = {HELLO: {b"proto": 3}, GET: [None, MINE], SET: b"OK"}
    assert talk(Options(), replies) == ([HELLO, GET, SET, GET], 3)


def test_the_fence_on_a_server(open_one: Callable[..., Connector]) -> None:
    connection = open_one()
    assert connection.call("GET", VERSION_KEY) == MINE
    with pytest.raises(VersionFence, match=r"echomq:3\.0\.0.*echomq:2\.4\.2"):
        open_one(version="echomq:2.4.2")


def test_name_protocol_and_database(open_one: Callable[..., Connector], live_url: str) -> None:
    connection = open_one(client_name="w7", protocol=2)
    assert (connection.protocol, connection.call("CLIENT", "GETNAME")) == (2, b"w7")
    other = Connector(parse_url(live_url + "?db=3"), OPTIONS)
    assert b"db=3" in other.call("CLIENT", "INFO")
    other.close()


# -- calls ---------------------------------------------------------------------------------------


def test_errors_are_raised_by_call_and_values_in_a_pipeline(open_one: Callable[..., Connector]) -> None:
    connection = open_one()
    with pytest.raises(ServerError, match="WRONGTYPE") as caught:
        connection.pipeline([("SET", "s", "1")])
        connection.call("LPUSH", "s", "1")
    assert caught.value.code == "WRONGTYPE"
    replies = connection.pipeline([("GET", "s"), ("LPUSH", "s", "1"), ("INCR", "s")])
    assert [replies[0], replies[1].code, replies[2]] == [b"1", "WRONGTYPE", 2]
    assert connection.pipeline([]) == []


def test_transaction_and_noreply(open_one: Callable[..., Connector]) -> None:
    connection = open_one()
    assert connection.transaction([("SET", "a", 1), ("INCR", "a")]) == [b"OK", 2]
    with pytest.raises(ServerError, match="wrong number of arguments"):
        connection.transaction([("SET", "a")])
    connection.noreply([("INCR", "a"), ("NOSUCH",), ("INCR", "a")])
    assert connection.call("GET", "a") == b"4"


def test_threads_get_their_own_answers(open_one: Callable[..., Connector]) -> None:
    connection = open_one()
    wrong: list[object] = []

    def work(mine: int) -> None:
        for number in range(200):
            text = b"%d-%d" % (mine, number)
            if connection.call("ECHO", text) != text:
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_large_reply(open_one: Callable[..., Connector]) -> None:
    connection = open_one()
    connection.call("SET", "big", b"x" * 3_000_000)
    assert len(connection.call("GET", "big")) == 3_000_000


def test_a_call_times_out_and_its_late_reply_is_dropped(open_one: Callable[..., Connector]) -> None:
    connection = open_one()
    with pytest.raises(CallTimeout):
        connection.call("BLPOP", "nothing", "0.05", timeout=0.01)
    assert connection.call("ECHO", "after") == b"after"


def test_the_number_in_flight_is_bounded(open_one: Callable[..., Connector]) -> None:
    connection = open_one(max_pending=1)
    parked = threading.Thread(target=lambda: connection.call("BLPOP", "gate", "5", timeout=10))
    parked.start()
    other = open_one()
    while b"cmd=blpop" not in other.call("CLIENT", "LIST"):
        pass
    with pytest.raises(Overloaded):
        connection.call("PING")
    other.call("RPUSH", "gate", "open")
    parked.join()
    assert connection.call("PING") == b"PONG"


def test_closing_frees_whoever_waits(open_one: Callable[..., Connector]) -> None:
    connection = open_one()
    errors: list[Exception] = []

    def park() -> None:
        try:
            connection.call("BLPOP", "never", "0", timeout=30)
        except ConnectionClosed as error:
            errors.append(error)

    thread = threading.Thread(target=park)
    thread.start()
    other = open_one()
    while b"cmd=blpop" not in other.call("CLIENT", "LIST"):
        pass
    connection.close()
    thread.join()
    assert len(errors) == 1
    with pytest.raises(ConnectionClosed):
        connection.call("PING")
    connection.close()


# -- losing the server ---------------------------------------------------------------------------


def kill(other: Connector, victim: Connector) -> None:
    other.call("CLIENT", "KILL", "ID", victim.call("CLIENT", "ID"))


def recover(connection: Connector) -> None:
    """Ask until the connection is back."""
    while True:
        try:
            connection.call("PING")
            return
        except Disconnected:
            threading.Event().wait(0.001)


@pytest.mark.wall
def test_a_lost_connection_tells_the_waiter_and_comes_back(open_one: Callable[..., Connector]) -> None:
    connection, other = open_one(client_name="victim"), open_one()
    client_id = connection.call("CLIENT", "ID")
    caught: list[Exception] = []

    def park() -> None:
        try:
            connection.call("BLPOP", "never", "0", timeout=30)
        except Disconnected as error:
            caught.append(error)

    thread = threading.Thread(target=park)
    thread.start()
    while b"cmd=blpop" not in other.call("CLIENT", "LIST"):
        pass
    other.call("CLIENT", "KILL", "ID", client_id)
    thread.join()
    recover(connection)
    assert "may or may not" in str(caught[0])
    assert connection.call("CLIENT", "GETNAME") == b"victim"
    assert connection.counters.connects == 2


@pytest.mark.wall
def test_a_fence_that_changed_is_final(open_one: Callable[..., Connector]) -> None:
    connection, other = open_one(), open_one()
    other.call("SET", VERSION_KEY, "echomq:9.9.9")
    kill(other, connection)
    with pytest.raises(VersionFence):
        recover(connection)
    other.call("DEL", VERSION_KEY)


def test_unreachable_says_where_and_what_to_try() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(Unreachable) as caught:
        connect(f"redis://127.0.0.1:{port}")
    assert f"host 127.0.0.1 port {port}" in str(caught.value)
    assert f"python -m emuredis serve --port {port}" in str(caught.value)


def test_unreachable_socket(tmp_path: object) -> None:
    with pytest.raises(Unreachable, match="no-such-socket.*serve --unix"):
        connect(f"unix://{tmp_path}/no-such-socket")


def test_a_server_that_hangs_up_while_booting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=lambda: server.accept()[0].close()).start()
        with pytest.raises(Unreachable):
            connect(f"redis://127.0.0.1:{server.getsockname()[1]}")


@pytest.mark.wall
def test_heartbeat(open_one: Callable[..., Connector]) -> None:
    connection, other = open_one(heartbeat_ms=10, send_timeout_ms=10), open_one()
    client_id = connection.call("CLIENT", "ID")
    while b"cmd=ping" not in other.call("CLIENT", "LIST", "ID", client_id):
        pass
    assert connection.call("ECHO", "still paired") == b"still paired"


# -- publish/subscribe ---------------------------------------------------------------------------


def test_messages_and_calls_share_a_connection(open_one: Callable[..., Connector]) -> None:
    listener, other = open_one(), open_one()
    heard: list[tuple[str, bytes]] = []
    arrived = threading.Event()

    def handler(channel: str, payload: bytes) -> None:
        heard.append((channel, payload))
        arrived.set()

    listener.subscribe("news", handler)
    assert listener.call("ECHO", "x") == b"x"
    assert other.call("PUBLISH", "news", b"\xff1") == 1
    assert arrived.wait(5)
    assert heard == [("news", b"\xff1")]
    listener.unsubscribe("news")
    assert other.call("PUBLISH", "news", "2") == 0


def test_subscribing_needs_resp3(open_one: Callable[..., Connector]) -> None:
    with pytest.raises(RequiresResp3):
        open_one(protocol=2).subscribe("news", print)


def test_a_handler_may_not_call_its_own_connection(open_one: Callable[..., Connector]) -> None:
    listener, other = open_one(), open_one()
    caught: list[Exception] = []
    done = threading.Event()

    def handler(channel: str, payload: bytes) -> None:
        try:
            listener.call("PING")
        except ProtocolError as error:
            caught.append(error)
        done.set()

    listener.subscribe("news", handler)
    other.call("PUBLISH", "news", "x")
    assert done.wait(5)
    assert len(caught) == 1


@pytest.mark.wall
def test_subscriptions_survive_a_reconnect(open_one: Callable[..., Connector]) -> None:
    listener, other = open_one(), open_one()
    arrived = threading.Event()
    listener.subscribe("news", lambda channel, payload: arrived.set())
    kill(other, listener)
    while other.call("PUBLISH", "news", "x") == 0:
        pass
    assert arrived.wait(5)


def test_endpoints_open_many(live_url: str) -> None:
    endpoint = Endpoint(live_url)
    first, second = endpoint.connect(), endpoint.connect()
    assert first.call("CLIENT", "ID") != second.call("CLIENT", "ID")
    first.close()
    second.close()
