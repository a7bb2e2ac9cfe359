"""Making a failing schedule short: fewest steps first, then fewest switches between actors."""

from __future__ import annotations

from itertools import pairwise

from emuredis.lab.search import Judge, guided
from emuredis.lab.world import World

__all__ = ["shrink"]

TRIES_MOST = 2_000


def shrink(world: World, choices: list[str], message: str, judge: Judge) -> tuple[list[str], str]:
    """A schedule that fails, too, and is not longer; with what is wrong in it.

    Tries to leave choices out, singly and in blocks, and to let an actor go on where another took over.
    """
    best, told = choices, message
    tries = 0
    improved = True
    while improved:
        improved = False
        for candidate in [*_shorter(best), *_straighter(best)]:
            tries += 1
            if tries > TRIES_MOST:
                return best, told
            found = guided(world, candidate, judge)
            if found is not None and _cost(world.taken) < _cost(best):
                best, told, improved = list(world.taken), found, True
                break
    return best, told


def _cost(choices: list[str]) -> tuple[int, int, int]:
    """Steps; switches; faults."""
    switches = sum(one[0] != other[0] for one, other in pairwise(choices))
    return len(choices), switches, sum(len(choice) > 1 or choice == "+" for choice in choices)


def _shorter(choices: list[str]) -> list[list[str]]:
    """Without a block of every size, the largest first; and without one choice anywhere."""
    out = []
    size = len(choices) // 2
    while size:
        out += [choices[:at] + choices[at + size :] for at in range(0, len(choices) - size + 1, size)]
        size //= 2
    return out + [choices[:at] for at in range(len(choices))]


def _straighter(choices: list[str]) -> list[list[str]]:
    """With one choice moved to where the same actor was last."""
    out = []
    for at in range(1, len(choices)):
        if choices[at][0] != choices[at - 1][0]:
            before = next((i for i in range(at - 1, -1, -1) if choices[i][0] == choices[at][0]), None)
            if before is not None:
                out.append(
                    [*choices[: before + 1], choices[at], *choices[before + 1 : at], *choices[at + 1 :]]
                )
            out.append([*choices[: at - 1], choices[at], choices[at - 1], *choices[at + 1 :]])
    return out
