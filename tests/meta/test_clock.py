"""Time and chance are read in one module per package only."""

from __future__ import annotations

import ast

import pytest

from .source import Module, imports, modules

FORBIDDEN_MODULES = {"time", "random", "uuid", "secrets", "datetime", "sched"}
FORBIDDEN_CALLS = {("os", "urandom"), ("os", "getrandom"), ("asyncio", "sleep"), ("threading", "Timer")}
CLOCKS = ("emuredis.clock", "echomq.clock")
# A call whose time or chance is not the emulator's: with the reason.
EXCEPTIONS: dict[str, dict[str, str]] = {}


def readings(module: Module) -> list[tuple[int, str]]:
    """Where ``module`` reaches for time or chance: line and name. The type `random.Random` may be named, not made."""
    out = []
    for line, target, typing_only in imports(module):
        top, _, rest = target.partition(".")
        if top in FORBIDDEN_MODULES and not typing_only and (top != "random" or rest not in ("", "Random")):
            out.append((line, target))
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = (node.value.id, node.attr)
            if name in FORBIDDEN_CALLS or (name[0] == "random" and name[1] != "Random"):
                out.append((node.lineno, ".".join(name)))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("Random", "random.Random"):
            out.append((node.lineno, "Random()"))
    return out


@pytest.mark.parametrize("module", modules(), ids=lambda m: m.name)
def test_time_and_chance_come_from_the_clock_module(module: Module) -> None:
    if module.name not in CLOCKS:
        excepted = EXCEPTIONS.get(module.name, {})
        found = [
            f"{module.relative}:{line}: {name}" for line, name in readings(module) if name not in excepted
        ]
        assert not found, "\n".join(found)


def test_exceptions_are_still_needed() -> None:
    needed = {m.name: {name for _, name in readings(m)} for m in modules() if m.name in EXCEPTIONS}
    assert all(set(reasons) <= needed.get(name, set()) for name, reasons in EXCEPTIONS.items())
