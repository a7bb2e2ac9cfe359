"""Places and the partial sort by their own rules; conformance lines show that digits and order are the server's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuredis.values import geo
from emuredis.values.quicksort import partial_sort

LONGITUDES = st.floats(-geo.LONGITUDE, geo.LONGITUDE)
LATITUDES = st.floats(-geo.LATITUDE, geo.LATITUDE)
PLACES = st.tuples(LONGITUDES, LATITUDES)


@given(PLACES)
def test_a_place_is_kept_to_less_than_a_metre(place: geo.Place) -> None:
    assert geo.distance(place, geo.decode(float(geo.encode(place)))) < 1


@given(st.tuples(LONGITUDES.filter(lambda x: x < 179.99), LATITUDES.filter(lambda y: y < 85.05)))
def test_encoding_what_was_decoded_changes_nothing(place: geo.Place) -> None:
    bits = geo.encode(place)
    assert geo.encode(geo.decode(float(bits))) == bits


@given(PLACES, PLACES)
def test_distance_is_the_same_both_ways(one: geo.Place, other: geo.Place) -> None:
    assert geo.distance(one, other) == pytest.approx(geo.distance(other, one), abs=1e-6)
    assert 0 <= geo.distance(one, other) < 20_100_000


@given(PLACES, st.floats(0, 3_000_000), PLACES)
def test_a_circle_and_the_box_around_it(middle: geo.Place, radius: float, place: geo.Place) -> None:
    circle = geo.Circle(middle, radius, 1.0)
    far = circle.within(place)
    assert (far is None) == (geo.distance(middle, place) > radius)
    assert far is None or far == geo.distance(middle, place)
    box = geo.Box(middle, 0.0, 2 * radius, 1.0)
    assert box.within(place) is None or place[0] == pytest.approx(middle[0], abs=1e-6) or abs(place[0]) > 179


@given(
    st.tuples(st.floats(-60, 60), st.floats(-60, 60)),
    st.floats(0, 100_000),
    st.floats(-1, 1),
    st.floats(-1, 1),
)
def test_the_cells_cover_the_circle(middle: geo.Place, radius: float, east: float, north: float) -> None:
    circle = geo.Circle(middle, radius, 1.0)
    west, right, south, top = circle.bounds()
    place = (
        middle[0] + (east * (right - west)) / 2,
        middle[1] + (north * (top - south)) / 2,
    )
    if circle.within(place) is not None:
        bits = geo.encode(place)
        assert any(bits >> 52 - 2 * step == cell for cell, step in circle.cells())


def test_inside_and_outside_of_a_polygon() -> None:
    horseshoe = geo.Polygon([(0, 0), (9, 0), (9, 9), (6, 9), (6, 3), (3, 3), (3, 9), (0, 9)])
    inside = [(1, 8), (8, 8), (4, 1)]
    outside = [(4, 8), (10, 1), (4, 4), (-1, 1)]
    assert all(horseshoe.within(place) is not None for place in inside)
    assert all(horseshoe.within(place) is None for place in outside)


def test_a_polygon_with_its_middle_off_the_map_has_no_cells() -> None:
    assert geo.Polygon([(0, 85), (120, 85), (-120, 85)]).cells() == []


@given(st.lists(st.integers(0, 12), max_size=120), st.data())
def test_partial_sort(keys: list[int], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(keys)))
    last = data.draw(st.integers(first, len(keys) + 2))
    items = list(enumerate(keys))
    out = partial_sort(items, lambda item: item[1], first, last)
    assert sorted(out) == items
    assert [key for _, key in out][first : last + 1] == sorted(keys)[first : last + 1]


@given(st.lists(st.integers(), unique=True))
def test_without_ties_all_is_sorted(keys: list[int]) -> None:
    assert partial_sort(keys, lambda key: -key, 0, 1) == sorted(keys, reverse=True)
