"""Which threads use an engine, and which of them are parked in a blocking command.

On a manual clock this answers one question for those who wait (`emuredis.waits`, and the idlers of event loops): is
anybody left who could still do something? A thread counts from its first session or wait on, and the thread that made
the emulator from then on; one that has ended does not count. How to wait is none of this module's business.
"""

from __future__ import annotations

import threading

__all__ = ["Threads", "alone", "this_thread"]

this_thread = threading.get_ident


def alone() -> bool:
    """Whether the process has no thread but this one."""
    return threading.active_count() == 1


class Threads:
    __slots__ = ("_known", "_parked")

    def __init__(self) -> None:
        self._known: dict[int, threading.Thread] = {}
        self._parked: dict[int, None] = {}

    def note(self) -> None:
        """The current thread uses the engine."""
        thread = threading.current_thread()
        self._known[thread.ident or 0] = thread

    def park(self) -> None:
        self.note()
        self._parked[threading.get_ident()] = None

    def unpark(self) -> None:
        self._parked.pop(threading.get_ident(), None)

    def others_running(self) -> bool:
        """Whether a live thread that uses the engine, other than this one, is not parked."""
        self.note()
        this = threading.get_ident()
        for ident, thread in list(self._known.items()):
            if not thread.is_alive():
                del self._known[ident]
                self._parked.pop(ident, None)
            elif ident != this and ident not in self._parked:
                return True
        return False
