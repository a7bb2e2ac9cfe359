"""A connection over a socket: boot, pipelining, heartbeat, reconnect, resubscribe.

Callers write under one lock and then wait for their own `_Waiter`; a reader thread is the only one that
receives. Replies pair with waiters in the order sent; push frames pair with nobody and go to the
handlers of their channel, on the reader's thread (a handler must not call back into its connection:
that would wait for itself, so it is refused).

When the socket is lost every waiter gets `Disconnected` and nothing is sent again: whether a command was
carried out is for its owner to find out. The reader then reconnects by itself with growing, jittered
delays, boots again and subscribes to every recorded channel. A refusal at boot is final.

Invariant: `_inflight` holds exactly the waiters whose bytes were given to the current socket and whose
replies are not yet complete, oldest first.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from collections.abc import Sequence

from . import clock as clocks
from .boot import boot, drive_boot
from .connection import Command, Counters, MessageHandler
from .endpoint import Options, Target
from .errors import (
    BootError,
    CallTimeout,
    ConnectionClosed,
    Disconnected,
    EchoError,
    Overloaded,
    ProtocolError,
    RequiresResp3,
    ServerError,
    Unreachable,
)
from .resp import NEED_DATA, Arg, Decoder, Push, Reply, encode, encode_many
from .script import Script, evaluate

__all__ = ["Connector"]

RECV_SIZE = 65536


class _Waiter:
    """Somebody who waits for ``expected`` replies."""

    __slots__ = ("done", "error", "expected", "replies")

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.replies: list[Reply] = []
        self.error: EchoError | None = None
        self.done = threading.Event()

    def fail(self, error: EchoError) -> None:
        self.error = error
        self.done.set()


class Connector:
    """A `Connection` over TCP or a Unix socket."""

    def __init__(self, target: Target, options: Options) -> None:
        self.target = target
        self.options = options
        self.protocol = 0
        self.counters = Counters()
        self._lock = threading.RLock()
        self._inflight: deque[_Waiter] = deque()
        self._handlers: dict[str, MessageHandler] = {}
        self._confirmations: dict[tuple[str, str], threading.Event] = {}
        self._closing = threading.Event()
        self._fatal: EchoError | None = None
        self._rng = clocks.new_random()
        self._ping: _Waiter | None = None
        self._decoder = Decoder()
        self._sock: socket.socket | None = self._open()
        self._reader = threading.Thread(target=self._read_forever, name="echomq-reader", daemon=True)
        self._reader.start()

    # -- opening ---------------------------------------------------------------------------------

    def _open(self) -> socket.socket:
        """A socket past the boot sequence; OSError becomes `Unreachable` with advice."""
        sock: socket.socket | None = None
        try:
            sock = self._dial()
            self._decoder = Decoder()
            self.protocol = drive_boot(
                boot(self.target, self.options), lambda args: self._exchange(sock, args)
            )
        except BaseException as error:
            if sock is not None:
                sock.close()
            if isinstance(error, OSError):
                raise Unreachable(self._advice(error)) from error
            raise
        self.counters.connects += 1
        return sock

    def _dial(self) -> socket.socket:
        seconds = self.options.connect_timeout_ms / 1000
        if self.target.scheme == "unix":
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.settimeout(seconds)
            try:
                sock.connect(self.target.path)
            except OSError:
                sock.close()
                raise
        else:
            sock = socket.create_connection((self.target.host, self.target.port), seconds)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.settimeout(self.options.send_timeout_ms / 1000)
        return sock

    def _exchange(self, sock: socket.socket, args: Command) -> Reply:
        sock.sendall(encode(args))
        while (reply := self._decoder.next()) is NEED_DATA or isinstance(reply, Push):
            if reply is NEED_DATA:
                data = sock.recv(RECV_SIZE)
                if not data:
                    raise ConnectionResetError("closed while booting")
                self._decoder.feed(data)
        return reply

    def _advice(self, error: OSError) -> str:
        reason = error.strerror or str(error) or type(error).__name__
        if self.target.scheme == "unix":
            return (
                f"cannot reach a server at the socket {self.target.path}: {reason}. Is it running? "
                f"Try `python -m emuredis serve --unix {self.target.path}`"
            )
        return (
            f"cannot reach a server at host {self.target.host} port {self.target.port}: {reason}. "
            f"Is it running? Try `python -m emuredis serve --port {self.target.port}`, "
            "or use emuredis:// for a server inside this process"
        )

    # -- calling ---------------------------------------------------------------------------------

    def call(self, *args: Arg, timeout: float | None = None) -> Reply:
        """Send one command; an error reply is raised."""
        reply = self._ask(encode(args), 1, timeout)[0]
        if isinstance(reply, ServerError):
            raise reply
        return reply

    def pipeline(self, commands: Sequence[Command]) -> list[Reply]:
        """Send several commands together; error replies are values in the list."""
        if not commands:
            return []
        return self._ask(encode_many(commands), len(commands), None)

    def transaction(self, commands: Sequence[Command]) -> list[Reply]:
        """MULTI, the commands, EXEC: the answers of EXEC."""
        replies = self._ask(encode_many([("MULTI",), *commands, ("EXEC",)]), len(commands) + 2, None)
        answer = replies[-1]
        if isinstance(answer, ServerError):
            raise next((reply for reply in replies if isinstance(reply, ServerError)), answer)
        return list(answer)

    def noreply(self, commands: Sequence[Command]) -> None:
        """Send commands between CLIENT REPLY OFF and ON; only the last OK comes back."""
        wrapped = [("CLIENT", "REPLY", "OFF"), *commands, ("CLIENT", "REPLY", "ON")]
        reply = self._ask(encode_many(wrapped), 1, None)[0]
        if isinstance(reply, ServerError):
            raise reply

    def eval(self, script: Script, keys: Sequence[str], args: Sequence[Arg]) -> Reply:
        """Run a script by its digest, loading it once when the server does not know it."""
        return evaluate(self.call, script, keys, args)

    def _ask(self, data: bytes, expected: int, timeout: float | None) -> list[Reply]:
        if threading.current_thread() is self._reader:
            raise ProtocolError("a message handler may not call the connection that delivers its messages")
        waiter = _Waiter(expected)
        self._send(data, waiter)
        seconds = self.options.call_timeout_ms / 1000 if timeout is None else timeout
        if not waiter.done.wait(seconds):
            raise CallTimeout(f"no reply from {self.target.address} within {seconds:g} s")
        if waiter.error is not None:
            raise waiter.error
        return waiter.replies

    def _send(self, data: bytes, waiter: _Waiter | None) -> None:
        with self._lock:
            sock = self._usable()
            if waiter is not None:
                if len(self._inflight) >= self.options.max_pending:
                    raise Overloaded(f"{len(self._inflight)} pipelines are in flight already")
                self._inflight.append(waiter)
                self.counters.commands += waiter.expected
                self.counters.round_trips += 1
            try:
                sock.sendall(data)
            except OSError as error:
                self._lose(sock)
                raise Disconnected(f"lost {self.target.address}: {error}") from error

    def _usable(self) -> socket.socket:
        if self._closing.is_set():
            raise ConnectionClosed("this connection was closed")
        if self._fatal is not None:
            raise self._fatal
        if self._sock is None:
            raise Disconnected(f"not connected to {self.target.address}; reconnecting")
        return self._sock

    # -- publish/subscribe -----------------------------------------------------------------------

    def subscribe(self, channel: str, handler: MessageHandler) -> None:
        """Hear a channel; returns once the server has confirmed."""
        if self.protocol != 3:
            raise RequiresResp3("subscribe needs a RESP3 connection")
        self._handlers[channel] = handler
        self._confirmed("subscribe", channel)

    def unsubscribe(self, channel: str) -> None:
        """Stop hearing a channel; returns once the server has confirmed."""
        if self._handlers.pop(channel, None) is not None:
            self._confirmed("unsubscribe", channel)

    def _confirmed(self, verb: str, channel: str) -> None:
        event = self._confirmations[verb, channel] = threading.Event()
        self._send(encode((verb.upper(), channel)), None)
        if threading.current_thread() is self._reader:
            return
        if not event.wait(self.options.call_timeout_ms / 1000):
            raise CallTimeout(f"{verb} {channel}: not confirmed")

    def _push(self, frame: Push) -> None:
        self.counters.pushes += 1
        kind = frame[0] if frame else b""
        if kind == b"message":
            channel = frame[1].decode(errors="surrogateescape")
            handler = self._handlers.get(channel)
            if handler is not None:
                handler(channel, frame[2])
        elif kind in (b"subscribe", b"unsubscribe") and isinstance(frame[1], bytes):
            event = self._confirmations.pop((kind.decode(), frame[1].decode(errors="surrogateescape")), None)
            if event is not None:
                event.set()

    # -- the reader's thread ---------------------------------------------------------------------

    def _read_forever(self) -> None:
        while not self._closing.is_set():
            sock = self._sock
            if sock is not None:
                try:
                    self._read(sock)
                except (OSError, EchoError):
                    self._lose(sock)
            elif not self._reconnect():
                return

    def _read(self, sock: socket.socket) -> None:
        """Receive until the socket is lost (raises) or replaced."""
        heard = clocks.monotonic()
        while True:
            try:
                data = sock.recv(RECV_SIZE)
            except TimeoutError:
                self._heartbeat(clocks.monotonic() - heard)
                continue
            if not data:
                raise ConnectionResetError("closed by the server")
            heard = clocks.monotonic()
            self._decoder.feed(data)
            while (reply := self._decoder.next()) is not NEED_DATA:
                if type(reply) is Push:
                    self._deliver(reply)
                else:
                    self._pair(reply)

    def _deliver(self, frame: Push) -> None:
        try:
            self._push(frame)
        except Exception as error:  # a handler's fault must not end the conversation
            threading.excepthook(
                threading.ExceptHookArgs((type(error), error, error.__traceback__, self._reader))
            )

    def _pair(self, reply: Reply) -> None:
        if not self._inflight:
            raise ProtocolError(f"a reply nobody asked for: {reply!r}")
        waiter = self._inflight[0]
        waiter.replies.append(reply)
        if len(waiter.replies) == waiter.expected:
            self._inflight.popleft()
            waiter.done.set()

    def _heartbeat(self, idle: float) -> None:
        """Ask for a sign of life when nothing is in flight; give the socket up when none comes."""
        limit = self.options.heartbeat_ms / 1000
        if not limit or idle < limit:
            return
        if not self._inflight:
            self._ping = _Waiter(1)
            self._send(encode(("PING",)), self._ping)
        elif self._inflight[0] is self._ping and idle >= limit + self.options.call_timeout_ms / 1000:
            raise ConnectionResetError("no answer to the heartbeat")

    def _lose(self, sock: socket.socket) -> None:
        """Drop a socket and fail everybody who waits on it."""
        with self._lock:
            if self._sock is not sock:
                return
            self._sock = None
            # Valkey keeps a half-closed client as long as it has something to read; shut both ways.
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
            orphans = list(self._inflight)
            self._inflight.clear()
        error: EchoError = (
            ConnectionClosed("this connection was closed")
            if self._closing.is_set()
            else Disconnected(f"lost {self.target.address}; the command may or may not have been carried out")
        )
        for waiter in orphans:
            waiter.fail(error)

    def _reconnect(self) -> bool:
        """Try until connected (True) or closed or refused for good (False)."""
        delay = self.options.reconnect_ms
        while not self._closing.is_set():
            self._closing.wait((delay + self._rng.randint(1, delay // 2 + 1)) / 1000)
            delay = min(delay * 2, self.options.reconnect_cap_ms)
            if self._closing.is_set():
                return False
            try:
                sock = self._open()
            except BootError as error:
                self._fatal = error
                return False
            except EchoError:
                continue
            with self._lock:
                self._sock = sock
                try:
                    for channel in self._handlers:
                        self._send(encode(("SUBSCRIBE", channel)), None)
                except EchoError:
                    continue
            return True
        return False

    # -- ending ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Give the connection up; waiters get `ConnectionClosed`."""
        self._closing.set()
        sock = self._sock
        if sock is not None:
            self._lose(sock)
        if threading.current_thread() is not self._reader:
            self._reader.join()

    def __enter__(self) -> Connector:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
