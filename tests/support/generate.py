"""Random commands from the declarations: mostly valid calls, some nearly so.

A declaration's syntax tree gives the shape (which tokens, which options, how often), the names and types of its
arguments give the values. Values are few, so that commands meet on the same keys; the odd one is out of range or of
the wrong kind. What would block for long, fill the memory or depend on the moment is not drawn.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from emuredis.spec import Argument, Command

__all__ = ["command_line"]

KEYS = [b"a", b"b", b"c", b"d", b"e"]
GROUPS = [b"g", b"h"]
CONSUMERS = [b"x", b"y"]
MEMBERS = [b"x", b"y", b"z", b"1", b"2", b"-7", b"3.5", b"", b"\xff\x00"]
NUMBERS = [b"0", b"1", b"2", b"3", b"-1", b"-2", b"-100", b"10", b"100"]
ODD_NUMBERS = [
    b"9223372036854775807",
    b"-9223372036854775808",
    b"9223372036854775808",
    b"1.5",
    b"x",
    b"",
    b" 1",
    b"+1",
    b"01",
]
DOUBLES = [b"0", b"1", b"2", b"-1", b"1.5", b"3.25", b"1e3", b"-0"]
ODD_DOUBLES = [b"inf", b"-inf", b"nan", b"x", b"", b"1e400", b"0x10", b" 1"]
SCORES = [b"-inf", b"+inf", b"0", b"1", b"(1", b"2", b"(2", b"10", b"-", b"+", b"[x", b"(y", b"[", b"x"]
# Few degrees, so that distances are often equal; none near the poles, as what the server answers for a polygon whose
# middle is off the map is chance.
LONGITUDES = [b"0", b"1", b"-1", b"2", b"13.361389", b"180", b"-180"]
LATITUDES = [b"0", b"1", b"-1", b"2", b"38.115556", b"45", b"-45"]
ODD_DEGREES = [b"181", b"-85.1", b"nan", b"inf", b"x", b""]
LENGTHS = [b"0", b"1", b"112", b"200", b"5000", b"200000", b"30000000"]
ODD_LENGTHS = [b"-1", b"inf", b"1e-300", b"x", b""]
FAR = [b"100000", b"200000"]
ODD_TIMES = [b"0", b"-1", b"x", b"9223372036854775807", b"-9223372036854775808"]
PATTERNS = [b"*", b"a", b"?", b"[a-c]", b"x*", b"\\*"]

# Arguments whose name says more than their type.
BY_NAME: dict[str, tuple[list[bytes], list[bytes]]] = {
    "seconds": (FAR, ODD_TIMES),
    "milliseconds": ([b"100000000", b"200000000"], ODD_TIMES),
    "timeout": ([b"0.01"], [b"-1", b"x"]),
    "min": (SCORES, SCORES),
    "max": (SCORES, SCORES),
    "cursor": ([b"0"], [b"x", b"-1"]),
    "score": (DOUBLES, ODD_DOUBLES),
    "longitude": (LONGITUDES, ODD_DEGREES),
    "latitude": (LATITUDES, ODD_DEGREES),
    "radius": (LENGTHS, ODD_LENGTHS),
    "width": (LENGTHS, ODD_LENGTHS),
    "height": (LENGTHS, ODD_LENGTHS),
    "increment": (DOUBLES + NUMBERS, ODD_DOUBLES + ODD_NUMBERS),
    "db": ([b"0", b"1"], [b"16", b"-1", b"x"]),
    "index": (NUMBERS, ODD_NUMBERS),
    "index1": ([b"0", b"1"], [b"16", b"x"]),
    "index2": ([b"0", b"1"], [b"16", b"x"]),
    "min-idle-time": ([b"0", b"0", b"100000"], ODD_NUMBERS),
    "ms": ([b"0", b"200000"], ODD_NUMBERS),
    "group": (GROUPS, GROUPS),
    "consumer": (CONSUMERS, CONSUMERS),
}
# Arguments of single commands that are others than their names say: what they are drawn as.
DRAWN_AS = {
    "setbit": {"offset": "bit-offset", "value": "bit"},
    "getbit": {"offset": "bit-offset"},
    "bitfield": {"offset": "field-offset", "value": "field-value", "increment": "field-value"},
    "bitfield_ro": {"offset": "field-offset"},
    "pfadd": {"element": "counted"},
    "pfdebug": {"subcommand": "pfdebug-subcommand"},
}
BIT_OFFSETS = [b"0", b"1", b"5", b"7", b"8", b"15", b"23", b"100", b"1000"]
ODD_OFFSETS = [b"-1", b"x", b"4294967296", b"01"]
BY_NAME |= {
    "bit": ([b"0", b"1"], [b"2", b"-1", b"x"]),
    "bit-offset": (BIT_OFFSETS, ODD_OFFSETS),
    "field-offset": (
        [*BIT_OFFSETS, b"#0", b"#1", b"#2", b"#3"],
        [*ODD_OFFSETS, b"#-1", b"#x", b"#9223372036854775807"],
    ),
    "field-value": (
        [*NUMBERS, b"127", b"128", b"-129", b"255", b"256", b"9223372036854775807", b"-9223372036854775808"],
        ODD_NUMBERS,
    ),
    "encoding": (
        [b"u1", b"i1", b"u2", b"i5", b"u8", b"i8", b"u16", b"i31", b"u32", b"u63", b"i63", b"i64"],
        [b"u0", b"u64", b"i65", b"8", b"I8", b"u"],
    ),
    "counted": ([b"%d" % number for number in range(40)], [b"", b"\xff\x00", b"x" * 50]),
    "pfdebug-subcommand": ([b"ENCODING", b"DECODE", b"GETREG", b"TODENSE"], [b"decode", b"x"]),
}
# Arguments that hold ids of streams, by their names; of other types they are what the type says.
IDS = [b"1-1", b"1-2", b"2", b"3-0", b"5", b"7-7", b"9-*"]
ODD_IDS = [b"0", b"-", b"+", b"$", b">", b"(2", b"x", b"1-", b"18446744073709551615-18446744073709551615"]
ID_NAMES = {"id", "start", "end", "threshold", "last-id", "lastid", "max-deleted-id"}
BY_TYPE: dict[str, tuple[list[bytes], list[bytes]]] = {
    "key": (KEYS, KEYS),
    "string": (MEMBERS, MEMBERS),
    "integer": (NUMBERS, ODD_NUMBERS),
    "double": (DOUBLES, ODD_DOUBLES),
    "pattern": (PATTERNS, PATTERNS),
    "unix-time": ([b"4000000000", b"4000000000000"], ODD_TIMES),
}

# Arguments that count those that follow, and how many there are at least.
COUNTED = {"numkeys": 1, "num-vertices": 3}
# Optional arguments without which most calls fail.
LIKELY = {"from"}

Words = SearchStrategy[list[bytes]]


def _value(arg: Argument) -> SearchStrategy[bytes]:
    usual, odd = BY_NAME.get(arg.name) or BY_TYPE.get(arg.type) or BY_TYPE["string"]
    if arg.type == "string" and arg.name in ID_NAMES:
        usual, odd = IDS, ODD_IDS
    if arg.token == "BLOCK":
        usual, odd = [b"5"], [b"-1", b"x"]
    return st.sampled_from(usual * (1 + 7 * len(odd) // len(usual)) + odd)


def _once(arg: Argument) -> Words:
    """One occurrence of ``arg``, without what `multiple` and `optional` add."""
    if arg.type == "oneof":
        # An id that the server makes up depends on the moment.
        words: Words = st.one_of(*[_argument(child) for child in arg.children if child.token != "*"])
    elif arg.type == "block":
        words = _sequence(arg.children)
    elif arg.type == "pure-token":
        return st.just([(arg.token or arg.name).encode()])
    else:
        words = _value(arg).map(lambda value: [value])
    if arg.token:
        token = arg.token.encode()
        words = words.map(lambda rest: [token, *rest])
    return words


def _argument(arg: Argument) -> Words:
    once = _once(arg)
    words = once
    if arg.multiple:
        words = st.lists(once, min_size=1, max_size=3).map(
            lambda parts: [word for part in parts for word in part]
        )
    if not arg.optional:
        return words
    chances = [False, True, True] if arg.multiple or arg.name in LIKELY else [False, False, True]
    return st.sampled_from(chances).flatmap(lambda given: words if given else st.just([]))


def _sequence(args: list[Argument]) -> Words:
    parts: list[Words] = []
    at = 0
    while at < len(args):
        follows = args[at + 1] if at + 1 < len(args) else None
        least = COUNTED.get(args[at].name)
        if least and follows is not None and follows.multiple:
            parts.append(_counted(args[at], follows, least))
            at += 2
        elif args[at].multiple and follows is not None and follows.multiple:
            parts.append(_paired(args[at], follows))
            at += 2
        else:
            parts.append(_argument(args[at]))
            at += 1
    return st.tuples(*parts).map(lambda each: [word for part in each for word in part])


def _paired(first: Argument, second: Argument) -> Words:
    """As many of the first as of the second, but for the odd one."""

    def build(drawn: tuple[list[tuple[list[bytes], list[bytes]]], bool]) -> list[bytes]:
        pairs, whole = drawn
        words = [word for one, _ in pairs for word in one] + [word for _, two in pairs for word in two]
        return words if whole else words[:-1]

    pairs = st.lists(st.tuples(_once(first), _once(second)), min_size=1, max_size=3)
    return st.tuples(pairs, st.sampled_from([True] * 9 + [False])).map(build)


def _counted(number: Argument, arg: Argument, least: int) -> Words:
    """A number of keys and the keys, up to three; now and then the number is another."""
    token = [number.token.encode()] if number.token else []

    def build(drawn: tuple[list[list[bytes]], int]) -> list[bytes]:
        keys, off = drawn
        return [*token, b"%d" % (len(keys) + off), *[word for part in keys for word in part]]

    off = st.sampled_from([0] * 9 + [1, -1, -3])
    return st.tuples(st.lists(_once(arg), min_size=least, max_size=3), off).map(build)


def _damaged(words: list[bytes]) -> SearchStrategy[list[bytes]]:
    """Usually ``words``; sometimes one too few, one too many, or a token in lower case."""
    ways = [words] * 30 + [words[:-1] or words, [words[0].lower(), *words[1:]]]
    ways += [[*words, extra] for extra in (b"x", b"1", b"NX")]
    return st.sampled_from(ways)


def _renamed(args: list[Argument], names: dict[str, str]) -> list[Argument]:
    for arg in args:
        arg.name = names.get(arg.name, arg.name)
        _renamed(arg.children, names)
    return args


def command_line(command: Command) -> Words:
    """Argument vectors for ``command``."""
    name = [part.upper().encode() for part in command.name.split("|")]
    return (
        _sequence(_renamed(command.arguments, DRAWN_AS.get(command.name, {})))
        .map(lambda rest: [*name, *rest])
        .flatmap(_damaged)
    )
