"""The engine alone: units, sessions, waiting; no socket, no client library, a manual clock."""
