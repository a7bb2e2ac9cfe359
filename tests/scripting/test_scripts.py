"""The cache of scripts, and how a script sits among other clients."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from emuredis.clock import ManualClock
from emuredis.emulator import Emulator
from emuredis.errors import ReplyError
from emuredis.replies import BLOCKED
from emuredis.scripting import scripts_of
from tests.support.live import Connection

from .both import Both, evaluate, run


def sha(body: str) -> str:
    return hashlib.sha1(body.encode()).hexdigest()


def exists(emulator: Emulator, body: str) -> bool:
    return run(emulator, "SCRIPT", "EXISTS", sha(body)) == b"*1\r\n:1\r\n"


def test_scripts_of_eval_are_forgotten_after_five_hundred(live: Connection) -> None:
    both = Both(live)
    both.check("SCRIPT", "LOAD", "return 'kept'")
    both.eval("return 'used'")
    both.eval("return 'promoted'")
    both.check("SCRIPT", "LOAD", "return 'promoted'")
    for i in range(499):
        both.eval(f"return {i}")
    both.eval("return 'used'")
    for i in range(499, 520):
        both.eval(f"return {i}")
    both.check("SCRIPT", "EXISTS", *(sha(f"return {i}") for i in range(520)))
    both.check("SCRIPT", "EXISTS", sha("return 'kept'"), sha("return 'used'"), sha("return 'promoted'"))
    assert scripts_of(both.engine).evicted == 21


def test_a_script_that_does_not_compile_is_not_kept() -> None:
    emulator = Emulator()
    evaluate(emulator, "return (")
    assert not exists(emulator, "return (")


def test_flush_forgets_scripts_and_state() -> None:
    emulator = Emulator()
    evaluate(emulator, "cjson.encode_max_depth(3) return 1")
    assert evaluate(emulator, "return cjson.encode_max_depth()") == b":3\r\n"
    run(emulator, "SCRIPT", "FLUSH")
    assert not exists(emulator, "return cjson.encode_max_depth()")
    assert evaluate(emulator, "return cjson.encode_max_depth()") == b":1000\r\n"


def test_two_emulators_share_no_scripts() -> None:
    one, other = Emulator(), Emulator()
    evaluate(one, "return 1")
    assert exists(one, "return 1")
    assert not exists(other, "return 1")


def test_waiters_are_served_when_the_script_has_ended() -> None:
    engine = Emulator(clock=ManualClock()).engine
    waiting, caller = engine.connect(), engine.connect()
    got: list[Any] = []
    waiting.on_reply = got.append
    assert engine.execute(waiting, [b"BLPOP", b"q", b"0"]) is BLOCKED
    script = b"redis.call('RPUSH','q','a') redis.call('RPUSH','q','b') return redis.call('LLEN','q')"
    assert engine.execute(caller, [b"EVAL", script, b"0"]) == 2
    assert got == [[b"q", b"a"]]
    assert engine.execute(waiting, [b"BLPOP", b"q2", b"0"]) is BLOCKED
    engine.execute(caller, [b"EVAL", b"redis.call('RPUSH','q2','a') redis.call('DEL','q2')", b"0"])
    assert len(got) == 1


def test_a_failing_script_still_wakes_and_breaks_watches() -> None:
    engine = Emulator(clock=ManualClock()).engine
    waiting, watching, caller = engine.connect(), engine.connect(), engine.connect()
    got: list[Any] = []
    waiting.on_reply = got.append
    engine.execute(waiting, [b"BLPOP", b"q", b"0"])
    engine.execute(watching, [b"WATCH", b"w"])
    reply = engine.execute(
        caller, [b"EVAL", b"redis.call('SET','w',1) redis.call('RPUSH','q','a') error('x')", b"0"]
    )
    assert reply.__class__ is ReplyError
    assert got == [[b"q", b"a"]]
    engine.execute(watching, [b"MULTI"])
    assert not engine.execute(watching, [b"EXEC"])


def test_messages_come_after_the_script_in_order(live: Connection) -> None:
    engine = Emulator(config={"notify-keyspace-events": "KEA"}).engine
    listener, caller = engine.connect(), engine.connect()
    heard: list[Any] = []
    listener.on_push = heard.append
    listener.protocol = 3
    engine.execute(listener, [b"PSUBSCRIBE", b"__keyevent*", b"c"])
    heard.clear()
    script = "local c = redis.call c('SET','a',1) c('PUBLISH','c','m') c('ZADD','z',1,'m') c('ZREM','z','m')"
    engine.execute(caller, [b"EVAL", script.encode(), b"0"])
    assert [push[-1] for push in heard] == [b"a", b"m", b"z", b"z", b"z"]


@pytest.mark.parametrize("protocol", [2, 3])
def test_nothing_of_a_script_leaks_into_the_session(protocol: int) -> None:
    engine = Emulator().engine
    session = engine.connect()
    session.protocol = protocol
    engine.execute(session, [b"SELECT", b"2"])
    engine.execute(
        session, [b"EVAL", b"redis.setresp(3) redis.call('SELECT', 5) redis.call('SET', 'k', 1)", b"0"]
    )
    assert (session.db.index, session.protocol) == (2, protocol)
    assert engine.keyspace.databases[5].data == {b"k": b"1"}
    assert engine.execute(session, [b"EVAL", b"return redis.call('GET', 'k')", b"0"]) is None
