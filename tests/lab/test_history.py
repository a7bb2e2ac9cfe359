"""Linearizability of small programs, and the other oracles."""

from __future__ import annotations

from typing import Any

import pytest

from emuredis.lab import (
    LabClient,
    actor,
    counter,
    explore,
    fenced,
    linearizable,
    lock,
    no_effect_twice,
    none_stuck,
    operation,
    queue,
    register,
)


def test_incr_is_a_counter_and_get_then_set_is_not() -> None:
    async def atomic(client: LabClient) -> None:
        with operation("add", 1) as op:
            op.result = await client.incr("n")

    async def torn(client: LabClient) -> None:
        with operation("add", 1) as op:
            op.result = int(await client.get("n") or 0) + 1
            await client.set("n", op.result)

    def torn_sync(client: Any) -> None:
        with operation("add", 1) as op:
            op.result = int(client.get("n") or 0) + 1
            client.set("n", op.result)

    assert explore([atomic, atomic, atomic], check=linearizable(counter), crashes=1)
    for program in (torn, torn_sync):
        found = explore([program, program], check=linearizable(counter))
        assert found.counterexample is not None
        assert "not linearizable as a counter" in found.counterexample.message
        assert "add(1) -> 1" in found.counterexample.message


def test_a_queue_of_a_list() -> None:
    async def pushes(client: LabClient) -> None:
        with operation("push", b"x"):
            await client.lpush("q", "x")

    async def pops(client: LabClient) -> None:
        with operation("pop") as op:
            op.result = await client.rpop("q")

    async def peeks_then_removes(client: LabClient) -> None:
        with operation("pop") as op:
            op.result = await client.lindex("q", -1)
            if op.result is not None:
                await client.lrem("q", -1, op.result)

    assert explore(
        [pushes, pops, pops], check=linearizable(queue), crashes=1, lost_replies=1, allow=["errors"]
    )
    assert not explore([pushes, peeks_then_removes, peeks_then_removes], check=linearizable(queue))


def test_an_operation_that_never_ended_may_have_happened() -> None:
    async def writes(client: LabClient) -> None:
        with operation("write", b"1"):
            await client.set("r", 1)
            await client.get("r")

    async def reads(client: LabClient) -> None:
        for _ in range(2):
            with operation("read") as op:
                op.result = await client.get("r")

    assert explore([writes, reads], check=linearizable(register), crashes=1)


def test_a_lock_that_anybody_can_release() -> None:
    def holder(me: str, check_owner: bool) -> Any:
        async def run(client: LabClient) -> None:
            with operation("acquire", me) as op:
                op.result = await client.set("lock", me, "NX", "PX", 100) is not None
            if op.result:
                with operation("release", me) as op:
                    if check_owner:
                        script = (
                            "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0"
                        )
                        op.result = await client.eval(script, ["lock"], [me]) == 1
                    else:
                        op.result = await client("DEL", "lock") == 1

        return run

    actors = {name: holder(name, False) for name in ("x", "y", "z")}
    assert explore(actors, check=linearizable(lock))
    # a lease that runs out is no lock
    assert not explore(
        {name: holder(name, True) for name in ("x", "y")}, check=linearizable(lock), clock_steps=1
    )


def test_a_model_without_the_operation_is_refused() -> None:
    async def jumps(client: LabClient) -> None:
        with operation("jump"):
            await client.ping()

    with pytest.raises(ValueError, match="no operation 'jump'"):
        explore([jumps], check=linearizable(register))


def test_effects() -> None:
    async def twice(client: LabClient) -> None:
        await client.rpush("effects", "job")
        await client.rpush("effects", "job")

    found = explore([twice], check=no_effect_twice("effects"))
    assert found.counterexample is not None
    assert found.counterexample.message == "the effect job happened twice"

    async def owner(client: LabClient) -> None:
        token = await client.incr("token")
        await client.rpush("effects", f"job:{token}")

    found = explore([owner, owner], check=fenced("effects"))
    assert found.counterexample is not None
    assert found.counterexample.message == "job: an effect under token 1 after one under token 2"


def test_stuck() -> None:
    async def late(client: LabClient) -> None:
        await client.sleep(5_000)
        await client("DEL", "job")

    def fill(client: Any) -> None:
        client.call("SET", "job", 1)

    assert explore([late], setup=fill, check=none_stuck("job", within_ms=5_000))
    found = explore([late], setup=fill, check=none_stuck("job", within_ms=4_000))
    assert found.counterexample is not None
    assert found.counterexample.message == "it took 5000 ms to come through, not 4000"
    ended = actor(lambda client: None, "native")
    assert not explore([ended], setup=fill, check=none_stuck("job"))


def test_operations_outside_of_an_exploration() -> None:
    with operation("add", 1) as op:
        op.result = 1
    assert op.ended is None
