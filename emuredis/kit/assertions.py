"""What a test expects of keys, said in one line, with the difference spelled out when it is not so.

Expected values may be str, bytes, int or float, whichever is readable; they are compared as what a client would write.
Anything else with an ``==`` of its own (``pytest.approx``, ``unittest.mock.ANY`` ...) is a matcher: it is asked with
the value as int or float where it reads as a number, else as str, else as bytes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from emuredis.kit.contents import blob, describe, text, to_json
from emuredis.scalars import format_double
from emuredis.values.hash import Hash
from emuredis.values.list import List
from emuredis.values.set import Set
from emuredis.values.stream import Stream
from emuredis.values.zset import ZSet

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine

__all__ = ["Assertions", "compare"]

_PLAIN = (str, bytes, int, float)
_NAMES = {bytes: "string", Hash: "hash", List: "list", Set: "set", ZSet: "sorted set", Stream: "stream"}


def _number(raw: bytes) -> Any:
    """What a matcher is asked with."""
    for read in (int, float):
        try:
            return read(raw)
        except ValueError:
            pass
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _equal(expected: Any, raw: bytes) -> bool:
    if isinstance(expected, _PLAIN) and not isinstance(expected, bool):
        return blob(expected) == raw
    return bool(expected == _number(raw))


def _equal_score(expected: Any, score: float) -> bool:
    return bool(expected == score)


def _shown(expected: Any) -> str:
    if isinstance(expected, _PLAIN) and not isinstance(expected, bool):
        return text(blob(expected))
    return repr(expected)


def compare(what: str, expected: Sequence[Any], elements: Sequence[bytes]) -> None:
    """Raises AssertionError with the difference unless the elements are the expected ones, in this order."""
    if len(elements) != len(expected) or not all(map(_equal, expected, elements)):
        _fail_with(what, _diff([_shown(item) for item in expected], [text(item) for item in elements]))


class Assertions:
    """Methods of `emuredis.Emulator`. Each raises AssertionError with a readable difference.

    ``db`` is the number of the database, 0 unless given. A key that does not exist is an empty collection.
    """

    engine: Engine

    # -- values ----------------------------------------------------------------------------------

    def assert_string(self, key: Any, expected: Any, *, db: int = 0) -> None:
        """The key holds the string ``expected``; None: there is no such key."""
        value = self._value(key, bytes, db)
        if value is None or expected is None:
            if value is not expected:
                raise AssertionError(f"{_of(key)} is {_or_absent(value)}, expected {_or_absent(expected)}")
        elif not _equal(expected, value):
            raise AssertionError(f"{_of(key)} is {text(value)!r}, expected {_shown(expected)!r}")

    def assert_hash(
        self, key: Any, expected: Mapping[Any, Any], *, db: int = 0, partial: bool = False
    ) -> None:
        """The hash has exactly these fields and values; ``partial``: at least these."""
        value = self._value(key, Hash, db)
        fields = value.fields if value is not None else {}
        wanted = {blob(field): item for field, item in expected.items()}
        lines = []
        for field in sorted({*fields, *wanted} if not partial else wanted):
            if field not in fields:
                lines.append(f"- {text(field)}: {_shown(wanted[field])}")
            elif field not in wanted:
                lines.append(f"+ {text(field)}: {text(fields[field])}")
            elif not _equal(wanted[field], fields[field]):
                lines.append(f"- {text(field)}: {_shown(wanted[field])}")
                lines.append(f"+ {text(field)}: {text(fields[field])}")
        _fail_with(f"hash {_of(key)}", lines)

    def assert_list(self, key: Any, expected: Sequence[Any], *, db: int = 0) -> None:
        """The list has exactly these elements in this order."""
        value = self._value(key, List, db)
        compare(f"list {_of(key)}", expected, list(value) if value is not None else [])

    def assert_set(self, key: Any, expected: Iterable[Any], *, db: int = 0) -> None:
        """The set has exactly these members."""
        value = self._value(key, Set, db)
        members = set(value) if value is not None else set()
        wanted = {blob(member) for member in expected}
        lines = [f"- {text(member)}" for member in sorted(wanted - members)]
        lines += [f"+ {text(member)}" for member in sorted(members - wanted)]
        _fail_with(f"set {_of(key)}", lines)

    def assert_zset(self, key: Any, expected: Any, *, db: int = 0) -> None:
        """The sorted set has exactly these members and scores: a dict, or pairs in the order of the set."""
        value = self._value(key, ZSet, db)
        items = list(value.items()) if value is not None else []
        if isinstance(expected, Mapping):
            scores = dict(items)
            wanted = {blob(member): score for member, score in expected.items()}
            lines = []
            for member in sorted({*scores, *wanted}):
                if member in scores and member in wanted and _equal_score(wanted[member], scores[member]):
                    continue
                lines += [f"- {text(member)} {wanted[member]}"] if member in wanted else []
                lines += (
                    [f"+ {text(member)} {format_double(scores[member]).decode()}"] if member in scores else []
                )
            _fail_with(f"sorted set {_of(key)}", lines)
            return
        pairs = [(blob(member), score) for member, score in expected]
        same = len(pairs) == len(items) and all(
            member == other and _equal_score(score, actual)
            for (member, score), (other, actual) in zip(pairs, items, strict=True)
        )
        if not same:
            shown = [f"{text(member)} {format_double(score).decode()}" for member, score in items]
            _fail_with(f"sorted set {_of(key)}", _diff([f"{text(m)} {s}" for m, s in pairs], shown))

    def assert_stream(self, key: Any, expected: Sequence[Any], *, db: int = 0) -> None:
        """The stream has exactly these entries: dicts of fields and values, or ``(id, dict)`` pairs."""
        value = self._value(key, Stream, db)
        entries = value.range(0, 1 << 128) if value is not None else []
        same = len(entries) == len(expected) and all(map(_equal_entry, expected, entries))
        if not same:
            shown = [_entry_shown(entry_id, words) for entry_id, words in entries]
            _fail_with(f"stream {_of(key)}", _diff([_entry_expected(item) for item in expected], shown))

    # -- keys ------------------------------------------------------------------------------------

    def assert_keys(self, *expected: Any, db: int = 0) -> None:
        """The database has exactly these keys."""
        keys = set(self.engine.keyspace.databases[db].keys())
        wanted = {blob(key) for key in expected}
        lines = [f"- {text(key)}" for key in sorted(wanted - keys)]
        lines += [f"+ {text(key)}" for key in sorted(keys - wanted)]
        _fail_with(f"keys of database {db}", lines)

    def assert_ttl(self, key: Any, expected: Any, *, db: int = 0) -> None:
        """The key has this time to live in seconds; None: it exists and has none. Matchers get a float."""
        database = self.engine.keyspace.databases[db]
        raw = blob(key)
        with self.engine.lock:
            self.engine.run_due()
            if not database.exists(raw):
                raise AssertionError(f"{_of(key)} does not exist, expected a time to live of {expected!r}")
            deadline = database.deadline(raw)
            left = None if deadline is None else (deadline - self.engine.clock.now_ns() // 1_000_000) / 1000
        if left != expected and not (left is not None and expected == left):
            raise AssertionError(f"{_of(key)} has {_ttl(left)}, expected {_ttl(expected)}")

    @contextmanager
    def assert_unchanged(self) -> Iterator[None]:
        """No key, value or deadline is another at the end of the block than at its start."""
        before = self._content()
        yield
        after = self._content()
        if before != after:
            _fail_with("content", _diff(to_json(before).splitlines(), to_json(after).splitlines()))

    # -- common ----------------------------------------------------------------------------------

    def _content(self) -> dict[str, Any]:
        with self.engine.lock:
            self.engine.run_due()
            return describe(self.engine)

    def _value(self, key: Any, kind: type, db: int) -> Any:
        """The value of a key, None if there is none. Raises AssertionError if it is of another type."""
        with self.engine.lock:
            self.engine.run_due()
            value = self.engine.keyspace.databases[db].peek(blob(key))
        if value is not None and value.__class__ is not kind:
            raise AssertionError(f"{_of(key)} holds a {_NAMES[value.__class__]}, expected a {_NAMES[kind]}")
        return value


def _of(key: Any) -> str:
    return repr(text(blob(key)))


def _or_absent(value: Any) -> str:
    return "absent" if value is None else repr(_shown(value))


def _ttl(seconds: Any) -> str:
    return "no time to live" if seconds is None else f"{seconds!r} s to live"


def _equal_entry(expected: Any, entry: tuple[int, tuple[bytes, ...]]) -> bool:
    entry_id, words = entry
    if not isinstance(expected, Mapping):
        shown, expected = expected
        if shown != _id(entry_id):
            return False
    flat = [word for pair in expected.items() for word in pair]
    return len(flat) == len(words) and all(map(_equal, flat, words))


def _id(entry_id: int) -> str:
    return f"{entry_id >> 64}-{entry_id & ((1 << 64) - 1)}"


def _entry_shown(entry_id: int, words: Sequence[bytes]) -> str:
    pairs = zip(words[::2], words[1::2], strict=True)
    return f"{_id(entry_id)} " + " ".join(f"{text(field)}={text(value)}" for field, value in pairs)


def _entry_expected(expected: Any) -> str:
    shown = "*"
    if not isinstance(expected, Mapping):
        shown, expected = expected
    return f"{shown} " + " ".join(f"{_shown(field)}={_shown(value)}" for field, value in expected.items())


def _diff(expected: Sequence[str], actual: Sequence[str]) -> list[str]:
    lines = difflib.ndiff(list(expected), list(actual))
    return [line for line in lines if not line.startswith("? ")]


def _fail_with(what: str, lines: list[str]) -> None:
    if lines:
        raise AssertionError(f"{what} differs (- expected, + is there):\n" + "\n".join(lines))
