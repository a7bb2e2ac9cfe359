"""INFO: one function per section, each giving the fields that are true of an emulator.

What only a program in C on a machine of its own could tell (CPU, per-command times) is not made up: such fields
are left out, and a section that would consist of them alone is refused by name. To add a field: a row in its section.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from emuredis import errors
from emuredis.commands.connection import VALKEY_VERSION
from emuredis.engine.memory import BASE
from emuredis.replies import Reply, Verbatim
from emuredis.spec import command

if TYPE_CHECKING:
    from emuredis.engine.engine import Engine
    from emuredis.engine.session import Session

_Fields = list[tuple[str, Any]]
_NS = 1_000_000_000


def _server(engine: Engine) -> _Fields:
    now = engine.keyspace.ns
    uptime = max(now - engine.started_ns, 0) // _NS
    return [
        ("redis_version", "7.2.4"),  # what the server says for clients that know nothing newer
        ("server_name", "valkey"),
        ("valkey_version", VALKEY_VERSION.decode()),
        ("valkey_release_stage", "ga"),
        ("server_mode", "standalone" if engine.cluster is None else "cluster"),
        ("os", _os()),
        ("arch_bits", 64 if sys.maxsize > 1 << 32 else 32),
        ("process_id", os.getpid()),
        ("run_id", engine.run_id),
        ("tcp_port", engine.config.port),
        ("server_time_usec", now // 1000),
        ("uptime_in_seconds", uptime),
        ("uptime_in_days", uptime // 86400),
        ("executable", sys.executable),
        ("config_file", ""),
    ]


def _os() -> str:
    try:
        name = os.uname()
    except AttributeError:  # not a Unix
        return sys.platform
    return f"{name.sysname} {name.release} {name.machine}"


def _clients(engine: Engine) -> _Fields:
    sessions = engine.sessions.values()
    blocked = [session.waiter for session in sessions if session.waiter is not None]
    return [
        ("connected_clients", len(sessions)),
        ("cluster_connections", 0),
        ("maxclients", engine.config.maxclients),
        ("blocked_clients", len(blocked)),
        ("tracking_clients", 0),
        ("pubsub_clients", sum(1 for session in sessions if session.subscriptions)),
        ("watching_clients", sum(1 for session in sessions if session.watched)),
        ("clients_in_timeout_table", sum(1 for waiter in blocked if waiter.deadline_ns is not None)),
        ("total_watched_keys", len(engine.keyspace.watchers)),
        ("total_blocking_keys", len(engine.keyspace.waiting)),
        ("total_blocking_keys_on_nokey", 0),
        ("paused_reason", "none"),
        ("paused_actions", "none"),
        ("paused_timeout_milliseconds", 0),
    ]


def _memory(engine: Engine) -> _Fields:
    memory = engine.memory
    used, limit = memory.used(), engine.config.maxmemory
    libraries, functions = (0, 0) if engine.functions is None else engine.functions.counts()
    return [
        ("used_memory", used),
        ("used_memory_human", _human(used)),
        ("used_memory_peak", memory.peak),
        ("used_memory_peak_human", _human(memory.peak)),
        ("used_memory_startup", BASE),
        ("used_memory_dataset", used - BASE),
        ("number_of_cached_scripts", 0 if engine.scripting is None else engine.scripting.count()),
        ("number_of_functions", functions),
        ("number_of_libraries", libraries),
        ("maxmemory", limit),
        ("maxmemory_human", _human(limit)),
        ("maxmemory_policy", engine.config.maxmemory_policy),
        ("lazyfree_pending_objects", 0),
        ("lazyfreed_objects", 0),
    ]


def _human(size: int) -> str:
    """A number of bytes with two decimals and a unit."""
    if size < 1024:
        return f"{size}B"
    for exponent, unit in enumerate("KMGT", 1):
        if size < 1024 ** (exponent + 1) or unit == "T":
            break
    return f"{size / 1024**exponent:.2f}{unit}"


def _persistence(engine: Engine) -> _Fields:
    saves = engine.persistence
    return [
        ("loading", 0),
        ("async_loading", 0),
        ("rdb_changes_since_last_save", engine.keyspace.dirty),
        ("rdb_bgsave_in_progress", 0),
        ("rdb_last_save_time", saves.last_save),
        ("rdb_last_bgsave_status", "ok" if saves.last_ok else "err"),
        ("rdb_last_bgsave_time_sec", 0 if saves.tried else -1),
        ("rdb_current_bgsave_time_sec", -1),
        ("rdb_saves", saves.saves),
        ("rdb_last_load_keys_expired", saves.expired),
        ("rdb_last_load_keys_loaded", saves.loaded),
        ("aof_enabled", 0),
        ("aof_rewrite_in_progress", 0),
        ("aof_rewrite_scheduled", 0),
    ]


def _stats(engine: Engine) -> _Fields:
    keyspace, pubsub = engine.keyspace, engine.pubsub
    return [
        ("total_connections_received", engine.connections - engine.connections_before),
        ("total_commands_processed", engine.commands + sum(s.commands for s in engine.sessions.values()) - 1),
        ("expired_keys", keyspace.expired),
        ("expired_fields", keyspace.expired_fields),
        ("evicted_keys", keyspace.evicted),
        ("evicted_clients", 0),
        ("evicted_scripts", 0 if engine.scripting is None else engine.scripting.evicted),
        ("keyspace_hits", keyspace.hits),
        ("keyspace_misses", keyspace.misses),
        ("pubsub_channels", len(pubsub.channels)),
        ("pubsub_patterns", len(pubsub.patterns)),
        ("pubsubshard_channels", len(pubsub.shard_channels)),
        ("tracking_total_keys", 0),
        ("tracking_total_items", 0),
        ("tracking_total_prefixes", 0),
    ]


def _replication(engine: Engine) -> _Fields:
    return [
        ("role", "master"),
        ("connected_slaves", 0),
        ("replicas_waiting_psync", 0),
        ("master_failover_state", "no-failover"),
        ("master_repl_offset", 0),
        ("second_repl_offset", -1),
        ("repl_backlog_active", 0),
        ("repl_backlog_first_byte_offset", 0),
        ("repl_backlog_histlen", 0),
    ]


def _modules(engine: Engine) -> _Fields:
    options = "handle-repl-async-load|handle-atomic-slot-migration"
    return [("module", f"name=lua,ver=1,api=1,filters=0,usedby=[],using=[],options=[{options}]")]


def _cluster(engine: Engine) -> _Fields:
    return [("cluster_enabled", int(engine.cluster is not None))]


def _keyspace(engine: Engine) -> _Fields:
    now = engine.keyspace.now
    fields: _Fields = []
    for db in engine.keyspace.databases:
        if keys := len(db):
            left = [at - now for at in db.deadlines.values()]
            average = sum(left) // len(left) if left else 0
            text = f"keys={keys},expires={len(left)},avg_ttl={average},keys_with_volatile_items=0"
            fields.append((f"db{db.index}", text))
    return fields


def _tls(engine: Engine) -> _Fields:
    fields = [("serial", "none"), ("expires_in_seconds", 0)]
    return [
        (f"tls_{what}_cert_{field}", text) for what in ("server", "client", "ca") for field, text in fields
    ]


#: Section, heading, fields, and whether plain INFO has it; in the server's order.
_SECTIONS: list[tuple[str, str, Callable[[Engine], _Fields], bool]] = [
    ("server", "Server", _server, True),
    ("tls", "TLS", _tls, False),
    ("clients", "Clients", _clients, True),
    ("memory", "Memory", _memory, True),
    ("persistence", "Persistence", _persistence, True),
    ("stats", "Stats", _stats, True),
    ("replication", "Replication", _replication, True),
    ("modules", "Modules", _modules, True),
    ("cluster", "Cluster", _cluster, True),
    ("keyspace", "Keyspace", _keyspace, True),
]
#: The server's other sections.
_REFUSED = ("commandstats", "cpu", "debug", "errorstats", "latencystats")


@command("INFO [section...]", "loading stale", group="server", since="1.0.0", complexity="O(1)", acl="dangerous",
         tips="nondeterministic_output request_policy:all_shards response_policy:special")  # fmt: skip
def info(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells about the server, section by section."""
    asked = {word.decode("utf-8", "surrogateescape").lower() for word in argv[1:]} or {"default"}
    for section in _REFUSED:
        if section in asked:
            raise errors.unsupported(f"INFO {section}")
    everything = bool(asked & {"all", "everything"})
    parts: list[str] = []
    for section, heading, fields, common in _SECTIONS:
        if section in asked or everything or (common and "default" in asked):
            lines = "".join(f"{name}:{value}\r\n" for name, value in fields(ctx.engine))
            parts.append(f"# {heading}\r\n{lines}")
    return Verbatim("\r\n".join(parts).encode())
