"""The content of an emulator as plain data: readable, stable, and good for a diff.

``describe`` gives every key its type, its value and its deadlines, in an order that depends on nothing but the content,
so that two emulators with the same content give the same text in every process. ``fill`` takes such data back, and
shorter forms besides: a str for a string, a list for a list, a set for a set, a dict for a hash.

Bytes become text by `text`: UTF-8 where it is that, else ``hex:`` and hexadecimal digits; `blob` turns it back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from emuredis.errors import EmulatorError
from emuredis.scalars import format_double
from emuredis.values.hash import Hash
from emuredis.values.list import List
from emuredis.values.set import Set
from emuredis.values.stream import UNKNOWN, Consumer, Group, Pending, Stream
from emuredis.values.zset import ZSet

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine
    from emuredis.keyspace.database import Database

__all__ = ["blob", "describe", "describe_key", "fill", "text", "to_json"]

_HEX = "hex:"
_TYPES = ("string", "list", "set", "zset", "hash", "stream")


def text(raw: bytes) -> str:
    """Bytes as text that `blob` turns back into the same bytes."""
    try:
        shown = raw.decode()
    except UnicodeDecodeError:
        return _HEX + raw.hex()
    return _HEX + raw.hex() if shown.startswith(_HEX) else shown


def blob(value: Any) -> bytes:
    """What a str, bytes, int or float stands for. Raises EmulatorError for anything else."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        if value.startswith(_HEX):
            try:
                return bytes.fromhex(value[len(_HEX) :])
            except ValueError:
                raise EmulatorError(f"{value!r} does not hold hexadecimal digits") from None
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise EmulatorError(f"a key or value must be str, bytes, int or float, not {type(value).__name__}")
    return format_double(value) if isinstance(value, float) else b"%d" % value


# -- telling -------------------------------------------------------------------------------------


def describe(engine: Engine) -> dict[str, dict[str, Any]]:
    """``{database number: {key: {"type", "value", ...}}}`` of all databases that hold anything."""
    return {
        str(db.index): {text(key): _entry(db, key) for key in sorted(db.keys())}
        for db in engine.keyspace.databases
        if len(db)
    }


def _entry(db: Database, key: bytes) -> dict[str, Any]:
    value = db.data[key]
    entry: dict[str, Any] = {"type": "string", "value": text(value)} if value.__class__ is bytes else {}
    if isinstance(value, Hash):
        entry = {"type": "hash", "value": {text(f): text(v) for f, v in sorted(value.fields.items())}}
        if value.deadlines:
            entry["field_deadlines"] = {text(f): at for f, at in sorted(value.deadlines.items())}
    elif isinstance(value, List):
        entry = {"type": "list", "value": [text(element) for element in value]}
    elif isinstance(value, Set):
        entry = {"type": "set", "value": [text(member) for member in sorted(value)]}
    elif isinstance(value, ZSet):
        entry = {
            "type": "zset",
            "value": [[text(m), format_double(score).decode()] for m, score in value.items()],
        }
    elif isinstance(value, Stream):
        entry = {"type": "stream", **_stream(value)}
    deadline = db.deadline(key)
    if deadline is not None:
        entry["deadline"] = deadline
    return entry


def describe_key(db: Database, key: bytes) -> dict[str, Any] | None:
    """One key as `describe` has it, None if it is absent."""
    return _entry(db, key) if key in db.data else None


def _id(entry_id: int) -> str:
    return f"{entry_id >> 64}-{entry_id & ((1 << 64) - 1)}"


def _stream(value: Stream) -> dict[str, Any]:
    told: dict[str, Any] = {
        "value": [
            [_id(entry_id), [text(word) for word in entry]] for entry_id, entry in value.range(0, 1 << 128)
        ],
        "last_id": _id(value.last_id),
        "entries_added": value.entries_added,
        "max_deleted_id": _id(value.max_deleted_id),
    }
    if value.groups:
        told["groups"] = {text(name): _group(group) for name, group in sorted(value.groups.items())}
    return told


def _group(group: Group) -> dict[str, Any]:
    return {
        "last_id": _id(group.last_id),
        "entries_read": group.entries_read,
        "consumers": {text(n): [c.seen, c.active] for n, c in sorted(group.consumers.items())},
        "pending": [[_id(i), text(p.consumer.name), p.time, p.count] for i, p in group.pel.items()],
    }


def to_json(content: Mapping[str, Any]) -> str:
    """Content as text, a line for each key and for each element of a collection."""
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


# -- taking --------------------------------------------------------------------------------------


def fill(engine: Engine, content: Mapping[Any, Any]) -> None:
    """Put keys into place, instead of those of the same name; the others stay.

    ``content``: what `describe` gives, or ``{key: value}`` for database 0. Raises EmulatorError, and changes
    nothing, for what it cannot take.
    """
    arriving: list[tuple[Database, bytes, Any, int | None]] = []
    for index, keys in _by_database(engine, content):
        db = engine.keyspace.databases[index]
        for name, entry in keys.items():
            value, deadline = _taken(engine, blob(name), entry)
            arriving.append((db, blob(name), value, deadline))
    for db, key, value, deadline in arriving:
        db.remove(key)
        if isinstance(value, (bytes, Stream)) or len(value):
            db.add(key, value)
            db.adopt_fields(key, value)
            if deadline is not None:
                db.expire_at(key, deadline)
        db.touch(key, 0, b"")
    engine.keyspace.expire_all()


def _by_database(engine: Engine, content: Mapping[Any, Any]) -> list[tuple[int, Mapping[Any, Any]]]:
    if not content or not all(_is_database(engine, name, keys) for name, keys in content.items()):
        return [(0, content)]
    return [(int(name), keys) for name, keys in content.items()]


def _is_database(engine: Engine, name: Any, keys: Any) -> bool:
    """Whether this is a database of `describe`'s: its keys all have types."""
    return (
        isinstance(name, str) and name.isdigit() and int(name) < len(engine.keyspace.databases)
        and isinstance(keys, Mapping) and all(_is_entry(entry) for entry in keys.values())
    )  # fmt: skip


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.get("type") in _TYPES and "value" in entry


def _taken(engine: Engine, key: bytes, entry: Any) -> tuple[Any, int | None]:
    """The value and the deadline of one key."""
    try:
        if not _is_entry(entry):
            return _short(engine, entry), None
        return _TAKERS[entry["type"]](engine, entry), entry.get("deadline")
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise EmulatorError(f"cannot take the value of {key!r}: {problem}") from problem


def _short(engine: Engine, value: Any) -> Any:
    if isinstance(value, Mapping):
        return _hash(engine, {"value": value})
    if isinstance(value, (set, frozenset)):
        return _set(engine, {"value": sorted(value, key=blob)})
    if isinstance(value, (list, tuple)):
        return _list(engine, {"value": value})
    return blob(value)


def _string(engine: Engine, entry: Mapping[str, Any]) -> bytes:
    return blob(entry["value"])


def _hash(engine: Engine, entry: Mapping[str, Any]) -> Hash:
    items = [(blob(field), blob(value)) for field, value in entry["value"].items()]
    made = Hash.from_items(items, engine.limits)
    for field, at in entry.get("field_deadlines", {}).items():
        made.set_deadline(blob(field), int(at))
    return made


def _blobs(values: Iterable[Any]) -> list[bytes]:
    if isinstance(values, (str, bytes)):
        raise TypeError("its value should be a list")
    return [blob(value) for value in values]


def _list(engine: Engine, entry: Mapping[str, Any]) -> List:
    return List.from_elements(_blobs(entry["value"]), engine.limits)


def _set(engine: Engine, entry: Mapping[str, Any]) -> Set:
    return Set.from_members(_blobs(entry["value"]), engine.limits)


def _zset(engine: Engine, entry: Mapping[str, Any]) -> ZSet:
    pairs = entry["value"].items() if isinstance(entry["value"], Mapping) else entry["value"]
    return ZSet.from_items([(blob(member), float(score)) for member, score in pairs], engine.limits)


def _parse_id(shown: Any) -> int:
    ms, _, seq = str(shown).partition("-")
    return int(ms) << 64 | int(seq or 0)


def _stream_taken(engine: Engine, entry: Mapping[str, Any]) -> Stream:
    made = Stream(engine.limits)
    for shown, words in entry["value"]:
        flat = [word for pair in words.items() for word in pair] if isinstance(words, Mapping) else words
        made.append(_parse_id(shown), tuple(_blobs(flat)))
    made.last_id = _parse_id(entry.get("last_id", _id(made.last_id)))
    made.entries_added = int(entry.get("entries_added", made.entries_added))
    made.max_deleted_id = _parse_id(entry.get("max_deleted_id", "0-0"))
    for name, told in entry.get("groups", {}).items():
        made.groups[blob(name)] = _group_taken(told)
    return made


def _group_taken(told: Mapping[str, Any]) -> Group:
    group = Group(_parse_id(told.get("last_id", "0-0")), int(told.get("entries_read", UNKNOWN)))
    for name, (seen, active) in told.get("consumers", {}).items():
        consumer = group.consumers[blob(name)] = Consumer(blob(name), int(seen))
        consumer.active = int(active)
    for shown, name, time, count in told.get("pending", ()):
        consumer = group.consumers[blob(name)]
        entry_id = _parse_id(shown)
        group.pel[entry_id] = consumer.pel[entry_id] = Pending(consumer, int(time), int(count))
    return group


_TAKERS = {
    "string": _string,
    "hash": _hash,
    "list": _list,
    "set": _set,
    "zset": _zset,
    "stream": _stream_taken,
}
