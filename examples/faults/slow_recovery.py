"""Slow recovery: the lease of a crashed worker lapses after a second, but somebody looks only every minute."""

from emuredis.lab import Exploration, LabClient, explore, none_stuck

MESSAGE = "it took 60000 ms to come through"
LEASE_MS, BEAT_MS, LOOK_MS = 1_000, 1_000, 60_000


async def worker(client: LabClient) -> None:
    if await client.lmove("queue", "busy", "RIGHT", "LEFT"):
        await client.lrem("busy", 1, "job")


async def recoverer(client: LabClient) -> None:
    await client.sleep(LOOK_MS)
    while await client.lmove("busy", "queue", "RIGHT", "LEFT"):
        pass
    await worker(client)


def run() -> Exploration:
    return explore(
        [worker, recoverer],
        setup=lambda client: client.call("RPUSH", "queue", "job"),
        check=none_stuck("queue", "busy", within_ms=LEASE_MS + BEAT_MS),
        crashes=1,
    )


if __name__ == "__main__":
    print(run())
