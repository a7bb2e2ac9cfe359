"""Glob patterns: examples, a naive matcher, and the live server's KEYS and CONFIG GET."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emuredis import patterns
from tests.support.live import Connection, LiveServer

_PIECES = rb"* ** ? a b c - [ ] ^ \ [a-c] [^a] [c-a] [a\-c] []a] [^] [a-] [\]]"
_HIGH_PIECES = b"[a-\xff] \xff \x80 [\x80-\xff] [\x01-\x90] \0"
PIECES = st.sampled_from((_PIECES + b" " + _HIGH_PIECES).split(b" "))
PATTERNS = st.lists(PIECES, max_size=8).map(b"".join) | st.binary(max_size=6)
TEXTS = st.lists(st.sampled_from([bytes([c]) for c in b"aabbc-]^\\[\x80\xff\x00\x01d"]), max_size=8).map(
    b"".join
)


@pytest.mark.parametrize(
    ("pattern", "text", "nocase", "expected"),
    [
        (b"*", b"", False, False),
        (b"*", b"a", False, True),
        (b"**", b"a", False, True),
        (b"", b"", False, True),
        (b"", b"a", False, False),
        (b"h?llo", b"hello", False, True),
        (b"h*llo", b"hllo", False, True),
        (b"h[ae]llo", b"hillo", False, False),
        (b"h[^e]llo", b"hallo", False, True),
        (b"h[a-b]llo", b"hbllo", False, True),
        (b"h[b-a]llo", b"hbllo", False, True),
        (b"a\\*b", b"a*b", False, True),
        (b"a\\*b", b"axb", False, False),
        (b"a\\", b"a\\", False, True),
        (b"[a", b"a", False, True),
        (b"[", b"[", False, False),
        (b"[^", b"x", False, True),
        (b"ABC*", b"abcdef", True, True),
        (b"[A-C]x", b"bX", True, True),
        (b"[Z-a]", b"z", True, False),
        (b"a*a*b", b"aaab", False, True),
        (b"ab*ba", b"aba", False, False),
        (b"*ab*ab*", b"abab", False, True),
        (b"*ab*ab*", b"aba", False, False),
    ],
)
def test_examples(pattern: bytes, text: bytes, nocase: bool, expected: bool) -> None:
    assert patterns.match(pattern, text, nocase) is expected


def test_only_a_pattern_without_special_bytes_is_literal() -> None:
    assert patterns.literal_prefix(b"abc") == b"abc"
    for special in (b"a*", b"?", b"[a]", b"a\\b"):
        assert patterns.literal_prefix(special) is None


def test_no_pattern_is_exponential() -> None:
    text = b"a" * 2000
    assert not patterns.match(b"a*" * 500 + b"b", text)
    assert patterns.match(b"*a" * 999 + b"*", text)
    assert not patterns.match(b"*[ab]*?" * 300 + b"c", text)


def test_too_many_stars_match_nothing(live: Connection) -> None:
    text = b"a" * 1100
    live.call("SET", text, "")
    for stars in (999, 1000, 1001, 1002):
        for end in (b"", b"*", b"a"):
            pattern = b"*a" * stars + end
            assert bool(live.call("KEYS", pattern).value) == patterns.match(pattern, text), (stars, end)


def naive(tokens: list[frozenset[int] | None], text: bytes) -> bool:
    if not tokens:
        return not text
    if tokens[0] is None:
        return any(naive(tokens[1:], text[at:]) for at in range(len(text) + 1))
    return bool(text) and text[0] in tokens[0] and naive(tokens[1:], text[1:])


def test_all_means_all_to_keys_and_scan(live: Connection) -> None:
    live.call("SADD", "s", "", "a")
    for pattern in (b"*", b"**", b""):
        found = live.call("SSCAN", "s", 0, "MATCH", pattern).value[1].value
        assert sorted(frame.value for frame in found) == [
            text for text in (b"", b"a") if patterns.compile(pattern)(text)
        ]


@pytest.mark.slow
@settings(max_examples=400)
@given(pattern=PATTERNS, text=TEXTS, nocase=st.booleans())
def test_segments_match_as_the_tokens_do(pattern: bytes, text: bytes, nocase: bool) -> None:
    expected = naive(patterns._tokens(pattern, nocase), text) if text else not pattern
    assert patterns.match(pattern, text, nocase) == expected


@pytest.fixture(scope="module")
def server(live_server: LiveServer) -> Iterable[Connection]:
    connection = live_server.connect()
    yield connection
    connection.call("FLUSHALL")
    connection.close()


@pytest.mark.slow
@settings(max_examples=300)
@given(pattern=PATTERNS, texts=st.sets(TEXTS, min_size=1, max_size=8))
def test_keys_are_the_servers(server: Connection, pattern: bytes, texts: set[bytes]) -> None:
    server.call("FLUSHALL")
    ordered = sorted(texts)
    server.call("MSET", *[part for text in ordered for part in (text, b"")])
    got = sorted(frame.value for frame in server.call("KEYS", pattern).value)
    assert got == [text for text in ordered if patterns.compile(pattern)(text)], pattern
    if pattern != b"*":
        assert got == [text for text in ordered if patterns.match(pattern, text)], pattern


_NAME_PIECES = rb"* * ? MAX max - e E [A-M] [a-m] [^A-M] [Z-a] [a-Z] [E] [\E] \e \E [m lazy [M-a] size [_-e]"
NAME_PIECES = st.sampled_from(_NAME_PIECES.split(b" "))


@pytest.mark.slow
@settings(max_examples=200)
@given(pattern=st.lists(NAME_PIECES, min_size=1, max_size=5).map(b"".join))
def test_patterns_without_case_are_the_servers(server: Connection, pattern: bytes) -> None:
    names = [frame.value for frame in server.call("CONFIG", "GET", "*").value[::2]]
    if not set(b"*?[") & set(pattern):
        return  # looked up by name, not matched
    got = [frame.value for frame in server.call("CONFIG", "GET", pattern).value[::2]]
    assert sorted(got) == sorted(name for name in names if patterns.match(pattern, name, True)), pattern
