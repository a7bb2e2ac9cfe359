"""Which commands a release of Valkey or Redis has: the table of commands as an older server's clients see it.

A command belongs to a release if its "since" is not newer. Redis and Valkey went apart after 7.2: of what came later,
Redis has only what is listed here, each with the Redis version it came with. Options of commands are not looked at.
"""

from __future__ import annotations

import copy
import re
from functools import cache
from typing import Any

from emuredis.spec import TABLE, Command, Table

__all__ = ["SERVER_TYPES", "parse_version", "table_of"]

SERVER_TYPES = ("valkey", "redis")
_PARTING = (7, 2)
#: Commands that both have, by the Redis version they came with.
_IN_REDIS = {
    **dict.fromkeys(
        (
            "hexpire",
            "hpexpire",
            "hexpireat",
            "hpexpireat",
            "hpersist",
            "httl",
            "hpttl",
            "hexpiretime",
            "hpexpiretime",
        ),
        (7, 4),
    ),
    **dict.fromkeys(("hgetex", "hsetex", "hgetdel"), (8, 0)),
    "msetex": (8, 4),
}


def parse_version(version: Any) -> tuple[int, ...]:
    """``"7.2"``, ``"7.2.5"``, ``7`` or ``(7, 2)`` as numbers. Raises ValueError for anything else."""
    if isinstance(version, int) and not isinstance(version, bool):
        version = (version,)
    if isinstance(version, str) and re.fullmatch(r"\d+(\.\d+){0,2}", version):
        version = tuple(int(part) for part in version.split("."))
    if (
        isinstance(version, (tuple, list))
        and 1 <= len(version) <= 3
        and all(type(part) is int for part in version)
    ):
        return tuple(version)
    raise ValueError(f"a version is like '7.2', 7 or (7, 2), not {version!r}")


def table_of(version: Any = None, server_type: str | None = None) -> Table:
    """The commands of a release; a short version is the last of its kind: 7 has what 7.2 has.

    Raises ValueError for what is not a version, and for a kind of server that is not emulated.
    """
    if server_type not in (None, *SERVER_TYPES):
        raise ValueError(f"emuredis emulates valkey and redis, not {server_type!r}")
    if version is None and server_type in (None, "valkey"):
        return TABLE
    return _table_of(None if version is None else parse_version(version), server_type or "valkey")


@cache
def _table_of(version: tuple[int, ...] | None, server_type: str) -> Table:
    table = Table()
    for name, cmd in TABLE.items():
        if not _has(cmd, version, server_type):
            continue
        if cmd.subs is not None:
            cmd = copy.copy(cmd)
            assert cmd.subs is not None
            cmd.subs = {word: sub for word, sub in cmd.subs.items() if _has(sub, version, server_type)}
        table[name] = table.get(cmd.name.encode(), cmd)
    return table


def _has(cmd: Command, version: tuple[int, ...] | None, server_type: str) -> bool:
    since = tuple(int(part) for part in cmd.since.split("."))
    if server_type == "redis" and since[:2] > _PARTING:
        if cmd.name not in _IN_REDIS:
            return False
        since = _IN_REDIS[cmd.name]
    return version is None or since[: len(version)] <= version
