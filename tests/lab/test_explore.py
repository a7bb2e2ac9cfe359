"""Exploring programs: which schedules there are, what breaks, and that leaving schedules out loses nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import emuredis
from emuredis.lab import (
    ConnectionLost,
    LabClient,
    State,
    actor,
    always,
    exactly_one_place,
    explore,
    mutual_exclusion,
    nothing_lost,
    replay,
    sometimes,
)


def one_job(client: Any) -> None:
    client.call("RPUSH", "queue", "job")


async def pop_then_push(client: LabClient) -> None:
    job = await client.rpop("queue")
    if job is not None:
        await client.lpush("busy", job)


async def move(client: LabClient) -> None:
    await client.lmove("queue", "busy", "RIGHT", "LEFT")


def redis_pop_then_push(client: Any) -> None:
    job = client.rpop("queue")
    if job is not None:
        client.lpush("busy", job)


async def asyncio_pop_then_push(client: Any) -> None:
    job = await client.rpop("queue")
    if job is not None:
        await client.lpush("busy", job)


PLACES = exactly_one_place("job", "queue", "busy")


# -- the schedules --------------------------------------------------------------------------------


@pytest.mark.parametrize("program", [
    pop_then_push, redis_pop_then_push, actor(redis_pop_then_push, threads=True),
    actor(asyncio_pop_then_push, "asyncio"),
], ids=["native", "redis-py", "threads", "asyncio"])  # fmt: skip
def test_a_crash_in_the_gap_loses_the_job(program: Any) -> None:
    found = explore([program, program], setup=one_job, crashes=1, check=PLACES, reduce=False, every=True)
    assert (found.schedules, found.failures, found.complete) == (14, 4, True)
    assert not found
    shown = found.counterexample
    assert shown is not None
    assert shown.choices == ["a", "a!", "b"]
    assert shown.message == "job is lost: it is in none of queue, busy"
    assert "CRASH" in shown.timeline()
    assert "queue: ['job'] -> nothing" in shown.timeline()
    again = replay(shown.token, [program, program], setup=one_job, check=PLACES)
    assert (again.message, again.choices) == (shown.message, shown.choices)
    with pytest.raises(AssertionError, match="4 broke it[^$]*replay with 'emu1:aa!b'"):
        found.assert_ok()


def test_one_command_loses_nothing() -> None:
    found = explore([move, move, move], setup=one_job, crashes=2, check=PLACES)
    assert found.ok
    assert found.complete
    assert found.counterexample is None


def test_reduction_tries_a_fraction_and_finds_the_same() -> None:
    def client(own: str) -> Callable[[LabClient], Any]:
        async def run(c: LabClient) -> Any:
            await c.set(own, 1)
            seen = await c.get("x")
            await c.set("x", own)
            await c.incr(own)
            return seen

        return run

    outcomes: dict[bool, set[Any]] = {True: set(), False: set()}
    counts = {}
    for reduce in (True, False):

        def note(state: State, reduce: bool = reduce) -> None:
            outcomes[reduce].add((state.dump(), tuple(sorted(state.results.items()))))

        found = explore({k: client(k) for k in ("k1", "k2")}, check=note, reduce=reduce)
        assert found.complete
        counts[reduce] = found.schedules + found.cut
    assert counts[False] == 70
    assert counts[True] * 3 <= counts[False]
    assert outcomes[True] == outcomes[False]


@pytest.mark.strict
def test_fifty_times_fewer_on_three_clients_with_four_commands() -> None:
    def client(own: str) -> Callable[[LabClient], Any]:
        async def run(c: LabClient) -> None:
            await c.set(own, 1)
            await c.get("x")
            await c.set("x", own)
            await c.incr(own)

        return run

    actors = {k: client(k) for k in ("k1", "k2", "k3")}
    ends: list[set[str]] = [set(), set()]
    full = explore(actors, check=lambda state: ends[0].add(state.dump()), reduce=False)
    reduced = explore(actors, check=lambda state: ends[1].add(state.dump()))
    assert full.schedules == 34_650
    assert (reduced.schedules + reduced.cut) * 50 <= full.schedules
    assert ends[0] == ends[1]


KEYS = st.sampled_from(["x", "y"])
COMMANDS = st.one_of(
    st.tuples(st.just("SET"), KEYS, st.sampled_from("123")),
    st.tuples(st.just("GET"), KEYS),
    st.tuples(st.just("INCR"), KEYS),
    st.tuples(st.just("APPEND"), KEYS, st.just("7")),
    st.tuples(st.just("DEL"), KEYS),
    st.tuples(st.just("RENAME"), KEYS, KEYS),
    st.tuples(st.just("MGET"), KEYS, KEYS),
    st.tuples(st.just("BLPOP"), st.just("list"), st.just("0.01")),
    st.tuples(st.just("RPUSH"), st.just("list"), st.sampled_from("ab")),
    st.tuples(st.just("SPOP"), st.just("set")),
    st.tuples(st.just("PUBLISH"), st.just("c"), st.just("m")),
    st.tuples(st.just("DBSIZE")),
    st.tuples(st.just("EVAL"), st.just("return redis.call('INCR', 'y')"), st.just("0")),
    st.tuples(st.just("MULTI")), st.tuples(st.just("EXEC")), st.tuples(st.just("WATCH"), KEYS),
)  # fmt: skip
PROGRAMS = st.lists(st.lists(COMMANDS, min_size=1, max_size=3), min_size=2, max_size=3)


def fill(client: Any) -> None:
    client.call("SADD", "set", "a", "b")
    client.call("SET", "x", "5")


def outcomes(
    programs: list[list[tuple[str, ...]]], crashes: int, lost: int, reduce: bool, hashing: bool = False
) -> tuple[set[Any], int]:
    """Every way in which the programs can end."""

    def program(commands: list[tuple[str, ...]]) -> Callable[[LabClient], Any]:
        async def run(client: LabClient) -> Any:
            heard: list[Any] = []
            for command in commands:
                try:
                    heard.append(repr(await client(*command)))
                except emuredis.ReplyError as error:
                    heard.append(str(error))
                except ConnectionLost:
                    heard.append("lost")
            return tuple(heard)

        return run

    ends: set[Any] = set()

    def note(state: State) -> None:
        ends.add((state.dump(), tuple(sorted(state.results.items())), tuple(state.crashed)))

    found = explore(
        {f"p{n}": program(commands) for n, commands in enumerate(programs)}, setup=fill, check=note, crashes=crashes,
        lost_replies=lost, reduce=reduce, hashing=hashing, schedules=20_000,
    )  # fmt: skip
    assert found.complete
    assert found.ok, str(found)
    return ends, found.schedules


@given(PROGRAMS, st.sampled_from([(0, 0), (1, 0), (0, 1)]))
@settings(max_examples=60)
def test_what_is_left_out_makes_no_difference(
    programs: list[list[tuple[str, ...]]], faults: tuple[int, int]
) -> None:
    if len(programs) == 3:
        programs = [commands[:2] for commands in programs]
        faults = (0, 0)
    with_reduction, fewer = outcomes(programs, *faults, reduce=True)
    without, all_of_them = outcomes(programs, *faults, reduce=False)
    with_hashing, fewest = outcomes(programs, *faults, reduce=True, hashing=True)
    assert with_reduction == without
    assert with_hashing == without
    assert fewest <= fewer
    assert fewer <= all_of_them


def test_preemptions_bound_the_switches() -> None:
    async def three(client: LabClient) -> None:
        for _ in range(3):
            await client.incr("n")

    counts = [explore([three, three], preemptions=bound).schedules for bound in (0, 1, 2)]
    everything = explore([three, three], reduce=False)
    assert everything.schedules == 20
    assert counts[0] == 2
    assert counts == sorted(counts)
    assert counts[2] < 20
    bounded = explore([three, three], preemptions=1)
    assert not bounded.complete
    assert "at most 1 preemptions; not exhaustive" in bounded.summary


def test_a_limit_is_told() -> None:
    async def many(client: LabClient) -> None:
        for _ in range(4):
            await client.incr("n")

    found = explore([many, many], reduce=False, schedules=10)
    assert found.summary.startswith("stopped at 10; not exhaustive")
    assert found.ok
    assert not found.complete


@pytest.mark.parametrize("scheduler", ["random", "pct"])
def test_drawn_schedules_find_it_too_and_repeat(scheduler: str) -> None:
    runs = [
        explore(
            [pop_then_push, pop_then_push],
            setup=one_job,
            crashes=1,
            check=PLACES,
            scheduler=scheduler,
            seed=3,
        )
        for _ in range(2)
    ]
    assert str(runs[0]) == str(runs[1])
    assert runs[0].counterexample is not None
    assert runs[0].counterexample.choices in (["a", "a!", "b"], ["b", "b!", "a"])
    assert (
        "from seed 3; not exhaustive" in explore([move], setup=one_job, scheduler=scheduler, seed=3).summary
    )


# -- blocking, time, faults -------------------------------------------------------------------------


def test_blocked_commands_are_served_first_come_first_served() -> None:
    async def waiter(client: LabClient) -> Any:
        return (await client.blpop("list", 0))[1]

    async def pusher(client: LabClient) -> None:
        await client.rpush("list", "1", "2")

    seen = set()
    found = explore(
        [waiter, waiter, pusher], check=lambda state: seen.add(tuple(sorted(state.results.items())))
    )
    assert found.ok
    assert seen == {
        (("pusher", None), ("waiter 1", b"1"), ("waiter 2", b"2")),
        (("pusher", None), ("waiter 1", b"2"), ("waiter 2", b"1")),
    }


@pytest.mark.parametrize("door", ["native", "redis", "asyncio"])
def test_who_waits_for_ever_is_named(door: str) -> None:
    if door == "asyncio":

        async def waits(client: Any) -> Any:
            return await client.blpop("nothing", 0)
    else:

        def waits(client: Any) -> Any:  # type: ignore[misc]
            return client.call("BLPOP", "nothing", 0) if door == "native" else client.blpop("nothing", 0)

    program = actor(waits, door)
    found = explore([program, program])
    assert found.counterexample is not None
    assert found.counterexample.message.startswith("stuck for ever: waits 1 in BLPOP nothing 0, waits 2")
    assert explore([program], allow=["stuck"]).ok


@pytest.mark.parametrize("door", ["native", "redis", "asyncio"])
def test_the_clock_moves_when_nobody_can(door: str) -> None:
    if door == "asyncio":

        async def waits(client: Any) -> Any:
            return await client.blpop("nothing", 5)
    else:

        def waits(client: Any) -> Any:  # type: ignore[misc]
            return client.call("BLPOP", "nothing", 5) if door == "native" else client.blpop("nothing", 5)

    found = explore([actor(waits, door)], check=lambda state: state.results == {"waits": None})
    assert found.ok, str(found)
    assert found.schedules == 1


def test_a_lease_may_run_out_while_its_owner_lives() -> None:
    async def owner(client: LabClient) -> None:
        if await client.set("lease", "owner", "NX", "PX", 100):
            await client.incr("inside")
            await client.decr("inside")

    def inside(state: State) -> list[str]:
        return ["x"] * int(state.call("GET", "inside") or 0)

    safe = explore([owner, owner], check=mutual_exclusion(inside))
    assert safe.ok
    broken = explore([owner, owner], check=mutual_exclusion(inside), clock_steps=1)
    assert broken.counterexample is not None
    assert broken.counterexample.message == "inside at the same time: x, x"
    assert "+" in broken.counterexample.choices


def test_sleeping_takes_the_emulators_time() -> None:
    async def late(client: LabClient) -> Any:
        await client.set("k", "v", "PX", 100)
        await client.sleep(150)
        return await client.get("k")

    assert explore([late], check=lambda state: state.results == {"late": None}).ok


def test_lost_replies_and_a_retry_that_counts_twice() -> None:
    async def counts(client: LabClient) -> None:
        try:
            await client.incr("n")
        except ConnectionLost:
            await client.incr("n")

    def once(state: State) -> None:
        assert state.call("GET", "n") == b"1", f"counted {state.call('GET', 'n').decode()} times"

    found = explore([counts], check=once, lost_replies=1)
    assert found.counterexample is not None
    assert found.counterexample.message == "counted 2 times"
    assert found.counterexample.choices == ["a?", "a"]
    assert "reply lost" in found.counterexample.timeline()


def test_redis_py_sees_a_lost_reply_as_a_broken_connection() -> None:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    def counts(client: Any) -> str:
        client.set_retry(Retry(NoBackoff(), 0))  # by itself it would send INCR again
        try:
            client.incr("n")
        except redis.ConnectionError:
            return "lost"
        return "heard"

    seen = set()
    found = explore([counts], lost_replies=1, every=True,
                    check=lambda state: seen.add((state.results["counts"], state.call("GET", "n"))))  # fmt: skip
    assert found.ok, str(found)
    assert seen == {("heard", b"1"), ("lost", b"1")}


def test_a_crashed_actor_comes_back() -> None:
    def work(client: Any) -> Any:
        job = client.lmove("queue", "busy", "RIGHT", "LEFT") or client.lindex("busy", 0)
        return client.lrem("busy", 1, job) if job else 0

    def done(state: State) -> None:
        assert state.call("EXISTS", "queue", "busy") == 0

    assert explore([work], setup=one_job, check=done, crashes=1, restarts=1).complete
    assert explore([work], setup=one_job, check=done, crashes=1, restarts=1).ok
    assert not explore([work], setup=one_job, check=done, crashes=1)


def test_a_crash_runs_no_clean_up() -> None:
    async def tidy(client: LabClient) -> None:
        try:
            await client.set("lock", "1")
            await client.incr("n")
        finally:
            await client.delete("lock") if False else await client("DEL", "lock")

    def tidy_sync(client: Any) -> None:
        try:
            client.set("lock", "1")
            client.incr("n")
        finally:
            client.delete("lock")

    for program in (tidy, tidy_sync, actor(tidy_sync, threads=True)):
        seen = set()
        assert explore(
            [program], crashes=1, check=lambda state, seen=seen: seen.add(state.call("EXISTS", "lock"))
        )
        assert seen == {0, 1}


def test_scripts_are_one_step_over_what_they_touch() -> None:
    script = "redis.call('INCR', ARGV[1]) return redis.call('GET', KEYS[1])"

    async def runs(client: LabClient) -> None:
        await client.eval(script, ["shared"], ["mine:" + "a"])

    async def other(client: LabClient) -> None:
        await client.eval(script, ["shared"], ["mine:b"])

    async def same(client: LabClient) -> None:
        await client.eval(script, ["shared"], ["mine:a"])

    assert explore([runs, other]).schedules == 1
    assert explore([runs, same]).schedules == 2


def test_noscript_is_the_same_in_every_run() -> None:
    script = "return redis.call('INCR', 'n')"

    async def loads(client: LabClient) -> Any:
        sha = await client.script_load(script)
        return await client.evalsha(sha.decode())

    async def flushes(client: LabClient) -> None:
        await client.script_flush()

    found = explore([loads, flushes], allow=["errors"], every=True, reduce=False,
                    check=lambda state: not state.errors)  # fmt: skip
    assert (found.schedules, found.failures) == (3, 1)
    assert found.counterexample is not None
    assert "(NOSCRIPT No matching script.)" in found.counterexample.timeline(width=60)


def test_watch_is_seen_through() -> None:
    async def adds(client: LabClient) -> None:
        while True:
            await client.watch("n")
            n = int(await client.get("n") or 0)
            await client.multi()
            await client.set("n", n + 1)
            if await client.exec() is not None:
                return

    found = explore([adds, adds], check=lambda state: state.call("GET", "n") == b"2")
    assert found.ok, str(found)
    assert found.complete


# -- oracles and reports ----------------------------------------------------------------------------


def test_always_and_sometimes() -> None:
    async def swaps(client: LabClient) -> None:
        await client.set("a", 1)
        await client.set("b", 1)

    both = sometimes(lambda state: state.call("EXISTS", "a", "b") == 2, "both are there")
    never = sometimes(lambda state: state.call("EXISTS", "c"), "c is there")
    found = explore([swaps], check=[both, never])
    assert found.unreached == ["c is there"]
    assert not found
    assert "never reached: c is there" in str(found)
    broken = explore(
        [swaps], check=always(lambda state: state.call("GET", "b") or not state.call("GET", "a"), "b first")
    )
    assert broken.counterexample is not None
    assert broken.counterexample.choices == ["a"]
    assert broken.counterexample.message == "b first does not hold" or broken.counterexample.message


def test_nothing_lost() -> None:
    assert explore([move], setup=one_job, check=nothing_lost(["job"], "queue", "busy"))
    assert not explore(
        [pop_then_push], setup=one_job, crashes=1, check=nothing_lost(["job"], "queue", "busy")
    )


def test_an_exception_of_an_actor_is_a_violation() -> None:
    async def fails(client: LabClient) -> None:
        await client.set("k", "text")
        await client.incr("k")

    found = explore([fails])
    assert found.counterexample is not None
    assert found.counterexample.message == (
        "fails ended with ReplyError: ERR value is not an integer or out of range"
    )
    assert explore([fails], allow=["errors"]).ok


def test_a_program_that_never_ends() -> None:
    async def forever(client: LabClient) -> None:
        while True:
            await client.incr("n")

    for options in ({}, {"scheduler": "random", "schedules": 2}, {"preemptions": 1}):
        found = explore([forever], longest=50, **options)  # type: ignore[arg-type]
        assert found.counterexample is not None
        assert found.counterexample.message == "it goes on for ever: not at its end after 50 steps"


@pytest.mark.parametrize("threads", [False, True])
def test_code_that_catches_everything_is_left_where_it_is(threads: bool) -> None:
    def stubborn(client: Any) -> None:
        while True:
            try:
                client.incr("n")
            except BaseException:
                continue
            return

    assert explore([actor(stubborn, threads=threads), actor(stubborn, threads=threads)], crashes=1).complete


def test_locks_of_redis_py() -> None:
    def locks(client: Any) -> None:
        with client.lock("lock", timeout=5, sleep=1):
            client.incr("inside")
            client.decr("inside")

    def inside(state: State) -> list[str]:
        return ["x"] * int(state.call("GET", "inside") or 0)

    assert explore([locks, locks], check=mutual_exclusion(inside), schedules=300).ok
    assert not explore([locks, locks], check=mutual_exclusion(inside), clock_steps=2, allow=["errors"])


def test_uncontrolled_chance_is_noticed() -> None:
    draws = itertools.count()

    async def flips(client: LabClient) -> None:
        await client.set("k", next(draws))
        await client.get("k")

    async def other(client: LabClient) -> None:
        await client.get("k")

    with pytest.raises(emuredis.EmulatorError, match="did .* before and .* now"):
        explore([flips, other], reduce=False)


def test_the_emulators_own_chance_is_under_control() -> None:
    async def draws(client: LabClient) -> Any:
        return await client.srandmember("set"), await client.randomkey()

    seen = set()
    found = explore(
        [draws, draws], setup=fill, reduce=False, check=lambda state: seen.add(str(state.results))
    )
    assert found.ok
    assert len(seen) <= found.schedules


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="scheduler must be one of"):
        explore([move], scheduler="best")
    with pytest.raises(ValueError, match="crashes must be a whole number"):
        explore([move], crashes=-1)
    with pytest.raises(ValueError, match="allow knows"):
        explore([move], allow=["everything"])
    with pytest.raises(ValueError, match="1 to 26 actors"):
        explore([])
    with pytest.raises(ValueError, match="door must be one of"):
        actor(move, "window")
    for token in ("emu1:A", "emu1:!a", "emu1:+!", "emu1:a!!"):
        with pytest.raises(ValueError, match="no token"):
            replay(token, [move])


def test_another_awaitable_is_refused() -> None:
    import asyncio

    async def sleeps(client: LabClient) -> None:
        await asyncio.sleep(0)

    with pytest.raises(TypeError, match="awaits its client's commands only"):
        explore([sleeps])


def test_what_comes_out_depends_on_nothing_but_the_program() -> None:
    texts = {
        str(explore([pop_then_push, pop_then_push], setup=one_job, crashes=1, check=PLACES)) for _ in range(3)
    }
    assert len(texts) == 1


def test_why_a_step_stands_where_it_does() -> None:
    async def lost_update(client: LabClient) -> None:
        count = int(await client.get("n") or 0)
        await client.ping()
        await client.set("n", count + 1)

    found = explore([lost_update, lost_update], check=lambda state: state.call("GET", "n") == b"2")
    run = found.counterexample
    assert run is not None
    at = next(number for number, event in enumerate(run.events, 1) if event.argv[0] == b"SET")
    assert "of lost_update" in run.why(at)
    assert "for 'n'" in run.why(at)
    ping = next(number for number, event in enumerate(run.events, 1) if event.argv == [b"PING"])
    assert run.why(ping).endswith("may be swapped with every step of the others")
    with pytest.raises(IndexError, match="there is no step 99"):
        run.why(99)
