"""Places on the earth as scores of a sorted set: geohashes, distances, areas to search.

A place is (longitude, latitude) in degrees. Its hash has 26 bits for each, interleaved, longitude in the higher place;
as a score it is exact but for the edge at 180 degrees, and places near each other mostly have scores near each other.
A *cell* is (bits, step): all places whose hash starts with ``2 * step`` bits. A `Shape` gives the cells that cover it,
and tells of a place whether it lies within, and how far from the middle.

All arithmetic is done in the server's order and with its constants, as every last digit of a distance shows. Any
score is a place here, as in the server, though only those of GEOADD make sense.
"""

from __future__ import annotations

import math

__all__ = ["LATITUDE", "LONGITUDE", "Box", "Circle", "Place", "Polygon", "Shape", "decode", "distance", "encode",
           "geohash", "hash_of"]  # fmt: skip

Place = tuple[float, float]
Cell = tuple[int, int]

LONGITUDE = 180.0
LATITUDE = 85.05112878  # the square map ends there
STEPS = 26
_RADIUS = 6372797.560856
_HALF_EQUATOR = 20037726.37
_RADIAN = math.pi / 180.0
_ALPHABET = "0123456789bcdefghjkmnpqrstuvwxyz"


# -- hashes ------------------------------------------------------------------------------------

_SPREAD = ((16, 0x0000FFFF0000FFFF), (8, 0x00FF00FF00FF00FF), (4, 0x0F0F0F0F0F0F0F0F), (2, 0x3333333333333333),
           (1, 0x5555555555555555))  # fmt: skip
_GATHER = ((1, 0x3333333333333333), (2, 0x0F0F0F0F0F0F0F0F), (4, 0x00FF00FF00FF00FF), (8, 0x0000FFFF0000FFFF),
           (16, 0x00000000FFFFFFFF))  # fmt: skip
_EVEN, _ODD = 0x5555555555555555, 0xAAAAAAAAAAAAAAAA


def _spread(number: int) -> int:
    """The 32 bits of a number in every second place."""
    for shift, mask in _SPREAD:
        number = (number | number << shift) & mask
    return number


def _gather(number: int) -> int:
    """Every second bit of a number of 64 bits."""
    number &= _EVEN
    for shift, mask in _GATHER:
        number = (number | number >> shift) & mask
    return number


def _cell(place: Place, step: int, latitude_limit: float) -> int:
    size = 1 << step
    x = (place[0] + LONGITUDE) / (LONGITUDE + LONGITUDE) * size
    y = (place[1] + latitude_limit) / (latitude_limit + latitude_limit) * size
    return _spread(int(y)) | _spread(int(x)) << 1


def encode(place: Place) -> int:
    """The hash of a place within the limits. O(1)."""
    return _cell(place, STEPS, LATITUDE)


def hash_of(score: float) -> int:
    """The 64 bits that the server makes of a score, whatever it is. O(1)."""
    if -9223372036854775808.0 <= score < 18446744073709551616.0:
        return int(score) & 0xFFFFFFFFFFFFFFFF
    return 0 if score > 0 else 1 << 63


def _area(bits: int, step: int) -> tuple[float, float, float, float]:
    """A cell's least and greatest longitude, then latitude."""
    x, y, size = _gather(bits >> 1), _gather(bits), 1 << step
    width, height = LONGITUDE + LONGITUDE, LATITUDE + LATITUDE
    return (
        -LONGITUDE + x / size * width,
        -LONGITUDE + (x + 1 & 0xFFFFFFFF) / size * width,
        -LATITUDE + y / size * height,
        -LATITUDE + (y + 1 & 0xFFFFFFFF) / size * height,
    )


def decode(score: float) -> Place:
    """The middle of the cell that a score stands for. O(1)."""
    west, east, south, north = _area(hash_of(score), STEPS)
    longitude, latitude = (west + east) / 2, (south + north) / 2
    return (
        max(min(longitude, LONGITUDE), -LONGITUDE),
        max(min(latitude, LATITUDE), -LATITUDE),
    )


def geohash(place: Place) -> bytes:
    """The usual text of 11 letters, the last of which is always 0. O(1)."""
    bits = _cell(place, STEPS, 90.0)
    return ("".join(_ALPHABET[bits >> shift & 31] for shift in range(47, -1, -5)) + "0").encode()


# -- distances ---------------------------------------------------------------------------------


def _meridian(one: float, other: float) -> float:
    """The distance between two latitudes."""
    return _RADIUS * abs(other * _RADIAN - one * _RADIAN)


def distance(one: Place, other: Place) -> float:
    """Metres between two places on a sphere. O(1)."""
    v = math.sin((other[0] * _RADIAN - one[0] * _RADIAN) / 2)
    if v == 0.0:
        return _meridian(one[1], other[1])
    here, there = one[1] * _RADIAN, other[1] * _RADIAN
    u = math.sin((there - here) / 2)
    a = u * u + math.cos(here) * math.cos(there) * v * v
    return 2.0 * _RADIUS * math.asin(min(math.sqrt(a), 1.0))


def _cos(angle: float) -> float:
    return math.cos(angle) if angle - angle == 0.0 else math.nan


# -- shapes ------------------------------------------------------------------------------------


class Shape:
    """An area around `middle`; lengths in metres, except that results are told in units of `unit` metres."""

    __slots__ = ("middle", "unit")

    def __init__(self, middle: Place, unit: float) -> None:
        self.middle = middle
        self.unit = unit

    def within(self, place: Place) -> float | None:
        """Metres from the middle to a place inside, None for one outside. O(1), polygons O(vertices)."""
        raise AssertionError("each shape has its own")

    def bounds(self) -> tuple[float, float, float, float]:
        """The least and greatest longitude, then latitude. O(1), polygons O(vertices)."""
        raise AssertionError("each shape has its own")

    def reach(self) -> float:
        """The radius of a circle around the middle that holds all of it. As `bounds`."""
        raise AssertionError("each shape has its own")

    def _around(self, width: float, height: float) -> tuple[float, float, float, float]:
        """The bounds of what reaches so far to each side; the edge that is nearer to the pole is the longer one."""
        longitude, latitude = self.middle
        up = height / _RADIUS / _RADIAN
        edge = latitude - up if latitude < 0 else latitude + up
        across = width / _RADIUS / _cos(edge * _RADIAN) / _RADIAN
        return longitude - across, longitude + across, latitude - up, latitude + up

    def cells(self) -> list[Cell]:
        """The cells that cover the shape, in the order in which the server looks through them. O(bounds)."""
        if abs(self.middle[1]) > LATITUDE:
            # The middle of a polygon around a pole is not on the map. The server then reads memory that it has not set:
            # nearly always that finds nothing, now and then what the search before left there.
            return []
        west, east, south, north = self.bounds()
        step = _step(self.reach(), self.middle[1])
        bits = _cell(self.middle, step, LATITUDE)
        if step > 1 and not _covers(bits, step, west, east, south, north):
            step -= 1
            bits = _cell(self.middle, step, LATITUDE)
        sides = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)]
        if step >= 2:
            left, right, bottom, top = _area(bits, step)
            useless = {
                *([(-1, y) for y in (-1, 0, 1)] if left < west else ()),
                *([(1, y) for y in (-1, 0, 1)] if right > east else ()),
                *([(x, -1) for x in (-1, 0, 1)] if bottom < south else ()),
                *([(x, 1) for x in (-1, 0, 1)] if top > north else ()),
            }
            sides = [side for side in sides if side not in useless]
        return [(_neighbour(bits, step, x, y), step) for x, y in sides]


class Circle(Shape):
    """All places not farther than a radius."""

    __slots__ = ("radius",)

    def __init__(self, middle: Place, radius: float, unit: float) -> None:
        super().__init__(middle, unit)
        self.radius = radius * unit

    def within(self, place: Place) -> float | None:
        far = distance(self.middle, place)
        return None if far > self.radius else far

    def bounds(self) -> tuple[float, float, float, float]:
        return self._around(self.radius, self.radius)

    def reach(self) -> float:
        return self.radius


class Box(Shape):
    """A rectangle along meridians and parallels."""

    __slots__ = ("height", "width", "_reach")

    def __init__(self, middle: Place, width: float, height: float, unit: float) -> None:
        super().__init__(middle, unit)
        self.width, self.height = width * unit, height * unit
        self._reach = math.sqrt(width / 2 * (width / 2) + height / 2 * (height / 2)) * unit

    def within(self, place: Place) -> float | None:
        if _meridian(place[1], self.middle[1]) > self.height / 2:
            return None
        if distance(place, (self.middle[0], place[1])) > self.width / 2:
            return None
        return distance(self.middle, place)

    def bounds(self) -> tuple[float, float, float, float]:
        return self._around(self.width / 2, self.height / 2)

    def reach(self) -> float:
        return self._reach


class Polygon(Shape):
    """What is inside of a line through vertices that closes itself; on the map, not on the sphere."""

    __slots__ = ("vertices",)

    def __init__(self, vertices: list[Place]) -> None:
        super().__init__(_centroid(vertices), 1.0)
        self.vertices = vertices

    def within(self, place: Place) -> float | None:
        x, y = place
        inside = False
        bx, by = self.vertices[-1]
        for ax, ay in self.vertices:
            if (ay > y) != (by > y) and x < (bx - ax) * (y - ay) / (by - ay) + ax:
                inside = not inside
            bx, by = ax, ay
        return distance(self.middle, place) if inside else None

    def bounds(self) -> tuple[float, float, float, float]:
        longitudes, latitudes = zip(*self.vertices, strict=True)
        return min(longitudes), max(longitudes), min(latitudes), max(latitudes)

    def reach(self) -> float:
        west, east, south, north = self.bounds()
        return max(distance(self.middle, (x, y)) for x in (west, east) for y in (south, north))


def _centroid(vertices: list[Place]) -> Place:
    """The direction of the middle of some places, seen from the centre of the earth."""
    x = y = z = 0.0
    for longitude, latitude in vertices:
        across, up = longitude * _RADIAN, latitude * _RADIAN
        x += math.cos(up) * math.cos(across)
        y += math.cos(up) * math.sin(across)
        z += math.sin(up)
    return math.atan2(y, x) / _RADIAN, math.atan2(z, math.sqrt(x * x + y * y)) / _RADIAN


# -- cells -------------------------------------------------------------------------------------


def _step(reach: float, latitude: float) -> int:
    """How fine cells may be so that nine of them cover a circle in most cases."""
    if reach == 0.0:
        return STEPS
    step = -1
    while reach < _HALF_EQUATOR:
        reach *= 2
        step += 1
    if abs(latitude) > 66:
        step -= 1
    if abs(latitude) > 80:
        step -= 1
    return max(1, min(step, STEPS))


def _covers(bits: int, step: int, west: float, east: float, south: float, north: float) -> bool:
    """Whether a cell and its neighbours reach to these bounds."""
    return not (
        _area(_neighbour(bits, step, 0, 1), step)[3] < north
        or _area(_neighbour(bits, step, 0, -1), step)[2] > south
        or _area(_neighbour(bits, step, 1, 0), step)[1] < east
        or _area(_neighbour(bits, step, -1, 0), step)[0] > west
    )


def _neighbour(bits: int, step: int, x: int, y: int) -> int:
    """The cell so many to the east and to the north, 1, 0 or -1; round the edges of the map to the other side."""
    odd, even = _ODD >> 64 - 2 * step, _EVEN >> 64 - 2 * step
    # One is added to every second bit by filling those between with ones, over which a carry passes.
    along, up = bits & _ODD, bits & _EVEN
    if x > 0:
        along = along + even + 1 & odd
    elif x:
        along = (along | even) - even - 1 & odd
    if y > 0:
        up = up + odd + 1 & even
    elif y:
        up = (up | odd) - odd - 1 & even
    return along | up
