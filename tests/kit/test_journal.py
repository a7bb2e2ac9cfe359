"""The journal and its budgets."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest
import redis

import emuredis
from emuredis.clock import ManualClock
from emuredis.emulator import Emulator
from emuredis.errors import ReplyError


@pytest.fixture
def emulator() -> Emulator:
    return Emulator(clock=ManualClock(1000), seed=1)


def test_commands_in_order_with_replies_and_keys(emulator: Emulator) -> None:
    client = emulator.client(db=3)
    client.call("CLIENT", "SETNAME", "app")
    with emulator.journal() as journal:
        client.call("SET", "k", "v")
        client.call("GET", "k")
        with pytest.raises(ReplyError):
            client.call("LPUSH", "k", "x")
        emulator.client().call("COPY", "a", "b")
    client.call("SET", "later", "v")
    assert [entry.command for entry in journal] == ["set", "get", "lpush", "copy"]
    one, two, three, four = journal
    assert (one.args, one.reply, one.reads, one.writes) == ([b"SET", b"k", b"v"], b"OK", [], [b"k"])
    assert (one.client_name, one.db, one.time_ms) == ("app", 3, 1_000_000)
    assert (two.reply, two.reads, two.writes) == (b"v", [b"k"], [])
    assert isinstance(three.reply, ReplyError)
    assert (four.reads, four.writes, four.client_name) == ([b"a"], [b"b"], "")
    assert journal.entries("SET", "GET") == [one, two]
    assert journal.entries(errors=True) == [three]
    assert journal.entries(key="a*") == [four]
    assert journal.entries(client="app", writes=True) == [one, three]
    assert journal.entries(where=lambda entry: entry.number == 2) == [two]
    assert emulator.engine.observers == []
    assert str(one) == '1 1000000 [app db3] SET k v -> "OK"'
    assert str(three).endswith(
        "LPUSH k x -> (WRONGTYPE Operation against a key holding the wrong kind of value)"
    )


def test_what_scripts_and_transactions_call_is_nested(emulator: Emulator) -> None:
    client = emulator.client()
    with emulator.journal() as journal:
        client.call(
            "EVAL", "redis.call('SET', KEYS[1], 'x') redis.pcall('HGET', KEYS[1], 'f') return 1", 1, "k"
        )
        client.call("MULTI")
        client.call("INCR", "n")
        client.call("EVAL", "return redis.call('GET', 'k')", 0)
        client.call("EXEC")
    script, _, _, _, exec_ = journal
    assert [(e.command, e.writes, e.reads) for e in script.nested] == [
        ("set", [b"k"], []),
        ("hget", [], [b"k"]),
    ]
    assert isinstance(script.nested[1].reply, ReplyError)
    assert [entry.command for entry in exec_.nested] == ["incr", "eval"]
    assert exec_.nested[1].nested[0].reply == b"x"
    assert [e.command for e in journal.entries("GET", nested=True)] == ["get"]
    assert journal.commands == 5
    assert "\n    " in str(script)


def test_values_before_and_after(emulator: Emulator) -> None:
    client = emulator.client()
    client.call("HSET", "h", "f", 1)
    with emulator.journal(values=True) as journal:
        client.call("HINCRBY", "h", "f", 2)
        client.call("RENAME", "h", "g")
    one, two = journal
    assert one.before == {"h": {"type": "hash", "value": {"f": "1"}}}
    assert one.after == {"h": {"type": "hash", "value": {"f": "3"}}}
    assert two.after == {"h": None, "g": {"type": "hash", "value": {"f": "3"}}}


def test_a_blocked_command_gets_its_reply_later(emulator: Emulator) -> None:
    client, other = emulator.client(), emulator.client()
    with emulator.journal() as journal:
        thread = threading.Thread(target=lambda: client.call("BLPOP", "l", 0))
        thread.start()
        while not emulator.engine.waiting.count:
            pass
        assert journal.entries("BLPOP")[0].blocked
        other.call("RPUSH", "l", "x")
        thread.join()
    entry = journal.entries("BLPOP")[0]
    assert (entry.blocked, entry.reply) == (False, [b"l", b"x"])


def test_json_lines(emulator: Emulator) -> None:
    client = emulator.client()
    with emulator.journal() as journal:
        client.call("SET", "k", b"\xff")
        client.call("EVAL", "return redis.call('GET', 'k')", 0)
    lines = [json.loads(line) for line in journal.jsonl().splitlines()]
    assert lines[0]["args"] == ["SET", "k", "hex:ff"]
    assert lines[1]["nested"][0]["reply"] == "hex:ff"


def test_published(emulator: Emulator) -> None:
    client = emulator.client()
    with emulator.journal() as journal:
        client.call("PUBLISH", "a", "1")
        client.call("EVAL", "redis.call('PUBLISH', 'b', '2') redis.call('PUBLISH', 'a', '3')", 0)
    assert journal.published("a") == [b"1", b"3"]
    assert journal.published() == [b"1", b"2", b"3"]


def test_a_limit_keeps_the_latest(emulator: Emulator) -> None:
    client = emulator.client()
    with emulator.journal(limit=2) as journal:
        for number in range(5):
            client.call("SET", number, number)
    assert [entry.number for entry in journal] == [4, 5]
    assert journal.commands == 5


def test_two_journals_at_once(emulator: Emulator) -> None:
    client = emulator.client()
    with emulator.journal() as outer:
        client.call("PING")
        with emulator.journal() as inner:
            client.call("EVAL", "return redis.call('TIME')[1]", 0)
        client.call("PING")
    assert (len(outer), len(inner)) == (3, 1)
    assert [entry.command for entry in outer.all[1].nested] == ["time"]


# -- budgets -------------------------------------------------------------------------------------


def test_within_budget(emulator: Emulator) -> None:
    client = emuredis.Redis(emulator=emulator)
    client.ping()
    with emulator.budget(round_trips=2, commands=4) as journal:
        client.set("k", "v")
        with client.pipeline(transaction=False) as pipeline:
            pipeline.get("k").get("l").get("m").execute()
    assert (journal.round_trips, journal.commands) == (2, 4)


def test_over_budget_lists_what_was_spent_and_hints(emulator: Emulator) -> None:
    client = emuredis.Redis(emulator=emulator)
    client.ping()
    with pytest.raises(AssertionError) as caught:
        with emulator.budget(round_trips=2):
            for number in range(4):
                client.get(f"user:{number}")
    message = str(caught.value)
    assert message.startswith(
        "over budget: 4 round trips, allowed 2\nspent on:\n  1 1000000 [client 1 db0] GET user:0"
    )
    assert "4 × GET in a row by client 1 (user:0 … user:3): MGET asks once" in message


def test_an_error_inside_goes_first(emulator: Emulator) -> None:
    with pytest.raises(ZeroDivisionError), emulator.budget(commands=0):
        emulator.client().call("PING")
        _ = 1 / 0
    assert emulator.engine.observers == []


def test_round_trips_over_tcp_and_asyncio(emulator: Emulator) -> None:
    with emulator.serve() as server:
        client = redis.Redis(*server.address)
        client.ping()
        with emulator.budget(round_trips=1, commands=5) as journal:
            with client.pipeline() as pipeline:
                pipeline.set("a", 1).set("b", 2).set("c", 3).execute()
        client.close()
    assert journal.round_trips == 1

    async def go() -> None:
        import emuredis.asyncio

        mine = emuredis.asyncio.Redis(emulator=emulator)
        await mine.ping()
        with emulator.budget(round_trips=2, commands=4) as spent:
            await mine.get("a")
            async with mine.pipeline(transaction=False) as pipeline:
                await pipeline.get("a").get("b").get("c").execute()
        assert (spent.round_trips, spent.commands) == (2, 4)
        await mine.aclose()

    asyncio.run(go())
