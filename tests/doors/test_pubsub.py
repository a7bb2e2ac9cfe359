"""Publish and subscribe through redis-py."""

from __future__ import annotations

from typing import Any

import pytest

from .doors import Body, World


async def message(w: World, pubsub: Any, timeout: float = 2.0) -> Any:
    """The next message, which is known to come."""
    return await w.got(pubsub.get_message(timeout=timeout))


async def channels_and_patterns(w: World) -> list[object]:
    r, got = w.client(), w.got
    p = r.pubsub()
    out: list[object] = []
    await got(p.subscribe("a", "b"))
    out += [await message(w, p), await message(w, p), p.subscribed]
    await got(p.psubscribe("a*"))
    out.append(await message(w, p))
    out.append(await got(r.publish("a", "hello")))
    out += [await message(w, p), await message(w, p)]
    out.append(await got(r.publish("b", b"\x00\xff")))
    out.append(await message(w, p))
    await got(p.unsubscribe("a"))
    out.append(await message(w, p))
    await got(p.punsubscribe())
    out.append(await message(w, p))
    await got(p.unsubscribe())
    out += [await message(w, p), p.subscribed]
    out.append(await got(p.get_message(timeout=0)) if p.subscribed else None)
    await got(p.aclose() if w.door.asynchronous else p.close())
    out.append(await got(r.publish("a", "nobody")))
    return out


async def decoded(w: World) -> list[object]:
    r, got = w.client(decode_responses=True), w.got
    p = r.pubsub(ignore_subscribe_messages=True)
    await got(p.subscribe("ä"))
    out: list[object] = [await message(w, p), await got(r.publish("ä", "ö")), await message(w, p)]
    await got(p.aclose() if w.door.asynchronous else p.close())
    return out


async def nothing_comes(w: World) -> list[object]:
    r, got = w.client(), w.got
    p = r.pubsub(ignore_subscribe_messages=True)
    await got(p.subscribe("a"))
    out: list[object] = [await message(w, p)]
    out += [
        await got(p.get_message()),
        await got(p.get_message(timeout=0.01)),
        await got(p.get_message(timeout=0)),
    ]
    await got(p.aclose() if w.door.asynchronous else p.close())
    return out


async def handlers(w: World) -> list[object]:
    r, got = w.client(), w.got
    seen: list[object] = []
    p = r.pubsub(ignore_subscribe_messages=True)
    await got(p.subscribe(a=seen.append))
    await got(p.psubscribe(**{"b*": seen.append}))
    out: list[object] = [await message(w, p), await message(w, p)]
    await got(r.publish("a", 1))
    await got(r.publish("b1", 2))
    out += [await message(w, p), await message(w, p)]
    await got(p.aclose() if w.door.asynchronous else p.close())
    return [*out, seen]


async def sharded(w: World) -> list[object]:
    r, got = w.client(), w.got
    p = r.pubsub()
    if not hasattr(p, "ssubscribe"):
        return ["older asyncio clients have no sharded channels"]
    await got(p.ssubscribe("s"))
    out: list[object] = [await message(w, p), await got(r.spublish("s", "x")), await message(w, p)]
    out += [await got(r.pubsub_shardchannels()), await got(r.pubsub_shardnumsub("s"))]
    await got(p.sunsubscribe("s"))
    out.append(await message(w, p))
    await got(p.aclose() if w.door.asynchronous else p.close())
    return out


async def ping(w: World) -> list[object]:
    r, got = w.client(), w.got
    p = r.pubsub(ignore_subscribe_messages=True)
    await got(p.subscribe("a"))
    await message(w, p)
    await got(p.ping())
    out: list[object] = [await message(w, p)]
    await got(p.ping("text"))
    out.append(await message(w, p))
    await got(p.aclose() if w.door.asynchronous else p.close())
    return out


async def several_subscribers(w: World) -> list[object]:
    r, got = w.client(), w.got
    subscribers = [r.pubsub(ignore_subscribe_messages=True) for _ in range(3)]
    out: list[object] = []
    for p in subscribers:
        await got(p.subscribe("ch"))
        out.append(await message(w, p))
    out.append(await got(r.publish("ch", 1)))
    out.append(await got(r.pubsub_numsub("ch")))
    for p in subscribers:
        out.append(await message(w, p))
        await got(p.aclose() if w.door.asynchronous else p.close())
    return out


async def keyspace_events(w: World) -> list[object]:
    r, got = w.client(), w.got
    await got(r.config_set("notify-keyspace-events", "KEA"))
    p = r.pubsub(ignore_subscribe_messages=True)
    await got(p.psubscribe("__keyevent@0__:*"))
    out: list[object] = [await message(w, p)]
    await got(r.set("k", "v"))
    await got(r.pipeline().rpush("l", 1).lpop("l").execute())
    for _ in range(4):
        out.append(await message(w, p))
    await got(p.aclose() if w.door.asynchronous else p.close())
    await got(r.config_set("notify-keyspace-events", ""))
    return out


async def a_killed_subscriber_comes_back(w: World) -> list[object]:
    r, got = w.client(), w.got
    p = r.pubsub(ignore_subscribe_messages=True)
    await got(p.subscribe("ch"))
    out: list[object] = [await message(w, p)]
    killed = await got(r.client_kill_filter(_type="pubsub"))
    out.append(await w.tried(lambda: p.get_message(timeout=0.2)))
    out.append(killed)
    out.append(await got(r.publish("ch", "again")))
    out.append(await message(w, p))
    await got(p.aclose() if w.door.asynchronous else p.close())
    return out


async def listening(w: World) -> list[object]:
    r, got = w.client(), w.got
    p = r.pubsub()
    await got(p.subscribe("ch"))
    await got(r.publish("ch", 1))
    await got(r.publish("ch", "stop"))
    out: list[object] = []
    if w.door.asynchronous:
        async for item in p.listen():
            out.append(item)
            if item["data"] == b"stop":
                break
    else:
        for item in p.listen():
            out.append(item)
            if item["data"] == b"stop":
                break
    await got(p.aclose() if w.door.asynchronous else p.close())
    return out


BODIES: list[Body] = [
    channels_and_patterns, decoded, nothing_comes, handlers, sharded, ping, several_subscribers, keyspace_events,
    a_killed_subscriber_comes_back, listening,
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_body(check, body: Body) -> None:
    check(body)
