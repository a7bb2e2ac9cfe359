"""Replies as the cases write them in JSON, and what counts as the same reply.

Bulk string: a JSON string, or ``{"b64"}`` where it is not UTF-8; ``{"str"}`` simple string; ``{"err"}``; an integer;
null a null; ``{"null": "array"}`` RESP2's null array; a list; ``{"map": [[k, v]]}``, ``{"set"}``, ``{"push"}``,
``{"double"}``, ``{"bool"}``, ``{"big"}``, ``{"verbatim": [format, text]}``. Probes and scenarios say status, error and
hex for str, err and b64, and do not tell the two nulls apart: `translate` brings them to the first form.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.support.resp import Frame

__all__ = ["NOTHING", "from_frame", "pack", "same", "translate", "unpack"]

NOTHING = {"none": True}
_WORDS = {"*": None, "~": "set", ">": "push", "+": "str", "-": "err", "!": "err", ",": "double", "(": "big"}


def pack(data: bytes) -> Any:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(data).decode("ascii")}


def unpack(value: Any, names: dict[str, Any]) -> bytes:
    """A command argument to bytes. Raises ValueError for what cannot be sent."""
    if isinstance(value, dict):
        if "b64" in value:
            return base64.b64decode(value["b64"])
        if "rep" in value:
            return unpack(value["rep"][0], names) * int(value["rep"][1])
        for key, inner in (("var", lambda v: names[v]), ("str", str), ("double", str)):
            if key in value:
                return unpack(inner(value[key]), names)
    elif isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value).encode("ascii")
    raise ValueError(f"cannot send {value!r}")


def from_frame(frame: Frame | None) -> Any:
    """A frame in the notation above."""
    if frame is None:
        return NOTHING
    kind, value = frame.kind, frame.value
    if value is None:
        return {"null": "array"} if kind == "*" else None
    if kind == ":":
        return value
    if kind == "$":
        return pack(value)
    if kind == "#":
        return {"bool": value == b"t"}
    if kind == "=":
        return {"verbatim": [pack(value[:3]), pack(value[4:])]}
    if kind == "%":
        items = [from_frame(item) for item in value]
        return {"map": [[items[i], items[i + 1]] for i in range(0, len(items), 2)]}
    inner = (
        [from_frame(item) for item in value]
        if isinstance(value, list)
        else str(value)
        if kind == "("
        else pack(value)
    )
    word = _WORDS[kind]
    return inner if word is None else {word: inner}


def translate(value: Any) -> Any:
    """The notation of probes and scenarios to the first form."""
    if isinstance(value, list):
        return [translate(item) for item in value]
    if not isinstance(value, dict) or value == NOTHING:
        return value
    ((key, inner),) = value.items()
    if key == "hex":
        return {"b64": base64.b64encode(bytes.fromhex(inner)).decode("ascii")}
    if key == "hang":
        return NOTHING
    if key == "verbatim":
        return {"verbatim": [inner[:3], inner[4:]]}
    return {{"status": "str", "error": "err"}.get(key, key): translate(inner)}


def _kind(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, str, list)):
        return {type(None): "null", bool: "bool", int: "int", str: "bulk", list: "list"}[type(value)]
    key = next(iter(value))
    return {"b64": "bulk", "null": "null-array"}.get(key, key)


def _canonical(value: Any, loose: bool, group: int = 1) -> str:
    """A text equal for values that count as equal: maps and sets, and with ``loose`` lists, have no order."""
    if isinstance(value, list):
        if group > 1:
            items = [_canonical(value[i : i + group], False) for i in range(0, len(value), group)]
        else:
            items = [_canonical(item, loose) for item in value]
        return "[" + ",".join(sorted(items) if loose else items) + "]"
    if isinstance(value, dict) and "map" in value:
        pairs = sorted(_canonical(k, loose) + "=>" + _canonical(v, loose) for k, v in value["map"])
        return "map{" + ",".join(pairs) + "}"
    if isinstance(value, dict) and "set" in value:
        return "set{" + ",".join(sorted(_canonical(v, loose) for v in value["set"])) + "}"
    if isinstance(value, dict) and "push" in value:
        return "push" + _canonical(value["push"], False)
    return json.dumps(value, sort_keys=True)


def _number(value: Any) -> float | None:
    if isinstance(value, dict) and "double" in value:
        value = value["double"]
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def _near(want: Any, got: Any, tolerance: float, places: list[int] | None) -> bool:
    """Equal but for numbers; with ``places``, only for those at such places in the list that holds them."""
    if _kind(want) != _kind(got):
        return False
    if isinstance(want, list):
        return len(want) == len(got) and all(
            _near(w, g, tolerance if isinstance(w, list) or places is None or at in places else 0, places)
            for at, (w, g) in enumerate(zip(want, got, strict=True))
        )
    a, b = _number(want), _number(got)
    if a is None or b is None:
        return bool(want == got)
    return a == b or abs(a - b) <= tolerance


def _blank(value: Any, names: list[str]) -> Any:
    """Blank what follows ``names`` in flat name/value lists and maps."""
    if isinstance(value, list):
        out = [_blank(item, names) for item in value]
        for at in range(len(out) - 1):
            if isinstance(out[at], str) and out[at] in names:
                out[at + 1] = "(skipped)"
        return out
    if isinstance(value, dict) and "map" in value:
        return {"map": [[k, "(skipped)" if k in names else _blank(v, names)] for k, v in value["map"]]}
    return value


def _text(value: Any) -> str:
    if isinstance(value, dict) and "verbatim" in value:
        value = value["verbatim"][1]
    return value if isinstance(value, str) else json.dumps(value)


def same(step: dict[str, Any], want: Any, got: Any) -> bool:
    """Whether ``got`` is the answer ``want`` under the step's ``match``."""
    if "skip" in step:
        want, got = _blank(want, step["skip"]), _blank(got, step["skip"])
    if any(part not in _text(got) for part in step.get("has", ())):
        return False
    return _MATCHES[step.get("match", "exact")](step, want, got)


def _same_type(step: dict[str, Any], want: Any, got: Any) -> bool:
    return _kind(want) == _kind(got) and not (step.get("len") and len(want) != len(got))


def _same_prefix(step: dict[str, Any], want: Any, got: Any) -> bool:
    if _kind(got) != "err" or not isinstance(got["err"], str):
        return False
    prefix = step.get("prefix")
    return bool(got["err"].startswith(want["err"].split(" ", 1)[0] if prefix is None else prefix))


def _same_unordered(step: dict[str, Any], want: Any, got: Any) -> bool:
    group = step.get("group", 1)
    return _canonical(want, True, group) == _canonical(got, True, group)


def _one_null(value: Any) -> Any:
    if isinstance(value, list):
        return [_one_null(item) for item in value]
    return None if value == {"null": "array"} else value


_MATCHES = {
    "exact": lambda step, want, got: _canonical(want, False) == _canonical(got, False),
    "literal": lambda step, want, got: (
        want == _one_null(got)
    ),  # probes and scenarios: order counts, nulls are one
    "any": lambda step, want, got: _kind(got) != "err" or _kind(want) == "err",
    "type": _same_type,
    "error-prefix": _same_prefix,
    "approx": lambda step, want, got: _near(want, got, step.get("tol", 0), step.get("at")),
    "unordered": _same_unordered,
}
