"""The live server's transcripts, kept for machines that cannot run it.

One JSON file per file of lines, written by ``make record``. A block is found by its title and the digest of its
text, so lines that changed since the recording are noticed instead of compared with old answers. Frames are
kept as they were on the wire, one character per byte, as far as they are compared: of a text only the fields that the
line names, of an answer compared by its kind only the kind, of a long one its digest.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from tests.support.endpoints import Endpoint
from tests.support.resp import Frame, parse

from .compare import digest_of, fields
from .lines import DIRECTORY, Block, Line, Variant
from .run import CLOSED, NOTHING, Entry, run

__all__ = ["RECORDED", "NotRecorded", "read", "write"]

LONG = 500  # bytes of an exactly compared frame, above which its digest is kept
RECORDED = DIRECTORY.parent / "recorded"


class NotRecorded(Exception):
    """The block is new or was changed: run ``make record`` where the live server is available."""


def digest(block: Block) -> str:
    return hashlib.sha256(block.text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _keep(frame: Frame, variant: Variant) -> Any:
    """A frame as JSON: a string of its bytes, None and False for the special ones, a list for what was reduced."""
    if frame is NOTHING:
        return None
    if frame is CLOSED:
        return False
    if variant.name == "kind" and frame.value is not None:
        return [frame.kind, ""]
    if variant.name == "fields" and frame.kind in "$=":
        return [frame.kind, "".join(f" {name}={value}" for name, value in fields(frame, variant.names))]
    if variant.name == "exact" and len(frame.raw) > LONG:
        return [frame.kind, digest_of(frame).raw.decode("ascii"), "digest"]
    return frame.raw.decode("latin-1") if frame.raw else [frame.kind, frame.value.decode("latin-1")]


def _restore(kept: Any) -> Frame:
    if kept is None or kept is False:
        return NOTHING if kept is None else CLOSED
    if isinstance(kept, list):
        value = kept[1].encode("latin-1")
        return Frame(kept[0], value, value if kept[2:] else b"")
    return parse(kept.encode("latin-1"))[0]


def _as_json(entries: list[Entry]) -> list[Any]:
    """Answers to lines as they are; what follows the lines with its name and variant."""
    out: list[Any] = []
    for entry in entries:
        kept = _keep(entry.frame, entry.variant)
        variant = [entry.variant.name, entry.variant.amount]
        out.append(kept if entry.number else {"of": entry.text, "as": variant, "is": kept})
    return out


def _from_json(block: Block, kept: list[Any]) -> list[Entry]:
    answered: list[Line] = [
        line for line in block.lines if line.action in ("call", "repeat", "receive", "quiet", "digest")
    ]
    out = []
    for position, item in enumerate(kept):
        if isinstance(item, dict):
            out.append(Entry(0, item["of"], Variant(*item["as"]), _restore(item["is"])))
        else:
            line = answered[position]
            out.append(Entry(line.number, line.text, line.variant, _restore(item)))
    return out


def write(blocks: list[Block], live: Endpoint) -> int:
    """Record ``blocks`` anew; files of which no block is given stay as they are."""
    by_file: dict[str, dict[str, Any]] = {}
    for block in blocks:
        answers: dict[str, Any] = {
            str(protocol): _as_json(run(block, protocol, live)) for protocol in block.protocols
        }
        if answers.get("3") == answers.get("2"):
            answers["3"] = "as 2"
        by_file.setdefault(block.file, {})[block.title] = {"digest": digest(block), "answers": answers}
    live.close()
    RECORDED.mkdir(exist_ok=True)
    for name, content in by_file.items():
        text = json.dumps(content, indent=0, ensure_ascii=True) + "\n"
        (RECORDED / f"{name}.json").write_text(text, "utf-8")
        print(f"recorded {name}: {len(content)} blocks")
    return 0


_loaded: dict[Path, dict[str, Any]] = {}


def read(block: Block, protocol: int) -> list[Entry]:
    """The recorded transcript of ``block``. Raises `NotRecorded`."""
    path = RECORDED / f"{block.file}.json"
    if path not in _loaded:
        _loaded[path] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    kept = _loaded[path].get(block.title)
    if kept is None or kept["digest"] != digest(block) or str(protocol) not in kept["answers"]:
        raise NotRecorded(f"no recorded answers for {block.id} as it is now: run `make record`")
    answers = kept["answers"]
    return _from_json(block, answers["2"] if answers[str(protocol)] == "as 2" else answers[str(protocol)])
