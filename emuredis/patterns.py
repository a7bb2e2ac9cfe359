"""Glob patterns as KEYS, SCAN MATCH, PSUBSCRIBE, CONFIG GET and ACLs understand them.

The rules are the server's, oddities included: ``*``, ``?``, ``[abc]``, ``[a-z]``, ``[^abc]`` and
``\\`` as escape; a bracket that never closes ends with the pattern; a range whose second end is ``]``
is a range; ranges compare bytes as signed numbers; ``\\`` at the very end stands for itself; the empty
text matches the empty pattern only, not even ``*``, except that KEYS and the SCAN family take the
pattern ``*`` for "all" without matching. `match` is the bare rule, `compile` the one of KEYS and SCAN.

A pattern is compiled once: ``*`` cuts it into segments of fixed length, the first and last of which
are anchored and the others searched from left to right. Leftmost is always safe because a segment's
length is fixed, so matching takes O(len(pattern) * len(text)) at worst and no pattern is exponential.

To change a rule, change `_tokens`, which alone reads pattern text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

__all__ = ["Matcher", "compile", "literal_prefix", "match"]

Matcher = Callable[[bytes], bool]

_STAR = None
_ANY = frozenset(range(256))
_MAX_STARS = 1000
"""The server gives up (no match) when more than this many stars have something after them."""

_Token = frozenset[int] | None


def match(pattern: bytes, text: bytes, nocase: bool = False) -> bool:
    """Whether ``text`` as a whole matches ``pattern``. O(len(pattern) * len(text))."""
    return compile(pattern, nocase)(text) if text else not pattern


@lru_cache(maxsize=1024)
def compile(pattern: bytes, nocase: bool = False) -> Matcher:
    """A function that tells whether a text matches ``pattern``, ``*`` meaning all. Cached."""
    if pattern == b"*":
        return _everything
    segments: list[list[frozenset[int]]] = [[]]
    for token in _tokens(pattern, nocase):
        if token is _STAR:
            if segments[-1] or len(segments) == 1:
                segments.append([])
        else:
            segments[-1].append(token)
    if len(segments) == 1:
        return _exact(segments[0])
    if not any(segments):
        return bool
    if len(segments) - 1 - (not segments[-1]) > _MAX_STARS:
        return _nothing
    return _starred(segments)


def literal_prefix(pattern: bytes) -> bytes | None:
    """The one text the pattern can match if it holds no special byte, else None."""
    for special in b"*?[\\":
        if special in pattern:
            return None
    return pattern


def _everything(text: bytes) -> bool:
    return True


def _nothing(text: bytes) -> bool:
    return False


def _literal(segment: list[frozenset[int]]) -> bytes | None:
    """The bytes of a segment that can match one text only, else None."""
    if all(len(choices) == 1 for choices in segment):
        return bytes(next(iter(choices)) for choices in segment)
    return None


def _regex(segment: list[frozenset[int]]) -> re.Pattern[bytes]:
    """A segment as a regular expression of fixed length."""
    parts = []
    for choices in segment:
        if choices == _ANY:
            parts.append(b"[\\x00-\\xff]")
        elif not choices:
            parts.append(b"[^\\x00-\\xff]")
        else:
            parts.append(b"[" + b"".join(b"\\x%02x" % byte for byte in sorted(choices)) + b"]")
    return re.compile(b"".join(parts))


def _exact(segment: list[frozenset[int]]) -> Matcher:
    literal = _literal(segment)
    if literal is not None:
        return literal.__eq__
    fullmatch = _regex(segment).fullmatch
    return lambda text: fullmatch(text) is not None


def _starred(segments: list[list[frozenset[int]]]) -> Matcher:
    """A matcher for two or more segments with a star between each two."""
    literals = [_literal(segment) for segment in segments]
    head, tail = literals[0], literals[-1]
    if len(segments) == 2 and head is not None and tail is not None:
        if not tail:
            return lambda text: text.startswith(head)
        if not head:
            return lambda text: text.endswith(tail)
        shortest = len(head) + len(tail)
        return lambda text: len(text) >= shortest and text.startswith(head) and text.endswith(tail)
    if len(segments) == 3 and head == b"" and tail == b"" and literals[1] is not None:
        middle = literals[1]
        return lambda text: middle in text
    return _general(segments)


def _general(segments: list[list[frozenset[int]]]) -> Matcher:
    lengths = [len(segment) for segment in segments]
    total = sum(lengths)
    begins = _regex(segments[0]).match
    ends = _regex(segments[-1]).fullmatch
    searches = [(_regex(segment).search, len(segment)) for segment in segments[1:-1]]
    first, last = lengths[0], lengths[-1]

    def matcher(text: bytes) -> bool:
        size = len(text)
        if size < total or begins(text) is None or ends(text, size - last) is None:
            return False
        position, limit = first, size - last
        for search, length in searches:
            found = search(text, position, limit)
            if found is None:
                return False
            position = found.start() + length
        return True

    return matcher


def _lower(byte: int) -> int:
    return byte + 32 if 65 <= byte <= 90 else byte


def _same(byte: int, nocase: bool) -> frozenset[int]:
    """The bytes that equal ``byte``."""
    if nocase:
        return frozenset(other for other in range(256) if _lower(other) == _lower(byte))
    return frozenset((byte,))


def _tokens(pattern: bytes, nocase: bool) -> list[_Token]:
    """The pattern as a list of byte sets, with `_STAR` for each run of stars."""
    tokens: list[_Token] = []
    position, size = 0, len(pattern)
    while position < size:
        byte = pattern[position]
        if byte == 42:  # *
            tokens.append(_STAR)
        elif byte == 63:  # ?
            tokens.append(_ANY)
        elif byte == 91:  # [
            choices, position = _bracket(pattern, position + 1, nocase)
            tokens.append(choices)
        else:
            if byte == 92 and position + 1 < size:  # backslash
                position += 1
            tokens.append(_same(pattern[position], nocase))
        position += 1
    return tokens


def _bracket(pattern: bytes, position: int, nocase: bool) -> tuple[frozenset[int], int]:
    """The bytes a bracket accepts and the position of its last byte."""
    size = len(pattern)
    negated = pattern[position : position + 1] == b"^"
    if negated:
        position += 1
    accepted: set[int] = set()
    while True:
        left = size - position
        if left >= 2 and pattern[position] == 92:
            position += 1
            accepted.add(pattern[position])  # an escaped byte is compared with its case
        elif left == 0:
            position -= 1
            break
        elif pattern[position] == 93:  # ]
            break
        elif left >= 3 and pattern[position + 1] == 45:  # -
            accepted |= _range(pattern[position], pattern[position + 2], nocase)
            position += 2
        else:
            accepted |= _same(pattern[position], nocase)
        position += 1
    return (_ANY - accepted if negated else frozenset(accepted)), position


def _range(start: int, end: int, nocase: bool) -> set[int]:
    """The bytes between two ends, which may come in any order."""
    start, end = _signed(start), _signed(end)
    if start > end:
        start, end = end, start
    if nocase:
        # The order is made before case is folded, so a range such as Z-a comes out empty.
        start, end = _lower(start), _lower(end)
        return {byte for byte in range(256) if start <= _lower(_signed(byte)) <= end}
    return {byte for byte in range(256) if start <= _signed(byte) <= end}


def _signed(byte: int) -> int:
    """A byte as the server's (x86) char."""
    return byte - 256 if byte > 127 else byte
