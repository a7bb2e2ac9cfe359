"""What the live server says about each of its commands, kept for machines without it.

``python -m tests.meta.live_commands`` writes ``live_commands.json``: COMMAND INFO and the group, version and syntax of
COMMAND DOCS for every command and subcommand. A test compares the file with the live server where there is one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.support.endpoints import Client
from tests.support.resp import Frame

__all__ = ["FILE", "ask", "kept", "plain"]

FILE = Path(__file__).with_name("live_commands.json")
PROSE = ("summary", "complexity", "history", "notes")  # not compared: our own words
# Not declared for single arguments: their history, and the keys they count (or do not), which `key_specs` tells.
ARGUMENT_EXTRAS = ("since", "deprecated_since", "summary", "key_spec_index")


def plain(frame: Frame) -> Any:
    """A frame as JSON would have it; sets sorted, maps as objects."""
    value = frame.value
    if frame.kind == "%":
        return {plain(value[i]): plain(value[i + 1]) for i in range(0, len(value), 2)}
    if frame.kind == "~":
        return sorted((plain(item) for item in value), key=repr)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def _without_prose(said: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in said.items() if key not in PROSE}


def _arguments(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            key: _arguments(value) if key == "arguments" else value
            for key, value in argument.items()
            if key not in ARGUMENT_EXTRAS
        }
        for argument in said
    ]


def _collect(info: list[Any], docs: dict[str, Any], out: dict[str, Any]) -> None:
    name, arity, flags, first, last, step, categories, tips, specs, subcommands = info
    out[name] = {
        "arity": arity,
        "flags": sorted(flags),
        "keys": [first, last, step],
        "acl": sorted(categories),
        "tips": sorted(tips),
        "arguments": _arguments(docs.get("arguments", [])),
        "key_specs": sorted((_without_prose(spec) for spec in specs), key=repr),
        "docs": {
            key: value
            for key, value in _without_prose(docs).items()
            if key not in ("arguments", "subcommands")
        },
    }
    for sub in subcommands:
        _collect(sub, docs.get("subcommands", {}).get(sub[0], {}), out)


def ask(client: Client, names: list[str] | None = None) -> dict[str, Any]:
    """What the server behind ``client`` (which speaks RESP3) says about ``names``, or about all its commands."""

    def call(*argv: bytes) -> Any:
        client.send(list(argv))
        frame = client.receive(True)
        assert frame is not None
        return plain(frame)

    words = [name.encode() for name in names or ()]
    docs = call(b"COMMAND", b"DOCS", *words)
    out: dict[str, Any] = {}
    for info in call(b"COMMAND", b"INFO", *words) if words else call(b"COMMAND"):
        _collect(info, docs.get(info[0], {}), out)
    return dict(sorted(out.items()))


def kept() -> dict[str, Any]:
    return dict(json.loads(FILE.read_text("utf-8")))


def main() -> int:
    from tests.support.endpoints import SocketEndpoint
    from tests.support.live import LiveServer

    with LiveServer() as live:
        endpoint = SocketEndpoint("live", live.socket_path)
        said = ask(endpoint.open(3))
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(entry, sort_keys=True)}" for name, entry in said.items()
    )
    FILE.write_text("{\n" + lines + "\n}\n", "utf-8")
    print(f"recorded {len(said)} commands")
    return 0


if __name__ == "__main__":
    sys.exit(main())
