"""The sizes at which the server changes from a compact to a general encoding.

One `Limits` belongs to one server and is shared by all its values, so a change made by CONFIG SET
is seen by each value at its next change, as in the server. The encoding is only a name here: no
value changes its Python form when it is crossed.
"""

from __future__ import annotations

__all__ = ["DEFAULT", "Limits"]


class Limits:
    """Thresholds, named as in CONFIG (``hash-max-listpack-entries`` is `hash_entries` ...)."""

    __slots__ = (
        "hash_entries",
        "hash_value",
        "list_size",
        "set_intset",
        "set_entries",
        "set_value",
        "zset_entries",
        "zset_value",
    )

    def __init__(self) -> None:
        self.hash_entries = 512
        self.hash_value = 64
        self.list_size = -2
        self.set_intset = 512
        self.set_entries = 128
        self.set_value = 64
        self.zset_entries = 128
        self.zset_value = 64


DEFAULT = Limits()
