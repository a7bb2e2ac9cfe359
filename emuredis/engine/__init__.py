"""The engine: runs commands of sessions against a keyspace, one at a time."""
