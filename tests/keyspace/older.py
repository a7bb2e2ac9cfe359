"""Payloads as older servers wrote them: ziplists, zipmaps, lists of strings, scores as text, streams without counters.

Written from the formats' descriptions, apart from the package's readers. `OLDER` has a payload for each of the
formats that Valkey 9.1 reads and no longer writes.
"""

from __future__ import annotations

import struct

from emuredis.keyspace.rdb.crc64 import crc64

__all__ = ["OLDER", "payload", "ziplist", "zipmap"]

Item = bytes | int


def payload(kind: int, body: bytes, version: int = 9) -> bytes:
    """What DUMP of that version would have answered."""
    data = bytes([kind]) + body + version.to_bytes(2, "little")
    return data + crc64(data).to_bytes(8, "little")


def string(data: bytes) -> bytes:
    """A length and the bytes."""
    if len(data) < 64:
        return bytes([len(data)]) + data
    return b"\x80" + len(data).to_bytes(4, "big") + data


def _ziplist_item(item: Item) -> bytes:
    if isinstance(item, bytes):
        size = len(item)
        if size < 64:
            return bytes([size]) + item
        if size < 1 << 14:
            return bytes([0x40 | size >> 8, size & 255]) + item
        return b"\x80" + size.to_bytes(4, "big") + item
    if 0 <= item <= 12:
        return bytes([0xF1 + item])
    for first, size in ((0xFE, 1), (0xC0, 2), (0xF0, 3), (0xD0, 4), (0xE0, 8)):
        if -1 << 8 * size - 1 <= item < 1 << 8 * size - 1:
            return bytes([first]) + item.to_bytes(size, "little", signed=True)
    raise ValueError(item)


def ziplist(*items: Item) -> bytes:
    body, before, tail = b"", 0, 10
    for item in items:
        tail = 10 + len(body)
        head = bytes([before]) if before < 254 else b"\xfe" + before.to_bytes(4, "little")
        one = head + _ziplist_item(item)
        before = len(one)
        body += one
    return struct.pack("<IIH", 11 + len(body), tail, len(items)) + body + b"\xff"


def zipmap(*items: bytes, spare: int = 0) -> bytes:
    """Field, value, field, value ... ``spare``: unused bytes after each value."""
    out = bytes([len(items) // 2])
    for place, item in enumerate(items):
        out += bytes([len(item)]) if len(item) < 254 else b"\xfe" + len(item).to_bytes(4, "little")
        if place % 2:
            out += bytes([spare])
        out += item + b"\0" * (spare if place % 2 else 0)
    return out + b"\xff"


_ITEMS: list[Item] = [
    b"", b"text", 0, 12, 13, -1, 127, -128, 128, 32767, -32768, 40000, -8388608, 1 << 30, -(1 << 40), b"x" * 63,
    b"y" * 64, b"z" * 300, b"w" * 20000, b"12", 5,
]  # fmt: skip
_LONG = [b"f%d" % number for number in range(600)]


def _flat(names: list[bytes], what: Item) -> list[Item]:
    return [item for name in names for item in (name, what)]


def _listpack(*items: Item) -> bytes:
    """One of small integers and short texts."""
    body = b""
    for item in items:
        one = bytes([item]) if isinstance(item, int) else bytes([0x80 | len(item)]) + item
        body += one + bytes([len(one)])
    return struct.pack("<IH", 7 + len(body), len(items)) + body + b"\xff"


_NODE = _listpack(2, 1, 1, b"f", 0, 2, 0, 0, b"v", 4, 3, 1, 0, b"v", 4, 2, 2, 0, b"w", 4)
_ID = struct.Struct(">QQ").pack
_NODES = b"\x01" + string(_ID(1000, 5)) + string(_NODE) + b"\x02" + b"\x43\xea\x05"  # the last id: 1002-5
_STAMP = struct.pack("<q", 1_600_000_000_000)
_PEL = b"\x01" + _ID(1000, 5) + _STAMP + b"\x03"
_CONSUMERS = b"\x01" + string(b"c") + _STAMP + b"\x01" + _ID(1000, 5)

OLDER: dict[str, bytes] = {
    "list of strings": payload(1, b"\x03" + string(b"a") + b"\xc0\x05" + string(b"c" * 100), 1),
    "long list of strings": payload(1, b"\x42\x58" + b"".join(map(string, _LONG)) + b"", 6),
    "list as ziplist": payload(10, string(ziplist(*_ITEMS)), 6),
    "short list as ziplist": payload(10, string(ziplist(b"a", 1, b"b")), 6),
    "list of ziplists": payload(14, b"\x02" + string(ziplist(*_ITEMS)) + string(ziplist(b"a", 1)), 7),
    "list of one ziplist": payload(14, b"\x01" + string(ziplist(b"a", 1)), 7),
    "list with an empty ziplist": payload(14, b"\x02" + string(ziplist()) + string(ziplist(b"a", 1)), 7),
    "set of strings": payload(2, b"\x03" + string(b"a") + b"\xc0\x05" + string(b"c" * 100), 1),
    "set of numbers": payload(2, b"\x03\xc0\x01\xc0\x05\xc1\x00\x20", 1),
    "sorted set with texts": payload(3, b"\x04\x01a\x011\x01b\x043.25\x01c\xfe\x01d\xff", 1),
    "sorted set as ziplist": payload(12, string(ziplist(b"a", 1, b"b", b"2.5", b"c", b"inf")), 6),
    "long sorted set as ziplist": payload(12, string(ziplist(*_flat(_LONG, 7))), 6),
    "hash of strings": payload(4, b"\x02\x01a\x011\x01b\xc0\x07", 1),
    "hash as zipmap": payload(9, string(zipmap(b"f", b"v", b"g", b"w" * 260, b"h", b"")), 2),
    "hash as zipmap with room": payload(9, string(zipmap(b"f", b"v", b"g", b"w", spare=3)), 2),
    "hash as ziplist": payload(13, string(ziplist(b"f", 1, b"g", b"w" * 80)), 6),
    "long hash as ziplist": payload(13, string(ziplist(*_flat(_LONG, b"v"))), 6),
    "stream 1": payload(15, _NODES + b"\x01" + string(b"g") + b"\x43\xe8\x05" + _PEL + _CONSUMERS, 9),
    "stream 1 without groups": payload(15, _NODES + b"\x00", 9),
    "stream 2": payload(
        19, _NODES + b"\x43\xe8\x05\x43\xe9\x05\x07\x01" + string(b"g") + b"\x43\xe8\x05\x02" + _PEL + _CONSUMERS, 10
    ),
    "empty list": payload(1, b"\x00", 1),
    "empty set": payload(2, b"\x00", 1),
    "empty sorted set": payload(3, b"\x00", 1),
    "empty hash": payload(4, b"\x00", 1),
    "empty ziplist": payload(10, string(ziplist()), 6),
    "empty zipmap": payload(9, string(zipmap()), 2),
    "empty hash as ziplist": payload(13, string(ziplist()), 6),
    "ziplist of a field without a value": payload(13, string(ziplist(b"f")), 6),
    "a field twice": payload(13, string(ziplist(b"f", 1, b"f", 2)), 6),
    "a zipmap with a field twice": payload(9, string(zipmap(b"f", b"1", b"f", b"2")), 2),
    "a member twice": payload(3, b"\x02\x01a\x011\x01a\x012", 1),
    "a score that is none": payload(3, b"\x01\x01a\x01x", 1),
    "a score that is not a number": payload(3, b"\x01\x01a\xfd", 1),
    "version 12": payload(0, b"\x01v", 12),
    "version 79": payload(0, b"\x01v", 79),
    "version 80": payload(0, b"\x01v", 80),
    "version 81": payload(0, b"\x01v", 81),
    "version 11": payload(0, b"\x01v", 11),
    "version 0": payload(0, b"\x01v", 0),
    "a module's value": payload(7, b"\x81" + b"\0" * 20, 9),
    "an old module's value": payload(6, b"\x81" + b"\0" * 20, 9),
    "no kind": payload(30, b"\x01v", 80),
    "nothing": payload(0, b"", 80)[1:],
    "too short": b"\0" * 9,
}  # fmt: skip
