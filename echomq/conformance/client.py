"""Scenarios 56 and 57: producing through a pool."""

from __future__ import annotations

from ..errors import Verdict
from ..jobs import Jobs
from ..pool import Pool
from ..steps import Link
from .world import World, equal, scenario


@scenario
def pool_enqueue(w: World) -> None:
    pool = Pool(w.connect, 2)
    jobs = Jobs(Link(pool, w.scripts), w.queue)
    job_id = w.mint()
    equal("first", jobs.enqueue(job_id, b"x"), Verdict.ENQUEUED)
    equal("second", jobs.enqueue(job_id, b"y"), Verdict.DUPLICATE)
    equal("row", w.row(job_id), {"state": b"pending", "attempts": b"0", "payload": b"x"})
    equal("pending", w.jobs.browse(), [job_id])


@scenario
def pool_order(w: World) -> None:
    jobs = Jobs(Link(Pool(w.connect, 2), w.scripts), w.queue)
    ids = [w.mint() for _ in range(5)]
    for job_id in ids:
        jobs.enqueue(job_id, b"x")
    equal("newest first", jobs.browse(), ids[::-1])
