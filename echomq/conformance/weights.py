"""Scenarios 60 and 61: weights."""

from __future__ import annotations

from .world import LEASE_MS, World, check, equal, scenario


@scenario
def weighted_proportion(w: World) -> None:
    a, b = w.groups(2)
    w.lanes.weight(a, 3)
    w.lanes.weight(b, 1)
    for group in (a, b):
        w.fill(60, group)
    served = [job for _ in range(40) for job in w.lanes.wclaim(LEASE_MS)]
    of_a = sum(job.group == a for job in served)
    of_b = len(served) - of_a
    check(f"A {of_a}, B {of_b}: B above 0", of_b > 0)
    check(f"A {of_a}, B {of_b}: 2 to 4 times", 2 * of_b <= of_a <= 4 * of_b)
    equal("leases", w.connection.call("ZCARD", w.keys.active), len(served))


@scenario
def starvation_drill(w: World) -> None:
    heavy, *light = w.groups(3)
    w.lanes.weight(heavy, 5)
    w.fill(200, heavy)
    for group in light:
        w.fill(6, group)

    def turn() -> list[str | None]:
        batch = w.lanes.wclaim(LEASE_MS)
        for job in batch:
            w.jobs.complete(job.id, job.token)
        return [job.group for job in batch]

    early = [group for _ in range(9) for group in turn()]
    check("both light lanes within 9 turns", set(light) <= set(early))
    for _ in range(120):
        turn()
    equal("depths", [w.lanes.depth(group) for group in (heavy, *light)], [0, 0, 0])
