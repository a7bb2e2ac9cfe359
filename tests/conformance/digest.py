"""A full account of what the databases hold, in an order of its own, equal on any two servers that agree.

One line per key: database, key, type, encoding, deadline and content; hashes with the deadlines of their fields,
sorted sets with scores, streams with their groups, consumers and pending entries. Left out is what the clock decides:
a deadline that was given as a time to live counts in steps of a thousand seconds from the block's start, times inside
streams not at all.
"""

from __future__ import annotations

from typing import Any

from tests.support.endpoints import Client, Endpoint
from tests.support.resp import Frame

__all__ = ["DATABASES", "digest"]

DATABASES = 16
ABSOLUTE = range(3_000_000_000_000, 10_000_000_000_000)  # a deadline in here was given as such
STEP_MS = 1_000_000
_CONTENT: dict[bytes, tuple[list[bytes], list[bytes]]] = {
    b"string": ([b"GET"], []),
    b"list": ([b"LRANGE"], [b"0", b"-1"]),
    b"set": ([b"SMEMBERS"], []),
    b"hash": ([b"HGETALL"], []),
    b"zset": ([b"ZRANGE"], [b"0", b"-1", b"WITHSCORES"]),
    b"stream": ([b"XINFO", b"STREAM"], [b"FULL", b"COUNT", b"0"]),
}
_TIMES = (b"seen-time", b"active-time")


def _ask(client: Client, questions: list[list[bytes]]) -> list[Any]:
    """Values of the replies to ``questions``, which are sent together."""
    for question in questions:
        client.send(question)
    return [_plain(client.receive(True)) for _ in questions]


def _plain(frame: Frame | None) -> Any:
    if frame is None:
        return "no reply"
    return [_plain(item) for item in frame.value] if isinstance(frame.value, list) else frame.value


def _deadline(at: int, began_ms: int) -> str:
    if at < 0:
        return "-"
    return f"at {at}" if at in ABSOLUTE else f"in {(at - began_ms) // STEP_MS}"


def _timeless(info: Any) -> Any:
    """XINFO STREAM FULL without times: after their names, and in the last place but one of pending entries."""
    if not isinstance(info, list):
        return info
    out = []
    name = None
    for item in info:
        if name in _TIMES:
            item = None
        elif name in (b"pel", b"pending") and isinstance(item, list):
            item = [[*entry[:-2], entry[-1]] for entry in item]
        else:
            item = _timeless(item)
        out.append(item)
        name = item if isinstance(item, bytes) else None
    return out


def _hash(client: Client, key: bytes, flat: list[bytes], began_ms: int) -> list[tuple[bytes, bytes, str]]:
    pairs = sorted(zip(flat[::2], flat[1::2], strict=True))
    fields = [field for field, _ in pairs]
    asked = _ask(client, [[b"HPEXPIRETIME", key, b"FIELDS", b"%d" % len(fields), *fields]])[0]
    return [
        (field, value, _deadline(at, began_ms)) for (field, value), at in zip(pairs, asked or [], strict=True)
    ]


def digest(endpoint: Endpoint, began_ms: int, databases: int = DATABASES) -> list[str]:
    """One text per key, sorted; read through a connection of its own."""
    client = endpoint.open(2)
    out = []
    for index in range(databases):
        _, keys = _ask(client, [[b"SELECT", b"%d" % index], [b"KEYS", b"*"]])
        keys.sort()
        heads = _ask(
            client,
            [
                [*word, key]
                for key in keys
                for word in ([b"TYPE"], [b"OBJECT", b"ENCODING"], [b"PEXPIRETIME"])
            ],
        )
        kinds, encodings, deadlines = heads[::3], heads[1::3], heads[2::3]
        questions = []
        for key, kind in zip(keys, kinds, strict=True):
            head, tail = _CONTENT.get(kind, ([b"TYPE"], []))
            questions.append([*head, key, *tail])
        contents = _ask(client, questions)
        for key, kind, encoding, at, content in zip(keys, kinds, encodings, deadlines, contents, strict=True):
            if kind == b"set":
                content.sort()
            elif kind == b"hash":
                content = _hash(client, key, content, began_ms)
            elif kind == b"stream":
                content = _timeless(content)
            out.append(f"{index} {key!r} {kind!r} {encoding!r} {_deadline(at, began_ms)} {content!r}")
    client.close()
    return out
