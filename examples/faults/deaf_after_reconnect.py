"""Deaf after a reconnect: the worker gets its connection back, and waits on a list nobody pushes to any more."""

from emuredis.lab import ConnectionLost, Exploration, LabClient, explore, none_stuck

MESSAGE = "queue still holds something"


async def worker(client: LabClient) -> None:
    private = "worker:1"
    await client.sadd("workers", private)
    try:
        await client.ping()
    except ConnectionLost:
        private = "worker:1:again"  # a new name, and nobody is told
    if await client.blpop(private, 30):
        await client.rpop("queue")


async def producer(client: LabClient) -> None:
    await client.lpush("queue", "job")
    for name in await client.smembers("workers"):
        await client.rpush(name, "wake up")


async def registered(client: LabClient) -> None:
    await client.sleep(1)
    await producer(client)


def run() -> Exploration:
    return explore([worker, registered], check=none_stuck("queue"), lost_replies=1, allow=["errors"])


if __name__ == "__main__":
    print(run())
