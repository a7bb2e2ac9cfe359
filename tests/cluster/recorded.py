"""What the live cluster answered to the lines, masked, for machines without it.

``python -m tests.cluster.recorded`` writes it. A block is known by its text, so a changed one is noticed.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.conformance.compare import fields
from tests.conformance.lines import Block, Variant
from tests.conformance.run import CLOSED, NOTHING, Entry
from tests.support.live_cluster import LiveCluster
from tests.support.resp import Frame

from .harness import blocks, frame_of, live, transcript

__all__ = ["has", "read"]

FILE = Path(__file__).with_name("recorded.json")
EXACT, UNORDERED = Variant(), Variant("unordered")


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
        variant = lines[number].variant if number else UNORDERED if text.startswith("(keys") else EXACT
        entries.append(Entry(number, text, variant, _restored(kept)))
    return entries


def _kept(frame: Frame, variant: Variant = EXACT) -> Any:
    """A frame as JSON, as far as it is compared."""
    if frame is NOTHING or frame is CLOSED:
        return frame is CLOSED
    if variant.name == "kind" and frame.value is not None:
        return [frame.kind, ""]
    if variant.name == "fields":
        return [frame.kind, "".join(f" {name}={value}" for name, value in fields(frame, variant.names))]
    value = frame.value
    if isinstance(value, list):
        value = [_kept(item) for item in value]
    elif isinstance(value, bytes):
        value = value.decode("latin-1")
    return [frame.kind, value]


def _restored(kept: Any) -> Frame:
    if isinstance(kept, bool):
        return CLOSED if kept else NOTHING
    kind, value = kept
    if isinstance(value, list):
        value = [_restored(item) for item in value]
    elif isinstance(value, str):
        value = value.encode("latin-1")
    return frame_of(kind, value)


def main() -> None:
    cluster = LiveCluster(3)
    side = live(cluster)
    kept = {}
    for block in blocks():
        for protocol in block.protocols:
            entries = transcript(block, protocol, side)
            kept[_name(block, protocol)] = [
                [entry.number, entry.text, _kept(entry.frame, entry.variant)] for entry in entries
            ]
    side.close()
    cluster.stop()
    rows = [f"{json.dumps(name)}: {json.dumps(entries)}" for name, entries in kept.items()]
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
