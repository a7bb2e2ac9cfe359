"""Branded ids: every vector of the protocol, and the laws of the mint."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echomq import ids
from echomq.clock import ManualClock
from echomq.errors import ArgumentError

numbers = st.integers(0, ids.MAX_NUMBER)

ENCODED = [
    ("USR", 274557032793636864, "USR0KHTOWnGLuC"),
    ("USR", 320636799581945856, "USR0NgWEfAEJfs"),
    ("JOB", ids.pack(1704067200000, 1, 0), "JOB00000000144"),
    ("JOB", ids.pack(1767225600000, 7, 0), "JOB0JZGkP8stGK"),
    ("JOB", ids.pack(1767225600000, 7, 1), "JOB0JZGkP8stGL"),
    ("JOB", ids.pack(1767225600000, 1023, 4095), "JOB0JZGkP9AMvv"),
    ("JOB", ids.pack(1767225600001, 0, 0), "JOB0JZGkP9AMvw"),
]
PAYLOADS = [
    (0, "00000000000"),
    (1, "00000000001"),
    (61, "0000000000z"),
    (62, "00000000010"),
    (3844, "00000000100"),
    (12345678901234, "0003VLrOWLi"),
    (9007199254740991, "00fFgnDxSe7"),
    (2**63 - 1, "AzL8n0Y58m7"),
    (271644782957166592, "0K48QjihpC4"),
]
PACKED = [
    ((1704067200000, 1, 0), 4096),
    ((1767225600000, 7, 0), 264905529753628672),
    ((1767225600000, 1023, 4095), 264905529757794303),
    ((1767225600001, 0, 0), 264905529757794304),
    ((1769526697641, 0, 0), 274557032793636864),
]
REFUSED = [
    ("USRzzzzzzzzzzz", "range"),
    ("USRAzL8n0Y58m8", "range"),
    ("usr0KHTOWnGLuC", "namespace"),
    ("US10KHTOWnGLuC", "namespace"),
    ("USR0KHTOWnGLu", "length"),
    ("USR0KHTOWnGLuC0", "length"),
    ("", "length"),
    ("USR0KHTOWnGLu-", "charset"),
    ("usr0KHTOWnGLu-", "namespace"),
    ("USRzzzzzzzzzz-", "charset"),
    ("ÜSR0KHTOWnGLuC", "namespace"),
]


@pytest.mark.parametrize(("space", "number", "branded"), ENCODED)
def test_encode_and_decode(space: str, number: int, branded: str) -> None:
    assert ids.encode(space, number) == branded
    assert ids.decode(branded) == (space, number)
    assert ids.namespace(branded) == space


@pytest.mark.parametrize(("number", "payload"), PAYLOADS)
def test_payloads(number: int, payload: str) -> None:
    assert ids.encode_payload(number) == payload
    assert ids.decode_payload(payload) == number


@pytest.mark.parametrize(("parts", "number"), PACKED)
def test_pack(parts: tuple[int, int, int], number: int) -> None:
    assert ids.pack(*parts) == number
    assert ids.unpack(number) == parts


@pytest.mark.parametrize(("branded", "reason"), REFUSED)
def test_refusals_name_their_reason(branded: str, reason: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{reason}"):
        ids.decode(branded)
    assert not ids.is_valid(branded)


def test_other_vectors() -> None:
    assert ids.unpack(320636799581945856).unix_ms == 1780512970164
    assert ids.hash32(274557032793636864) == 234878118
    assert ids.stream_id("EVT000xY9Wvvcd") == "1704117200000-1620567"
    assert ids.min_for(1767225600000) == ids.pack(1767225600000, 0, 0)
    assert ids.unix_ms("JOB0JZGkP8stGK") == 1767225600000


@pytest.mark.parametrize("number", [-1, 2**63])
def test_numbers_out_of_range(number: int) -> None:
    with pytest.raises(ArgumentError):
        ids.encode_payload(number)


@given(numbers, numbers)
def test_bytes_sort_as_numbers(a: int, b: int) -> None:
    assert (a < b) == (ids.encode_payload(a) < ids.encode_payload(b))
    assert ids.decode_payload(ids.encode_payload(a)) == a


@pytest.mark.parametrize("value", [None, 7, b"JOB0JZGkP8stGK"])
def test_only_text_is_an_id(value: object) -> None:
    assert not ids.is_valid(value)
    with pytest.raises(ArgumentError):
        ids.check_id(value)


def test_a_new_millisecond_restarts_the_sequence() -> None:
    clock = ManualClock()
    minter = ids.Minter(7, clock)
    assert [ids.unpack(minter.number()).sequence for _ in range(3)] == [0, 1, 2]
    clock.advance(1)
    assert ids.unpack(minter.number()) == (ids.EPOCH_MS + 1, 7, 0)


def test_a_full_millisecond_carries_over() -> None:
    minter = ids.Minter(0, ManualClock())
    minted = [minter.number() for _ in range(4097)]
    assert ids.unpack(minted[4095]) == (ids.EPOCH_MS, 0, 4095)
    assert ids.unpack(minted[4096]) == (ids.EPOCH_MS + 1, 0, 0)


def test_a_clock_that_steps_back_is_ignored() -> None:
    clock = ManualClock(1_800_000_000)
    minter = ids.Minter(0, clock)
    first = minter.number()
    clock.set(1_700_000_000)
    assert minter.number() == first + 1


@given(st.lists(st.integers(-3, 3), max_size=60))
def test_minting_strictly_increases(steps: list[int]) -> None:
    clock = ManualClock(1_800_000_000)
    minter = ids.Minter(5, clock)
    minted = []
    for step in steps:
        clock.set(1_800_000_000 + step / 1000)
        minted.append(minter.mint())
    assert minted == sorted(set(minted))


def test_threads_never_mint_the_same() -> None:
    minter = ids.Minter(0, ManualClock())
    minted: list[list[int]] = [[] for _ in range(4)]

    def work(mine: list[int]) -> None:
        mine.extend(minter.number() for _ in range(2000))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in minted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({number for mine in minted for number in mine}) == 8000
    assert all(mine == sorted(mine) for mine in minted)


@pytest.mark.parametrize("node", [-1, 1024])
def test_node_ids_are_bounded(node: int) -> None:
    with pytest.raises(ArgumentError):
        ids.Minter(node)


def test_the_default_node_fits() -> None:
    assert 0 <= ids.Minter().node <= 1023


def test_all_who_give_no_minter_share_one() -> None:
    assert ids.default_minter() is ids.default_minter()


FORK = """
import os
from echomq import ids
mine = ids.default_minter()
child = os.fork()
if child == 0:
    os._exit(0 if ids.default_minter() is not mine else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_child_mints_by_itself() -> None:
    assert subprocess.run([sys.executable, "-c", FORK], check=False).returncode == 0
