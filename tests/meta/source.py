"""The source files that the tests of this folder read, parsed once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("emuredis", "echomq")


@dataclass(frozen=True)
class Module:
    path: Path
    name: str  # dotted
    text: str
    tree: ast.Module

    @property
    def relative(self) -> str:
        return self.path.relative_to(ROOT).as_posix()


@cache
def modules() -> tuple[Module, ...]:
    """Every module of both packages."""
    out = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text = path.read_text("utf-8")
            out.append(Module(path, name, text, ast.parse(text)))
    return tuple(out)


def imports(module: Module) -> Iterator[tuple[int, str, bool]]:
    """Line, full dotted name (module and, for ``from``, each name) and whether it is for type checkers only."""
    yield from _imports(module, module.tree, typing_only=False)


def _imports(module: Module, node: ast.AST, typing_only: bool) -> Iterator[tuple[int, str, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield child.lineno, alias.name, typing_only
        elif isinstance(child, ast.ImportFrom):
            base = child.module or ""
            if child.level:
                package = (
                    module.name.split(".") if module.path.stem == "__init__" else module.name.split(".")[:-1]
                )
                base = ".".join([*package[: len(package) - child.level + 1], *([base] if base else [])])
            for alias in child.names:
                yield child.lineno, f"{base}.{alias.name}", typing_only
        elif isinstance(child, ast.If):
            checking = isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING"
            for part in child.body:
                yield from _imports(module, ast.Module([part], []), typing_only or checking)
            for part in child.orelse:
                yield from _imports(module, ast.Module([part], []), typing_only)
        else:
            yield from _imports(module, child, typing_only)
