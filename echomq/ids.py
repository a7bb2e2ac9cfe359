"""Branded ids: 14 bytes that name an entity, its kind, and when it was minted.

An id is three upper-case letters (the namespace, `JOB` for jobs) and eleven base-62 digits, most
significant first. The alphabet is in ASCII order, so ids of one namespace sort by bytes exactly as
their numbers do, and a sorted set with equal scores keeps them in mint order.

The number is a snowflake below 2**63: milliseconds since 2024 (41 bits), node (10), sequence (12).
`Minter` gives strictly increasing numbers inside one process: a new millisecond restarts the sequence,
a full one carries into the next millisecond, and a clock that steps back is ignored. It never blocks.
Give every process that mints its own node id: nodes are what keeps two processes apart.
"""

from __future__ import annotations

import os
import socket
import threading
import zlib
from typing import NamedTuple

from .clock import NS_PER_MS, Clock, SystemClock
from .errors import ArgumentError

__all__ = [
    "EPOCH_MS",
    "Minter",
    "Snowflake",
    "check_id",
    "decode",
    "decode_payload",
    "default_minter",
    "default_node",
    "encode",
    "encode_payload",
    "hash32",
    "is_valid",
    "min_for",
    "namespace",
    "pack",
    "stream_id",
    "unix_ms",
    "unpack",
]

EPOCH_MS = 1_704_067_200_000
MAX_NUMBER = 2**63 - 1
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGITS = {char: value for value, char in enumerate(ALPHABET)}
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_PAYLOAD_LENGTH = 11
_ID_LENGTH = 14


class Snowflake(NamedTuple):
    """The parts of an id's number."""

    unix_ms: int
    node: int
    sequence: int


def encode_payload(number: int) -> str:
    """Eleven base-62 digits of ``number`` (0 … 2**63 - 1)."""
    if not 0 <= number <= MAX_NUMBER:
        raise ArgumentError(f"a branded id holds 0 … 2**63-1, not {number}")
    digits = []
    for _ in range(_PAYLOAD_LENGTH):
        number, digit = divmod(number, 62)
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))


def decode_payload(payload: str) -> int:
    """The number behind eleven base-62 digits; checks length, then alphabet, then range."""
    if len(payload) != _PAYLOAD_LENGTH:
        raise ArgumentError(f"length: a payload has {_PAYLOAD_LENGTH} characters, not {len(payload)}")
    number = 0
    for char in payload:
        digit = _DIGITS.get(char)
        if digit is None:
            raise ArgumentError(f"charset: {char!r} is not a base-62 digit")
        number = number * 62 + digit
    if number > MAX_NUMBER:
        raise ArgumentError(f"range: {payload} is above {encode_payload(MAX_NUMBER)}")
    return number


def encode(space: str, number: int) -> str:
    """The branded id of ``number`` in namespace ``space``."""
    if len(space) != 3 or not _LETTERS.issuperset(space):
        raise ArgumentError(f"namespace: three letters A-Z, not {space!r}")
    return space + encode_payload(number)


def decode(branded: str) -> tuple[str, int]:
    """(namespace, number); ArgumentError names what is wrong: length, namespace, charset or range."""
    if len(branded) != _ID_LENGTH:
        raise ArgumentError(
            f"length: a branded id has {_ID_LENGTH} characters, not {len(branded)}: {branded!r}"
        )
    space = branded[:3]
    if not _LETTERS.issuperset(space):
        raise ArgumentError(f"namespace: three letters A-Z, not {space!r}")
    return space, decode_payload(branded[3:])


def is_valid(branded: object) -> bool:
    """Whether ``branded`` is a well-formed id of any namespace."""
    if not isinstance(branded, str):
        return False
    try:
        decode(branded)
    except ArgumentError:
        return False
    return True


def check_id(branded: object, what: str = "id") -> str:
    """``branded`` itself when valid, else ArgumentError: what every key builder calls first."""
    if not isinstance(branded, str):
        raise ArgumentError(f"{what} must be a branded id (str), not {branded!r}")
    try:
        decode(branded)
    except ArgumentError as error:
        raise ArgumentError(f"{what} {branded!r} is not a branded id: {error}") from None
    return branded


def namespace(branded: str) -> str:
    """The three letters of a valid id."""
    return decode(branded)[0]


def pack(unix_ms: int, node: int, sequence: int) -> int:
    """The number minted at an instant by a node."""
    return (unix_ms - EPOCH_MS) << 22 | node << 12 | sequence


def unpack(number: int) -> Snowflake:
    """The parts of a number."""
    return Snowflake((number >> 22) + EPOCH_MS, number >> 12 & 1023, number & 4095)


def unix_ms(branded: str) -> int:
    """When the id was minted, in Unix milliseconds."""
    return unpack(decode(branded)[1]).unix_ms


def min_for(unix_ms: int) -> int:
    """The smallest number at or after an instant."""
    return (unix_ms - EPOCH_MS) << 22


def stream_id(branded: str) -> str:
    """The stream entry id of a record: its instant, then node and sequence."""
    number = decode(branded)[1]
    return f"{(number >> 22) + EPOCH_MS}-{number & 0x3FFFFF}"


def hash32(number: int) -> int:
    """A 32-bit mix of the number; local use only, never on the wire."""
    number ^= number >> 33
    number = number * 0xFF51AFD7ED558CCD & 0xFFFFFFFFFFFFFFFF
    return (number ^ number >> 33) & 0xFFFFFFFF


def default_node() -> int:
    """A node id 0 … 1023 from host name and process id; two processes may share one by bad luck."""
    return zlib.crc32(f"{socket.gethostname()}:{os.getpid()}".encode()) % 1024


class Minter:
    """Mints strictly increasing ids; safe to share between threads.

    Invariant: `_last`, (milliseconds since the epoch << 12 | sequence), only grows.
    """

    __slots__ = ("_clock", "_last", "_lock", "node")

    def __init__(self, node: int | None = None, clock: Clock | None = None) -> None:
        node = default_node() if node is None else node
        if not 0 <= node <= 1023:
            raise ArgumentError(f"a node id is 0 … 1023, not {node}")
        self.node = node
        self._clock = clock if clock is not None else SystemClock()
        self._lock = threading.Lock()
        self._last = -1

    def number(self) -> int:
        """The next number."""
        candidate = (self._clock.now_ns() // NS_PER_MS - EPOCH_MS) << 12
        with self._lock:
            last = self._last = max(candidate, self._last + 1, 0)
        return last >> 12 << 22 | self.node << 12 | last & 4095

    def mint(self, space: str = "JOB") -> str:
        """The next id in a namespace."""
        return encode(space, self.number())


_shared: Minter | None = None
_shared_lock = threading.Lock()


def default_minter() -> Minter:
    """The minter of this process, shared by everything that was given none, so that no two mint the same id."""
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = Minter()
        return _shared


def _forget() -> None:
    """A forked child is another process: it takes a node id of its own."""
    global _shared, _shared_lock
    _shared = None
    _shared_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
