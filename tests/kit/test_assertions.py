"""Assertions: silent when it is so, a readable difference when not."""

from __future__ import annotations

from unittest.mock import ANY

import pytest

from emuredis.clock import ManualClock
from emuredis.emulator import Emulator


@pytest.fixture
def emulator() -> Emulator:
    one = Emulator(clock=ManualClock())
    one.load({
        "s": "text", "n": 7, "h": {"name": "Ada", "at": 1000.5}, "l": ["a", "b", "c"], "t": {"x", "y"},
        "z": {"type": "zset", "value": {"one": 1, "two": 2.5}},
        "x": {"type": "stream", "value": [["1-1", {"f": "v"}], ["2-1", {"g": "w"}]]},
    })  # fmt: skip
    return one


def test_what_is_so_passes(emulator: Emulator) -> None:
    emulator.assert_string("s", "text")
    emulator.assert_string("n", 7)
    emulator.assert_string("n", pytest.approx(7.1, abs=0.2))
    emulator.assert_string("absent", None)
    emulator.assert_hash("h", {"name": b"Ada", "at": pytest.approx(1000, abs=1)})
    emulator.assert_hash("h", {"name": ANY}, partial=True)
    emulator.assert_hash("absent", {})
    emulator.assert_list("l", ["a", ANY, b"c"])
    emulator.assert_set("t", {"y", "x"})
    emulator.assert_zset("z", {"one": 1, "two": pytest.approx(2.4, abs=0.2)})
    emulator.assert_zset("z", [("one", 1), ("two", 2.5)])
    emulator.assert_stream("x", [{"f": "v"}, ("2-1", {"g": ANY})])
    emulator.assert_keys("s", "n", "h", "l", "t", "z", "x")
    emulator.assert_ttl("s", None)
    emulator.client().call("EXPIRE", "s", 10)
    emulator.assert_ttl("s", 10)
    emulator.assert_ttl("s", pytest.approx(9, abs=2))
    emulator.client(db=2).call("SET", "elsewhere", "v")
    emulator.assert_keys("elsewhere", db=2)
    with emulator.assert_unchanged():
        emulator.client().call("GET", "s")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda e: e.assert_string("s", "other"), "'s' is 'text', expected 'other'"),
        (lambda e: e.assert_string("absent", "v"), "'absent' is absent, expected 'v'"),
        (lambda e: e.assert_string("s", None), "'s' is 'text', expected absent"),
        (lambda e: e.assert_string("h", "v"), "'h' holds a hash, expected a string"),
        (
            lambda e: e.assert_hash("h", {"name": "Bob", "born": 1815}),
            "hash 'h' differs (- expected, + is there):\n+ at: 1000.5\n- born: 1815\n- name: Bob\n+ name: Ada",
        ),
        (lambda e: e.assert_list("l", ["a", "c"]), "list 'l' differs (- expected, + is there):\n  a\n+ b\n  c"),
        (lambda e: e.assert_set("t", ["x", "q"]), "set 't' differs (- expected, + is there):\n- q\n+ y"),
        (
            lambda e: e.assert_zset("z", {"one": 1, "two": 3}),
            "sorted set 'z' differs (- expected, + is there):\n- two 3\n+ two 2.5",
        ),
        (
            lambda e: e.assert_zset("z", [("two", 2.5), ("one", 1)]),
            "sorted set 'z' differs (- expected, + is there):\n+ one 1\n  two 2.5\n- one 1",
        ),
        (
            lambda e: e.assert_stream("x", [{"f": "v"}]),
            "stream 'x' differs (- expected, + is there):\n- * f=v\n+ 1-1 f=v\n+ 2-1 g=w",
        ),
        (lambda e: e.assert_keys("s"), "keys of database 0 differs"),
        (lambda e: e.assert_ttl("s", 5), "'s' has no time to live, expected 5 s to live"),
        (lambda e: e.assert_ttl("absent", 5), "'absent' does not exist"),
    ],
)  # fmt: skip
def test_what_is_not_so_is_spelled_out(emulator: Emulator, call: object, text: str) -> None:
    with pytest.raises(AssertionError) as caught:
        call(emulator)  # type: ignore[operator]
    assert text in str(caught.value)


def test_a_change_is_shown_where_none_was_expected(emulator: Emulator) -> None:
    with pytest.raises(
        AssertionError, match=r'(?s)content differs.*-     "name": "Ada".*\+     "name": "Eve"'
    ):
        with emulator.assert_unchanged():
            emulator.client().call("HSET", "h", "name", "Eve")


def test_an_error_in_the_block_is_not_replaced(emulator: Emulator) -> None:
    with pytest.raises(ZeroDivisionError), emulator.assert_unchanged():
        emulator.client().call("DEL", "h")
        _ = 1 / 0
