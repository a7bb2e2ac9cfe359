"""Operations: what a program does by several commands, for judging it as if each were one instant.

    with operation("push", "x") as op:
        await client.lpush("queue", "x")
        op.result = None

`linearizable(model)` then asks whether there is an order of the operations that agrees with their results and with
real time: one that ended before another began comes first. An operation that never ended (its actor crashed, its
connection was lost) may have happened or not.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from emuredis.lab.oracles import Oracle, State

__all__ = ["Operation", "counter", "linearizable", "lock", "operation", "queue", "register"]

#: (state, name, arguments) to the states and results that are possible; None where the model has no such operation.
Model = Callable[[Any, str, tuple[Any, ...]], Sequence[tuple[Any, Any]] | None]
NOTHING = object()  # the result of an operation that has not ended


@dataclass(slots=True)
class Operation:
    """``began`` and ``ended`` count steps of the run; ``ended`` is None for one that never did. ``result``: set it
    before the block ends; None unless it is."""

    actor: str
    name: str
    args: tuple[Any, ...]
    began: int
    ended: int | None = None
    result: Any = None

    def __str__(self) -> str:
        result = "never ended" if self.ended is None else repr(self.result)
        return f"{self.actor}: {self.name}({', '.join(map(repr, self.args))}) -> {result}"


@contextmanager
def operation(name: str, *args: Any) -> Iterator[Operation]:
    """Note an operation of the actor that is running. Outside of an exploration it notes nothing."""
    from emuredis.lab import world

    here = world.CURRENT
    if here is None or here.acting is None:
        yield Operation("", name, args, 0)
        return
    made = Operation(here.acting.label, name, args, len(here.taken))
    here.operations.append(made)
    yield made
    made.ended = len(here.taken)  # not after an exception: then nobody knows what became of it


class linearizable(Oracle):
    """The operations of a run agree with ``model``, one of `register`, `counter`, `queue`, `lock` or a function like
    them; ``start``: its state at the beginning (default: the model's own). Exponential in the number of operations that
    overlap; meant for a handful."""

    def __init__(self, model: Model, start: Any = NOTHING) -> None:
        self._model = model
        self._start = _STARTS.get(model) if start is NOTHING else start
        self.name = f"linearizable as a {getattr(model, '__name__', 'model')}"

    def end(self, state: State) -> str | None:
        done = state.operations
        if self._fits(self._start, tuple(done), set()):
            return None
        told = "; ".join(map(str, sorted(done, key=lambda op: op.began)))
        return f"not {self.name}: no order of these explains their results: {told}"

    def _fits(self, value: Any, left: tuple[Operation, ...], seen: set[Any]) -> bool:
        if all(op.ended is None for op in left):
            return True
        known = (value if isinstance(value, Hashable) else repr(value), tuple(map(id, left)))
        if known in seen:
            return False
        seen.add(known)
        first_end = min(op.ended for op in left if op.ended is not None)
        for at, op in enumerate(left):
            if op.began >= first_end and op.ended != first_end:
                continue  # another one had ended before it began
            outcomes = self._model(value, op.name, op.args)
            if outcomes is None:
                raise ValueError(f"{self.name}: the model has no operation {op.name!r}")
            rest = left[:at] + left[at + 1 :]
            for after, result in outcomes:
                if (op.ended is None or result == op.result) and self._fits(after, rest, seen):
                    return True
        return False


def register(value: Any, name: str, args: tuple[Any, ...]) -> Sequence[tuple[Any, Any]] | None:
    """``write(x)`` gives None, ``read()`` the last that was written; ``cas(old, new)`` gives True or False."""
    if name == "write":
        return [(args[0], None)]
    if name == "read":
        return [(value, value)]
    if name == "cas":
        return [(args[1], True)] if value == args[0] else [(value, False)]
    return None


def counter(value: int, name: str, args: tuple[Any, ...]) -> Sequence[tuple[Any, Any]] | None:
    """``add(n)`` gives the sum so far, ``read()`` the same."""
    if name == "add":
        return [(value + args[0], value + args[0])]
    return [(value, value)] if name == "read" else None


def queue(value: tuple[Any, ...], name: str, args: tuple[Any, ...]) -> Sequence[tuple[Any, Any]] | None:
    """``push(x)`` gives None, ``pop()`` the oldest, None if there is none."""
    if name == "push":
        return [((*value, args[0]), None)]
    if name == "pop":
        return [(value[1:], value[0])] if value else [((), None)]
    return None


def lock(owner: Any, name: str, args: tuple[Any, ...]) -> Sequence[tuple[Any, Any]] | None:
    """``acquire(who)`` gives True or False, ``release(who)`` True if it was theirs."""
    if name == "acquire":
        return [(args[0], True)] if owner is None else [(owner, False)]
    if name == "release":
        return [(None, True)] if owner == args[0] else [(owner, False)]
    return None


_STARTS: dict[Any, Any] = {register: None, counter: 0, queue: (), lock: None}
