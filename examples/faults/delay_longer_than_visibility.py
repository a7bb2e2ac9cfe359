"""A delay longer than the visibility time-out: the worker holds the job until it is due, and it is delivered again."""

from emuredis.lab import Exploration, LabClient, explore, no_effect_twice

MESSAGE = "the effect job happened twice"
VISIBILITY_MS, DELAY_MS = 1_000, 3_000


async def worker(client: LabClient) -> None:
    if await client.zrem("waiting", "job"):
        await client.zadd("unacknowledged", await now(client) + VISIBILITY_MS, "job")
        await client.sleep(DELAY_MS)  # the job says: not before then
        await client.rpush("effects", "job")
        await client.zrem("unacknowledged", "job")


async def restorer(client: LabClient) -> None:
    await client.sleep(VISIBILITY_MS + 1)
    for job in await client.zrangebyscore("unacknowledged", 0, await now(client)):
        await client.zadd("waiting", 0, job)


async def second(client: LabClient) -> None:
    await client.sleep(VISIBILITY_MS + 2)
    await worker(client)


async def now(client: LabClient) -> int:
    seconds, micros = await client.time()
    return int(seconds) * 1000 + int(micros) // 1000


def run() -> Exploration:
    return explore(
        [worker, restorer, second],
        setup=lambda client: client.call("ZADD", "waiting", 0, "job"),
        check=no_effect_twice("effects"),
    )


if __name__ == "__main__":
    print(run())
