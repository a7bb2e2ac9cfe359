"""The mixin for unittest, and what was published."""

from __future__ import annotations

import io
import unittest
from typing import Any
from unittest.mock import ANY

import pytest

import emuredis
from emuredis.unittest import EmuredisAsyncTestCase, EmuredisMixin, EmuredisTestCase


def outcome(case: type[unittest.TestCase]) -> unittest.TestResult:
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(case)
    return unittest.TextTestRunner(stream=io.StringIO()).run(suite)


class Plain(EmuredisTestCase):
    def test_a_client(self) -> None:
        self.assertIsNone(self.redis_client.get("k"))
        self.redis_client.set("k", "v", px=10)
        self.emuredis.assert_keys("k")
        self.emuredis_clock.advance(10)
        self.assertIsNone(self.redis_client.get("k"))
        self.assertIn("set", [entry.command for entry in self.emuredis_journal])

    def test_another_has_another(self) -> None:
        self.emuredis.assert_keys()

    def test_published(self) -> None:
        self.redis_client.publish("c", "one")
        self.redis_client.publish("d", "x")
        self.redis_client.publish("c", 2)
        self.assert_published("c", "one", 2)

    def test_a_server(self) -> None:
        _, port = self.emuredis_server.address
        self.assertTrue(port)


class Asynchronous(EmuredisAsyncTestCase):
    async def test_a_client(self) -> None:
        await self.async_redis_client.set("k", "v")
        self.assertEqual(await self.async_redis_client.get("k"), b"v")


class Patched(EmuredisMixin, unittest.TestCase):
    emuredis_patches = True
    emuredis_options = {"seed": 5}

    def test_own_clients(self) -> None:
        import redis

        redis.Redis(host="elsewhere").set("k", "v")
        self.emuredis.assert_keys("k")


@pytest.mark.parametrize("case", (Plain, Asynchronous, Patched))
def test_cases(case: Any) -> None:
    result = outcome(case)
    assert result.testsRun and result.wasSuccessful(), [*result.errors, *result.failures]


def test_a_fault_that_never_fires_fails_the_test() -> None:
    class NeverFires(EmuredisTestCase):
        def setUp(self) -> None:  # does not call the mixin's
            self.rule = self.emuredis_faults.error("GET", "ERR no")

        def test_nothing(self) -> None:
            pass

    result = outcome(NeverFires)
    assert "never" in str([*result.errors, *result.failures])


def test_assert_published() -> None:
    emulator = emuredis.Emulator()
    client = emulator.client()
    with emulator.journal() as journal:
        client.call("PUBLISH", "c", "a")
        client.call("EVAL", "redis.call('PUBLISH', 'c', 'b')", 0)
    journal.assert_published("c", "a", "b")
    journal.assert_published("c", ANY, "b")
    journal.assert_published("nothing")
    with pytest.raises(AssertionError, match=r"(?s)published on c.*\+ a\n  b\n- c"):
        journal.assert_published("c", "b", "c")
