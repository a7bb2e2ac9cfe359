"""Pictures of runs: one HTML file, SVG, Mermaid, a ShiViz log, JSON lines.

The HTML file needs nothing but itself: lanes, scripts that open into their calls, a slider, the keys after each step.
All of them are made from `Run`s and know no emulator.
"""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emuredis.lab.timeline import changes_of, command_of, content_of, key_of, shown, steps_of
from emuredis.lab.world import CLOCK, Event
from emuredis.replies import BLOCKED

if TYPE_CHECKING:
    from emuredis.lab.explore import Run

__all__ = ["as_data", "to_html", "to_jsonl", "to_mermaid", "to_shiviz", "to_svg"]

_PAGE = Path(__file__).with_name("assets") / "page.html"


def _kind(event: Event) -> str:
    if event.choice == CLOCK:
        return "clock"
    return {"!": "crash", "?": "lost"}.get(event.choice[1:], "run")


def _reply(event: Event) -> str:
    if _kind(event) == "lost":
        return "lost"
    return "waits" if event.reply is BLOCKED else shown(event.reply)


def _step(event: Event, why: str) -> dict[str, Any]:
    """What the page shows of one step."""
    kind = _kind(event)
    time = f"time passes: the clock shows {event.now_ms} ms"
    told = [f"{who}: {text}" if who else text for who, text in steps_of(event) if text[:4] != "  . "]
    return {
        "kind": kind,
        "actor": event.actor,
        "text": time if kind == "clock" else command_of(event) if event.argv else "",
        "reply": "" if kind in ("clock", "crash") else _reply(event),
        "calls": [{"text": shown(argv), "reply": shown(reply)} for argv, reply in event.calls],
        "served": [
            {"actor": label, "text": shown(argv), "reply": shown(reply)} for label, argv, reply in event.served
        ],
        "problem": event.problem,
        "why": why,
        "keys": [*map(key_of, event.changes), *(word.decode("utf-8", "replace") for word in event.argv[1:])],
        "spoken": ". ".join([*told, *changes_of(event)]),
    }  # fmt: skip


def _states(run: Run) -> list[dict[str, str]]:
    """The keys at the beginning and after each step."""
    now = {key_of(place): content_of(content) for place, content in run.start.items()}
    states = [dict(now)]
    for event in run.events:
        for place, (_, after) in event.changes.items():
            if after is None:
                now.pop(key_of(place), None)
            else:
                now[key_of(place)] = content_of(after)
        states.append(dict(now))
    return states


def as_data(name: str, run: Run) -> dict[str, Any]:
    """A run as plain data, for a page."""
    return {
        "name": name, "message": run.message, "token": run.token, "lanes": run.labels,
        "events": [_step(event, run.why(number)) for number, event in enumerate(run.events, 1)], "states": _states(run),
    }  # fmt: skip


def to_html(title: str, summary: str, runs: list[tuple[str, Run]]) -> str:
    """One self-contained page; ``runs``: names and runs, the first is shown first."""
    data = {
        "title": title,
        "summary": summary,
        "runs": [as_data(name, run) for name, run in runs],
    }
    text = "\n\n".join(f"{name}: {run}" for name, run in runs)
    page = _PAGE.read_text("utf-8")
    as_json = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    for mark, value in (("TITLE", html.escape(title)), ("TEXT", html.escape(text)), ("DATA", as_json)):
        page = page.replace("{{" + mark + "}}", value)
    return page


def to_svg(run: Run, lane_width: int = 230, row_height: int = 44) -> str:
    """The lanes as a picture for a document; long texts are cut, and whole in their tool tips."""
    width = lane_width * len(run.labels) + 40
    height = row_height * (len(run.events) + 1) + 20
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-family="monospace" font-size="12"><title>{html.escape(run.message or "a run")}</title>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    middle = {label: 40 + lane_width * (at + 0.5) for at, label in enumerate(run.labels)}
    for label, x in middle.items():
        out.append(
            f'<text x="{x}" y="20" text-anchor="middle" font-weight="bold">{html.escape(label)}</text>'
        )
        out.append(
            f'<line x1="{x}" y1="28" x2="{x}" y2="{height - 8}" stroke="#999" stroke-dasharray="3 3"/>'
        )
    for number, event in enumerate(run.events, 1):
        y = row_height * number + 8
        out.append(f'<text x="6" y="{y + 4}" fill="#666">{number}</text>')
        for who, text in steps_of(event):
            if text.startswith("  . "):
                continue
            x = middle.get(who, width / 2)
            fill = {"crash": "#ffd9d6", "lost": "#ffe9c7", "clock": "#eee"}.get(_kind(event), "#e6eefb")
            cut = text if len(text) <= 30 else text[:29] + "…"
            out.append(
                f'<g><title>{html.escape(text)}</title><rect x="{x - lane_width / 2 + 6}" y="{y - 12}" rx="4" '
                f'width="{lane_width - 12}" height="24" fill="{fill}" stroke="#556"/>'
                f'<text x="{x}" y="{y + 4}" text-anchor="middle">{html.escape(cut)}</text></g>'
            )
            y += 14
    return "\n".join([*out, "</svg>"])


def to_mermaid(run: Run) -> str:
    """A Mermaid sequence diagram: the actors and the server."""
    lines = ["sequenceDiagram"]
    names = {label: f"A{at}" for at, label in enumerate(run.labels)}
    lines += [f"    participant {name} as {label}" for label, name in names.items()]
    lines.append("    participant S as server")
    for event in run.events:
        if event.choice == CLOCK:
            lines.append(f"    Note over S: clock {event.now_ms} ms")
        elif _kind(event) == "crash":
            lines.append(f"    Note over {names[event.actor]}: crash")
        else:
            name = names[event.actor]
            lines.append(f"    {name}->>S: {_plain(command_of(event))}")
            arrow = "--x" if _kind(event) == "lost" else "-->>"
            if event.reply is not BLOCKED:
                lines.append(f"    S{arrow}{name}: {_plain(_reply(event))}")
        for label, _, reply in event.served:
            lines.append(f"    S-->>{names[label]}: {_plain(shown(reply))}")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Text without what Mermaid takes for its own."""
    return text.replace(";", ",").replace("#", "no.").replace("\n", " ") or "(empty)"


def to_shiviz(run: Run) -> str:
    """A log for ShiViz, with the regular expression ``(?<host>\\S*) (?<clock>{.*})\\n(?<event>.*)``."""
    clocks: dict[str, dict[str, int]] = {"server": {"server": 0}}
    names = {label: label.replace(" ", "_") for label in run.labels}
    lines = []

    def note(host: str, text: str, other: str | None = None) -> None:
        clock = clocks.setdefault(host, {host: 0})
        if other is not None:
            for name, value in clocks.setdefault(other, {other: 0}).items():
                clock[name] = max(clock.get(name, 0), value)
        clock[host] = clock.get(host, 0) + 1
        lines.append(f"{host} {json.dumps(clock)}\n{text}")

    for event in run.events:
        if event.choice == CLOCK:
            note("server", f"clock {event.now_ms} ms")
            continue
        host = names[event.actor]
        if _kind(event) == "crash":
            note(host, "crash")
            continue
        note(host, command_of(event))
        note("server", f"{command_of(event)} -> {_reply(event)}", host)
        if event.reply is not BLOCKED and _kind(event) != "lost":
            note(host, f"reply {_reply(event)}", "server")
        for label, _, reply in event.served:
            note(names[label], f"reply {shown(reply)}", "server")
    return "\n".join(lines) + "\n"


def to_jsonl(run: Run) -> str:
    """One JSON object a step: choice, actor, argv, reply, calls, served, now_ms, changes."""
    lines = []
    for number, event in enumerate(run.events, 1):
        lines.append(json.dumps({
            "step": number, "choice": event.choice, "actor": event.actor, "now_ms": event.now_ms,
            "argv": [word.decode("utf-8", "backslashreplace") for word in event.argv],
            "reply": None if event.choice == CLOCK else _reply(event),
            "calls": [{"argv": [word.decode("utf-8", "backslashreplace") for word in argv], "reply": shown(reply)}
                      for argv, reply in event.calls],
            "served": [{"actor": label, "reply": shown(reply)} for label, _, reply in event.served],
            "changes": {key_of(place): [content_of(before), content_of(after)]
                        for place, (before, after) in event.changes.items()},
            "problem": event.problem,
        }, ensure_ascii=False))  # fmt: skip
    return "\n".join(lines) + "\n"
