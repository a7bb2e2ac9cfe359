"""A run as text: a lane for each actor, time downwards, what changed at the right."""

from __future__ import annotations

import textwrap
from typing import Any

from emuredis.errors import ReplyError
from emuredis.lab.contents import Content
from emuredis.lab.world import CLOCK, Event
from emuredis.protocol.views import view2
from emuredis.replies import BLOCKED

__all__ = ["changes_of", "command_of", "content_of", "key_of", "shown", "steps_of", "timeline"]


def timeline(labels: list[str], events: list[Event], width: int = 24) -> str:
    """One block of lines a step: number, a column for each of ``labels``, the keys that changed."""
    width = max(width, *(len(label) for label in labels))
    head = "    " + " | ".join(label.ljust(width) for label in labels) + " | keys"
    lines = [head.rstrip(), "-" * len(head)]
    for number, event in enumerate(events, 1):
        columns: dict[str, list[str]] = {label: [] for label in labels}
        for who, text in steps_of(event):
            for label in labels if who == "" else (who,):
                columns[label] += textwrap.wrap(text, width, subsequent_indent="  ") or [""]
        changed = changes_of(event)
        for row in range(max(len(changed), *map(len, columns.values()))):
            cells = [(column[row] if row < len(column) else "").ljust(width) for column in columns.values()]
            note = changed[row] if row < len(changed) else ""
            lines.append((f"{number if row == 0 else '':>3} " + " | ".join(cells) + " | " + note).rstrip())
    return "\n".join(lines)


def steps_of(event: Event) -> list[tuple[str, str]]:
    """What the lanes show of a step: (actor, or "" for all, and the text)."""
    if event.choice == CLOCK:
        out = [("", f"~ clock: {event.now_ms} ms")]
    elif event.choice[1:] == "!":
        out = [(event.actor, "CRASH")]
    else:
        text = command_of(event)
        if event.choice[1:] == "?":
            out = [(event.actor, f"{text} -> reply lost")]
        elif event.reply is BLOCKED:
            out = [(event.actor, f"{text} ... waits")]
        else:
            out = [(event.actor, f"{text} -> {shown(event.reply)}")]
        out += [(event.actor, f"  . {shown(argv)} -> {shown(reply)}") for argv, reply in event.calls]
    for label, argv, reply in event.served:
        out.append((label, f"{shown(argv[:1])} woken -> {shown(reply)}"))
    if event.problem:
        out.append((event.actor, f"ends: {event.problem}"))
    return out


def command_of(event: Event) -> str:
    """The command of a step; a script by its name, if it has one, with its keys and arguments."""
    if event.script:
        return f"{event.script} {shown(event.argv[3:])}" if event.argv[3:] else event.script
    return shown(event.argv)


def changes_of(event: Event) -> list[str]:
    """``key: before -> after`` of what a step changed."""
    out = []
    for place, (before, after) in event.changes.items():
        out.append(f"{key_of(place)}: {content_of(before)} -> {content_of(after)}")
    return out


def key_of(place: tuple[int, bytes]) -> str:
    """A key for people, with its database unless that is 0."""
    db, key = place
    return key.decode("utf-8", "backslashreplace") + (f" (db {db})" if db else "")


def content_of(content: Content | None) -> str:
    """What a key holds, for people."""
    return "nothing" if content is None else str(content)


def shown(value: Any) -> str:
    """A command or a reply for people, cut where it is long."""
    if isinstance(value, ReplyError):
        return f"({value.message})"
    if isinstance(value, list) and value and all(isinstance(word, bytes) for word in value):
        return " ".join(map(_word, value))
    if value is None:
        return "nil"
    if isinstance(value, bytes):
        return _word(value)
    if isinstance(value, (int, float, str)):
        return str(value)
    plain = view2(value)
    if plain is None:
        return "nil"
    return "[" + ", ".join(shown(item) for item in plain) + "]" if isinstance(plain, list) else str(plain)


def _word(word: bytes) -> str:
    text = word.decode("utf-8", "backslashreplace").replace("\n", " ")
    return text if len(text) <= 40 else text[:37] + "..."
