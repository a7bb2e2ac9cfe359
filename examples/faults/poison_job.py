"""A poison job: it kills each worker that takes it; every time it is put back, and nobody counts."""

from emuredis.lab import Exploration, LabClient, State, always, explore

MESSAGE = "job was tried 4 times"
ATTEMPTS_MOST = 3


async def worker(client: LabClient) -> None:
    if await client.lindex("busy", 0):  # what the worker before me left behind
        await client.lmove("busy", "queue", "RIGHT", "LEFT")
    if await client.lmove("queue", "busy", "RIGHT", "LEFT"):
        await client.incr("tried")
        await client.ping()  # here the job brings the process down


def counted(state: State) -> None:
    tried = int(state.call("GET", "tried") or 0)
    assert tried <= ATTEMPTS_MOST, f"job was tried {tried} times"


def run() -> Exploration:
    return explore(
        [worker],
        setup=lambda client: client.call("RPUSH", "queue", "job"),
        check=always(counted),
        crashes=4,
        restarts=4,
    )


if __name__ == "__main__":
    print(run())
