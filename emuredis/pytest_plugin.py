"""The pytest option ``--lua-coverage[=FOLDER]``: which lines of Lua scripts no test reached.

Loaded by pytest wherever emuredis is installed, so without the option it does nothing and loads neither Lua nor the
lab.
"""

from __future__ import annotations

from typing import Any

import pytest

__all__ = ["pytest_addoption", "pytest_configure", "pytest_terminal_summary", "pytest_unconfigure"]

_key: pytest.StashKey[tuple[Any, Any]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("emuredis").addoption(
        "--lua-coverage", nargs="?", const="", default=None, metavar="FOLDER",
        help="report the lines of Lua scripts that no test reached; files in FOLDER count even if they never run",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("--lua-coverage")
    if folder is None:
        return
    from emuredis.lab import coverage

    context = coverage(*([folder] if folder else []))
    try:
        config.stash[_key] = context, context.__enter__()
    except FileNotFoundError as problem:
        raise pytest.UsageError(f"--lua-coverage: {problem}") from None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if _key in config.stash:
        terminalreporter.section("coverage of Lua scripts")
        terminalreporter.write_line(config.stash[_key][1].report())


def pytest_unconfigure(config: pytest.Config) -> None:
    if _key in config.stash:
        config.stash[_key][0].__exit__(None, None, None)
        del config.stash[_key]
