"""Blocked clients: park a command, run the same command again when its keys change.

A blocking handler that finds nothing calls ``ctx.park`` and returns BLOCKED; a `Waiter` then stands at the
tail of the queue of each of its keys. After a unit, `serve` goes through the keys that came to be: each
waiter *present at the start*, first come first served, is taken out and its command run again; so is one that
`needs_keys` when its key has gone or changed its type (XREADGROUP then answers with an error). It replies,
or parks again at the tail with the same deadline. Serving can make further keys ready (BLMOVE chains), so it
goes on until none is. Serving happens at the instant of the unit that made the keys ready and expires nothing.

Invariant: a waiter is in the queue of each of its keys and, with a deadline, in `deadlines`, or in none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emuredis.errors import ReplyError
from emuredis.replies import BLOCKED, Reply

if TYPE_CHECKING:
    from sortedcontainers import SortedKeyList

    from emuredis.engine.engine import Engine
    from emuredis.engine.session import Session

__all__ = ["Waiter", "Waiting"]


class Waiter:
    """One parked command."""

    __slots__ = (
        "argv", "cmd", "deadline_ns", "keys", "kind", "lost", "needs_keys", "on_timeout", "order", "root", "session",
    )  # fmt: skip

    def __init__(self, session: Session, cmd: Any, argv: list[bytes], keys: list[bytes], kind: type,
                 deadline_ns: int | None, on_timeout: Reply, order: int, needs_keys: bool) -> None:  # fmt: skip
        self.session = session
        self.cmd = cmd
        self.argv = argv
        self.keys = keys
        self.kind = kind
        self.deadline_ns = deadline_ns
        self.on_timeout = on_timeout
        self.order = order
        self.needs_keys = needs_keys
        self.lost = False  # its reply shall not arrive: the connection is closed instead
        self.root: Any = self  # what it was when it was parked first


def _due_order(waiter: Waiter) -> tuple[int, int]:
    assert waiter.deadline_ns is not None
    return waiter.deadline_ns, waiter.order


class Waiting:
    """All parked commands of one engine."""

    __slots__ = ("_deadlines", "_engine", "_order", "_rerun", "count")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._deadlines: SortedKeyList[Waiter, tuple[int, int]] | None = None
        self._order = 0
        self._rerun: Waiter | None = None
        self.count = 0

    def park(self, session: Session, keys: list[bytes], kind: type, timeout: float, on_timeout: Reply,
             needs_keys: bool, resolved: list[bytes] | None) -> Reply:  # fmt: skip
        engine = self._engine
        again = self._rerun
        if again is not None and again.session is session:
            cmd, argv, deadline = again.cmd, again.argv, again.deadline_ns
        else:
            cmd, argv = engine.current_command, resolved or engine.current_argv
            deadline = engine.keyspace.ns + round(timeout * 1_000_000) if timeout else None
        self._order += 1
        waiter = Waiter(session, cmd, argv, list(dict.fromkeys(keys)), kind, deadline, on_timeout, self._order,
                        needs_keys)  # fmt: skip
        if again is not None and again.session is session:
            waiter.lost, waiter.root = again.lost, again.root
        engine.keyspace.needed += needs_keys
        queues = engine.keyspace.waiting
        for key in waiter.keys:
            queues.setdefault((session.db.index, key), {})[waiter] = None
        if deadline is not None:
            if self._deadlines is None:
                from sortedcontainers import SortedKeyList  # not needed before the first time-out

                self._deadlines = SortedKeyList(key=_due_order)
            self._deadlines.add(waiter)
        kinds = engine.keyspace.waited_kinds
        kinds[kind] = kinds.get(kind, 0) + 1
        self.count += 1
        session.waiter = waiter
        session.update_gate()
        engine.keyspace.update_hooks()
        return BLOCKED

    def remove(self, waiter: Waiter) -> None:
        """Take a waiter out of every queue: served, timed out, or its client went away."""
        session, queues = waiter.session, self._engine.keyspace.waiting
        for key in waiter.keys:
            queue = queues[session.db.index, key]
            del queue[waiter]
            if not queue:
                del queues[session.db.index, key]
        if waiter.deadline_ns is not None:
            assert self._deadlines is not None
            self._deadlines.remove(waiter)
        kinds = self._engine.keyspace.waited_kinds
        self._engine.keyspace.needed -= waiter.needs_keys
        kinds[waiter.kind] -= 1
        if not kinds[waiter.kind]:
            del kinds[waiter.kind]
        self.count -= 1
        session.waiter = None
        session.update_gate()
        self._engine.keyspace.update_hooks()

    def finish(self, waiter: Waiter, reply: Reply) -> None:
        """End the wait with ``reply`` (time-out, CLIENT UNBLOCK)."""
        self.remove(waiter)
        self._answer(waiter, reply)

    def _answer(self, waiter: Waiter, reply: Reply) -> None:
        for observer in self._engine.observers:
            observer.served(waiter, reply)
        if waiter.lost:
            self._engine.disconnect(waiter.session)
            waiter.session.on_close()
        else:
            waiter.session.on_reply(waiter.session.heard(reply))

    def next_due_ns(self) -> int | None:
        """The earliest deadline of a parked command."""
        return self._deadlines[0].deadline_ns if self._deadlines else None

    def time_out(self, now_ns: int) -> None:
        """Answer every parked command whose deadline has come, earliest first."""
        while (due := self.next_due_ns()) is not None and due <= now_ns:
            assert self._deadlines is not None
            waiter = self._deadlines[0]
            self.finish(waiter, waiter.on_timeout)

    def serve(self) -> None:
        """Run the commands whose keys became ready; called once per outermost unit, until none is left."""
        keyspace = self._engine.keyspace
        while keyspace.ready:
            ready, keyspace.ready = keyspace.ready, {}
            for index, key in ready:
                for waiter in list(keyspace.waiting.get((index, key), ())):
                    if waiter.session.waiter is not waiter:
                        continue  # served or gone meanwhile
                    value = keyspace.databases[index].data.get(key)
                    if value is None and not keyspace.needed:
                        break  # nothing is left for those behind
                    if value.__class__ is waiter.kind or waiter.needs_keys:
                        self._run_again(waiter)

    def _run_again(self, waiter: Waiter) -> None:
        session = waiter.session
        self.remove(waiter)
        self._rerun = waiter
        try:
            reply = waiter.cmd.fn(session, waiter.argv)
        except ReplyError as error:
            reply = error
        finally:
            self._rerun = None
        if reply is not BLOCKED:
            self._answer(waiter, reply)
            self._engine.deliver()
