"""A recovery lock without a time to live: whoever recovers crashes while holding it, and nobody ever does again."""

from emuredis.lab import Exploration, LabClient, explore, none_stuck

MESSAGE = "busy still holds something"


async def recoverer(client: LabClient) -> None:
    if await client.set("recovering", 1, "NX"):
        while await client.rpop("busy"):
            pass
        await client("DEL", "recovering")


async def later(client: LabClient) -> None:
    await client.sleep(60_000)
    await recoverer(client)


def run() -> Exploration:
    return explore(
        [recoverer, later],
        setup=lambda client: client.call("RPUSH", "busy", "job"),
        check=none_stuck("busy"),
        crashes=1,
    )


if __name__ == "__main__":
    print(run())
