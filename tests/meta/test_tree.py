"""What the tree holds and what its files may not say."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import emuredis

from .source import PACKAGES, ROOT

TOP = ("emuredis", "echomq", "tests", "benchmarks", "docs", "examples", ".ci")
SUFFIXES = {".py", ".md", ".lua", ".toml", ".txt", ".jsonl", ".json", ".html", ""}
# Places of one machine, and things left unfinished.
FORBIDDEN = [
    re.compile(r"(?<![\w.}])/(?:work|root|home|Users)/"),
    re.compile(r"(?<![\w.}])/tmp/\w+/"),
    re.compile(r"\b(?:TO" r"DO|FIX" r"ME)\b"),
    re.compile(r"\bNotImplemented" r"Error\b"),
]


def files() -> list[Path]:
    out = [path for path in ROOT.iterdir() if path.is_file()]
    for top in TOP:
        out += [path for path in (ROOT / top).rglob("*") if path.is_file()]
    return sorted(
        p for p in out if p.suffix in SUFFIXES and "__pycache__" not in p.parts and p.name != ".DS_Store"
    )


@pytest.mark.parametrize("pattern", FORBIDDEN, ids=lambda p: p.pattern)
def test_no_file_says(pattern: re.Pattern[str]) -> None:
    found = []
    for path in files():
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_are_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").exists()


@pytest.mark.parametrize(
    "name", ["README.md", "CHANGELOG.md", "LICENSE", "Makefile", ".ci/run", "docs", "examples"]
)
def test_the_tree_is_complete(name: str) -> None:
    assert (ROOT / name).exists()


def test_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["version"] == emuredis.__version__ == metadata.version("emuredis")
    assert f"## [{emuredis.__version__}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_local_links_of_the_documents_lead_somewhere() -> None:
    broken = []
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text("utf-8")):
            if "://" not in target and not (path.parent / target).exists():
                broken.append(f"{path.relative_to(ROOT)}: {target}")
    assert not broken, "\n".join(broken)
