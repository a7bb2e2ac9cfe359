"""The lab: looking at Lua scripts while they run.

    coverage   which lines and branches of scripts no test reached
    debug      a script step by step, from a test
    console    the same for a person: ``python -m emuredis debug FILE.lua``

See ``docs/lab.md``.
"""

from __future__ import annotations

from emuredis.lab.coverage import Coverage, coverage
from emuredis.lab.steps import Call, Step, Trace, debug

__all__ = ["Call", "Coverage", "Step", "Trace", "coverage", "debug"]
