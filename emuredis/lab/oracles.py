"""Oracles: what must hold whatever the schedule, ready to be given to `explore` as ``check``.

A check is a function of a `State`. An `Oracle` may look after every step, not only at the end, and keeps nothing
between runs but whether it was ever reached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from emuredis.client import Client
from emuredis.lab.actors import CRASHED, DONE, FAILED

if TYPE_CHECKING:
    from emuredis.lab.world import World

__all__ = ["Check", "Oracle", "State", "always", "exactly_one_place", "fenced", "mutual_exclusion", "no_effect_twice",
           "none_stuck", "nothing_lost", "oracles_of", "sometimes"]  # fmt: skip


class State:
    """A run as a check sees it. Commands given to `call` are no steps: they only look.

    ``results``: what each finished actor returned; ``errors``: what ended one; ``crashed``: actors that are down;
    ``schedule``: the choices so far.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._client: Client | None = None

    def call(self, *args: Any) -> Any:
        """A command of a native RESP2 client that is no actor."""
        world = self._world
        if self._client is None or self._client.session.closing:
            before = world.engine.connections
            self._client = Client(world.engine, protocol=2)
            world.engine.connections = before
        watching, world.watching = world.watching, False
        recording, world.recording = world.recording, False
        try:
            return self._client.call(*args)
        finally:
            world.watching, world.recording = watching, recording

    @property
    def results(self) -> dict[str, Any]:
        return {actor.label: actor.result for actor in self._world.actors if actor.state == DONE}

    @property
    def errors(self) -> dict[str, BaseException]:
        return {
            actor.label: actor.error for actor in self._world.actors if actor.state == FAILED and actor.error
        }

    @property
    def crashed(self) -> list[str]:
        return [actor.label for actor in self._world.actors if actor.state == CRASHED]

    @property
    def crashes(self) -> int:
        """How many crashes there were, restarted actors counted."""
        return self._world.crashes

    @property
    def lost_replies(self) -> int:
        return self._world.lost

    @property
    def run(self) -> int:
        """The number of this run."""
        return self._world.runs

    @property
    def all_crashed(self) -> bool:
        """Whether nobody is left alive or ended well."""
        return all(actor.state == CRASHED for actor in self._world.actors)

    @property
    def last_crash_ms(self) -> int:
        """When somebody crashed last; if nobody did, when the run began."""
        return self._world.last_crash_ns // 1_000_000

    @property
    def operations(self) -> list[Any]:
        """The `emuredis.lab.operation`s so far, in the order in which they began."""
        return list(self._world.operations)

    @property
    def schedule(self) -> list[str]:
        return list(self._world.taken)

    @property
    def now_ms(self) -> int:
        """What the emulator's clock shows, in Unix milliseconds."""
        return self._world.engine.now_ns() // 1_000_000

    def dump(self) -> str:
        """The whole content as `emuredis.Emulator.dump` gives it."""
        return self._world.emulator.dump()


Check = Callable[[State], Any]


class Oracle:
    """``steps``: look after every step; ``ends``: look at the end. A text says what is wrong."""

    steps = False
    ends = True
    reached = True  # a `sometimes` was
    name = "check"

    def step(self, state: State) -> str | None:
        return None

    def end(self, state: State) -> str | None:
        return None


class _Function(Oracle):
    def __init__(self, check: Check) -> None:
        self._check = check
        self.name = getattr(check, "__name__", "check")

    def end(self, state: State) -> str | None:
        return verdict(self._check, state, self.name)


def verdict(check: Check, state: State, name: str) -> str | None:
    """What a check says: an AssertionError, a text or False is a complaint."""
    try:
        said = check(state)
    except AssertionError as complaint:
        return str(complaint).partition("\nassert ")[0] or f"{name} failed"  # without what pytest adds
    if said is False:
        return f"{name} does not hold"
    return said if isinstance(said, str) and said else None


def oracles_of(check: Any) -> list[Oracle]:
    """The oracles that the argument ``check`` of `explore` stands for."""
    if check is None:
        return []
    if isinstance(check, Oracle):
        return [check]
    if callable(check):
        return [_Function(check)]
    return [oracle for each in check for oracle in oracles_of(each)]


class always(Oracle):
    """``predicate(state)`` holds after every step."""

    steps = True
    ends = False

    def __init__(self, predicate: Check, name: str = "") -> None:
        self._predicate = predicate
        self.name = name or getattr(predicate, "__name__", "always")

    def step(self, state: State) -> str | None:
        return verdict(self._predicate, state, self.name)


class sometimes(Oracle):
    """``predicate(state)`` holds after some step of some schedule, or the exploration proves less than it seems."""

    steps = True

    def __init__(self, predicate: Check, name: str = "") -> None:
        self._predicate = predicate
        self.name = name or getattr(predicate, "__name__", "sometimes")
        self.reached = False

    def step(self, state: State) -> str | None:
        if not self.reached and self._predicate(state):
            self.reached = True
        return None

    def end(self, state: State) -> str | None:
        return self.step(state)


def _count(state: State, item: bytes, key: str) -> int:
    """How often ``item`` is in the list, set, sorted set, hash (as a field) or string at ``key``."""
    kind = state.call("TYPE", key)
    if kind == b"list":
        return sum(element == item for element in state.call("LRANGE", key, 0, -1))
    if kind == b"set":
        return int(state.call("SISMEMBER", key, item))
    if kind == b"zset":
        return int(state.call("ZSCORE", key, item) is not None)
    if kind == b"hash":
        return int(state.call("HEXISTS", key, item))
    return int(kind == b"string" and state.call("GET", key) == item)


class exactly_one_place(Oracle):
    """``item`` is in exactly one of ``keys``, once; ``every_step``: at each step, else at the end."""

    def __init__(self, item: str | bytes, *keys: str, every_step: bool = False) -> None:
        self._item = item.encode() if isinstance(item, str) else item
        self._keys = keys
        self.steps = every_step
        self.name = "exactly one place"

    def step(self, state: State) -> str | None:
        places = [key for key in self._keys for _ in range(_count(state, self._item, key))]
        if len(places) == 1:
            return None
        item = self._item.decode("utf-8", "backslashreplace")
        if not places:
            return f"{item} is lost: it is in none of {', '.join(self._keys)}"
        return f"{item} is there {len(places)} times: in {', '.join(places)}"

    end = step


class nothing_lost(Oracle):
    """Each of ``items`` is in at least one of ``keys`` at the end."""

    def __init__(self, items: Sequence[str | bytes], *keys: str) -> None:
        self._items = [item.encode() if isinstance(item, str) else item for item in items]
        self._keys = keys
        self.name = "nothing lost"

    def end(self, state: State) -> str | None:
        for item in self._items:
            if not any(_count(state, item, key) for key in self._keys):
                return f"{item.decode('utf-8', 'backslashreplace')} is lost: it is in none of {', '.join(self._keys)}"
        return None


class mutual_exclusion(Oracle):
    """At most ``most`` actors are inside at a time: ``inside(state)`` gives their names."""

    steps = True
    ends = False

    def __init__(self, inside: Callable[[State], Sequence[str]], most: int = 1) -> None:
        self._inside = inside
        self._most = most
        self.name = "mutual exclusion"

    def step(self, state: State) -> str | None:
        inside = list(self._inside(state))
        return None if len(inside) <= self._most else f"inside at the same time: {', '.join(inside)}"


class no_effect_twice(Oracle):
    """No element of the list ``effects`` is there twice, unless an actor crashed or a reply was lost."""

    def __init__(self, effects: str, even_then: bool = False) -> None:
        self._effects = effects
        self._even_then = even_then
        self.name = "no effect twice"

    def end(self, state: State) -> str | None:
        if not self._even_then and (state.crashes or state.lost_replies):
            return None
        seen: set[bytes] = set()
        for effect in state.call("LRANGE", self._effects, 0, -1):
            if effect in seen:
                return f"the effect {effect.decode('utf-8', 'backslashreplace')} happened twice"
            seen.add(effect)
        return None


class fenced(Oracle):
    """The list ``effects`` has elements ``id:token``: for each id the tokens only rise, so that a stale owner did
    nothing after a newer one began."""

    steps = True

    def __init__(self, effects: str) -> None:
        self._effects = effects
        self.name = "fenced"

    def step(self, state: State) -> str | None:
        newest: dict[bytes, int] = {}
        for effect in state.call("LRANGE", self._effects, 0, -1):
            owner, _, token = effect.rpartition(b":")
            if int(token) <= newest.get(owner, -1):
                name = owner.decode("utf-8", "backslashreplace")
                return f"{name}: an effect under token {int(token)} after one under token {newest[owner]}"
            newest[owner] = int(token)
        return None

    end = step


class none_stuck(Oracle):
    """At the end none of ``keys`` holds anything, if an actor is alive; and they were empty within ``within_ms`` of the
    emulator's time since the beginning or the last crash: a lease and a beat, say."""

    steps = True

    def __init__(self, *keys: str, within_ms: int | None = None) -> None:
        self._keys = keys
        self._within = within_ms
        self._run = -1
        self._empty_since: int | None = None
        self.name = "none stuck"

    def step(self, state: State) -> str | None:
        if state.run != self._run:
            self._run, self._empty_since = state.run, None
        if any(state.call("EXISTS", key) for key in self._keys):
            self._empty_since = None
        elif self._empty_since is None:
            self._empty_since = state.now_ms
        return None

    def end(self, state: State) -> str | None:
        self.step(state)
        for key in self._keys:
            if state.call("EXISTS", key) and not state.all_crashed:
                return f"{key} still holds something, and nothing is going to happen any more"
        if self._within is not None and self._empty_since is not None:
            took = self._empty_since - state.last_crash_ms
            if took > self._within:
                return f"it took {took} ms to come through, not {self._within}"
        return None
