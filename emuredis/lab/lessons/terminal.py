"""``python -m emuredis learn``: the lessons in a terminal. Reads lines, writes lines; knows no terminal codes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from emuredis.lab.lessons import LESSONS
from emuredis.lab.lessons.lesson import Lesson
from emuredis.lab.lessons.play import Play
from emuredis.lab.timeline import content_of, key_of

__all__ = ["learn"]

HELP = """\
a choice        its number or its letters: 1, or a, a!, +
u               undo the last choice          r   begin again
s               switch between the broken and the right program
c               the code of the programs      t   the task again
e               explore every schedule of both programs
l               the list of lessons           n   the next lesson
q               quit"""

Read = Callable[[str], str]
Write = Callable[[str], None]


def learn(read: Read, write: Write, number: int | None = None) -> None:
    """Play lessons until the reader leaves. ``read`` is given a prompt and raises EOFError at the end."""
    lessons = {lesson.number: lesson for lesson in LESSONS}
    try:
        while True:
            if number not in lessons:
                _list(write)
                answer = read("lesson, or q: ").strip().lower()
                if answer in ("q", "quit"):
                    return
                number = int(answer) if answer.isdecimal() else None
                continue
            number = _play(lessons[number], read, write)
            if number == 0:
                return
    except EOFError:
        write("")


def _list(write: Write) -> None:
    for lesson in LESSONS:
        write(f"{lesson.number:>3}  {lesson.title}")


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 88)


def _play(lesson: Lesson, read: Read, write: Write) -> int | None:
    """The number of the lesson to go on with; None for the list, 0 for the end."""
    write(f"\n{lesson.number}. {lesson.title}\n")
    write(_wrapped(lesson.text) + "\n")
    write(f"Forbidden: {lesson.forbidden}.")
    write(_wrapped(f"Try this: {lesson.task}") + "\n")
    play = Play(lesson)
    try:
        _show(play, write)
        while True:
            answer = read("> ").strip()
            word = answer.lower()
            if word in ("q", "quit"):
                return 0
            if word == "l":
                return None
            if word == "n":
                return lesson.number + 1
            if word == "s":
                play.close()
                play = Play(lesson, "right" if play.name == "broken" else "broken")
            elif not _obey(play, word, write):
                continue
            _show(play, write)
    finally:
        play.close()


def _obey(play: Play, word: str, write: Write) -> bool:
    """Carry out a word; whether the game is to be shown again."""
    lesson = play.lesson
    if word == "u":
        play.undo()
    elif word == "r":
        play.restart()
    elif word in ("c", "t", "e", "h", "help", "?"):
        write(
            {"c": play.variant.code, "t": _wrapped(lesson.task)}.get(word, HELP)
            if word != "e"
            else explored(lesson)
        )
        return False
    else:
        choices = [choice for choice, _ in play.choices]
        choice = choices[int(word) - 1] if word.isdecimal() and 0 < int(word) <= len(choices) else word
        if choice not in choices:
            write(f"{word!r} is no choice now; h for help" if word else HELP)
            return False
        play.take(choice)
    return True


def _show(play: Play, write: Write) -> None:
    write(f"[{play.name}: {play.variant.says}]")
    if play.run.events:
        write(play.run.timeline(30))
    keys = "; ".join(
        f"{key_of(place)} = {content_of(content)}" for place, content in sorted(play.state.items())
    )
    write(f"keys: {keys or 'none'}")
    if play.message:
        write(f"** {play.message}")
    elif play.over:
        write("the program has ended, and nothing is wrong")
    for number, (choice, what) in enumerate(play.choices, 1):
        write(f"  {number:>2}  {choice:<3} {what}")
    if play.over:
        write("  u undo, r begin again, s the other program, e every schedule, n the next lesson, q quit")


def explored(lesson: Lesson) -> str:
    """Both programs under every schedule: the counts and the counterexample."""
    broken, right = lesson.broken.explore(), lesson.right.explore()
    parts = [f"{lesson.broken.says}: {broken.summary}"]
    if broken.counterexample is not None:
        parts.append(str(broken.counterexample))
    parts += [f"{lesson.right.says}: {right.summary}", _wrapped(lesson.moral)]
    return "\n\n".join(parts)
