"""The sizes at which the server changes from a compact to a general encoding.

One `Limits` belongs to one server and is shared by all its values, so a change made by CONFIG SET
is seen by each value at its next change, as in the server. The encoding is only a name here: no
value changes its Python form when it is crossed.
"""

from __future__ import annotations

__all__ = ["DEFAULT", "Limits"]

_BYTES_BY_LEVEL = (4096, 8192, 16384, 32768, 65536)
_SAFE_BYTES = 8192
_UNLIMITED = 1 << 62


class Limits:
    """Thresholds, named as in CONFIG (``hash-max-listpack-entries`` is `hash_entries` ...).

    `list_size` is ``list-max-listpack-size``: negative for a level of bytes, else a number of elements.
    `list_bytes` and `list_count` are what a node may hold under it, `list_small` the bytes up to which
    a list that shrinks to one node becomes compact again (at half the count).
    """

    __slots__ = (
        "_list_size",
        "hash_entries",
        "hash_value",
        "hll_sparse_bytes",
        "list_bytes",
        "list_count",
        "list_small",
        "set_entries",
        "set_intset",
        "set_value",
        "stream_node_bytes",
        "stream_node_entries",
        "zset_entries",
        "zset_value",
    )

    def __init__(self) -> None:
        self.hash_entries = 512
        self.hash_value = 64
        self.hll_sparse_bytes = 3000
        self.list_size = -2
        self.set_intset = 512
        self.set_entries = 128
        self.set_value = 64
        self.stream_node_bytes = 4096
        self.stream_node_entries = 100
        self.zset_entries = 128
        self.zset_value = 64

    @property
    def list_size(self) -> int:
        return self._list_size

    @list_size.setter
    def list_size(self, size: int) -> None:
        self._list_size = size
        if size < 0:
            self.list_bytes = _BYTES_BY_LEVEL[min(-size, len(_BYTES_BY_LEVEL)) - 1]
            self.list_count = _UNLIMITED
            self.list_small = self.list_bytes // 2
        else:
            self.list_bytes = _SAFE_BYTES
            self.list_count = max(size, 1)
            self.list_small = _UNLIMITED


DEFAULT = Limits()
