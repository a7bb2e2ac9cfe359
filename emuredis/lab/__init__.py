"""The lab: looking at Lua scripts while they run, and at programs under every schedule.

    explore    a small concurrent program under every schedule; the one that breaks it, shrunk
    coverage   which lines and branches of scripts no test reached
    debug      a script step by step, from a test
    console    the same for a person: ``python -m emuredis debug FILE.lua``

How `explore` is made: `world` is one run and what may happen next in it, `actors` and `threads` drive the programs,
`footprint` says which steps can be swapped, `search` chooses, `oracles` judge, `shrink`, `timeline` and `pictures`
explain.

See ``docs/explore.md`` and ``docs/lab.md``.
"""

from __future__ import annotations

from emuredis.lab.actors import ActorCrashed, ConnectionLost, LabClient
from emuredis.lab.coverage import Coverage, coverage
from emuredis.lab.explore import Counterexample, Exploration, Run, explore, replay
from emuredis.lab.history import counter, linearizable, lock, operation, queue, register
from emuredis.lab.oracles import (
    Oracle,
    State,
    always,
    exactly_one_place,
    fenced,
    mutual_exclusion,
    no_effect_twice,
    none_stuck,
    nothing_lost,
    sometimes,
)
from emuredis.lab.steps import Call, Step, Trace, debug
from emuredis.lab.threads import actor

__all__ = [
    "ActorCrashed",
    "Call",
    "ConnectionLost",
    "Counterexample",
    "Coverage",
    "Exploration",
    "LabClient",
    "Oracle",
    "Run",
    "State",
    "Step",
    "Trace",
    "actor",
    "always",
    "counter",
    "coverage",
    "debug",
    "exactly_one_place",
    "explore",
    "fenced",
    "linearizable",
    "lock",
    "mutual_exclusion",
    "no_effect_twice",
    "none_stuck",
    "nothing_lost",
    "operation",
    "queue",
    "register",
    "replay",
    "sometimes",
]
