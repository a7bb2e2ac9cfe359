"""The broken workers of ``examples/faults``: each breaks in one way, and the explorer finds it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "faults"
FILES = sorted(FOLDER.glob("*.py"))


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_eleven() -> None:
    assert len(FILES) == 11


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_fault_is_found(path: Path) -> None:
    module = load(path)
    found = module.run()
    assert found.counterexample is not None
    assert module.MESSAGE in found.counterexample.message
    assert len(path.read_text("utf-8").splitlines()) <= 60


def test_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, FOLDER / "popped_not_recorded.py"], capture_output=True, text=True, check=True
    )
    assert "replay with 'emu1:aa!b'" in done.stdout
