"""The keys in a command's arguments, found with its key specifications as the server finds them.

`keys_of` is the one place that does: COMMAND GETKEYS, ACLs, tracking, strict scripts and clusters ask it.
"""

from __future__ import annotations

from collections.abc import Callable

from emuredis.scalars import parse_int
from emuredis.spec import Command, KeySpec

__all__ = ["keys_of"]


def keys_of(cmd: Command, argv: list[bytes]) -> list[tuple[bytes, list[str]]]:
    """The keys in ``argv`` with the flags of each; none if the arguments do not have the shape of the command."""
    if cmd.name == "migrate":
        return [(key, ["RW", "access", "delete"]) for key in _migrated(argv)]
    keys: list[tuple[bytes, list[str]]] = []
    stored = _STORED.get(cmd.name)
    for spec in cmd.key_specs:
        if "not_key" in spec.flags or spec.kind == "unknown" or (stored and spec.keyword is not None):
            continue
        places = _places(spec, argv)
        if not places:
            return []
        flags = spec.flags
        if "variable_flags" in flags:
            flags = _VARIABLE_FLAGS[cmd.name](argv)
        keys += [(argv[at], flags) for at in places]
    if stored:
        keys += stored(argv)
    return keys


def _places(spec: KeySpec, argv: list[bytes]) -> list[int]:
    """Positions of the keys of one specification; none where it does not fit."""
    first = spec.index
    if spec.keyword is not None:
        word = spec.keyword.lower().encode()
        places = (
            range(spec.startfrom, len(argv))
            if spec.startfrom > 0
            else range(len(argv) + spec.startfrom, 0, -1)
        )
        first = next((at + 1 for at in places if argv[at].lower() == word), len(argv))
    if spec.kind == "unknown" or first >= len(argv):
        return []
    step = spec.step
    if spec.kind == "keynum":
        count = parse_int(argv[first])
        if count is None or count < 0:
            return []
        first += 1
        last = first + (count - 1) * step
    elif spec.last >= 0:
        last = first + spec.last
    elif spec.limit:
        last = first + (len(argv) - first) // spec.limit + spec.last
    else:
        last = len(argv) + spec.last
    if last >= len(argv) or last < first:
        return []
    return list(range(first, last + 1, step))


def _sort_stored(argv: list[bytes]) -> list[tuple[bytes, list[str]]]:
    """The key that SORT stores into: its place depends on the options before it, and the last one counts."""
    found: list[tuple[bytes, list[str]]] = []
    at = 2
    while at < len(argv):
        word = argv[at].upper()
        if word == b"STORE" and at + 1 < len(argv):
            found = [(argv[at + 1], ["OW", "update"])]
        at += {b"LIMIT": 3, b"GET": 2, b"BY": 2}.get(word, 1)
    return found


def _radius_stored(argv: list[bytes]) -> list[tuple[bytes, list[str]]]:
    """The key that GEORADIUS stores into; again the last one counts."""
    found: list[tuple[bytes, list[str]]] = []
    at = 5
    while at + 1 < len(argv):
        if argv[at].upper() in (b"STORE", b"STOREDIST"):
            at += 1
            found = [(argv[at], ["OW", "update"])]
        at += 1
    return found


def _migrated(argv: list[bytes]) -> list[bytes]:
    """The keys of MIGRATE: the third word, or what stands behind KEYS if that is empty."""
    at = 6
    while at < len(argv):
        word = argv[at].upper()
        if word == b"KEYS":
            return [] if argv[3] else argv[at + 1 :]
        at += {b"AUTH": 2, b"AUTH2": 3}.get(word, 1)
    return argv[3:4]


_STORED = {"sort": _sort_stored, "georadius": _radius_stored, "georadiusbymember": _radius_stored}


def _set_flags(argv: list[bytes]) -> list[str]:
    """SET reads the old value only with GET."""
    return ["RW", "access", "update"] if any(arg.upper() == b"GET" for arg in argv[3:]) else ["OW", "update"]


def _bitfield_flags(argv: list[bytes]) -> list[str]:
    """BITFIELD only reads if it consists of GET and OVERFLOW."""
    at, size = 2, len(argv)
    while at < size:
        word, left = argv[at].upper(), size - at - 1
        if word == b"GET" and left >= 2:
            at += 3
        elif word == b"OVERFLOW" and left >= 1:
            at += 2
        else:
            return ["RW", "access", "update"]
    return ["RO", "access"]


#: Commands whose options decide what happens to the key.
_VARIABLE_FLAGS: dict[str, Callable[[list[bytes]], list[str]]] = {
    "set": _set_flags,
    "bitfield": _bitfield_flags,
}
