"""The documents say what is so: generated parts are up to date, examples run."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from emuredis import Emulator, ReplyError

from .generated import PARTS, REFUSED, updated
from .source import ROOT

DOCUMENTS = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
EXAMPLES = [
    (name, number, code)
    for name in DOCUMENTS
    for number, code in enumerate(
        re.findall(r"```python\n(.*?)```", (ROOT / name).read_text("utf-8"), re.S), 1
    )
]


@pytest.mark.parametrize(("path", "name", "make"), PARTS, ids=[name for _, name, _ in PARTS])
def test_generated_parts_are_up_to_date(path: str, name: str, make: Callable[[], str]) -> None:
    text = (ROOT / path).read_text("utf-8")
    assert updated(text, name, make()) == text, "run `make readme`"


@pytest.mark.parametrize(("name", "call"), REFUSED.items(), ids=REFUSED)
def test_what_the_table_calls_refused_is_refused(name: str, call: str) -> None:
    client = Emulator().client()
    client.call("SET", "k", "v")
    with pytest.raises(ReplyError, match="emuredis does not support " + name.replace("|", " ").upper()):
        client.call(*call.split())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number", "code"), EXAMPLES, ids=[f"{name}-{n}" for name, n, _ in EXAMPLES])
def test_examples_run(name: str, number: int, code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
