"""Making clients and connections: URLs, options, authentication, closing, killed connections, locks."""

from __future__ import annotations

import gc
import os
import threading
from typing import Any

import pytest
import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.credentials import UsernamePasswordCredentialProvider
from redis.exceptions import AuthenticationError, RedisError
from redis.retry import Retry

import emuredis
import emuredis.asyncio
from emuredis.redispy import Connection, ConnectionPool

from .doors import Body, World

# -- the same on the live server ------------------------------------------------------------------


async def databases_and_names(w: World) -> list[object]:
    got = w.got
    first, second = w.client(db=1, client_name="one"), w.client(db=2)
    return [
        await got(first.set("k", "in 1")),
        await got(second.get("k")),
        await got(second.client_getname()),
        await got(first.client_getname()),
        (await got(first.client_info()))["db"],
        await got(second.move("k", 1)),
        await w.tried(lambda: w.client(db=99).get("k")),
        await w.tried(lambda: w.client(client_name="a b").get("k")),
    ]


async def single_connection(w: World) -> list[object]:
    got = w.got
    r = w.client(single_connection_client=True)
    if w.door.asynchronous:
        await r.initialize()
    me = await got(r.client_id())
    return [
        await got(r.set("k", "v")),
        await got(r.get("k")),
        await got(r.client_id()) == me,
        await got(r.pipeline().get("k").execute()),
        await got(r.blpop("q", 0.01)),
    ]


async def killed_connections(w: World) -> list[object]:
    r, other, got = w.client(), w.client(), w.got
    me = await got(r.client_id())
    out: list[object] = [await got(other.client_kill_filter(_id=str(me)))]
    out.append(await got(r.set("k", "v")))
    out.append(await got(r.client_id()) == me)
    p = r.pipeline()
    await got(p.watch("k"))
    await got(other.client_kill_filter(_id=str(await got(p.client_id()))))
    p.multi()
    p.get("k")
    out.append((await w.tried(p.execute))[0])
    out.append(await got(p.get("k").execute()))
    return out


async def the_connection_keeps_its_state(w: World) -> list[object]:
    """redis-py takes the connection that was given back last: what one call does to it, the next one sees."""
    r, got = w.client(), w.got
    return [
        await got(r.select(3)),
        await got(r.set("k", "in 3")),
        await got(r.execute_command("MULTI")),
        await got(r.execute_command("INCR", "n")),
        await got(r.execute_command("GET", "k")),
        await got(r.execute_command("EXEC")),
        await got(r.get("n")),
        await got(r.execute_command("WATCH", "n")),
        await got(r.execute_command("UNWATCH")),
        await got(r.client_setname("me")),
        await got(r.client_getname()),
        # Back to RESP2, whose nulls older packages' RESP3 parsers wait for for ever.
        *([] if w.door.version < (6,) else [await got(r.reset()), await got(r.get("n"))]),
    ]


async def locks(w: World) -> list[object]:
    r, got = w.client(), w.got
    first, second = r.lock("l", timeout=10), r.lock("l", timeout=10, blocking=False)
    return [
        await got(first.acquire()),
        await got(second.acquire()),
        await got(first.locked()),
        await got(first.owned()),
        await got(second.owned()),
        await got(first.extend(5)),
        await got(first.reacquire()),
        await w.tried(second.release),
        await got(first.release()),
        await w.tried(first.release),
        await got(second.acquire()),
        await got(second.release()),
        await got(r.exists("l")),
    ]


async def scripts(w: World) -> list[object]:
    r, got = w.client(), w.got
    script = r.register_script("return {KEYS[1], ARGV[1]}")
    return [
        await got(r.eval("return redis.call('SET', KEYS[1], ARGV[1])", 1, "k", "v")),
        await got(r.script_load("return 1")),
        await got(r.script_exists("e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0" * 40)),
        await got(script(keys=["k"], args=["a"])),
        await got(script(keys=["k"], args=["a"], client=w.client(decode_responses=True))),
        await got(r.script_flush()),
        await w.tried(lambda: r.evalsha(script.sha, 1, "k", "a")),
        await got(script(keys=["k"], args=["b"])),
        await got(r.eval_ro("return redis.call('GET', KEYS[1])", 1, "k")),
        await w.tried(lambda: r.eval_ro("return redis.call('SET', KEYS[1], 1)", 1, "k")),
    ]


BODIES: list[Body] = [
    databases_and_names, single_connection, killed_connections, the_connection_keeps_its_state, locks, scripts,
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_body(check, body: Body) -> None:
    check(body)


# -- URLs --------------------------------------------------------------------------------------


def test_a_name_is_an_emulator_of_this_process() -> None:
    first = emuredis.from_url("emuredis://shared-by-name/0")
    second = emuredis.Redis.from_url("emuredis://shared-by-name/0", decode_responses=True)
    other = emuredis.from_url("emuredis://another-name")
    first.set("k", "v")
    assert second.get("k") == "v"
    assert other.get("k") is None
    assert emuredis.from_url("emuredis://shared-by-name/1").get("k") is None
    assert emuredis.from_url("emuredis://Shared-By-Name").get("k") is None, "names are not folded"
    assert first.emulator is emuredis.Emulator.named("shared-by-name")


def test_no_name_is_a_private_emulator() -> None:
    first, second = emuredis.from_url("emuredis://"), emuredis.from_url("emuredis:///3")
    first.set("k", "v")
    assert second.get("k") is None
    assert second.client_info()["db"] == 3


def test_options_in_urls() -> None:
    client = emuredis.from_url(
        "emuredis://opts/2?decode_responses=True&protocol=2&client_name=n%20n&max_connections=3"
    )
    kwargs = client.connection_pool.connection_kwargs
    assert (kwargs["db"], kwargs["decode_responses"], int(kwargs["protocol"]), kwargs["client_name"]) == (
        2,
        True,
        2,
        "n n",
    )
    assert client.connection_pool.max_connections == 3
    assert (
        emuredis.from_url("emuredis://opts?db=5&decode_responses=no").connection_pool.connection_kwargs["db"]
        == 5
    )
    single = emuredis.from_url("emuredis://opts?single_connection_client=yes", decode_responses=True)
    assert single.connection is not None


@pytest.mark.parametrize(
    "url", ["redis://localhost/0", "emuredis://name:6379/0", "localhost", "emuredis://x?db=y"]
)
def test_other_urls_are_refused(url: str) -> None:
    for make in (emuredis.from_url, emuredis.asyncio.from_url, ConnectionPool.from_url):
        with pytest.raises(ValueError):
            make(url)


def test_passwords_in_urls() -> None:
    emuredis.Emulator.register("locked", emuredis.Emulator(config={"requirepass": "s/cret"}))
    assert emuredis.from_url("emuredis://:s%2Fcret@locked/0").ping()
    assert emuredis.from_url("emuredis://default:s%2Fcret@locked/0").ping()
    with pytest.raises(AuthenticationError):
        emuredis.from_url("emuredis://locked", retry=Retry(NoBackoff(), 0)).ping()


# -- options ------------------------------------------------------------------------------------


def test_clients_without_an_emulator_share_nothing() -> None:
    first, second = emuredis.Redis(), emuredis.Redis()
    first.set("k", "v")
    assert second.get("k") is None


def test_addresses_mean_nothing() -> None:
    client = emuredis.Redis("db.example", 1234, 2, socket_keepalive=True, unix_socket_path="/nowhere")
    assert client.ping()
    assert client.client_info()["db"] == 2


def test_what_cannot_be_is_refused() -> None:
    for options in ({"ssl": True}, {"connection_pool": emuredis.pool(), "emulator": emuredis.Emulator()}):
        with pytest.raises((RedisError, TypeError)):
            emuredis.Redis(**options)  # type: ignore[arg-type]
    with pytest.raises(RedisError, match="parser_class"):
        emuredis.pool(parser_class=int).make_connection()
    with pytest.raises(TypeError, match="no_such_option"):
        emuredis.Redis(no_such_option=1)


@pytest.mark.parametrize("protocol", (2, 3))
def test_passwords(protocol: int) -> None:
    emulator = emuredis.Emulator(config={"requirepass": "secret"})
    options: dict[str, Any] = {"emulator": emulator, "protocol": protocol, "retry": Retry(NoBackoff(), 0)}
    with pytest.raises(
        AuthenticationError, match="Authentication required|called without|HELLO must be called"
    ):
        emuredis.Redis(**options).get("k")
    with pytest.raises(AuthenticationError, match="invalid username-password pair"):
        emuredis.Redis(password="wrong", **options).get("k")
    assert emuredis.Redis(password="secret", **options).set("k", "v")
    assert emuredis.Redis(username="default", password="secret", **options).get("k") == b"v"
    provider = UsernamePasswordCredentialProvider("default", "secret")
    assert emuredis.Redis(credential_provider=provider, **options).get("k") == b"v"


def test_settings_that_matter_on_the_way_go_the_long_way() -> None:
    short = emuredis.Redis()
    assert short._fast is short.connection_pool
    guarded = emuredis.Emulator(config={"requirepass": "secret"})
    for options in (
        {"health_check_interval": 5},
        {"retry_on_error": [redis.exceptions.BusyLoadingError, redis.exceptions.ResponseError]},
        {"credential_provider": UsernamePasswordCredentialProvider("default", "secret"), "emulator": guarded},
        {"single_connection_client": True},
    ):
        client = emuredis.Redis(**options)  # type: ignore[arg-type]
        assert client._fast is None, options
        assert client.set("k", "v")
        assert client.pipeline().get("k").execute() == [b"v"]
    assert emuredis.Redis(connection_pool=emuredis.pool())._fast is not None
    stock = redis.ConnectionPool(connection_class=Connection, emulator=emuredis.Emulator())
    assert emuredis.Redis(connection_pool=stock)._fast is None
    short.set_retry(Retry(NoBackoff(), 1, supported_errors=(redis.exceptions.ResponseError,)))
    assert short._fast is None


def test_a_subclass_that_reads_for_itself_goes_the_long_way() -> None:
    class Custom(emuredis.Redis):
        def parse_response(self, connection: Any, command_name: Any, **options: Any) -> Any:
            return ("mine", super().parse_response(connection, command_name, **options))

    assert Custom().get("k") == ("mine", None)


def test_retries_on_chosen_errors_happen() -> None:
    emulator = emuredis.Emulator()
    client = emuredis.Redis(
        emulator=emulator, retry=Retry(NoBackoff(), 2), retry_on_error=[redis.exceptions.ResponseError]
    )
    client.set("k", "v")
    before = client.info("stats")["total_commands_processed"]
    with pytest.raises(redis.exceptions.ResponseError):
        client.lpush("k", 1)
    assert client.info("stats")["total_commands_processed"] - before > 3


def test_a_command_packer_of_ones_own() -> None:
    class Packer:
        def pack(self, *args: Any) -> list[bytes]:
            words = [
                word if isinstance(word, bytes) else str(word).encode()
                for word in " ".join(map(str, args)).split()
            ]
            return [b"*%d\r\n" % len(words), *[b"$%d\r\n%s\r\n" % (len(word), word) for word in words]]

    client = redis.Redis(connection_pool=emuredis.pool(command_packer=Packer()))
    assert client.set("k", "v")
    assert client.get("k") == b"v"


def test_connect_functions_run() -> None:
    seen: list[object] = []

    def on_connect(connection: Any) -> None:
        connection.on_connect()
        seen.append(connection)

    client = emuredis.Redis(redis_connect_func=on_connect)
    assert client.ping() and client.ping()
    assert len(seen) == 1


def test_health_checks() -> None:
    client = emuredis.Redis(health_check_interval=1000)
    assert client.set("k", "v")
    assert client.get("k") == b"v"


def test_the_handshake_is_redis_pys() -> None:
    client = emuredis.Redis(client_name="me")
    info = client.client_info()
    assert (info["name"], info["lib-name"], info["lib-ver"]) == ("me", "redis-py", redis.__version__)
    nameless = {"driver_info": None} if redis.VERSION >= (7, 2) else {"lib_name": None}
    assert emuredis.Redis(**nameless).client_info()["lib-name"] == ""


# -- pools --------------------------------------------------------------------------------------


def test_a_limit_of_connections() -> None:
    pool = emuredis.pool(max_connections=2)
    first, second = pool.get_connection("_"), pool.get_connection("_")
    with pytest.raises(redis.ConnectionError, match="Too many connections"):
        pool.get_connection("_")
    pool.release(first)
    assert pool.get_connection("_") is first
    pool.release(second)
    pool.release(second)
    assert len(pool._available_connections) == 1


def test_a_blocking_pool_of_redis_py() -> None:
    emulator = emuredis.Emulator()
    pool = redis.BlockingConnectionPool(
        connection_class=Connection, emulator=emulator, max_connections=1, timeout=0.01
    )
    client = redis.Redis(connection_pool=pool)
    assert client.set("k", "v")
    taken = pool.get_connection() if redis.VERSION >= (5, 3) else pool.get_connection("_")
    with pytest.raises(redis.exceptions.ConnectionError):
        client.get("k")
    pool.release(taken)
    assert client.get("k") == b"v"


def test_unread_data_does_not_reach_the_next_user() -> None:
    pool = emuredis.pool()
    connection = pool.get_connection("_")
    connection.send_command("SET", "k", "left unread")
    pool.release(connection)
    client = redis.Redis(connection_pool=pool)
    assert client.get("k") == b"left unread"
    short = emuredis.Redis(connection_pool=pool)
    connection = pool.get_connection("_")
    connection.send_command("PING")
    pool.release(connection)
    assert short.get("k") == b"left unread"


def test_a_child_process_has_a_copy() -> None:
    client = emuredis.Redis()
    client.set("k", "parent")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - not seen by the parent's measurement
        try:
            value = client.get("k")
            client.set("k", "child")
            os.write(writing, value + b" " + client.get("k"))
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    assert os.read(reading, 100) == b"parent child"
    os.close(reading)
    assert client.get("k") == b"parent"


# -- closing ------------------------------------------------------------------------------------


def test_closing_leaves_no_session() -> None:
    emulator = emuredis.Emulator()
    with emuredis.Redis(emulator=emulator) as client:
        client.set("k", "v")
        with client.pipeline() as pipe:
            pipe.watch("k")
        with client.pubsub() as pubsub:
            pubsub.subscribe("ch")
            assert len(emulator.engine.sessions) == 1
    assert len(emulator.engine.sessions) == 0
    assert client.get("k") == b"v", "as with redis-py, a closed client connects again"


def test_a_forgotten_client_leaves_no_session() -> None:
    emulator = emuredis.Emulator()
    client = emuredis.Redis(emulator=emulator)
    client.set("k", "v")
    pubsub = client.pubsub()
    pubsub.subscribe("ch")
    del client, pubsub
    gc.collect()
    emulator.client().close()
    assert len(emulator.engine.sessions) == 0


def test_a_pool_given_to_a_client_is_not_closed_by_it() -> None:
    emulator = emuredis.Emulator()
    pool = emuredis.pool(emulator)
    with redis.Redis(connection_pool=pool) as client:
        client.ping()
    assert len(emulator.engine.sessions) == 1
    pool.close()
    assert len(emulator.engine.sessions) == 0


def test_no_thread_is_started() -> None:
    before = threading.active_count()
    client = emuredis.Redis()
    client.set("k", "v")
    client.blpop("q", 0.01)
    assert threading.active_count() == before


def test_a_client_in_many_threads() -> None:
    client = emuredis.Redis()

    def work() -> None:
        for _ in range(200):
            client.incr("n")
            client.pipeline().incr("n").incr("m").execute()

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (client.get("n"), client.get("m")) == (b"2000", b"1000")
