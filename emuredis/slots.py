"""Cluster slots: which of the 16,384 a key belongs to.

A key's slot is the CRC16 (XMODEM) of its hash tag, the text between the first ``{`` and the next ``}``, or of the whole
key where there is no tag or an empty one.
"""

from __future__ import annotations

from binascii import crc_hqx

__all__ = ["SLOTS", "key_slot", "pattern_slot"]

SLOTS = 16384


def key_slot(key: bytes) -> int:
    """The slot of ``key``, 0 to 16383."""
    start = key.find(b"{")
    if start >= 0:
        end = key.find(b"}", start + 1)
        if end > start + 1:
            key = key[start + 1 : end]
    return crc_hqx(key, 0) & (SLOTS - 1)


def pattern_slot(pattern: bytes) -> int:
    """The slot of all keys that match a glob pattern; -1 if they may be in several."""
    start = -1
    for at, byte in enumerate(pattern):
        if byte in b"*?[\\":
            return -1
        if start < 0 and byte == 123:  # {
            start = at
        elif start >= 0 and byte == 125 and at > start + 1:  # }
            return crc_hqx(pattern[start + 1 : at], 0) & (SLOTS - 1)
    return crc_hqx(pattern, 0) & (SLOTS - 1)
