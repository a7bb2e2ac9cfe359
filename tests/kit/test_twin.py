"""The twin: one answer or a `Difference`; and the replay of what MONITOR printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emuredis.cli import main
from emuredis.emulator import Emulator
from emuredis.errors import EmulatorError, ReplyError
from emuredis.kit.sources import monitored
from emuredis.kit.twin import Difference, replay, same, twin
from tests.support.live import LiveServer

LOG = r"""OK
1700000000.000001 [0 127.0.0.1:5000] "SET" "k" "a \"quoted\"\xff\n"
1700000000.000002 [3 127.0.0.1:5001] "rpush" "l" "x" "y"
1700000000.000003 [0 127.0.0.1:5000] "MULTI"
1700000000.000004 [3 127.0.0.1:5001] "BLPOP" "nothing" "0"
1700000000.000005 [0 127.0.0.1:5000] "INCR" "n"
1700000000.000006 [0 127.0.0.1:5000] "EXEC"
1700000000.000007 [0 127.0.0.1:5000] "EVAL" "return redis.call('INCR', 'n')" "0"
1700000000.000008 [0 lua] "INCR" "n"
"""


@pytest.fixture
def url(live_server: LiveServer) -> str:
    return f"unix://{live_server.socket_path}"


def test_the_same_answer_twice(url: str) -> None:
    with twin(url) as both:
        assert both.call("SET", "k", "v") == b"OK"
        assert both.call("SADD", "s", *range(100)) == 100
        assert len(both.call("SMEMBERS", "s")) == 100
        assert both.call("HSET", "h", "a", 1, "b", 2) == 2
        assert both.call("HGETALL", "h") == {b"a": b"1", b"b": b"2"}
        assert both.call("EXPIRE", "k", 100) == 1
        both.call("PTTL", "k")
        both.call("RANDOMKEY")
        with pytest.raises(ReplyError, match="^WRONGTYPE"):
            both.call("LPUSH", "k", "x")
        with pytest.raises(ReplyError, match="^NOSCRIPT"):
            both.call("EVALSHA", "f" * 40, 0)
        with pytest.raises(ReplyError, match="^ERR unknown command 'NOSUCH'"):
            both.call("NOSUCH")


def test_the_first_difference_is_told_with_its_history(url: str) -> None:
    with twin(url) as both:
        both.call("SET", "k", "v")
        both.client.call("SET", "k", "w")
        with pytest.raises(Difference) as caught:
            both.call("GET", "k")
    assert (caught.value.here, caught.value.there) == (b"w", b"v")
    text = str(caught.value)
    assert "GET k\n  emuredis: b'w'\n  server:   b'v'\nafter\n  1 SET k v\n  2 GET k" in text


def test_no_server() -> None:
    with pytest.raises(EmulatorError, match="no server answers at redis://127.0.0.1:1"):
        twin("redis://127.0.0.1:1")


def test_what_counts_as_the_same() -> None:
    find = Emulator().engine.table.find
    assert same(find(b"SMEMBERS"), [b"SMEMBERS", b"s"], [b"a", b"b"], [b"b", b"a"])
    assert not same(find(b"LRANGE"), [b"LRANGE", b"s"], [b"a", b"b"], [b"b", b"a"])
    assert not same(find(b"SMEMBERS"), [b"SMEMBERS", b"s"], [b"a"], [b"b"])
    assert same(find(b"TTL"), [b"TTL", b"k"], 5, 6)
    assert not same(find(b"TTL"), [b"TTL", b"k"], 5, None)


# -- MONITOR ---------------------------------------------------------------------------------------


def test_lines_of_monitor() -> None:
    lines = list(monitored(LOG))
    assert lines[0] == (2, 0, "127.0.0.1:5000", [b"SET", b"k", b'a "quoted"\xff\n'])
    assert lines[1][1] == 3
    assert all(address != "lua" for _, _, address, _ in lines)


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=4))
@settings(max_examples=30)
def test_any_bytes_come_through(words: list[bytes]) -> None:
    def quoted(word: bytes) -> str:
        out = ""
        for byte in word:
            letter = chr(byte)
            known = {
                "\n": "\\n",
                "\r": "\\r",
                "\t": "\\t",
                "\a": "\\a",
                "\b": "\\b",
                '"': '\\"',
                "\\": "\\\\",
            }
            out += known.get(letter) or (letter if 32 <= byte < 127 else f"\\x{byte:02x}")
        return f'"{out}"'

    line = "1.5 [0 a:1] " + " ".join(map(quoted, words))
    assert next(monitored(line))[3] == words


def test_replay_in_memory_and_against_a_server(url: str) -> None:
    emulator = Emulator()
    assert replay(LOG, emulator=emulator) == (7, [])
    emulator.assert_string("n", 2)
    emulator.assert_list("l", ["x", "y"], db=3)
    assert replay(LOG, url) == (7, [])


def test_a_difference_does_not_end_it(url: str) -> None:
    log = '1.0 [0 a:1] "SET" "k" "v"\n1.0 [0 a:1] "SELECT" "5"\n1.0 [0 a:1] "GET" "nothing"\n'
    count, differences = replay(log, url, Emulator(config={"databases": 4}))
    assert count == 3
    assert [difference.argv for difference in differences] == [[b"SELECT", b"5"]]


@pytest.mark.parametrize("line", ["nonsense", "1.0 [0 a:1] SET k", '1.0 [0 a:1] "SET'])
def test_lines_that_are_not_monitors(line: str) -> None:
    with pytest.raises(EmulatorError, match="line 1"):
        list(monitored(line))


def test_the_command_line(tmp_path: Path, url: str, capsys: Any) -> None:
    log = tmp_path / "monitor.log"
    log.write_text(LOG)
    assert main(["replay", str(log)]) == 0
    assert '"n": {' in capsys.readouterr().out
    assert main(["replay", str(log), "--against", url]) == 0
    assert capsys.readouterr().out == "7 commands, 0 differences\n"
    assert main(["replay", str(tmp_path / "none")]) == 2
    log.write_text("junk\n")
    assert main(["replay", str(log)]) == 2
    assert "line 1 is none of MONITOR's" in capsys.readouterr().err
    emulator = Emulator()
    log.write_text(LOG)
    emulator.load(log)
    emulator.assert_string("n", 2)
