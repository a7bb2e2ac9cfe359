"""The configuration the emulator honours: one row per parameter, with the server's default.

Five kinds of parameters. One with ``FREE`` may be changed by CONFIG SET, and changing it changes something. An
``IMMUTABLE`` or ``PROTECTED`` one is given when the emulator is made (the server calls them so when it refuses). A
``FIXED`` one states what the emulator is like (it appends to no file): it can be read, and set to
what it is already; a ``STATED`` one as well, but there the server itself refuses CONFIG SET. CONFIG SET of any other
parameter of the server is refused by name.

To add one: a row in `_PARAMETERS`, and the code that reads ``engine.config.<attribute>``. Values are kept parsed;
`Config.get` gives the text CONFIG GET answers. This module knows neither commands nor the engine.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from emuredis.keyspace.notify import format_flags, parse_flags
from emuredis.scalars import parse_int
from emuredis.values.limits import Limits

__all__ = [
    "ALIASES",
    "FIXED",
    "FREE",
    "IMMUTABLE",
    "PARAMETERS",
    "PROTECTED",
    "STATED",
    "UNSUPPORTED",
    "Config",
    "Parameter",
]

FREE, IMMUTABLE, PROTECTED, FIXED, STATED = "free", "immutable", "protected", "fixed", "stated"


@dataclass(frozen=True, slots=True)
class Parameter:
    """``parse`` turns the text of CONFIG SET into a value or raises ValueError with the server's reason."""

    name: str
    default: Any
    parse: Callable[[str], Any]
    render: Callable[[Any], str]
    kind: str = FREE

    @property
    def attribute(self) -> str:
        return self.name.replace("-", "_")

    @property
    def choosable(self) -> bool:
        """Whether an emulator may be made with another value than the default."""
        return self.kind in (FREE, IMMUTABLE, PROTECTED)


# -- how values are written --------------------------------------------------------------------


def _text(value: str) -> str:
    return value


def _yes_no(value: str) -> bool:
    if value.lower() not in ("yes", "no"):
        raise ValueError("argument must be 'yes' or 'no'")
    return value.lower() == "yes"


def _render_yes_no(value: bool) -> str:
    return "yes" if value else "no"


def _in_range(number: int, low: int, high: int) -> int:
    if not low <= number <= high:
        raise ValueError(f"argument must be between {low} and {high} inclusive")
    return number


def _integer(low: int, high: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        number = parse_int(value.encode("utf-8", "surrogateescape"))
        if number is None:
            raise ValueError("argument couldn't be parsed into an integer")
        return _in_range(number, low, high)

    return parse


_UNITS = {"": 1, "b": 1, "k": 1000, "kb": 1024, "m": 1000**2, "mb": 1024**2, "g": 1000**3, "gb": 1024**3}


def _memory(low: int, high: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        digits = value.rstrip("bkmgBKMG")
        unit = _UNITS.get(value[len(digits) :].lower())
        if unit is None or (digits and not (digits.isascii() and digits.isdigit())) or len(digits) > 19:
            raise ValueError("argument must be a memory value")
        return _in_range(int(digits or 0) * unit, low, high)

    return parse


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


def _directory(value: str) -> str:
    if not value:
        raise ValueError("dir can't be empty")
    if not os.path.isdir(value):
        raise ValueError("No such file or directory")
    return os.path.abspath(value)


def _file_name(value: str) -> str:
    if not value:
        raise ValueError("dbfilename can't be empty")
    if os.path.basename(value) != value or value in (".", "..") or "\0" in value:
        raise ValueError("dbfilename can't be a path, just a filename")
    return value


_SHUTDOWN_WORDS = ("default", "save", "nosave", "now", "force", "safe", "failover")


def _shutdown(value: str) -> str:
    words = value.lower().split()
    if not words or not set(words) <= set(_SHUTDOWN_WORDS):
        raise ValueError("argument(s) must be one of the following: " + ", ".join(_SHUTDOWN_WORDS))
    if "save" in words and "nosave" in words:
        raise ValueError("shutdown options SAVE and NOSAVE can't be used simultaneously")
    return " ".join(word for word in _SHUTDOWN_WORDS[1:] if word in words) or "default"


# -- the parameters ----------------------------------------------------------------------------

_MAX = (1 << 63) - 1
_INT_MAX = (1 << 31) - 1
_COUNT = _integer(0, _MAX)
_SIZE = _memory(0, _MAX)
_LEAST_SCRIPT_MEMORY = 4 * 1024 * 1024  # the interpreter itself needs half a megabyte


def _script_memory(value: str) -> int:
    size = _SIZE(value)
    if 0 < size < _LEAST_SCRIPT_MEMORY:
        raise ValueError(f"argument must be 0 or at least {_LEAST_SCRIPT_MEMORY}")
    return size


_POLICIES = (
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "noeviction",
)
_PARAMETERS = [
    Parameter("appendonly", False, _yes_no, _render_yes_no, FIXED),
    Parameter("bind", "", _text, str, FIXED),
    Parameter("busy-reply-threshold", 5000, _COUNT, str),
    Parameter("cluster-allow-pubsubshard-when-down", True, _yes_no, _render_yes_no),
    Parameter("cluster-allow-reads-when-down", False, _yes_no, _render_yes_no),
    Parameter("cluster-databases", 1, _integer(1, _INT_MAX), str, IMMUTABLE),
    Parameter("cluster-enabled", False, _yes_no, _render_yes_no, STATED),
    Parameter("cluster-require-full-coverage", True, _yes_no, _render_yes_no),
    Parameter("daemonize", False, _yes_no, _render_yes_no, STATED),
    Parameter("databases", 16, _integer(1, _INT_MAX), str, IMMUTABLE),
    Parameter("dbfilename", "dump.rdb", _file_name, str, PROTECTED),
    Parameter("dir", "", _directory, os.path.abspath, PROTECTED),
    Parameter("enable-debug-command", "no", _one_of("no", "yes", "local"), str, IMMUTABLE),
    Parameter("hash-max-listpack-entries", 512, _COUNT, str),
    Parameter("hash-max-listpack-value", 64, _SIZE, str),
    Parameter("hll-sparse-max-bytes", 3000, _SIZE, str),
    Parameter("io-threads", 1, _integer(1, 256), str, FIXED),
    Parameter("lfu-decay-time", 1, _integer(0, _INT_MAX), str),
    Parameter("lfu-log-factor", 10, _integer(0, _INT_MAX), str),
    Parameter("list-max-listpack-size", -2, _integer(-_INT_MAX - 1, _INT_MAX), str),
    Parameter("maxclients", 10000, _integer(1, (1 << 32) - 1), str),
    Parameter("maxmemory", 0, _memory(0, (1 << 64) - 1), str),
    Parameter("maxmemory-policy", "noeviction", _one_of(*_POLICIES), str),
    Parameter("notify-keyspace-events", 0, _notify, format_flags),
    Parameter("port", 0, _integer(0, 65535), str, FIXED),
    Parameter("proto-max-bulk-len", 512 * 1024 * 1024, _memory(1024 * 1024, _MAX), str),
    Parameter("rdbcompression", True, _yes_no, _render_yes_no),
    Parameter("replicaof", "", _text, str, STATED),
    Parameter("commandlog-execution-slower-than", 10_000, _integer(-1, _MAX), str),
    Parameter("commandlog-large-reply-max-len", 128, _COUNT, str),
    Parameter("commandlog-large-request-max-len", 128, _COUNT, str),
    Parameter("commandlog-reply-larger-than", 1 << 20, _integer(-1, _MAX), str),
    Parameter("commandlog-request-larger-than", 1 << 20, _integer(-1, _MAX), str),
    Parameter("commandlog-slow-execution-max-len", 128, _COUNT, str),
    Parameter("requirepass", "", _text, str),
    Parameter("save", "", _text, str, FIXED),
    # Ours: a script is ended after so many Lua instructions or real milliseconds, or when it needs more bytes of
    # Lua memory; 0 for no limit.
    Parameter("script-instruction-limit", 0, _COUNT, str),
    Parameter("script-memory-limit", 512 * 1024 * 1024, _script_memory, str),
    Parameter("script-time-limit", 0, _COUNT, str),
    Parameter("set-max-intset-entries", 512, _COUNT, str),
    Parameter("set-max-listpack-entries", 128, _COUNT, str),
    Parameter("set-max-listpack-value", 64, _SIZE, str),
    Parameter("shutdown-on-sigint", "default", _shutdown, str),
    Parameter("shutdown-on-sigterm", "default", _shutdown, str),
    Parameter("stream-node-max-bytes", 4096, _SIZE, str),
    Parameter("stream-node-max-entries", 100, _COUNT, str),
    Parameter("timeout", 0, _integer(0, _INT_MAX), str),
    Parameter("tls-port", 0, _integer(0, 65535), str, FIXED),
    Parameter("unixsocket", "", _text, str, STATED),
    Parameter("zset-max-listpack-entries", 128, _COUNT, str),
    Parameter("zset-max-listpack-value", 64, _SIZE, str),
]
PARAMETERS = {parameter.name: parameter for parameter in _PARAMETERS}

#: Old names; the server lists them beside the new ones.
ALIASES = {
    "hash-max-ziplist-entries": "hash-max-listpack-entries",
    "hash-max-ziplist-value": "hash-max-listpack-value",
    "list-max-ziplist-size": "list-max-listpack-size",
    "lua-time-limit": "busy-reply-threshold",
    "slowlog-log-slower-than": "commandlog-execution-slower-than",
    "slowlog-max-len": "commandlog-slow-execution-max-len",
    "slaveof": "replicaof",
    "zset-max-ziplist-entries": "zset-max-listpack-entries",
    "zset-max-ziplist-value": "zset-max-listpack-value",
}

#: What the server can be configured to and the emulator cannot: refused by name, never taken for a typing error.
_OTHERS = """
    acl-pubsub-default aclfile acllog-max-len active-defrag-cycle-max active-defrag-cycle-min active-defrag-cycle-us
    active-defrag-ignore-bytes active-defrag-max-scan-fields active-defrag-threshold-lower
    active-defrag-threshold-upper active-expire-effort activedefrag activerehashing always-show-logo
    aof-load-truncated aof-rewrite-cpulist aof-rewrite-incremental-fsync aof-timestamp-enabled aof-use-rdb-preamble
    aof_rewrite_cpulist appenddirname appendfilename appendfsync auto-aof-rewrite-min-size
    auto-aof-rewrite-percentage availability-zone bgsave-cpulist bgsave_cpulist bind-source-addr bio-cpulist
    bio_cpulist client-output-buffer-limit client-query-buffer-limit cluster-allow-replica-migration
    cluster-announce-bus-port cluster-announce-client-ipv4 cluster-announce-client-ipv6 cluster-announce-client-port
    cluster-announce-client-tls-port cluster-announce-hostname cluster-announce-human-nodename cluster-announce-ip
    cluster-announce-port cluster-announce-tls-port cluster-blacklist-ttl cluster-config-file
    cluster-config-save-behavior cluster-link-sendbuf-limit cluster-manual-failover-timeout
    cluster-migration-barrier cluster-node-timeout cluster-port cluster-preferred-endpoint-type
    cluster-replica-no-failover cluster-replica-validity-factor
    cluster-slave-no-failover cluster-slave-validity-factor cluster-slot-migration-log-max-len
    cluster-slot-stats-enabled
    crash-log-enabled crash-memcheck-enabled disable-thp
    dual-channel-replication-enabled enable-module-command enable-protected-configs extended-redis-compatibility
    hash-seed hide-user-data-from-log hz ignore-warnings import-mode jemalloc-bg-thread
    latency-monitor-threshold latency-tracking latency-tracking-info-percentiles lazyfree-lazy-eviction
    lazyfree-lazy-expire lazyfree-lazy-server-del lazyfree-lazy-user-del lazyfree-lazy-user-flush
    list-compress-depth locale-collate log-format log-timestamp-format logfile loglevel masterauth
    masteruser max-new-connections-per-cycle max-new-tls-connections-per-cycle maxmemory-clients
    maxmemory-eviction-tenacity maxmemory-samples min-replicas-max-lag min-replicas-to-write min-slaves-max-lag
    min-slaves-to-write mptcp no-appendfsync-on-rewrite oom-score-adj oom-score-adj-values pidfile
    prefetch-batch-max-size primaryauth primaryuser proc-title-template propagation-error-behavior protected-mode
    rdb-del-sync-files rdb-save-incremental-fsync rdb-version-check rdbchecksum rdma-bind
    rdma-completion-vector rdma-port rdma-rx-size repl-backlog-size repl-backlog-ttl repl-disable-tcp-nodelay
    repl-diskless-load repl-diskless-sync repl-diskless-sync-delay repl-diskless-sync-max-replicas repl-mptcp
    repl-ping-replica-period repl-ping-slave-period repl-timeout replica-announce-ip replica-announce-port
    replica-announced replica-ignore-disk-write-errors replica-ignore-maxmemory replica-lazy-flush replica-priority
    replica-read-only replica-serve-stale-data server-cpulist server_cpulist set-proc-title shutdown-timeout
    slave-announce-ip slave-announce-port slave-ignore-maxmemory slave-lazy-flush slave-priority slave-read-only
    slave-serve-stale-data slot-migration-max-failover-repl-bytes
    socket-mark-id stop-writes-on-bgsave-error supervised syslog-enabled
    syslog-facility syslog-ident tcp-backlog tcp-keepalive
    tls-auth-clients tls-auth-clients-user tls-auto-reload-interval tls-ca-cert-dir tls-ca-cert-file tls-cert-file
    tls-ciphers tls-ciphersuites tls-client-cert-file tls-client-key-file tls-client-key-file-pass tls-cluster
    tls-dh-params-file tls-key-file tls-key-file-pass tls-prefer-server-ciphers tls-protocols tls-replication
    tls-session-cache-size tls-session-cache-timeout tls-session-caching tracking-table-max-keys unixsocketgroup
    unixsocketperm
"""
UNSUPPORTED = frozenset(_OTHERS.split())


#: Parameters that the values themselves look at, by the name they have in `Limits`.
_LIMITS = {
    "hash_max_listpack_entries": "hash_entries",
    "hash_max_listpack_value": "hash_value",
    "hll_sparse_max_bytes": "hll_sparse_bytes",
    "list_max_listpack_size": "list_size",
    "set_max_intset_entries": "set_intset",
    "set_max_listpack_entries": "set_entries",
    "set_max_listpack_value": "set_value",
    "stream_node_max_bytes": "stream_node_bytes",
    "stream_node_max_entries": "stream_node_entries",
    "zset_max_listpack_entries": "zset_entries",
    "zset_max_listpack_value": "zset_value",
}


class Config:
    """Parsed values as attributes, named as the parameters with underscores.

    `limits` mirrors those that collections need; every collection of the server is made with it.
    """

    limits: Limits
    changes: int  # how often anything was set

    def __init__(self, settings: dict[str, Any] | None = None) -> None:
        super().__setattr__("changes", 0)
        self.limits = Limits()
        for parameter in PARAMETERS.values():
            setattr(self, parameter.attribute, parameter.default)
        for name, value in (settings or {}).items():
            name = name.replace("_", "-")
            parameter = PARAMETERS.get(ALIASES.get(name, name))  # type: ignore[assignment]
            if parameter is None:
                raise ValueError(f"unknown configuration parameter {name!r}")
            text = _render_yes_no(value) if isinstance(value, bool) else str(value)
            try:
                parsed = parameter.parse(text)
            except ValueError as problem:
                raise ValueError(f"configuration parameter {name!r}: {problem}") from None
            if not parameter.choosable and parsed != parameter.default:
                raise ValueError(f"emuredis does not support the configuration parameter {name}={text!r}")
            setattr(self, parameter.attribute, parsed)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        super().__setattr__("changes", self.changes + 1)
        if name in _LIMITS:
            setattr(self.limits, _LIMITS[name], value)

    def __getattr__(self, name: str) -> Any:  # only reached for unknown names; keeps type checkers content
        raise AttributeError(name)

    @property
    def password(self) -> bytes:
        return str(self.requirepass).encode("utf-8", "surrogateescape")

    def get(self, name: str) -> str:
        """The text CONFIG GET answers for a known parameter."""
        parameter = PARAMETERS[name]
        return parameter.render(getattr(self, parameter.attribute))
