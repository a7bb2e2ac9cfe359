"""Holding two transcripts against each other, each line in its own way."""

from __future__ import annotations

import hashlib
import re
from itertools import zip_longest
from typing import Any

from tests.support.resp import Frame, show

from .lines import Variant
from .run import NOTHING, Entry

__all__ = ["differences", "digest_of", "fields", "same"]

DIGEST = b"sha256:"


def same(variant: Variant, want: Frame, got: Frame) -> bool:
    """Whether ``got`` counts as the answer ``want`` under ``variant``."""
    if want.kind == got.kind and variant.name != "value" and _same_bytes(want, got):
        return True
    if variant.name == "unordered":
        return _sorted(want, int(variant.amount)) == _sorted(got, int(variant.amount))
    if variant.name in ("near", "instant"):
        return _near(want, got, variant.amount)
    if variant.name == "error":
        return want.is_error and got.is_error and want.value.split()[:1] == got.value.split()[:1]
    if variant.name == "fields":
        return want.kind == got.kind and fields(want, variant.names) == fields(got, variant.names)
    if variant.name == "kind":
        return want.kind == got.kind and (want.value is None) == (got.value is None)
    return variant.name == "value" and want.value == got.value


def digest_of(frame: Frame) -> Frame:
    """A frame that stands for a long one: it equals any frame of the same bytes, exactly compared."""
    raw = DIGEST + hashlib.sha256(frame.raw).hexdigest().encode()
    return Frame(frame.kind, raw, raw)


def _same_bytes(want: Frame, got: Frame) -> bool:
    if want.raw.startswith(DIGEST) != got.raw.startswith(DIGEST):
        want, got = (want, digest_of(got)) if want.raw.startswith(DIGEST) else (digest_of(want), got)
    return want.raw == got.raw


def _sorted(frame: Frame, group: int) -> Any:
    """A value equal for frames that differ in order only; ``group`` neighbours of a flat array stay together."""
    if not isinstance(frame.value, list):
        return (frame.kind, frame.raw)
    items = [_sorted(item, group) for item in frame.value]
    size = 2 if frame.kind == "%" else group if all(not isinstance(i.value, list) for i in frame.value) else 1
    if frame.kind == ">":
        return (frame.kind, items)
    chunks = [items[i : i + size] for i in range(0, len(items), size)]
    return (frame.kind, sorted(chunks, key=repr))


def fields(frame: Frame, names: tuple[str, ...]) -> Any:
    """What a text says about ``names``, every time it does; anything but a text is taken whole."""
    if not isinstance(frame.value, bytes):
        return frame.raw
    found = re.findall(r"(?:^|(?<=[\s:]))([\w-]+)[=:](\S*)", frame.value.decode("latin-1"))
    return [(name, value) for name, value in found if name in names]


def _number(frame: Frame) -> float | None:
    try:
        return float(frame.value)
    except (TypeError, ValueError):
        return None


def _near(want: Frame, got: Frame, tolerance: float) -> bool:
    if want.kind != got.kind:
        return False
    if isinstance(want.value, list):
        return len(want.value) == len(got.value or ()) and all(
            _near(w, g, tolerance) for w, g in zip(want.value, got.value, strict=True)
        )
    a, b = _number(want), _number(got)
    if a is None or b is None:
        return want.raw == got.raw
    return a == b or abs(a - b) <= tolerance


def differences(
    want: list[Entry], got: list[Entry], names: tuple[str, str] = ("live", "emuredis")
) -> list[str]:
    """One text per answer that differs, empty when the transcripts agree."""
    out = []
    for left, right in zip_longest(want, got):
        entry = left or right
        wanted, came = (left.frame if left else NOTHING), (right.frame if right else NOTHING)
        if left and right and left.text == right.text and same(entry.variant, wanted, came):
            continue
        where = f"line {entry.number}: {entry.text}" if entry.number else entry.text
        if left and right and left.text != right.text:
            out.append(f"{where}\n  but the other transcript goes on with {right.text}")
            break
        width = max(map(len, names))
        shown = [
            f"  {n:<{width}}  {_short(show(f, '  ' + ' ' * width))}"
            for n, f in zip(names, (wanted, came), strict=True)
        ]
        out.append("\n".join([where, *shown]))
    return out


def _short(text: str, limit: int = 1500) -> str:
    return text if len(text) <= limit else f"{text[:limit]} ... ({len(text)} characters)"
