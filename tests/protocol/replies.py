"""A strategy for every kind of reply, for the tests of encode and views."""

from __future__ import annotations

from hypothesis import strategies as st

from emuredis.errors import ReplyError
from emuredis.replies import (
    NULL_ARRAY,
    BigNumber,
    LongFloat,
    Map,
    PairMap,
    Pairs,
    Push,
    Set,
    Status,
    Verbatim,
)

_LINE = st.binary(max_size=8).map(lambda text: text.replace(b"\r", b"").replace(b"\n", b""))
_SIZES = st.sampled_from([0, 1, 9, 10, 99, 100, 1023, 1024, 5000])
SCALARS = st.one_of(
    st.binary(max_size=8),
    _SIZES.map(lambda size: b"v" * size),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([0, 1, 1023, 1024, -1]),
    st.none(),
    st.just(NULL_ARRAY),
    _LINE.map(Status),
    st.text("aÄ \r\n", max_size=8).map(lambda text: ReplyError("ERR " + text)),
    st.floats(allow_nan=False),
    st.floats(-180, 180).map(LongFloat),
    st.booleans(),
    st.binary(max_size=8).map(Verbatim),
    st.integers(2**63, 2**80).map(BigNumber),
)
_KEYS = st.one_of(st.binary(max_size=4), st.integers(-5, 5))


def _nested(inner: st.SearchStrategy) -> st.SearchStrategy:  # type: ignore[type-arg]
    pairs = st.lists(st.tuples(_KEYS, inner), max_size=4).map(
        lambda found: [item for pair in found for item in pair]
    )
    items = st.lists(inner, max_size=5)
    turns = [pairs.map(kind) for kind in (Map, Pairs, PairMap)]
    return st.one_of(items, items.map(Set), items.map(Push), *turns)


REPLIES = st.recursive(SCALARS, _nested, max_leaves=12)
