"""SCAN, and what HSCAN, SSCAN and ZSCAN share with it: cursors and options.

The order of a scan is that of `emuredis.values.scan`: an
element present during a whole scan is returned exactly once.

A collection's command reads the cursor first, then looks its key up, and only then reads the options: a missing
key hides every error of the options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.errors import ReplyError
from emuredis.patterns import Matcher, compile
from emuredis.replies import Reply
from emuredis.scalars import parse_unsigned
from emuredis.spec import command
from emuredis.values.hash import Hash
from emuredis.values.list import List
from emuredis.values.scan import scan
from emuredis.values.set import Set
from emuredis.values.zset import ZSet

if TYPE_CHECKING:
    from emuredis.engine.session import Session

__all__ = ["TYPE_NAMES", "ScanOptions", "parse_cursor", "parse_scan_options"]

#: What TYPE answers for each class of value. A module that brings a new class adds it here.
TYPE_NAMES: dict[type, bytes] = {bytes: b"string", List: b"list", Set: b"set", ZSet: b"zset", Hash: b"hash"}

#: Every type of the server, whether or not a value of it can exist here.
_KNOWN_TYPES = frozenset((b"string", b"list", b"set", b"zset", b"hash", b"stream"))

#: The options that leave companions out, and the one command that takes each.
_NAMES_ONLY = {b"novalues": b"hscan", b"noscores": b"zscan"}


class ScanOptions:
    """MATCH, COUNT, TYPE and NOVALUES or NOSCORES; ``match`` is None when every element matches."""

    __slots__ = ("count", "match", "novalues", "type")

    def __init__(self) -> None:
        self.count = 10
        self.match: Matcher | None = None
        self.novalues = False
        self.type: bytes | None = None


def parse_cursor(text: bytes) -> int:
    """The cursor written by ``text``, or ``ERR invalid cursor``."""
    number = parse_unsigned(text)
    if number is None:
        raise ReplyError("ERR invalid cursor")
    return number


def parse_scan_options(argv: list[bytes], start: int, name: bytes) -> ScanOptions:
    """The options from ``start`` on of the command ``name``: scan, hscan, sscan or zscan."""
    options = ScanOptions()
    at, size = start, len(argv)
    while at < size:
        word, last = argv[at].lower(), at + 1 == size
        if word == b"count" and not last:
            options.count = integer(argv[at + 1])
            if options.count < 1:
                raise errors.syntax()
        elif word == b"match" and not last:
            pattern = argv[at + 1]
            options.match = None if pattern == b"*" else compile(pattern)
        elif word == b"type" and name == b"scan" and not last:
            options.type = argv[at + 1].lower()
            if options.type not in _KNOWN_TYPES:
                raise ReplyError(f"ERR unknown type name '{errors.shown(argv[at + 1])}'")
        elif word in _NAMES_ONLY:
            if name != _NAMES_ONLY[word]:
                only = (
                    f"{word.upper().decode()} option can only be used in {_NAMES_ONLY[word].upper().decode()}"
                )
                raise ReplyError("ERR " + only)
            options.novalues = True
            at -= 1
        else:
            raise errors.syntax()
        at += 2
    return options


@command("SCAN cursor:integer [MATCH pattern:pattern] [COUNT count:integer] [TYPE type]", "readonly",
         group="generic", since="2.8.0",
         complexity="O(1) a call, O(N) a whole scan, N being the number of keys",
         tips="nondeterministic_output request_policy:special response_policy:special")  # fmt: skip
def scan_(ctx: Session, argv: list[bytes]) -> Reply:
    """Walks over the names of the keys, a page at a time."""
    cursor = parse_cursor(argv[1])
    options = parse_scan_options(argv, 2, b"scan")
    db = ctx.db
    if db.keyspace.overdue:
        db.keyspace.expire_all()
    following, page, db.scan_index = scan(db.scan_index, db.data, cursor, options.count)
    if options.match is not None:
        page = list(filter(options.match, page))
    if options.type is not None:
        page = [key for key in page if type_name(db.data[key]) == options.type]
    return [b"%d" % following, page]


def type_name(value: Any) -> bytes:
    """The server's word for the type of a value; ``none`` for None."""
    return b"none" if value is None else TYPE_NAMES[value.__class__]
