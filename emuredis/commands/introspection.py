"""COMMAND: what the server says about its commands, all of it read off the declarations (`emuredis.spec`).

COMMAND INFO gives flags, key specifications and ACL categories, COMMAND DOCS the syntax tree in our own words, COMMAND
GETKEYS finds keys with the key specifications as the server does (`emuredis.keys`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.help_texts import COMMAND
from emuredis.errors import ReplyError
from emuredis.keys import keys_of
from emuredis.patterns import match
from emuredis.replies import Map, Reply, Set, Status
from emuredis.spec import ACL_ORDER, TABLE, Argument, Command, KeySpec, command, container

if TYPE_CHECKING:
    from emuredis.engine.session import Session

container("COMMAND", "Tells about all commands, or of some of them about more.", group="server", since="2.8.13",
          flags="loading stale", acl="connection", complexity="O(N), N being the number of commands",
          arity=-1)  # fmt: skip


def command_(ctx: Session, argv: list[bytes]) -> Reply:
    """COMMAND without a subcommand: COMMAND INFO of all."""
    return [_info(cmd) for cmd in ctx.engine.table.commands()]


# The one container that can also be called by itself.
TABLE[b"command"].fn = command_
TABLE[b"command"].tips = ["nondeterministic_output_order"]


@command(
    "COMMAND COUNT", "loading stale", group="server", since="2.8.13", complexity="O(1)", acl="connection"
)
def command_count(ctx: Session, argv: list[bytes]) -> Reply:
    """The number of commands."""
    return len(ctx.engine.table.commands())


@command("COMMAND INFO [command-name...]", "loading stale", group="server", since="2.8.13", acl="connection",
         complexity="O(N), N being the number of commands asked for",
         tips="nondeterministic_output_order")  # fmt: skip
def command_info(ctx: Session, argv: list[bytes]) -> Reply:
    """Arity, flags, keys and categories of commands."""
    if len(argv) == 2:
        return command_(ctx, argv)
    return [None if cmd is None else _info(cmd) for cmd in (_find(ctx, name) for name in argv[2:])]


@command("COMMAND DOCS [command-name...]", "loading stale", group="server", since="7.0.0", acl="connection",
         complexity="O(N), N being the number of commands asked for",
         tips="nondeterministic_output_order")  # fmt: skip
def command_docs(ctx: Session, argv: list[bytes]) -> Reply:
    """Summary, group and syntax of commands; unknown ones are left out."""
    found = ctx.engine.table.commands() if len(argv) == 2 else [_find(ctx, name) for name in argv[2:]]
    return Map([item for cmd in found if cmd is not None for item in (cmd.name.encode(), _docs(cmd))])


@command("COMMAND LIST [FILTERBY filterby=(MODULE module-name|ACLCAT category|PATTERN pattern:pattern)]",
         "loading stale",
         group="server", since="7.0.0", complexity="O(N), N being the number of commands", acl="connection",
         tips="nondeterministic_output_order")  # fmt: skip
def command_list(ctx: Session, argv: list[bytes]) -> Reply:
    """The names of all commands, or of those of a category, or that match a pattern."""
    table = ctx.engine.table
    if len(argv) == 2:
        return [cmd.name.encode() for cmd in table.commands()]
    if len(argv) != 5 or argv[2].upper() != b"FILTERBY":
        raise errors.syntax()
    kind, value = argv[3].upper(), argv[4]
    if kind == b"MODULE":
        return []  # every command is built in
    if kind == b"ACLCAT":
        category = value.decode("utf-8", "surrogateescape").lower()
        if category not in ACL_ORDER:
            return []
        return [cmd.name.encode() for cmd in table.everything() if category in cmd.acl_categories]
    if kind == b"PATTERN":
        names = [cmd.name.encode() for cmd in table.everything()]
        return [name for name in names if match(value, name, nocase=True)]
    raise errors.syntax()


@command("COMMAND GETKEYS command [arg...]", "loading stale", group="server", since="2.8.13", acl="connection",
         complexity="O(N), N being the number of arguments")  # fmt: skip
def command_getkeys(ctx: Session, argv: list[bytes]) -> Reply:
    """The keys in a whole command."""
    return [key for key, _ in _keys_asked_for(ctx, argv[2:])]


@command("COMMAND GETKEYSANDFLAGS command [arg...]", "loading stale", group="server", since="7.0.0",
         acl="connection", complexity="O(N), N being the number of arguments")  # fmt: skip
def command_getkeysandflags(ctx: Session, argv: list[bytes]) -> Reply:
    """The keys in a whole command, and what would be done to each."""
    return [
        [key, Set(Status(flag.encode()) for flag in flags)] for key, flags in _keys_asked_for(ctx, argv[2:])
    ]


@command("COMMAND HELP", "loading stale", group="server", since="5.0.0", complexity="O(1)", acl="connection")
def command_help(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells about the subcommands."""
    return [Status(line) for line in COMMAND]


# -- looking up --------------------------------------------------------------------------------


def _find(ctx: Session, name: bytes) -> Command | None:
    """A command, or with ``name|sub`` a subcommand."""
    head, bar, sub = name.lower().partition(b"|")
    cmd = ctx.engine.table.get(head)
    if not bar or cmd is None:
        return cmd
    return (cmd.subs or {}).get(sub)


def _info(cmd: Command) -> Reply:
    flags = list(cmd.flag_words)
    first, last, step, movable = _legacy_range(cmd.key_specs)
    if movable and "movablekeys" not in flags:
        flags.append("movablekeys")
    return [
        cmd.name.encode(),
        cmd.arity,
        Set(Status(word.encode()) for word in flags),
        first,
        last,
        step,
        Set(Status(b"@" + word.encode()) for word in cmd.acl_categories),
        Set(tip.encode() for tip in cmd.tips),
        Set(_key_spec(spec) for spec in cmd.key_specs),
        [_info(sub) for sub in subcommands(cmd)],
    ]


def subcommands(cmd: Command) -> list[Command]:
    """The subcommands of a container, each once."""
    return list(dict.fromkeys((cmd.subs or {}).values()))


def _legacy_range(specs: list[KeySpec]) -> tuple[int, int, int, bool]:
    """First key, last key and step as before key specifications, and whether they do not tell all."""
    incomplete = any("incomplete" in spec.flags for spec in specs)
    if len(specs) == 1 and specs[0].keyword is None and specs[0].kind == "range" and not specs[0].limit:
        spec = specs[0]
        return spec.index, spec.last if spec.last < 0 else spec.index + spec.last, spec.step, incomplete
    first = last = 0
    for spec in specs:
        plain = spec.keyword is None and spec.kind == "range" and spec.step == 1
        if not plain or (last and last != spec.index - 1):
            incomplete = True  # neither a range nor next to the one before
            continue
        first = first or spec.index
        end = spec.last if spec.last < 0 else spec.index + spec.last
        last = max(last, end, key=lambda place: place & 0xFFFFFFFF)  # counted from the end is later than any
    return first, last, 1 if first else 0, incomplete


def _key_spec(spec: KeySpec) -> Reply:
    if spec.kind == "unknown":
        begin: tuple[bytes, list[Reply]] = (b"unknown", [])
        find: tuple[bytes, list[Reply]] = (b"unknown", [])
    else:
        if spec.keyword is None:
            begin = (b"index", [b"index", spec.index])
        else:
            begin = (b"keyword", [b"keyword", spec.keyword.encode(), b"startfrom", spec.startfrom])
        if spec.kind == "range":
            find = (b"range", [b"lastkey", spec.last, b"keystep", spec.step, b"limit", spec.limit])
        else:
            find = (b"keynum", [b"keynumidx", 0, b"firstkey", 1, b"keystep", spec.step])
    return Map(
        [
            *(b"flags", Set(Status(flag.encode()) for flag in spec.flags)),
            *(b"begin_search", Map([b"type", begin[0], b"spec", Map(begin[1])])),
            *(b"find_keys", Map([b"type", find[0], b"spec", Map(find[1])])),
        ]
    )


#: Commands that are not for applications.
_SYSTEM_COMMANDS = frozenset(["cluster|syncslots", "debug", "pfdebug", "pfselftest", "restore-asking"])
#: Those that have a better one, since when, and which.
_DEPRECATED = {
    "cluster|slaves": (b"5.0.0", b"`CLUSTER REPLICAS`"),
    "slaveof": (b"5.0.0", b"`REPLICAOF`"),
}


def _docs(cmd: Command) -> Reply:
    docs = Map()
    for name in ("summary", "since", "group", "complexity"):
        docs += [name.encode(), getattr(cmd, name).encode()]
    if cmd.name in _SYSTEM_COMMANDS:
        docs += [b"doc_flags", Set([Status(b"syscmd")])]
    if cmd.name in _DEPRECATED:
        since, other = _DEPRECATED[cmd.name]
        docs += [
            b"doc_flags",
            Set([Status(b"deprecated")]),
            b"deprecated_since",
            since,
            b"replaced_by",
            other,
        ]
    arguments = cmd.arguments
    if arguments:
        docs += [b"arguments", _arguments(arguments, len(cmd.key_specs), [0])]
    if cmd.subs:
        docs += [
            b"subcommands",
            Map([x for sub in subcommands(cmd) for x in (sub.name.encode(), _docs(sub))]),
        ]
    return docs


def _arguments(arguments: list[Argument], specs: int, keys: list[int]) -> list[Reply]:
    """``keys[0]`` counts the keys met so far: the n-th stands in the n-th key specification."""
    out: list[Reply] = []
    for argument in arguments:
        one = Map([b"name", argument.name.encode(), b"type", argument.type.encode()])
        if not argument.children:
            one += [b"display_text", (argument.display or argument.name).encode()]
        if argument.type == "key" and specs:
            one += [b"key_spec_index", min(keys[0], specs - 1)]
            keys[0] += 1
        if argument.token is not None:
            one += [b"token", argument.token.encode()]
        flags = [
            word
            for word, held in (
                (b"optional", argument.optional),
                (b"multiple", argument.multiple),
                (b"multiple_token", argument.multiple_token),
            )
            if held
        ]
        if flags:
            one += [b"flags", Set(Status(word) for word in flags)]
        if argument.children:
            one += [b"arguments", _arguments(argument.children, specs, keys)]
        out.append(one)
    return out


# -- keys --------------------------------------------------------------------------------------


def _keys_asked_for(ctx: Session, argv: list[bytes]) -> list[tuple[bytes, list[str]]]:
    table = ctx.engine.table
    cmd = table.get(argv[0].lower())
    if cmd is not None and cmd.subs is not None and len(argv) > 1:
        cmd = cmd.subs.get(argv[1].lower())
    if cmd is None:
        raise ReplyError("ERR Invalid command specified")
    if all("not_key" in spec.flags for spec in cmd.key_specs):
        raise ReplyError("ERR The command has no key arguments")
    if not cmd.min <= len(argv) <= cmd.max:
        raise ReplyError("ERR Invalid number of arguments specified for command")
    keys = keys_of(cmd, argv)
    if not keys and "no_mandatory_keys" not in cmd.flag_words:
        raise ReplyError("ERR Invalid arguments specified for command")
    return keys
