"""cjson, cmsgpack, struct and bit against the live server, with generated input."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.live import Connection

from .both import Both
from .test_values import literal

# The order of an object's members is not defined: one member at most.
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=1),
    max_leaves=12,
)
PIECES = st.sampled_from(
    ["{", "}", "[", "]", ",", ":", '"', '"a"', "1", "-1", "0x1F", "1e5", "1.", ".5", "-", "+1", "nan", "-inf",
     "Infinity", "true", "false", "null", "tru", "nul", " ", "\n", "\t", "\\", "\\u0041", "\\ud83d\\ude00", "\\ud83d",
     "\\x", "\\n", "\0", "/", "é", "01"]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=8).map("".join)
SHOW = """
    local function show(v, depth)
      if type(v) ~= 'table' then return type(v) .. ':' .. tostring(v) end
      if depth > 20 then return 'deep' end
      local t = {}
      for k, x in pairs(v) do t[#t + 1] = show(k, depth + 1) .. '=' .. show(x, depth + 1) end
      table.sort(t)
      return '{' .. table.concat(t, ',') .. '}'
    end
"""


@pytest.mark.slow
def test_cjson_round_trips(live: Connection) -> None:
    both = Both(live)

    @given(JSON, st.booleans())
    @settings(max_examples=200)
    def check(document: object, ascii_only: bool) -> None:
        text = json.dumps(document, ensure_ascii=ascii_only)
        both.eval("return cjson.encode(cjson.decode(ARGV[1]))", text)
        both.eval(SHOW + "return show(cjson.decode(ARGV[1]), 0)", text)

    check()


@pytest.mark.slow
def test_cjson_on_anything(live: Connection) -> None:
    both = Both(live)

    @given(TEXTS | st.binary(max_size=12).map(lambda raw: raw.decode("latin-1")))
    @settings(max_examples=500)
    def check(text: str) -> None:
        both.eval(SHOW + "return show(cjson.decode(ARGV[1]), 0)", text)
        both.eval("return {pcall(cjson.decode, ARGV[1])}", text)

    check()


@pytest.mark.slow
def test_cjson_strict_numbers(live: Connection) -> None:
    both = Both(live)
    both.eval("cjson.decode_invalid_numbers(false) return 1")

    @given(TEXTS)
    @settings(max_examples=200)
    def check(text: str) -> None:
        both.eval(SHOW + "return show(cjson.decode(ARGV[1]), 0)", text)

    check()
    both.check("SCRIPT", "FLUSH")


NUMBERS = (
    st.just("-0")
    | st.integers(-(2**66), 2**66).map(str)
    | st.floats(allow_nan=False).map(lambda x: repr(x).replace("inf", "1/0"))
)
LUA = st.recursive(
    NUMBERS | st.binary(max_size=40).map(literal) | st.sampled_from(["true", "false", "nil", "cjson.null"]),
    lambda inner: (
        st.lists(inner, max_size=5).map(lambda items: "{" + ",".join(items) + "}")
        | st.tuples(NUMBERS | st.binary(max_size=4).map(literal), inner).map(
            lambda pair: f"{{[{pair[0]}]={pair[1]}}}"
        )
    ),
    max_leaves=12,
)


@pytest.mark.slow
def test_encoders(live: Connection) -> None:
    both = Both(live)

    @given(LUA)
    @settings(max_examples=300)
    def check(value: str) -> None:
        both.eval(f"return cjson.encode({value})")
        both.eval(f"return cmsgpack.pack({value})")
        both.eval(SHOW + f"return show(cmsgpack.unpack(cmsgpack.pack({value})), 0)")

    check()


MESSAGE_PACK = st.lists(
    st.sampled_from([bytes([code]) for code in (*range(0x80, 0xA4), *range(0xC0, 0xE1), 0, 1, 0x7F, 0xFF)])
    | st.binary(max_size=3),
    max_size=8,
).map(b"".join)


@pytest.mark.slow
def test_cmsgpack_on_anything(live: Connection) -> None:
    both = Both(live)

    @given(MESSAGE_PACK)
    @settings(max_examples=400)
    def check(raw: bytes) -> None:
        both.eval(SHOW + "local t = {cmsgpack.unpack(ARGV[1])} return show(t, 0)", raw)
        both.eval(SHOW + "local t = {cmsgpack.unpack_limit(ARGV[1], 2, 1)} return show(t, 0)", raw)

    check()


OPTIONS = st.sampled_from(
    ["b", "B", "h", "H", "l", "L", "T", "i", "I", "i1", "I3", "i8", "I32", "i33", "s", "c3", "c0", "c", "f", "d", "x",
     "<", ">", "!", "!4", "!3", " ", "z"]
)  # fmt: skip


@pytest.mark.slow
def test_struct(live: Connection) -> None:
    both = Both(live)

    @given(st.lists(OPTIONS, max_size=5).map("".join), st.lists(NUMBERS | st.just('"abcd"'), min_size=5, max_size=5),
           st.binary(max_size=40))  # fmt: skip
    @settings(max_examples=400)
    def check(options: str, values: list[str], raw: bytes) -> None:
        both.eval(f"return struct.pack('{options}',{','.join(values)})")
        both.eval(SHOW + f"return show({{struct.unpack('{options}', ARGV[1])}}, 0)", raw)
        both.eval(f"return struct.size('{options}')")

    check()


@pytest.mark.slow
def test_bit(live: Connection) -> None:
    both = Both(live)
    names = [
        "tobit",
        "bnot",
        "bswap",
        "tohex",
        "band",
        "bor",
        "bxor",
        "lshift",
        "rshift",
        "arshift",
        "rol",
        "ror",
    ]

    @given(
        st.sampled_from(names),
        st.lists(NUMBERS | st.sampled_from(["0", "-1", "31", "32", "2.5"]), min_size=2, max_size=3),
    )
    @settings(max_examples=400)
    def check(name: str, values: list[str]) -> None:
        both.eval(f"return bit.{name}({','.join(values)})")

    check()
