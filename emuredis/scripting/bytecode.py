"""Lua 5.1 bytecode: tail calls that would lose the frame a script error is blamed on become ordinary calls.

The server's functions are C functions, and a tail call of a C function keeps the caller's frame. Ours are Lua functions
(see ``sandbox.lua``), and a tail call of one replaces it, so ``return redis.call("GET", k)`` would fail without
the line it stands on. `keep_frames` therefore turns tail calls into calls, except those of functions the script itself
defines and calls through a local name: there a tail call must stay one, or deep recursion would overflow.

In 5.1 a ``TAILCALL A B 0`` is always followed by ``RETURN A 0``, so ``CALL A B 0`` in its place means the same.

Responsible for this one rewriting. It knows no Lua runtime: bytes in, bytes out. The header says the sizes and the byte
order, so chunks of any platform work; one that is not understood is left alone.
"""

from __future__ import annotations

import struct

__all__ = ["keep_frames", "lines_of"]

MOVE, GETUPVAL, CALL, TAILCALL, CLOSURE = 0, 4, 28, 29, 36
_HEADER = 12


class _Function:
    """One function prototype: its code, the place of the code, its inner functions."""

    __slots__ = ("at", "code", "inner", "lines", "parent", "place")

    def __init__(self, code: list[int], at: int, parent: _Function | None) -> None:
        self.code = code
        self.at = at
        self.parent = parent
        self.inner: list[_Function] = []
        self.lines: tuple[int, ...] = ()  # of each instruction
        self.place = -1  # of the CLOSURE in the parent's code that makes this function


class _Reader:
    """Walks a chunk as `string.dump` wrote it."""

    def __init__(self, chunk: bytes) -> None:
        self.chunk = chunk
        order = "<" if chunk[6] == 1 else ">"
        self.order = order
        self.int_size, self.size_size, self.number_size = chunk[7], chunk[8], chunk[10]
        self.int = struct.Struct(order + {4: "i", 8: "q"}[self.int_size])
        self.size = struct.Struct(order + {4: "I", 8: "Q"}[self.size_size])
        self.at = _HEADER

    def integer(self) -> int:
        value: int = self.int.unpack_from(self.chunk, self.at)[0]
        self.at += self.int_size
        return value

    def skip_string(self) -> None:
        size = self.size.unpack_from(self.chunk, self.at)[0]
        self.at += self.size_size + size

    def function(self, parent: _Function | None) -> _Function:
        self.skip_string()
        self.at += 2 * self.int_size + 4
        count = self.integer()
        place = self.at
        code = list(struct.unpack_from(f"{self.order}{count}I", self.chunk, place))
        self.at += 4 * count
        fn = _Function(code, place, parent)
        for _ in range(self.integer()):
            self.skip_constant()
        fn.inner = [self.function(fn) for _ in range(self.integer())]
        fn.lines = self.debug()
        return fn

    def skip_constant(self) -> None:
        kind = self.chunk[self.at]
        self.at += 1
        if kind == 1:
            self.at += 1
        elif kind == 3:
            self.at += self.number_size
        elif kind == 4:
            self.skip_string()

    def debug(self) -> tuple[int, ...]:
        """The line of each instruction; the names are skipped."""
        count = self.integer()
        lines = struct.unpack_from(f"{self.order}{count}{self.int.format[-1]}", self.chunk, self.at)
        self.at += self.int_size * count
        for _ in range(self.integer()):
            self.skip_string()
            self.at += 2 * self.int_size
        for _ in range(self.integer()):
            self.skip_string()
        return lines


def keep_frames(chunk: bytes) -> bytes | None:
    """The chunk with such tail calls replaced; None when there is nothing to replace.

    O(length of the chunk).
    """
    if len(chunk) < _HEADER or chunk[:5] != b"\x1bLua\x51" or chunk[9] != 4:
        return None
    reader = _Reader(chunk)
    main = reader.function(None)
    patched = bytearray(chunk)
    if not _patch(main, patched, struct.Struct(reader.order + "I")):
        return None
    return bytes(patched)


def lines_of(chunk: bytes) -> set[int]:
    """The lines for which a chunk has code, its inner functions included.

    The return that ends every function by itself does not count: behind an explicit one it is never reached.
    """
    lines: set[int] = set()
    todo = [_Reader(chunk).function(None)]
    while todo:
        fn = todo.pop()
        lines.update(fn.lines[:-1])
        todo += fn.inner
    return lines


def _patch(fn: _Function, out: bytearray, word: struct.Struct) -> bool:
    changed = False
    code = fn.code
    for at, instruction in enumerate(code):
        opcode = instruction & 63
        if opcode == CLOSURE:
            fn.inner[instruction >> 14].place = at
        elif opcode == TAILCALL and not _calls_own(fn, at, (instruction >> 6) & 255):
            word.pack_into(out, fn.at + 4 * at, instruction & ~63 | CALL)
            changed = True
    for inner in fn.inner:
        changed |= _patch(inner, out, word)
    return changed


def _calls_own(fn: _Function, at: int, register: int) -> bool:
    """Whether the function in ``register`` was taken from a local name that holds a function of the script."""
    for instruction in reversed(fn.code[:at]):
        if (instruction >> 6) & 255 == register:
            break
    else:
        return False
    opcode, source = instruction & 63, instruction >> 23
    if opcode == MOVE:
        return _holds_closure(fn, source)
    return opcode == GETUPVAL and _upvalue_holds_closure(fn, source)


def _holds_closure(fn: _Function, register: int) -> bool:
    return any(word & 63 == CLOSURE and (word >> 6) & 255 == register for word in fn.code)


def _upvalue_holds_closure(fn: _Function, index: int) -> bool:
    """An upvalue's source is in the pseudo-instruction that follows the CLOSURE making the function."""
    while fn.parent is not None and fn.place >= 0:
        source = fn.parent.code[fn.place + 1 + index]
        fn, index = fn.parent, source >> 23
        if source & 63 == MOVE:
            return _holds_closure(fn, index)
    return False
