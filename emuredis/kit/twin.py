"""A client that asks two engines and insists on one answer: `twin`, and `replay` for what was recorded.

The emulator is asked in process, the other server over redis-py. Replies are compared as RESP3 gives them. Where
their order is the server's secret (sets, SCAN, HGETALL ...) it does not count; of what depends on chance or on the
moment only the type does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from emuredis.client import Client, encode_args
from emuredis.emulator import Emulator
from emuredis.errors import EmulatorError, ReplyError
from emuredis.kit.sources import monitored
from emuredis.spec import BLOCKING

if TYPE_CHECKING:
    from emuredis.spec import Command

__all__ = ["Difference", "Twin", "replay", "twin"]

#: Random choices and the clock: equal only in kind.
_KIND = "nondeterministic_output"
_ORDER = "nondeterministic_output_order"
_BY_THE_CLOCK = frozenset("ttl pttl expiretime pexpiretime httl hpttl hexpiretime hpexpiretime time".split())


class Difference(AssertionError):
    """The two answered differently. ``history``: what was asked before, the last being the one that differs."""

    def __init__(self, argv: list[bytes], here: Any, there: Any, history: list[list[bytes]]) -> None:
        self.argv, self.here, self.there, self.history = argv, here, there, history
        lines = "\n".join(f"  {number} {_line(words)}" for number, words in enumerate(history, 1))
        super().__init__(f"{_line(argv)}\n  emuredis: {here!r}\n  server:   {there!r}\nafter\n{lines}")


def _line(argv: Iterable[bytes]) -> str:
    return " ".join(repr(word)[2:-1] if word and b" " not in word else repr(word)[1:] for word in argv)


class Twin:
    """One client of both. ``call`` raises `Difference` at the first answer that is not the same.

    ``remember``: how many commands a `Difference` lists.
    """

    def __init__(self, emulator: Emulator, server: Any, remember: int = 50) -> None:
        self.emulator = emulator
        self.client: Client = emulator.client()
        self._server = server
        self._history: list[list[bytes]] = []
        self._remember = remember
        self._blocking = True

    def call(self, *args: Any) -> Any:
        """Ask both, as `emuredis.client.Client.call`: the answer of both. Raises ReplyError if that is an error."""
        argv = encode_args(args)
        self._history.append(argv)
        del self._history[: -self._remember]
        cmd = self.emulator.engine.table.find(argv[0])
        here = _outcome(lambda: self.client.call(*argv))
        at_once = not self._blocking and cmd is not None and bool(cmd.flags & BLOCKING)
        there = self._server.ask_at_once(argv) if at_once else self._server.ask(argv)
        if not same(cmd, argv, here, there):
            raise Difference(argv, here, there, list(self._history))
        if isinstance(here, ReplyError):
            raise here
        return here

    def never_block(self) -> None:
        """From now on blocking commands answer as at their time-out where there is nothing for them."""
        self._blocking = False
        self.client.session.deny_blocking = True

    def close(self) -> None:
        self.client.close()
        self._server.close()

    def __enter__(self) -> Twin:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _outcome(ask: Any) -> Any:
    try:
        return ask()
    except ReplyError as error:
        return error


def same(cmd: Command | None, argv: list[bytes], here: Any, there: Any) -> bool:
    """Whether two replies to a command are as good as equal."""
    if cmd is not None and cmd.subs is not None and len(argv) > 1:
        cmd = cmd.subs.get(argv[1].lower()) or cmd
    tips = () if cmd is None else cmd.tips
    if _KIND in tips or (cmd is not None and cmd.name in _BY_THE_CLOCK):
        return type(here) is type(there)
    if _ORDER in tips or isinstance(here, dict):
        return bool(_unordered(here) == _unordered(there))
    equal: bool = here == there
    return equal


def _unordered(reply: Any) -> Any:
    if isinstance(reply, (list, set, frozenset)):
        return sorted(repr(_unordered(item)) for item in reply)
    return reply


def twin(url: str, emulator: Emulator | None = None) -> Twin:
    """A client of an emulator (a new one unless given) and of the server at ``url``, whose database 0 is emptied.

    Raises EmulatorError when the server does not answer, ImportError without redis-py.
    """
    from emuredis.redispy.other import Other

    server = Other(url)
    server.ask([b"FLUSHALL"])
    return Twin(emulator if emulator is not None else Emulator(), server)


def replay(
    text: str, url: str | None = None, emulator: Emulator | None = None
) -> tuple[int, list[Difference]]:
    """Run what MONITOR printed, on an emulator and, with ``url``, on a server too: how many commands, what differed.

    A difference does not end it. Raises EmulatorError for lines that are none of MONITOR's.
    """
    emulator = emulator if emulator is not None else Emulator()
    clients: dict[str, Any] = {}
    count, differences = 0, []
    lines = list(monitored(text))
    try:
        for _, db, address, words in lines:
            client = clients.get(address)
            if client is None:
                client = clients[address] = _client(emulator, url, db, first=not clients)
            count += 1
            try:
                client.call(*words)
            except Difference as difference:
                differences.append(difference)
            except ReplyError:
                pass  # it failed when it was recorded, too, or the record does not begin at the beginning
    finally:
        for client in clients.values():
            client.close()
    return count, differences


def _client(emulator: Emulator, url: str | None, db: int, first: bool) -> Any:
    if url is None:
        client: Any = emulator.client()
        client.session.deny_blocking = True  # it has waited already
    else:
        from emuredis.redispy.other import Other

        client = Twin(emulator, Other(url))
        if first:
            client.call("FLUSHALL")
        client.never_block()
    if db:
        try:
            client.call("SELECT", db)
        except ReplyError as error:
            raise EmulatorError(f"database {db}: {error}") from error
    return client
