"""Bitmaps: the bits of a string, numbered from the highest bit of its first byte.

A string is plain ``bytes``, so a command that sets bits stores a new one (keeping its time to live), in the general
encoding. Whole strings are handled as big integers: counting, searching and combining bits never looks at one bit at
a time. To the right of its end a string is all zeros, as far as these commands can see.

BITFIELD parses all its operations first, makes room for the farthest one that writes, then runs them in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import and_, or_, xor
from typing import TYPE_CHECKING, NamedTuple

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.errors import err
from emuredis.keyspace.notify import GENERIC, STRING
from emuredis.replies import Reply
from emuredis.scalars import LLONG_MAX, parse_int
from emuredis.spec import command

if TYPE_CHECKING:
    from emuredis.engine.session import Session

_COMPLEMENT = bytes(255 - byte for byte in range(256))


def _offset(ctx: Session, text: bytes, bits: int = 0) -> int:
    """The place of a bit; with ``bits`` also ``#n``, the n-th field of so many bits."""
    fields = bits and text[:1] == b"#"
    offset = parse_int(text[1:] if fields else text)
    if offset is not None and fields:
        offset = _wrapped(offset * bits, 64, True)
    if offset is None or not 0 <= offset >> 3 < ctx.engine.config.proto_max_bulk_len:
        raise err("bit offset is not an integer or out of range")
    return offset


def _room(ctx: Session, key: bytes, last: int) -> tuple[bytearray, bytes | None]:
    """A copy of the string under ``key`` that reaches to the bit ``last``, and the string itself."""
    old = ctx.db.write(key, bytes)
    data = bytearray(old or b"")
    missing = (last >> 3) + 1 - len(data)
    if missing > 0:
        data += bytes(missing)
    return data, old


def _store(ctx: Session, key: bytes, value: bytes) -> None:
    """Also when nothing changed, as the server then changes the encoding."""
    ctx.db.update(key, ctx.db.note_encoding(key, value, b"raw"))


# -- single bits -------------------------------------------------------------------------------


@command("SETBIT key offset:integer value:integer", "write denyoom", keys="RW access update @1", group="bitmap",
         since="2.2.0", complexity="O(N), N being the length of the string")  # fmt: skip
def setbit(ctx: Session, argv: list[bytes]) -> Reply:
    """Sets or clears a bit; what it was."""
    offset = _offset(ctx, argv[2])
    on = parse_int(argv[3])
    if on not in (0, 1):
        raise err("bit is not an integer or out of range")
    key = argv[1]
    data, old = _room(ctx, key, offset)
    at, mask = offset >> 3, 128 >> (offset & 7)
    was = data[at] & mask != 0
    if was != on:
        data[at] ^= mask
    _store(ctx, key, bytes(data))
    if was != on or old is None or len(old) != len(data):
        ctx.db.touch(key, STRING, b"setbit")
    return int(was)


@command("GETBIT key offset:integer", "readonly fast", keys="RO access @1", group="bitmap", since="2.2.0",
         complexity="O(1)")  # fmt: skip
def getbit(ctx: Session, argv: list[bytes]) -> Reply:
    """Reads a bit."""
    offset = _offset(ctx, argv[2])
    value = ctx.db.read(argv[1], bytes)
    at = offset >> 3
    return value[at] >> (~offset & 7) & 1 if value is not None and at < len(value) else 0


# -- counting and searching --------------------------------------------------------------------


def _ends(argv: list[bytes], at: int) -> tuple[int, int | None, bool]:
    """``start [end [BYTE|BIT]]`` from ``at`` on: start, end, whether they count bits."""
    if len(argv) > at + 3:
        raise errors.syntax()
    start = integer(argv[at])
    unit = argv[at + 2].upper() if len(argv) > at + 2 else b"BYTE"
    if unit not in (b"BYTE", b"BIT"):
        raise errors.syntax()
    return start, integer(argv[at + 1]) if len(argv) > at + 1 else None, unit == b"BIT"


def _within(start: int, end: int, size: int) -> tuple[int, int]:
    """Places counted from the end made places in 0 .. size, the second one exclusive."""
    start = max(start + size, 0) if start < 0 else start
    end = max(end + size, 0) if end < 0 else end
    return start, min(end, size - 1) + 1


def _part(value: bytes, start: int, stop: int, in_bits: bool) -> tuple[int, int]:
    """The bits of a part that is not empty as an integer, and how many they are."""
    if not in_bits:
        part = value[start:stop]
        return int.from_bytes(part, "big"), 8 * len(part)
    part = value[start >> 3 : stop + 7 >> 3]
    number = int.from_bytes(part, "big") >> (-stop & 7)
    return number & (1 << stop - start) - 1, stop - start


@command("BITCOUNT key range=[start:integer end-unit-block=[end:integer unit=[BYTE|BIT]]]", "readonly",
         keys="RO access @1", group="bitmap", since="2.6.0",
         complexity="O(N), N being the length of the part")  # fmt: skip
def bitcount(ctx: Session, argv: list[bytes]) -> Reply:
    """Counts the bits that are set in a string or a part of it."""
    if len(argv) == 2:
        return int.from_bytes(ctx.db.read(argv[1], bytes) or b"", "big").bit_count()
    start, end, in_bits = _ends(argv, 2)
    value = ctx.db.read(argv[1], bytes)
    if not value or (end is not None and end < start < 0):
        return 0
    size = 8 * len(value) if in_bits else len(value)
    start, stop = _within(start, size - 1 if end is None else end, size)
    return _part(value, start, stop, in_bits)[0].bit_count() if start < stop else 0


@command("BITPOS key bit:integer range=[start:integer end-unit-block=[end:integer unit=[BYTE|BIT]]]", "readonly",
         keys="RO access @1", group="bitmap", since="2.8.7",
         complexity="O(N), N being the length of the part")  # fmt: skip
def bitpos(ctx: Session, argv: list[bytes]) -> Reply:
    """Finds the first bit that is set, or clear, in a string or a part of it."""
    bit = integer(argv[2])
    if bit not in (0, 1):
        raise err("The bit argument must be 1 or 0.")
    start, end, in_bits = _ends(argv, 3) if len(argv) > 3 else (0, None, False)
    value = ctx.db.read(argv[1], bytes)
    if value is None:
        return -bit
    size = 8 * len(value) if in_bits else len(value)
    start, stop = _within(start, size - 1 if end is None else end, size)
    if start >= stop:
        return -1
    if not in_bits:
        # What surely does not matter is passed over before anything becomes an integer.
        part = value[start:stop]
        stop = min(start + len(part) - len(part.lstrip(b"\xff\0"[bit : bit + 1])) + 1, stop)
        start, stop = 8 * start, 8 * stop
    number, width = _part(value, start, stop, True)
    if not bit:
        number ^= (1 << width) - 1
    if number:
        return start + width - number.bit_length()
    # The zeros to the right of the string count only where no end was given.
    return -1 if bit or end is not None else stop


# -- combining ---------------------------------------------------------------------------------

_OPERATIONS: dict[bytes, Callable[[int, int], int]] = {b"AND": and_, b"OR": or_, b"XOR": xor}


@command("BITOP operation=(AND|OR|XOR|NOT) destkey:key key...", "write denyoom",
         keys="OW update @2, RO access @3..-1",
         group="bitmap", since="2.6.0", complexity="O(N), N being the length of the longest string")  # fmt: skip
def bitop(ctx: Session, argv: list[bytes]) -> Reply:
    """Combines strings bit by bit and stores the result; its length."""
    word = argv[1].upper()
    if word == b"NOT":
        if len(argv) != 4:
            raise err("BITOP NOT must be called with a single source key.")
    elif word not in _OPERATIONS:
        raise errors.syntax()
    db, key = ctx.db, argv[2]
    values = [db.read(source, bytes) or b"" for source in argv[3:]]
    size = max(map(len, values))
    if not size:
        if db.remove(key):
            db.touch(key, GENERIC, b"del")
        return 0
    if word == b"NOT":
        result = values[0].translate(_COMPLEMENT)
    else:
        # With the first byte as the lowest one, what is missing at the end is zero by itself.
        combine = _OPERATIONS[word]
        number = int.from_bytes(values[0], "little")
        for value in values[1:]:
            number = combine(number, int.from_bytes(value, "little"))
        result = number.to_bytes(size, "little")
    db.put(key, db.note_encoding(key, result, b"raw"))
    db.touch(key, STRING, b"set")
    return size


# -- fields ------------------------------------------------------------------------------------


class _Field(NamedTuple):
    """One operation of BITFIELD."""

    word: bytes  # GET SET INCRBY
    signed: bool
    bits: int
    offset: int
    operand: int
    overflow: bytes  # WRAP SAT FAIL


def _parse_type(text: bytes) -> tuple[bool, int]:
    signed = text[:1] == b"i"
    bits = parse_int(text[1:]) if signed or text[:1] == b"u" else None
    if bits is None or not 1 <= bits <= (64 if signed else 63):
        raise err(
            "Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."
        )
    return signed, bits


def _parse_fields(ctx: Session, argv: list[bytes]) -> list[_Field]:
    fields = []
    overflow = b"WRAP"
    at, size = 2, len(argv)
    while at < size:
        word, left = argv[at].upper(), size - at - 1
        if word == b"OVERFLOW" and left >= 1:
            overflow = argv[at + 1].upper()
            if overflow not in (b"WRAP", b"SAT", b"FAIL"):
                raise err("Invalid OVERFLOW type specified")
            at += 2
        elif (word == b"GET" and left >= 2) or (word in (b"SET", b"INCRBY") and left >= 3):
            signed, bits = _parse_type(argv[at + 1])
            offset = _offset(ctx, argv[at + 2], bits)
            operand = 0 if word == b"GET" else integer(argv[at + 3])
            fields.append(_Field(word, signed, bits, offset, operand, overflow))
            at += 3 if word == b"GET" else 4
        else:
            raise errors.syntax()
    return fields


def _wrapped(number: int, bits: int, signed: bool) -> int:
    """What ``number`` is in so many bits."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if signed and number >> bits - 1 else number


def _get(data: bytes | bytearray, field: _Field) -> int:
    at = field.offset >> 3
    window = int.from_bytes(data[at : at + 9].ljust(9, b"\0"), "big")
    return _wrapped(window >> 72 - (field.offset & 7) - field.bits, field.bits, field.signed)


def _set(data: bytearray, field: _Field, number: int) -> None:
    at = field.offset >> 3
    part = data[at : at + 9]
    shift = 8 * len(part) - (field.offset & 7) - field.bits
    mask = (1 << field.bits) - 1
    window = int.from_bytes(part, "big") & ~(mask << shift) | (number & mask) << shift
    data[at : at + 9] = window.to_bytes(len(part), "big")


def _fitted(field: _Field, number: int) -> int | None:
    """``number`` as it can be stored in the field, None if it may not."""
    low, high = (
        (-1 << field.bits - 1, (1 << field.bits - 1) - 1) if field.signed else (0, (1 << field.bits) - 1)
    )
    if low <= number <= high:
        return number
    if field.overflow == b"WRAP":
        return _wrapped(number, field.bits, field.signed)
    if field.overflow == b"FAIL":
        return None
    if field.word == b"SET" and high - number > (LLONG_MAX if field.signed else 0):
        return high  # to the server a negative number is a great one here: it computes with 64 bits
    return high if number > high else low


def _run(data: bytearray, field: _Field) -> tuple[int | None, bool]:
    """The reply to one operation, and whether it changed the field; None where nothing may be stored."""
    old = _get(data, field)
    if field.word == b"GET":
        return old, False
    new = _fitted(field, old + field.operand if field.word == b"INCRBY" else field.operand)
    if new is None:
        return None, False
    if new != old:
        _set(data, field, new)
    return old if field.word == b"SET" else new, new != old


@command("BITFIELD key operation=[(GET get-block=(encoding offset:integer)|"
         "write=([OVERFLOW overflow-block=(WRAP|SAT|FAIL)] write-operation=("
         "SET set-block=(encoding offset:integer value:integer)|"
         "INCRBY incrby-block=(encoding offset:integer increment:integer))))...]", "write denyoom",
         keys="RW access update variable_flags @1", group="bitmap", since="3.2.0",
         complexity="O(1) for each operation, and O(N) to store a string of length N")  # fmt: skip
def bitfield(ctx: Session, argv: list[bytes]) -> Reply:
    """Reads, sets and increases integers of any width within a string."""
    fields = _parse_fields(ctx, argv)
    last = max([field.offset + field.bits - 1 for field in fields if field.word != b"GET"], default=None)
    if last is None:
        return _read_fields(ctx, argv[1], fields)
    key = argv[1]
    data, old = _room(ctx, key, last)
    grown = old is None or len(old) != len(data)
    replies, changed = [], False
    for field in fields:
        reply, changes = _run(data, field)
        replies.append(reply)
        changed |= changes or (grown and field.word != b"GET" and reply is not None)
    _store(ctx, key, bytes(data))
    if changed:
        ctx.db.touch(key, STRING, b"setbit")
    return replies


def _read_fields(ctx: Session, key: bytes, fields: list[_Field]) -> Reply:
    value = ctx.db.read(key, bytes) or b""
    return [_get(value, field) for field in fields]


@command("BITFIELD_RO key get-block=[GET get-block=(encoding offset:integer)...]", "readonly fast",
         keys="RO access @1", group="bitmap", since="6.0.0", complexity="O(1) for each operation")  # fmt: skip
def bitfield_ro(ctx: Session, argv: list[bytes]) -> Reply:
    """Reads integers of any width within a string."""
    fields = _parse_fields(ctx, argv)
    if any(field.word != b"GET" for field in fields):
        raise err("BITFIELD_RO only supports the GET subcommand")
    return _read_fields(ctx, argv[1], fields)
