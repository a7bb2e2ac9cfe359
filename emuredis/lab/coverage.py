"""Which lines and branches of Lua scripts ran.

    with emuredis.lab.coverage("scripts") as covered:
        run_the_tests()
    print(covered.report())

While such a context is open every script in every emulator of the process is watched. A line counts if Lua generated
code for it; a branch is what follows ``then``, ``else``, ``do``, ``repeat`` or the parameters of a function, and is
reported where its line ran and it did not. The alternatives of ``and`` and ``or`` are not told apart.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from emuredis.emulator import Emulator
from emuredis.errors import ReplyError
from emuredis.replies import Reply
from emuredis.scripting import scripts_of
from emuredis.scripting.blocks import Block, marked
from emuredis.scripting.watch import Observer, Run, observe, unobserve

__all__ = ["Coverage", "FileCoverage", "coverage"]

#: Lines that only close a block: jumps at its end have their number, and say nothing the block does not.
_CLOSING = re.compile(r"(?:end|else)?[\s;,)}]*")


class FileCoverage:
    """One script: ``lines`` with code, and ``ran`` of them; ``blocks``, and the numbers (from 0) ``entered``."""

    def __init__(self, name: str, source: bytes) -> None:
        self.name = name
        self.source = source
        self.lines: set[int] = set()
        self.ran: set[int] = set()
        self.blocks: list[Block] = []
        self.entered: set[int] = set()
        self.problem = ""  # why it has no lines: it does not compile
        self.runs = 0

    @property
    def missed_lines(self) -> list[int]:
        """Lines with code that never ran."""
        return sorted(self.lines - self.ran)

    @property
    def missed_branches(self) -> list[Block]:
        """Blocks never entered, on lines that ran, with code on that line; others show in `missed_lines`."""
        return [
            block
            for n, block in enumerate(self.blocks)
            if n not in self.entered and block.line in self.ran and self._after(block)[:2] not in ("", "--")
        ]

    def text(self, line: int) -> str:
        """The source of a line, without the space around it."""
        return self.source.split(b"\n")[line - 1].decode("utf-8", "backslashreplace").strip()

    def branch(self, block: Block) -> str:
        """The source of a block as far as it is on its line, for people."""
        return f"{block.word} {self._after(block)}"

    def _after(self, block: Block) -> str:
        line = self.source.split(b"\n")[block.line - 1]
        return line[block.column :].decode("utf-8", "backslashreplace").strip()


class Coverage(Observer):
    """What `coverage` yields; `files` and `report` may be asked at any time."""

    lines = "cover"

    def __init__(self) -> None:
        self._by_sha: dict[bytes, FileCoverage] = {}

    def add(self, path: Path, name: str | None = None) -> None:
        """Count a ``.lua`` file even if it never runs."""
        source = path.read_bytes()
        self._file(_sha1(source), source, name or path.name)

    def _file(self, sha: bytes, source: bytes, name: str) -> FileCoverage:
        found = self._by_sha.get(sha)
        if found is None:
            found = self._by_sha[sha] = FileCoverage(name, source)
        return found

    def begin(self, run: Run) -> None:
        self._file(run.script.sha, run.script.body, run.name).runs += 1

    def end(self, run: Run, reply: Reply | BaseException) -> None:
        file = self._by_sha[run.script.sha]
        for seen in run.runtime.lines_seen(run.script.sha):
            if seen > 0:
                file.ran.add(seen)
            else:
                file.entered.add(-seen - 1)

    @property
    def files(self) -> list[FileCoverage]:
        """Every script that ran or was added, by name."""
        runtime = scripts_of(Emulator().engine).runtime
        for file in self._by_sha.values():
            if not file.lines and not file.problem:
                try:
                    code = runtime.code_lines(file.source)
                    file.lines = {line for line in code if not _CLOSING.fullmatch(file.text(line))}
                except ReplyError as error:
                    file.problem = str(error)
                else:
                    file.blocks = marked(file.source)[1]
            file.ran &= file.lines
        return sorted(self._by_sha.values(), key=lambda file: file.name)

    def report(self, everything: bool = False) -> str:
        """One line per script, then what was missed; ``everything``: also scripts of which nothing was missed."""
        out, files = [], self.files
        for file in files:
            missed, branches = file.missed_lines, file.missed_branches
            if not (missed or branches or file.problem or everything):
                continue
            ran, entered = len(file.lines) - len(missed), len(file.entered)
            out.append(
                f"{file.name}: {ran} of {len(file.lines)} lines, {entered} of {len(file.blocks)} branches"
            )
            if not file.runs:
                out.append(f"    never ran{': ' + file.problem if file.problem else ''}")
                continue
            told = [(line, 0, f"{line}: {file.text(line)}") for line in missed]
            told += [(b.line, b.column, f"{b.line}: never: {file.branch(b)}") for b in branches]
            out += [f"    line {text}" for _, _, text in sorted(told)]
        lines = sum(len(file.lines) for file in files)
        ran = sum(len(file.ran) for file in files)
        blocks, entered = sum(len(f.blocks) for f in files), sum(len(f.entered) for f in files)
        out.append(f"{len(files)} scripts: {ran} of {lines} lines, {entered} of {blocks} branches")
        return "\n".join(out)


@contextmanager
def coverage(*folders: str | Path) -> Iterator[Coverage]:
    """Watch every script of this process meanwhile; see `Coverage`.

    ``folders``: ``.lua`` files, or folders of them (at any depth), that are counted even if they never run, and give
    the scripts their names. Other scripts are called what `Emulator.name_script` said, or by their SHA1.
    Raises FileNotFoundError for a folder that is not there.
    """
    covered = Coverage()
    for folder in map(Path, folders):
        if folder.is_dir():
            for path in sorted(folder.rglob("*.lua")):
                covered.add(path, path.relative_to(folder).as_posix())
        else:
            covered.add(folder)
    observe(covered)
    try:
        yield covered
    finally:
        unobserve(covered)


def _sha1(source: Any) -> bytes:
    return hashlib.sha1(source, usedforsecurity=False).hexdigest().encode()
