"""What the live cluster answered to the lines, masked, for machines without it.

``python -m tests.cluster.recorded`` writes it. A block is known by its text, so a changed one is noticed.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.conformance.lines import Block
from tests.conformance.run import CLOSED, NOTHING, Entry
from tests.support.resp import Frame

from .harness import blocks, live, transcript

__all__ = ["has", "read"]

FILE = Path(__file__).with_name("recorded.json")


def _name(block: Block, protocol: int) -> str:
    digest = hashlib.sha256(block.text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return f"{block.id} {protocol} {digest}"


@cache
def _all() -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return kept


def has(block: Block, protocol: int) -> bool:
    return _name(block, protocol) in _all()


def read(block: Block, protocol: int) -> list[Entry]:
    """The transcript that was recorded; KeyError if the block is new or was changed."""
    lines = {line.number: line for line in block.lines}
    entries = []
    for number, text, kept in _all()[_name(block, protocol)]:
        variant = lines[number].variant if number else _variant_of(text)
        entries.append(Entry(number, text, variant, _restored(kept)))
    return entries


def _variant_of(text: str) -> Any:
    from tests.conformance.lines import Variant

    return Variant("unordered") if text.startswith("(keys") else Variant()


def _kept(frame: Frame) -> Any:
    if frame is NOTHING or frame is CLOSED:
        return frame is CLOSED
    value = frame.value
    if isinstance(value, list):
        value = [_kept(item) for item in value]
    elif isinstance(value, bytes):
        value = value.decode("latin-1")
    return [frame.kind, value, frame.raw.decode("latin-1")]


def _restored(kept: Any) -> Frame:
    if isinstance(kept, bool):
        return CLOSED if kept else NOTHING
    kind, value, raw = kept
    if isinstance(value, list):
        value = [_restored(item) for item in value]
    elif isinstance(value, str):
        value = value.encode("latin-1")
    return Frame(kind, value, raw.encode("latin-1"))


def main() -> None:
    side, cluster = live()
    kept = {}
    for block in blocks():
        for protocol in block.protocols:
            entries = transcript(block, protocol, side)
            kept[_name(block, protocol)] = [
                [entry.number, entry.text, _kept(entry.frame)] for entry in entries
            ]
    side.close()
    cluster.stop()
    FILE.write_text(json.dumps(kept, indent=0, ensure_ascii=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
