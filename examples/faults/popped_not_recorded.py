"""Popped but not recorded: the worker takes the job and crashes before it writes down that it has it."""

from emuredis.lab import Exploration, LabClient, exactly_one_place, explore

MESSAGE = "job is lost"


async def worker(client: LabClient) -> None:
    job = await client.rpop("queue")
    if job is not None:
        await client.lpush("busy", job)


def run() -> Exploration:
    return explore(
        [worker, worker],
        setup=lambda client: client.call("RPUSH", "queue", "job"),
        check=exactly_one_place("job", "queue", "busy"),
        crashes=1,
    )


if __name__ == "__main__":
    print(run())
