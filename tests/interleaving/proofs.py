"""What is explored: every script against itself and its rivals, and the workers' loops.

`PROOFS` is the list; each is run by a test, and ``docs/proofs.md`` is written from the counts. A script of echomq
without a row here fails a test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from echomq.admin import Admin
from echomq.consumer import Consumer, recover
from echomq.errors import ConnectionTrouble, ServerError, Verdict
from echomq.jobs import Jobs
from echomq.lanes import Lanes
from echomq.machine import Handle, Wait
from echomq.metronome import Metronome
from echomq.outcomes import Delay, Failed
from echomq.stalled import Stalled
from echomq.states import TRANSITIONS, Place
from echomq.steps import Call
from emuredis.lab import Exploration, Oracle, always, explore, none_stuck
from tests.echomq.test_states import GROUP, OTHER, call_of, place
from tests.interleaving.driver import (
    COMPLETED,
    KEYS,
    LINK,
    QUEUE,
    SCRIPTS,
    flusher,
    machine,
    one_script,
    run_script,
)
from tests.interleaving.oracles import (
    enqueued_unless_nobody_lives,
    leased,
    nowhere_unserved,
    parent_or_told,
    served,
    sound,
    tokens_rise,
    tried_at_most,
)

JOB, SECOND = "JOB0000000000A", "JOB0000000000B"
LEASE = 60_000


@dataclass
class Proof:
    """One exploration. ``scripts``: the files it is about."""

    name: str
    scripts: tuple[str, ...]
    actors: dict[str, Callable[..., Any]]
    setup: Callable[[Any], None]
    check: list[Oracle]
    bounds: dict[str, Any] = field(default_factory=dict)

    def run(self, **more: Any) -> Exploration:
        named = {f"{name}.lua": SCRIPTS[name].source for name in SCRIPTS.names()}
        # Whether something took too long depends on how a state was reached; everything else on the state.
        options = (
            {"hashing": not any(isinstance(oracle, none_stuck) for oracle in self.check)} | self.bounds | more
        )
        return explore(self.actors, setup=self.setup, check=self.check, scripts=named, **options)


class _World:
    """What `place` wants: the keys and a connection."""

    def __init__(self, client: Any) -> None:
        self.keys = KEYS
        self.connection = client


def prepare(client: Any, loaded: bool = True) -> None:
    """What is there in any case; ``loaded``: the server knows every script."""
    client.call("SET", "{emq}:version", "echomq:3.0.0")
    for name in SCRIPTS.names() if loaded else ():
        client.call("SCRIPT", "LOAD", SCRIPTS[name].source)


def in_place(source: Place, script: str, grouped: bool) -> Callable[[Any], None]:
    def setup(client: Any) -> None:
        prepare(client)
        place(_World(client), JOB, source, script, grouped)  # type: ignore[arg-type]
        if script == "obliterate":
            client.call("HSET", KEYS.meta, "paused", 1)
        if grouped and source is Place.LANE:
            client.call("LREM", KEYS.ring, 0, GROUP)
            client.call("RPUSH", KEYS.ring, GROUP)

    return setup


def rival(grouped: bool) -> Callable[..., Any]:
    """A worker that claims what it finds and completes it."""
    jobs, lanes = Jobs(LINK, QUEUE), Lanes(LINK, QUEUE)

    def steps() -> Any:
        job = yield from (lanes.claim if grouped else jobs.claim).steps(LEASE)
        if job is not None:
            yield from jobs.complete.steps(job.id, job.token)

    return machine(steps, "rival")


def transitions() -> Iterator[Proof]:
    """Each transition twice at the same time, a worker beside it, one crash and one lost reply."""
    for row in TRANSITIONS:
        for source in sorted(row.sources):
            target = sorted(row.targets)[0] if row.targets else source
            if (
                Place.LANE in row.targets
                and source in (Place.ACTIVE, Place.LANE, Place.NOWHERE)
                and row.script[0] == "g"
            ):
                target = Place.LANE
            grouped = target is Place.LANE or source is Place.LANE or row.script == "greap_group"
            keys, args = call_of(KEYS, JOB, SECOND, target)[row.script]()
            actor = one_script(row.script, keys, args)
            twice = row.script not in _OVERWRITE
            yield Proof(
                f"{row.script} from {source}",
                (row.script,),
                {row.script: actor}
                | ({f"{row.script} again": actor} if twice else {})
                | {"worker": rival(grouped)},
                in_place(source, row.script, grouped),
                [sound([JOB, SECOND], [GROUP, OTHER], lanes=row.script not in _LOOSE)],
                {"crashes": 1, "lost_replies": 1},
            )


#: Flows overwrite the rows that exist (§16 of the protocol, 18): sent twice, an active child becomes pending too.
_OVERWRITE = frozenset({"enqueue_flow", "enqueue_flow_child", "hold_parent"})
#: These leave `gactive` or the ring as the protocol has it, not as a strict count would be (§16 of the protocol).
_LOOSE = frozenset(
    {"delay", "remove_job", "obliterate", "greassign", "sweep_stalled", "retry", "gdrain", "drain"}
)


def quiet() -> Iterator[Proof]:
    """Each script that moves no job, beside a worker: everything stays sound."""
    k = KEYS
    row, record = k.job(JOB), k.repeat_record("daily")
    calls: dict[str, tuple[list[str], list[Any]]] = {
        "counts": ([k.base, k.pending, k.active], ["done"]),
        "state_lookup": ([k.pending, k.active, k.schedule, k.dead, row], [JOB]),
        "rate_ttl": ([k.limiter, k.meta], [1]),
        "is_maxed": ([k.meta, k.active], []),
        "lane_counts": ([k.base], [k.base, GROUP]),
        "outlook": ([k.meta, k.pending, k.ring, k.schedule, k.active], []),
        "gweight": ([k.gweight], [GROUP, 3]),
        "gpause": ([k.paused, k.ring], [GROUP]),
        "gresume": ([k.paused, k.ring, k.glimit, k.gactive, k.wake], [k.base, GROUP]),
        "glimit": ([k.glimit, k.gactive, k.ring, k.paused, k.wake], [k.base, GROUP, 1]),
        "queue_pause": ([k.meta], []),
        "queue_resume": ([k.meta], []),
        "repeat_register": ([k.repeat, record], ["daily", 1000, "template", 5]),
        "repeat_cancel": ([k.repeat, record], ["daily"]),
        "repeat_advance": ([k.repeat, record], ["daily", 10]),
        "add_log": ([row, k.logs(JOB)], ["line", 2]),
    }
    for script, (keys, args) in calls.items():
        grouped = script in ("gweight", "gpause", "gresume", "glimit", "lane_counts")
        source = Place.LANE if grouped else Place.PENDING
        actor = one_script(script, keys, args)
        yield Proof(
            f"{script} beside a worker",
            (script,),
            {f"{script} 1": actor, f"{script} 2": actor, "worker": rival(grouped)},
            in_place(source, script, grouped),
            [sound([JOB], [GROUP] if grouped else [])],
            {"crashes": 1},
        )


def forgotten() -> Iterator[Proof]:
    """A server that forgets its scripts between any two calls."""
    for script in ("claim", "complete", "promote", "reap", "retry", "gclaim"):
        row = next(row for row in TRANSITIONS if row.script == script)
        source = sorted(row.sources)[0]
        keys, args = call_of(KEYS, JOB, SECOND, sorted(row.targets)[0])[script]()
        actor = one_script(script, keys, args)
        grouped = source is Place.LANE
        yield Proof(
            f"{script} while scripts are flushed",
            (script,),
            {script: actor, "worker": rival(grouped), "flusher": flusher},
            in_place(source, script, grouped),
            [sound([JOB, SECOND], [GROUP] if grouped else [], lanes=script != "retry")],
            # Two flushes in a row between a load and its call would be refused; one is survived.
        )


def jobs_waiting(*jobs: str, group: str | None = None) -> Callable[[Any], None]:
    def setup(client: Any) -> None:
        prepare(client)
        for job in jobs:
            place(_World(client), job, Place.PENDING if group is None else Place.LANE, "enqueue", False)  # type: ignore[arg-type]
        if group is not None:
            client.call("DEL", KEYS.ring)
            client.call("RPUSH", KEYS.ring, group)

    return setup


def consumer(handler: Callable[[Any], Any] = lambda job: None, **options: Any) -> Callable[..., Any]:
    """A worker that goes on until it finds nothing to do."""
    return machine(lambda: Consumer(LINK, QUEUE, handler, **options).until_idle(), "consumer")


def flat(handler: Callable[[Any], Any] = lambda job: None) -> Callable[..., Any]:
    """Claim, handle, settle: once."""

    def steps() -> Any:
        worker = Consumer(LINK, QUEUE, handler, lease_ms=1_000)
        job = yield from worker.jobs.claim.steps(worker.lease_ms)
        if job is not None:
            outcome = yield Handle(job, handler)
            verdict = yield from worker.settle(job, outcome)
            if verdict == Verdict.OK:
                yield Call("RPUSH", COMPLETED, f"{job.id}:{job.token}")

    return machine(steps, "worker")


def reaper() -> Callable[..., Any]:
    jobs = Jobs(LINK, QUEUE)
    return machine(lambda: jobs.reap.steps(), "reaper")


async def lapse(client: Any) -> None:
    """Leases are scores, of which the server's clock knows nothing: here time goes past one."""
    await client.sleep(1_001)


def beat() -> Callable[..., Any]:
    """One round of the metronome, short of its poke."""

    def steps() -> Any:
        metronome = Metronome(LINK, QUEUE, beat_ms=1_000)
        look = yield from metronome.metrics.outlook.steps()
        yield from recover(metronome.jobs, look, 100, metronome.tally)

    return machine(steps, "metronome")


def loops() -> Iterator[Proof]:
    """Workers and the beat, over several steps each."""
    fails: Callable[[Any], Any] = lambda job: Failed("boom")  # noqa: E731
    two = {"worker 1": flat(), "worker 2": flat()}
    three = {**two, "worker 3": flat()}
    claims = ("claim", "complete")
    yield Proof("two workers, one job", claims, two, jobs_waiting(JOB),
                [sound([JOB]), served([JOB], finished=True)])  # fmt: skip
    yield Proof("three workers, two jobs", claims, three, jobs_waiting(JOB, SECOND),
                [sound([JOB, SECOND]), served([JOB, SECOND], finished=True)])  # fmt: skip
    time = {"time": lapse}
    trio: dict[str, Callable[..., Any]] = {f"worker {n}": claim_complete_reap() for n in (1, 2, 3)}
    yield Proof("three workers, claim, complete, reap, two jobs, a crash", (*claims, "reap"), trio | time,
                jobs_waiting(JOB, SECOND), [sound([JOB, SECOND])], {"crashes": 1, "clock_steps": 1})  # fmt: skip
    yield Proof("two workers, two jobs, a crash at any gap", claims, two, jobs_waiting(JOB, SECOND),
                [sound([JOB, SECOND]), served([JOB, SECOND])], {"crashes": 1})  # fmt: skip
    yield Proof("two workers, one job, a lost reply", claims, two, jobs_waiting(JOB),
                [sound([JOB]), served([JOB])], {"lost_replies": 1})  # fmt: skip
    yield Proof("two workers and a reaper, a lease that lapses under its owner", (*claims, "reap"),
                {**two, "reaper": reaper(), **time}, jobs_waiting(JOB), [sound([JOB]), served([JOB], once=False)],
                {"clock_steps": 1})  # fmt: skip
    yield Proof("two workers and a beat, a crash, then the lease lapses", (*claims, "reap", "promote", "outlook"),
                {**two, "metronome": beat(), **time}, jobs_waiting(JOB), [sound([JOB]), served([JOB], once=False)],
                {"crashes": 1, "clock_steps": 1})  # fmt: skip
    yield Proof("a failing job and a reaper", ("claim", "retry", "reap"),
                {"worker 1": flat(fails), "worker 2": flat(fails), "reaper": reaper(), **time},
                jobs_waiting(JOB), [sound([JOB]), served([JOB], once=False)],
                {"crashes": 1, "clock_steps": 1})  # fmt: skip
    yield Proof("two workers while an operator pauses", (*claims, "queue_pause", "queue_resume"),
                {**two, "operator": machine(_pause_and_resume, "operator")}, jobs_waiting(JOB),
                [sound([JOB]), served([JOB])], {"crashes": 1})  # fmt: skip
    yield Proof("consumers' rounds, one job", ("outlook", *claims, "gclaim"),
                {"consumer 1": consumer(), "consumer 2": consumer()}, jobs_waiting(JOB),
                [sound([JOB]), served([JOB], finished=True)])  # fmt: skip
    yield Proof("consumers' rounds, a crash at any gap", ("outlook", *claims, "gclaim"),
                {"consumer 1": consumer(), "consumer 2": consumer()}, jobs_waiting(JOB),
                [sound([JOB]), served([JOB])], {"crashes": 1})  # fmt: skip
    yield Proof("consumers' rounds in a lane", ("outlook", "gclaim", "complete"),
                {"consumer 1": consumer(), "consumer 2": consumer()}, jobs_waiting(JOB, group=GROUP),
                [sound([JOB], [GROUP]), served([JOB], finished=True)])  # fmt: skip
    yield Proof("a consumer whose scripts are forgotten", ("outlook", *claims, "gclaim"),
                {"consumer": consumer(), "flusher": flusher}, jobs_waiting(JOB),
                [sound([JOB]), served([JOB], finished=True)])  # fmt: skip


def claim_complete_reap() -> Callable[..., Any]:
    """The three scripts and nothing between them: three steps."""

    async def worker(client: Any) -> Any:
        claimed = await run_script(client, "claim", [KEYS.pending, KEYS.active], [KEYS.job_prefix, 1_000])
        if claimed:
            job, _, token = claimed
            row = KEYS.job(job.decode())
            try:
                await run_script(client, "complete", [KEYS.active, row], [job, token, KEYS.base])
            except ServerError as refused:
                assert refused.code == "EMQSTALE"
        await run_script(client, "reap", [KEYS.active, KEYS.pending], [KEYS.base])

    return worker


def rounds(many: int, handler: Callable[[Any], Any] = lambda job: None) -> Callable[..., Any]:
    """A consumer's rounds as it really makes them, parking and all."""

    def steps() -> Any:
        worker = Consumer(LINK, QUEUE, handler, lease_ms=1_000, beat_ms=1_000)
        for _ in range(many):
            try:
                yield from worker.round()
            except ConnectionTrouble:
                yield Wait(100)

    return machine(steps, "consumer")


def sweeping(many: int) -> Callable[..., Any]:
    """A worker that recovers by the stall sweep, then claims; its job kills it."""

    def steps() -> Any:
        stalled, jobs = Stalled(LINK, QUEUE), Jobs(LINK, QUEUE)
        yield Wait(1_001)
        yield from stalled.check.steps(3)
        job = yield from jobs.claim.steps(1_000)
        if job is not None:
            yield Handle(job, lambda job: None)
            yield from jobs.extend_lock.steps(job.id, job.token, 1_000)  # here it dies, or gives up

    return machine(steps, "worker")


def enqueuing() -> Callable[..., Any]:
    jobs = Jobs(LINK, QUEUE)
    return machine(lambda: jobs.enqueue.steps(JOB, "p"), "producer")


def faults() -> Iterator[Proof]:
    """What other queues got wrong (`examples/faults`), asked of this one."""
    waiting, sound_job = jobs_waiting(JOB), sound([JOB])
    yield Proof("not popped without a record", ("claim",), {"worker 1": flat(), "worker 2": flat()}, waiting,
                [always(lambda state: nowhere_unserved(state, JOB), "recorded")], {"crashes": 1})  # fmt: skip
    yield Proof("no completion under an old lease", ("claim", "complete", "reap"),
                {"worker 1": flat(), "worker 2": flat(), "reaper": reaper(), "time": lapse}, waiting,
                [served([JOB], once=False)], {"clock_steps": 1})  # fmt: skip
    delays: Callable[[Any], Any] = lambda job: Delay(3_000) if job.token == 4 else None  # noqa: E731
    yield Proof("a delay longer than the lease", ("claim", "delay", "promote", "reap"),
                {"consumer": rounds(6, delays), "reaper": reaper()}, waiting,
                [sound_job, served([JOB], finished=True, once=False), tokens_rise()])  # fmt: skip
    yield Proof("recovered within a lease and a beat", ("outlook", "reap", "claim", "complete"),
                {"consumer 1": rounds(3), "consumer 2": rounds(3)}, waiting,
                [sound_job, none_stuck(KEYS.active, KEYS.pending, within_ms=2_001)], {"crashes": 1})  # fmt: skip
    yield Proof("not deaf after a lost reply", ("outlook", "enqueue", "claim", "complete"),
                {"consumer": rounds(5), "producer": enqueuing()}, prepare,
                [sound_job, none_stuck(KEYS.active, KEYS.pending)], {"lost_replies": 1})  # fmt: skip
    yield Proof("loads its scripts again", ("outlook", "reap", "claim", "complete"),
                {"consumer": rounds(3), "flusher": flusher}, waiting,
                [sound_job, none_stuck(KEYS.active, KEYS.pending)])  # fmt: skip
    yield Proof("never active without a lease", ("claim", "complete", "reap"),
                {"worker 1": flat(), "worker 2": flat(), "reaper": reaper()}, waiting,
                [always(leased, "leased")], {"crashes": 1, "lost_replies": 1})  # fmt: skip
    yield Proof("a row that is not there refuses nobody", ("enqueue",),
                {"producer 1": enqueuing(), "producer 2": enqueuing()}, prepare,
                [sound_job, enqueued_unless_nobody_lives()], {"crashes": 1})  # fmt: skip
    yield Proof("recovery that crashes leaves no lock behind", ("reap",),
                {"reaper 1": reaper(), "reaper 2": reaper()}, in_place(Place.ACTIVE, "reap", False),
                [sound_job, none_stuck(KEYS.active)], {"crashes": 1})  # fmt: skip
    yield Proof("a poison job ends in the morgue", ("sweep_stalled", "claim", "extend_lock"),
                {"worker": sweeping(1)}, waiting, [sound_job, always(tried_at_most(4), "tried at most four times")],
                {"crashes": 4, "restarts": 4})  # fmt: skip
    yield Proof("a child that dies does not hold its parent", ("flow_fail_deliver", "flow_deliver"),
                {"told 1": _child_died(), "told 2": _child_died()}, in_place(Place.HELD, "flow_fail_deliver", False),
                [sound_job, always(parent_or_told, "the parent hears of it")], {"crashes": 1})  # fmt: skip


def _child_died() -> Callable[..., Any]:
    keys, args = call_of(KEYS, JOB, SECOND, Place.DEAD)["flow_fail_deliver"]()
    return one_script("flow_fail_deliver", keys, args)


def _pause_and_resume() -> Any:
    admin = Admin(LINK, QUEUE)
    yield from admin.pause.steps()
    yield from admin.resume.steps()


PROOFS: list[Proof] = [*transitions(), *quiet(), *forgotten(), *loops(), *faults()]
