"""Strict modes: undeclared keys, keys in several slots, writes from read-only scripts."""

from __future__ import annotations

import pytest

from emuredis import Emulator, ReplyError
from emuredis.client import Client
from emuredis.slots import key_slot

TOUCHES = b"redis.call('GET', KEYS[1])\nreturn {redis.pcall('SET', ARGV[1], 1)}"


def strict(mode: str | None) -> Client:
    return Emulator(strict_keys=mode).client()


def refused(client: Client, *args: object) -> str:
    with pytest.raises(ReplyError) as caught:
        client.call(*args)
    return str(caught.value)


def test_off_by_default() -> None:
    client = Emulator().client()
    client.call("EVAL", TOUCHES, 1, "a", "b")
    assert client.call("GET", "b") == b"1"


def test_an_undeclared_key_is_named_and_nothing_is_written() -> None:
    client = strict("declared")
    message = refused(client, "EVAL", TOUCHES, 1, "a", "b")
    assert "line 2: SET touches 'b', which is not among the script's KEYS" in message
    assert client.call("SCRIPT", "LOAD", TOUCHES).decode() in message
    assert client.call("EXISTS", "b") == 0
    client.call("EVAL", TOUCHES, 2, "a", "b", "b")
    assert client.call("GET", "b") == b"1"


def test_no_pcall_gets_away_with_it() -> None:
    client = strict("declared")
    body = "local ok = pcall(redis.call, 'SET', 'x', 1)\nredis.call('SET', KEYS[1], 1)\nreturn 1"
    assert "line 1: SET touches 'x'" in refused(client, "EVAL", body, 1, "k")
    assert client.call("EXISTS", "k", "x") == 0
    assert client.call("EVAL", "return redis.call('INCR', KEYS[1])", 1, "k") == 1  # and the next one runs


def test_keys_in_the_slot_of_a_declared_key() -> None:
    client = strict("slot")
    assert client.call("EVAL", TOUCHES, 1, "{q}a", "{q}b") == [b"OK"]
    message = refused(client, "EVAL", TOUCHES, 1, "{q}a", "b")
    assert f"touches 'b' in slot {key_slot(b'b')}" in message
    assert f"KEYS are in slot {key_slot(b'q')}" in message
    assert "declares no key" in refused(client, "EVAL", "return redis.call('GET', 'x')", 0)


def test_keys_in_several_slots() -> None:
    client = strict("slot")
    message = refused(client, "EVAL", "return 1", 2, "a", "b")
    assert message.startswith("CROSSSLOT emuredis strict keys: script ")
    assert f"'a' in {key_slot(b'a')}, 'b' in {key_slot(b'b')}" in message
    assert refused(client, "MGET", "a", "b").startswith("CROSSSLOT emuredis strict keys: MGET has keys")
    assert client.call("MGET", "{t}a", "{t}b") == [None, None]
    assert strict("declared").call("MGET", "a", "b") == [None, None]


def test_a_transaction_has_one_slot() -> None:
    client = strict("slot")
    client.call("MULTI")
    client.call("SET", "a", 1)
    client.call("SET", "b", 1)
    assert refused(client, "EXEC").startswith("CROSSSLOT")  # which has ended the transaction
    client.call("MULTI")
    assert refused(client, "MSET", "a", 1, "b", 1).startswith("CROSSSLOT")
    assert refused(client, "EXEC").startswith("EXECABORT")
    assert client.call("EXISTS", "{a}") == 0


def test_a_write_from_a_read_only_script() -> None:
    client = strict("declared")
    body = "#!lua flags=no-writes\n\nreturn redis.call('SET', KEYS[1], 1)"
    assert "line 3: SET writes 'k', but the script was declared read-only" in refused(
        client, "EVAL", body, 1, "k"
    )
    assert "line 1: SET writes 'k'" in refused(client, "EVAL_RO", "redis.call('SET', KEYS[1], 1)", 1, "k")
    assert client.call("EVAL_RO", "return redis.call('GET', KEYS[1])", 1, "k") is None


def test_patterns_of_sort_are_keys() -> None:
    client = strict("declared")
    body = "return redis.call('SORT', KEYS[1], 'BY', 'w_*->x')"
    assert "SORT touches 'w_*'" in refused(client, "EVAL", body, 1, "l")
    assert strict("slot").call("EVAL", body.replace("w_", "{l}_"), 1, "{l}") == []


def test_turned_on_and_off_at_any_time() -> None:
    emulator = Emulator()
    client = emulator.client()
    sha = client.call("SCRIPT", "LOAD", TOUCHES)
    for _ in range(3):
        client.call("EVALSHA", sha, 1, "a", "b")
        emulator.strict_keys = "declared"
        assert emulator.strict_keys == "declared"
        assert "touches 'b'" in refused(client, "EVALSHA", sha, 1, "a", "b")
        emulator.strict_keys = "slot"
        assert "in slot" in refused(client, "EVALSHA", sha, 1, "a", "b")
        emulator.strict_keys = None
        assert emulator.strict_keys is None
    assert client.call("MGET", "a", "b") == [None, b"1"]
    assert not emulator.engine.gates and not emulator.engine.script_observers


def test_a_flush_of_scripts_does_not_end_it() -> None:
    client = strict("declared")
    client.call("EVAL", "return 1", 0)
    client.call("SCRIPT", "FLUSH")
    assert "touches 'b'" in refused(client, "EVAL", TOUCHES, 1, "a", "b")


def test_scripts_have_names() -> None:
    emulator = Emulator(strict_keys="declared")
    emulator.name_script("claim", TOUCHES)
    assert "script claim (" in refused(emulator.client(), "EVAL", TOUCHES, 1, "a", "b")


def test_an_unknown_mode() -> None:
    with pytest.raises(ValueError, match="'declared', 'slot' or None, not 'loose'"):
        Emulator(strict_keys="loose")


def test_replies_and_errors_are_those_of_a_lax_emulator() -> None:
    body = (
        "redis.call('RPUSH', KEYS[1], 'a', 'b') local r = {redis.call('LRANGE', KEYS[1], 0, -1), "
        "redis.pcall('GET', KEYS[1]), redis.pcall('NOSUCH'), redis.pcall('GET'), redis.pcall('EVAL', '1', 0), "
        "redis.call('TYPE', KEYS[1]), redis.call('HGET', KEYS[2], 'f')} "
        "redis.setresp(3) r[#r + 1] = redis.call('HGETALL', KEYS[2]).map return r"
    )
    lax = Emulator().client().call("EVAL", body, 2, "k", "h")
    assert str(strict("declared").call("EVAL", body, 2, "k", "h")) == str(lax)
