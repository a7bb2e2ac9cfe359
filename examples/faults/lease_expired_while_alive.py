"""The lease runs out while its owner lives: two workers have the job, and the slow one still finishes it."""

from emuredis.lab import Exploration, LabClient, explore, fenced

MESSAGE = "an effect under token 1 after one under token 2"


async def worker(client: LabClient) -> None:
    if await client.set("lease", "mine", "NX", "PX", 100):
        token = await client.incr("token")
        await client.rpush("effects", f"job:{token}")  # nobody asks whether the lease is still ours


def run() -> Exploration:
    return explore([worker, worker], check=fenced("effects"), clock_steps=1)


if __name__ == "__main__":
    print(run())
