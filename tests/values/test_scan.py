"""Scanning: whatever changes meanwhile, an element present throughout is returned, exactly once."""

from __future__ import annotations

from random import Random
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emuredis.values.order import Order
from emuredis.values.scan import ScanIndex, scan

# crc32 of both is 0x4ddb0c25.
TWINS = (b"plumless", b"buckeroo")


def test_the_twins_have_one_checksum() -> None:
    assert crc32(TWINS[0]) == crc32(TWINS[1])


@pytest.mark.slow
@settings(max_examples=80)
@given(
    start=st.sets(st.integers(0, 400), max_size=300),
    count=st.integers(1, 60),
    seed=st.integers(0, 999),
    forget=st.booleans(),
)
def test_the_guarantee(start: set[int], count: int, seed: int, forget: bool) -> None:
    rng = Random(seed)
    elements = dict.fromkeys([b"%d" % number for number in sorted(start)] + list(TWINS))
    always = set(elements)
    index: ScanIndex | None = None
    seen: list[bytes] = []
    cursor = 0
    while True:
        cursor, page, index = scan(index, elements, cursor, count)
        seen += page
        if index is not None:
            index._check(elements)
        if cursor == 0:
            break
        assert len(page) >= count
        for _ in range(rng.randrange(40)):
            one = b"%d" % rng.randrange(2000)
            if one in elements:
                del elements[one]
                always.discard(one)
                keep = index is None or index.discard(one)
            else:
                elements[one] = None
                keep = index is None or index.add(one)
            if not keep:
                index = None
        if forget:
            index = None
    assert always <= set(seen)
    assert all(seen.count(one) == 1 for one in always)


def test_equal_checksums_share_a_page() -> None:
    elements = dict.fromkeys([*TWINS, *(b"%d" % n for n in range(500))])
    cursor, index, pages = 0, None, []
    while True:
        cursor, page, index = scan(index, elements, cursor, 1)
        pages.append(page)
        if not cursor:
            break
    assert [page for page in pages if len(page) > 1] == [sorted(TWINS)]
    assert len(pages) == len(elements) - 1


def test_growth_splits_and_idleness_drops() -> None:
    index = ScanIndex([], 0)
    elements = [b"%d" % n for n in range(5000)]
    kept = [index.add(one) for one in elements]
    assert not kept[-1]
    index._check(elements)
    assert len(index._buckets) > 50
    assert index.page(0, 10)[0] != 0
    assert index.add(b"after a page")
    assert index.discard(b"after a page")


def test_a_cursor_beyond_the_end_is_the_end() -> None:
    elements = [b"%d" % n for n in range(100)]
    assert ScanIndex(elements, 100).page(1 << 40, 10) == (0, [])
    assert ScanIndex(elements, 100).page((1 << 32) - 1, 10)[0] == 0


def test_order_of_one() -> None:
    order = Order([b"a"])
    order.discard(b"a")
    order._check([])
    order.add(b"b")
    assert order.choice(Random(1)) == b"b"
