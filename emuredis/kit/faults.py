"""Faults on demand: rules that make chosen commands fail, wait, or lose their connection.

A rule looks at what clients send, not at what scripts and transactions do inside. It names commands, a pattern of keys,
a client, which of the matching calls it means, a probability; and what happens then. A rule that never fired
is a test that did not test what it says: leaving its ``with`` block, or `Faults.verify`, raises AssertionError.

    with emulator.faults.lose_reply("RPUSH", key="queue:*", nth=2):
        ...

While there are no rules, commands take the same way as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from emuredis.errors import ReplyError
from emuredis.keys import keys_of
from emuredis.kit.contents import blob
from emuredis.patterns import match
from emuredis.replies import BLOCKED, Frames, Reply

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine
    from emuredis.engine.session import Session
    from emuredis.spec import Command

__all__ = ["Fault", "Faults"]

#: What a rule does: given the session, the command and its words, a reply in place of the command's, or None.
Action = Callable[["Session", "Command", list[bytes]], Reply | None]
_GONE = Frames()  # no reply: the connection is closed
#: Commands that belong to a connection's life; a rule for ``*`` leaves them alone, so that clients can connect.
_CONNECTING = frozenset(
    ["hello", "auth", "select", "client|setname", "client|setinfo", "client|maint_notifications"]
)


class Fault:
    """One rule. ``seen``: how many calls matched, ``fired``: how often it struck."""

    def __init__(self, faults: Faults, what: str, action: Action, commands: Iterable[str] | str, key: Any = None,
                 client: str | int | None = None, nth: int | None = None, times: int | None = None,
                 probability: float = 1.0, optional: bool = False) -> None:  # fmt: skip
        if nth is not None and nth < 1:
            raise ValueError(f"nth counts from 1, not {nth!r}")
        if times is not None and times < 1:
            raise ValueError(f"times is at least 1, not {times!r}")
        if not 0 <= probability <= 1:
            raise ValueError(f"a probability is between 0 and 1, not {probability!r}")
        self._faults = faults
        self._action = action
        self.what = what
        names = [commands] if isinstance(commands, str) else list(commands)
        self.commands = frozenset("|".join(name.lower().split()) for name in names)
        self._pattern = None if key is None else blob(key)
        self._client = client.encode() if isinstance(client, str) else client
        self.nth = nth
        self.times = 1 if times is None and nth is not None else times
        self.probability = probability
        self.optional = optional
        self.seen = self.fired = 0
        self._others: dict[str, int] = {}
        faults.engine.table.known(self.commands)

    def strikes(self, session: Session, cmd: Command, argv: list[bytes]) -> bool:
        """Whether the rule means this call; counts it."""
        if "*" in self.commands:
            if cmd.name in _CONNECTING or cmd.group == "emuredis":
                return False
        elif cmd.name not in self.commands and cmd.container not in self.commands:
            self._others[cmd.name] = self._others.get(cmd.name, 0) + 1
            return False
        if self._client is not None and self._client not in (session.name, session.id):
            return False
        if self._pattern is not None and not any(match(self._pattern, key) for key, _ in keys_of(cmd, argv)):
            return False
        if self.times is not None and self.fired >= self.times:
            return False
        self.seen += 1
        if self.nth is not None and self.seen < self.nth:
            return False
        if self.probability < 1 and self._faults.engine.rng.random() >= self.probability:
            return False
        self.fired += 1
        return True

    def apply(self, session: Session, cmd: Command, argv: list[bytes]) -> Reply | None:
        return self._action(session, cmd, argv)

    def remove(self) -> None:
        """Take the rule away. Safe to call twice."""
        self._faults.remove(self)

    def verify(self) -> None:
        """Raises AssertionError if the rule never fired and is not ``optional``."""
        if not self.fired and not self.optional:
            others = ", ".join(f"{name.upper().replace('|', ' ')} ×{n}" for name, n in self._others.items())
            raise AssertionError(
                f"this fault never fired, {self.seen} calls matched: {self!r}; other commands: {others or 'none'}"
            )

    def __enter__(self) -> Fault:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        self.remove()
        if kind is None:
            self.verify()

    def __repr__(self) -> str:
        parts = [self.what, "on", " ".join(sorted(name.upper().replace("|", " ") for name in self.commands))]
        if self._pattern is not None:
            parts.append(f"key={self._pattern.decode(errors='backslashreplace')!r}")
        if self._client is not None:
            parts.append(f"client={self._client!r}")
        if self.nth is not None:
            parts.append(f"nth={self.nth}")
        if self.probability < 1:
            parts.append(f"probability={self.probability}")
        return f"<Fault {' '.join(parts)}>"


class Faults:
    """The rules of one emulator: ``emulator.faults``. Every method that adds one returns it.

    All take ``commands`` (a name such as ``"SET"`` or ``"CONFIG SET"``, several of them, or ``"*"``), and the
    keywords ``key`` (a glob pattern; one key that matches is enough), ``client`` (a name or an id), ``nth`` (from
    which matching call on, 1 being the first; it then fires once unless ``times`` says otherwise), ``times``
    (at most so
    often), ``probability`` (drawn from the emulator's seed) and ``optional`` (it need not fire).
    The first rule that strikes decides; a latency lets the later ones have a say, too.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.rules: list[Fault] = []

    # -- rules -----------------------------------------------------------------------------------

    def error(self, commands: Iterable[str] | str, message: str, **when: Any) -> Fault:
        """The command is not run; the client gets ``message`` as an error reply, such as ``"ERR no luck"``."""

        def refuse(session: Session, cmd: Command, argv: list[bytes]) -> Reply:
            raise ReplyError(message)

        return self._add(f"error {message!r}", refuse, commands, when)

    def readonly(self, commands: Iterable[str] | str = "*", **when: Any) -> Fault:
        """As from a replica: ``READONLY``."""
        return self.error(commands, "READONLY You can't write against a read only replica.", **when)

    def loading(self, commands: Iterable[str] | str = "*", **when: Any) -> Fault:
        """As from a server that starts: ``LOADING``."""
        return self.error(commands, "LOADING Valkey is loading the dataset in memory", **when)

    def busy(self, commands: Iterable[str] | str = "*", **when: Any) -> Fault:
        """As while a script runs for long: ``BUSY``."""
        text = "BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
        return self.error(commands, text, **when)

    def oom(self, commands: Iterable[str] | str = "*", **when: Any) -> Fault:
        """As without memory: ``OOM``."""
        return self.error(commands, "OOM command not allowed when used memory > 'maxmemory'.", **when)

    def moved(self, commands: Iterable[str] | str, slot: int, address: str, **when: Any) -> Fault:
        """As from a node of a cluster that does not serve the slot: ``MOVED slot host:port``."""
        return self.error(commands, f"MOVED {slot} {address}", **when)

    def latency(self, commands: Iterable[str] | str, milliseconds: float, **when: Any) -> Fault:
        """Time passes before the command is run: on a manual clock at once, else really.

        What falls due meanwhile is done, as while a request travels.
        """

        def travel(session: Session, cmd: Command, argv: list[bytes]) -> None:
            engine = self.engine
            clock: Any = engine.clock
            if clock.manual:
                clock.advance(milliseconds)
            else:
                clock.sleep(milliseconds / 1000)
                engine.run_due()
            engine.keyspace.ns = engine.now_ns()
            engine.current_session = session

        return self._add(f"latency {milliseconds} ms", travel, commands, when)

    def disconnect(self, commands: Iterable[str] | str, **when: Any) -> Fault:
        """The connection is closed before the command is run."""

        def drop(session: Session, cmd: Command, argv: list[bytes]) -> Reply:
            self.engine.drop(session)
            return _GONE

        return self._add("disconnect", drop, commands, when)

    def lose_reply(self, commands: Iterable[str] | str, **when: Any) -> Fault:
        """The command is run, but the connection is closed before its reply arrives."""

        def lose(session: Session, cmd: Command, argv: list[bytes]) -> Reply:
            engine = self.engine
            try:
                reply = engine.run(session, cmd, argv)
            except ReplyError:
                reply = None
            if reply is BLOCKED and session.waiter is not None:
                session.waiter.lost = True
                return reply
            engine.drop(session)
            return _GONE

        return self._add("lose reply", lose, commands, when)

    def restart(self, commands: Iterable[str] | str = "*", keep_data: bool = True, **when: Any) -> Fault:
        """The server restarts before the command is run, see `emuredis.Emulator.restart`; nobody gets a reply."""

        def restart(session: Session, cmd: Command, argv: list[bytes]) -> Reply:
            self.engine.restart(keep_data)
            return _GONE

        return self._add(f"restart {'with' if keep_data else 'without'} data", restart, commands, when)

    def script_flush(self, commands: Iterable[str] | str = "EVALSHA", **when: Any) -> Fault:
        """The scripts are forgotten before the command is run, so that EVALSHA answers NOSCRIPT."""

        def forget(session: Session, cmd: Command, argv: list[bytes]) -> None:
            if self.engine.scripting is not None:
                self.engine.scripting.flush()

        return self._add("script flush", forget, commands, when)

    # -- looking after them ------------------------------------------------------------------------

    def remove(self, rule: Fault) -> None:
        """Take one rule away. Safe to call twice."""
        with self.engine.lock:
            if rule in self.rules:
                self.rules.remove(rule)
                self._switch()

    def clear(self) -> None:
        """Take every rule away, whether it fired or not."""
        with self.engine.lock:
            self.rules.clear()
            self._switch()

    def verify(self) -> None:
        """Raises AssertionError for the first rule that never fired and is not optional."""
        for rule in self.rules:
            rule.verify()

    def _add(self, what: str, action: Action, commands: Iterable[str] | str, when: dict[str, Any]) -> Fault:
        rule = Fault(self, what, action, commands, **when)
        with self.engine.lock:
            self.rules.append(rule)
            self._switch()
        return rule

    def _switch(self) -> None:
        gates = self.engine.gates
        if bool(self.rules) != (self._gate in gates):
            if self.rules:
                gates.append(self._gate)
            else:
                gates.remove(self._gate)
            self.engine.update_gates()

    def _gate(self, session: Session, cmd: Command, argv: list[bytes]) -> Reply | None:
        for rule in list(self.rules):
            if rule.strikes(session, cmd, argv):
                reply = rule.apply(session, cmd, argv)
                if reply is not None:
                    return reply
        return None

    def __repr__(self) -> str:
        return f"<Faults {self.rules!r}>"
