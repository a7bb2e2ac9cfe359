"""One client's connection: bytes in, commands run, bytes out.

Responsible for the order of things on one socket. It knows the engine's session interface and the protocol
package; which sockets exist and when they are ready is the server's business. Everything here runs in the
server's thread, except the three callables given to the session, which may be called by any thread that holds
the engine's lock.

The rules of order:

* All commands of a read run in one go, under the lock, and their replies leave in one send.
* A push caused by the command being run comes after that command's reply.
* After BLOCKED nothing more of this client is run until its reply has come; what it sends meanwhile is kept as
  it came (`_unread`), what had been parsed already as commands (`_pending`).
* A protocol error is answered after the commands before it. Closing waits for the last reply to be sent; a client that
  silenced its replies is then never closed by the server, as on the real one.
* Output that the socket does not take waits in `_unsent`; a reader too slow is cut off at a limit.
"""

from __future__ import annotations

import select
import socket
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from emuredis.errors import ReplyError
from emuredis.protocol.decode import Argv, Parser
from emuredis.protocol.encode import TOP2, TOP3, encode
from emuredis.replies import Blocked, Frames, Reply

if TYPE_CHECKING:
    from emuredis.engine.session import Session
    from emuredis.server.server import Server

__all__ = ["Channel", "Connection", "Job"]

READ_SIZE = 64 * 1024
#: What may wait for a slow reader, in bytes. The server's own limit for subscribers; for others it has none.
OUTPUT_LIMIT = 1 << 30
OUTPUT_LIMIT_SUBSCRIBER = 32 * 1024 * 1024
#: The longest unfinished request, and what a blocked client may send ahead (client-query-buffer-limit).
QUERY_LIMIT = 1 << 30
#: Commands of a browser that was led here (cross-protocol scripting): cut off without an answer.
#: How often a conversation looks whether the server is being stopped, in seconds.
STOP_CHECK = 0.1
_FORBIDDEN = (b"post", b"host:")


class Channel:
    """A client's socket that somebody waits on, with no loop in between; see `emuredis.scripting.ldb`.

    The client counts as gone when the server is being stopped.
    """

    def __init__(self, server: Server, sock: socket.socket) -> None:
        self._server = server
        self._sock = sock

    def send(self, data: bytes) -> None:
        try:
            while data and self._ready(to_write=True):
                data = data[self._sock.send(data) :]
        except OSError:
            return

    def receive(self) -> bytes:
        try:
            return self._sock.recv(READ_SIZE) if self._ready(to_write=False) else b""
        except OSError:
            return b""

    def _ready(self, to_write: bool) -> bool:
        socks = [self._sock]
        while not self._server.stopping:
            readable, writable, _ = select.select(
                [] if to_write else socks, socks if to_write else [], [], STOP_CHECK
            )
            if readable or writable:
                return True
        return False


Job = Callable[[Channel], Reply]


class Connection:
    __slots__ = (
        "_ahead", "_config", "_engine", "_job", "_later", "_net", "_out", "_parked", "_parser",
        "_pending", "_queued", "_server", "_unread", "_unsent", "dead", "ending", "executing", "session", "sock",
    )  # fmt: skip

    def __init__(self, server: Server, sock: socket.socket, session: Session, parser: Parser) -> None:
        self.sock = sock
        self.session = session
        self.dead = False  # the socket is closed
        self.ending = False  # the last reply has been made: ignore input, close once it is sent
        self._server = server
        self._engine = server.engine
        self._config = server.config
        self._parser = parser
        self._out: list[bytes] = []  # made, not yet given to the socket
        self._unsent: deque[memoryview] = deque()  # not taken by the socket
        self._queued = 0  # size of `_unsent`
        self.executing = False  # a command is being run, from within which the loop may look at other sockets
        self._later: list[bytes] = []  # pushes to this client caused by the command it is running
        self._parked = False
        self._pending: list[Argv] = []
        self._unread: deque[bytes] = deque()
        self._ahead = 0  # size of `_unread`
        # What CLIENT LIST tells of the socket.
        self._net = session.net = {"fd": sock.fileno(), "in": 0, "out": 0}
        self._job: Job | None = None  # what goes on with the socket when this connection ends
        session.door = self
        session.on_reply = self._on_reply
        session.on_push = self._on_push
        session.on_close = self._on_close

    # -- input ----------------------------------------------------------------------------------

    def read(self) -> None:
        """The socket is readable."""
        try:
            data = self.sock.recv(READ_SIZE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        self._net["in"] += len(data)
        if not data:
            self.drop()
        elif self._parked:
            self._unread.append(data)
            self._ahead += len(data)
            if self._ahead > QUERY_LIMIT:
                self.drop()
        elif not self.ending:
            self._take(data)
            if self._out:
                self.flush()
            if self._job is not None:
                self.drop()

    def resume(self) -> None:
        """The blocked command has its reply: go on with what the client sent meanwhile."""
        self._parked = False
        pending, self._pending = self._pending, []
        if pending:
            self._run(pending)
        if self._parser.error is not None:
            self._end_in_error(self._parser.error)
        while self._unread and not (self._parked or self.ending or self.dead):
            data = self._unread.popleft()
            self._ahead -= len(data)
            self._take(data)
        if self._out:
            self.flush()

    def _take(self, data: bytes) -> None:
        """Parse and run ``data``; replies are left in `_out`."""
        parser, session = self._parser, self.session
        parser.max_bulk = self._config.proto_max_bulk_len
        parser.restricted = not session.authenticated
        commands = parser.feed(data)
        if commands:
            self._run(commands)
            while parser.restricted and commands and not self.ending:
                parser.restricted = not session.authenticated  # it may just have authenticated
                commands = parser.feed(b"")
                self._run(commands)
        elif parser.held > QUERY_LIMIT:
            self.drop()
        if parser.error is not None:
            self._end_in_error(parser.error)

    def _end_in_error(self, error: ReplyError) -> None:
        """Answer a protocol error, once everything before it has been answered."""
        if not (self._parked or self.ending):
            self.ending = True
            if self.session.reply_mode == "on":
                self._out.append(encode(error, 2))

    def _run(self, commands: list[Argv]) -> None:
        """Run commands one after the other, until one blocks or ends the connection."""
        session, later = self.session, self._later
        append, execute = self._out.append, self._engine.execute
        with self._engine.lock:
            self.executing = True
            if self._engine.observers:
                self._engine.batch(len(commands))
            for argv in commands:
                try:
                    reply = execute(session, argv)
                except Exception as problem:
                    # A request without words, which the engine cannot run, still ends a CLIENT REPLY SKIP.
                    reply = _internal_error(argv, problem) if argv else session.heard(Frames())
                kind = reply.__class__
                if kind is Blocked:
                    if session.waiter is not None:
                        self._park(commands, argv)
                        break
                else:
                    append(TOP3[kind](reply) if session.protocol == 3 else TOP2[kind](reply))
                if later:
                    self._out += later
                    later.clear()
                if session.closing:
                    self.ending = True
                    break
                if kind is ReplyError and argv[0].lower() in _FORBIDDEN:
                    self.drop()
                    break
            self.executing = False

    def _park(self, commands: list[Argv], blocked: Argv) -> None:
        """The command is parked: keep those behind it for later."""
        self._parked = True
        at = next(at for at, argv in enumerate(commands) if argv is blocked)
        self._pending = commands[at + 1 :]

    # -- what the engine calls ------------------------------------------------------------------

    def _on_reply(self, reply: Reply) -> None:
        self._arrived(encode(reply, self.session.protocol), True)

    def _on_push(self, push: Reply) -> None:
        data = encode(push, self.session.protocol)
        if self.executing:
            self._later.append(data)
        else:
            self._arrived(data, False)

    def _on_close(self) -> None:
        self._server.post(self, None, False)

    def _arrived(self, data: bytes, served: bool) -> None:
        if self._server.in_loop(threading.get_ident()):
            self.deliver(data, served)
        else:
            self._server.post(self, data, served)

    def deliver(self, data: bytes, served: bool) -> None:
        """Put ``data`` in line, in the server's thread; ``served``: it answers the blocked command."""
        self._out.append(data)
        self._server.touched(self, served and self._parked)

    # -- debugging sessions (see emuredis.scripting.ldb) ---------------------------------------------

    def pending(self) -> bool:
        """Whether replies to the client wait to be sent."""
        return bool(self._out or self._unsent)

    def channel(self) -> Channel:
        """The socket, for a conversation while a command runs."""
        self.flush()
        return Channel(self._server, self.sock)

    def detach(self, job: Job) -> None:
        """When the command has ended give the socket to ``job``, which runs in a thread of its own."""
        self._job = job

    # -- output ---------------------------------------------------------------------------------

    def flush(self) -> None:
        """Give the socket what has been made."""
        out = self._out
        if self.dead or not out:
            return
        data = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        if not data:
            if self.session.cut and not self._unsent:
                self.drop()
            return
        if self._unsent:
            self._wait_to_send(memoryview(data))
            return
        try:
            sent = self.sock.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self.drop()
            return
        self._net["out"] += sent
        if sent < len(data):
            self._wait_to_send(memoryview(data)[sent:])
        elif self.ending:
            self.drop()

    def _wait_to_send(self, data: memoryview) -> None:
        if not self._unsent:
            self._server.want_write(self, True)
        self._unsent.append(data)
        self._queued += len(data)
        limit = OUTPUT_LIMIT_SUBSCRIBER if self.session.subscriptions else OUTPUT_LIMIT
        if self._queued > limit:
            self.drop()

    def write(self) -> None:
        """The socket is writable again."""
        unsent = self._unsent
        try:
            while unsent:
                sent = self.sock.send(unsent[0])
                self._queued -= sent
                self._net["out"] += sent
                if sent < len(unsent[0]):
                    unsent[0] = unsent[0][sent:]
                    return
                unsent.popleft()
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.drop()
            return
        self._server.want_write(self, False)
        if self.ending:
            self.drop()

    def drop(self) -> None:
        """Close the connection now. Nothing of the session stays behind. Safe to call twice."""
        if self.dead:
            return
        self.dead = self.ending = True
        self._out.clear()
        self._unsent.clear()
        self._unread.clear()
        self._pending = []
        self._server.forget(self)
        if self._job is not None:
            self._server.lend(self.sock, self.session.protocol, self._job)
        else:
            self.sock.close()
        with self._engine.lock:
            self._engine.disconnect(self.session)


def _internal_error(argv: Argv, problem: Exception) -> ReplyError:
    """A fault of emuredis must not take the other clients' server away: report it and answer."""
    print(f"emuredis: internal error in {argv[0][:32]!r}", file=sys.stderr)
    traceback.print_exception(problem)
    return ReplyError(f"ERR emuredis internal error: {type(problem).__name__}: {problem}")
