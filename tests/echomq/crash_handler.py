"""The handler of the worker process that `test_crash` kills: says that it has begun, and never ends."""

from __future__ import annotations

import os
import threading

from echomq.endpoint import connect
from echomq.jobs import Job


def hang(job: Job) -> None:
    connect(os.environ["CRASH_URL"]).call("RPUSH", "begun", job.id)
    threading.Event().wait()
