"""NOSCRIPT for ever: the script is loaded once, at the start; after a flush every call fails and is tried again."""

from emuredis import ReplyError
from emuredis.lab import Exploration, LabClient, explore, none_stuck

MESSAGE = "queue still holds something"
CLAIM = "return redis.call('RPOP', KEYS[1])"


async def worker(client: LabClient) -> None:
    sha = (await client.script_load(CLAIM)).decode()
    for _ in range(3):
        try:
            await client.evalsha(sha, ["queue"])
            return
        except ReplyError:
            await client.sleep(1_000)  # it will be better next time


async def restarted(client: LabClient) -> None:
    await client.script_flush()


def run() -> Exploration:
    return explore(
        [worker, restarted],
        setup=lambda client: client.call("RPUSH", "queue", "job"),
        check=none_stuck("queue"),
    )


if __name__ == "__main__":
    print(run())
