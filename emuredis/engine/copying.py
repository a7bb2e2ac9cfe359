"""A copy of an engine's data in an engine of its own, as a forked server's child has it.

The copy has the same keys, deadlines, parameters and state of chance, no clients and no scripts. A manual clock is
copied too: the copy's stands still.
"""

from __future__ import annotations

import copy
from typing import Any

from emuredis.clock import ManualClock
from emuredis.engine.engine import Engine

__all__ = ["copied"]


def copied(engine: Engine) -> Engine:
    """A copy of ``engine``, whose lock the caller holds. O(size of the data)."""
    memo: dict[int, Any] = {}
    config = copy.deepcopy(engine.config, memo)  # the collections' limits are in the memo from here on
    clock = ManualClock(engine.now_ns() / 1e9) if engine.clock.manual else engine.clock
    new = Engine(engine.table, clock, 0, config)
    new.rng.setstate(engine.rng.getstate())
    new.run_id = engine.run_id
    new.script_names = dict(engine.script_names)
    new.strict = engine.strict
    if new.strict is not None:
        new.script_observers.append(new.strict.copy())
    new.keyspace.ns = engine.keyspace.ns
    for old_db, new_db in zip(engine.keyspace.databases, new.keyspace.databases, strict=True):
        new_db.data = copy.deepcopy(old_db.data, memo)
        new_db.deadlines = dict(old_db.deadlines)
        new_db.encodings = dict(old_db.encodings)  # by identity; bytes are not copied
    new.keyspace.rebuild_heap()
    for db in new.keyspace.databases:
        for key, value in db.data.items():
            db.adopt_fields(key, value)
    return new
