"""One declaration per command; everything the server says about a command derives from it.

    @command("LMOVE source:key destination:key wherefrom=(LEFT|RIGHT) whereto=(LEFT|RIGHT)", "write denyoom",
             keys="RW access delete @1, RW insert @2", group="list", since="6.2.0", complexity="O(1)")
    def lmove(ctx, argv): "Pops an element from one list and pushes it to another."

*Syntax*: the words of the command's page. Capitals are literal tokens, ``name`` or ``name:type`` an
argument (type ``string`` unless given: key, integer, double, pattern, unix-time; an argument called
``key`` is a key), ``[...]`` optional, ``a|b`` one of several, ``(a b)`` a group, a trailing ``...``
repeats what it follows. ``condition=[NX|XX]`` gives what is in brackets the server's name for it; a single
argument in there is still shown under its own. A second word in capitals that stands alone makes a subcommand.

*Keys*: one specification per comma: the server's flag words, then ``@`` and the place:
``@1`` one key, ``@1..-1`` a range, ``@1..-1/2`` every second, ``@2#`` a count at 2 followed by the keys,
``@1#/2`` every second word after the count, ``@STREAMS/1..-1%2`` from the word STREAMS (searched from 1)
with the last half dropped, ``@?`` unknown.

Arity, ACL categories, COMMAND INFO, COMMAND DOCS, key extraction and the support table all come from
here. To add a command: write its handler with this decorator, and its conformance lines. This module
knows no handler and no engine; it imports the standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from emuredis.errors import EmulatorError

__all__ = ["Argument", "Command", "KeySpec", "Table", "command", "container", "parse_syntax"]

Handler = Callable[[Any, list[bytes]], Any]

MANY = 1 << 60  # "no upper bound" for the number of arguments

FLAGS = {
    word: 1 << bit
    for bit, word in enumerate(
        "write readonly denyoom admin pubsub noscript blocking loading stale fast no_auth no_multi "
        "no_async_loading may_replicate skip_monitor skip_commandlog asking allow_busy no_mandatory_keys "
        "movablekeys module subscribed".split()
    )
}
WRITE, READONLY, DENYOOM = FLAGS["write"], FLAGS["readonly"], FLAGS["denyoom"]
NOSCRIPT, BLOCKING, NO_AUTH, NO_MULTI = (FLAGS[w] for w in ("noscript", "blocking", "no_auth", "no_multi"))
ALLOW_BUSY = FLAGS["allow_busy"]
#: RESP2 clients in subscribed mode may call these (not a flag word of the server: ours)
SUBSCRIBED = FLAGS["subscribed"]

#: The group of COMMAND DOCS gives the data-type category where the two words differ.
ACL_OF_GROUP = {
    "generic": "keyspace",
    "sorted-set": "sortedset",
    "server": "",
    "transactions": "transaction",
    "pubsub": "",
    "cluster": "",
}
# The order in which the server lists the categories.
ACL_ORDER = (
    "keyspace read write set sortedset list hash string bitmap hyperloglog geo stream pubsub admin fast slow "
    "blocking dangerous connection transaction scripting"
).split()


@dataclass(slots=True)
class Argument:
    """One node of a command's syntax tree, in COMMAND DOCS terms."""

    name: str
    type: str = "string"
    token: str | None = None
    optional: bool = False
    multiple: bool = False
    multiple_token: bool = False  # each repetition has the token in front
    display: str = ""  # how it is shown, where that is not the name
    children: list[Argument] = field(default_factory=list)


@dataclass(slots=True)
class KeySpec:
    """Where keys stand among the arguments, in COMMAND INFO terms."""

    flags: list[str]
    index: int = 0  # begin_search index, 0 when a keyword is searched
    keyword: str | None = None
    startfrom: int = 0
    kind: str = "range"  # range | keynum | unknown
    last: int = 0
    step: int = 1
    limit: int = 0


class Command:
    """A declared command; the hot attributes are `fn`, `min`, `max`, `flags`, `subs`."""

    __slots__ = (
        "acl_words", "arity", "complexity", "container", "flag_words", "flags", "fn", "group", "history",
        "keys", "max", "min", "name", "since", "subs", "summary", "syntax", "tips", "_key_specs",
    )  # fmt: skip

    def __init__(self, name: str, syntax: str, flag_words: str, keys: str, group: str, since: str,
                 complexity: str, acl: str | None, tips: str, arity: int | None) -> None:  # fmt: skip
        self.name = name
        self.syntax = syntax
        self.flag_words = flag_words.split()
        self.flags = sum(FLAGS[word] for word in self.flag_words)
        self.keys = keys
        self.group = group
        self.since = since
        self.complexity = complexity
        self.acl_words = acl
        self.tips = tips.split()
        self.container: str | None = name.partition("|")[0] if "|" in name else None
        self.subs: dict[bytes, Command] | None = None
        self.fn: Handler = _no_handler
        self.summary = ""
        self._key_specs: list[KeySpec] | None = None
        self.arity = arity if arity is not None else _arity(syntax, name)
        self.min = abs(self.arity)
        self.max = self.arity if self.arity > 0 else MANY

    def __repr__(self) -> str:
        return f"<Command {self.name}>"

    @property
    def key_specs(self) -> list[KeySpec]:
        if self._key_specs is None:
            self._key_specs = [_parse_keys(part) for part in self.keys.split(",")] if self.keys else []
        return self._key_specs

    @property
    def arguments(self) -> list[Argument]:
        return parse_syntax(self.syntax)

    @property
    def acl_categories(self) -> list[str]:
        """The categories the server derives from the flags, and the one of the data type."""
        flags = set(self.flag_words)
        named = self.acl_words if self.acl_words is not None else ACL_OF_GROUP.get(self.group, self.group)
        words = set(named.split())
        if "write" in flags:
            words.add("write")
        if "readonly" in flags and "scripting" not in words:
            words.add("read")
        if "admin" in flags:
            words |= {"admin", "dangerous"}
        if "pubsub" in flags:
            words.add("pubsub")
        if "blocking" in flags:
            words.add("blocking")
        words.add("fast" if "fast" in flags else "slow")
        return [word for word in ACL_ORDER if word in words]


class Table(dict[Any, Command]):
    """Commands by name, in upper and lower case as bytes; mixed case costs one more look-up."""

    def declare(self, cmd: Command) -> None:
        head, _, sub = cmd.name.partition("|")
        if sub:
            parent = self[head.encode()]
            assert parent.subs is not None
            parent.subs[sub.encode()] = cmd
            parent.subs[sub.upper().encode()] = cmd
        else:
            self[head.encode()] = self[head.upper().encode()] = cmd

    def find(self, name: bytes) -> Command | None:
        return self.get(name) or self.get(name.lower())

    def known(self, names: Iterable[str]) -> None:
        """Raises EmulatorError unless each name, ``config|get`` for a subcommand, is that of a command, or ``*``."""
        for name in names:
            head, _, sub = name.partition("|")
            cmd = self.find(head.encode())
            if name != "*" and (cmd is None or (sub and sub.encode() not in (cmd.subs or {}))):
                raise EmulatorError(f"there is no command {name.upper().replace('|', ' ')}")

    def commands(self) -> list[Command]:
        """Every top-level command once, in order of declaration."""
        return [cmd for name, cmd in self.items() if name == cmd.name.encode()]

    def everything(self) -> list[Command]:
        """Commands and subcommands, each once."""
        out: list[Command] = []
        for cmd in self.commands():
            out.append(cmd)
            if cmd.subs:
                out += dict.fromkeys(cmd.subs.values())
        return out


#: The commands of this package; `emuredis.commands` fills it at import.
TABLE = Table()


def command(syntax: str, flags: str = "", *, keys: str = "", group: str, since: str, complexity: str = "",
            acl: str | None = None, tips: str = "", arity: int | None = None,
            subscribed: bool = False) -> Callable[[Handler], Handler]:  # fmt: skip
    """Declare the decorated handler; its docstring's first line is the summary in COMMAND DOCS."""
    words = syntax.split()
    name = words[0].lower()
    if len(words) > 1 and re.fullmatch(r"[A-Z][A-Z-]*", words[1]) and words[0].encode() in TABLE:
        name += "|" + words[1].lower()
        words = words[1:]
    rest = " ".join(words[1:])
    cmd = Command(name, rest, flags, keys, group, since, complexity, acl, tips, arity)
    if subscribed:
        cmd.flags |= SUBSCRIBED

    def bind(fn: Handler) -> Handler:
        cmd.fn = fn
        cmd.summary = (fn.__doc__ or "").partition("\n")[0]
        TABLE.declare(cmd)
        return fn

    return bind


def container(name: str, summary: str, *, group: str, since: str, flags: str = "", acl: str | None = None,
              complexity: str = "Depends on subcommand.", arity: int = -2) -> None:  # fmt: skip
    """Declare a command that only has subcommands, such as CONFIG."""
    cmd = Command(
        name.lower(), "", flags, "", group, since, complexity, "" if acl is None else acl, "", arity
    )
    cmd.summary = summary
    cmd.subs = {}
    TABLE.declare(cmd)


def _no_handler(ctx: Any, argv: list[bytes]) -> Any:
    raise AssertionError("a container command has no handler")


def _parse_keys(part: str) -> KeySpec:
    words, _, place = part.rpartition("@")
    spec = KeySpec(words.split())
    if place == "?":
        spec.kind = "unknown"
        return spec
    if match := re.fullmatch(r"([A-Z]+)/(-?\d+)(.*)", place):
        spec.keyword, spec.startfrom, place = match[1], int(match[2]), match[3] or "."
        rest = place.lstrip(".") if place.startswith("..") else place.replace(".", "", 1)
    else:
        match = re.match(r"\d+", place)
        assert match, f"bad key specification {part!r}"
        spec.index, rest = int(match[0]), place[match.end() :].removeprefix("..")
    if rest[:1] == "#":
        spec.kind = "keynum"
        spec.step = int(rest[2:] or 1)
        return spec
    rest, _, limit = rest.partition("%")
    rest, _, step = rest.partition("/")
    spec.last, spec.step, spec.limit = int(rest or 0), int(step or 1), int(limit or 0)
    return spec


def _arity(syntax: str, name: str) -> int:
    fixed, variable = 1 + ("|" in name), False
    for arg in parse_syntax(syntax):
        least, exact = _width(arg)
        fixed += least
        variable |= not exact
    return -fixed if variable else fixed


def _width(arg: Argument) -> tuple[int, bool]:
    """The least number of words an argument takes, and whether it never takes more."""
    if arg.type == "oneof":
        widths = [_width(child) for child in arg.children]
        least = min(width for width, _ in widths)
        exact = all(exact and width == least for width, exact in widths)
    elif arg.type == "block":
        widths = [_width(child) for child in arg.children]
        least, exact = sum(width for width, _ in widths), all(exact for _, exact in widths)
    else:
        least, exact = 1, True
    least += arg.token is not None and arg.type != "pure-token"
    if arg.optional:
        return 0, False
    return least, exact and not arg.multiple


_WORD = re.compile(r"\.\.\.|[\[\]()|]|[^\s\[\]()|]+?(?=\.\.\.|[\s\[\]()|]|$)")


def parse_syntax(syntax: str) -> list[Argument]:
    """The syntax tree of ``syntax`` (without the command's name)."""
    tokens = _WORD.findall(syntax)
    args, rest = _sequence(tokens, 0, "")
    assert rest == len(tokens), f"unbalanced syntax {syntax!r}"
    return args


def _sequence(tokens: list[str], at: int, end: str) -> tuple[list[Argument], int]:
    """Alternatives of sequences up to ``end``; one alternative gives its items, several a oneof."""
    alternatives: list[list[Argument]] = [[]]
    while at < len(tokens) and tokens[at] != end:
        word = tokens[at]
        if word == "|":
            if end:
                alternatives.append([])
                at += 1
                continue
            # Outside brackets ``a|b`` binds only its two neighbours.
            arg, at = _item(tokens, at + 1)
            left = alternatives[-1].pop()
            if left.type == "oneof" and left.name == "choice":
                left.children.append(arg)
            else:
                left = Argument("choice", "oneof", children=[left, arg])
            alternatives[-1].append(left)
            continue
        if word == "...":
            repeated = alternatives[-1][-1]
            repeated.multiple = True
            repeated.multiple_token = repeated.token is not None and tokens[at - 1] == ")"
            at += 1
            continue
        arg, at = _item(tokens, at)
        before = alternatives[-1][-1] if alternatives[-1] else None
        # A token with a name of its own is an argument, not what stands in front of the next one.
        bare = before is not None and before.type == "pure-token" and not before.optional
        bare = bare and before.name == before.token.lower()  # type: ignore[union-attr]
        if before is not None and bare and arg.type != "pure-token" and not arg.optional:
            arg.token = before.token
            alternatives[-1][-1] = arg
        else:
            alternatives[-1].append(arg)
    if len(alternatives) == 1:
        return alternatives[0], at
    return [Argument("choice", "oneof", children=[_one(seq) for seq in alternatives])], at


def _one(items: list[Argument]) -> Argument:
    return items[0] if len(items) == 1 else Argument("block", "block", children=items)


def _item(tokens: list[str], at: int) -> tuple[Argument, int]:
    word = tokens[at]
    if word in "[(":
        close = "]" if word == "[" else ")"
        items, at = _sequence(tokens, at + 1, close)
        arg = _one(items)
        arg.optional |= word == "["
        return arg, at + 1
    if word[-1] == "=" and len(word) > 1:
        arg, at = _item(tokens, at + 1)
        if not arg.children and arg.type != "pure-token":
            arg.display = arg.name
        arg.name = word[:-1]
        return arg, at
    if not any(c.islower() for c in word):
        return Argument(word.lower(), "pure-token", token=word), at + 1
    name, colon, kind = word.rpartition(":")
    return (Argument(name, kind) if colon else Argument(word, "key" if word == "key" else "string")), at + 1
