"""Content as plain data: stable, readable, and the same again when it is taken back."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings

from emuredis.clock import ManualClock
from emuredis.emulator import Emulator
from emuredis.errors import EmulatorError

from .test_snapshot import STEPS, content, run


@pytest.mark.slow
@settings(max_examples=150)
@given(STEPS, STEPS)
def test_dump_and_load_give_the_same_content(steps: list[list[bytes]], more: list[list[bytes]]) -> None:
    clock = ManualClock()
    emulator = Emulator(clock=clock, seed=1)
    run(emulator.client(), steps, clock)
    other_clock = ManualClock(clock.now_ns() / 1e9)
    other = Emulator(clock=other_clock, seed=1)
    other.load(emulator.dump())
    assert other.dump() == emulator.dump()
    again = Emulator(clock=other_clock)
    again.load(json.loads(emulator.dump()))
    assert again.dump() == emulator.dump()
    for db in other.engine.keyspace.databases:
        for value in db.data.values():
            if not isinstance(value, bytes):
                value._check()


def test_short_forms() -> None:
    emulator = Emulator()
    client = emulator.client()
    emulator.load(
        {"s": "text", "n": 5, "f": 1.5, "b": b"\xff", "l": ["a", 1], "t": {"x", "y"}, "h": {"f": "v", "g": 2}}
    )
    assert client.call("GET", "s") == b"text"
    assert client.call("INCR", "n") == 6
    assert client.call("GET", "f") == b"1.5"
    assert client.call("GET", "b") == b"\xff"
    assert client.call("LRANGE", "l", 0, -1) == [b"a", b"1"]
    assert set(client.call("SMEMBERS", "t")) == {b"x", b"y"}
    assert client.call("HGETALL", "h") == {b"f": b"v", b"g": b"2"}


def test_typed_forms() -> None:
    clock = ManualClock(1000)
    emulator = Emulator(clock=clock)
    client = emulator.client()
    emulator.load({
        "z": {"type": "zset", "value": {"a": 1, "b": "inf"}, "deadline": 1_005_000},
        "x": {"type": "stream", "value": [["1-1", {"f": "v"}]]},
        "gone": {"type": "string", "value": "v", "deadline": 999_000},
    })  # fmt: skip
    assert client.call("ZRANGE", "z", 0, -1, "WITHSCORES") == [[b"a", 1.0], [b"b", float("inf")]]
    assert client.call("TTL", "z") == 5
    assert client.call("XRANGE", "x", "-", "+") == [[b"1-1", [b"f", b"v"]]]
    assert client.call("EXISTS", "gone") == 0


def test_a_dump_is_easy_to_read() -> None:
    emulator = Emulator(clock=ManualClock(1000))
    client = emulator.client()
    client.call("HSET", "user:1", "name", "Ada", "born", 1815)
    client.call("SET", "session", b"\xff\x00", "PX", 500)
    assert emulator.dump() == (
        '{\n "0": {\n  "session": {\n   "type": "string",\n   "value": "hex:ff00",\n   "deadline": 1000500\n  },\n'
        '  "user:1": {\n   "type": "hash",\n   "value": {\n    "born": "1815",\n    "name": "Ada"\n   }\n  }\n }\n}\n'
    )


CODE = """
from emuredis import Emulator, ManualClock
emulator = Emulator(clock=ManualClock())
client = emulator.client()
client.call("SADD", "s", *"zyxwvutsrq")
client.call("HSET", "h", "b", 1, "a", 2)
client.call("XADD", "x", "1-1", "f", "v")
print(emulator.dump())
"""


def test_the_same_bytes_in_every_process() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", CODE], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"k": None}, "not NoneType"),
        ({"k": True}, "not bool"),
        ({"k": {"type": "list", "value": "abc"}}, "should be a list"),
        ({"k": {"type": "zset", "value": {"a": "x"}}}, "could not convert"),
        ({"k": {"type": "string", "value": "hex:zz"}}, "does not hold hexadecimal digits"),
        ({"k": {"type": "stream", "value": [["x", {}]]}}, "invalid literal"),
    ],
)
def test_what_cannot_be_taken_is_named_and_changes_nothing(bad: Any, why: str) -> None:
    emulator = Emulator()
    emulator.load({"old": "kept"})
    before = emulator.dump()
    with pytest.raises(EmulatorError, match=why):
        emulator.load({"good": "v", **bad})
    assert emulator.dump() == before


def test_a_file_that_is_neither_json_nor_rdb_is_refused(tmp_path: Any) -> None:
    file = tmp_path / "content.json"
    file.write_text("{broken")
    with pytest.raises(EmulatorError, match=r"content.json"):
        Emulator().load(file)


def test_load_from_a_file(tmp_path: Any) -> None:
    emulator = Emulator()
    emulator.load({"k": "v"})
    file = tmp_path / "content.json"
    file.write_text(emulator.dump())
    other = Emulator()
    other.load(file)
    assert other.dump() == emulator.dump()
    assert content(other)[0][0] == {b"k": b"v"}
