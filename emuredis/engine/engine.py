"""The engine: one command at a time, each in an execution unit.

A unit opens by reading the clock once and removing keys whose time has come; nested commands (EXEC,
scripts) run inside the unit of their caller. When the outermost command has replied, the unit closes: messages
go out and blocked commands whose keys changed are served. Nothing reaches another session before that.

The engine is handed the command table and imports no command. It knows nothing of sockets, threads or protocols: a
door calls `connect`, `execute` and `disconnect` while holding `lock`, and gives the session its callables.
`execute` never raises ReplyError: an error is a reply like any other.

To add a reason for commands to be looked at before they run (monitor, faults, pause), add a gate to `gates` and
handle it in `_execute_gated`; the fast path must stay as it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from emuredis import errors
from emuredis.clock import Clock, entropy_token, new_random
from emuredis.engine.busy import Busy
from emuredis.engine.cluster import Node
from emuredis.engine.config import Config
from emuredis.engine.logs import CommandLogs
from emuredis.engine.memory import Memory
from emuredis.engine.persistence import Persistence
from emuredis.engine.pubsub import PubSub
from emuredis.engine.session import Session
from emuredis.engine.threads import Threads
from emuredis.engine.waiting import Waiting
from emuredis.errors import ReplyError
from emuredis.keyspace.keyspace import Keyspace
from emuredis.replies import QUEUED, Frames, Reply
from emuredis.spec import ALLOW_BUSY, FLAGS, NO_AUTH, NO_MULTI, SUBSCRIBED, Command, Handler, Table

__all__ = ["Engine"]

NO_REPLY = Frames()

#: Refusals that a client of a cluster has to understand: EXEC gives them as they are.
_OF_CLUSTERS = frozenset(["CROSSSLOT", "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"])
_ON_KEYS = FLAGS["write"] | FLAGS["readonly"] | FLAGS["may_replicate"]
_IN_MULTI = frozenset(["multi", "exec", "discard", "watch", "quit", "reset"])


class Engine:
    def __init__(self, table: Table, clock: Clock, seed: int | None, config: Config) -> None:
        self.table = table
        self.config = config
        self.limits = config.limits  # what every collection is made with
        self.lock = threading.RLock()
        self.keyspace = Keyspace(config.cluster_databases if config.cluster_enabled else config.databases)
        self.cluster: Node | None = None  # this engine's place in a cluster
        self.busy = Busy(self)
        self.pubsub = PubSub(self)
        self.waiting = Waiting(self)
        self.threads = Threads()
        self.threads.note()
        self.rng = new_random(seed)
        self.run_id = entropy_token(40)
        self.memory, self.logs = Memory(self), CommandLogs(self)
        self.sessions: dict[int, Session] = {}
        self.leaving: list[Session] = []
        self.outbox: list[tuple[Session, Reply]] = []
        self.gates: list[Callable[[Session, Command, list[bytes]], Reply | None]] = []
        self.observers: list[Any] = []  # told before and after each command, see emuredis.kit.journal
        self.scripting: Any = None  # the Lua side, created by emuredis.scripting at the first use
        self.functions: Any = None  # the same of the libraries
        self.lua_random: Any = None  # what they draw their random numbers from
        self.script_observers: list[Any] = []  # see emuredis.scripting.watch
        self.script_names: dict[bytes, str] = {}  # SHA1 to a name for messages
        self.strict: Any = None  # see emuredis.scripting.strict
        self.monitors: Any = None  # see emuredis.commands.monitoring
        self.scheduler: Any = None  # whom to ask instead of waiting, see emuredis.lab.threads
        self.current_command: Any = None
        self.current_argv: list[bytes] = []
        self.current_session: Session | None = None
        self.overslept = False  # a manual clock moved in the midst of a unit: what came due waits for its end
        self.commands = 0  # run by sessions that are gone
        self.connections = 0
        self.connections_before = 0  # when CONFIG RESETSTAT was called last
        self.set_clock(clock)
        self.started_ns = self.clock.now_ns()
        self.persistence = Persistence(self)
        self.doors: list[Callable[[], None]] = []  # what to call to have each server of this engine end
        self.configured()

    def set_clock(self, clock: Clock) -> None:
        self.clock = clock
        self.now_ns = clock.now_ns
        if clock.manual:
            clock.attach(self)  # type: ignore[attr-defined]

    def configured(self) -> None:
        """Tell those who keep a copy of a setting that some have changed."""
        self.keyspace.notify = self.config.notify_keyspace_events
        self.keyspace.update_hooks()
        self.memory.configure()
        self.logs.configure()

    # -- sessions -------------------------------------------------------------------------------

    def connect(self, addr: bytes = b"", laddr: bytes = b"") -> Session:
        """A new session, as a client that has just connected."""
        self.see_off()
        self.connections += 1
        self.threads.note()
        session = Session(self, self.connections)
        session.addr, session.laddr = addr, laddr
        self.sessions[session.id] = session
        return session

    def disconnect(self, session: Session) -> None:
        """The client is gone: nothing of it may linger. Safe to call twice."""
        if self.sessions.pop(session.id, None) is None:
            return
        if session.waiter is not None:
            self.waiting.remove(session.waiter)
        self.pubsub.leave(session)
        if session.monitor:
            self.monitors.remove(session)
        self.unwatch(session)
        self.commands += session.commands
        session.queue = None
        session.closing = True
        session.update_gate()

    def drop(self, session: Session) -> None:
        """Close a client's connection from this side; the door of the one whose command runs sees it for itself."""
        self.disconnect(session)
        session.cut = True
        if session is not self.current_session:
            session.on_close()

    def restart(self, keep_data: bool) -> None:
        """Be as after a restart: no connections, scripts or counters; without ``keep_data`` no keys, either."""
        for session in list(self.sessions.values()):
            self.drop(session)
        self.scripting = None
        self.run_id = entropy_token(40)
        self.started_ns = self.clock.now_ns()
        keyspace = self.keyspace
        keyspace.hits = keyspace.misses = keyspace.expired = keyspace.evicted = 0
        self.commands = self.connections_before = 0
        if not keep_data:
            self.functions = None
            for db in keyspace.databases:
                db.clear()
            keyspace.rebuild_heap()

    def hang_up(self, session: Session) -> None:
        """`disconnect` from wherever a door is closed, be it by the garbage collector in the midst of a unit.

        Then the session is only noted, and leaves at the next opportunity.
        """
        self.leaving.append(session)
        if not self.lock._is_owned():  # type: ignore[attr-defined]
            with self.lock:
                self.see_off()

    def see_off(self) -> None:
        """Disconnect the sessions that hung up; the lock is held and no unit is open."""
        while self.leaving:
            self.disconnect(self.leaving.pop())

    def internal_session(self) -> Session:
        """A session that no client owns and CLIENT LIST does not show, for the emulator's own commands."""
        session = Session(self, 0)
        session.authenticated = True
        session.update_gate()
        return session

    def update_gates(self) -> None:
        """To be called after `gates` changed."""
        for session in self.sessions.values():
            session.update_gate()

    # -- running commands -----------------------------------------------------------------------

    def execute(self, session: Session, argv: list[bytes]) -> Reply:
        """Run one command in a unit of its own; its reply, or BLOCKED (the reply then comes through `on_reply`)."""
        cmd = self.table.get(argv[0])
        if cmd is None or session.gated or cmd.subs is not None or not cmd.min <= len(argv) <= cmd.max:
            return self._execute_gated(session, argv)
        keyspace = self.keyspace
        keyspace.ns = ns = self.now_ns()
        if ns >= keyspace.due_ns:
            keyspace.expire_due()
        session.commands += 1
        session.last_ns = ns
        session.last_command = self.current_command = cmd
        self.current_argv, self.current_session = argv, session
        try:
            reply = cmd.fn(session, argv)
        except ReplyError as error:
            reply = error
        if keyspace.hooks or self.outbox:
            self.settle()
        return reply

    def call(self, session: Session, cmd: Command, argv: list[bytes], fn: Handler | None = None) -> Reply:
        """Run a command inside the current unit (EXEC, scripts); ``fn``: in place of its handler. Raises ReplyError."""
        before = self.current_command, self.current_argv
        self.current_command, self.current_argv = cmd, argv
        try:
            if self.observers and session.script is None:
                return self._observed(session, cmd, argv, cmd.fn)
            return cmd.fn(session, argv)
        finally:
            self.current_command, self.current_argv = before

    def resolve(self, argv: list[bytes]) -> Command:
        """The command ``argv`` names, its arity checked. Raises ReplyError with the server's text."""
        name = argv[0]
        cmd = self.table.find(name)
        if cmd is None:
            raise ReplyError(_unknown_command(argv))
        if cmd.subs is not None and len(argv) > 1:
            sub = cmd.subs.get(argv[1]) or cmd.subs.get(argv[1].lower())
            if sub is None:
                word, upper = errors.shown(argv[1], 128), cmd.name.upper()
                raise ReplyError(f"ERR unknown subcommand '{word}'. Try {upper} HELP.")
            cmd = sub
        if not cmd.min <= len(argv) <= cmd.max:
            raise errors.wrong_arity(cmd.name)
        return cmd

    def _execute_gated(self, session: Session, argv: list[bytes]) -> Reply:
        if session.closing:
            return NO_REPLY
        if self.busy.on:
            return self._execute_busy(session, argv)
        keyspace = self.keyspace
        keyspace.ns = ns = self.now_ns()
        if ns >= keyspace.due_ns:
            keyspace.expire_due()
        session.commands += 1
        session.last_ns = ns
        self.current_session = session
        try:
            reply = self._admit(session, argv)
        except ReplyError as error:
            reply = error
        if keyspace.hooks or self.outbox:
            self.settle()
        return session.heard(reply) if session.reply_mode != "on" else reply

    def _execute_busy(self, session: Session, argv: list[bytes]) -> Reply:
        """Run a command while a script is being run: inside the script's unit, without leaving a trace in it."""
        session.commands += 1
        session.last_ns = self.now_ns()
        kept = self.current_command, self.current_argv, self.current_session
        self.current_session = session
        try:
            reply = self._admit(session, argv)
        except ReplyError as error:
            reply = error
        finally:
            self.current_command, self.current_argv, self.current_session = kept
        return session.heard(reply) if session.reply_mode != "on" else reply

    def _admit(self, session: Session, argv: list[bytes]) -> Reply:
        """The checks of the slow path, in the server's order, then the command itself."""
        try:
            cmd = self._check(session, argv)
            for gate in self.gates:
                reply = gate(session, cmd, argv)
                if reply is not None:
                    return reply
        except ReplyError as error:
            session.fail_transaction()
            if argv[0].upper() == b"EXEC":
                # A refused EXEC ends its transaction, and says so even where there is none.
                session.queue = None
                session.multi_failed = False
                self.unwatch(session)
                session.update_gate()
                if error.code in _OF_CLUSTERS:
                    raise
                reason = error.message.removeprefix("ERR ")
                raise ReplyError(f"EXECABORT Transaction discarded because of: {reason}") from None
            raise
        return self.run(session, cmd, argv)

    def run(self, session: Session, cmd: Command, argv: list[bytes]) -> Reply:
        """Queue a command that was let in, or run it. Raises ReplyError."""
        self.current_command, self.current_argv = cmd, argv
        fn = cmd.fn
        if session.queue is not None and cmd.name not in _IN_MULTI:
            fn = partial(_queue, cmd)
        return fn(session, argv) if not self.observers else self._observed(session, cmd, argv, fn)

    def batch(self, size: int) -> None:
        """A door has got so many commands at once: they are one round trip."""
        for observer in self.observers:
            observer.batched(size)

    def _observed(self, session: Session, cmd: Command, argv: list[bytes], fn: Handler) -> Reply:
        for observer in self.observers:
            observer.before(session, cmd, argv)
        reply: Reply = None
        try:
            reply = fn(session, argv)
        except ReplyError as error:
            reply = error
            raise
        finally:
            for observer in reversed(self.observers):
                observer.after(session, cmd, argv, reply)
        return reply

    def _check(self, session: Session, argv: list[bytes]) -> Command:
        """The command that ``argv`` names, if this session may call it now. Raises ReplyError."""
        if not session.authenticated and self.config.requirepass:
            known = self.table.find(argv[0])
            if known is None or not known.flags & NO_AUTH:
                raise ReplyError("NOAUTH Authentication required.")
        cmd = self.resolve(argv)
        session.last_command = cmd
        if session.queue is not None and cmd.flags & NO_MULTI:
            raise ReplyError(f"ERR Command '{cmd.name}' not allowed inside a transaction")
        if self.cluster is not None:
            self.cluster.admit(session, cmd, argv)
        if session.monitor and cmd.flags & _ON_KEYS:
            raise ReplyError("ERR Replica can't interact with the keyspace")
        if session.protocol == 2 and session.subscriptions and not cmd.flags & SUBSCRIBED:
            raise ReplyError(
                f"ERR Can't execute '{cmd.name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET "
                "are allowed in this context"
            )
        if self.busy.on and not cmd.flags & ALLOW_BUSY:
            raise self.busy.refusal()
        return cmd

    # -- closing a unit -------------------------------------------------------------------------

    def settle(self) -> None:
        """Close the unit: send what was published, serve who can be served."""
        self.deliver()
        if self.keyspace.ready:
            self.waiting.serve()
        if self.overslept:
            self.overslept = False
            self.keyspace.update_hooks()
            self.clock.catch_up()  # type: ignore[attr-defined]
        if self.keyspace.deferred:
            actions, self.keyspace.deferred = self.keyspace.deferred, []
            self.keyspace.update_hooks()
            for action in actions:
                action()
            self.deliver()

    def after_unit(self, action: Callable[[], None]) -> None:
        """Have ``action`` called once when the open unit has been closed; it may read the keyspace as it is then."""
        self.keyspace.deferred.append(action)
        self.keyspace.hooks = True

    def deliver(self) -> None:
        """Hand queued messages to the doors, keyspace events first to the channels."""
        self.publish_events()
        if self.outbox:
            outbox, self.outbox = self.outbox, []
            for session, push in outbox:
                session.on_push(push)

    def publish_events(self) -> None:
        """Publish the keyspace events so far; PUBLISH does it first, to stay in order with them."""
        keyspace = self.keyspace
        if keyspace.events:
            events, keyspace.events = keyspace.events, []
            for channel, message in events:
                self.pubsub.publish(channel, message)

    # -- time -----------------------------------------------------------------------------------

    def next_due_ns(self) -> int | None:
        """The next instant at which something happens by itself: a key expires, a wait times out.

        None while a script keeps the engine busy: what comes due then is seen to when it has ended.
        """
        if self.busy.on:
            return None
        waiter = self.waiting.next_due_ns()
        key = self.keyspace.due_ns if self.keyspace.heap else None
        if waiter is None or key is None:
            return waiter if key is None else key
        return min(waiter, key)

    def sleep(self, seconds: float) -> None:
        """DEBUG SLEEP: nobody is served meanwhile; what came due is seen to when the unit has ended."""
        self.clock.sleep(seconds)
        if self.clock.manual:
            self.overslept = self.keyspace.hooks = True

    def run_due(self) -> None:
        """Do what is due by now: expire keys, then answer blocked commands whose time is up."""
        with self.lock:
            if self.busy.on:
                if self.clock.manual:  # the unit that is open sees to it at its end
                    self.overslept = self.keyspace.hooks = True
                return
            self.keyspace.ns = ns = self.now_ns()
            if ns >= self.keyspace.due_ns:
                self.keyspace.expire_due()
            self.settle()
            self.waiting.time_out(ns)
            self.settle()

    def run_late(self, late_ns: int) -> bool:
        """Answer blocked commands whose time were up had the clock not stopped ``late_ns`` ago; whether any was."""
        with self.lock:
            due = self.waiting.next_due_ns()
            if due is None or due > self.now_ns() + late_ns or self.busy.on:
                return False
            self.waiting.time_out(due)
            self.settle()
            return True

    # -- files ----------------------------------------------------------------------------------

    def in_unit(self, action: Callable[[], None]) -> None:
        """Call ``action`` in a unit of its own, for whoever is no client."""
        with self.lock:
            self.keyspace.ns = ns = self.now_ns()
            if ns >= self.keyspace.due_ns:
                self.keyspace.expire_due()
            try:
                action()
            finally:
                self.settle()

    def shut_down(self) -> bool:
        """Every client is cut off and every server ends, as if the process had; False where there is no server."""
        if not self.doors:
            return False
        self.busy.stop()
        for session in list(self.sessions.values()):
            self.disconnect(session)
            if session is not self.current_session:
                session.on_close()
        for end in self.doors:
            end()
        return True

    # -- transactions ---------------------------------------------------------------------------

    def watch(self, session: Session, key: bytes) -> None:
        place = (session.db.index, key)
        if place not in session.watched:
            session.watched[place] = None
            self.keyspace.watchers.setdefault(place, {})[session] = None
            self.keyspace.update_hooks()

    def unwatch(self, session: Session) -> None:
        watchers = self.keyspace.watchers
        for place in session.watched:
            del watchers[place][session]
            if not watchers[place]:
                del watchers[place]
        session.watched = {}
        session.watch_broken = False
        self.keyspace.update_hooks()


def _queue(cmd: Command, session: Session, argv: list[bytes]) -> Reply:
    """What a command does inside MULTI."""
    assert session.queue is not None
    session.queue.append((cmd, argv))
    return QUEUED


def _unknown_command(argv: list[bytes]) -> str:
    args = ""
    for arg in argv[1:]:
        if len(args) >= 128:
            break
        args += "'" + errors.shown(arg, 128 - len(args)) + "' "
    return f"ERR unknown command '{errors.shown(argv[0], 128)}', with args beginning with: {args}"
