r"""The text format of conformance lines, and its parser.

A file holds blocks; ``== title`` starts one, on an empty database with fresh connections. A line is a
command as redis-cli reads it (``"\x00\n"`` escapes in double quotes, ``'...'`` literal); an indented line
continues the one before, so scripts can span lines. ``#`` starts a comment line.

    SET k v                 send, compare the reply byte for byte
    ~ SMEMBERS k            compare without order, at every depth; ``~2`` keeps pairs together
    %20 PTTL k              numbers may differ by 20
    ^20 PEXPIRETIME k       times of day: compared as distances from the start of the block, within 20
    &db,flags CLIENT INFO   of a text of ``name=value`` or ``name:value``, only these names are compared
    ! EVAL "..." 0          both must be errors with the same first word
    ? CLIENT ID             only the type of the reply is compared
    @a GET k                another client; it connects at its first use (the unnamed one is ``main``)
    @a> BLPOP k 0           send without reading the reply; goes on once the server has dealt with it
    @a<                     read one reply or push (``@a< ~`` with a variant); waits for it
    @a|                     compare whether anything has arrived by now
    @a-                     disconnect
    @a :raw "PING\r\n"      send bytes as they are; read with ``<``
    :wait 50                let 50 ms pass
    :repeat 100 RPUSH k v   send it 100 times, compare the last reply
    :save name 1 0          keep a part of the last reply (here element 0 of element 1) as ``{saved:name}``
    :digest                 compare everything the databases hold: encodings, deadlines, groups too
    :protocol 3             this block runs in RESP3 only (or 2)
    :skip wire              this block does not run over the wire (or ``inprocess``); say why in a comment

Replaced inside arguments: ``{rep:x:1000}`` a thousand x · ``{now+500}`` / ``{sec-5}`` the server's time in
milliseconds / seconds plus something · ``{id:a}`` client a's id · ``{saved:name}``.

At the end of a block whatever a client still holds unread is compared too, and so is the content of
the databases.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["DIRECTORY", "Block", "Line", "Variant", "files", "load", "parse_text", "split_arguments"]

DIRECTORY = Path(__file__).parent / "lines"

_LINE = re.compile(
    r"(?:@(?P<client>\w+))?\s*(?P<action>[<>|-])?\s*(?P<variant>~\d*|[%^][\d.]+|&[\w,-]+|!|\?)?(?P<rest>.*)$",
    re.S,
)
_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "b": b"\b", "a": b"\a"}


@dataclass(frozen=True, slots=True)
class Variant:
    """How a reply is compared: ``exact unordered near instant fields error kind``."""

    name: str = "exact"
    amount: float = 1
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    text: str
    client: str
    action: str  # call send receive quiet close | raw wait repeat save digest
    variant: Variant
    argv: tuple[bytes, ...]


@dataclass(slots=True)
class Block:
    file: str
    title: str
    number: int
    protocols: tuple[int, ...] = (2, 3)
    skipped: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)

    @property
    def id(self) -> str:
        return f"{self.file}:{self.title}"

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)

    @property
    def waits(self) -> bool:
        """Whether time has to pass."""
        return any(line.action == "wait" for line in self.lines)

    def mentions(self, *words: str) -> bool:
        """Whether a command word of ``words`` occurs anywhere in the block."""
        alternatives = "|".join(words)
        return re.search(rf"\b(?:{alternatives})\b", self.text, re.I) is not None


def split_arguments(text: str) -> list[bytes]:
    """Split as redis-cli does. Raises ValueError for unbalanced quotes."""
    data, out, at = text.encode("utf-8", "surrogateescape"), [], 0
    while True:
        while at < len(data) and data[at : at + 1].isspace():
            at += 1
        if at >= len(data):
            return out
        word, at = _word(data, at)
        out.append(word)


def _word(data: bytes, at: int) -> tuple[bytes, int]:
    word = bytearray()
    while at < len(data) and not data[at : at + 1].isspace():
        char = data[at : at + 1]
        if char in (b'"', b"'"):
            at = _quoted(data, at + 1, char, word)
            if at < len(data) and not data[at : at + 1].isspace():
                raise ValueError("a closing quote must be followed by a space")
        else:
            word += char
            at += 1
    return bytes(word), at


def _quoted(data: bytes, at: int, quote: bytes, word: bytearray) -> int:
    """Append what stands between ``at`` and the closing quote to ``word``; the place after it."""
    while at < len(data):
        char = data[at : at + 1]
        if char == quote:
            return at + 1
        if char == b"\\" and quote == b"'" and data[at + 1 : at + 2] == b"'":
            word += b"'"
            at += 2
        elif char == b"\\" and quote == b'"' and at + 1 < len(data):
            after = data[at + 1 : at + 2].decode("latin-1")
            if after == "x" and re.match(rb"[0-9a-fA-F]{2}", data[at + 2 : at + 4]):
                word.append(int(data[at + 2 : at + 4], 16))
                at += 4
            else:
                word += _ESCAPES.get(after, after.encode("latin-1"))
                at += 2
        else:
            word += char
            at += 1
    raise ValueError("a quote is not closed")


def _variant(text: str | None) -> Variant:
    if not text:
        return Variant()
    if text[0] == "~":
        return Variant("unordered", int(text[1:] or 1))
    if text[0] in "%^":
        return Variant("near" if text[0] == "%" else "instant", float(text[1:]))
    if text[0] == "&":
        return Variant("fields", names=tuple(text[1:].split(",")))
    return Variant("error" if text == "!" else "kind")


_ACTIONS = {None: "call", ">": "send", "<": "receive", "|": "quiet", "-": "close"}


def _line(number: int, text: str) -> Line:
    match = _LINE.match(text)
    if match is None:
        raise ValueError("not a line of this format")
    rest, action = match["rest"].strip(), _ACTIONS[match["action"]]
    if rest.startswith(":"):
        word, _, rest = rest[1:].partition(" ")
        if word not in ("raw", "wait", "repeat", "save", "digest", "protocol", "skip"):
            raise ValueError(f"no directive :{word}")
        action = word
    argv = tuple(split_arguments(rest))
    if bool(argv) == (action in ("receive", "quiet", "close", "digest")):
        raise ValueError(f"{action} takes {'no' if argv else 'a'} command")
    return Line(number, text, match["client"] or "main", action, _variant(match["variant"]), argv)


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Numbered lines with continuations joined and comments dropped."""
    out: list[tuple[int, str]] = []
    for number, raw in enumerate(text.split("\n"), 1):
        if raw[:1] in (" ", "\t") and raw.strip() and out:
            out[-1] = (out[-1][0], out[-1][1] + "\n" + raw.rstrip())
        elif raw.strip() and not raw.startswith("#"):
            out.append((number, raw.rstrip()))
    return out


def parse_text(text: str, file: str) -> list[Block]:
    """The blocks of ``text``; ValueError names file and line."""
    blocks: list[Block] = []
    titles: set[str] = set()
    for number, source in _logical_lines(text):
        if source.startswith("=="):
            title = source[2:].strip()
            if not title or title in titles:
                raise ValueError(f"{file}:{number}: every block needs a title of its own")
            titles.add(title)
            blocks.append(Block(file, title, number))
            continue
        if not blocks:
            blocks.append(Block(file, "lines", number))
        try:
            line = _line(number, source)
        except ValueError as problem:
            raise ValueError(f"{file}:{number}: {problem}: {source!r}") from None
        if line.action == "protocol":
            blocks[-1].protocols = (int(line.argv[0]),)
        elif line.action == "skip":
            blocks[-1].skipped.append(line.argv[0].decode())
        else:
            blocks[-1].lines.append(line)
    return blocks


def load(path: Path) -> list[Block]:
    return parse_text(path.read_text("utf-8"), path.stem)


def files() -> list[Path]:
    """Every file of lines, in the order of their names."""
    return sorted(DIRECTORY.glob("*.txt"))
