"""Two processes, one server: a worker that is killed in the middle of a job loses nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from echomq.consumer import ConsumerThread
from echomq.endpoint import Endpoint
from echomq.jobs import Jobs
from echomq.metrics import Metrics

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=["live", "emuredis server"])
def server_url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "live":
        yield request.getfixturevalue("live_url")
        return
    import emuredis

    with emuredis.Emulator().serve(port=0) as server:
        yield f"redis://{server.address[0]}:{server.address[1]}"


@pytest.mark.wall
@pytest.mark.slow
def test_a_worker_killed_inside_a_job(server_url: str) -> None:
    endpoint = Endpoint(server_url)
    connection = endpoint.connect()
    jobs = Jobs(connection, "crash")
    ids = [jobs.add(b"x") for _ in range(3)]
    command = [sys.executable, "-m", "echomq", "worker", "--url", server_url, "--lease-ms", "300"]
    victim = subprocess.Popen(
        [*command, "crash", "tests.echomq.crash_handler:hang"],
        cwd=ROOT,
        env=os.environ | {"CRASH_URL": server_url},
        stdout=subprocess.DEVNULL,
    )
    try:
        begun = connection.call("BLPOP", "begun", "20", timeout=30)
        assert begun == [b"begun", ids[0].encode()]
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.wait()
    assert Metrics(connection, "crash").get_job_state(ids[0]) == "active"

    seen: list[tuple[str, int]] = []
    with ConsumerThread(endpoint, "crash", lambda job: seen.append((job.id, job.token)), beat_ms=50):
        while Metrics(connection, "crash").get_metrics("completed").total < 3:
            connection.call("BLPOP", "nothing", "0.02")
    assert sorted(seen) == [(ids[0], 2), (ids[1], 1), (ids[2], 1)]
    counts = Metrics(connection, "crash").get_counts()
    assert counts == {"pending": 0, "active": 0, "schedule": 0, "dead": 0, "completed": 3, "failed": 0}
    connection.close()
