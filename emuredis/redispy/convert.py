"""Arguments to bytes, replies to Python objects, errors to exceptions: what redis-py does on its side of the wire.

The rules are redis-py's: its `Encoder` says how a value is written and which are refused, a command's name may hold
several words ("CONFIG GET"), an error's first word chooses the exception. Values of exactly `str`, `bytes`, `int` and
`float` take a shorter way with the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emuredis.errors import ReplyError
from emuredis.protocol.views import View, make_view

__all__ = ["Converter", "split_name"]

#: Words of command names met so far; programs use few, but nothing stops one from inventing more.
_NAMES: dict[Any, tuple[bytes, ...]] = {}
_NAMES_LIMIT = 4096


def split_name(name: Any, encode: Callable[[Any], Any]) -> tuple[bytes, ...]:
    """The words of a command's name, as redis-py sends them."""
    words = _NAMES.get(name) if name.__class__ in (str, bytes) else None
    if words is not None:
        return words
    if isinstance(name, str):
        words = tuple(name.encode().split())
    elif b" " in name:
        words = tuple(bytes(name).split())
    else:
        words = (bytes(encode(name)),)
    if len(_NAMES) < _NAMES_LIMIT and name.__class__ in (str, bytes):
        _NAMES[name] = words
    return words


class Converter:
    """Both directions for one connection's settings.

    ``encoder``: redis-py's, with encoding, errors and decode_responses. ``parse_error``: from an error's line to an
    exception object.
    """

    __slots__ = ("_encode", "_plain_text", "decode", "error", "parse_error", "raw2", "raw3", "view2", "view3")

    def __init__(self, encoder: Any, parse_error: Callable[[str], Exception]) -> None:
        self._encode = encoder.encode
        self._plain_text = (encoder.encoding.lower().replace("_", "-"), encoder.encoding_errors) in (
            ("utf-8", "strict"),
            ("utf8", "strict"),
        )
        self.parse_error = parse_error
        self.decode: Callable[[bytes], Any] | None = None
        if encoder.decode_responses:
            self.decode = _decoder(encoder.encoding, encoder.encoding_errors)
        self.raw2, self.raw3 = make_view(2, None, self.exception), make_view(3, None, self.exception)
        self.view2, self.view3 = self.raw2, self.raw3
        if self.decode is not None:
            self.view2 = make_view(2, self.decode, self.exception)
            self.view3 = make_view(3, self.decode, self.exception)

    def exception(self, error: ReplyError) -> Exception:
        """The client library's exception for an error reply."""
        return self.parse_error(error.encode().decode("utf-8", "replace"))

    def view(self, protocol: int, disable_decoding: bool = False) -> View:
        if disable_decoding:
            return self.raw3 if protocol == 3 else self.raw2
        return self.view3 if protocol == 3 else self.view2

    def command(self, args: tuple[Any, ...]) -> list[bytes]:
        """The words of a command. Raises redis-py's DataError for a value it does not send."""
        name = args[0]
        words = _NAMES.get(name) if name.__class__ is str else None
        argv = [*(words or split_name(name, self._encode))]
        append, plain_text = argv.append, self._plain_text
        for arg in args[1:]:
            kind = arg.__class__
            if kind is str and plain_text:
                append(arg.encode())
            elif kind is bytes:
                append(arg)
            elif kind is int:
                append(b"%d" % arg)
            elif kind is float:
                append(repr(arg).encode())
            else:
                append(bytes(self._encode(arg)))
        return argv


def _decoder(encoding: str, errors: str) -> Callable[[bytes], str]:
    if errors == "strict" and encoding.lower() in ("utf-8", "utf8", "utf_8"):
        return bytes.decode

    def decode(text: bytes) -> str:
        return text.decode(encoding, errors)

    return decode
