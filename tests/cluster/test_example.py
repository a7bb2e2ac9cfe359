"""``examples/cluster_mistakes.py`` finds what it says."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import emuredis

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "cluster_mistakes.py"


def loaded() -> Any:
    spec = importlib.util.spec_from_file_location("cluster_mistakes", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_mistake_is_found() -> None:
    told = loaded().mistakes(emuredis.Emulator(cluster=3))
    assert {what: error.split()[0] for what, error in told.items()} == {
        "two keys in one command": "CROSSSLOT",
        "two keys in one script": "CROSSSLOT",
        "a key that a script does not declare": "ERR",
        "two keys in one transaction": "CROSSSLOT",
    }
    assert "non local key" in told["a key that a script does not declare"]


def test_repaired_it_works() -> None:
    assert loaded().repaired(emuredis.Emulator(cluster=3)) == 1


def test_it_is_short_and_runs() -> None:
    assert EXAMPLE.read_text("utf-8").count("\n") < 60
    done = subprocess.run([sys.executable, "-W", "error", str(EXAMPLE)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "CROSSSLOT" in done.stdout and "repaired: 1" in done.stdout
