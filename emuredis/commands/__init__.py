"""The commands, one module per group of COMMAND DOCS; importing this package fills `emuredis.spec.TABLE`.

A handler is ``def name(ctx, argv)``: ``ctx`` the session, ``argv`` the words of the command including its name.
It parses everything, looks up, changes through the values' methods, announces the change once with
``db.touch``, and returns a neutral reply. It raises ReplyError before it has changed anything.
"""

from __future__ import annotations

import importlib

_MODULES = (
    "strings",
    "generic",
    "expiry",
    "scanning",
    "objects",
    "dump",
    "sorting",
    "bitmaps",
    "lcs",
    "hyperloglog",
    "hashes",
    "hash_expiry",
    "lists",
    "sets",
    "zsets",
    "zset_ranges",
    "zset_algebra",
    "geo",
    "blocking",
    "streams",
    "stream_groups",
    "stream_info",
    "transactions",
    "scripting",
    "functions",
    "pubsub",
    "connection",
    "clients",
    "server",
    "persistence",
    "info",
    "memory",
    "monitoring",
    "lone",
    "logs",
    "replication",
    "introspection",
    "cluster",
    "cluster_admin",
    "cluster_scan",
    "migrating",
)

for _name in _MODULES:
    importlib.import_module(f"emuredis.commands.{_name}")
