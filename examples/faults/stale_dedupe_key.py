"""A stale dedupe key: it is set before the job is there and never expires; after a crash in between the job can never
be enqueued again."""

from emuredis.lab import Exploration, LabClient, State, explore

MESSAGE = "job was asked for and is nowhere"


async def producer(client: LabClient) -> None:
    if await client.set("dedupe:job", 1, "NX"):
        await client.lpush("queue", "job")


async def again(client: LabClient) -> None:
    await client.sleep(3_600_000)
    await producer(client)


def enqueued(state: State) -> None:
    assert state.all_crashed or state.call("LLEN", "queue"), "job was asked for and is nowhere"


def run() -> Exploration:
    return explore([producer, again], check=enqueued, crashes=1)


if __name__ == "__main__":
    print(run())
