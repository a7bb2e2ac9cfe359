"""Where content can come from: data, files of it, RDB files, and what MONITOR printed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emuredis.errors import EmulatorError, ReplyError
from emuredis.kit.contents import fill

if TYPE_CHECKING:
    from emuredis.emulator import Emulator

__all__ = ["load", "monitored"]

#: ``1339518083.107412 [0 127.0.0.1:60866] "keys" "*"``, ``+`` in front where the protocol is shown.
_LINE = re.compile(r"^\+?\d+\.\d+ \[(\d+) (\S+)\] (.*)$")
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b"}


def load(emulator: Emulator, source: Any) -> None:
    """`Emulator.load`."""
    if isinstance(source, Mapping):
        content: Any = source
    elif isinstance(source, (str, os.PathLike)) and not (
        isinstance(source, str) and source.lstrip().startswith("{")
    ):
        path = Path(source)
        if path.suffix == ".rdb":
            emulator.load_rdb(path)
            return
        try:
            text = path.read_text("utf-8", "surrogateescape")
        except OSError as problem:
            raise EmulatorError(f"cannot read {path}: {problem.strerror}") from problem
        if path.suffix == ".log":
            _run(emulator, path, text)
            return
        content = _parsed(path, text)
    elif isinstance(source, str):
        content = _json("the text", source)
    else:
        raise EmulatorError(f"load() takes a dict, text or the path of a file, not {type(source).__name__}")
    if not isinstance(content, Mapping):
        raise EmulatorError(
            f"{source if not isinstance(source, Mapping) else 'it'} does not hold keys and values"
        )
    with emulator.engine.lock:
        emulator.engine.in_unit(lambda: fill(emulator.engine, content))


def _json(what: object, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as problem:
        raise EmulatorError(f"{what} is no JSON: {problem}") from problem


def _parsed(path: Path, text: str) -> Any:
    if path.suffix not in (".yaml", ".yml"):
        return _json(path, text)
    try:
        import yaml
    except ImportError as problem:
        raise EmulatorError(f"{path}: YAML needs PyYAML: pip install pyyaml") from problem
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as problem:
        raise EmulatorError(f"{path} is no YAML: {problem}") from problem


# -- MONITOR -------------------------------------------------------------------------------------


def monitored(text: str) -> Iterator[tuple[int, int, str, list[bytes]]]:
    """The commands in what MONITOR printed: line number, database, client address, words. Raises EmulatorError.

    What a script called (its address is ``lua``) is left out: it is in the script.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.strip().upper() in ("OK", "+OK"):
            continue
        found = _LINE.match(line.strip())
        if found is None:
            raise EmulatorError(f"line {number} is none of MONITOR's: {line[:80]!r}")
        if found[2] != "lua":
            yield number, int(found[1]), found[2], _words(number, found[3])


def _words(number: int, text: str) -> list[bytes]:
    words: list[bytes] = []
    at = 0
    while at < len(text):
        found = _WORD.match(text, at)
        if found is None:
            raise EmulatorError(f"line {number}: the arguments are not in quotes: {text[at : at + 40]!r}")
        words.append(_unquoted(found[1]))
        at = found.end() + 1
    return words


def _unquoted(text: str) -> bytes:
    out = bytearray()
    at = 0
    while at < len(text):
        letter = text[at]
        at += 1
        if letter == "\\" and text[at] == "x":
            out.append(int(text[at + 1 : at + 3], 16))
            at += 3
        elif letter == "\\":
            out += _ESCAPES.get(text[at], text[at]).encode()
            at += 1
        else:
            out += letter.encode("utf-8", "surrogateescape")
    return bytes(out)


def _run(emulator: Emulator, path: Path, text: str) -> None:
    """Run the commands of a file of MONITOR's output, each client's on a connection of its own."""
    try:
        lines = list(monitored(text))
    except EmulatorError as problem:
        raise EmulatorError(f"{path}: {problem}") from None
    clients: dict[str, Any] = {}
    for number, db, address, words in lines:
        client = clients.get(address)
        if client is None:
            client = clients[address] = emulator.client(db=db)
            client.session.deny_blocking = True  # it has waited already
        try:
            client.call(*words)
        except ReplyError:
            pass  # it failed then, too, or the log does not begin at the beginning
        except EmulatorError as problem:
            raise EmulatorError(f"{path}: line {number}: {problem}") from problem
    for client in clients.values():
        client.close()
