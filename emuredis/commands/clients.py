"""CLIENT: what a connection tells about itself, and what one may do to another.

The filters of CLIENT LIST and CLIENT KILL are one table: `_FILTERS` tells how an option is read and how a session is
tried against it; each of its options also exists as ``NOT-...``. A killed session is disconnected on the spot; one
that kills itself still gets its reply.

Client-side caching is not there: CLIENT TRACKING ON and CLIENT PAUSE are refused by name, and the subcommands that only
ask about them answer as the server does where nothing is tracked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from emuredis import errors
from emuredis.commands.args import integer
from emuredis.commands.connection import checked_name, is_plain
from emuredis.commands.help_texts import CLIENT
from emuredis.errors import ReplyError
from emuredis.replies import OK, Frames, Map, Reply, Set, Status, Verbatim
from emuredis.scalars import parse_int
from emuredis.spec import command, container

if TYPE_CHECKING:
    from emuredis.engine.session import Session

_NS = 1_000_000_000

container("CLIENT", "Commands about client connections.", group="connection", since="2.4.0")


# -- about oneself -----------------------------------------------------------------------------


@command(
    "CLIENT ID", "noscript loading stale allow_busy", group="connection", since="5.0.0", complexity="O(1)"
)
def client_id(ctx: Session, argv: list[bytes]) -> Reply:
    """The number of this connection; never used twice."""
    return ctx.id


@command("CLIENT SETNAME connection-name", "noscript loading stale allow_busy", group="connection", since="2.6.9",
         complexity="O(1)", tips="request_policy:all_nodes response_policy:all_succeeded")  # fmt: skip
def client_setname(ctx: Session, argv: list[bytes]) -> Reply:
    """Names this connection; an empty name takes the name away."""
    ctx.name = checked_name(argv[2])
    return OK


@command(
    "CLIENT GETNAME",
    "noscript loading stale allow_busy",
    group="connection",
    since="2.6.9",
    complexity="O(1)",
)
def client_getname(ctx: Session, argv: list[bytes]) -> Reply:
    """The name of this connection."""
    return ctx.name or None


@command("CLIENT SETINFO attr=(LIB-NAME libname|LIB-VER libver)", "noscript loading stale allow_busy",
         group="connection", since="7.2.0", complexity="O(1)", arity=4,
         tips="request_policy:all_nodes response_policy:all_succeeded")  # fmt: skip
def client_setinfo(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells which client library this is."""
    option, value = argv[2].upper(), argv[3]
    if option not in (b"LIB-NAME", b"LIB-VER"):
        raise ReplyError(f"ERR Unrecognized option '{argv[2].decode('utf-8', 'surrogateescape')}'")
    if not is_plain(value):
        shown = argv[2].decode()
        raise ReplyError(f"ERR {shown} cannot contain spaces, newlines or special characters.")
    if option == b"LIB-NAME":
        ctx.lib_name = value
    else:
        ctx.lib_ver = value
    return OK


@command("CLIENT INFO", "noscript loading stale", group="connection", since="6.2.0", complexity="O(1)",
         tips="nondeterministic_output")  # fmt: skip
def client_info(ctx: Session, argv: list[bytes]) -> Reply:
    """What CLIENT LIST says of this connection."""
    return Verbatim(_line(ctx, ctx) + b"\n")


@command("CLIENT REPLY action=(ON|OFF|SKIP)", "noscript loading stale no_multi allow_busy", group="connection",
         since="3.2.0", complexity="O(1)")  # fmt: skip
def client_reply(ctx: Session, argv: list[bytes]) -> Reply:
    """Switches replies on or off, or skips the next one."""
    mode = argv[2].upper()
    if mode == b"ON":
        ctx.reply_mode = "on"
        ctx.update_gate()
        return OK
    if mode == b"OFF":
        ctx.reply_mode = "off"
    elif mode == b"SKIP":
        if ctx.reply_mode != "off":
            ctx.reply_mode = "skip_next"
    else:
        raise errors.syntax()
    ctx.update_gate()
    return Frames()


def _switch(argv: list[bytes]) -> bool:
    mode = argv[2].upper()
    if mode not in (b"ON", b"OFF"):
        raise errors.syntax()
    return mode == b"ON"


@command("CLIENT NO-EVICT enabled=(ON|OFF)", "admin noscript loading stale allow_busy", group="connection",
         since="7.0.0", complexity="O(1)")  # fmt: skip
def client_no_evict(ctx: Session, argv: list[bytes]) -> Reply:
    """Keeps this connection when clients are evicted for memory (none ever is here)."""
    ctx.no_evict = _switch(argv)
    return OK


@command("CLIENT NO-TOUCH enabled=(ON|OFF)", "noscript loading stale allow_busy", group="connection", since="7.2.0",
         complexity="O(1)")  # fmt: skip
def client_no_touch(ctx: Session, argv: list[bytes]) -> Reply:
    """Keeps this connection's reads from counting as accesses of a key."""
    ctx.no_touch = _switch(argv)
    return OK


@command("CLIENT CAPA capability...", "noscript loading stale allow_busy", group="connection", since="8.0.0",
         complexity="O(1)")  # fmt: skip
def client_capa(ctx: Session, argv: list[bytes]) -> Reply:
    """Claims what this client can do; unknown capabilities are ignored, as by the server."""
    if any(word.lower() == b"redirect" for word in argv[2:]):
        ctx.capa = b"r"
    return OK


# -- client-side caching, which nobody has -----------------------------------------------------


@command("CLIENT CACHING mode=(YES|NO)", "noscript loading stale allow_busy", group="connection", since="6.0.0",
         complexity="O(1)")  # fmt: skip
def client_caching(ctx: Session, argv: list[bytes]) -> Reply:
    """Says whether to track the keys of the next command."""
    raise ReplyError(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled"
    )


@command(
    "CLIENT GETREDIR",
    "noscript loading stale allow_busy",
    group="connection",
    since="6.0.0",
    complexity="O(1)",
)
def client_getredir(ctx: Session, argv: list[bytes]) -> Reply:
    """The connection that invalidation messages are redirected to."""
    return -1


@command("CLIENT TRACKING status=(ON|OFF) [REDIRECT client-id:integer] [(PREFIX prefix)...] [BCAST] [OPTIN] "
         "[OPTOUT] [NOLOOP]", "noscript loading stale", group="connection", since="6.0.0",
         complexity="O(1), more with some options")  # fmt: skip
def client_tracking(ctx: Session, argv: list[bytes]) -> Reply:
    """Switches the tracking of keys for client-side caching."""
    if _switch(argv):
        raise errors.unsupported("CLIENT TRACKING ON")
    if len(argv) > 3:
        raise errors.unsupported("the options of CLIENT TRACKING")
    return OK


@command(
    "CLIENT TRACKINGINFO", "noscript loading stale", group="connection", since="6.2.0", complexity="O(1)"
)
def client_trackinginfo(ctx: Session, argv: list[bytes]) -> Reply:
    """How keys are tracked for this connection."""
    return Map([b"flags", Set([b"off"]), b"redirect", -1, b"prefixes", []])


@command(
    "CLIENT IMPORT-SOURCE enabled=(ON|OFF)",
    "noscript loading stale",
    group="connection",
    since="8.1.0",
    complexity="O(1)",
)
def client_import_source(ctx: Session, argv: list[bytes]) -> Reply:
    """Marks this connection as the source of an import."""
    if argv[2].upper() != b"OFF":
        raise ReplyError("ERR Server is not in import mode")
    return OK


# -- about others ------------------------------------------------------------------------------

_LISTED = "NORMAL|MASTER|REPLICA|PUBSUB"
_KINDS = "NORMAL|MASTER|PRIMARY|SLAVE|REPLICA|PUBSUB"
_SYNTAX = (
    "[USER username] [ADDR addr=(ip:port:string)] [LADDR laddr=(ip:port:string)] [SKIPME skipme=(YES|NO)] "
    "[MAXAGE maxage:integer] [NAME name] [IDLE idle:integer] [FLAGS flags] [LIB-NAME lib-name] [LIB-VER lib-ver] "
    "[DB db:integer] [CAPA capa] [IP ip] [NOT-TYPE not-client-type=({kinds})] [NOT-ID not-client-id:integer...] "
    "[NOT-USER not-username] [NOT-ADDR not-addr=(ip:port:string)] [NOT-LADDR not-laddr=(ip:port:string)] "
    "[NOT-NAME not-name] [NOT-FLAGS not-flags] [NOT-LIB-NAME not-lib-name] [NOT-LIB-VER not-lib-ver] "
    "[NOT-DB not-db:integer] [NOT-CAPA not-capa] [NOT-IP not-ip]"
)


@command(f"CLIENT LIST [TYPE client-type=({_LISTED})] [ID client-id:integer...] {_SYNTAX.format(kinds=_LISTED)}",
         "admin noscript loading stale", group="connection", since="2.4.0",
         complexity="O(N), N being the number of connections", tips="nondeterministic_output")  # fmt: skip
def client_list(ctx: Session, argv: list[bytes]) -> Reply:
    """Lists connections, all or those that pass the filters."""
    chosen = _Filter.parse(ctx, argv, skipme=False)
    lines = [
        _line(ctx, session) + b"\n"
        for session in ctx.engine.sessions.values()
        if chosen.accepts(ctx, session)
    ]
    return Verbatim(b"".join(lines))


@command(f"CLIENT KILL filter=(old-format=(ip:port:string)|new-format=([ID client-id:integer...]|"
         f"[TYPE client-type=({_KINDS})]|{_SYNTAX.format(kinds=_KINDS).replace('] [', ']|[')})...)",
         "admin noscript loading stale", group="connection", since="2.4.0", arity=-3,
         complexity="O(N), N being the number of connections")  # fmt: skip
def client_kill(ctx: Session, argv: list[bytes]) -> Reply:
    """Closes connections: the one with an address, or those that pass the filters."""
    sessions = list(ctx.engine.sessions.values())
    if len(argv) == 3:
        for session in sessions:
            if session.addr and session.addr == argv[2]:
                _kill(ctx, session)
                return OK
        raise ReplyError("ERR No such client")
    chosen = _Filter.parse(ctx, argv, skipme=True)
    killed = [session for session in sessions if chosen.accepts(ctx, session)]
    for session in killed:
        _kill(ctx, session)
    return len(killed)


def _kill(ctx: Session, session: Session) -> None:
    ctx.engine.disconnect(session)
    if session is not ctx:
        session.on_close()


@command("CLIENT UNBLOCK client-id:integer unblock-type=[TIMEOUT|ERROR]", "admin noscript loading stale",
         group="connection", since="5.0.0", complexity="O(log N), N being the number of connections")  # fmt: skip
def client_unblock(ctx: Session, argv: list[bytes]) -> Reply:
    """Ends the wait of a blocked connection, as at its time-out or with an error."""
    reason = argv[3].upper() if len(argv) > 3 else b"TIMEOUT"
    if reason not in (b"TIMEOUT", b"ERROR"):
        raise ReplyError("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
    session = ctx.engine.sessions.get(integer(argv[2]))
    if session is None or session.waiter is None:
        return 0
    error = ReplyError("UNBLOCKED client unblocked via CLIENT UNBLOCK")
    ctx.engine.waiting.finish(session.waiter, session.waiter.on_timeout if reason == b"TIMEOUT" else error)
    return 1


@command("CLIENT PAUSE timeout:integer mode=[WRITE|ALL]", "admin noscript loading stale", group="connection",
         since="3.0.0", complexity="O(1)")  # fmt: skip
def client_pause(ctx: Session, argv: list[bytes]) -> Reply:
    """Holds back the commands of all connections for a while."""
    raise errors.unsupported("CLIENT PAUSE")


@command("CLIENT UNPAUSE", "admin noscript loading stale", group="connection", since="6.2.0",
         complexity="O(N), N being the number of paused connections")  # fmt: skip
def client_unpause(ctx: Session, argv: list[bytes]) -> Reply:
    """Ends a pause."""
    return OK


@command("CLIENT HELP", "loading stale", group="connection", since="5.0.0", complexity="O(1)")
def client_help(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells about the subcommands."""
    return [Status(line) for line in CLIENT]


# -- a client as a line ------------------------------------------------------------------------


def _flags(session: Session) -> bytes:
    """The letters of the server, in its order; N when there is none."""
    letters = (
        (session.monitor, b"O"),
        (session.subscriptions, b"P"),
        (session.queue is not None, b"x"),
        (session.waiter is not None, b"b"),
        (session.watch_broken, b"d"),
        (session.closing, b"c"),
        (b"/" in session.addr, b"U"),
        (session.readonly, b"r"),
        (session.no_evict, b"e"),
        (session.no_touch, b"T"),
    )
    return b"".join(letter for held, letter in letters if held) or b"N"


def _line(ctx: Session, session: Session) -> bytes:
    """One line of CLIENT LIST. Buffers, which only a socket has, are told by the door that has them."""
    now = ctx.engine.keyspace.ns
    net = session.net
    queued = -1 if session.queue is None else len(session.queue)
    command_name = "NULL" if session.last_command is None else session.last_command.name
    fields: list[tuple[str, Any]] = [
        ("id", session.id), ("addr", session.addr), ("laddr", session.laddr), ("fd", net["fd"]),
        ("name", session.name), ("age", (now - session.born_ns) // _NS), ("idle", _idle(ctx, session)),
        ("flags", _flags(session)), ("capa", session.capa), ("db", session.db.index),
        ("sub", len(session.channels)), ("psub", len(session.patterns)), ("ssub", len(session.shard_channels)),
        ("multi", queued), ("watch", len(session.watched)), ("qbuf", 0), ("qbuf-free", 0), ("argv-mem", 0),
        ("multi-mem", 0), ("rbs", 0), ("rbp", 0), ("obl", 0), ("oll", 0), ("omem", 0), ("tot-mem", 0),
        ("events", "r"), ("cmd", command_name), ("user", session.user), ("redir", -1),
        ("resp", session.protocol), ("lib-name", session.lib_name), ("lib-ver", session.lib_ver),
        ("tot-net-in", net["in"]), ("tot-net-out", net["out"]),
        ("tot-cmds", session.commands - (session is ctx)),
    ]  # fmt: skip
    return b" ".join(
        b"%b=%b" % (name.encode(), value if isinstance(value, bytes) else str(value).encode())
        for name, value in fields
    )


def _idle(ctx: Session, session: Session) -> int:
    return 0 if session is ctx else (ctx.engine.keyspace.ns - session.last_ns) // _NS


# -- filters -----------------------------------------------------------------------------------

_TYPES = {
    b"normal": "normal", b"slave": "replica", b"replica": "replica", b"pubsub": "pubsub", b"master": "primary",
    b"primary": "primary",
}  # fmt: skip
_FLAG_LETTERS = frozenset(b"bcdeirtuxABEIMNOPRSTU")


def _read_type(ctx: Session, option: str, text: bytes) -> Any:
    kind = _TYPES.get(text.lower())
    if kind is None:
        raise ReplyError(f"ERR Unknown client type '{errors.shown(text)}'")
    return kind


def _read_user(ctx: Session, option: str, text: bytes) -> Any:
    if text != b"default":
        raise ReplyError(f"ERR No such user '{errors.shown(text)}'")
    return text


def _read_text(ctx: Session, option: str, text: bytes) -> Any:
    return text


def _read_seconds(ctx: Session, option: str, text: bytes) -> Any:
    number = parse_int(text)
    if number is None:
        raise ReplyError(f"ERR {option.lower()} is not an integer or out of range")
    if number <= 0:
        raise ReplyError(f"ERR {option.lower()} should be greater than 0")
    return number


def _read_flags(ctx: Session, option: str, text: bytes) -> Any:
    if any(letter not in _FLAG_LETTERS for letter in text):
        where = "NOT-FLAGS filter" if option.startswith("NOT-") else "provided filter"
        raise ReplyError(f"ERR Unknown flags found in the {where}: {text.decode('utf-8', 'surrogateescape')}")
    return text


def _read_db(ctx: Session, option: str, text: bytes) -> Any:
    number = parse_int(text)
    if number is None:
        raise ReplyError(f"ERR {option} is not an integer or out of range")
    last = len(ctx.engine.keyspace.databases) - 1
    if not 0 <= number <= last:
        raise ReplyError(f"ERR {option} number should be between 0 and {last}")
    return number


def _read_capa(ctx: Session, option: str, text: bytes) -> Any:
    if text.strip(b"r"):
        where = "NOT-CAPA filter" if option.startswith("NOT-") else "provided filter"
        raise ReplyError(f"ERR Unknown capa found in the {where}: {text.decode('utf-8', 'surrogateescape')}")
    return text


def _type(session: Session) -> str:
    return "pubsub" if session.subscriptions else "normal"


def _ip(addr: bytes) -> bytes:
    return addr.rpartition(b":")[0]


_Read = Callable[[Any, str, bytes], Any]
_Test = Callable[[Any, Any, Any], bool]

#: Option: how its value is read, and whether a session has it. The server knows no NOT-MAXAGE and no NOT-IDLE.
_FILTERS: dict[str, tuple[_Read, _Test]] = {
    "TYPE": (_read_type, lambda ctx, s, value: _type(s) == value),
    "USER": (_read_user, lambda ctx, s, value: s.user == value),
    "ADDR": (_read_text, lambda ctx, s, value: s.addr == value),
    "LADDR": (_read_text, lambda ctx, s, value: s.laddr == value),
    "NAME": (_read_text, lambda ctx, s, value: bool(s.name) and s.name == value),
    "FLAGS": (_read_flags, lambda ctx, s, value: all(letter in _flags(s) for letter in value)),
    "LIB-NAME": (_read_text, lambda ctx, s, value: bool(s.lib_name) and s.lib_name == value),
    "LIB-VER": (_read_text, lambda ctx, s, value: bool(s.lib_ver) and s.lib_ver == value),
    "DB": (_read_db, lambda ctx, s, value: s.db.index == value),
    "CAPA": (_read_capa, lambda ctx, s, value: all(letter in s.capa for letter in value)),
    "IP": (_read_text, lambda ctx, s, value: _ip(s.addr) == value),
}
_AGES: dict[str, tuple[_Read, _Test]] = {
    "MAXAGE": (_read_seconds, lambda ctx, s, value: (ctx.engine.keyspace.ns - s.born_ns) // _NS >= value),
    "IDLE": (_read_seconds, lambda ctx, s, value: _idle(ctx, s) >= value),
}


@dataclass(slots=True)
class _Filter:
    """What CLIENT LIST and CLIENT KILL were asked for; a later option of the same name replaces the earlier."""

    skipme: bool
    tests: dict[str, tuple[_Test, Any, bool]] = field(default_factory=dict)
    ids: set[int] | None = None
    not_ids: set[int] | None = None

    @classmethod
    def parse(cls, ctx: Session, argv: list[bytes], skipme: bool) -> _Filter:
        chosen, at = cls(skipme), 2
        while at < len(argv):
            option = argv[at].decode("utf-8", "surrogateescape").upper()
            if at + 1 == len(argv):
                raise errors.syntax()
            if option in ("ID", "NOT-ID"):
                at = chosen._ids(option, argv, at + 1)
                continue
            chosen._option(ctx, option, argv[at + 1])
            at += 2
        return chosen

    def _ids(self, option: str, argv: list[bytes], at: int) -> int:
        """Take the numbers from ``at`` on; the place after them."""
        found: set[int] = (self.ids if option == "ID" else self.not_ids) or set()
        while at < len(argv) and (number := parse_int(argv[at])) is not None:
            if number < 1:
                raise ReplyError("ERR client-id should be greater than 0")
            found.add(number)
            at += 1
        if option == "ID":
            self.ids = found
        else:
            self.not_ids = found
        return at

    def _option(self, ctx: Session, option: str, value: bytes) -> None:
        if option == "SKIPME":
            if value.lower() not in (b"yes", b"no"):
                raise errors.syntax()
            self.skipme = value.lower() == b"yes"
            return
        plain = option.removeprefix("NOT-")
        row = _FILTERS.get(plain) or _AGES.get(option)
        if row is None:
            raise errors.syntax()
        self.tests[option] = row[1], row[0](ctx, option, value), option == plain

    def accepts(self, ctx: Session, session: Session) -> bool:
        if self.skipme and session is ctx:
            return False
        if self.ids is not None and session.id not in self.ids:
            return False
        if self.not_ids is not None and session.id in self.not_ids:
            return False
        return all(test(ctx, session, value) is wanted for test, value, wanted in self.tests.values())
