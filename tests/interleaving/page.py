"""``python -m tests.interleaving.page``: write ``docs/proofs.md`` from what the proofs give now."""

from __future__ import annotations

import functools
from pathlib import Path

from emuredis.lab import Exploration
from tests.interleaving.proofs import PROOFS

PAGE = Path(__file__).parents[2] / "docs" / "proofs.md"
HEAD = """\
# Proofs

Every script of the queue and the loops that call them, under every schedule within the bounds given. Between any two
commands of an actor everything else may happen; scripts are single steps. Schedules that differ only in the order of
steps that touch different keys count once, and a state that was met before is not looked at twice. After each step
every job must be in exactly one place, its row must say which, and lanes, ring and counters must agree; at the end no
job is lost and, without a crash, none was served twice.

*Proof* here means: within these bounds, nothing was left out. Written by `python -m tests.interleaving.page`; a test
compares.

| what runs at the same time | bounds | schedules | steps |
|---|---|---:|---:|
"""


@functools.cache
def results() -> dict[str, Exploration]:
    """What came of each proof."""
    return {proof.name: proof.run() for proof in PROOFS}


def render(found: dict[str, Exploration]) -> str:
    rows, schedules, steps = [], 0, 0
    for proof in PROOFS:
        one = found[proof.name]
        bounds = (
            ", ".join(f"{number} {_BOUNDS[name]}" for name, number in proof.bounds.items()) or "no faults"
        )
        actors = ", ".join(proof.actors)
        rows.append(f"| **{proof.name}**: {actors} | {bounds} | {one.schedules:,} | {one.steps:,} |")
        schedules += one.schedules
        steps += one.steps
    rows.append(f"| **{len(PROOFS)} explorations** | | {schedules:,} | {steps:,} |")
    return HEAD + "\n".join(rows) + "\n"


_BOUNDS = {"crashes": "crash", "lost_replies": "lost reply", "clock_steps": "early clock step",
           "restarts": "restarts"}  # fmt: skip


if __name__ == "__main__":
    PAGE.write_text(render(results()), "utf-8")
