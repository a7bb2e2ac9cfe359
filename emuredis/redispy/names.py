"""Which commands a server has, asked over redis-py."""

from __future__ import annotations

from typing import Any

import redis

__all__ = ["names_at"]


def names_at(url: str) -> set[str]:
    """The names of COMMAND, subcommands as ``config|get``. Raises ValueError for a bad URL, OSError for no answer."""
    client = redis.Redis.from_url(url.replace("valkey://", "redis://", 1), protocol=2)
    client.response_callbacks.clear()
    try:
        rows: list[Any] = client.execute_command("COMMAND")
    except redis.ConnectionError as problem:
        raise OSError(f"no server answers at {url}: {problem}") from problem
    except redis.ResponseError as problem:
        raise OSError(f"the server at {url} does not answer COMMAND: {problem}") from problem
    finally:
        client.close()
    names = set()
    for row in rows:
        names.add(row[0].decode())
        names.update(sub[0].decode() for sub in (row[9] if len(row) > 9 else ()))
    return names
