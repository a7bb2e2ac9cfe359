"""Pipelines, transactions, WATCH: results, errors, and the state left behind."""

from __future__ import annotations

import pytest

from .doors import Body, World, comparable


async def plain(w: World) -> list[object]:
    r, got = w.client(), w.got
    p = r.pipeline(transaction=False)
    out: list[object] = [await got(p.execute())]
    p.set("k", "v").get("k").hset("h", mapping={"a": 1}).hgetall("h").zadd("z", {"m": 1}).zrange(
        "z", 0, -1, withscores=True
    )
    out.append(len(p))
    out.append(await got(p.execute()))
    out.append(len(p))
    out.append(await got(p.get("k").execute()))
    return out


async def plain_with_errors(w: World) -> list[object]:
    r, got = w.client(), w.got
    await got(r.set("s", "string"))
    p = r.pipeline(transaction=False)
    out: list[object] = [await w.tried(lambda: p.set("a", 1).lpush("s", 1).set("b", 2).execute())]
    out.append(await got(r.mget("a", "b")))
    p.lpush("s", 1)
    p.execute_command("NOSUCH")
    p.get("s")
    results = await got(p.execute(raise_on_error=False))
    out.append(comparable(results))
    return out


async def transaction(w: World) -> list[object]:
    r, got = w.client(), w.got
    p = r.pipeline()
    out: list[object] = [
        await got(p.set("k", "v").get("k").incr("n").hset("h", "f", "v").hgetall("h").execute()),
        await got(p.execute()),
        await got(p.zadd("z", {"a": 1.5}).zscore("z", "a").execute()),
    ]
    p.set("k", "w")
    await got(p.reset())
    out.append(await got(p.execute()))
    out.append(await got(r.get("k")))
    return out


async def transaction_with_errors(w: World) -> list[object]:
    r, got = w.client(), w.got
    await got(r.set("s", "string"))
    p = r.pipeline()
    out: list[object] = [await w.tried(lambda: p.set("a", 1).lpush("s", 1).set("b", 2).execute())]
    out.append(await got(r.mget("a", "b")))
    p.lpush("s", 1).get("s")
    results = await got(p.execute(raise_on_error=False))
    out.append(comparable(results))
    # An error while queueing: nothing runs.
    p.set("c", 1)
    p.execute_command("NOSUCH", "x")
    out.append(await w.tried(p.execute))
    p.set("c", 1)
    p.execute_command("GET")
    out.append(await w.tried(lambda: p.execute(raise_on_error=False)))
    out.append(await got(r.get("c")))
    out.append(await got(p.set("c", 1).execute()))
    return out


async def watching(w: World) -> list[object]:
    r, other, got = w.client(), w.client(), w.got
    await got(r.set("k", 1))
    out: list[object] = []
    p = r.pipeline()
    out.append(await got(p.watch("k")))
    out.append(await got(p.get("k")))
    p.multi()
    p.set("k", 2)
    p.get("k")
    out.append(await got(p.execute()))

    await got(p.watch("k"))
    await got(other.set("k", 10))
    p.multi()
    p.incr("k")
    out.append(await w.tried(p.execute))
    out.append(await got(r.get("k")))

    await got(p.watch("k"))
    await got(other.set("k", 11))
    await got(p.unwatch())
    p.multi()
    p.incr("k")
    out.append(await got(p.execute()))

    await got(p.watch("k"))
    await got(other.set("k", 20))
    await got(p.reset())
    out.append(await got(p.incr("k").execute()))
    p.multi()
    out.append(await w.tried(lambda: p.watch("k")))
    await got(p.reset())
    return out


async def immediate_errors_while_watching(w: World) -> list[object]:
    r, got = w.client(), w.got
    await got(r.set("k", "v"))
    p = r.pipeline()
    await got(p.watch("k"))
    out = [await w.tried(lambda: p.lpush("k", 1)), await w.tried(lambda: p.get("k"))]
    p.multi()
    p.get("k")
    return [*out, await got(p.execute())]


async def transaction_helper(w: World) -> list[object]:
    r, other, got = w.client(), w.client(), w.got
    await got(r.set("n", 1))
    tries = []

    if w.door.asynchronous:

        async def increment(p: object) -> str:
            tries.append(value := int(await p.get("n")))  # type: ignore[attr-defined]
            if len(tries) < 3:
                await other.incr("n")
            p.multi()  # type: ignore[attr-defined]
            p.set("n", value + 100)  # type: ignore[attr-defined]
            return "returned"

    else:

        def increment(p: object) -> str:  # type: ignore[misc]
            tries.append(value := int(p.get("n")))  # type: ignore[attr-defined]
            if len(tries) < 3:
                other.incr("n")
            p.multi()  # type: ignore[attr-defined]
            p.set("n", value + 100)  # type: ignore[attr-defined]
            return "returned"

    return [
        await got(r.transaction(increment, "n")),
        tries,
        await got(r.get("n")),
        await got(r.transaction(increment, "n", value_from_callable=True)),
        await got(r.get("n")),
    ]


async def scripts_in_pipelines(w: World) -> list[object]:
    r, got = w.client(), w.got
    script = r.register_script("return {KEYS[1], ARGV[1], redis.call('INCR', KEYS[1])}")
    out: list[object] = [await got(script(keys=["n"], args=["x"])), await got(script(keys=["n"], args=["y"]))]
    await got(r.script_flush())
    out.append(await got(script(keys=["n"], args=["z"])))
    await got(r.script_flush())
    for transaction in (True, False):
        p = r.pipeline(transaction=transaction)
        await got(script(keys=["n"], args=["p"], client=p))
        p.get("n")
        out.append(await got(p.execute()))
    return out


async def blocking_in_a_pipeline(w: World) -> list[object]:
    r, got = w.client(), w.got
    await got(r.rpush("q", "a", "b"))
    p = r.pipeline(transaction=False)
    p.blpop("q", 1).blpop("q", 1).set("k", "v").get("k")
    out: list[object] = [await got(p.execute())]
    p = r.pipeline(transaction=False)
    p.set("k", 1).blpop("nosuch", 0.01).incr("k").blpop("nosuch", 0.01).incr("k")
    out.append(await got(p.execute()))
    p = r.pipeline()
    p.blpop("nosuch", 1).get("k")
    out.append(await got(p.execute()))
    return out


async def long_pipelines(w: World) -> list[object]:
    r, got = w.client(), w.got
    out: list[object] = []
    for transaction in (True, False):
        p = r.pipeline(transaction=transaction)
        for number in range(300):
            p.rpush("l", "x" * number)
            p.llen("l")
        out.append(await got(p.execute()))
    return out


BODIES: list[Body] = [
    plain, plain_with_errors, transaction, transaction_with_errors, watching, immediate_errors_while_watching,
    transaction_helper, scripts_in_pipelines, blocking_in_a_pipeline, long_pipelines,
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_body(check, body: Body) -> None:
    check(body)
