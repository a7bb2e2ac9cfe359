"""What an operator does to a whole queue: pause, resume, drain, obliterate."""

from __future__ import annotations

from .errors import ServerError, Verdict, positive_int
from .steps import Part, RunScript, Steps, procedure

__all__ = ["Admin"]


class Admin(Part):
    """A queue's operator."""

    @procedure
    def pause(self) -> Steps[Verdict]:
        """Claims answer empty until `resume`. Clients keep this promise, so every claim of ours asks first."""
        yield RunScript("queue_pause", (self.keys.meta,))
        return Verdict.OK

    @procedure
    def resume(self) -> Steps[Verdict]:
        """Claims answer again; a parked worker notices within its beat."""
        yield RunScript("queue_resume", (self.keys.meta,))
        return Verdict.OK

    @procedure
    def drain(self, *, schedule: bool = False) -> Steps[int]:
        """Delete all flat pending jobs, and scheduled ones if asked; how many."""
        keys = self.keys
        sets = (keys.pending, keys.schedule) if schedule else (keys.pending,)
        drained: int = yield RunScript("drain", (keys.base, *sets))
        return drained

    @procedure
    def obliterate(self, *, force: bool = False, budget: int = 1000) -> Steps[Verdict]:
        """Delete up to ``budget`` jobs of a paused queue: OK (all gone), MORE, NOT_PAUSED or ACTIVE."""
        keys = self.keys
        positive_int("budget", budget)
        try:
            reply = yield RunScript("obliterate", (keys.meta, keys.base), ("force" if force else "", budget))
        except ServerError as error:
            if error.message == "EMQSTATE not paused":
                return Verdict.NOT_PAUSED
            if error.message == "EMQSTATE active jobs present":
                return Verdict.ACTIVE
            raise
        return Verdict.OK if reply == 0 else Verdict.MORE
