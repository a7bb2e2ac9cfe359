"""Modules of at most 600 lines, functions of at most 40; an exception has its reason written here."""

from __future__ import annotations

import ast

import pytest

from .source import Module, modules

MODULE_LINES = 600
FUNCTION_LINES = 40
# "module:function" or "module": why it is longer.
EXCEPTIONS: dict[str, str] = {}


def functions(module: Module) -> list[tuple[str, int]]:
    """Qualified names and lengths, without decorators and docstrings."""
    out: list[tuple[str, int]] = []

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first, last = child.body[0], child.end_lineno or child.lineno
                documented = ast.get_docstring(child, clean=False) is not None
                skipped = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
                out.append((prefix + child.name, last - child.lineno + 1 - skipped))
                visit(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.ClassDef):
                visit(child, f"{prefix}{child.name}.")
            else:
                visit(child, prefix)

    visit(module.tree, "")
    return out


@pytest.mark.parametrize("module", modules(), ids=lambda m: m.name)
def test_sizes(module: Module) -> None:
    lines = module.text.count("\n")
    assert lines <= MODULE_LINES or module.name in EXCEPTIONS, f"{module.relative} has {lines} lines"
    too_long = {name: size for name, size in functions(module) if size > FUNCTION_LINES}
    unexplained = {name: size for name, size in too_long.items() if f"{module.name}:{name}" not in EXCEPTIONS}
    assert not unexplained, f"{module.relative}: {unexplained}"


def test_exceptions_are_still_needed() -> None:
    long = {f"{m.name}:{name}" for m in modules() for name, size in functions(m) if size > FUNCTION_LINES}
    long |= {m.name for m in modules() if m.text.count("\n") > MODULE_LINES}
    assert set(EXCEPTIONS) <= long


@pytest.mark.parametrize("module", modules(), ids=lambda m: m.name)
def test_modules_open_with_their_theory(module: Module) -> None:
    assert ast.get_docstring(module.tree), f"{module.relative} has no docstring"
