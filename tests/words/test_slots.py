"""Cluster slots."""

from __future__ import annotations

from pathlib import Path

import pytest

from emuredis.slots import key_slot
from tests.support.live import LiveServer, binary

KEYS = [b"", b"foo", b"123456789", b"{user1000}.following", b"{user1000}.followers", b"foo{}{bar}", b"foo{{bar}}zap",
        b"foo{bar}{zap}", b"foo}{", b"{", b"{}", b"}{a}", b"a{b", b"\xff\x00{\xfe}"]  # fmt: skip


def test_the_check_value_of_the_crc() -> None:
    assert key_slot(b"123456789") == 0x31C3  # that of CRC16/XMODEM, below 16384


def test_a_tag_decides() -> None:
    assert key_slot(b"{user1000}.following") == key_slot(b"user1000") == key_slot(b"x{user1000}{y}")
    assert key_slot(b"foo{}{bar}") != key_slot(b"bar")


@pytest.mark.skipif(binary() is None, reason="no live server for this platform")
@pytest.mark.slow
def test_the_same_slots_as_a_cluster(tmp_path: Path) -> None:
    with LiveServer("--cluster-enabled", "yes") as server:
        connection = server.connect()
        for key in KEYS:
            assert connection.call("CLUSTER", "KEYSLOT", key).value == key_slot(key), key
        connection.close()
