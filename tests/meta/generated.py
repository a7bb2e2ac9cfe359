"""The parts of the documents that are made from the code: the support table and the states of a job.

``python -m tests.meta.generated`` writes them between their marks; a test notices when they are out of date. To add
one: a function, and a row in `PARTS`.
"""

from __future__ import annotations

import sys

from echomq.states import diagram
from emuredis.emulator import Emulator

from .live_commands import kept
from .source import ROOT

# Declared, so that COMMAND, arity and syntax are the server's, but refused by name when called (as in the example).
REFUSED = {
    "client|pause": "CLIENT PAUSE 100",
    "client|tracking": "CLIENT TRACKING ON",
}


def _names(names: list[str]) -> str:
    """Commands in capitals, subcommands after their container."""
    out: list[str] = []
    for name in sorted(names):
        head, _, sub = name.partition("|")
        if sub and out and out[-1].split(" ")[0] == head.upper():
            out[-1] += ("·" if " " in out[-1] else " ") + sub.upper()
        else:
            out.append(head.upper() + (" " + sub.upper() if sub else ""))
    return ", ".join(f"`{name}`" for name in out) or "–"


def _of_missing(name: str, here: set[str]) -> bool:
    """A subcommand goes without saying where the whole command is missing."""
    head, _, sub = name.partition("|")
    return bool(sub) and head not in here


def table() -> str:
    """The table as Markdown."""
    here = {command.name for command in Emulator().engine.table.everything()} - set(REFUSED)
    live = kept()
    groups = sorted({entry["docs"]["group"] for entry in live.values()})
    rows = ["| group | supported | answered with an error that names it |", "|---|---|---|"]
    for group in groups:
        inside = [name for name, entry in live.items() if entry["docs"]["group"] == group]
        present = [name for name in inside if name in here]
        missing = [name for name in inside if name not in here and not _of_missing(name, here)]
        rows.append(f"| {group} {len(present)}/{len(inside)} | {_names(present)} | {_names(missing)} |")
    return "\n".join(rows)


def states() -> str:
    """The diagram of where a job may go."""
    return f"```mermaid\n{diagram().strip()}\n```"


PARTS = [("README.md", "support table", table), ("docs/echomq.md", "states", states)]


def updated(text: str, name: str, content: str) -> str:
    """``text`` with ``content`` between the marks of ``name``. Raises ValueError unless both marks are there."""
    begin, end = f"<!-- {name}, generated: begin -->", f"<!-- {name}, generated: end -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"the marks of {name} are not there exactly once")
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{content}\n{end}{rest.partition(end)[2]}"


if __name__ == "__main__":
    for path, name, make in PARTS:
        (ROOT / path).write_text(updated((ROOT / path).read_text("utf-8"), name, make()), "utf-8")
    sys.exit(0)
