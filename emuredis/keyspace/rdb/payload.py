"""A value by itself, as DUMP gives it away: its format's number, what `write_value` writes, version and checksum."""

from __future__ import annotations

import struct
from typing import Any

from emuredis.keyspace.rdb.codec import RdbError, Reader, Writer
from emuredis.keyspace.rdb.crc64 import crc64
from emuredis.keyspace.rdb.objects import read_value, type_of, write_value
from emuredis.values.limits import Limits

__all__ = ["VERSION", "WrongPayload", "dump", "is_known_version", "restore"]

VERSION = 80
_LAST_COMMON_VERSION = 11  # of those that all servers of the family understand
_FOOTER = struct.Struct("<HQ")


class WrongPayload(RdbError):
    """Of a version not known here, or damaged on its way."""

    def __init__(self) -> None:
        super().__init__("version or checksum are wrong")


def is_known_version(version: int) -> bool:
    """Whether this server reads that version of the format."""
    return 1 <= version <= _LAST_COMMON_VERSION or version == VERSION


def dump(value: Any, compressing: bool = True) -> bytes:
    """The payload of a value. O(n)."""
    out = Writer(compressing)
    out.byte(type_of(value))
    write_value(out, value)
    out.raw(VERSION.to_bytes(2, "little"))
    data = out.bytes()
    return data + crc64(data).to_bytes(8, "little")


def restore(data: bytes, limits: Limits) -> Any:
    """The value of a payload. Raises WrongPayload, or RdbError when it holds no value. O(n)."""
    if len(data) < _FOOTER.size:
        raise WrongPayload
    version, checksum = _FOOTER.unpack_from(data, len(data) - _FOOTER.size)
    if not is_known_version(version) or crc64(data[:-8]) != checksum:
        raise WrongPayload
    source = Reader(data)  # the server, too, would read on into version and checksum
    return read_value(source.byte(), source, limits)
