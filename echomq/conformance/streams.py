"""Scenarios 74 to 79: event logs."""

from __future__ import annotations

from ..errors import ArgumentError, Verdict
from ..ids import encode, pack, stream_id
from ..streams import MaxLen, MinId, Record, Streams
from .world import World, check, equal, scenario

NODE = 7
START_MS = 1_750_000_000_000


def _streams(w: World) -> Streams:
    return Streams(w.link, w.queue, w.minter)


def _at(milliseconds: int, sequence: int = 0) -> str:
    """The id of an event minted so long after a fixed instant."""
    return encode("EVT", pack(START_MS + milliseconds, NODE, sequence))


def _append_at(w: World, *instants: int) -> list[str]:
    ids = [_at(instant) for instant in instants]
    for record_id in ids:
        equal("receipt", _streams(w).append_id("log", record_id, {"n": b"1"}), record_id)
    return ids


@scenario
def stream_verbs(w: World) -> None:
    key, call = w.keys.stream("verbs"), w.connection.call
    added = [call("XADD", key, f"{n}-1", "n", str(n)) for n in range(1, 4)]
    equal("added", added, [b"1-1", b"2-1", b"3-1"])
    equal("range", [entry[0] for entry in call("XRANGE", key, "-", "+")], added)
    equal("group", call("XGROUP", "CREATE", key, "g", "0"), b"OK")
    call("XREADGROUP", "GROUP", "g", "a", "COUNT", 2, "STREAMS", key, ">")
    equal("acknowledged", call("XACK", key, "g", "1-1"), 1)
    claimed = call("XAUTOCLAIM", key, "g", "b", 0, "0")
    equal("claimed", [entry[0] for entry in claimed[1]], [b"2-1"])
    piped = w.connection.pipeline([("XADD", key, f"{n}-1", "n", str(n)) for n in range(4, 8)])
    equal("in order", piped, [b"4-1", b"5-1", b"6-1", b"7-1"])
    heard: list[bytes] = []
    subscribed = w.connect(3)
    subscribed.subscribe(w.keys.events, lambda _, payload: heard.append(payload))
    call("PUBLISH", w.keys.events, "hello")
    equal("while subscribed", subscribed.call("XADD", key, "8-1", "n", "8"), b"8-1")
    equal("length", subscribed.call("XLEN", key), 8)
    w.until("message", lambda: heard == [b"hello"])


@scenario
def stream_append(w: World) -> None:
    streams = _streams(w)
    receipts = [streams.append("log", {"n": str(n)}) for n in range(5)]
    wanted = [Record(str(receipt), {"n": b"%d" % n}) for n, receipt in enumerate(receipts)]
    equal("read back", streams.read("log"), wanted)
    try:
        streams.append_id("other", w.mint("ORD"), {})
    except ArgumentError:
        pass
    else:
        check("an id of another namespace is refused", False)
    equal("no key", w.connection.call("EXISTS", w.keys.stream("other")), 0)
    equal("newer", streams.append_id("order", _at(5), {}), _at(5))
    equal("older", streams.append_id("order", _at(4), {}), Verdict.NONMONOTONIC)
    equal("length", w.connection.call("XLEN", w.keys.stream("order")), 1)


@scenario
def stream_group(w: World) -> None:
    key, call = w.keys.stream("log"), w.connection.call
    first, second = _append_at(w, 0, 1)
    call("XGROUP", "CREATE", key, "g", "0")
    call("XREADGROUP", "GROUP", "g", "a", "STREAMS", key, ">")
    equal("acknowledged", call("XACK", key, "g", stream_id(first)), 1)
    claimed = call("XAUTOCLAIM", key, "g", "b", 0, "0")[1]
    equal("left", [entry[0].decode() for entry in claimed], [stream_id(second)])


@scenario
def stream_retention(w: World) -> None:
    streams = _streams(w)
    _append_at(w, 0, 1, 2, 3, 4, 5)
    equal("by length", streams.trim("log", MaxLen(2, approx=False)), 4)
    equal("left", [record.id for record in streams.read("log")], [_at(4), _at(5)])
    kept = _append_at(w, 6, 7, 8, 9)[2:]
    equal("by instant", streams.trim("log", MaxLen(5, approx=False)), 1)
    equal("three earlier", streams.trim("log", MinId(START_MS + 8, approx=False)), 3)
    equal("kept", [record.id for record in streams.read("log")], kept)


@scenario
def stream_archived(w: World) -> None:
    streams = _streams(w)
    equal("empty", streams.archived("log"), None)
    for instant in (1, 2):
        streams.mark_archived("log", _at(instant))
        equal("mark", streams.archived("log"), _at(instant))
    equal("removed", streams.forget_archived("log"), True)
    equal("empty again", streams.archived("log"), None)
    equal("nothing to remove", streams.forget_archived("log"), False)


@scenario
def stream_time_travel(w: World) -> None:
    streams = _streams(w)
    last_of_its_ms = encode("EVT", pack(START_MS + 30, 1023, 4095))
    ids = _append_at(w, 9, 10, 20, 30)
    streams.append_id("log", last_of_its_ms, {"n": b"1"})
    ids += [last_of_its_ms, *_append_at(w, 31)]
    window = streams.read_window("log", START_MS + 10, START_MS + 30)
    equal("inside", [record.id for record in window], ids[1:5])
    equal("one millisecond", len(streams.read_window("log", START_MS + 30, START_MS + 30)), 2)
    equal("since", [record.id for record in streams.read_since("log", START_MS + 30)], ids[3:])
    try:
        streams.read_window("log", START_MS + 1, START_MS)
    except ArgumentError:
        return
    check("a window that ends before it begins is refused", False)
