"""Random commands from the declarations, drawn with `random.Random`: fast, and repeatable from a seed.

As `tests.support.generate` (whose tables it shares) without Hypothesis, and with a wider choice of values: numbers
around every power of two, doubles of many forms, binary and long strings, deadlines in the past and far ahead. A
`Draw` belongs to one sequence: its few keys and members make commands meet.
"""

from __future__ import annotations

from random import Random

from emuredis.spec import Argument, Command

from .generate import BY_NAME, BY_TYPE, ID_NAMES, IDS, ODD_DOUBLES, ODD_IDS, ODD_NUMBERS, SCORES

__all__ = ["Draw"]

PAST = [b"0", b"1", b"-1", b"1000", b"1500000000"]
FAR_SECONDS = [b"4000000000", b"4000000001", b"5000000000"]
FAR_MILLISECONDS = [b"4000000000000", b"4000000000001", b"4000000000500", b"5000000000000"]
FORMS = ["{:.17g}", "{:g}", "{:e}", "{:f}", "{:.3f}", "{:.1f}", "{:+.2f}"]
COUNTS = {"count", "limit", "num-matches", "len", "entriesread", "entries-added"}
FIXED = {b"ALPHA", b"BLOCK", b"BY", b"BYLEX", b"COUNT", b"EXAT", b"LIMIT", b"PXAT"}  # looked for later
_SCORES = ("ZCOUNT", "ZRANGEBYSCORE", "ZREVRANGEBYSCORE", "ZREMRANGEBYSCORE")
_TEXTS = ("ZLEXCOUNT", "ZRANGEBYLEX", "ZREVRANGEBYLEX", "ZREMRANGEBYLEX")
_trees: dict[str, list[Argument]] = {}


class Draw:
    def __init__(self, rng: Random, keys: int = 5) -> None:
        self.rng = rng
        self.keys = [b"abcdefghijklmnopqrstuvwxyz"[i : i + 1] for i in range(keys)]
        self.members = [self._text() for _ in range(rng.choice([4, 8, 20]))]
        # What the next command probably finds: keys of its type, elements and ids of their values.
        self.fitting: list[bytes] = []
        self.elements: list[bytes] = []
        self.ids: list[bytes] = []
        self.groups: list[bytes] = []
        self.last = 0  # milliseconds of the last id
        self._adding = False
        # Times to live never repeat: of equal ones it would depend on the moment which ends later.
        self._lives = rng.sample(range(100, 5000), 4000)
        self._lived = 0
        self.wait = b"0.001"  # seconds a blocking command may take; b"0" for ever

    # -- values ---------------------------------------------------------------------------------

    def _text(self) -> bytes:
        rng = self.rng
        kind = rng.randrange(12)
        if kind < 4:
            return rng.choice(BY_TYPE["string"][0])
        if kind < 6:
            return self.integer()
        if kind == 6:
            return self.double()
        if kind == 7:
            return rng.randbytes(rng.randrange(1, 9))
        if kind == 8:
            return rng.choice([b"x", b"\x00", b"ab"]) * rng.choice([32, 33, 63, 64, 65, 100, 127, 128, 130])
        return bytes(rng.choice(b"abcxyz019") for _ in range(rng.randrange(1, 5)))

    def text(self) -> bytes:
        if self.elements and self.rng.randrange(3) == 0:
            return self.rng.choice(self.elements)
        return self._text() if self.rng.randrange(8) == 0 else self.rng.choice(self.members)

    def integer(self) -> bytes:
        rng = self.rng
        kind = rng.randrange(10)
        if kind < 5:
            return b"%d" % rng.randrange(-3, 12)
        if kind < 7:
            return b"%d" % rng.randrange(-1000, 1000)
        if kind < 9:
            edge = (1 << rng.choice([7, 8, 12, 15, 16, 23, 24, 31, 32, 53, 62, 63, 64])) + rng.randrange(
                -2, 2
            )
            return b"%d" % (edge * rng.choice([1, -1]))
        return b"%d" % rng.randrange(-(1 << 63), 1 << 63)

    def double(self) -> bytes:
        rng = self.rng
        kind = rng.randrange(10)
        if kind < 4:
            return rng.choice([b"0", b"1", b"2", b"-1", b"1.5", b"3.25", b"-0", b"10", b"inf", b"-inf"])
        if kind < 6:
            return self.integer()
        if kind < 9:
            number = rng.choice(
                [rng.uniform(-10, 10), rng.gauss(0, 1e6), rng.uniform(-1, 1) * 10 ** rng.randrange(-30, 30)]
            )
            return rng.choice(FORMS).format(number).encode()
        return rng.choice(
            [b"1e308", b"-1e308", b"5e-324", b"1e17", b"123456789012345678", b"0.1", b"1e-7", b"3.0e3"]
        )

    def key(self) -> bytes:
        if self.fitting and self.rng.randrange(4):
            return self.rng.choice(self.fitting)
        return self.rng.choice(self.keys)

    def deadline(self, milliseconds: bool) -> bytes:
        rng = self.rng
        if rng.randrange(5) == 0:
            return rng.choice(PAST)
        return rng.choice(FAR_MILLISECONDS if milliseconds else FAR_SECONDS)

    def id(self) -> bytes:
        if self._adding and self.rng.randrange(6):
            return b"%d-%s" % (
                self.last + self.rng.randrange(3),
                self.rng.choice([b"*", b"*", b"0", b"1", b"5"]),
            )
        if self.ids and self.rng.randrange(2):
            return self.rng.choice(self.ids)
        if self.rng.randrange(8) == 0:
            return self.rng.choice(ODD_IDS)
        if self.rng.randrange(3):
            return b"%d-%d" % (self.rng.randrange(1, 40), self.rng.randrange(4))
        return self.rng.choice(IDS)

    def value(self, arg: Argument) -> bytes:
        rng, name = self.rng, arg.name
        if arg.token == "BLOCK":
            return b"1" if self.wait != b"0" else b"0"
        if name == "timeout":
            return self.wait if rng.randrange(20) else rng.choice([b"-1", b"x"])
        if rng.randrange(25) == 0:
            return rng.choice((BY_NAME.get(name) or BY_TYPE.get(arg.type) or BY_TYPE["string"])[1])
        if arg.type == "key":
            return self.key()
        if name.startswith("unix-time"):
            return self.deadline("milli" in name)
        if name in ("seconds", "milliseconds"):
            self._lived += 1
            life = self._lives[self._lived % len(self._lives)]
            return b"%d" % (life * (1000 if name == "seconds" else 1_000_000))
        if name in BY_NAME and name not in ("score", "increment", "min", "max", "index"):
            return rng.choice(BY_NAME[name][0])
        if name in ("min", "max"):
            return self._bound(arg)
        if arg.type == "string" and name in ID_NAMES:
            return self.id()
        if name == "group" and self.groups and rng.randrange(5):
            return rng.choice(self.groups)
        if name in COUNTS and rng.randrange(6):
            return b"%d" % rng.choice([1, 1, 2, 3, 5, 10, 100, 0])
        if name == "value" and arg.type == "string" and rng.randrange(3) == 0:
            return self.integer()
        if name == "destination-db":
            return rng.choice([b"0", b"1", b"2"])
        if arg.type == "double" or (name == "score"):
            return self.double()
        if arg.type == "integer" or name == "index":
            return self.integer()
        if arg.type == "string":
            return self.text()
        return rng.choice((BY_TYPE.get(arg.type) or BY_TYPE["string"])[0])

    def _bound(self, arg: Argument) -> bytes:
        return self.rng.choice(SCORES) if self.rng.randrange(3) else self._score_bound()

    def _score_bound(self) -> bytes:
        rng = self.rng
        return rng.choice(
            [b"-inf", b"+inf", b"(1", b"(2", b"%d" % rng.randrange(-2, 100), b"(" + self.double()]
        )

    def _text_bound(self) -> bytes:
        rng = self.rng
        return rng.choice([b"-", b"+", b"[" + self.text(), b"(" + self.text()])

    # -- shapes ---------------------------------------------------------------------------------

    def argv(self, command: Command) -> list[bytes]:
        """An argument vector for ``command``: usually valid, now and then a word off."""
        tree = _trees.get(command.name)
        if tree is None:
            tree = _trees[command.name] = command.arguments
        words = [part.upper().encode() for part in command.name.split("|")]
        self._adding = command.name == "xadd"
        self._sequence(tree, words)
        if self.rng.randrange(10):
            self._mend(words)
        odd = self.rng.randrange(120)
        if odd == 0 and len(words) > 1:
            words.pop()
        elif odd in (4, 5) and len(words) > 2:
            at = self.rng.randrange(1, len(words) - 1)
            words[at], words[at + 1] = words[at + 1], words[at]
        elif odd == 9 and (word := self.rng.choice(words)) not in FIXED:
            words[words.index(word)] = word.lower()
        elif odd == 6 and len(words) > 1:
            words.append(self.rng.choice(words[1:]))
        elif odd in (7, 8) and len(words) > 1:
            words[self.rng.randrange(1, len(words))] = self.rng.choice(ODD_NUMBERS + ODD_DOUBLES)
        elif odd == 1:
            words[0] = words[0].lower()
        elif odd == 2:
            words.append(self.rng.choice([b"x", b"1", b"NX"]))
        elif odd == 3 and len(words) > 2:
            del words[self.rng.randrange(1, len(words))]
        return words

    def _mend(self, words: list[bytes]) -> None:
        """Have arguments fit each other where the declaration does not say that they must."""
        name, rng = words[0].decode(), self.rng
        at = 3 if name == "ZRANGESTORE" else 2
        if name in _SCORES or b"BYSCORE" in words:
            words[at : at + 2] = [self._score_bound(), self._score_bound()]
        elif name in _TEXTS or b"BYLEX" in words:
            words[at : at + 2] = [self._text_bound(), self._text_bound()]
        elif name in ("ZRANGE", "ZRANGESTORE"):
            words[at : at + 2] = [b"%d" % rng.randrange(-6, 12), b"%d" % rng.randrange(-6, 12)]
            if b"LIMIT" in words:
                place = words.index(b"LIMIT")
                del words[place : place + 3]
        elif name == "XGROUP" and words[1] == b"CREATE" and b"MKSTREAM" not in words and rng.randrange(2):
            words.append(b"MKSTREAM")
        elif name == "XREADGROUP" and b"STREAMS" in words:
            half = (len(words) - words.index(b"STREAMS")) // 2
            words[len(words) - half :] = [b">" if rng.randrange(3) else self.id() for _ in range(half)]
        elif name in ("XADD", "XTRIM"):
            if b"LIMIT" in words and b"~" not in words:
                place = words.index(b"LIMIT")
                del words[place : place + 2]
            if b"MAXLEN" in words:
                place = words.index(b"MAXLEN") + 1
                words[place + (words[place] in (b"=", b"~"))] = b"%d" % rng.randrange(12)
        elif name == "ZADD" and b"INCR" in words:
            del words[words.index(b"INCR") + 3 :]

    def _often(self) -> int:
        return self.rng.choice([1, 1, 1, 2, 2, 3, 5])

    def _sequence(self, args: list[Argument], out: list[bytes]) -> None:
        rng, at = self.rng, 0
        while at < len(args):
            arg = args[at]
            follows = args[at + 1] if at + 1 < len(args) else None
            if arg.name in ("numkeys", "numfields") and follows is not None and follows.multiple:
                self._counted(follows, out)
                at += 2
            elif arg.multiple and follows is not None and follows.multiple and arg.token is None:
                often = self._often()
                for part in (arg, follows):
                    for _ in range(often):
                        self._once(part, out)
                if rng.randrange(20) == 0:
                    out.pop()
                at += 2
            else:
                self._argument(arg, out)
                at += 1

    def _counted(self, arg: Argument, out: list[bytes]) -> None:
        often = self._often()
        out.append(b"%d" % (often + self.rng.choice([0] * 17 + [1, -1, -3])))
        for _ in range(often):
            self._once(arg, out)

    def _argument(self, arg: Argument, out: list[bytes]) -> None:
        if arg.optional and self.rng.randrange(3):
            return
        for _ in range(self._often() if arg.multiple else 1):
            self._once(arg, out)

    def _once(self, arg: Argument, out: list[bytes]) -> None:
        if arg.type == "pure-token":
            out.append((arg.token or arg.name).encode())
            return
        if arg.token:
            out.append(arg.token.encode())
        if arg.type == "oneof":
            # An id that the server makes up depends on the moment.
            self._argument(self.rng.choice([child for child in arg.children if child.token != "*"]), out)
        elif arg.type == "block":
            self._sequence(arg.children, out)
        else:
            out.append(self.value(arg))
