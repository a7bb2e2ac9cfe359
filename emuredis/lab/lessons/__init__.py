"""Lessons: small programs, a state that must not be, and you choose who runs next.

    python -m emuredis learn            in the terminal
    python -m emuredis learn --web      the same as a page on this machine

`catalog` and `more` hold the lessons, `play` is one game of one lesson, `terminal` and `web` show it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emuredis.lab.lessons.lesson import Lesson, Variant
from emuredis.lab.lessons.play import Play

if TYPE_CHECKING:
    LESSONS: list[Lesson]

__all__ = ["LESSONS", "Lesson", "Play", "Variant"]


def __getattr__(name: str) -> Any:
    if name != "LESSONS":
        raise AttributeError(name)
    from emuredis.lab.lessons import catalog, more

    return [*catalog.LESSONS, *more.LESSONS]
