"""CLUSTERSCAN: a walk over the keys of a whole cluster, node by node.

A cursor is ``<node>-{<tag>}-<place>``: the tag lies in the slot to go on with, so clients find the node as for a key;
the place is a cursor of SCAN within the slot. Cursor ``0`` begins, and ends, a walk. The server's place is
good on one node only, which the first part names; ours does not depend on the node, so a walk does not begin a slot
again when it has moved.
"""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.cluster import node_of, slot_number
from emuredis.commands.scanning import ScanOptions, parse_scan_options, type_name
from emuredis.engine.cluster import Node
from emuredis.keyspace.slot_index import keys_in_slot
from emuredis.replies import Reply
from emuredis.scalars import parse_unsigned
from emuredis.slots import SLOTS, key_slot, pattern_slot
from emuredis.spec import command
from emuredis.values.scan import ScanIndex

if TYPE_CHECKING:
    from emuredis.engine.session import Session

_CURSOR = re.compile(rb"([^-]*)-\{([^}]*)\}-(\d+)", re.S)
_LETTERS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_tags: list[bytes] = []


def tag_of(slot: int) -> bytes:
    """The first text in the slot, by length and then ASCII: what the server has in a table."""
    if not _tags:
        found: dict[int, bytes] = {}
        for length in (1, 2, 3):  # with three letters every slot is met
            for letters in product(_LETTERS, repeat=length):
                found.setdefault(key_slot(bytes(letters)), bytes(letters))
        _tags.extend(found[number] for number in range(SLOTS))
    return _tags[slot]


def _cursor(slot: int, place: int, node: Node) -> bytes:
    """Where to go on: a place in a slot, the slot's begin, or (after the last slot) nowhere."""
    if slot >= SLOTS:
        return b"0"
    return b"%s-{%s}-%d" % (node.id[:6].encode() if place else b"0", tag_of(slot), place)


@command("CLUSTERSCAN cursor [MATCH match-pattern:pattern] [COUNT count:integer] [TYPE type] [SLOT slot:integer]",
         "readonly", keys="not_key @1", group="cluster", since="9.1.0", acl="keyspace",
         complexity="O(1) a call, O(N) a whole walk, N being the number of keys",
         tips="nondeterministic_output request_policy:special response_policy:special")  # fmt: skip
def clusterscan(ctx: Session, argv: list[bytes]) -> Reply:
    """Walks over the names of the keys of all nodes, a page at a time."""
    node = node_of(ctx)
    options, only, matched = _options(argv)
    if argv[1] == b"0":
        wanted = only if only is not None else max(matched, 0)
        return [_cursor(wanted, 0, node), []]
    parts = _CURSOR.fullmatch(argv[1])
    place = None if parts is None else parse_unsigned(parts[3])
    if parts is None or place is None:
        raise errors.err("Invalid cursor")
    slot = key_slot(argv[1])
    if only is not None and only != slot:
        raise errors.err("Cursor slot mismatch with SLOT argument")
    if matched >= 0:
        if slot != matched:
            return [_cursor(matched, 0, node) if slot < matched and only is None else b"0", []]
        only = slot
    if place >= 1 << 32 or parts[1] != node.id[:6].encode():
        place = 0
    following, page = _page(ctx, node, slot, place, options.count, only)
    if options.match is not None:
        page = list(filter(options.match, page))
    if options.type is not None:
        page = [key for key in page if type_name(ctx.db.data[key]) == options.type]
    return [following, page]


def _options(argv: list[bytes]) -> tuple[ScanOptions, int | None, int]:
    """The options of SCAN, the slot asked for, the slot of all that matches (-1: any). Raises ReplyError."""
    only, rest, at = None, argv[:2], 2
    while at < len(argv):
        if argv[at].lower() == b"slot":
            if at + 1 >= len(argv):
                raise errors.syntax()
            if only is not None:
                raise errors.err("SLOT option can only be specified once")
            only = slot_number(argv[at + 1])
        else:
            rest += argv[at : at + 2]
        at += 2
    options = parse_scan_options(rest, 2, b"scan")
    patterns = [rest[at + 1] for at in range(2, len(rest) - 1, 2) if rest[at].lower() == b"match"]
    return options, only, pattern_slot(patterns[-1]) if patterns else -1


def _page(
    ctx: Session, node: Node, slot: int, place: int, count: int, only: int | None
) -> tuple[bytes, list[bytes]]:
    """From ``place`` in ``slot`` on at least ``count`` keys, if the slots up to the next of another node have them."""
    page: list[bytes] = []
    while True:
        keys = keys_in_slot(ctx.db, slot)
        if keys and len(page) >= count:
            return _cursor(slot, 0, node), page
        if place or len(keys) > count - len(page):
            place, found = ScanIndex(keys, len(keys)).page(place, count - len(page))
            page += found
            if place:
                return _cursor(slot, place, node), page
        else:
            page += keys
        if only is not None:
            return b"0", page
        slot += 1
        if slot >= SLOTS or node.cluster.owners[slot] is not node:
            return _cursor(slot, 0, node), page
