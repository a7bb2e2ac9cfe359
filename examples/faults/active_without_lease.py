"""Active without a lease: the job is moved first and its deadline written afterwards; what looks for lapsed leases
never sees a job whose worker crashed between the two."""

from emuredis.lab import Exploration, LabClient, explore, none_stuck

MESSAGE = "active still holds something"


async def worker(client: LabClient) -> None:
    job = await client.lmove("queue", "active", "RIGHT", "LEFT")
    if job is not None:
        await client.zadd("leases", 1_000, job)
        await client.lrem("active", 1, job)
        await client.zrem("leases", job)


async def reaper(client: LabClient) -> None:
    await client.sleep(2_000)
    for job in await client.zrangebyscore("leases", "-inf", "+inf"):
        await client.zrem("leases", job)
        await client.lrem("active", 1, job)
        await client.lpush("queue", job)
    await worker(client)


def run() -> Exploration:
    return explore(
        [worker, reaper],
        setup=lambda client: client.call("RPUSH", "queue", "job"),
        check=none_stuck("active"),
        crashes=1,
    )


if __name__ == "__main__":
    print(run())
