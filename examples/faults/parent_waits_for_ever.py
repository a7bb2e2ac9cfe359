"""The parent waits for ever: its child ends in the morgue, and only children that succeed are counted down."""

from emuredis.lab import Exploration, LabClient, State, explore

MESSAGE = "the parent waits for 1 child"


async def child(client: LabClient) -> None:
    if await client.lmove("queue", "busy", "RIGHT", "LEFT"):
        try:
            raise RuntimeError("boom")
        except RuntimeError:
            await client.lmove("busy", "dead", "RIGHT", "LEFT")
        else:
            await client.decr("parent:waits")


async def parent(client: LabClient) -> None:
    await client.sleep(60_000)
    await client.get("parent:waits")


def released(state: State) -> None:
    waits = int(state.call("GET", "parent:waits"))
    assert waits == 0, f"the parent waits for {waits} child, which is dead"


def setup(client: object) -> None:
    client.call("RPUSH", "queue", "child")  # type: ignore[attr-defined]
    client.call("SET", "parent:waits", 1)  # type: ignore[attr-defined]


def run() -> Exploration:
    return explore([child, parent], setup=setup, check=released)


if __name__ == "__main__":
    print(run())
