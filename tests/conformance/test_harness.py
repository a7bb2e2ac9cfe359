"""The harness itself: that it reads what it says, and that it notices differences."""

from __future__ import annotations

import json

import pytest

from tests.support.resp import Frame, Incomplete, parse, parse_all, request

from .compare import differences, same
from .lines import Variant, parse_text, split_arguments
from .recorded import _as_json, _from_json
from .run import CLOSED, NOTHING, Entry


def frame(data: bytes) -> Frame:
    return parse(data)[0]


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("GET  k", [b"GET", b"k"]),
        (r'SET k "a\x00\r\n\"\\"', [b"SET", b"k", b'a\x00\r\n"\\']),
        (r"SET k 'a\n\'b'", [b"SET", b"k", rb"a\n'b"]),
        ('SET "" x', [b"SET", b"", b"x"]),
        ("EVAL 'a\n b' 0", [b"EVAL", b"a\n b", b"0"]),
        ("SET k é", [b"SET", b"k", "é".encode()]),
    ],
)
def test_arguments(text: str, argv: list[bytes]) -> None:
    assert split_arguments(text) == argv


@pytest.mark.parametrize("text", ['GET "k', "GET 'k", 'GET "k"x'])
def test_unbalanced_quotes(text: str) -> None:
    with pytest.raises(ValueError, match="quote"):
        split_arguments(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("== a\nGET k\n== a\n", "f:3: every block needs a title of its own"),
        ("== a\n@a< GET k", "f:2: receive takes no command"),
        ("== a\n:sleep 3", "f:2: no directive :sleep"),
        ("== a\n~", "f:2: call takes a command"),
    ],
)
def test_bad_lines_are_named(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_text(text, "f")


def test_lines() -> None:
    (block,) = parse_text("# c\n== t\n:protocol 3\n@a> BLPOP k 0\n@a< ~2\n%5 PTTL k\nEVAL 'x\n  y' 0\n", "f")
    assert block.protocols == (3,)
    assert [(line.client, line.action, line.variant.name) for line in block.lines] == [
        ("a", "send", "exact"),
        ("a", "receive", "unordered"),
        ("main", "call", "near"),
        ("main", "call", "exact"),
    ]
    assert block.lines[3].argv == (b"EVAL", b"x\n  y", b"0")


def test_frames_nest_and_may_be_cut_anywhere() -> None:
    data = b"*3\r\n%1\r\n+k\r\n,1.5\r\n$3\r\na\r\n\r\n>2\r\n#t\r\n_\r\n"
    whole = frame(data)
    assert whole.raw == data
    assert [item.kind for item in whole.value] == ["%", "$", ">"]
    for end in range(len(data)):
        with pytest.raises(Incomplete):
            parse(data[:end])
    assert [f.kind for f in parse_all(data + request([b"PING"]))] == ["*", "*"]


@pytest.mark.parametrize(
    ("variant", "want", "got", "agree"),
    [
        (Variant(), b"+OK\r\n", b"+OK\r\n", True),
        (Variant(), b"+OK\r\n", b"$2\r\nOK\r\n", False),
        (Variant("unordered"), b"*2\r\n:1\r\n:2\r\n", b"*2\r\n:2\r\n:1\r\n", True),
        (Variant("unordered"), b"*2\r\n:1\r\n:2\r\n", b"*2\r\n:2\r\n:2\r\n", False),
        (Variant("unordered"), b"*2\r\n:1\r\n:2\r\n", b"~2\r\n:2\r\n:1\r\n", False),
        (Variant("unordered", 2), b"*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n", b"*4\r\n:3\r\n:4\r\n:1\r\n:2\r\n", True),
        (
            Variant("unordered", 2),
            b"*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n",
            b"*4\r\n:2\r\n:1\r\n:3\r\n:4\r\n",
            False,
        ),
        (Variant("unordered"), b"%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n", b"%2\r\n+b\r\n:2\r\n+a\r\n:1\r\n", True),
        (Variant("unordered"), b"%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n", b"%2\r\n+b\r\n:1\r\n+a\r\n:2\r\n", False),
        (Variant("near", 5), b":10\r\n", b":14\r\n", True),
        (Variant("near", 5), b":10\r\n", b":16\r\n", False),
        (Variant("near", 5), b":10\r\n", b"$2\r\n10\r\n", False),
        (Variant("error"), b"-ERR a\r\n", b"-ERR b\r\n", True),
        (Variant("error"), b"-ERR a\r\n", b"-WRONGTYPE a\r\n", False),
        (Variant("error"), b"-ERR a\r\n", b"+ERR a\r\n", False),
        (Variant("kind"), b":1\r\n", b":2\r\n", True),
        (Variant("kind"), b"$-1\r\n", b"$0\r\n\r\n", False),
        (Variant("fields", names=("b",)), b"+a=1 b=2\r\n", b"+a=3 b=2\r\n", True),
        (Variant("fields", names=("b",)), b"+a=1 b=2\r\n", b"+a=1 b=3\r\n", False),
    ],
)
def test_variants(variant: Variant, want: bytes, got: bytes, agree: bool) -> None:
    assert same(variant, frame(want), frame(got)) is agree


def test_missing_and_additional_answers_are_differences() -> None:
    one = [Entry(1, "GET k", Variant(), frame(b":1\r\n"))]
    assert differences(one, one) == []
    assert len(differences(one, [])) == 1
    assert len(differences([], one)) == 1
    assert len(differences(one, [Entry(1, "GET k", Variant(), NOTHING)])) == 1
    assert len(differences(one, [Entry(1, "GET k", Variant(), CLOSED)])) == 1


def test_recordings_keep_what_is_compared() -> None:
    (block,) = parse_text("== t\nGET k\n@a<\n@a|\nGET l\n? GET m\n&a GET n", "f")
    long = frame(b"$600\r\n%b\r\n" % (b"x" * 600))
    frames = [
        frame(b"$2\r\n\xff\x00\r\n"),
        NOTHING,
        CLOSED,
        long,
        frame(b":5\r\n"),
        frame(b"$8\r\na=1 b=22\r\n"),
    ]
    lines = [(line.number, line.text, line.variant) for line in block.lines]
    entries = [Entry(*line, each) for line, each in zip(lines, frames, strict=True)]
    entries.append(Entry(0, "(keys)", Variant("unordered", 2), frame(b"*0\r\n")))
    kept = _from_json(block, json.loads(json.dumps(_as_json(entries))))
    assert differences(entries, kept) == differences(kept, entries) == []
    for at, wrong in enumerate(
        [b":1\r\n", b":1\r\n", b":1\r\n", b"$1\r\nx\r\n", b"+x\r\n", b"$3\r\na=2\r\n", b"*1\r\n:1\r\n"]
    ):
        number, text, variant = entries[at].number, entries[at].text, entries[at].variant
        other = [*entries[:at], Entry(number, text, variant, frame(wrong)), *entries[at + 1 :]]
        assert len(differences(kept, other)) == 1
