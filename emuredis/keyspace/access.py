"""When keys were last used, and how often: what OBJECT IDLETIME, OBJECT FREQ and eviction go by.

`Database.access` maps each key to the instant of its last use. Under an LFU policy it is a `Frequencies`, which on the
same assignment counts the use as well, so that looking a key up costs one dictionary store under every policy.

The dictionary takes as much memory as a small key, so a database of more than `RECORDED` keys has an `Unrecorded` one,
unless an LRU or LFU policy needs it.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["INITIAL", "RECORDED", "Frequencies", "Unrecorded"]

#: The counter of a new key, so that it is not evicted before it had a chance to be used.
INITIAL = 5
_MAX = 255
_MINUTE = 60_000_000_000


#: With more keys than this in a database, their uses are recorded only for a policy that goes by them.
RECORDED = 1 << 16


class Unrecorded(dict[bytes, int]):
    """Takes note of nothing."""

    def __setitem__(self, key: bytes, ns: int) -> None:
        return None

    def copy(self) -> Unrecorded:
        return Unrecorded()


class Frequencies(dict[bytes, int]):
    """Keys to the instant of their last use, with the logarithmic counter of an LFU policy beside it.

    The counter grows with a probability that falls the higher it is (``log_factor``) and shrinks by one for each
    ``decay_minutes`` without use (0: never), as in the server.
    """

    def __init__(self, chance: Callable[[], float], log_factor: int, decay_minutes: int) -> None:
        super().__init__()
        self.counters: dict[bytes, int] = {}
        self.chance = chance
        self.log_factor = log_factor
        self.decay_minutes = decay_minutes

    def __setitem__(self, key: bytes, ns: int) -> None:
        if key in self.counters:
            counter = self.counter(key, ns)
            above = max(counter - INITIAL, 0)
            if counter < _MAX and self.chance() < 1 / (above * self.log_factor + 1):
                counter += 1
            self.counters[key] = counter
        else:
            self.counters[key] = INITIAL
        super().__setitem__(key, ns)

    def pop(self, key: bytes, default: int | None = None) -> int | None:  # type: ignore[override]
        self.counters.pop(key, None)
        return super().pop(key, default)

    def copy(self) -> Frequencies:
        twin = Frequencies(self.chance, self.log_factor, self.decay_minutes)
        twin.counters = self.counters.copy()
        dict.update(twin, self)
        return twin

    def clear(self) -> None:
        self.counters.clear()
        super().clear()

    def counter(self, key: bytes, ns: int) -> int:
        """The counter at the instant ``ns``, less what it lost since its last use."""
        counter = self.counters.get(key, INITIAL)
        if self.decay_minutes and (used := self.get(key)) is not None:
            counter -= (ns // _MINUTE - used // _MINUTE) // self.decay_minutes
        return max(counter, 0)

    def restore(self, key: bytes, ns: int, counter: int) -> None:
        """Give a key a counter, as RESTORE does."""
        self.counters[key] = counter
        super().__setitem__(key, ns)
