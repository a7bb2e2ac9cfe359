"""Listening, addresses, starting and stopping."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

import emuredis
from emuredis.errors import EmulatorError
from emuredis.server import Server
from tests.support.live import Connection, Lost


def test_a_free_port_and_the_context_manager() -> None:
    with emuredis.Emulator().serve() as server:
        host, port = server.address
        assert host == "127.0.0.1" and port > 0
        assert server.url == f"redis://127.0.0.1:{port}"
        client = Connection((host, port))
        assert client.call("PING").raw == b"+PONG\r\n"
        assert client.call("CONFIG", "GET", "port").value[1].value == b"%d" % port
        line = client.call("CLIENT", "LIST").value
        mine = client.socket.getsockname()
        assert b" addr=%s:%d laddr=127.0.0.1:%d " % (mine[0].encode(), mine[1], port) in line
    with pytest.raises(Lost):
        client.receive()
    client.close()
    with pytest.raises(OSError):
        socket.create_connection((host, port))


def test_only_a_unix_socket(directory: Path) -> None:
    path = str(directory / "only")
    server = Server(emuredis.Emulator(), port=None, unix=path).start()
    assert server.address == path and server.url == f"unix://{path}"
    client = Connection(path)
    assert client.call("PING").raw == b"+PONG\r\n"
    client.close()
    server.stop()
    server.stop()
    assert not os.path.exists(path)


def test_ipv6() -> None:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("no IPv6 here")
    with emuredis.Emulator().serve(host="::1") as server:
        assert server.url == f"redis://[::1]:{server.port}"
        with socket.create_connection(server.address) as client:
            client.sendall(b"CLIENT LIST\r\n")
            assert f"laddr=[::1]:{server.port}".encode() in client.recv(65536)


def test_a_host_name_is_listened_on_at_all_its_addresses() -> None:
    with emuredis.Emulator().serve(host="localhost") as server:
        for family, _, _, _, address in socket.getaddrinfo("localhost", server.port, type=socket.SOCK_STREAM):
            with socket.socket(family) as client:
                client.connect(address)
                client.sendall(b"PING\r\n")
                assert client.recv(100) == b"+PONG\r\n"


def test_a_socket_left_behind_is_replaced_and_a_living_one_is_not(directory: Path) -> None:
    path = str(directory / "left")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)
    first = Server(emuredis.Emulator(), port=None, unix=path).start()
    with pytest.raises(OSError):
        Server(emuredis.Emulator(), port=None, unix=path).start()
    client = Connection(path)
    assert client.call("PING").raw == b"+PONG\r\n"
    client.close()
    first.stop()


def test_a_file_in_the_way_is_left_alone(directory: Path) -> None:
    path = directory / "file"
    path.write_text("precious")
    with pytest.raises(OSError):
        Server(emuredis.Emulator(), port=None, unix=str(path)).start()
    assert path.read_text() == "precious"
    assert not stat.S_ISSOCK(path.stat().st_mode)


def test_a_port_in_use() -> None:
    with emuredis.Emulator().serve() as server, pytest.raises(OSError):
        emuredis.Emulator().serve(port=server.port)


def test_misuse() -> None:
    with pytest.raises(ValueError, match="a port or the path"):
        Server(emuredis.Emulator(), port=None)
    server = Server(emuredis.Emulator())
    server.stop()
    with pytest.raises(EmulatorError, match="has been stopped"):
        server.bind()
    with emuredis.Emulator().serve() as running, pytest.raises(EmulatorError, match="running already"):
        running.start()


def test_stopping_before_it_runs() -> None:
    server = Server(emuredis.Emulator()).bind()
    server.stop()
    server.run()


def test_two_servers_share_an_emulator() -> None:
    emulator = emuredis.Emulator()
    with emulator.serve() as one, emulator.serve() as two:
        waiting, pushing = Connection(one.address), Connection(two.address)
        waiting.send([b"BLPOP", b"q", b"0"])
        while pushing.call("INFO", "clients").value.find(b"blocked_clients:1") < 0:
            pass
        pushing.call("RPUSH", "q", "a")
        frame = waiting.receive()
        assert frame is not None and frame.raw == b"*2\r\n$1\r\nq\r\n$1\r\na\r\n"
        waiting.close()
        pushing.close()


def test_sessions_do_not_outlive_connections() -> None:
    emulator = emuredis.Emulator()
    with emulator.serve() as server:
        clients = [Connection(server.address) for _ in range(5)]
        for client in clients:
            client.call("SUBSCRIBE", "c")
    assert not emulator.engine.sessions
    assert not emulator.engine.pubsub.channels
    for client in clients:
        client.close()
