"""Places: GEOADD and what looks for places near others. A set of places is a sorted set, see `emuredis.values.geo`.

GEOADD is ZADD with computed scores, and any sorted set can be searched. All six searching commands are one: `_Query`
reads the words in the server's order (the key's type first, then each word as it comes), `_search` finds, sorts and
cuts, and the result is either told or stored. BYPOLYGON has no FROM: its middle is that of its vertices.

To add an option: its case in `_Query._option`, and its lines in the conformance file ``geo``.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from emuredis import errors
from emuredis.commands.args import integer, number
from emuredis.commands.zsets import zadd
from emuredis.errors import err
from emuredis.keyspace.notify import GENERIC, ZSET
from emuredis.replies import NULL_ARRAY, LongFloat, Reply
from emuredis.scalars import parse_float, parse_int
from emuredis.spec import command
from emuredis.values import geo
from emuredis.values.geo import Place
from emuredis.values.quicksort import partial_sort
from emuredis.values.zset import ZSet

if TYPE_CHECKING:
    from emuredis.engine.session import Session

_UNITS = {b"M": 1.0, b"KM": 1000.0, b"FT": 0.3048, b"MI": 1609.34}
_INT_MAX = (1 << 31) - 1

_UNIT = "unit=(M|KM|FT|MI)"
_SEARCH_COST = "O(N+log(M)) with N the places in the cells around the area and M those inside"
_FROM = "from=[FROMMEMBER member|FROMLONLAT fromlonlat=(longitude:double latitude:double)]"
_BY = (
    f"by=(circle=(BYRADIUS radius:double {_UNIT})|box=(BYBOX width:double height:double {_UNIT})|"
    "polygon=(BYPOLYGON num-vertices:integer vertices=(longitude:double latitude:double)...))"
)
_ORDER = "order=[ASC|DESC]"
_COUNT = "count-block=[COUNT count:integer [ANY]]"
_WITH = "[WITHCOORD] [WITHDIST] [WITHHASH]"
_STORE = "store=[STORE storekey=(key)|STOREDIST storedistkey=(key)]"


def _numeric(text: bytes, what: str) -> float:
    value = parse_float(text)
    if value is None:
        raise err(f"need numeric {what}")
    return value


def _shown(text: bytes) -> str:
    """A word within an error text, which ends at a zero byte."""
    return text.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _word(text: bytes) -> bytes:
    """A word to be compared; that too ends at a zero byte."""
    return text.partition(b"\0")[0].upper()


def _unit(text: bytes) -> float:
    unit = _UNITS.get(_word(text))
    if unit is None:
        raise err("unsupported unit provided. please use M, KM, FT, MI")
    return unit


def _place(argv: list[bytes], at: int) -> Place:
    longitude, latitude = number(argv[at]), number(argv[at + 1])
    if abs(longitude) > geo.LONGITUDE or abs(latitude) > geo.LATITUDE:
        raise err(f"invalid longitude,latitude pair {longitude:f},{latitude:f}")
    return longitude, latitude


def _metres(length: float) -> bytes:
    """A distance as it is told: rounded to four decimals, halves to even."""
    scaled = round(length * 10000)
    return b"%d.%04d" % divmod(scaled, 10000)


# -- single places -----------------------------------------------------------------------------


@command("GEOADD key condition=[NX|XX] change=[CH] data=(longitude:double latitude:double member)...",
         "write denyoom", keys="RW update @1", group="geo", since="3.2.0",
         complexity="O(log(N)) for each place")  # fmt: skip
def geoadd(ctx: Session, argv: list[bytes]) -> Reply:
    """Adds places, or moves them."""
    at, size = 2, len(argv)
    while at < size and _word(argv[at]) in (b"NX", b"XX", b"CH"):
        at += 1
    flags = [_word(word) for word in argv[2:at]]
    if (size - at) % 3 or (b"NX" in flags and b"XX" in flags):
        raise errors.syntax()
    pairs = []
    for place in range(at, size, 3):
        pairs += [b"%d" % geo.encode(_place(argv, place)), argv[place + 2]]
    return zadd(ctx, [b"ZADD", argv[1], *flags, *pairs])


def _scores(ctx: Session, argv: list[bytes]) -> list[float | None]:
    value = ctx.db.read(argv[1], ZSet)
    return [None if value is None else value.scores.get(member) for member in argv[2:]]


@command("GEOPOS key [member...]", "readonly", keys="RO access @1", group="geo", since="3.2.0",
         complexity="O(1) for each member")  # fmt: skip
def geopos(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells where members are."""
    return [
        NULL_ARRAY if score is None else [LongFloat(degrees) for degrees in geo.decode(score)]
        for score in _scores(ctx, argv)
    ]


@command("GEOHASH key [member...]", "readonly", keys="RO access @1", group="geo", since="3.2.0",
         complexity="O(1) for each member")  # fmt: skip
def geohash(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells the geohashes of members as usual texts."""
    return [None if score is None else geo.geohash(geo.decode(score)) for score in _scores(ctx, argv)]


@command(f"GEODIST key member1 member2 {_UNIT.replace('(', '[').replace(')', ']')}", "readonly",
         keys="RO access @1", group="geo", since="3.2.0", complexity="O(1)")  # fmt: skip
def geodist(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells the distance between two members."""
    if len(argv) > 5:
        raise errors.syntax()
    unit = _unit(argv[4]) if len(argv) == 5 else 1.0
    one, other = _scores(ctx, argv[:4])
    if one is None or other is None:
        return None
    return _metres(geo.distance(geo.decode(one), geo.decode(other)) / unit)


# -- searching ---------------------------------------------------------------------------------


class _Found(NamedTuple):
    member: bytes
    score: float
    place: Place
    distance: float


class _Query:
    """The words of a searching command; `value` is the sorted set, None for a missing key."""

    __slots__ = ("_argv", "_by", "_from", "_middle", "_shape", "_value", "any", "count", "order", "store",
                 "storedist", "withcoord", "withdist", "withhash")  # fmt: skip

    def __init__(self, argv: list[bytes], value: ZSet | None) -> None:
        self._argv = argv
        self._value = value
        self._from = b""
        self._middle: Place = (0.0, 0.0)
        self._by = b""
        self._shape: Callable[[Place], geo.Shape]
        self.order = b""
        self.count = 0
        self.any = self.withcoord = self.withdist = self.withhash = self.storedist = False
        self.store: bytes | None = None

    # -- the area ------------------------------------------------------------------------------

    def from_member(self, member: bytes) -> None:
        """Members of a missing key are not looked for."""
        self._from = b"FROMMEMBER"
        if self._value is not None:
            score = self._value.scores.get(member)
            if score is None:
                raise err(f"member {_shown(member)} does not exist")
            self._middle = geo.decode(score)

    def from_place(self, at: int) -> None:
        self._middle = _place(self._argv, at)
        self._from = b"FROMLONLAT"

    def by_radius(self, at: int) -> None:
        radius = _numeric(self._argv[at], "radius")
        if radius < 0:
            raise err("radius cannot be negative")
        unit = _unit(self._argv[at + 1])
        self._shape = lambda middle: geo.Circle(middle, radius, unit)
        self._by = b"BYRADIUS"

    def by_box(self, at: int) -> None:
        width, height = _numeric(self._argv[at], "width"), _numeric(self._argv[at + 1], "height")
        if width < 0 or height < 0:
            raise err("height or width cannot be negative")
        unit = _unit(self._argv[at + 2])
        self._shape = lambda middle: geo.Box(middle, width, height, unit)
        self._by = b"BYBOX"

    def by_polygon(self, at: int) -> int:
        """The number of words that the vertices take."""
        count = parse_int(self._argv[at])
        if count is None or not -_INT_MAX - 1 <= count <= _INT_MAX:
            raise err("invalid number of vertices")
        if count < 3 or (len(self._argv) - at - 1) // 2 < count:
            raise err("GEOSEARCH BYPOLYGON must have at least 3 vertices")
        vertices = [_place(self._argv, at + 1 + 2 * vertex) for vertex in range(count)]
        self._shape = lambda _: geo.Polygon(vertices)
        self._by = b"BYPOLYGON"
        return 2 * count

    def shape(self) -> geo.Shape:
        return self._shape(self._middle)

    # -- options -------------------------------------------------------------------------------

    def options(self, at: int, allowed: str) -> None:
        """Read the words from ``at`` on; ``allowed``: SEARCH STORE STOREDIST, what the command knows besides."""
        while at < len(self._argv):
            taken = self._flag(_word(self._argv[at]), allowed) or self._option(at, allowed)
            if not taken:
                raise errors.syntax()
            at += taken

    def _flag(self, word: bytes, allowed: str) -> int:
        """Take an option of one word; how many words that was."""
        if word == b"WITHDIST":
            self.withdist = True
        elif word == b"WITHHASH":
            self.withhash = True
        elif word == b"WITHCOORD":
            self.withcoord = True
        elif word == b"ANY":
            self.any = True
        elif word in (b"ASC", b"DESC"):
            self.order = word
        elif word == b"STOREDIST" and "STOREFLAG" in allowed:
            self.storedist = True
        else:
            return 0
        return 1

    def _option(self, at: int, allowed: str) -> int:
        """The same for options with arguments."""
        word, left = _word(self._argv[at]), len(self._argv) - at - 1
        if word == b"COUNT" and left >= 1:
            self.count = integer(self._argv[at + 1])
            if self.count <= 0:
                raise err("COUNT must be > 0")
            return 2
        if word in (b"STORE", b"STOREDIST") and left >= 1 and "STOREKEY" in allowed:
            self.store = self._argv[at + 1]
            self.storedist = word == b"STOREDIST"
            return 2
        return self._area(word, at, left) if "SEARCH" in allowed else 0

    def _area(self, word: bytes, at: int, left: int) -> int:
        """The same for what GEOSEARCH says of its area."""
        polygon = self._by == b"BYPOLYGON"
        if word == b"FROMMEMBER" and left >= 1 and self._from != b"FROMLONLAT" and not polygon:
            self.from_member(self._argv[at + 1])
            return 2
        if word == b"FROMLONLAT" and left >= 2 and self._from != b"FROMMEMBER" and not polygon:
            self.from_place(at + 1)
            return 3
        if word == b"BYRADIUS" and left >= 2 and self._by in (b"", word):
            self.by_radius(at + 1)
            return 3
        if word == b"BYBOX" and left >= 3 and self._by in (b"", word):
            self.by_box(at + 1)
            return 4
        if word == b"BYPOLYGON" and left >= 2 and self._by in (b"", word) and not self._from:
            return 2 + self.by_polygon(at + 1)
        return 0

    def check(self, search: bool, store: str) -> None:
        """Options that do not go together; ``store`` names what stores the result."""
        if self.store is not None and (self.withdist or self.withhash or self.withcoord):
            raise err(f"{store} is not compatible with WITHDIST, WITHHASH and WITHCOORD options")
        name = _shown(self._argv[0])
        if search and not self._from and self._by != b"BYPOLYGON":
            raise err(f"exactly one of FROMMEMBER or FROMLONLAT can be specified for {name}")
        if search and not self._by:
            raise err(f"exactly one of BYRADIUS, BYBOX and BYPOLYGON can be specified for {name}")
        if self.any and not self.count:
            raise err("the ANY argument requires COUNT argument")


def _find(value: ZSet, shape: geo.Shape, limit: int) -> list[_Found]:
    """The places within a shape, cell by cell; with ``limit`` no more than that."""
    found: list[_Found] = []
    before: tuple[int, int] | None = None
    for number_of_cell, cell in enumerate(shape.cells()):
        # On a small map neighbours may be the same cell; the server notices where they come one after the other.
        if cell == before:
            continue
        if number_of_cell:
            before = cell
        bits, step = cell
        low, high = float(bits << 52 - 2 * step), float(bits + 1 << 52 - 2 * step)
        turn = iter(value.range_by_score(low, high, False, True, withscores=True))
        for member, score in zip(turn, turn, strict=True):
            place = geo.decode(score)
            far = shape.within(place)
            if far is not None:
                found.append(_Found(member, score, place, far))
                if len(found) == limit:
                    return found
    return found


def _search(value: ZSet, query: _Query, shape: geo.Shape) -> list[_Found]:
    found = _find(value, shape, query.count if query.any else 0)
    order = query.order
    if query.count and not order and not query.any:
        order = b"ASC"
    if order:
        sign = 1 if order == b"ASC" else -1
        if 0 < query.count < len(found):
            found = partial_sort(found, lambda each: sign * each.distance, 0, query.count - 1)
        else:
            found.sort(key=itemgetter(3), reverse=sign < 0)
    return found[: query.count] if query.count else found


def _answer(ctx: Session, value: ZSet | None, query: _Query, event: bytes) -> Reply:
    """Tell or store what the query finds."""
    if value is None:
        return [] if query.store is None else _store(ctx, query.store, {}, event)
    shape = query.shape()
    found = _search(value, query, shape)
    if query.store is not None:
        scores = {
            each.member: each.distance / shape.unit if query.storedist else each.score for each in found
        }
        return _store(ctx, query.store, scores, event)
    if not (query.withdist or query.withhash or query.withcoord):
        return [each.member for each in found]
    return [_described(each, query, shape.unit) for each in found]


def _described(each: _Found, query: _Query, unit: float) -> Reply:
    out: list[Reply] = [each.member]
    if query.withdist:
        out.append(_metres(each.distance / unit))
    if query.withhash:
        out.append(int(each.score) if abs(each.score) < 1 << 63 else -1 << 63)
    if query.withcoord:
        out.append([LongFloat(degrees) for degrees in each.place])
    return out


def _store(ctx: Session, key: bytes, scores: dict[bytes, float], event: bytes) -> int:
    db = ctx.db
    if scores:
        db.put(key, ZSet.from_items(scores.items(), ctx.engine.limits))
        db.touch(key, ZSET, event)
    elif db.remove(key):
        db.touch(key, GENERIC, b"del")
    return len(scores)


@command(f"GEOSEARCH key {_FROM} {_BY} {_ORDER} {_COUNT} {_WITH}", "readonly", keys="RO access @1", group="geo",
         since="6.2.0", complexity=_SEARCH_COST, arity=-7)  # fmt: skip
def geosearch(ctx: Session, argv: list[bytes]) -> Reply:
    """Finds the members within a circle, a box or a polygon."""
    value = ctx.db.read(argv[1], ZSet)
    query = _Query(argv, value)
    query.options(2, "SEARCH")
    query.check(True, "")
    return _answer(ctx, value, query, b"")


@command(f"GEOSEARCHSTORE destination:key source:key {_FROM} {_BY} {_ORDER} {_COUNT} [STOREDIST]", "write denyoom",
         keys="OW update @1, RO access @2", group="geo", since="6.2.0", complexity=_SEARCH_COST,
         arity=-8)  # fmt: skip
def geosearchstore(ctx: Session, argv: list[bytes]) -> Reply:
    """Stores the members within a circle, a box or a polygon; how many there are."""
    value = ctx.db.read(argv[2], ZSet)
    query = _Query(argv, value)
    query.store = argv[1]
    query.options(3, "SEARCH STOREFLAG")
    query.check(True, "GEOSEARCHSTORE")
    return _answer(ctx, value, query, b"geosearchstore")


def _radius(ctx: Session, argv: list[bytes], allowed: str) -> Reply:
    value = ctx.db.read(argv[1], ZSet)
    query = _Query(argv, value)
    query.from_place(2)
    query.by_radius(4)
    return _old_search(ctx, value, query, 6, allowed)


def _radius_by_member(ctx: Session, argv: list[bytes], allowed: str) -> Reply:
    value = ctx.db.read(argv[1], ZSet)
    query = _Query(argv, value)
    if value is not None:  # the server does not look at the area otherwise
        query.from_member(argv[2])
        query.by_radius(3)
    return _old_search(ctx, value, query, 5, allowed)


def _old_search(ctx: Session, value: ZSet | None, query: _Query, at: int, allowed: str) -> Reply:
    query.options(at, allowed)
    query.check(False, "STORE option in GEORADIUS")
    return _answer(ctx, value, query, b"georadiusstore")


@command(f"GEORADIUS key longitude:double latitude:double radius:double {_UNIT} {_WITH} {_COUNT} {_ORDER} {_STORE}",
         "write denyoom movablekeys", group="geo", since="3.2.0", complexity=_SEARCH_COST,
         keys="RO access @1, OW update variable_flags @STORE/6, OW update variable_flags @STOREDIST/6")  # fmt: skip
def georadius(ctx: Session, argv: list[bytes]) -> Reply:
    """Finds, or stores, the members within a circle around a place."""
    return _radius(ctx, argv, "STOREKEY")


@command(f"GEORADIUS_RO key longitude:double latitude:double radius:double {_UNIT} {_WITH} {_COUNT} {_ORDER}",
         "readonly", keys="RO access @1", group="geo", since="3.2.10", complexity=_SEARCH_COST)  # fmt: skip
def georadius_ro(ctx: Session, argv: list[bytes]) -> Reply:
    """Finds the members within a circle around a place."""
    return _radius(ctx, argv, "")


@command(f"GEORADIUSBYMEMBER key member radius:double {_UNIT} {_WITH} {_COUNT} {_ORDER} {_STORE}",
         "write denyoom movablekeys", group="geo", since="3.2.0", complexity=_SEARCH_COST,
         keys="RO access @1, OW update variable_flags @STORE/5, OW update variable_flags @STOREDIST/5")  # fmt: skip
def georadiusbymember(ctx: Session, argv: list[bytes]) -> Reply:
    """Finds, or stores, the members within a circle around a member."""
    return _radius_by_member(ctx, argv, "STOREKEY")


@command(f"GEORADIUSBYMEMBER_RO key member radius:double {_UNIT} {_WITH} {_COUNT} {_ORDER}", "readonly",
         keys="RO access @1", group="geo", since="3.2.10", complexity=_SEARCH_COST)  # fmt: skip
def georadiusbymember_ro(ctx: Session, argv: list[bytes]) -> Reply:
    """Finds the members within a circle around a member."""
    return _radius_by_member(ctx, argv, "")
