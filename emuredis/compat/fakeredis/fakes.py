"""What the fakes of both packages have in common: the server behind them, and how a client finds it."""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakKeyDictionary

from emuredis.emulator import Emulator
from emuredis.errors import EmulatorError
from emuredis.redispy.library import Library
from emuredis.redispy.patching import address_of
from emuredis.releases import parse_version

__all__ = ["OFFLINE", "Fake", "FakeServer", "Served"]

#: What is not connected says so with these words.
OFFLINE = "the server is not connected: FakeServer.connected is False"
_offline: WeakKeyDictionary[Emulator, bool] = WeakKeyDictionary()


class FakeServer:
    """An emulator under fakeredis' name. ``emulator``: the one to stand for, else a new one of ``version``.

    Raises ValueError for a version or a type of server that is not emulated.
    """

    _by_address: dict[str, FakeServer] = {}
    _lock = threading.Lock()

    def __init__(self, version: Any = None, server_type: str = "redis", config: Any = None, *,
                 emulator: Emulator | None = None) -> None:  # fmt: skip
        if emulator is None:
            named = {_text(name): _text(value) for name, value in (config or {}).items()}
            limits: dict[str, Any] = (
                {} if version is None and server_type == "redis" else {"server_type": server_type}
            )
            emulator = Emulator(config=named, version=version, **limits)
        self.emulator = emulator
        self.version = (7,) if version is None else parse_version(version)
        self.server_type = server_type

    @property
    def connected(self) -> bool:
        """Whether clients reach the server. Setting it to False closes their connections; keys stay."""
        return self.emulator not in _offline

    @connected.setter
    def connected(self, value: bool) -> None:
        engine = self.emulator.engine
        with engine.lock:
            if value:
                _offline.pop(self.emulator, None)
                return
            _offline[self.emulator] = True
            for session in list(engine.sessions.values()):
                engine.drop(session)

    @classmethod
    def get_server(cls, key: str, version: Any = None, server_type: str = "redis") -> FakeServer:
        """The server that all clients of an address share, made by the first."""
        with cls._lock:
            if key not in cls._by_address:
                cls._by_address[key] = cls(version, server_type)
            return cls._by_address[key]


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


class Served:
    """A connection that may be given a ``server`` instead of an emulator, and that asks whether it is connected."""

    library: Library
    emulator: Emulator

    def __init__(self, *, server: FakeServer | None = None, emulator: Emulator | None = None, version: Any = None,
                 server_type: str = "redis", **options: Any) -> None:  # fmt: skip
        if emulator is None:
            server = server or FakeServer.get_server(address_of(options), version, server_type)
            emulator = server.emulator
        super().__init__(emulator=emulator, **options)  # type: ignore[call-arg]

    def _connect(self) -> Any:
        """Connect; a coroutine in asyncio's. Raises the package's ConnectionError."""
        if self.emulator in _offline:
            raise self.library.ConnectionError(OFFLINE)
        return super()._connect()  # type: ignore[misc]


class Fake:
    """What the client classes share: how they find their server."""

    library: Library
    connection_pool: Any

    def __init__(self, *args: Any, server: FakeServer | None = None, version: Any = None, server_type: str = "redis",
                 lua_modules: Any = None, connected: bool = True, **options: Any) -> None:  # fmt: skip
        if lua_modules:
            raise EmulatorError("emuredis.compat.fakeredis does not support lua_modules")
        if args and isinstance(args[0], FakeServer):
            server, args = args[0], args[1:]
        if options.get("connection_pool") is None:
            named = dict(zip(("host", "port"), args, strict=False))
            named |= {name: options[name] for name in ("host", "port") if name in options}
            named["path"] = options.get("unix_socket_path")
            if server is None:
                there = any(value is not None for value in named.values())
                server = (FakeServer.get_server(address_of(named), version, server_type) if there
                          else FakeServer(version, server_type))  # fmt: skip
            options.setdefault("retry", None)
            options.setdefault("emulator", server.emulator)
            if not connected:
                server.connected = False
        super().__init__(*args, **options)

    @classmethod
    def from_url(cls, url: str, *, server: FakeServer | None = None, version: Any = None, server_type: str = "redis",
                 **options: Any) -> Any:  # fmt: skip
        """A client for a URL of any scheme that the package knows; the same address is the same server."""
        said = dict(cls.library.sync.parse_url(url))
        said.pop("connection_class", None)
        for flag in ("decode_responses", "single_connection_client"):
            if flag in said:
                said[flag] = str(said[flag]).lower() in ("1", "true", "yes", "t", "y")
        if server is None:
            server = FakeServer.get_server(address_of(said), version, server_type)
        path = said.pop("path", None)
        if path is not None:
            said["unix_socket_path"] = path
        return cls(server=server, **{**options, **said})
