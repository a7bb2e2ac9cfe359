"""A pool of workers with one blocker.

The `Metronome` holds the queue's only `BLPOP`. Each of its rounds looks, reaps and promotes as a consumer's
does, pokes the idle workers if there is something to serve, and parks. A poked worker serves until both
the flat set and the lanes are empty, then is idle again.

The board counts poke rounds. A worker remembers the round it last answered; if another went by while it
was serving, it looks once more before it rests, so work that arrived in between is not left lying.

`Metronome` and `Poked` are step machines; `Queue` runs one metronome and N workers on threads.
"""

from __future__ import annotations

import threading

from .clock import Clock
from .consumer import Consumer, Tally, park_ms, recover
from .endpoint import Endpoint
from .errors import ConnectionTrouble, positive_int
from .jobs import Jobs
from .machine import Handler, Park, Runner, Wait
from .metrics import Metrics
from .resp import Reply
from .script import Scripts
from .steps import Link, Request, Steps

__all__ = ["AwaitPoke", "Board", "Metronome", "Poke", "Poked", "Queue"]

TROUBLE_MS = 100


class Poke(Request):
    """Tell every idle worker that there is something to serve."""

    __slots__ = ()


class AwaitPoke(Request):
    """Rest until a poke round after ``seen``; the reply is the round's number."""

    __slots__ = ("seen",)

    def __init__(self, seen: int) -> None:
        self.seen = seen


class Board:
    """Where pokes are posted and awaited; shared by the threads of one pool."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._round = 0
        self._closed = False

    def poke(self) -> None:
        """Post a round."""
        with self._changed:
            self._round += 1
            self._changed.notify_all()

    def wait(self, seen: int) -> int:
        """Rest until a round after ``seen`` was posted, or the board is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._round > seen)
            return self._round

    def close(self) -> None:
        """Let everybody go."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class Metronome:
    """The pool's beat: reaps, promotes, pokes, parks."""

    def __init__(self, link: Link, queue: str, *, beat_ms: int = 1_000, promote_batch: int = 100) -> None:
        self.jobs = Jobs(link, queue)
        self.metrics = Metrics(link, queue)
        self.beat_ms = positive_int("beat_ms", beat_ms)
        self.promote_batch = positive_int("promote_batch", promote_batch)
        self.tally = Tally()
        self.stopping = False

    def stop(self) -> None:
        """End after the round in hand; takes at most a beat."""
        self.stopping = True

    def steps(self) -> Steps[None]:
        """Rounds for ever, until stopped."""
        while not self.stopping:
            try:
                yield from self.round()
            except ConnectionTrouble:
                self.tally.troubles += 1
                yield Wait(TROUBLE_MS)

    def round(self) -> Steps[None]:
        """Look, recover, poke, park."""
        self.tally.rounds += 1
        look = yield from self.metrics.outlook.steps()
        moved = yield from recover(self.jobs, look, self.promote_batch, self.tally)
        if look.servable or (moved and not look.paused):
            yield Poke()
        if moved:
            look = yield from self.metrics.outlook.steps()
        yield Park(self.jobs.keys.wake, park_ms(look, self.beat_ms))


class Poked:
    """A worker that serves when poked."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer

    def steps(self) -> Steps[None]:
        """Serve until nothing is left, rest, again."""
        seen = 0
        while not self.consumer.stopping:
            try:
                while (yield from self.consumer.serve()):
                    pass
            except ConnectionTrouble:
                self.consumer.tally.troubles += 1
                yield Wait(TROUBLE_MS)
                continue
            seen = yield AwaitPoke(seen)


class _PoolRunner(Runner):
    """A runner that also knows the board."""

    def __init__(self, link: Link, clock: Clock, board: Board) -> None:
        super().__init__(link, clock)
        self.board = board

    def perform(self, request: Request) -> Reply:
        if isinstance(request, Poke):
            return self.board.poke()
        if isinstance(request, AwaitPoke):
            return self.board.wait(request.seen)
        return super().perform(request)


class Queue:
    """One metronome and ``size`` workers on threads, each with its own connection."""

    def __init__(
        self,
        endpoint: Endpoint,
        queue: str,
        handler: Handler,
        *,
        size: int = 4,
        beat_ms: int = 1_000,
        promote_batch: int = 100,
        scripts: Scripts | None = None,
        **options: object,
    ) -> None:
        self.board = Board()
        self.errors: list[BaseException] = []
        self._runners: list[_PoolRunner] = []
        self._threads: list[threading.Thread] = []
        self._clock = endpoint.clock

        def open_link() -> Link:
            return Link(endpoint.connect(), scripts)

        self.metronome = Metronome(open_link(), queue, beat_ms=beat_ms, promote_batch=promote_batch)
        self._add(self.metronome.jobs.link, self.metronome.steps(), f"echomq-{queue}-metronome")
        self.workers: list[Consumer] = []
        for number in range(positive_int("size", size)):
            link = open_link()
            worker = Consumer(link, queue, handler, **options)  # type: ignore[arg-type]
            self.workers.append(worker)
            self._add(link, Poked(worker).steps(), f"echomq-{queue}-{number}")

    def _add(self, link: Link, steps: Steps[None], name: str) -> None:
        runner = _PoolRunner(link, self._clock, self.board)
        self._runners.append(runner)
        self._threads.append(threading.Thread(target=self._run, args=(runner, steps), name=name, daemon=True))

    def _run(self, runner: _PoolRunner, steps: Steps[None]) -> None:
        try:
            runner.run(steps)
        except BaseException as error:
            self.errors.append(error)
        finally:
            runner.link.connection.close()

    def start(self) -> Queue:
        """Begin serving, the metronome first."""
        for thread in self._threads:
            thread.start()
        return self

    def stop(self) -> None:
        """Let the jobs in hand finish, then end every thread; raises the first error of any."""
        self.metronome.stop()
        for worker in self.workers:
            worker.stop()
        for runner in self._runners:
            runner.cancelled.set()
        self.board.close()
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def __enter__(self) -> Queue:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()
