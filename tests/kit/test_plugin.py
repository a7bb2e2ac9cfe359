"""The pytest plugin, in runs of pytest of its own."""

from __future__ import annotations

import pytest

from tests.support.live import LiveServer, binary

pytest_plugins = ["pytester"]
OPTIONS = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")


def run(pytester: pytest.Pytester, code: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(code)
    return pytester.runpytest_subprocess(*OPTIONS, *options)


def test_every_fixture(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import asyncio
        import pytest
        import redis

        def test_client(emuredis, redis_client, emuredis_clock, emuredis_journal):
            redis_client.set("k", "v", px=1000)
            emuredis_clock.advance(999)
            assert redis_client.get("k") == b"v"
            emuredis_clock.advance(1)
            assert redis_client.get("k") is None
            assert [entry.command for entry in emuredis_journal.entries("SET", "GET")] == ["set", "get", "get"]

        def test_each_test_has_its_own(redis_client):
            assert redis_client.dbsize() == 0

        def test_async(async_redis_client, emuredis):
            async def go():
                await async_redis_client.set("k", "v")
                return await async_redis_client.get("k")
            assert asyncio.run(go()) == b"v"
            emuredis.assert_string("k", "v")

        def test_faults(redis_client, emuredis_faults):
            emuredis_faults.error("GET", "ERR no luck")
            with pytest.raises(redis.ResponseError, match="no luck"):
                redis_client.get("k")

        def test_server(emuredis_server, emuredis):
            with redis.Redis(*emuredis_server.address) as client:
                client.set("k", "v")
            emuredis.assert_keys("k")

        def test_a_runaway_script_ends(redis_client, emuredis):
            emuredis.client().call("CONFIG", "SET", "script-instruction-limit", 100000)
            with pytest.raises(redis.ResponseError, match="instruction"):
                redis_client.eval("while true do end", 0)
        """,
    )
    result.assert_outcomes(passed=6)


def test_a_fault_that_never_fired_fails_the_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        def test_it(redis_client, emuredis_faults):
            emuredis_faults.error("GETX", "ERR x") if False else emuredis_faults.error("GET", "ERR x")
            redis_client.set("k", "v")
        """,
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["*this fault never fired, 0 calls matched: <Fault error 'ERR x' on GET>*SET ×1*"]
    )


def test_the_last_commands_of_a_failing_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        def test_it(redis_client):
            for number in range(30):
                redis_client.set("k", number)
            assert redis_client.get("k") == b"30"
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*last commands of emuredis*", '*SET k 29 -> "OK"', '*GET k -> "29"'])
    result.stdout.no_fnmatch_line("*SET k 5 -> *")


def test_the_seed(pytester: pytest.Pytester) -> None:
    code = """
        def test_it(redis_client):
            redis_client.sadd("s", *range(100))
            print("drawn", redis_client.spop("s"))
            assert False
        """
    first, again, other = (
        run(pytester, code, f"--emuredis-seed={seed}").stdout.str().split("drawn ")[1].split("\n")[0]
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_leaks(pytester: pytest.Pytester) -> None:
    code = """
        import pytest

        def test_leak(redis_client):
            redis_client.set("forever", 1)
            redis_client.set("brief", 1, ex=5)

        @pytest.mark.keeps_keys
        def test_may(redis_client):
            redis_client.set("forever", 1)
        """
    run(pytester, code).assert_outcomes(passed=2)
    result = run(pytester, code, "--emuredis-leaks")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*keys without a time to live are left behind: 'forever'"])


BOTH = """
    import asyncio
    import pytest

    @pytest.mark.both
    def test_same(redis_client):
        assert redis_client.dbsize() == 0
        assert redis_client.incr("n") == 1

    @pytest.mark.both
    @pytest.mark.parametrize("value", ["x", "y"])
    def test_other(redis_client, value):
        assert redis_client.info("server")["executable"].endswith("valkey-server") is False

    @pytest.mark.both
    def test_async(async_redis_client):
        async def go():
            await async_redis_client.set("k", "v")
            value = await async_redis_client.get("k")
            await async_redis_client.aclose()
            return value
        assert asyncio.run(go()) == b"v"

    def test_one(redis_client):
        assert redis_client.ping()
    """


def test_on_both(pytester: pytest.Pytester, live_server: LiveServer) -> None:
    run(pytester, BOTH).assert_outcomes(passed=5)
    result = run(pytester, BOTH, f"--redis-real=unix://{live_server.socket_path}")
    assert result.parseoutcomes()["passed"] + result.parseoutcomes().get("failed", 0) == 9
    result.stdout.fnmatch_lines(["*emuredis and the real server*", "4 tests on both, * with another outcome"])


@pytest.mark.skipif(binary() is None, reason="no real server for this platform")
def test_a_real_server_of_our_own(pytester: pytest.Pytester) -> None:
    result = run(pytester, BOTH, "--redis-real", "-k", "same")
    result.assert_outcomes(passed=2, deselected=7)
    result.stdout.fnmatch_lines(["1 tests on both, 0 with another outcome"])


def test_a_difference_is_printed(pytester: pytest.Pytester, live_server: LiveServer) -> None:
    result = run(
        pytester,
        """
        import pytest

        @pytest.mark.both
        def test_it(redis_client):
            assert "emuredis" in redis_client.__class__.__module__
        """,
        f"--redis-real=unix://{live_server.socket_path}",
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "1 tests on both, 1 with another outcome",
            "*test_it",
            "  emuredis passed",
            "  real     AssertionError*",
        ]
    )


def test_nothing_is_loaded_before_it_is_used(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import sys

        def test_it():
            for name in ("redis", "lupa", "emuredis.kit.journal", "emuredis.lab"):
                assert name not in sys.modules, name
        """,
    )
    result.assert_outcomes(passed=1)


def test_interleavings(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        async def pops(client):
            job = await client.rpop("queue")
            if job is not None:
                await client.lpush("busy", job)

        async def moves(client):
            await client.lmove("queue", "busy", "RIGHT", "LEFT")

        def fill(client):
            client.call("RPUSH", "queue", "job")

        def kept(state):
            assert state.call("EXISTS", "queue", "busy") == 1, "the job is lost"

        @pytest.mark.interleave(crashes=1)
        @pytest.mark.parametrize("program", [pops, moves])
        def test_it(interleave, program):
            found = interleave([program, program], setup=fill, check=kept)
            assert found.complete
        """,
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*the job is lost*", "*RPOP queue -> job*", "*CRASH*", "*replay with 'emu1:aa!b'*"]
    )
