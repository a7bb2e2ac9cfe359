"""The server: one thread, one loop over sockets and time.

Responsible for listening, accepting, and calling the connection whose socket is ready; for waking up when the
engine has something due, and when another thread's command has something for a connection here. What happens
on one connection is `emuredis.server.connection`'s.

All state belongs to the loop's thread. The only way in from elsewhere is `post`, a queue with a socket pair to
wake the loop. On a manual clock the loop never waits for a due instant: moving the clock does what is due.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import socket
import stat
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from emuredis.clock import monotonic
from emuredis.errors import EmulatorError
from emuredis.protocol.decode import Parser
from emuredis.protocol.encode import encode
from emuredis.server.connection import Channel, Connection, Job

if TYPE_CHECKING:
    from emuredis.emulator import Emulator

__all__ = ["Server"]

BACKLOG = 511
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_FULL = b"-ERR max number of clients reached\r\n"
#: Seconds between looks for idle clients, while the parameter ``timeout`` is set.
IDLE_CHECK = 1.0
#: The longest sleep, in seconds: a client in the same process may set a deadline at any time, and tells nobody.
LONGEST_SLEEP = 0.1
#: How long to leave new connections alone when the process has no file descriptor left for one.
ACCEPT_PAUSE = 0.1
#: Where one listens but nobody can connect to: a cluster's redirections name the loopback address instead.
_ANY = ("0.0.0.0", "::")
_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Server:
    """A server for one emulator, over TCP, a Unix socket or both.

    ``host``, ``port``: where to listen; port 0 takes a free one, None listens on no port. A host name is
    listened on at all its addresses. ``unix``: path of a socket to make; one left over by a program that has
    ended is replaced. ``hiredis``: see `emuredis.protocol.decode.Parser`. ``control``: the emulator gets the command
    EMUREDIS, see `emuredis.kit.control`.

    `start` runs it in a thread, `run` in this one; both raise OSError when an address cannot be bound.
    """

    def __init__(self, emulator: Emulator, host: str = "127.0.0.1", port: int | None = 0, unix: str | None = None,
                 *, hiredis: bool | None = None, control: bool = False) -> None:  # fmt: skip
        if port is None and unix is None:
            raise ValueError("a server needs a port or the path of a Unix socket")
        if control:
            from emuredis.kit.control import install

            install(emulator)
        self.emulator = emulator
        self.engine = emulator.engine
        self.config: Any = emulator.engine.config
        self.host, self.port, self.unix = host, port, unix
        self._hiredis = hiredis
        Parser(hiredis)  # an impossible wish is refused here
        self._selector = selectors.DefaultSelector()
        self._listeners: list[socket.socket] = []
        self._connections: dict[Connection, None] = {}
        self._touched: dict[Connection, bool] = {}  # have output to flush; True: and can go on
        self._inbox: deque[tuple[Connection, bytes | None, bool]] = deque()
        self._asked: deque[Callable[[], None]] = deque()
        self._waker, self._wake_end = socket.socketpair()
        self._thread: threading.Thread | None = None
        self._ident = 0
        self._stopping = False
        self._closed = False
        self._lent: list[threading.Thread] = []  # conversations that go on with a socket
        self._idle_check_ns = 0
        self._accept_again = 0.0

    # -- life -----------------------------------------------------------------------------------

    @property
    def address(self) -> Any:
        """``(host, port)`` as bound, or the socket's path if there is no port."""
        return self.unix if self.port is None else (self.host, self.port)

    @property
    def url(self) -> str:
        """``redis://host:port`` or ``unix://path``, for clients."""
        if self.port is None:
            return f"unix://{self.unix}"
        return (
            f"redis://[{self.host}]:{self.port}" if ":" in self.host else f"redis://{self.host}:{self.port}"
        )

    def bind(self) -> Server:
        """Listen; clients may connect from now on and are answered once the loop runs."""
        if self._closed:
            raise EmulatorError("this server has been stopped; make a new one")
        if self._listeners:
            return self
        try:
            if self.port is not None:
                self._bind_tcp()
            if self.unix is not None:
                self._listeners.append(_bind_unix(self.unix))
        except BaseException:
            self._close()
            raise
        for end in (self._wake_end, self._waker):
            end.setblocking(False)
        self._selector.register(self._wake_end, READ, None)
        self._listen(True)
        self.engine.doors.append(self._end)
        self.config.port, self.config.unixsocket = (
            self.port or 0,
            self.unix or "",
        )  # what CONFIG GET and INFO say
        if self.engine.cluster is not None and self.port is not None:
            bound = self._listeners[0].getsockname()[0]
            self.engine.cluster.host = "127.0.0.1" if bound in _ANY else bound
            self.engine.cluster.port = self.port
        return self

    def start(self) -> Server:
        """Bind and run in a thread of its own; returns the server."""
        if self._thread is not None:
            raise EmulatorError("this server is running already")
        self.bind()
        self._thread = threading.Thread(target=self.run, name="emuredis-server", daemon=True)
        self._thread.start()
        return self

    def run(self) -> None:
        """Bind if need be and serve until `stop` is called."""
        if self._stopping:  # before it began
            self._close()
            return
        self.bind()
        self._ident = threading.get_ident()
        self.engine.busy.loops[self._ident] = self
        try:
            while not self._stopping:
                self._turn(self._sleep())
        finally:
            del self.engine.busy.loops[self._ident]
            for connection in list(self._connections):
                connection.flush()
                connection.drop()
            self._close()

    def soon(self, action: Callable[[], None]) -> None:
        """Have ``action`` called in the loop's thread, between commands. From any thread or a signal handler."""
        self._asked.append(action)
        self._wake()

    def _end(self) -> None:
        """End the loop without waiting for it: what SHUTDOWN calls, holding the engine's lock."""
        self._stopping = True
        self._wake()

    def stop(self) -> None:
        """End the loop, close every connection. From any thread or a signal handler; safe to call twice."""
        self._end()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        for thread in self._lent:
            thread.join()
        if not self._ident:
            self._close()  # it never ran

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<emuredis server on {self.address!r}, {len(self._connections)} connections>"

    # -- listening ------------------------------------------------------------------------------

    def _bind_tcp(self) -> None:
        found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in dict.fromkeys(found):
            listener = socket.socket(family, kind, protocol)
            self._listeners.append(listener)
            if os.name == "posix":
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((address[0], self.port, *address[2:]))
            listener.listen(BACKLOG)
            self.port = listener.getsockname()[1]  # port 0: the other addresses get the same one

    def _listen(self, on: bool) -> None:
        for listener in self._listeners:
            listener.setblocking(False)
            if on:
                self._selector.register(listener, READ, listener)
            else:
                self._selector.unregister(listener)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(BACKLOG):
            try:
                sock, peer = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return
            except OSError as problem:
                if problem.errno in _OUT_OF_DESCRIPTORS:
                    self._listen(False)
                    self._accept_again = monotonic() + ACCEPT_PAUSE
                return
            self._welcome(sock, peer)

    def _welcome(self, sock: socket.socket, peer: Any) -> None:
        engine = self.engine
        sock.setblocking(False)
        if sock.family == socket.AF_UNIX:
            address = local = f"{self.unix}:0".encode("utf-8", "surrogateescape")
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            address, local = _text(peer), _text(sock.getsockname())
        with engine.lock:
            if len(engine.sessions) >= self.config.maxclients:
                with contextlib.suppress(OSError):
                    sock.send(_FULL)
                sock.close()
                return
            session = engine.connect(address, local)
        connection = Connection(self, sock, session, Parser(self._hiredis))
        self._connections[connection] = None
        self._selector.register(sock, READ, connection)

    # -- the loop -------------------------------------------------------------------------------

    def serve_busy(self) -> None:
        """Look after the sockets once, in the midst of a script that this loop runs for one of its clients."""
        self._look(0.0)
        for connection in list(self._touched):
            if not connection.executing:
                connection.flush()

    def _turn(self, timeout: float | None) -> None:
        self._look(timeout)
        while self._touched:
            touched, self._touched = self._touched, {}
            for connection, go_on in touched.items():
                if go_on and not connection.dead:
                    connection.resume()
                connection.flush()

    def _look(self, timeout: float | None) -> None:
        """Wait until sockets are ready and serve them; one whose command is under way is left alone."""
        for key, mask in self._selector.select(timeout):
            target = key.data
            if target.__class__ is Connection:
                if target.executing:
                    continue
                if mask & WRITE and not target.dead:
                    target.write()
                if mask & READ and not target.dead:
                    target.read()
            elif target is None:
                self._empty_inbox()
            else:
                self._accept(target)

    def _sleep(self) -> float | None:
        """Do what is due; how long the loop may sleep then, in seconds (None: for ever)."""
        timeout: float | None = None
        engine = self.engine
        if not engine.clock.manual:
            timeout = LONGEST_SLEEP
            with engine.lock:
                due = engine.next_due_ns()
                if due is not None:
                    if due <= engine.now_ns():
                        engine.run_due()
                        due = engine.next_due_ns()
                    if due is not None:
                        timeout = min(max((due - engine.now_ns()) / 1e9, 0.0), LONGEST_SLEEP)
        if self._touched:
            return 0.0
        if self.config.timeout:
            self._drop_idle()
            timeout = IDLE_CHECK if timeout is None else min(timeout, IDLE_CHECK)
        if self._accept_again:
            if monotonic() >= self._accept_again:
                self._accept_again = 0.0
                self._listen(True)
            timeout = ACCEPT_PAUSE if timeout is None else min(timeout, ACCEPT_PAUSE)
        return timeout

    def _drop_idle(self) -> None:
        """The parameter ``timeout``: cut off who has been silent that long, unless blocked or subscribed."""
        now = self.engine.now_ns()
        if now < self._idle_check_ns:
            return
        self._idle_check_ns = now + int(IDLE_CHECK * 1e9)
        oldest = now - self.config.timeout * 1_000_000_000
        for connection in list(self._connections):
            session = connection.session
            if session.last_ns < oldest and session.waiter is None and not session.subscriptions:
                connection.drop()

    # -- what connections ask for ---------------------------------------------------------------

    def in_loop(self, ident: int) -> bool:
        """Whether ``ident`` is the thread that may touch connections."""
        return ident == self._ident

    def touched(self, connection: Connection, go_on: bool) -> None:
        """``connection`` has output to flush at the end of this turn; ``go_on``: its blocked command is done."""
        self._touched[connection] = go_on or self._touched.get(connection, False)

    def want_write(self, connection: Connection, wanted: bool) -> None:
        self._selector.modify(connection.sock, READ | WRITE if wanted else READ, connection)

    @property
    def stopping(self) -> bool:
        return self._stopping

    def lend(self, sock: socket.socket, protocol: int, job: Job) -> None:
        """Let ``job`` converse over a socket that is no connection's any more, answer, and close it."""

        def converse() -> None:
            channel = Channel(self, sock)
            channel.send(encode(job(channel), protocol))
            sock.close()

        thread = threading.Thread(target=converse, name="emuredis-debugged", daemon=True)
        self._lent = [*(old for old in self._lent if old.is_alive()), thread]
        thread.start()

    def forget(self, connection: Connection) -> None:
        del self._connections[connection]
        self._selector.unregister(connection.sock)

    # -- from other threads ---------------------------------------------------------------------

    def post(self, connection: Connection, data: bytes | None, served: bool) -> None:
        """Let the loop `deliver` data to a connection, or drop it if data is None. From any thread."""
        self._inbox.append((connection, data, served))
        self._wake()

    def _wake(self) -> None:
        try:
            self._waker.send(b"\0")
        except (BlockingIOError, InterruptedError):
            pass  # it has been woken often enough
        except OSError:
            pass  # stopped meanwhile

    def _empty_inbox(self) -> None:
        with contextlib.suppress(BlockingIOError, InterruptedError):
            self._wake_end.recv(4096)
        while self._asked:
            self._asked.popleft()()
        inbox = self._inbox
        while inbox:
            connection, data, served = inbox.popleft()
            if connection.dead:
                continue
            if data is None:
                connection.drop()
            else:
                connection.deliver(data, served)

    def _close(self) -> None:
        """Free everything but the connections."""
        if self._closed:
            return
        self._closed = True
        if self._end in self.engine.doors:
            self.engine.doors.remove(self._end)
        for listener in self._listeners:
            if self.unix is not None and listener.family == socket.AF_UNIX:
                with contextlib.suppress(OSError):
                    os.unlink(self.unix)
            listener.close()
        self._selector.close()
        self._waker.close()
        self._wake_end.close()


def _text(address: Any) -> bytes:
    host, port = address[:2]
    return (f"[{host}]:{port}" if ":" in host else f"{host}:{port}").encode()


def _bind_unix(path: str) -> socket.socket:
    """A listening socket at ``path``; a dead one in its place is removed, a living one or a file is not."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if os.path.exists(path) and stat.S_ISSOCK(os.stat(path).st_mode):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                if probe.connect_ex(path) == errno.ECONNREFUSED:
                    os.unlink(path)
        listener.bind(path)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener
