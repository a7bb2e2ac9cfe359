"""For `unittest`: test cases with an emulator of their own for each test, as the pytest fixtures give one.

    class Tests(EmuredisTestCase):
        def test_visits(self):
            self.redis_client.incr("visits")
            self.emuredis.assert_keys("visits")

`EmuredisMixin` is for any `unittest.TestCase`. Everything is made when first asked for, so a ``setUp`` need not call
this one's, unless ``emuredis_patches`` is set. At the end of a test, fault rules that never fired fail it.
"""

from __future__ import annotations

import unittest
from functools import cached_property
from typing import TYPE_CHECKING, Any

from emuredis.clock import ManualClock
from emuredis.emulator import Emulator

if TYPE_CHECKING:
    from emuredis.kit.faults import Faults
    from emuredis.kit.journal import Journal
    from emuredis.server import Server

    _Base = unittest.TestCase
else:
    _Base = object

__all__ = ["EmuredisAsyncTestCase", "EmuredisMixin", "EmuredisTestCase"]


class EmuredisMixin(_Base):
    """What a test has; each test has its own.

    ``emuredis_options``: options of the emulator (by default a manual clock and the seed 0). ``emuredis_patches``:
    clients that the code makes for itself are clients of it, see `emuredis.patch`.
    """

    emuredis_options: dict[str, Any] = {}
    emuredis_patches = False

    def setUp(self) -> None:
        super().setUp()
        if self.emuredis_patches:
            from emuredis.redispy.patching import patch

            self.enterContext(patch(self.emuredis))

    @cached_property
    def emuredis(self) -> Emulator:
        """An empty emulator."""
        options = {"clock": ManualClock(), "seed": 0, **self.emuredis_options}
        emulator = Emulator(**options)
        journal = emulator.journal(limit=1000).start()
        self.__dict__["emuredis_journal"] = journal
        self.addCleanup(journal.stop)
        return emulator

    @property
    def emuredis_clock(self) -> ManualClock:
        """Its clock."""
        clock: Any = self.emuredis.clock
        return clock  # type: ignore[no-any-return]

    @cached_property
    def emuredis_journal(self) -> Journal:
        """What the test asked so far (its latest 1,000 commands)."""
        self.emuredis  # noqa: B018 - making it starts the journal
        journal: Journal = self.__dict__["emuredis_journal"]
        return journal

    @cached_property
    def emuredis_faults(self) -> Faults:
        """Its faults. At the end of the test every rule must have fired."""
        faults = self.emuredis.faults
        self.addCleanup(faults.clear)
        self.addCleanup(faults.verify)
        return faults

    @cached_property
    def emuredis_server(self) -> Server:
        """A server on a free TCP port for it."""
        return self.enterContext(self.emuredis.serve())  # type: ignore[no-any-return]

    @cached_property
    def redis_client(self) -> Any:
        """A ``redis.Redis`` of it."""
        from emuredis.redispy import Redis

        client = Redis(emulator=self.emuredis)
        self.addCleanup(client.close)
        return client

    def assert_published(self, channel: Any, *messages: Any) -> None:
        """Exactly these messages were published on the channel, in this order; see `Journal.assert_published`."""
        self.emuredis_journal.assert_published(channel, *messages)


class EmuredisTestCase(EmuredisMixin, unittest.TestCase):
    """A test case with an emulator of its own for each test."""


class EmuredisAsyncTestCase(EmuredisMixin, unittest.IsolatedAsyncioTestCase):
    """The same for tests that are coroutines."""

    @cached_property
    def async_redis_client(self) -> Any:
        """A ``redis.asyncio.Redis`` of the emulator."""
        from emuredis.redispy.stock_aio import Redis

        client = Redis(emulator=self.emuredis)
        self.addAsyncCleanup(client.aclose)
        return client
