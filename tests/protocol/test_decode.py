"""Requests: whole commands come out whatever way the bytes are cut, and all three readers agree.

What the texts of the errors are is not said here: `tests.server.test_malformed` asks the live server.
"""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from emuredis.protocol import decode
from emuredis.protocol.decode import INLINE_MAX, Parser, split_inline
from tests.support.resp import request

HAVE_HIREDIS = decode.hiredis is not None
READERS = [False, True] if HAVE_HIREDIS else [False]

VALUES = st.one_of(
    st.binary(max_size=12),
    st.sampled_from(
        [b"", b"\r\n", b"\r", b"\n", b"a\r\nb", b"$1\r\na\r\n", b"*1\r\n", b"+OK", b"=4", b"(5", b"*99999"]
    ),
    st.integers(0, 3000).map(lambda size: b"x" * size),
)
COMMANDS = st.lists(st.lists(VALUES, min_size=1, max_size=6), max_size=30)
CUTS = st.lists(st.integers(1, 400), max_size=30)

# Pieces of requests, so that random sequences of them are often nearly right.
_PIECES = [
    b"*1\r\n",
    b"*2\r\n",
    b"*0\r\n",
    b"*-1\r\n",
    b"*3\r\n",
    b"*99999\r\n",
    b"*x\r\n",
    b"*1\n",
    b"*2147483648\r\n",
    b"$4\r\n",
    b"$0\r\n",
    b"$1\r\n",
    b"$-1\r\n",
    b"$04\r\n",
    b"$4\n",
    b"$600000000\r\n",
    b"PING",
    b"a",
    b"\r\n",
    b"\r",
    b"\n",
    b"\0",
    b"PING\r\n",
    b"$4\r\nPING\r\n",
    b"*1\r\n$4\r\nPING\r\n" * 12,
    b":1\r\n",
    b"+PING\r\n",
    b"=8\r\ntxt:PING\r\n",
    b"(12\r\n",
    b"~1\r\n",
    b"%1\r\n",
    b"|1\r\n",
    b">1\r\n",
    b"#t\r\n",
    b"#f\r\n",
    b",1.5\r\n",
    b"_\r\n",
    b"-x\r\n",
    b"!3\r\nabc\r\n",
    b"ECHO 'a b' \"c\\x41\"\r\n",
    b"ECHO 'a\r\n",
    b"$2\r\na\r\r\n",
    b"$1\r\n\r\n\r\n",
    b"\xff",
    b" ",
]
JUNK = st.lists(st.sampled_from(_PIECES), max_size=14).map(b"".join)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [piece for piece in [*pieces, data] if piece]


def read(pieces: list[bytes], hiredis: bool, **options: bool) -> tuple[list[list[bytes]], str | None]:
    parser = Parser(hiredis, **options)
    commands = [command for piece in pieces for command in parser.feed(piece)]
    if parser.restricted:
        while more := parser.feed(b""):
            commands += more
    return commands, None if parser.error is None else parser.error.message


@pytest.mark.slow
@given(COMMANDS, CUTS)
def test_commands_come_out_as_they_went_in(commands: list[list[bytes]], sizes: list[int]) -> None:
    data = b"".join(map(request, commands))
    for reader in READERS:
        assert read(cut(data, sizes), reader) == (commands, None)


@pytest.mark.slow
@given(JUNK, CUTS)
@example(b"*2\r\n$1\r\na\r\n+PING\r\n" * 30, [])
@example(b"*1\r\n$4\r\nPING\r\n" * 30 + b"*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n", [])
@example(b"*1\r\n$4\r\nPING\r\n" * 30 + b"~1\r\n$4\r\nPING\r\n", [])
@example(b"*1\r\n$4\r\nPING\r\n" * 30 + b"*2\r\n$4\r\nPING\r\n", [])
@example(b"*1\r\n$4\r\nPING\r\n" * 30 + b"*2\r\n$4\r\nPING\r\n$2\r\na\r\r\n", [])
@example(b"*1\r\n$4\r\nPING\r\n" * 30 + b"*1\r\n*1\r\n$4\r\nPING\r\n", [])
@example(b"*1\r\n$4\r\nPING\r\n" * 30 + b"|1\r\n+a\r\n+b\r\n*1\r\n$4\r\nPING\r\n", [])
@example(b"*1\r\n$5\r\nPING\r\nX*1\r\n$4\r\nPING\r\n", [])
@example(b"*0\r\n*1\r\n$4\r\nPING\r\n", [])
@example(b">1\r\n$4\r\nPING\r\n", [])
@example(b"%1\r\n$4\r\nPING\r\n$1\r\na\r\n", [])
def test_readers_agree_on_anything_cut_anywhere(data: bytes, sizes: list[int]) -> None:
    expected = read(
        [data[at : at + 1] for at in range(len(data))], False
    )  # never more than `_read_one` can do
    for reader in READERS:
        assert read([data], reader) == expected
        assert read(cut(data, sizes), reader) == expected
        # Long enough for the fast readers to be tried at all.
        many = b"*1\r\n$4\r\nPING\r\n" * 40
        assert read([many + data], reader) == ([[b"PING"]] * 40 + expected[0], expected[1])


@given(JUNK, CUTS)
def test_a_restricted_parser_gives_one_command_at_a_time(data: bytes, sizes: list[int]) -> None:
    parser = Parser(restricted=True)
    commands: list[list[bytes]] = []
    for piece in [*cut(data, sizes), b""]:
        found = parser.feed(piece)
        while found:
            assert len(found) == 1
            commands += found
            found = parser.feed(b"")
    assert (commands, parser.error and parser.error.message) == read([data], False, restricted=True)


def test_a_restricted_parser_has_small_limits_until_it_is_told_otherwise() -> None:
    auth = request([b"AUTH", b"secret"])
    long = request([b"PING"] * 11)
    parser = Parser(restricted=True)
    assert parser.feed(auth + long) == [[b"AUTH", b"secret"]]
    parser.restricted = False
    assert parser.feed(b"") == [[b"PING"] * 11]

    parser = Parser(restricted=True)
    assert parser.feed(auth + long) == [[b"AUTH", b"secret"]]
    assert parser.feed(b"") == []
    assert (
        parser.error is not None
        and parser.error.message == "ERR Protocol error: unauthenticated multibulk length"
    )


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "start", [b"", request([b"ECHO", b"a\r\nb"]), b"PING\r\n", b"*2\r\n$4\r\nECHO\r\n$4\r\n"]
)
def test_a_pipeline_cut_in_two_at_every_byte(reader: bool, start: bytes) -> None:
    data = start + request([b"SET", b"key", b"value"]) * 20 + request([b"GET", b"k" * 11]) * 20
    expected = read([data], False)
    for at in range(1, len(data)):
        assert read([data[:at], data[at:]], reader) == expected, at


@pytest.mark.parametrize("reader", READERS)
def test_a_large_value_in_small_pieces_is_joined_once(reader: bool) -> None:
    value = bytes(range(256)) * 8192
    data = request([b"SET", b"k", value]) + request([b"PING"]) * 50
    parser = Parser(reader)
    commands = []
    for at in range(0, len(data), 1000):
        commands += parser.feed(data[at : at + 1000])
        if not commands:
            assert parser.held == at + len(data[at : at + 1000])
    assert commands == [[b"SET", b"k", value]] + [[b"PING"]] * 50
    assert parser.held == 0


@pytest.mark.parametrize("reader", READERS)
def test_many_arguments_over_many_reads(reader: bool) -> None:
    argv = [b"MSET", *(b"%d" % number for number in range(20_000))]
    data = request(argv) * 2
    assert read([data[at : at + 777] for at in range(0, len(data), 777)], reader) == ([argv, argv], None)


@pytest.mark.parametrize("reader", READERS)
def test_nothing_is_reserved_for_what_a_header_claims(reader: bool) -> None:
    parser = Parser(reader)
    assert parser.feed(b"*1\r\n$4\r\nPING\r\n" * 40 + b"*2147483647\r\n$536870912\r\n") == [[b"PING"]] * 40
    assert parser.error is None
    assert parser.held < 1000


@pytest.mark.parametrize("reader", READERS)
def test_after_an_error_input_is_ignored(reader: bool) -> None:
    parser = Parser(reader)
    assert parser.feed(b"PING\r\n*x\r\nPING\r\n") == [[b"PING"]]
    assert parser.error is not None
    assert parser.feed(b"PING\r\n" * 1000) == []
    assert parser.held < 1000


@pytest.mark.parametrize(
    "start, text",
    [
        (b"A", "too big inline request"),
        (b"\0", "too big inline request"),
        (b"*1", "too big mbulk count string"),
        (b"*1\r\n$", "too big bulk count string"),
        (b"*1\r\n", "too big bulk count string"),
    ],
)
def test_lines_have_a_limit_that_does_not_depend_on_the_cut(start: bytes, text: str) -> None:
    line = start[start.rfind(b"\n") + 1 :]
    fits, too_long = (start + b"1" * (INLINE_MAX + more - len(line)) for more in (0, 1))
    assert read([fits], False)[1] is None
    expected = "ERR Protocol error: " + text
    assert read([too_long], False)[1] == expected
    assert read([too_long + b"\r\n"], False)[1] == expected
    assert read([fits, b"1", b"\r\n"], False)[1] == expected


def test_a_value_longer_than_allowed_is_refused_at_its_header() -> None:
    parser = Parser(max_bulk=1000)
    assert parser.feed(b"*2\r\n$4\r\nECHO\r\n$1000\r\n") == []
    assert parser.error is None
    parser = Parser(max_bulk=1000)
    assert parser.feed(b"*2\r\n$4\r\nECHO\r\n$1001\r\n") == []
    assert parser.error is not None and parser.error.message == "ERR Protocol error: invalid bulk length"


@given(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"").replace(b"\0", b"")))
def test_inline_words_never_fail(line: bytes) -> None:
    words = split_inline(line)
    assert words is None or all(word.__class__ is bytes for word in words)


@given(st.lists(st.binary(max_size=10), max_size=5))
def test_quoted_words_come_back(words: list[bytes]) -> None:
    line = b" ".join(b'"' + b"".join(b"\\x%02x" % byte for byte in word) + b'"' for word in words)
    assert split_inline(line) == words


def test_hiredis_can_be_kept_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMUREDIS_PARSER", "python")
    assert Parser()._read_many is decode._read_split
    monkeypatch.delenv("EMUREDIS_PARSER")
    assert Parser()._read_many is (decode._read_hiredis if HAVE_HIREDIS else decode._read_split)
    monkeypatch.setattr(decode, "hiredis", None)
    assert Parser()._read_many is decode._read_split
    with pytest.raises(RuntimeError, match="hiredis is not installed"):
        Parser(hiredis=True)
