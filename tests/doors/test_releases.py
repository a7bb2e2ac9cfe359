"""Commands that an older release does not have are unknown: ``version`` and ``server_type``."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import emuredis
from emuredis.releases import parse_version, table_of
from emuredis.spec import TABLE


def knows(emulator: emuredis.Emulator, *words: str) -> bool:
    try:
        emulator.client().call(*words)
    except emuredis.ReplyError as error:
        return "unknown command" not in str(error) and "unknown subcommand" not in str(error)
    return True


@pytest.mark.parametrize(
    ("version", "server_type", "known", "unknown"),
    [
        (None, None, "HGETDEL DELIFEQ MSETEX", ""),
        ("9.0", "valkey", "HEXPIRE DELIFEQ", "MSETEX HGETDEL"),
        (9, "valkey", "HEXPIRE DELIFEQ MSETEX HGETDEL", ""),
        ((8, 1), "valkey", "LMPOP GETDEL", "HEXPIRE DELIFEQ"),
        ("7.2.5", "redis", "WAITAOF LMPOP", "HEXPIRE"),
        (7, "redis", "HEXPIRE WAITAOF", "HGETEX"),
        ("7.0", "redis", "LMPOP", "WAITAOF HEXPIRE"),
        ("7.4", "redis", "HEXPIRE", "HGETEX DELIFEQ"),
        ("8.0", "redis", "HGETEX HGETDEL HEXPIRE", "DELIFEQ MSETEX"),
        (None, "redis", "HGETEX MSETEX", "DELIFEQ"),
        ("6.2", None, "LMOVE GETDEL COPY", "LMPOP FCALL"),
        ("6.0", None, "LPOS", "LMOVE GETDEL"),
        ("2.6", None, "EVAL", "PFADD XADD"),
    ],
)
def test_what_a_release_has(version: Any, server_type: str | None, known: str, unknown: str) -> None:
    emulator = emuredis.Emulator(version=version, server_type=server_type)
    for word in known.split():
        assert knows(emulator, word), word
    for word in unknown.split():
        assert not knows(emulator, word), word
        assert not knows(emulator, word.lower())
        if knows(emulator, "COMMAND"):
            assert emulator.client().call("COMMAND", "INFO", word) == [None]


def test_subcommands() -> None:
    old, new = emuredis.Emulator(version="7.0"), emuredis.Emulator()
    assert not knows(old, "CLIENT", "NO-TOUCH", "on") and knows(new, "CLIENT", "NO-TOUCH", "on")
    assert knows(old, "CLIENT", "ID")
    assert b"client|no-touch" not in {row[0] for row in old.client().call("COMMAND", "INFO", "CLIENT")[0][9]}


def test_scripts_and_forks_see_the_same() -> None:
    emulator = emuredis.Emulator(version="6.0")
    for one in (emulator, emulator.fork()):
        with pytest.raises(emuredis.ReplyError, match="Unknown"):
            one.client().call("EVAL", "return redis.call('GETDEL', 'k')", 0)
        assert not knows(one, "GETDEL", "k")


def test_every_command_is_in_the_newest_release() -> None:
    assert table_of("9.1").keys() == TABLE.keys()
    assert table_of() is TABLE
    assert table_of("7.2") is table_of((7, 2))


def test_what_is_not_emulated_is_refused() -> None:
    for server_type in ("dragonfly", "keydb", "Redis"):
        with pytest.raises(ValueError, match=f"emulates valkey and redis, not '{server_type}'"):
            emuredis.Emulator(server_type=server_type)
    for version in ("", "x", "7.", (), (7, "2"), 7.2, (1, 2, 3, 4), True):
        with pytest.raises(ValueError, match="a version is like"):
            emuredis.Emulator(version=version)
    assert parse_version("7.2.5") == (7, 2, 5)


def test_doors_take_them() -> None:
    import redis

    import emuredis.asyncio

    for client in (
        emuredis.Redis(version=7, server_type="redis"),
        redis.Redis(connection_pool=emuredis.pool(version=7)),
    ):
        with pytest.raises(redis.ResponseError, match="unknown command 'HGETEX'"):
            client.execute_command("HGETEX", "k", "FIELDS", 1, "f")

    async def main() -> None:
        async with emuredis.asyncio.Redis(version=(6, 0)) as client:
            with pytest.raises(redis.ResponseError, match="unknown command 'GETDEL'"):
                await client.getdel("k")

    asyncio.run(main())
    with pytest.raises(TypeError, match="not both"):
        emuredis.Redis(emulator=emuredis.Emulator(), version=7)
    with pytest.raises(TypeError, match="not both"):
        emuredis.Redis(connection_pool=emuredis.pool(), version=7)
