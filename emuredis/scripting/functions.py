"""Libraries of functions: FUNCTION and FCALL, short of what the arguments look like.

A library is source text under a name; running the text registers its functions (see ``library.lua``). The source is all
that is kept: FUNCTION DUMP gives it away, and RESTORE runs it again. Whatever fails, fails before anything is changed:
a new set of libraries is put together beside the old one and takes its place at the end (`Catalog`).

Functions have an interpreter of their own, apart from that of scripts; FUNCTION FLUSH makes a new one.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from emuredis import errors
from emuredis.engine.memory import out_of_memory
from emuredis.errors import ReplyError
from emuredis.patterns import match
from emuredis.replies import Map, Reply, Set, Status
from emuredis.scalars import parse_int
from emuredis.scripting import function_dump
from emuredis.scripting.runtime import USER_FUNCTION, Runtime
from emuredis.scripting.shebang import FLAGS, cut_shebang, words
from emuredis.scripting.watch import Run, Watch, enrol, observers_of

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine
    from emuredis.engine.session import Session

__all__ = ["Function", "Functions", "Library", "functions_of"]

_NAME = re.compile(rb"[A-Za-z0-9_]+")
_BAD_NAME = (
    "names can only contain letters, numbers, or underscores(_) and must be at least one character long"
)
NO_WRITES, ALLOW_OOM, _, NO_CLUSTER, CROSS_SLOT = 1, 2, 4, 8, 16  # the bits of FLAGS, as in library.lua


class Function:
    """A function that a library registered. ``flags``: bits in the order of `FLAGS`."""

    __slots__ = ("description", "flags", "fn", "library", "name")
    chunk = USER_FUNCTION

    def __init__(self, name: bytes, fn: Any, flags: int, description: bytes | None) -> None:
        self.name = name
        self.fn = fn
        self.flags = flags
        self.description = description
        self.library: Library

    @property
    def sha(self) -> bytes:
        """The SHA1 of its library's source."""
        return _sha1(self.library.code)

    @property
    def body(self) -> bytes:
        """Its library's source."""
        return self.library.code

    @property
    def called(self) -> str:
        return f"function {self.name.decode()} of library {self.library.name.decode()}"

    def describe(self) -> Map:
        flags = Set([Status(flag) for bit, flag in enumerate(FLAGS) if self.flags >> bit & 1])
        return Map([b"name", self.name, b"description", self.description, b"flags", flags])


class Library:
    """The whole source, shebang included, and what it registered, in order."""

    __slots__ = ("code", "functions", "name")

    def __init__(self, name: bytes, code: bytes, functions: list[Function]) -> None:
        self.name = name
        self.code = code
        self.functions = functions
        for function in functions:
            function.library = self

    def describe(self, with_code: bool) -> Map:
        told = Map([b"library_name", self.name, b"engine", b"LUA"])
        told += [b"functions", [function.describe() for function in self.functions]]
        if with_code:
            told += [b"library_code", self.code]
        return told


class Catalog:
    """Libraries by name, and their functions by lower-case name: the case does not matter in a call."""

    def __init__(self, libraries: dict[bytes, Library] | None = None) -> None:
        self.libraries = dict(libraries or {})
        self.functions: dict[bytes, Function] = {}
        for library in self.libraries.values():
            self._link(library)

    def _link(self, library: Library) -> None:
        for function in library.functions:
            self.functions.setdefault(function.name.lower(), function)

    def without(self, names: Any) -> Catalog:
        """A copy that lacks the libraries of these names."""
        return Catalog({name: library for name, library in self.libraries.items() if name not in names})

    def add(self, library: Library) -> None:
        """Raises ReplyError, and changes nothing, when a function of it is there already."""
        for function in library.functions:
            if function.name.lower() in self.functions:
                raise ReplyError(b"ERR Function " + function.name + b" already exists")
        self.libraries[library.name] = library
        self._link(library)


class Functions:
    """All libraries of one engine and the interpreter they run in."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.catalog = Catalog()
        self.running: tuple[bytes, list[bytes]] = (b"", [])  # the name and command of the last call
        self._watch: Watch | None = None
        self._runtime = self._new_runtime()
        enrol(self)

    def _new_runtime(self) -> Runtime:
        self._runtime = Runtime(self.engine, libraries=True)
        self.rewatch()
        return self._runtime

    # -- calling --------------------------------------------------------------------------------

    def call(self, ctx: Session, argv: list[bytes], read_only: bool) -> Reply:
        """FCALL and FCALL_RO."""
        function = self.catalog.functions.get(argv[1]) or self.catalog.functions.get(argv[1].lower())
        if function is None:
            raise errors.err("Function not found")
        numkeys = parse_int(argv[2])
        if numkeys is None:
            raise errors.err("Bad number of keys provided")
        if numkeys > len(argv) - 3:
            raise errors.err("Number of keys can't be greater than number of args")
        if numkeys < 0:
            raise errors.err("Number of keys can't be negative")
        if self.engine.cluster is not None:
            flags = function.flags
            self.engine.cluster.begin_script(ctx, bool(flags & NO_CLUSTER), bool(flags & CROSS_SLOT))
        short = ctx.engine.memory.short
        if short and function.flags & ALLOW_OOM:
            short = False
        elif short and not function.flags & NO_WRITES:
            raise out_of_memory()
        if function.flags & NO_WRITES:
            read_only = True
        elif read_only:
            raise errors.err("Can not execute a script with write flag using *_ro command.")
        self.running = function.name, argv
        run, args = self._runtime.run, argv[3:]
        watch = self._watch
        if watch is None:
            return run(function.fn, numkeys, args, read_only, short, ctx, function.name)
        seen = Run(self.engine, self._runtime, function, args[:numkeys], args[numkeys:], read_only, ctx)
        return watch.run(seen, lambda: run(function.fn, numkeys, args, read_only, short, ctx, function.name))

    def rewatch(self) -> None:
        """The observers changed. Libraries are loaded anew when the marks of their blocks come or go."""
        observers = observers_of(self.engine)
        before = self._watch is not None and self._watch.marked
        self._watch = watch = Watch(observers) if observers else None
        self._runtime.set_watch(watch)
        if self.catalog.libraries and before != (watch is not None and watch.marked):
            self.replace(self.saved(), anew=True)

    # -- changing -------------------------------------------------------------------------------

    def load(self, code: bytes, replace: bool) -> bytes:
        """FUNCTION LOAD: the library's name."""
        catalog, library = self._made(code, self.catalog, replace, hurry=True)
        self.catalog = catalog
        self.engine.keyspace.dirty += 1
        return library.name

    def delete(self, name: bytes) -> None:
        if name not in self.catalog.libraries:
            raise errors.err("Library not found")
        self.catalog = self.catalog.without((name,))
        self.engine.keyspace.dirty += 1

    def flush(self) -> None:
        """FUNCTION FLUSH: forget every library, and all state of the interpreter."""
        self.catalog = Catalog()
        self._new_runtime()
        self.engine.keyspace.dirty += 1

    def restore(self, payload: bytes, policy: bytes) -> None:
        """FUNCTION RESTORE; ``policy``: ``flush``, ``append`` or ``replace``."""
        codes = function_dump.check(payload)
        arriving = Catalog()
        for code in codes:
            arriving, _ = self._made(code, arriving, replace=False, hurry=False)
        if policy == b"flush":
            self.catalog = arriving
        else:
            self.catalog = _joined(self.catalog, arriving, policy == b"replace")
        self.engine.keyspace.dirty += 1

    def saved(self) -> list[bytes]:
        """The source of every library, for `replace`."""
        return [library.code for library in self.catalog.libraries.values()]

    def replace(self, codes: list[bytes], anew: bool = False) -> None:
        """Keep these libraries and no others. What their functions had set in variables of the library is lost.

        ``anew``: even if they are the same as before.
        """
        if anew or codes != self.saved():
            arriving = Catalog()
            for code in codes:
                arriving, _ = self._made(code, arriving, replace=False, hurry=False)
            self.catalog = arriving

    def _made(self, code: bytes, into: Catalog, replace: bool, hurry: bool) -> tuple[Catalog, Library]:
        """A copy of ``into`` with the library whose source is ``code``, and the library."""
        name, start = _metadata(code)
        if name in into.libraries and not replace:
            raise ReplyError(b"ERR Library '" + name + b"' already exists")
        watch = self._watch
        if watch is None or watch.lines != "cover":
            registered = self._runtime.load(code[start:], hurry)
        else:
            registered = self._runtime.load_covered(_sha1(code), code[start:], hurry)
        library = Library(name, code, _checked(registered))
        catalog = into.without((name,))
        catalog.add(library)
        return catalog, library

    # -- telling --------------------------------------------------------------------------------

    def dump(self) -> bytes:
        return function_dump.dump([library.code for library in self.catalog.libraries.values()])

    def describe(self, pattern: bytes | None, with_code: bool) -> Reply:
        libraries = self.catalog.libraries.values()
        return [
            library.describe(with_code)
            for library in libraries
            if pattern is None or match(pattern, library.name, nocase=True)
        ]

    def counts(self) -> tuple[int, int]:
        """How many libraries and functions there are."""
        libraries = self.catalog.libraries.values()
        return len(libraries), sum(len(library.functions) for library in libraries)


def _sha1(code: bytes) -> bytes:
    return hashlib.sha1(code, usedforsecurity=False).hexdigest().encode()


def functions_of(engine: Engine) -> Functions:
    """The engine's libraries, made at the first call. Raises ReplyError when lupa is not installed."""
    if engine.functions is None:
        engine.functions = Functions(engine)
    functions: Functions = engine.functions
    return functions


def _joined(old: Catalog, arriving: Catalog, replace: bool) -> Catalog:
    if not replace:
        for name in arriving.libraries:
            if name in old.libraries:
                raise ReplyError(b"ERR Library " + name + b" already exists")
    catalog = old.without(arriving.libraries)
    for library in arriving.libraries.values():
        catalog.add(library)
    return catalog


def _metadata(code: bytes) -> tuple[bytes, int]:
    """A library's name by its shebang line, and where that line ends. Raises ReplyError."""
    end = cut_shebang(code)
    if end is None:
        raise errors.err("Missing library metadata")
    parts = words(code[:end]) if end >= 0 else None
    if parts is None:
        raise errors.err("Invalid library metadata")
    name: bytes | None = None
    for part in parts[1:]:
        if part[:5].lower() != b"name=":
            raise ReplyError(b"ERR Invalid metadata value given: " + part.partition(b"\0")[0])
        if name is not None:
            raise errors.err("Invalid metadata value, name argument was given multiple times")
        name = part[5:]
    if name is None:
        raise errors.err("Library name was not given")
    if not _NAME.fullmatch(name):
        raise errors.err("Library " + _BAD_NAME)
    engine = parts[0][2:]
    if engine.lower() != b"lua":
        raise ReplyError(b"ERR Engine '" + engine + b"' not found")
    return name, end


def _checked(registered: list[tuple[bytes, Any, int, bytes | None]]) -> list[Function]:
    """The functions a library registered. Raises ReplyError for a bad name, a name twice, or none."""
    functions: dict[bytes, Function] = {}
    for name, fn, flags, description in registered:
        if not _NAME.fullmatch(name):
            raise errors.err("Function " + _BAD_NAME)
        if name in functions:
            raise errors.err("Function already exists in the library")
        functions[name] = Function(name, fn, flags, description)
    if not functions:
        raise errors.err("No functions registered")
    return list(functions.values())
