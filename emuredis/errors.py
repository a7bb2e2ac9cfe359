"""Every error text the server can send, in one place.

A `ReplyError` is what a handler raises and what a client sees: one line of text whose first word is
the code (``ERR``, ``WRONGTYPE``, ``NOSCRIPT`` ...). Always raise a fresh instance, never a shared
one: a shared exception grows its traceback without bound. The texts are those of Valkey 9.1.
"""

from __future__ import annotations

__all__ = ["EmulatorError", "ReplyError", "WaitForever"]


class EmulatorError(Exception):
    """A misuse of emuredis itself, not an answer of the server."""


class WaitForever(EmulatorError):
    """A blocking call without time-out that nobody is left to wake; names the keys it waits for."""


class ReplyError(Exception):
    """An error reply. ``str(error)`` is the whole line; `code` its first word."""

    def __init__(self, message: str | bytes) -> None:
        if isinstance(message, bytes):
            message = message.decode("utf-8", "surrogateescape")
        super().__init__(message)
        self.message = message

    @property
    def code(self) -> str:
        return self.message.partition(" ")[0]

    def encode(self) -> bytes:
        """The line as bytes, with line breaks made harmless."""
        line = self.message.encode("utf-8", "surrogateescape")
        if b"\r" in line or b"\n" in line:
            line = line.replace(b"\r", b" ").replace(b"\n", b" ")
        return line

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReplyError) and other.message == self.message

    __hash__ = Exception.__hash__


def err(text: str) -> ReplyError:
    """``ERR`` followed by ``text``, for the texts that only one command uses."""
    return ReplyError("ERR " + text)


def shown(word: bytes, limit: int | None = None) -> str:
    """A client's word as errors quote it: up to a zero byte, at most ``limit`` bytes of it."""
    return word.partition(b"\0")[0][:limit].decode("utf-8", "surrogateescape")


def syntax() -> ReplyError:
    return ReplyError("ERR syntax error")


def wrong_type() -> ReplyError:
    return ReplyError("WRONGTYPE Operation against a key holding the wrong kind of value")


def not_integer() -> ReplyError:
    return ReplyError("ERR value is not an integer or out of range")


def not_float() -> ReplyError:
    return ReplyError("ERR value is not a valid float")


def no_such_key() -> ReplyError:
    return ReplyError("ERR no such key")


def index_out_of_range() -> ReplyError:
    return ReplyError("ERR index out of range")


def wrong_arity(name: str) -> ReplyError:
    """``name``: the full lower-case command name, ``config|get`` for a subcommand."""
    return ReplyError(f"ERR wrong number of arguments for '{name}' command")


def unsupported(what: str) -> ReplyError:
    """Something the real server has and this emulator does not (yet): always named."""
    return ReplyError(f"ERR emuredis does not support {what}")
