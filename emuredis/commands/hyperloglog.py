"""HyperLogLogs: counting distinct elements in 12 KB. The sketch itself is `emuredis.values.hyperloglog`.

A sketch is a string, so what a command changed is stored as a new string under the key, and its time to live stays.
PFCOUNT of one key keeps the estimate in the string: it writes, which breaks a WATCH, but has no event of its own.
A corrupted sketch is an error, and what was changed before that was found out stays changed, without an event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emuredis.errors import ReplyError, err
from emuredis.keyspace.notify import STRING
from emuredis.replies import OK, Frames, Reply, Status
from emuredis.spec import command
from emuredis.values.hyperloglog import REGISTERS, Corrupted, Sketch, estimate, highest, is_sketch

if TYPE_CHECKING:
    from emuredis.engine.session import Session

_SELF_TEST = 1000


def _sketch(ctx: Session, value: bytes) -> Sketch:
    if not is_sketch(value):
        raise ReplyError("WRONGTYPE Key is not a valid HyperLogLog string value.")
    return Sketch(value, ctx.engine.limits)


def _corrupted() -> ReplyError:
    return ReplyError("INVALIDOBJ Corrupted HLL object detected")


def _store(ctx: Session, key: bytes, sketch: Sketch) -> None:
    """Also when nothing changed, as the server then changes the encoding."""
    ctx.db.update(key, ctx.db.note_encoding(key, bytes(sketch.data), b"raw"))


@command("PFADD key [element...]", "write denyoom fast", keys="RW insert @1", group="hyperloglog", since="2.8.9",
         complexity="O(1) for each element")  # fmt: skip
def pfadd(ctx: Session, argv: list[bytes]) -> Reply:
    """Counts elements; 1 if the estimate may have changed."""
    db, key = ctx.db, argv[1]
    old = db.write(key, bytes)
    sketch = Sketch(limits=ctx.engine.limits) if old is None else _sketch(ctx, old)
    updated = old is None
    try:
        for element in argv[2:]:
            updated |= sketch.add(element)
    except Corrupted:
        _store(ctx, key, sketch)
        raise _corrupted() from None
    if updated:
        sketch.outdate()
    _store(ctx, key, sketch)
    if updated:
        db.touch(key, STRING, b"pfadd")
    return int(updated)


@command("PFCOUNT key...", "readonly", keys="RW access @1..-1", group="hyperloglog", since="2.8.9",
         complexity="O(N), N being the number of keys")  # fmt: skip
def pfcount(ctx: Session, argv: list[bytes]) -> Reply:
    """Estimates how many distinct elements were counted under any of the keys."""
    if len(argv) > 2:
        return estimate(_union(ctx, argv)[0])
    db, key = ctx.db, argv[1]
    value = db.read(key, bytes)
    if value is None:
        return 0
    sketch = _sketch(ctx, value)
    number = sketch.cached()
    if number is not None:
        _store(ctx, key, sketch)
        return number
    try:
        number = estimate(sketch.raw())
    except Corrupted:
        raise _corrupted() from None
    sketch.cache(number)
    _store(ctx, key, sketch)
    db.touch(key, 0, b"")
    return number


def _union(ctx: Session, argv: list[bytes]) -> tuple[bytes, bool]:
    """The registers of the union of all keys named, and whether any of them is dense."""
    sketches = []
    raw = bytes(REGISTERS)
    for key in argv[1:]:
        value = ctx.db.read(key, bytes)
        if value is not None:
            sketch = _sketch(ctx, value)
            sketches.append(sketch)
            if not sketch.dense:
                _check(sketch)
    if sketches:
        raw = highest(sketches)
    return raw, any(sketch.dense for sketch in sketches)


def _check(sketch: Sketch) -> None:
    if sum(span for _, _, span in sketch.runs()) != REGISTERS:
        raise _corrupted()


@command("PFMERGE destkey:key [sourcekey:key...]", "write denyoom", keys="RW access insert @1, RO access @2..-1",
         group="hyperloglog", since="2.8.9", complexity="O(N), N being the number of keys")  # fmt: skip
def pfmerge(ctx: Session, argv: list[bytes]) -> Reply:
    """Merges what was counted under other keys into a key."""
    raw, dense = _union(ctx, argv)
    db, key = ctx.db, argv[1]
    old = db.write(key, bytes)
    sketch = Sketch(limits=ctx.engine.limits) if old is None else _sketch(ctx, old)
    if dense:
        sketch.make_dense()
    sketch.merge(raw)
    sketch.outdate()
    _store(ctx, key, sketch)
    db.touch(key, STRING, b"pfadd")
    return OK


# -- looking inside ----------------------------------------------------------------------------


@command("PFDEBUG subcommand key", "write denyoom admin", keys="RW access @2", group="hyperloglog", since="2.8.9",
         complexity="N/A")  # fmt: skip
def pfdebug(ctx: Session, argv: list[bytes]) -> Reply:
    """Shows or changes how a sketch is stored: GETREG, DECODE, ENCODING, TODENSE; SIMD ON or OFF changes nothing."""
    word = argv[1].upper()
    if word == b"SIMD":
        state = argv[2].upper()
        if state in (b"ON", b"OFF"):
            return Status(b"enabled" if state == b"ON" else b"disabled")
        return Frames([err("Argument must be ON or OFF"), Status(b"enabled")])  # the server sends both
    db, key = ctx.db, argv[2]
    value = db.write(key, bytes)
    if value is None:
        raise err("The specified key does not exist")
    sketch = _sketch(ctx, value)
    _store(ctx, key, sketch)
    if word == b"ENCODING":
        return Status(b"dense" if sketch.dense else b"sparse")
    if word == b"DECODE":
        if sketch.dense:
            raise err("HLL encoding is not sparse")
        return b" ".join(map(_decoded, sketch.runs()))
    if word not in (b"GETREG", b"TODENSE"):
        raise err(f"Unknown PFDEBUG subcommand '{argv[1].decode('utf-8', 'surrogateescape')}'")
    was_sparse = not sketch.dense
    try:
        sketch.make_dense()
    except Corrupted:
        raise _corrupted() from None
    if was_sparse:
        _store(ctx, key, sketch)
        db.alter(key, STRING, b"")
    return list(sketch.raw()) if word == b"GETREG" else int(was_sparse)


def _decoded(run: tuple[int, int, int]) -> bytes:
    op, value, length = run
    if value:
        return b"v:%d,%d" % (value, length)
    return (b"Z:%d" if op & 0x40 else b"z:%d") % length


@command("PFSELFTEST", "admin", group="hyperloglog", since="2.8.9", complexity="N/A")
def pfselftest(ctx: Session, argv: list[bytes]) -> Reply:
    """Counts elements in both encodings and checks that they agree and are near the truth."""
    sparse, dense = Sketch(limits=ctx.engine.limits), Sketch(limits=ctx.engine.limits)
    dense.make_dense()
    for number in range(_SELF_TEST):
        element = number.to_bytes(8, "little")
        sparse.add(element)
        dense.add(element)
    if sparse.raw() != dense.raw():
        raise ReplyError("ERR TESTFAILED dense/sparse disagree")
    if abs(estimate(dense.raw()) - _SELF_TEST) > _SELF_TEST // 20:
        raise ReplyError("ERR TESTFAILED Too big error.")
    return OK
