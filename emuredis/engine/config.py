"""The configuration the emulator honours: one row per parameter, with the server's default.

A parameter is here only if changing it changes something; CONFIG SET of any other is refused by name. To add
one: a row in `PARAMETERS`, and the code that reads ``engine.config.<attribute>``. Values are kept parsed;
`render` gives the text CONFIG GET answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from emuredis.keyspace.notify import format_flags, parse_flags

__all__ = ["PARAMETERS", "Config", "Parameter"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """``parse`` turns the text of CONFIG SET into a value or raises ValueError with the server's reason."""

    name: str
    default: Any
    parse: Callable[[str], Any]
    render: Callable[[Any], str]
    immutable: bool = False

    @property
    def attribute(self) -> str:
        return self.name.replace("-", "_")


def _text(value: str) -> str:
    return value


def _yes_no(value: str) -> bool:
    if value.lower() not in ("yes", "no"):
        raise ValueError("argument must be 'yes' or 'no'")
    return value.lower() == "yes"


def _render_yes_no(value: bool) -> str:
    return "yes" if value else "no"


def _integer(low: int, high: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        digits = value[1:] if value[:1] == "-" else value
        if not (digits.isascii() and digits.isdigit()):
            raise ValueError("argument couldn't be parsed into an integer")
        number = int(value)
        if not low <= number <= high:
            raise ValueError(f"argument must be between {low} and {high} inclusive")
        return number

    return parse


def _memory(value: str) -> int:
    units = {"": 1, "b": 1, "k": 1000, "kb": 1024, "m": 1000**2, "mb": 1024**2, "g": 1000**3, "gb": 1024**3}
    digits = value.rstrip("bkmgBKMG")
    unit = value[len(digits) :].lower()
    if not (digits.isascii() and digits.isdigit()) or unit not in units:
        raise ValueError("argument must be a memory value")
    return int(digits) * units[unit]


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value.lower() not in words:
            raise ValueError("argument(s) must be one of the following: " + ", ".join(words))
        return value.lower()

    return parse


def _notify(value: str) -> int:
    bits = parse_flags(value)
    if bits is None:
        raise ValueError("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
    return bits


_MAX = (1 << 63) - 1
_PARAMETERS = [
    Parameter("bind", "* -::*", _text, str, immutable=True),
    Parameter("busy-reply-threshold", 5000, _integer(0, _MAX), str),
    Parameter("databases", 16, _integer(1, 2**31 - 1), str, immutable=True),
    Parameter("enable-debug-command", "no", _one_of("no", "yes", "local"), str, immutable=True),
    Parameter("hash-max-listpack-entries", 512, _integer(0, _MAX), str),
    Parameter("hash-max-listpack-value", 64, _memory, str),
    Parameter("list-max-listpack-size", -2, _integer(-(2**31), 2**31 - 1), str),
    Parameter("maxclients", 10000, _integer(1, 2**32 - 1), str),
    Parameter("notify-keyspace-events", 0, _notify, format_flags),
    Parameter("port", 6379, _integer(0, 65535), str, immutable=True),
    Parameter("proto-max-bulk-len", 512 * 1024 * 1024, _memory, str),
    Parameter("requirepass", "", _text, str),
    Parameter("set-max-intset-entries", 512, _integer(0, _MAX), str),
    Parameter("set-max-listpack-entries", 128, _integer(0, _MAX), str),
    Parameter("set-max-listpack-value", 64, _memory, str),
    Parameter("timeout", 0, _integer(0, 2**31 - 1), str),
    Parameter("unixsocket", "", _text, str, immutable=True),
    Parameter("zset-max-listpack-entries", 128, _integer(0, _MAX), str),
    Parameter("zset-max-listpack-value", 64, _memory, str),
]
PARAMETERS = {parameter.name: parameter for parameter in _PARAMETERS}


class Config:
    """Parsed values as attributes, named as the parameters with underscores."""

    def __init__(self, settings: dict[str, Any] | None = None) -> None:
        for parameter in PARAMETERS.values():
            setattr(self, parameter.attribute, parameter.default)
        for name, value in (settings or {}).items():
            name = name.replace("_", "-")
            if name not in PARAMETERS:
                raise ValueError(f"unknown configuration parameter {name!r}")
            text = _render_yes_no(value) if isinstance(value, bool) else str(value)
            setattr(self, PARAMETERS[name].attribute, PARAMETERS[name].parse(text))

    def __getattr__(self, name: str) -> Any:  # only reached for unknown names; keeps type checkers content
        raise AttributeError(name)

    @property
    def password(self) -> bytes:
        return str(self.requirepass).encode("utf-8", "surrogateescape")

    def get(self, name: str) -> str:
        """The text CONFIG GET answers for a known parameter."""
        parameter = PARAMETERS[name]
        return parameter.render(getattr(self, parameter.attribute))
