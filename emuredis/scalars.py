"""Numbers as the server reads and writes them; the only place where wire text becomes a number or back.

Python's `int` and `float` accept more than the server does (blanks, ``_``, ``+``, other scripts'
digits) and print differently, so nothing else in the package may call them on bytes from a client.
The server itself has several readers, and which one a command uses shows in what it accepts:

| function                 | used by                                  | hexadecimal | ``1e400`` | ``''`` |
| ------------------------ | ---------------------------------------- | ----------- | --------- | ------ |
| `parse_int`              | every integer argument and INCR          | no          | no        | no     |
| `parse_unsigned`         | cursors of scans, parts of stream ids    | no          | no        | no     |
| `parse_float`            | scores, weights, coordinates             | no          | no        | no     |
| `parse_bound`            | ends of score ranges, ``(`` allowed      | no          | infinity  | 0      |
| `parse_long_double`      | INCRBYFLOAT, HINCRBYFLOAT                | yes         | yes       | no     |
| `parse_timeout_ms`       | timeouts of blocking commands            | yes         | yes       | no     |

`format_double` is the text of a score in both protocols (`format_double_17` in ZSCAN of a large set),
`format_decimals` that of a coordinate,
`format_long_double` that of INCRBYFLOAT. A parser returns None for what the server refuses; the caller
knows the error text. To add a number format, find out from a live server what it accepts and give it a
name of its own here.
"""

from __future__ import annotations

import math
import re
from functools import cache, lru_cache

__all__ = [
    "LLONG_MAX",
    "LLONG_MIN",
    "LongDouble",
    "add_long_double",
    "format_decimals",
    "format_double",
    "format_double_17",
    "format_long_double",
    "parse_bound",
    "parse_float",
    "parse_int",
    "parse_long_double",
    "parse_score",
    "parse_timeout_ms",
    "parse_unsigned",
]

LLONG_MAX = (1 << 63) - 1
LLONG_MIN = -(1 << 63)
ULLONG_MAX = (1 << 64) - 1
_INF = math.inf


# -- integers ----------------------------------------------------------------------------------


def parse_int(text: bytes) -> int | None:
    """The signed 64-bit integer written by ``text``, or None. Only the canonical form counts."""
    if text.isdigit():
        if len(text) < 19:
            return int(text) if text >= b"1" or text == b"0" else None
        if len(text) > 19 or text[0] == 48:
            return None
        number = int(text)
        return number if number <= LLONG_MAX else None
    if text[:1] != b"-" or len(text) > 20 or not text[1:].isdigit() or text[1] == 48:
        return None
    number = int(text)
    return number if number >= LLONG_MIN else None


_UNSIGNED = re.compile(rb"[ \t\n\v\f\r]*([+-]?)(\d+)\Z")


def parse_unsigned(text: bytes) -> int | None:
    """The 64-bit integer without sign written by ``text``, or None.

    What is no canonical signed integer is read by C's strtoull: blanks in front, leading zeros and a sign pass, and
    a negative number wraps round. A canonical negative number is refused.
    """
    if text.isdigit() and len(text) < 20:
        return int(text)
    match = _UNSIGNED.match(text)
    if match is None or (number := int(match[2])) > ULLONG_MAX or (parse_int(text) or 0) < 0:
        return None
    return -number & ULLONG_MAX if match[1] == b"-" else number


# -- doubles: reading --------------------------------------------------------------------------

_INFINITIES = {
    sign + word: -_INF if sign == b"-" else _INF
    for sign in (b"", b"+", b"-")
    for word in (b"inf", b"infinity")
}
_NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z")


def parse_float(text: bytes) -> float | None:
    """The double written by ``text``, or None: no blanks, no nan, and nothing that over- or underflows."""
    if text.isdigit() and len(text) < 300:
        return float(text)
    try:
        number = float(text)
    except ValueError:
        return None
    if number - number != 0.0:
        return _INFINITIES.get(text.lower())
    if text[0] <= 32 or text[-1] <= 32 or b"_" in text:
        return None
    if number == 0.0 and _has_nonzero_digit(text):
        return None
    return number


parse_score = parse_float


def _has_nonzero_digit(text: bytes) -> bool:
    """Whether the part before the exponent holds a digit other than 0."""
    return bool(text.lower().partition(b"e")[0].strip(b"+-.0").replace(b".", b"").strip(b"0"))


def parse_bound(text: bytes) -> tuple[float, bool] | None:
    """One end of a score range: the number and whether it is excluded (``(`` in front), or None."""
    exclusive = text[:1] == b"("
    if exclusive:
        text = text[1:]
    number = parse_float(text)
    if number is None:
        text = text.partition(b"\0")[0]
        if text and not _NUMBER.match(text):
            number = _INFINITIES.get(text.lower())
            return None if number is None else (number, exclusive)
        number = float(text) if text else 0.0
    return number, exclusive


# -- doubles: writing --------------------------------------------------------------------------

_EXACT_LIMIT = float(1 << 62)
_TENS: list[int] = [10**power for power in range(400)]
_HALF = 1 << 63
_TWO_64 = float(1 << 64)
_MIN_NORMAL = 2.2250738585072014e-308


def format_double(number: float) -> bytes:
    """``number`` as the server prints a score: nearly always the shortest text that reads back.

    "Nearly", because the server uses the Grisu2 algorithm, which misses the shortest digits of about
    one double in 200; `_grisu_digits` makes the same digits.
    """
    if -_EXACT_LIMIT <= number <= _EXACT_LIMIT:
        whole = int(number)
        if whole == number:
            return b"%d" % whole if whole or math.copysign(1.0, number) > 0 else b"-0"
    elif number - number != 0.0:
        return b"nan" if number != number else b"inf" if number > 0 else b"-inf"
    return _format_fraction(number)


@lru_cache(maxsize=8192)
def _format_fraction(number: float) -> bytes:
    """`format_double` for what is neither a moderate integer nor special."""
    text = repr(number)
    if len(text) < 18 and "e" not in text and _is_plain(number, len(text) - text.index(".") - 1):
        return text.encode()
    digits, power = _grisu_digits(abs(number), text)
    if number < 0:
        return b"-" + _place_digits(digits, power, 17).encode()
    return _place_digits(digits, power, 18).encode()


def _is_plain(number: float, decimals: int) -> bool:
    """Whether the server surely prints what `repr` does, ``decimals`` digits after the point: most short numbers.

    Grisu2 errs by less than 3 units where half of the double's interval has at least 512, and two decimals with
    that many places are at least 200 apart. So it finds the digits of `repr` if what that rounded away is clear of
    the interval's end and of half the distance to the next decimal.
    """
    if decimals > 6 and not 0.001 <= abs(number) < 10000.0:
        return False  # `_place_digits` may choose the scientific form
    numerator, denominator = number.as_integer_ratio()
    tens = _TENS[decimals]
    rest = numerator * tens & (denominator - 1)  # the denominator is a power of two
    rest = min(rest, denominator - rest)
    return rest <= 0.4 * denominator and rest <= 0.48 * math.ulp(number) * denominator * tens


def format_double_17(number: float) -> bytes:
    """``number`` with 17 significant digits, as ZSCAN prints the scores of a set that is not compact."""
    return b"%.17g" % number


def format_decimals(number: float) -> bytes:
    """``number`` with up to 17 decimals, as coordinates are printed."""
    text = (b"%.17f" % number).rstrip(b"0").rstrip(b".")
    return text if text != b"-0" else b"0"


def _place_digits(digits: str, power: int, most: int) -> str:
    """Write ``digits`` * 10**``power`` with the server's choice between plain and scientific form."""
    count = len(digits)
    exponent = power + count - 1
    if power >= 0:
        if exponent < count + 7:
            return digits + "0" * power
    elif power > -7 or -4 < exponent < 4:
        point = count + power
        if point <= 0:
            return "0." + "0" * -point + digits
        return digits[:point] + "." + digits[point:]
    digits = digits[:most]
    head = digits[0] + "." + digits[1:] if len(digits) > 1 else digits
    return f"{head}e{exponent:+d}"


def _grisu_digits(number: float, text: str) -> tuple[str, int]:
    """Digits and the power of ten of the last one, as Grisu2 finds them for a positive finite double.

    Grisu2 scales the interval of decimals that read back as ``number`` by a cached power of ten with
    64-bit rounding, narrows it by one unit at both ends, and stops at the first digit that falls in.
    It can stop no earlier than the shortest text does, so the search starts at the last digit of
    ``text``, its `repr`, and goes one digit finer while that misses the narrowed interval.
    """
    mantissa, exponent = math.frexp(number)
    factor, scale, power = _scaling(exponent)
    middle = int(mantissa * _TWO_64)
    if number >= _MIN_NORMAL:
        gap = 1 << 10
        gap_below = gap if mantissa != 0.5 or number == _MIN_NORMAL else gap >> 1
    else:
        gap = gap_below = 1 << (-1011 - exponent)
    upper = ((middle + gap) * factor + _HALF >> 64) - 1
    delta = upper - ((middle - gap_below) * factor + _HALF >> 64) - 1
    above = upper - (middle * factor + _HALF >> 64)
    kappa = _last_digit(text) - power
    while True:
        if kappa >= 0:
            unit = _TENS[kappa] << scale
            quotient, rest = divmod(upper, unit)
            if rest <= delta:
                break
        else:
            fine = _TENS[-kappa]
            unit = 1 << scale
            quotient, rest = divmod(upper * fine, unit)
            if rest < delta * fine:
                delta *= fine
                above *= fine
                break
        kappa -= 1
    while (
        rest < above and delta - rest >= unit and (rest + unit < above or above - rest > rest + unit - above)
    ):
        quotient -= 1
        rest += unit
    return str(quotient), kappa + power


def _last_digit(text: str) -> int:
    """The power of ten of the last digit that is not 0 in a `repr` of a float."""
    text, _, exponent = text.partition("e")
    whole, _, decimals = text.partition(".")
    shift = int(exponent) if exponent else 0
    if decimals and decimals != "0":
        return shift - len(decimals)
    return shift + len(whole) - len(whole.rstrip("0"))


@cache
def _scaling(exponent: int) -> tuple[int, int, int]:
    """What Grisu2 multiplies doubles of a binary exponent by: a 64-bit factor that stands for a power
    of ten, the number of binary places of the product, and the negative of that power.

    The server has every eighth power from 10**-348 on and takes the one that leaves 32 to 60 places.
    """
    top = exponent - 64
    index = (int(-(top + 87) * 0.30102999566398114) + 348) // 8
    while True:
        factor, factor_exponent = _power_of_ten(8 * index - 348)
        places = -(top + factor_exponent + 64)
        if places > 60:
            index += 1
        elif places < 32:
            index -= 1
        else:
            return factor, places, 348 - 8 * index


def _power_of_ten(power: int) -> tuple[int, int]:
    """10**power as (64-bit factor, binary exponent), rounded to nearest."""
    size = 10 ** abs(power)
    if power >= 0:
        exponent = size.bit_length() - 64
        factor = size << -exponent if exponent <= 0 else (size >> exponent - 1) + 1 >> 1
    else:
        exponent = -size.bit_length() - 63
        factor = (1 << 1 - exponent) // size + 1 >> 1
    if factor >> 64:
        return factor >> 1, exponent + 1
    return factor, exponent


# -- long doubles ------------------------------------------------------------------------------
#
# The server's `long double` is x86's 80-bit format: 64 bits of mantissa, exponents down to -16445.

LongDouble = tuple[int, int]
"""A finite long double ``mantissa * 2**exponent`` with at most 64 bits of mantissa; zero is (0, 0)."""

_MIN_EXPONENT = -16445
_MAX_BITS = 16384
_MAX_TEXT = 5119
_DECIMAL = re.compile(rb"([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?\Z")
_HEX = re.compile(rb"([+-]?)0[xX]([0-9a-fA-F]*)(?:\.([0-9a-fA-F]*))?(?:[pP]([+-]?\d+))?\Z")


def parse_long_double(text: bytes) -> LongDouble | float | None:
    """The long double written by ``text`` (as C's strtold reads it), an infinity, or None."""
    if text.isdigit() and len(text) < 19:
        return (int(text), 0)
    if not text or len(text) > _MAX_TEXT:
        return None
    match = _DECIMAL.match(text)
    if match is not None:
        sign, whole, decimals, exponent = match.groups(b"")
        if not whole and not decimals:
            return None
        power = _clamped(exponent) - len(decimals)
        mantissa = _int_of_digits(whole + decimals)
        if mantissa == 0:
            return (0, 0)
        if power + len(whole) + len(decimals) < -5100:
            return None
        if power > 5100:
            return None
        value = _rounded(mantissa * 10**power, 1) if power >= 0 else _rounded(mantissa, 10**-power)
        return _signed(value, sign)
    match = _HEX.match(text)
    if match is None:
        return _INFINITIES.get(text.lower())
    sign, whole, decimals, exponent = match.groups(b"")
    if not whole and not decimals:
        return None
    mantissa = int(whole + decimals, 16)
    if mantissa == 0:
        return (0, 0)
    power = _clamped(exponent) - 4 * len(decimals)
    if abs(power) > 60000:
        return None
    value = _rounded(mantissa << power, 1) if power >= 0 else _rounded(mantissa, 1 << -power)
    return _signed(value, sign)


def _clamped(exponent: bytes) -> int:
    """An exponent as an int, cut to a range in which only its being huge matters."""
    if not exponent:
        return 0
    digits = exponent.lstrip(b"+-0")
    if len(digits) > 6:
        return -1_000_000 if exponent[:1] == b"-" else 1_000_000
    return -int(digits or b"0") if exponent[:1] == b"-" else int(digits or b"0")


def _int_of_digits(digits: bytes) -> int:
    """``int(digits)`` without the interpreter's limit on the number of digits."""
    if len(digits) <= 4000:
        return int(digits)
    return int(digits[:-4000]) * 10**4000 + int(digits[-4000:])


def _rounded(numerator: int, denominator: int) -> LongDouble | None:
    """The long double nearest to a positive ratio, ties to even; None if it over- or underflows."""
    exponent = max(numerator.bit_length() - denominator.bit_length() - 64, _MIN_EXPONENT)
    while True:
        if exponent >= 0:
            quotient, rest = divmod(numerator, denominator << exponent)
            twice, whole = rest * 2, denominator << exponent
        else:
            quotient, rest = divmod(numerator << -exponent, denominator)
            twice, whole = rest * 2, denominator
        if quotient.bit_length() <= 64:
            break
        exponent += 1
    if twice > whole or (twice == whole and quotient & 1):
        quotient += 1
    if quotient == 0 or quotient.bit_length() + exponent > _MAX_BITS:
        return None
    if quotient.bit_length() > 64:
        quotient >>= 1
        exponent += 1
    return (quotient, exponent)


def _signed(value: LongDouble | None, sign: bytes) -> LongDouble | None:
    if value is not None and sign == b"-":
        return (-value[0], value[1])
    return value


def add_long_double(left: bytes, right: bytes) -> bytes | None:
    """The text of ``left`` + ``right`` in 80-bit arithmetic; None if either is no finite number or the
    sum overflows."""
    a = parse_long_double(left)
    b = parse_long_double(right)
    if not isinstance(a, tuple) or not isinstance(b, tuple):
        return None
    total = sum_long_double(a, b)
    return None if total is None else format_long_double(total)


def sum_long_double(a: LongDouble, b: LongDouble) -> LongDouble | None:
    """a + b rounded to 64 bits of mantissa; None on overflow."""
    exponent = min(a[1], b[1])
    total = (a[0] << (a[1] - exponent)) + (b[0] << (b[1] - exponent))
    if total == 0:
        return (0, 0)
    size = abs(total)
    value = _rounded(size << exponent, 1) if exponent >= 0 else _rounded(size, 1 << -exponent)
    if value is None or total > 0:
        return value
    return (-value[0], value[1])


def format_long_double(value: LongDouble) -> bytes:
    """``value`` as INCRBYFLOAT prints it: 17 decimals, trailing zeros cut, never an exponent."""
    mantissa, exponent = value
    size = abs(mantissa)
    if exponent >= 0:
        text = _digits_of_int(size << exponent)
    else:
        scaled = size * 10**17
        quotient = scaled >> -exponent
        rest = scaled & ((1 << -exponent) - 1)
        half = 1 << (-exponent - 1)
        if rest > half or (rest == half and quotient & 1):
            quotient += 1
        text = _digits_of_int(quotient).rjust(18, "0")
        text = (text[:-17] + "." + text[-17:]).rstrip("0").rstrip(".")
    if mantissa < 0 and text != "0":
        text = "-" + text
    return text.encode()


def _digits_of_int(number: int) -> str:
    """``str(number)`` without the interpreter's limit on the number of digits."""
    if number.bit_length() < 13000:
        return str(number)
    head, tail = divmod(number, 10**3900)
    return str(head) + str(tail).rjust(3900, "0")


def parse_timeout_ms(text: bytes) -> int | None:
    """A timeout in seconds as milliseconds rounded up; None if it is no number.

    May be negative or beyond 64 bits (infinities give +-2**80): the caller answers for both.
    """
    value = parse_long_double(text)
    if value is None:
        return None
    if isinstance(value, float):
        return 1 << 80 if value > 0 else -(1 << 80)
    product = _times_1000(value)
    mantissa, exponent = product
    return mantissa << exponent if exponent >= 0 else -((-mantissa) >> -exponent)


def _times_1000(value: LongDouble) -> LongDouble:
    """value * 1000 rounded to a long double."""
    mantissa, exponent = value
    if mantissa == 0:
        return value
    size = abs(mantissa) * 1000
    rounded = _rounded(size << exponent, 1) if exponent >= 0 else _rounded(size, 1 << -exponent)
    if rounded is None:
        rounded = (1, 80) if exponent >= 0 else (0, 0)
    return rounded if mantissa > 0 else (-rounded[0], rounded[1])
