"""The protocol's scenarios, runnable on any server: `python -m echomq conformance`.

Each scenario runs on its own queue `<queue>.<name>`, in a fixed order, and leaves no key behind. `run`
gives one `Result` a scenario; an exception of any kind inside a scenario is its failure, not the run's.
To add one, write it in the file of its plane; registration order is running order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..endpoint import WIRE_VERSION, Endpoint
from ..errors import ArgumentError
from ..ids import Minter
from ..script import Scripts
from .world import SCENARIOS, World

# Order of import is order of running.
from . import core as _core  # isort: skip
from . import planes as _planes  # isort: skip
from . import groups as _groups  # isort: skip
from . import flows as _flows  # isort: skip
from . import client as _client  # isort: skip
from . import weights as _weights  # isort: skip
from . import batches as _batches  # isort: skip
from . import streams as _streams  # isort: skip

__all__ = ["Result", "names", "run"]

_PLANES = (_core, _planes, _groups, _flows, _client, _weights, _batches, _streams)


class Result(NamedTuple):
    """How one scenario ended; ``problem`` is None when it passed."""

    name: str
    problem: str | None

    @property
    def passed(self) -> bool:
        return self.problem is None


def names() -> list[str]:
    """All scenarios, in running order."""
    return list(SCENARIOS)


def run(
    endpoint: Endpoint,
    *,
    queue: str = "conformance",
    scripts: Scripts | None = None,
    time_scale: float = 5,
    only: str | None = None,
) -> Iterator[Result]:
    """Run all scenarios, or the one named ``only``."""
    if only is not None and only not in SCENARIOS:
        raise ArgumentError(f"no scenario is called {only!r}")
    if endpoint.options.version != WIRE_VERSION:
        raise ArgumentError(f"the scenarios are those of {WIRE_VERSION}, not {endpoint.options.version}")
    scripts = scripts if scripts is not None else Scripts()
    minter = Minter(clock=endpoint.clock)
    connection = endpoint.connect()
    try:
        for name in [only] if only is not None else list(SCENARIOS):
            world = World(
                endpoint,
                connection,
                f"{queue}.{name}",
                scripts=scripts,
                minter=minter,
                time_scale=time_scale,
            )
            yield Result(name, _attempt(name, world))
    finally:
        connection.close()


def _attempt(name: str, world: World) -> str | None:
    try:
        world.clean()
        SCENARIOS[name](world)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        world.close()
        world.clean()
    return None
