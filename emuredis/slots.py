"""Cluster slots: which of the 16,384 a key belongs to.

A key's slot is the CRC16 (XMODEM) of its hash tag, the text between the first ``{`` and the next ``}``, or of the whole
key where there is no tag or an empty one.
"""

from __future__ import annotations

from binascii import crc_hqx

__all__ = ["SLOTS", "key_slot"]

SLOTS = 16384


def key_slot(key: bytes) -> int:
    """The slot of ``key``, 0 to 16383."""
    start = key.find(b"{")
    if start >= 0:
        end = key.find(b"}", start + 1)
        if end > start + 1:
            key = key[start + 1 : end]
    return crc_hqx(key, 0) & (SLOTS - 1)
