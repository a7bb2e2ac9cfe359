"""Numbers as text: fixed examples, laws, and every function against the live server."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emuredis import scalars
from tests.support.live import Connection, LiveServer

# Texts that are, or nearly are, numbers.
ODD = [
    *(b"", b" ", b"+", b"-", b".", b"+.", b"e", b"e5", b"1e", b"1e+", b"1e-", b"1.", b".5", b"-.5", b"+.5e1"),
    *(
        b" 1",
        b"1 ",
        b"\t1",
        b"\n1",
        b"1\n",
        b"1\0",
        b"\x001",
        b"\0",
        b"1\x001",
        b"1,5",
        b"1_0",
        b"1__0",
        b"1_",
    ),
    *(
        b"++1",
        b"+-1",
        b"--1",
        b"-+1",
        b"+1",
        b"-1",
        b"01",
        b"00",
        b"-0",
        b"+0",
        b"-01",
        b"0.0",
        b"-0.0",
        b"00.5",
    ),
    *(
        b"inf",
        b"-inf",
        b"+inf",
        b"INF",
        b"Inf",
        b"infinity",
        b"-Infinity",
        b"+INFINITY",
        b"infin",
        b"infinit",
    ),
    *(b"nan", b"-nan", b"+nan", b"NaN", b"nan(1)", b"nan()", b"inf ", b" inf", b"infx", b"--inf"),
    *(
        b"0x10",
        b"0X1F",
        b"0x1p3",
        b"0x1.8p1",
        b"0x.8",
        b"0x",
        b"0x.",
        b"0xg",
        b"-0x10",
        b"+0xa",
        b"0x1p",
        b"0x1p+2",
    ),
    *(b"0x1p16383", b"0x1p16384", b"0x1p-16445", b"0x1p-16446", b"0x8p-16449", b"0x1fffffffffffffffff"),
    *(
        b"1e5",
        b"1E5",
        b"1e05",
        b"1e+05",
        b"1e-05",
        b"1e400",
        b"-1e400",
        b"1e-400",
        b"-1e-400",
        b"1e308",
        b"1e309",
    ),
    *(
        b"1.7976931348623157e308",
        b"1.7976931348623158e308",
        b"1.7976931348623159e308",
        b"4.9e-324",
        b"2e-324",
    ),
    *(
        b"2.4703282292062327e-324",
        b"2.4703282292062328e-324",
        b"2.2250738585072011e-308",
        b"0e999",
        b"0e-999999",
    ),
    *(b"1e4931", b"1e4932", b"1e4933", b"1.2e4932", b"1.18973149535723176502e4932", b"1.19e4932", b"1e-4930"),
    *(b"3e-4951", b"1.9e-4951", b"1.8e-4951", b"1e-4951", b"1e-4952", b"1e-5000", b"1e99999999999999999999"),
    *(b"1" * 19, b"1" * 20, b"1" * 300, b"1" * 309, b"1" * 400, b"1" * 5119, b"1" * 5120, b"0" * 5118 + b"1"),
    *(
        b"0." + b"1" * 300,
        b"0." + b"0" * 400 + b"1",
        b"0" * 300 + b"1",
        b"0" * 5119 + b"1",
        b"1d",
        b"1f",
        b"1L",
    ),
    *(b"\xd9\xa1", b"\xb21", b"1\xff", b"9007199254740993", b"9223372036854775807", b"9223372036854775808"),
    *(
        b"-9223372036854775808",
        b"-9223372036854775809",
        b"18446744073709551616",
        b"10" * 10,
        b"-" + b"9" * 19,
    ),
]
DIGITS = st.text("0123456789", max_size=25)
NUMERIC = st.builds(
    lambda sign, whole, point, decimals, exponent: (sign + whole + point + decimals + exponent).encode(),
    st.sampled_from(["", "", "-", "+"]),
    DIGITS,
    st.sampled_from(["", ".", "."]),
    DIGITS,
    st.just("") | st.integers(-420, 420).map("e{}".format) | st.integers(-20, 20).map("E{:+d}".format),
)
TEXTS = (
    st.sampled_from(ODD)
    | NUMERIC
    | st.binary(max_size=4)
    | st.text("0123456789.eE+-_ xnaif", max_size=8).map(str.encode)
)
# Doubles of every kind: any bit pattern, decimals of few digits, integers around the limits.
DOUBLES = (
    st.integers(0, (1 << 64) - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])
    | st.floats(allow_nan=False)
    | st.builds(lambda n, e: float(f"{n}e{e}"), st.integers(-(10**6), 10**6), st.integers(-330, 300))
    | st.integers(-(1 << 66), 1 << 66).map(float)
    | st.integers(-1074, 1023).map(lambda exponent: math.ldexp(1.0, exponent))
).filter(lambda number: number == number)
FLOAT_ERROR = b"ERR value is not a valid float"


@pytest.fixture(scope="module")
def server(live_server: LiveServer) -> Iterable[Connection]:
    connection = live_server.connect()
    connection.call("FLUSHALL")
    yield connection
    connection.close()


def ask(server: Connection, commands: list[list[bytes]]) -> list[object]:
    """The values of many replies; an error is its text, kept apart from a string by being a tuple."""
    for argv in commands:
        server.send(argv)
    frames = [server.receive() for _ in commands]
    return [(frame.value,) if frame.is_error else frame.value for frame in frames if frame is not None]


# -- integers ----------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=300)
@given(text=TEXTS | st.integers(-(1 << 65), 1 << 65).map(lambda n: b"%d" % n))
def test_integers_have_one_spelling(text: bytes) -> None:
    number = scalars.parse_int(text)
    try:
        plain = int(text) if len(text) < 100 else None
    except ValueError:
        plain = None
    canonical = plain is not None and b"%d" % plain == text and -(1 << 63) <= plain < 1 << 63
    assert number == (plain if canonical else None)


def test_integers_are_the_servers(server: Connection) -> None:
    for text in ODD:
        (reply,) = ask(server, [[b"DECRBY", b"i", text], [b"SET", b"i", b"0"]])[:1]
        number = scalars.parse_int(text)
        if number is None:
            assert reply == (b"ERR value is not an integer or out of range",), text
        elif number != -(1 << 63):
            assert reply == -number, text


# -- doubles: reading --------------------------------------------------------------------------


def check_score(server: Connection, text: bytes) -> None:
    if text.lower() in (b"nx", b"xx", b"lt", b"gt", b"ch", b"incr"):
        return  # an option, not a score
    got = ask(server, [[b"DEL", b"z"], [b"ZADD", b"z", text, b"m"], [b"ZSCORE", b"z", b"m"]])
    number = scalars.parse_float(text)
    if number is None:
        assert got[1] == (FLOAT_ERROR,), text
    else:
        assert got[1:] == [1, scalars.format_double(number + 0.0)], text


def test_odd_scores_are_the_servers(server: Connection) -> None:
    for text in ODD:
        check_score(server, text)


@pytest.mark.slow
@settings(max_examples=300)
@given(text=TEXTS)
def test_scores_are_the_servers(server: Connection, text: bytes) -> None:
    check_score(server, text)


BOUNDS = (
    b"-inf",
    b"-1e300",
    b"-5",
    b"-1",
    b"-0.5",
    b"0",
    b"5e-324",
    b"0.5",
    b"1",
    b"5",
    b"1e20",
    b"1e300",
    b"inf",
)


def check_bound(server: Connection, text: bytes) -> None:
    got = ask(server, [[b"ZCOUNT", b"bounds", text, b"+inf"], [b"ZCOUNT", b"bounds", b"-inf", text]])
    parsed = scalars.parse_bound(text)
    if parsed is None:
        assert got == [(b"ERR min or max is not a float",)] * 2, text
        return
    bound, exclusive = parsed
    scores = [float(score) for score in BOUNDS]
    above = sum(score > bound if exclusive else score >= bound for score in scores)
    below = sum(score < bound if exclusive else score <= bound for score in scores)
    assert got == [above, below], text


@pytest.mark.slow
@settings(max_examples=300)
@given(text=TEXTS, exclusive=st.booleans())
def test_bounds_are_the_servers(server: Connection, text: bytes, exclusive: bool) -> None:
    ask(server, [[b"ZADD", b"bounds", *(part for score in BOUNDS for part in (score, score))]])
    check_bound(server, b"(" + text if exclusive else text)


def test_odd_bounds_are_the_servers(server: Connection) -> None:
    ask(server, [[b"ZADD", b"bounds", *(part for score in BOUNDS for part in (score, score))]])
    for text in [*ODD, b"((1", b"[1", b"(", b"(inf\0x"]:
        check_bound(server, text)
        check_bound(server, b"(" + text)


# -- doubles: writing --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, b"0"),
        (-0.0, b"-0"),
        (3.0, b"3"),
        (0.1, b"0.1"),
        (1e17, b"100000000000000000"),
        (1e20, b"1e+20"),
        (1e21, b"1e+21"),
        (1e-5, b"0.00001"),
        (1e-7, b"1e-7"),
        (5e-324, b"5e-324"),
        (math.inf, b"inf"),
        (-math.inf, b"-inf"),
        (123456789012345678.0, b"123456789012345680"),
        (9223372036854775807.0, b"9223372036854776000"),
        (37263236.757180505, b"3.7263236757180504e+7"),
        (994531008781328.8, b"994531008781328.7"),
    ],
)
def test_written_doubles(number: float, text: bytes) -> None:
    assert scalars.format_double(number) == text


@pytest.mark.slow
@settings(max_examples=500)
@given(number=DOUBLES)
def test_written_doubles_read_back(number: float) -> None:
    assert float(scalars.format_double(number)) == number


@given(number=st.one_of(
    st.floats(min_value=1e-5, max_value=1e17, allow_subnormal=False),
    st.builds(lambda digits, power: digits / 10**power, st.integers(1, 10**16), st.integers(1, 16)),
))  # fmt: skip
def test_the_short_way_prints_what_grisu_does(number: float) -> None:
    text = repr(number)
    decimals = len(text) - text.find(".") - 1
    if "e" not in text and len(text) < 18 and scalars._is_plain(number, decimals) and not number.is_integer():
        digits, power = scalars._grisu_digits(number, text)
        assert scalars._place_digits(digits, power, 18) == text


@settings(max_examples=60)
@given(numbers=st.lists(DOUBLES, min_size=1, max_size=30))
def test_written_doubles_are_the_servers(server: Connection, numbers: list[float]) -> None:
    commands = [[b"ZINCRBY", b"w%d" % at, repr(number).encode(), b"m"] for at, number in enumerate(numbers)]
    got = ask(server, commands)
    ask(server, [[b"FLUSHALL"]])
    assert got == [scalars.format_double(number) for number in numbers]


@settings(max_examples=40)
@given(numbers=st.lists(DOUBLES, min_size=1, max_size=20))
def test_resp3_doubles_are_written_the_same(live_server: LiveServer, numbers: list[float]) -> None:
    connection = live_server.connect(protocol=3)
    commands = [[b"ZINCRBY", b"w%d" % at, repr(number).encode(), b"m"] for at, number in enumerate(numbers)]
    for argv in [*commands, [b"FLUSHALL"]]:
        connection.send(argv)
    frames = [connection.receive() for _ in [*commands, 0]]
    connection.close()
    for number, frame in zip(numbers, frames, strict=False):
        assert frame is not None
        assert frame.raw == b",%b\r\n" % scalars.format_double(number)


# -- long doubles ------------------------------------------------------------------------------


def check_sum(server: Connection, left: bytes, right: bytes) -> None:
    got = ask(server, [[b"SET", b"f", left], [b"INCRBYFLOAT", b"f", right]])[1]
    expected = scalars.add_long_double(left, right)
    if expected is not None:
        assert got == expected, (left, right)
    else:
        parsed = [scalars.parse_long_double(text) for text in (left, right)]
        over = b"ERR increment would produce NaN or Infinity"
        assert got == ((FLOAT_ERROR,) if None in parsed else (over,)), (left, right)


def test_odd_increments_are_the_servers(server: Connection) -> None:
    for text in ODD:
        check_sum(server, b"0", text)
        check_sum(server, text, b"0")
        check_sum(server, b"0.1", text)


@pytest.mark.slow
@settings(max_examples=400)
@given(left=TEXTS, right=TEXTS)
def test_increments_are_the_servers(server: Connection, left: bytes, right: bytes) -> None:
    check_sum(server, left, right)


@pytest.mark.slow
@settings(max_examples=400)
@given(left=NUMERIC, right=NUMERIC)
def test_increments_of_numbers_are_the_servers(server: Connection, left: bytes, right: bytes) -> None:
    check_sum(server, left, right)


@pytest.mark.slow
@settings(max_examples=200)
@given(
    left=st.integers(-(1 << 66), 1 << 66),
    right=st.integers(-(1 << 66), 1 << 66),
    scale=st.sampled_from([b"e0", b"e-1", b"e-7", b"e-18", b"e-19", b"e30"]),
)
def test_rounding_is_the_servers(server: Connection, left: int, right: int, scale: bytes) -> None:
    check_sum(server, b"%d" % left + scale, b"%d" % right)
    check_sum(server, b"%d" % left, b"%d" % right + scale)


def test_famous_sums() -> None:
    assert scalars.add_long_double(b"10.5", b"0.1") == b"10.6"
    assert scalars.add_long_double(b"5.0e3", b"2.0e2") == b"5200"
    assert scalars.add_long_double(b"0.1", b"0.2") == b"0.3"
    assert scalars.add_long_double(b"-1", b"1") == b"0"
    assert scalars.add_long_double(b"1e4932", b"1e4932") is None
    assert scalars.add_long_double(b"inf", b"1") is None


# -- timeouts ----------------------------------------------------------------------------------


def test_timeouts_are_the_servers(server: Connection) -> None:
    """A list that is not empty answers at once, so only what is refused shows."""
    ask(server, [[b"DEL", b"l"], [b"RPUSH", b"l", b"x"]])
    texts = [*ODD, b"-0.0001", b"-0.001", b"-0.0011", b"9223372036854775", b"9223372036854775.8", b"9.3e15"]
    for text in texts:
        got = ask(server, [[b"BLMOVE", b"l", b"l", b"LEFT", b"LEFT", text]])[0]
        milliseconds = scalars.parse_timeout_ms(text)
        if milliseconds is None:
            expected: object = (b"ERR timeout is not a float or out of range",)
        elif milliseconds > scalars.LLONG_MAX:
            expected = (b"ERR timeout is out of range",)
        elif milliseconds < 0:
            expected = (b"ERR timeout is negative",)
        else:
            # Far beyond now the deadline itself overflows.
            expected = (
                (b"ERR timeout is out of range",) if milliseconds > scalars.LLONG_MAX - 10**14 else b"x"
            )
        assert got == expected, (text, milliseconds)


@given(text=NUMERIC)
def test_timeouts_are_rounded_up(text: bytes) -> None:
    milliseconds = scalars.parse_timeout_ms(text)
    if milliseconds is not None and abs(milliseconds) < 1 << 60:
        exact = Fraction(text.decode()) * 1000
        assert abs(milliseconds - math.ceil(exact)) <= 1
        assert milliseconds >= exact - Fraction(1, 10**3)
