"""What becomes of engines when their process forks.

Only the forking thread lives on in the child. Had another one been in the midst of a command, the child would find
the engine's lock taken for ever, and its keys half changed; so every lock is taken for the fork and given back on
both sides. The child then has a copy of its own: what it writes the parent never sees.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine

__all__ = ["survive"]

_engines: WeakSet[Engine] = WeakSet()
_one_at_a_time = threading.Lock()
_held: list[Engine] = []


def survive(engine: Engine) -> None:
    """From now on ``engine`` is whole and unlocked in every child of this process."""
    _engines.add(engine)


def _before() -> None:
    _one_at_a_time.acquire()
    for engine in list(_engines):
        engine.lock.acquire()
        _held.append(engine)


def _after_in_child() -> None:
    for engine in _held:
        if engine.busy.forked():
            engine.scripting = None  # its interpreter is in the midst of a script that nobody will end
    _after()


def _after() -> None:
    while _held:
        _held.pop().lock.release()
    _one_at_a_time.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)
