"""Random sequences for `soak`: which commands a machine draws, what it does besides, and how each line is compared.

A `Machine` is a choice of commands; a `Sequence` draws one line after the other and looks at the emulator to know who
is blocked and how a value is stored. What it draws are lines of the usual format, so that a sequence can be
shortened, saved and run again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice
from random import Random
from typing import Any

from emuredis.emulator import Emulator
from emuredis.scalars import parse_int
from emuredis.spec import BLOCKING, NOSCRIPT, Command
from emuredis.values.hash import Hash
from emuredis.values.list import List
from emuredis.values.set import Set
from emuredis.values.stream import Stream
from emuredis.values.zset import ZSet
from tests.support.draw import FAR_MILLISECONDS, Draw

from .lines import Line, Variant

__all__ = ["MACHINES", "Machine", "Sequence", "line_of", "quote"]

TABLE = Emulator().engine.table
# Random choices that change the content, and what only the clock or an internal count decides.
LEFT_OUT = {"spop", "object|freq", "object|idletime", "object|refcount"}
GROUPS = ("string", "generic", "hash", "list", "set", "sorted-set", "stream", "transactions")
DRAWN = [c for c in TABLE.everything() if c.group in GROUPS and c.subs is None and c.name not in LEFT_OUT]
BY_NAME = {command.name: command for command in TABLE.everything()}
FIELD_TIMES = [c for c in DRAWN if c.group == "hash" and ("expire" in c.name or "ttl" in c.name or c.name in (
    "hpersist", "hgetex", "hsetex", "hset", "hdel", "hincrby", "hgetdel", "hgetall", "hlen"))]  # fmt: skip
SHARED = "del type exists expire pexpireat rename copy move set object|encoding".split()
EXACT, UNORDERED, PAIRS, KIND = Variant(), Variant("unordered"), Variant("unordered", 2), Variant("kind")
MARKS = {"exact": "", "kind": "?", "error": "!", "near": "%", "instant": "^"}
TIMES = {
    "ttl": Variant("near", 100), "pttl": Variant("near", 100_000), "expiretime": Variant("instant", 100),
    "pexpiretime": Variant("instant", 100_000), "httl": Variant("near", 100), "hpttl": Variant("near", 100_000),
    "hexpiretime": Variant("instant", 100), "hpexpiretime": Variant("instant", 100_000), "hgetall": PAIRS,
    "object|encoding": EXACT, "xadd": EXACT, "xtrim": EXACT, "xclaim": EXACT, "xautoclaim": EXACT,
}  # fmt: skip
IDLE = Variant("near", 100_000)
COMPACT = (None, b"listpack", b"intset")
KINDS = {"string": bytes, "hash": Hash, "list": List, "set": Set, "sorted-set": ZSet, "stream": Stream}
CALL = b"return redis.call(unpack(ARGV))"
PCALL = b"return redis.pcall(unpack(ARGV))"
RESP3 = b"redis.setresp(3) return redis.call(unpack(ARGV))"
SEVERAL = (
    b"local at, out = 1, {} while at <= #ARGV do local n = tonumber(ARGV[at]) "
    b"out[#out + 1] = redis.pcall(unpack(ARGV, at + 1, at + n)) at = at + n + 1 end return out"
)
# Follows a cursor to its end; what comes is put into an order, and said once.
WHOLE = (
    b"local at, seen, out = '0', {}, {} local head = {unpack(ARGV, 1, tonumber(KEYS[1]))} "
    b"local rest = {unpack(ARGV, tonumber(KEYS[1]) + 1)} repeat local words = {unpack(head)} "
    b"words[#words + 1] = at for _, word in ipairs(rest) do words[#words + 1] = word end "
    b"local page = redis.call(unpack(words)) at = page[1] "
    b"for _, one in ipairs(page[2]) do if not seen[one] then seen[one] = true out[#out + 1] = one end end "
    b"until at == '0' table.sort(out) return out"
)
# Not fewer integers than words in a compact set: then the order of a hash table would decide what is stored.
SIZES = {
    b"hash-max-listpack-entries": [b"0", b"4", b"8"], b"hash-max-listpack-value": [b"0", b"4", b"8"],
    b"set-max-intset-entries": [b"8", b"16"], b"set-max-listpack-entries": [b"0", b"4", b"8"],
    b"set-max-listpack-value": [b"0", b"4", b"8"], b"zset-max-listpack-entries": [b"0", b"4", b"8"],
    b"zset-max-listpack-value": [b"0", b"4", b"8"], b"list-max-listpack-size": [b"1", b"3", b"8", b"-1", b"-5"],
    b"stream-node-max-entries": [b"1", b"3", b"10"], b"stream-node-max-bytes": [b"50", b"200", b"0"],
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Machine:
    """``blocking``: how many of a hundred steps leave a client waiting; ``multi``: how many open a transaction."""

    name: str
    commands: list[Command]
    blocking: int = 0
    multi: int = 0


def _of(*groups: str) -> list[Command]:
    return [c for c in DRAWN if c.group in groups] + [BY_NAME[name] for name in SHARED]


_BLOCKING = [c for c in DRAWN if c.flags & BLOCKING]
_FEEDING = "lpush rpush linsert zadd xadd xgroup|create xgroup|destroy lpop rpop zpopmin zrem del rename move copy " \
    "lmove lmpop zmpop set swapdb sort zunionstore zrangestore flushdb"  # fmt: skip
_PUBSUB = [c for c in TABLE.everything() if c.group == "pubsub" and c.subs is None
           and not c.name.endswith("channels")]  # fmt: skip
MACHINES = [
    Machine("string", _of("string")),
    Machine("hash", _of("hash")),
    Machine("hash-expiry", FIELD_TIMES + [BY_NAME[name] for name in SHARED]),
    Machine("list", _of("list")),
    Machine("set", _of("set")),
    Machine("zset", _of("sorted-set")),
    Machine(
        "stream",
        _of("stream")
        + [BY_NAME[n] for n in "xadd xadd xgroup|create xgroup|create xreadgroup xreadgroup xclaim".split()]
        * 2,
    ),
    Machine("generic", _of("generic") + [BY_NAME[n] for n in "set incr rpush sadd zadd hset xadd".split()]),
    Machine("transactions", DRAWN, multi=10),
    Machine("blocking", _BLOCKING + [BY_NAME[name] for name in _FEEDING.split()], blocking=30, multi=3),
    Machine(
        "pubsub", _PUBSUB + [BY_NAME[name] for name in "publish publish set del ping reset".split()], multi=3
    ),
    Machine("all", DRAWN, blocking=1, multi=2),
]


def quote(word: bytes) -> str:
    """An argument as the lines write it."""
    plain = word.decode("latin-1")
    if word and all(33 <= byte < 127 and byte not in b"\"'\\" for byte in word):
        return plain
    out = "".join(
        "\\" + char if char in '"\\' else char if " " <= char < "\x7f" else f"\\x{ord(char):02x}"
        for char in plain
    )
    return f'"{out}"'


def line_of(number: int, client: str, action: str, variant: Variant, argv: tuple[bytes, ...] = ()) -> Line:
    """A line with the text that would be parsed into it."""
    if variant.name == "unordered":
        mark = "~" if variant.amount == 1 else f"~{variant.amount:g}"
    else:
        mark = MARKS[variant.name] + (f"{variant.amount:.0f}" if variant.name in ("near", "instant") else "")
    sign = {"call": "", "send": "> ", "receive": "<", "quiet": "|", "close": "-"}.get(action)
    if sign is None:
        return Line(number, " ".join([f":{action}", *map(quote, argv)]), "main", action, variant, argv)
    words = [*([mark] if mark else []), *map(quote, argv)]
    text = f"@{client}{sign}{'' if sign.endswith(' ') else ' '}" + " ".join(words)
    return Line(number, text.rstrip(), client, action, variant, argv)


#: Named like a key: the server takes another argument for the key when it tells of the change.
_HSETEX_WORDS = frozenset(
    (b"NX", b"XX", b"FNX", b"FXX", b"EX", b"PX", b"EXAT", b"PXAT", b"KEEPTTL", b"FIELDS")
)


def harmless(argv: list[bytes]) -> list[bytes]:
    """``argv``, unless the server would make many megabytes of it, or leave open what it does."""
    name = argv[0].upper()
    if name in (b"HRANDFIELD", b"SRANDMEMBER", b"ZRANDMEMBER", b"SETRANGE") and len(argv) > 2:
        number = parse_int(argv[2])
        if number is not None and (number < -1000 or 100_000 < number < 1 << 30):
            argv[2] = b"-3" if number < 0 else b"3"
    elif (
        name in (b"SORT", b"SORT_RO") and b"BY" in argv
    ):  # the order of elements that tie, of a set not sorted at all
        while b"ALPHA" in argv:
            argv.remove(b"ALPHA")
        if b"LIMIT" in argv:
            place = argv.index(b"LIMIT")
            del argv[place : place + 3]
    elif name == b"APPEND" and argv[-1] == b"":
        argv[-1] = b"x"  # the encoding of an empty string is the one thing emuredis does not remember
    elif name == b"HSETEX" and argv[1:] and argv[1] in _HSETEX_WORDS:
        argv[1] = b"a"  # the server takes such a key for the option, in the event it sends
    elif name == b"XAUTOCLAIM" and b"COUNT" in argv[:-1]:
        at = argv.index(b"COUNT") + 1
        if 1 << 20 < (parse_int(argv[at]) or 0) < 1 << 60:  # may not fit into the machine
            argv[at] = b"100"
    elif name == b"MSETEX":  # keeps what has expired for a while
        argv[:] = [FAR_MILLISECONDS[0] if before in (b"EXAT", b"PXAT") else word
                   for before, word in zip([b"", *argv], argv, strict=False)]  # fmt: skip
    return argv


def _by_text(argv: list[bytes]) -> bool:
    return argv[0].upper().endswith(b"LEX") or argv[0].upper() == b"ZLEXCOUNT" or b"BYLEX" in argv


class Sequence:
    """Draws the lines of one sequence. ``look(client)`` gives the emulator's session, or None before its first use."""

    def __init__(self, machine: Machine, rng: Random) -> None:
        self.machine = machine
        self.rng = rng
        self.draw = Draw(rng, rng.choice([2, 5, 5, 8]))
        self.lines = 0
        self.pattern = rng.choice([b"*", b"?", b"[a-c]", b"x*", b"-*"])
        self.client = "a"  # who goes on
        self.waiting: dict[str, Variant] = {}
        self.multi: dict[str, Variant | None] = {}
        self.queue: list[Line] = []

    def _line(
        self, client: str, action: str, variant: Variant, argv: list[bytes] | tuple[bytes, ...] = ()
    ) -> None:
        self.lines += 1
        if self.machine.name == "pubsub" and action == "call":
            action = "send"  # how much arrives is not known: it is compared with all that is left unread
        self.queue.append(line_of(self.lines, client, action, variant, tuple(argv)))

    def opening(self, notify: bool) -> None:
        """Smaller sizes at which encodings change; a subscriber to everything that happens."""
        rng = self.rng
        if rng.randrange(2):
            for name, sizes in SIZES.items():
                if rng.randrange(2):
                    self._line("a", "call", EXACT, (b"CONFIG", b"SET", name, rng.choice(sizes)))
        if notify:
            # Misses of SORT come in the order of a hash table.
            sorts = any(command.name == "sort" for command in self.machine.commands)
            flags = rng.choice([b"KEA", b"EA", b"KEAn", b"KEAn" if sorts else b"KEAmn"])
            self._line("a", "call", EXACT, (b"CONFIG", b"SET", b"notify-keyspace-events", flags))
            self._line("s", "call", EXACT, (b"PSUBSCRIBE", b"__key*"))

    def next(self, sessions: dict[str, Any]) -> Line:
        if not self.queue:
            self._served(sessions)
        if not self.queue:
            self._step(sessions)
        return self.queue.pop(0)

    # -- steps ----------------------------------------------------------------------------------

    def _served(self, sessions: dict[str, Any]) -> None:
        for name, variant in list(self.waiting.items()):
            if sessions[name].waiter is None:
                del self.waiting[name]
                self._line(name, "receive", variant)

    def _step(self, sessions: dict[str, Any]) -> None:
        rng = self.rng
        if self.waiting and rng.randrange(6) == 0:
            self._line(rng.choice(list(self.waiting)), "quiet", EXACT)
            return
        if len(self.waiting) > 1 and rng.randrange(8) == 0:
            self._unblock(sessions)
            return
        client = self.client
        if client in self.waiting or rng.randrange(4) == 0:
            client = self.client = rng.choice([name for name in "aabcd" if name not in self.waiting] or "e")
        if self.machine.blocking > rng.randrange(100) and client not in self.multi and len(self.waiting) < 3:
            self._block(client, sessions.get(client))
        elif client in self.multi and rng.randrange(5) == 0:
            looseness = self.multi.pop(client)
            self._line(client, "call", looseness or EXACT, [rng.choice([b"EXEC"] * 4 + [b"DISCARD"])])
        elif client not in self.multi and self.machine.multi > rng.randrange(100):
            if rng.randrange(3) == 0:
                self._line(client, "call", EXACT, [b"WATCH", self.draw.key()])
            self._line(client, "call", EXACT, [b"MULTI"])
            self.multi[client] = EXACT
        else:
            self._plain(client, sessions)

    def _unblock(self, sessions: dict[str, Any]) -> None:
        name = self.rng.choice(list(self.waiting))
        by = next(other for other in "abcde" if other not in self.waiting)
        if self.rng.randrange(2):
            how = self.rng.choice([[], [b"ERROR"], [b"TIMEOUT"]])
            self._line(by, "call", EXACT if by not in self.multi else self._loosen(by, KIND),
                       [b"CLIENT", b"UNBLOCK", b"{id:%s}" % name.encode(), *how])  # fmt: skip
        else:
            self._line(name, "close", EXACT)
            del self.waiting[name]

    def _block(self, client: str, session: Any) -> None:
        self.draw.wait = b"0"
        command = self.rng.choice(_BLOCKING)
        argv = self._argv(command, session)
        self.draw.wait = b"0.001"
        self.waiting[client] = EXACT
        self._line(client, "send", EXACT, argv)

    def _loosen(self, client: str, variant: Variant) -> Variant:
        """``variant``; and the EXEC of a transaction is compared as loosely as what it runs."""
        if client not in self.multi:
            return variant
        order = ["exact", "unordered", "near", "instant", "kind"]
        known = self.multi[client] or EXACT
        worse = variant if order.index(variant.name) > order.index(known.name) else known
        if worse.name in ("near", "instant"):
            worse = KIND
        self.multi[client] = UNORDERED if worse.name == "unordered" else worse
        return variant

    def _plain(self, client: str, sessions: dict[str, Any]) -> None:
        rng = self.rng
        kind = rng.randrange(100)
        if kind < 2:
            self._line(client, "call", EXACT, [b"SELECT", b"%d" % rng.choice([0, 0, 0, 1, 2])])
            return
        if kind == 7 and rng.randrange(2):
            self._scan(client, sessions.get(client))
            return
        if kind < 6:
            command, argv = self._bulk()
        elif kind == 6 and client not in self.multi and self.machine.name != "pubsub":
            self._expire(client)
            return
        else:
            command = rng.choice(self.machine.commands)
            if command.flags & BLOCKING and rng.randrange(2):
                command = rng.choice(self.machine.commands)  # each takes its time
            if command.name in ("multi", "exec", "discard"):
                command = BY_NAME["unwatch"] if client not in self.multi else BY_NAME["get"]
            if command.name == "swapdb" and len(self.waiting) > 1:
                command = BY_NAME["del"]  # whom the server serves first is the order of a hash table
            if command.name in ("flushdb", "flushall") and rng.randrange(10):
                command = BY_NAME["del"]
            argv = self._argv(command, sessions.get(client))
        if _by_text(argv) and (client in self.multi or not self._one_score(sessions.get(client), argv)):
            command, argv = BY_NAME["zcard"], [b"ZCARD", argv[-1]]
        # How a value is stored when a transaction runs is not known yet.
        variant = self.variant(command, argv, None if client in self.multi else sessions.get(client))
        if kind > 92 and not command.flags & NOSCRIPT:
            if kind < 95:
                variant, argv = self._script(argv, variant, sessions.get(client))
            else:
                script = rng.choice([CALL, PCALL, RESP3])
                argv = [b"EVAL", script, b"0", *argv]
                if script is RESP3 and variant.name != "unordered":
                    # What is a map there has no order in Lua.
                    variant = UNORDERED if variant.name == "exact" else KIND
        self._line(client, "call", self._loosen(client, variant), argv)

    def _argv(self, command: Command, session: Any) -> list[bytes]:
        """Arguments that mostly fit what there is."""
        draw = self.draw
        draw.fitting, draw.elements, draw.ids, draw.groups = [], [], [], []
        kind = KINDS.get(command.group)
        if session is not None and kind is not None:
            data = session.db.data
            draw.fitting = [key for key, value in data.items() if value.__class__ is kind][:4]
            if kind is Stream and ("group" in command.syntax) and command.name != "xgroup|create":
                draw.fitting = [key for key in draw.fitting if data[key].groups] or draw.fitting
            if draw.fitting:
                key = self.rng.choice(draw.fitting)
                draw.fitting += [key] * 4
                value = data[key]
                if isinstance(value, Stream):
                    draw.groups, draw.last = list(value.groups), value.last_id >> 64
                    draw.ids = [
                        b"%d-%d" % divmod(entry[0], 1 << 64) for entry in value.range(0, (1 << 128) - 1, 6)
                    ]
                elif not isinstance(value, bytes):
                    draw.elements = list(islice(getattr(value, "fields", value), 8))
        argv = harmless(draw.argv(command))
        if command.flags & BLOCKING:
            self._patient(argv)
        if (command.group == "pubsub" and len(argv) < 2) or command.name in ("psubscribe", "punsubscribe"):
            argv[1:] = [self.pattern]  # of several subscriptions it is a hash table that knows the order
        return argv

    def _patient(self, argv: list[bytes]) -> None:
        """No time-out that would take longer than meant: of the two only the live server really waits."""
        if b"BLOCK" in argv:
            at, meant = argv.index(b"BLOCK") + 1, b"0" if self.draw.wait == b"0" else b"1"
        else:
            at, meant = 1 if argv[0].upper() in (b"BLMPOP", b"BZMPOP") else -1, self.draw.wait
        if at < len(argv) and argv[at][:1] != b"-" and re.search(rb"[1-9]", argv[at]):
            argv[at] = meant

    def _script(self, argv: list[bytes], variant: Variant, session: Any) -> tuple[Variant, list[bytes]]:
        """Several commands in one script, the first of them ``argv``."""
        words = [b"%d" % len(argv), *argv]
        variants = [variant]
        for _ in range(self.rng.randrange(1, 4)):
            command = self.rng.choice(self.machine.commands)
            if not command.flags & NOSCRIPT and command.name not in ("flushall", "flushdb"):
                more = self._argv(command, session)
                if _by_text(more):
                    continue
                words += [b"%d" % len(more), *more]
                variants.append(self.variant(command, more, None))
        loose = {variant.name for variant in variants} - {"exact"}
        return (EXACT if not loose else UNORDERED if loose == {"unordered"} else KIND), [
            b"EVAL",
            SEVERAL,
            b"0",
            *words,
        ]

    def _bulk(self) -> tuple[Command, list[bytes]]:
        """One command that makes a value large."""
        rng, key = self.rng, self.draw.key()
        group = rng.choice([c.group for c in self.machine.commands])
        many = rng.choice([10, 60, 130, 200, 520])
        first = rng.randrange(1000)
        numbers = [b"%d" % (first + n) for n in range(many)]
        if rng.randrange(3) == 0:
            numbers = [b"m%s" % n for n in numbers]
        if group == "hash":
            return BY_NAME["hset"], [b"HSET", key, *[word for n in numbers for word in (n, b"v" + n)]]
        if group == "set":
            return BY_NAME["sadd"], [b"SADD", key, *numbers]
        if group == "sorted-set":
            step = rng.choice([1, 3, 7, 0])
            pairs = [word for i, n in enumerate(numbers) for word in (b"%d" % (i * step % 100), n)]
            return BY_NAME["zadd"], [b"ZADD", key, *pairs]
        if group == "stream":
            flat = [word for n in numbers[: rng.choice([1, 5, 60])] for word in (n, b"v")]
            return BY_NAME["xadd"], [b"XADD", key, b"%d-*" % rng.randrange(1, 60), *flat]
        if group == "string":
            return BY_NAME["append"], [b"APPEND", key, b"0123456789" * rng.choice([2, 5, 11, 12, 50])]
        return BY_NAME["rpush"], [b"RPUSH", key, *numbers, *([b"x" * 9000] if rng.randrange(8) == 0 else [])]

    def _scan(self, client: str, session: Any) -> None:
        rng = self.rng
        name = rng.choice([b"SCAN", b"HSCAN", b"SSCAN", b"ZSCAN"])
        head = [name]
        if name != b"SCAN":
            self._argv(BY_NAME[name.lower().decode()], session)  # to aim at a key of that type
            head.append(self.draw.key())
        rest = [b"COUNT", b"%d" % rng.choice([1, 3, 10, 100])]
        if rng.randrange(2):
            rest += [b"MATCH", rng.choice([b"*", b"?", b"*1*", b"[a-m]*", b"x*", b"\\*", b"[^0-9]*"])]
        if name == b"SCAN" and rng.randrange(2):
            rest += [b"TYPE", rng.choice([b"string", b"hash", b"list", b"set", b"zset", b"stream"])]
        if name == b"HSCAN" and rng.randrange(2):
            rest.append(b"NOVALUES")
        argv = [b"EVAL", WHOLE, b"1", b"%d" % len(head), *head, *rest]
        self._line(client, "call", self._loosen(client, EXACT), argv)

    def _expire(self, client: str) -> None:
        """A key that expires while the sequence runs, and is looked at once it has."""
        key = self.draw.key()
        self._line(client, "call", EXACT, [b"PEXPIRE", key, b"1"])
        self._line("main", "wait", EXACT, [b"5"])
        self._line(client, "call", EXACT, [b"EXISTS", key])
        self.queue[:] = [replace(line, number=self.lines) for line in self.queue]

    def _one_score(self, session: Any, argv: list[bytes]) -> bool:
        """Whether a range by text is defined: all members of its sorted set have one score."""
        value = (
            session.db.peek(argv[2 if argv[0].upper() == b"ZRANGESTORE" else 1])
            if session and argv[2:]
            else None
        )
        return not isinstance(value, ZSet) or len(set(value.scores.values())) < 2

    # -- comparing ------------------------------------------------------------------------------

    def variant(self, command: Command, argv: list[bytes], session: Any) -> Variant:
        name = command.name
        if name in TIMES:
            return TIMES[name]
        if name in ("hscan", "sscan", "zscan") and session is not None and len(argv) > 1:
            return UNORDERED if self._encoding(session, argv[1]) in COMPACT else KIND
        if name == "xpending":
            return EXACT if len(argv) <= 3 else IDLE
        if name == "xinfo|stream":
            return EXACT if len(argv) <= 3 else Variant("instant", IDLE.amount)
        if name == "xinfo|consumers":
            return IDLE
        if "nondeterministic_output" in command.tips:
            return KIND
        if name in ("sort", "sort_ro"):
            return UNORDERED
        return UNORDERED if "nondeterministic_output_order" in command.tips else EXACT

    def _encoding(self, session: Any, key: bytes) -> bytes | None:
        value = session.db.peek(key)
        return None if value is None else b"string" if isinstance(value, bytes) else value.encoding()
