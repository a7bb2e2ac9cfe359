"""Server scripts: one `.lua` file per transition, called by digest.

A script is addressed by its protocol name, its KEYS and its ARGV. What ours need beyond the protocol
(the wake list of a flat push) comes as trailing keys or is derived from a declared key, so that a folder
with other scripts of the same names can take their place: `Scripts(folder)`.

Digest: lower-case SHA-1 over the file's exact bytes. Calls go out as EVALSHA; NOSCRIPT leads to one
SCRIPT LOAD, whose reply must be that digest, and one more EVALSHA.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from .errors import ArgumentError, ServerError, ShaMismatch
from .resp import Arg, Reply

__all__ = ["OUR_FOLDER", "Script", "Scripts", "evaluate", "load", "our_scripts"]

OUR_FOLDER = Path(__file__).parent / "scripts"


class Script:
    """A script's name, source bytes and digest."""

    __slots__ = ("name", "sha", "source")

    def __init__(self, name: str, source: bytes) -> None:
        self.name = name
        self.source = source
        self.sha = hashlib.sha1(source, usedforsecurity=False).hexdigest()

    def command(self, keys: Sequence[str], args: Sequence[Arg]) -> tuple[Arg, ...]:
        """The EVALSHA command for a call."""
        return ("EVALSHA", self.sha, len(keys), *keys, *args)

    def __repr__(self) -> str:
        return f"Script({self.name!r}, {self.sha})"


class Scripts:
    """Scripts by name: those found in ``folder`` (`claim.lua`, …), ours for the rest."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = Path(folder) if folder is not None else None
        self._loaded: dict[str, Script] = {}
        if self.folder is not None:
            self._check_folder(self.folder)

    @staticmethod
    def _check_folder(folder: Path) -> None:
        if not folder.is_dir():
            raise ArgumentError(f"no folder of scripts at {folder}")
        names = {path.stem for path in OUR_FOLDER.glob("*.lua")}
        if not any(path.stem in names for path in folder.glob("*.lua")):
            raise ArgumentError(f"{folder} holds no script of the protocol (claim.lua, promote.lua, …)")

    def names(self) -> list[str]:
        """All script names, sorted."""
        return sorted(path.stem for path in OUR_FOLDER.glob("*.lua"))

    def replaced(self) -> list[str]:
        """The names for which the folder has its own file, sorted."""
        if self.folder is None:
            return []
        return [name for name in self.names() if (self.folder / f"{name}.lua").is_file()]

    def __getitem__(self, name: str) -> Script:
        script = self._loaded.get(name)
        if script is None:
            script = self._loaded[name] = Script(name, self._path(name).read_bytes())
        return script

    def _path(self, name: str) -> Path:
        if self.folder is not None:
            path = self.folder / f"{name}.lua"
            if path.is_file():
                return path
        return OUR_FOLDER / f"{name}.lua"


_ours: Scripts | None = None
_ours_lock = threading.Lock()


def our_scripts() -> Scripts:
    """The scripts of this package, shared by all who ask."""
    global _ours
    with _ours_lock:
        if _ours is None:
            _ours = Scripts()
        return _ours


def load(call: Callable[..., Reply], script: Script) -> None:
    """SCRIPT LOAD, with the check that the server hashed the same bytes."""
    sha = call("SCRIPT", "LOAD", script.source)
    if sha != script.sha.encode():
        raise ShaMismatch(f"{script.name}: the server says {sha!r}, the source has {script.sha}")


def evaluate(call: Callable[..., Reply], script: Script, keys: Sequence[str], args: Sequence[Arg]) -> Reply:
    """EVALSHA first; on NOSCRIPT load once and try once more. ``call`` raises error replies."""
    command = script.command(keys, args)
    try:
        return call(*command)
    except ServerError as error:
        if error.code != "NOSCRIPT":
            raise
    load(call, script)
    return call(*command)
