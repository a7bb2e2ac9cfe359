"""RDB files: the whole keyspace, written at once and read at once.

A file is a magic word with the version, facts about the writer, then for each database its number, two sizes and its
keys with their deadlines, an end mark and the checksum of all that; libraries of functions come before the databases.
`encode` and `decode` go between that and databases; `save` and `load` are the two with a path.

Saving is atomic: a temporary file in the same directory is written whole, brought to the disk and given its name.
Loading decodes everything first; `Contents` is what a file holds, so a damaged one changes nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from emuredis.keyspace.database import Database
from emuredis.keyspace.rdb.codec import RdbError, Reader, Writer
from emuredis.keyspace.rdb.crc64 import crc64
from emuredis.keyspace.rdb.objects import EmptyValue, read_value, type_of, write_value
from emuredis.keyspace.rdb.payload import VERSION, is_known_version
from emuredis.values.limits import Limits

__all__ = ["Contents", "Item", "decode", "encode", "load", "save"]

_MAGIC, _OLD_MAGIC = b"VALKEY", b"REDIS0"
_HEADER = 9  # bytes of the magic word and the version
_CHECKSUM = 8  # bytes at the end, since version 5
_CHECKSUM_SINCE = 5

SLOT_INFO, FUNCTION, MODULE_AUX, IDLE, FREQ, AUX, RESIZEDB = 244, 245, 247, 248, 249, 250, 251
EXPIRETIME_MS, EXPIRETIME, SELECTDB, EOF = 252, 253, 254, 255


class Item(NamedTuple):
    """A key as a file holds it. ``deadline``: Unix milliseconds, None for never."""

    db: int
    key: bytes
    value: Any
    deadline: int | None


class Contents(NamedTuple):
    """What a file holds: keys in order, facts about its writer, sources of libraries of functions."""

    items: list[Item]
    facts: dict[bytes, bytes]
    functions: list[bytes]


# -- writing -----------------------------------------------------------------------------------


def encode(databases: Iterable[Database], facts: dict[bytes, bytes], compressing: bool = True,
           functions: Iterable[bytes] = ()) -> bytes:  # fmt: skip
    """A file of these databases; ``functions``: the source of each library of functions. O(n)."""
    out = Writer(compressing)
    out.raw(b"%s%03d" % (_MAGIC, VERSION))
    for name, text in facts.items():
        out.byte(AUX)
        out.string(name)
        out.string(text)
    for source in functions:
        out.byte(FUNCTION)
        out.string(source)
    for db in databases:
        if db.data:
            _encode_database(out, db)
    out.byte(EOF)
    data = out.bytes()
    return data + crc64(data).to_bytes(_CHECKSUM, "little")


def _encode_database(out: Writer, db: Database) -> None:
    out.byte(SELECTDB)
    out.length(db.index)
    out.byte(RESIZEDB)
    out.length(len(db.data))
    out.length(len(db.deadlines))
    for key, value in db.data.items():
        deadline = db.deadlines.get(key)
        if deadline is not None:
            out.byte(EXPIRETIME_MS)
            out.instant(deadline)
        out.byte(type_of(value))
        out.string(key)
        write_value(out, value)


def save(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` so that there is the old file or the new one, whole. Raises OSError."""
    number, temporary = _temporary(path.parent)
    try:
        with open(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(number)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_directory(path.parent)


def _temporary(directory: Path) -> tuple[int, Path]:
    """A new file in ``directory``, never one that is there, be it another's or a link: its descriptor and its path."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    for attempt in count():
        path = directory / f"temp-{os.getpid()}-{attempt}.rdb"
        with contextlib.suppress(FileExistsError):
            return os.open(path, flags, 0o666), path
    raise AssertionError("unreachable")


def _sync_directory(directory: Path) -> None:
    """Have the new name on the disk, too, where the system lets directories be synchronised."""
    with contextlib.suppress(OSError):
        number = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


# -- reading -----------------------------------------------------------------------------------


def load(path: Path, limits: Limits, databases: int) -> Contents:
    """What the file at ``path`` holds. Raises OSError and RdbError, which name it."""
    try:
        return decode(path.read_bytes(), limits, databases)
    except RdbError as problem:
        raise RdbError(f"{path}: {problem}") from None


def decode(data: bytes, limits: Limits, databases: int) -> Contents:
    """What the bytes of a file hold. Raises RdbError. O(n)."""
    version = _version(data)
    end = len(data)
    source = Reader(data, _HEADER, end)
    contents = Contents([], {}, [])
    try:
        _read_keys(source, contents, limits, databases)
    except RdbError as problem:
        raise RdbError(f"damaged or truncated at byte {source.at}: {problem}") from problem
    if version >= _CHECKSUM_SINCE:
        if end - source.at < _CHECKSUM:
            raise RdbError("truncated: it has no checksum")
        checksum = int.from_bytes(data[source.at : source.at + _CHECKSUM], "little")
        if checksum and checksum != crc64(data[: source.at]):  # 0: it was not computed
            raise RdbError("damaged: its checksum is wrong")
    return contents


def _version(data: bytes) -> int:
    magic, digits = data[:6], data[6:_HEADER] if data[:6] == _MAGIC else data[5:_HEADER]
    if magic not in (_MAGIC, _OLD_MAGIC) or not digits.isdigit() or len(data) < _HEADER:
        raise RdbError("not an RDB file")
    version = int(digits)
    if not is_known_version(version) or (magic == _OLD_MAGIC and version == VERSION):
        raise RdbError(f"an RDB file of version {version}, of which nothing is known here")
    return version


def _read_keys(source: Reader, contents: Contents, limits: Limits, databases: int) -> None:
    """Everything up to the end mark."""
    index = 0
    deadline: int | None = None
    seen: set[tuple[int, bytes]] = set()
    while (code := source.byte()) != EOF:
        if code == SELECTDB:
            index = source.length()
            if index >= databases:
                raise RdbError(f"it has a database {index}, where there are {databases}")
        elif code == EXPIRETIME_MS:
            deadline = source.instant()
        elif code == EXPIRETIME:
            deadline = 1000 * int.from_bytes(source.raw(4), "little", signed=True)
        elif code not in _skippers:
            key = source.string()
            if (index, key) in seen:
                raise RdbError(f"the key {key!r} is there twice")
            seen.add((index, key))
            # A collection without elements was never meant to be there; servers pass over it, too.
            with contextlib.suppress(EmptyValue):
                value = read_value(code, source, limits)
                contents.items.append(Item(index, key, value, deadline))
            deadline = None
        else:
            _skippers[code](source, contents)


def _read_fact(source: Reader, contents: Contents) -> None:
    name = source.string()
    contents.facts[name] = source.string()


def _read_function(source: Reader, contents: Contents) -> None:
    contents.functions.append(source.string())


def _skip_lengths(count: int) -> Any:
    def skip(source: Reader, contents: Contents) -> None:
        for _ in range(count):
            source.length()

    return skip


def _refuse(what: str) -> Any:
    def refuse(source: Reader, contents: Contents) -> None:
        raise RdbError(f"it holds {what}, which emuredis does not have")

    return refuse


def _skip_frequency(source: Reader, contents: Contents) -> None:
    source.byte()


_skippers: dict[int, Any] = {
    AUX: _read_fact,
    RESIZEDB: _skip_lengths(2),
    SLOT_INFO: _skip_lengths(3),
    IDLE: _skip_lengths(1),
    FREQ: _skip_frequency,
    FUNCTION: _read_function,
    MODULE_AUX: _refuse("data of a module"),
}
