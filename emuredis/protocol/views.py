"""Neutral replies as the Python objects that a client library would have parsed from the wire.

`view2` gives what a RESP2 reply parses to, `view3` what a RESP3 reply parses to, both as redis-py's parsers do with
decoding off: a status is bytes, a RESP3 set is a list (a set may hold values that Python cannot hash),
verbatim text loses its ``txt:``. Errors stay `ReplyError` objects, at any depth. `make_view` makes a view that also
decodes texts and turns errors into a client library's exceptions, in the same pass.

Invariant: for every reply, ``viewN(reply)`` equals the parse of ``encode(reply, N)``. What is already plain (bytes,
int, None, a list of nothing else) is returned as it is, not copied: a reply is made for one receiver.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emuredis.errors import ReplyError
from emuredis.replies import (
    BigNumber,
    Frames,
    LongFloat,
    Map,
    NullArray,
    PairMap,
    Pairs,
    Push,
    Reply,
    Set,
    Spoken,
    Status,
    Verbatim,
)
from emuredis.scalars import format_decimals, format_double

__all__ = ["View", "make_view", "view2", "view3"]

View = Callable[[Reply], Any]


class _Table(dict[type, View]):
    """Dispatch on the exact class; a subclass (of ReplyError, say) is found once and remembered."""

    def __missing__(self, kind: type) -> View:
        for base in kind.__mro__[1:]:
            if base in self and base is not object:
                self[kind] = self[base]
                return self[base]
        raise TypeError(f"no reply is a {kind.__name__}")


def make_view(protocol: int, text: Callable[[bytes], Any] | None = None,
              error: Callable[[ReplyError], Any] | None = None) -> View:  # fmt: skip
    """A view for protocol 2 or 3. ``text``: applied to every string; ``error``: to every error, at any depth."""
    table = _Table()
    table.update(_scalars(protocol, text, error))
    # Classes whose values are their own view.
    plain = frozenset([int, type(None)] if text is not None else [bytes, int, type(None)])

    def view(reply: Reply) -> Any:
        kind = reply.__class__
        return reply if kind in plain else table[kind](reply)

    def items(reply: list[Any]) -> list[Any]:
        for item in reply:
            if item.__class__ not in plain:
                break
        else:
            return reply if reply.__class__ is list else list(reply)
        return [item if item.__class__ in plain else table[item.__class__](item) for item in reply]

    def mapping(reply: Map | PairMap) -> Any:
        turn = iter(items(reply))
        pairs = list(zip(turn, turn, strict=True))
        try:
            return dict(pairs)
        except TypeError:  # a script may answer a map with a list for a key; no dict can hold it
            return [list(pair) for pair in pairs]

    def pairs(reply: Pairs | PairMap) -> list[Any]:
        turn = iter(items(reply))
        return [list(pair) for pair in zip(turn, turn, strict=True)]

    for kind in (list, Map, Pairs, Set, Push, Frames):
        table[kind] = items
    table[Spoken] = lambda reply: make_view(reply.resp, text, error)(reply.reply)
    if protocol == 3:
        table[Map], table[Pairs], table[PairMap] = mapping, pairs, mapping
    else:
        table[PairMap] = pairs
    return view


def _same(reply: Any) -> Any:
    return reply


def _null(reply: NullArray) -> None:
    return None


def _scalars(protocol: int, text: Callable[[bytes], Any] | None,
             error: Callable[[ReplyError], Any] | None) -> dict[type, View]:  # fmt: skip
    """The rows for everything that is not a collection."""
    string = text or _same
    table: dict[type, View] = {
        bytes: string,
        type(None): _same,
        int: _same,
        NullArray: _null,
        Status: text or bytes,
        Verbatim: text or bytes,
        ReplyError: error or _same,
    }
    if protocol == 3:
        table |= {float: _same, bool: _same, BigNumber: int}
        table[LongFloat] = lambda reply: float(format_decimals(reply))
    else:
        table |= {float: lambda reply: string(format_double(reply)), bool: int}
        table[BigNumber] = lambda reply: string(b"%d" % reply)
        table[LongFloat] = lambda reply: string(format_decimals(reply))
    return table


#: What a RESP2 client would have parsed.
view2 = make_view(2)
#: What a RESP3 client would have parsed.
view3 = make_view(3)
