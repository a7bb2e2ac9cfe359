"""The notifications to send, and the office that sends them: the demo's handler.

A notice keeps its own id (``NOT...``) in the payload; the job that carries it has a ``JOB`` id. The office knows a
rate limit: a notice above it is put off by enqueueing a *new* job for it and completing the present one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

from ..errors import ArgumentError
from ..jobs import Job
from ..outcomes import Done, Failed, Outcome

__all__ = ["Notice", "Office", "WorkerDied", "load"]

SMS_LIMIT = 10  # in any window of
WINDOW_MS = 60_000


class WorkerDied(BaseException):
    """Stands for the kill of a worker in the middle of a job: nothing is settled after it."""


@dataclass(frozen=True, slots=True)
class Notice:
    """One line of the input file. ``fails``: how often sending fails before it works."""

    notice: str
    to: str
    channel: str
    template: str
    due_in_s: float
    fails: int = 0
    reason: str = ""
    crashes_worker: bool = False

    @property
    def payload(self) -> str:
        return json.dumps({"notice": self.notice, "to": self.to, "template": self.template})


def load(path: Path) -> list[Notice]:
    """The notices of a JSON-lines file. ArgumentError names the file and line that is wrong."""
    known = {field.name for field in fields(Notice)}
    notices: list[Notice] = []
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise ArgumentError(f"cannot read the notifications ({error}); name a file with --file") from error
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            unknown = sorted(set(row) - known)
            if unknown:
                raise ValueError(f"unknown field {unknown[0]!r}")
            notices.append(Notice(**row))
        except (ValueError, TypeError) as error:
            raise ArgumentError(f"{path}:{number}: {error}") from error
    if len({notice.notice for notice in notices}) != len(notices):
        raise ArgumentError(f"{path}: the same notice id stands there twice")
    return notices


class Office:
    """Sends notices; remembers what was really sent, to be held against the queue afterwards."""

    def __init__(self, notices: list[Notice], now_ms: Callable[[], float], defer: Callable[[str, float], None],
                 busy: Callable[[], None]) -> None:  # fmt: skip
        self.by_id = {notice.notice: notice for notice in notices}
        self.sent: dict[str, list[int]] = {}  # notice -> fencing tokens under which it was sent
        self.tries: dict[str, int] = {}
        self.deferred = 0
        self.crashed = 0
        self._now_ms = now_ms
        self._defer = defer
        self._busy = busy
        self._sms: list[float] = []

    def handle(self, job: Job) -> Outcome:
        """Send the notice that a job carries. The job's token would fence every write made on its behalf."""
        notice = self.by_id[json.loads(job.payload or b"{}")["notice"]]
        if notice.channel == "sms" and not self._may_send_sms():
            self.deferred += 1
            self._defer(notice.payload, self._sms[0] + WINDOW_MS - self._now_ms())
            return Done()
        self._busy()
        self.tries[notice.notice] = self.tries.get(notice.notice, 0) + 1
        if notice.crashes_worker and self.tries[notice.notice] == 1:
            self.crashed += 1
            raise WorkerDied(notice.notice)
        if self.tries[notice.notice] <= notice.fails:
            return Failed(f"{notice.reason} (attempt {job.attempts})")
        self.sent.setdefault(notice.notice, []).append(job.token)
        return Done()

    def _may_send_sms(self) -> bool:
        now = self._now_ms()
        self._sms = [at for at in self._sms if at > now - WINDOW_MS]
        if len(self._sms) >= SMS_LIMIT:
            return False
        self._sms.append(now)
        return True
