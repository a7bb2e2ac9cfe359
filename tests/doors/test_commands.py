"""Commands through redis-py: arguments, response callbacks, decoding, errors."""

from __future__ import annotations

import pytest

from .doors import Body, World


async def strings(w: World) -> list[object]:
    r, got = w.client(), w.got
    return [
        await got(r.set("k", "v")),
        await got(r.get("k")),
        await got(r.get("nosuch")),
        await got(r.set("k", "w", nx=True)),
        await got(r.set("k", "w", xx=True, get=True)),
        await got(r.set("k", "x", ex=100)),
        await got(r.ttl("k")),
        await got(r.set("k", "y", keepttl=True)),
        await got(r.ttl("k")),
        await got(r.append("k", "z")),
        await got(r.strlen("k")),
        await got(r.getrange("k", 0, 0)),
        await got(r.getdel("k")),
        await got(r.incr("n")),
        await got(r.incrby("n", 41)),
        await got(r.incrbyfloat("n", 0.5)),
        await got(r.decr("m")),
        await got(r.mset({"a": 1, "b": 2.5, "c": b"\x00\xff"})),
        await got(r.mget("a", "b", "c", "nosuch")),
        await got(r.msetnx({"a": 1, "z": 1})),
        await got(r.exists("a", "b", "nosuch")),
        await got(r.delete("a", "b", "nosuch")),
        await got(r.type("c")),
        await got(r.expire("c", 100)),
        await got(r.persist("c")),
        await got(r.rename("c", "d")),
        await got(r.ping()),
        await got(r.echo("hello")),
        await got(r.dbsize()),
    ]


async def hashes(w: World) -> list[object]:
    r, got = w.client(), w.got
    return [
        await got(r.hset("h", "f", "v")),
        await got(r.hset("h", mapping={"a": 1, "b": 2.5})),
        await got(r.hget("h", "f")),
        await got(r.hget("h", "nosuch")),
        await got(r.hgetall("h")),
        await got(r.hgetall("nosuch")),
        await got(r.hmget("h", ["a", "nosuch"])),
        await got(r.hincrby("h", "a", 5)),
        await got(r.hincrbyfloat("h", "b", 0.5)),
        await got(r.hkeys("h")),
        await got(r.hvals("h")),
        await got(r.hlen("h")),
        await got(r.hexists("h", "a")),
        await got(r.hdel("h", "a", "b")),
        await got(r.hrandfield("h", 1, withvalues=True)),
        await got(r.hscan("h")),
    ]


async def lists_and_sets(w: World) -> list[object]:
    r, got = w.client(), w.got
    return [
        await got(r.rpush("l", "a", "b", "c")),
        await got(r.lpush("l", "z")),
        await got(r.lrange("l", 0, -1)),
        await got(r.lindex("l", 1)),
        await got(r.lmove("l", "m", "LEFT", "RIGHT")),
        await got(r.rpoplpush("l", "m")),
        await got(r.lpop("l")),
        await got(r.lpop("m", 5)),
        await got(r.lpop("nosuch")),
        await got(r.lrem("l", 0, "b")),
        await got(r.llen("l")),
        await got(r.sadd("s", "a", "b", "c")),
        await got(r.sismember("s", "a")),
        await got(r.smismember("s", ["a", "x"])),
        sorted(await got(r.smembers("s")), key=str),
        await got(r.scard("s")),
        await got(r.srem("s", "a")),
        sorted(await got(r.sinter("s", "s")), key=str),
        await got(r.sscan("nosuch")),
    ]


async def sorted_sets(w: World) -> list[object]:
    r, got = w.client(), w.got
    return [
        await got(r.zadd("z", {"a": 1, "b": 2.5, "c": float("inf")})),
        await got(r.zadd("z", {"a": 2}, xx=True, ch=True)),
        await got(r.zadd("z", {"a": 1.5}, incr=True)),
        await got(r.zscore("z", "b")),
        await got(r.zscore("z", "nosuch")),
        await got(r.zmscore("z", ["a", "nosuch"])),
        await got(r.zrange("z", 0, -1)),
        await got(r.zrange("z", 0, -1, withscores=True)),
        await got(r.zrevrange("z", 0, 1, withscores=True)),
        await got(r.zrange("z", 1, 2, byscore=True, withscores=True, score_cast_func=str)),
        await got(r.zrangebyscore("z", "-inf", 3, start=0, num=10)),
        await got(r.zrangebyscore("z", 2, 4, withscores=True)),
        await got(r.zrank("z", "a")),
        await got(r.zrank("z", "a", withscore=True)),
        await got(r.zcount("z", 0, 10)),
        await got(r.zincrby("z", 2, "a")),
        await got(r.zpopmin("z")),
        await got(r.zpopmax("z", 2)),
        await got(r.zrem("z", "a")),
        await got(r.zadd("y", {"a": 1})),
        await got(r.zunion(["y", "z"], withscores=True)),
        await got(r.zrandmember("y", 1, withscores=True)),
        await got(r.zscan("y")),
        await got(r.zmpop(2, ["z", "y"], min=True)),
    ]


async def server_and_connection(w: World) -> list[object]:
    r, got = w.client(client_name="me"), w.got
    info = await got(r.info())
    me = await got(r.client_info())
    listed = [c for c in await got(r.client_list()) if c["name"] == "me"]
    return [
        info["redis_version"],
        info["role"],
        (await got(r.info("server")))["valkey_version"],
        me["name"],
        me["lib-name"],
        me["lib-ver"],
        me["resp"],
        len(listed),
        await got(r.client_getname()),
        type(await got(r.client_id())).__name__,
        await got(r.config_get("maxmemory*policy")),
        await got(r.config_set("timeout", 0)),
        await w.tried(lambda: r.config_set("nosuch", 0)),
        await got(r.command_getkeys("SET", "k", "v")),
        type(await got(r.command_count())).__name__,
        [type(part).__name__ for part in await got(r.time())],
        await got(r.keys("*")),
        await got(r.flushdb()),
        await got(r.flushall()),
        await got(r.pubsub_channels()),
        await got(r.pubsub_numsub("a", "b")),
        await got(r.pubsub_numpat()),
        await got(r.select(3)),
        await got(r.set("k", "in 3")),
        await got(r.select(0)),
        await got(r.get("k")),
        await got(r.swapdb(0, 3)),
        await got(r.get("k")),
    ]


async def decoded(w: World) -> list[object]:
    r, got = w.client(decode_responses=True), w.got
    return [
        await got(r.set("k", "grüße")),
        await got(r.get("k")),
        await got(r.hset("h", mapping={"ä": "ö"})),
        await got(r.hgetall("h")),
        await got(r.zadd("z", {"m": 1})),
        await got(r.zrange("z", 0, -1, withscores=True)),
        await got(r.keys()),
        await got(r.type("k")),
        await got(r.config_get("maxclients")),
        await got(r.get("nosuch")),
        await got(r.client_setname("name")),
        await got(r.client_getname()),
        await w.tried(lambda: r.lpush("k", 1)),
        await got(r.set("bad", b"\xff")),
        await w.tried(lambda: r.get("bad")),
        await got(r.pipeline().get("k").hgetall("h").execute()),
        await got(r.eval("return {ARGV[1], {'x'}}", 0, "ä")),
    ]


async def latin(w: World) -> list[object]:
    r, got = w.client(decode_responses=True, encoding="latin-1", encoding_errors="replace"), w.got
    return [
        await got(r.set("k", b"\xe4")),
        await got(r.get("k")),
        await got(r.hset("h", b"\xe4", 1)),
        await got(r.hgetall("h")),
    ]


async def arguments(w: World) -> list[object]:
    r, got = w.client(), w.got
    return [
        await got(r.set("i", 12345678901234567890)),
        await got(r.get("i")),
        await got(r.set("f", 1e300)),
        await got(r.get("f")),
        await got(r.set("f", 0.1)),
        await got(r.get("f")),
        (await w.tried(lambda: r.set("b", bytearray(b"ab")))) is True,  # some packages refuse it
        await got(r.get("b")),
        await got(r.set("m", memoryview(b"cd"))),
        await got(r.get("m")),
        await got(r.set("", "")),
        await got(r.get("")),
        await got(r.execute_command("set", "lower", "case")),
        await got(r.execute_command("get", "lower")),
        await got(r.execute_command(b"GET", b"lower")),
        await got(r.execute_command("CONFIG GET", "maxmemory")),
        await got(r.execute_command("CONFIG", "GET", "maxmemory")),
        await got(r.execute_command("OBJECT ENCODING", "lower")),
        await got(r.execute_command("hgetall", "nosuch")),
    ]


async def refused_arguments(w: World) -> list[object]:
    r = w.client()
    values = (None, True, [1], {"a": 1}, object)
    return [(await w.tried(lambda value=value: r.set("k", value)))[0] for value in values] + [
        (await w.tried(lambda: r.pipeline().set("k", "v").set("k", None).execute()))[0],
        await w.got(r.get("k")),
    ]


async def errors(w: World) -> list[object]:
    r = w.client()
    await w.got(r.set("k", "v"))
    return [
        await w.tried(lambda: r.lpush("k", 1)),
        await w.tried(lambda: r.incr("k")),
        await w.tried(lambda: r.execute_command("NOSUCH", "a")),
        await w.tried(lambda: r.execute_command("GET")),
        await w.tried(lambda: r.execute_command("CONFIG NOSUCH")),
        await w.tried(lambda: r.evalsha("0" * 40, 0)),
        await w.tried(lambda: r.rename("nosuch", "x")),
        await w.tried(lambda: r.zadd("z", {"a": "nan"})),
        await w.tried(lambda: r.execute_command("EXEC")),
        await w.tried(lambda: r.execute_command("AUTH")),
        await w.tried(lambda: r.eval("return redis.error_reply('MYCODE text')", 0)),
        await w.tried(lambda: r.eval("return {err = 'no code'}", 0)),
        await w.tried(lambda: r.eval("return {1, redis.error_reply('inner'), 2}", 0)),
    ]


async def response_callbacks(w: World) -> list[object]:
    r, got = w.client(), w.got
    r.set_response_callback("GET", lambda response, **options: ("called", response, sorted(options)))
    r.set_response_callback("MYSELF", lambda response, **options: "never")
    return [
        await got(r.set("k", "v")),
        await got(r.get("k")),
        await got(r.execute_command("get", "k")),
        await got(r.execute_command("GET", "k", option=1)),
        await got(r.pipeline(transaction=False).get("k").execute()),
        await got(r.pipeline().get("k").execute()),
    ]


async def scanning(w: World) -> list[object]:
    r, got = w.client(), w.got
    await got(r.mset({f"k{n}": n for n in range(50)}))
    cursor, seen = 0, []
    while True:
        cursor, keys = await got(r.scan(cursor, match="k*", count=10))
        seen += keys
        if not cursor:
            break
    return [sorted(seen), await got(r.scan(0, match="nothing", count=1000))]


LIBRARY = """#!lua name=mine
server.register_function{function_name = 'get', callback = function(keys, args) return {keys[1], args[1]} end,
                         flags = {'no-writes'}, description = 'gives back'}"""


async def functions(w: World) -> list[object]:
    r, got = w.client(), w.got
    first = [
        await got(r.function_load(LIBRARY)),
        await got(r.fcall("get", 1, "k", "a")),
        await got(r.fcall_ro("get", 1, "k", "a")),
        await w.tried(r.function_list()),
        await w.tried(r.function_list(library="m*", withcode=True)),
        await w.tried(r.function_stats()),
    ]
    dump = await got(r.function_dump())
    return [
        *first,
        await got(r.function_flush("SYNC")),
        await w.tried(lambda: r.fcall("get", 0)),
        await got(r.function_restore(dump)),
        await w.tried(lambda: r.function_restore(dump)),
        await got(r.function_restore(dump, "REPLACE")),
        await w.tried(lambda: r.function_load(LIBRARY)),
        await got(r.function_load(LIBRARY, replace=True)),
        await got(r.pipeline().fcall("get", 1, "k", "a").fcall_ro("get", 0).execute()),
        await w.tried(lambda: r.function_kill()),
        await got(r.function_delete("mine")),
        await w.tried(lambda: r.function_delete("mine")),
        await w.tried(lambda: r.function_load("return 1")),
    ]


BODIES: list[Body] = [
    strings, hashes, lists_and_sets, sorted_sets, server_and_connection, decoded, latin, arguments, refused_arguments,
    errors, response_callbacks, scanning, functions,
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_body(check, body: Body) -> None:
    check(body)


def test_data_error_is_raised_before_anything_is_sent(check) -> None:
    async def body(w: World) -> object:
        r = w.client()
        with pytest.raises(w.door.error("DataError")):
            await w.got(r.mset({"a": 1, "b": None}))
        return await w.got(r.get("a"))

    assert check(body) is None
