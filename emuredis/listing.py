"""``python -m emuredis commands``: which commands there are, and how many of a real server's.

Without a server it prints what is declared here, by group. With one it compares names, subcommands included, with the
server's own COMMAND, and names what is missing and what the server does not have. Only names are compared here; that
the commands answer alike is what the conformance lines are for.
"""

from __future__ import annotations

from typing import Any

from emuredis.spec import TABLE

__all__ = ["compared", "listed"]


def listed() -> list[str]:
    """Lines: each group and its commands."""
    groups: dict[str, list[str]] = {}
    for cmd in TABLE.everything():
        groups.setdefault(cmd.group, []).append(_shown(cmd.name))
    lines = [f"{group} ({len(names)}): {', '.join(sorted(names))}" for group, names in sorted(groups.items())]
    return [*lines, f"{sum(map(len, groups.values()))} commands and subcommands"]


def compared(url: str) -> tuple[list[str], bool]:
    """Lines that compare our names with those of the server at ``url``, and whether all of its are here.

    Raises ImportError without redis-py, ValueError for a bad URL, OSError when nobody answers.
    """
    ours = {cmd.name for cmd in TABLE.everything()}
    theirs = _names_at(url)
    missing, extra = sorted(theirs - ours), sorted(ours - theirs)
    known = len(theirs & ours)
    lines = [f"{known} of {len(theirs)} names known ({known / max(1, len(theirs)):.0%})"]
    if missing:
        lines.append("missing: " + ", ".join(map(_shown, missing)))
    if extra:
        lines.append("not in the server: " + ", ".join(map(_shown, extra)))
    return lines, not missing


def _shown(name: str) -> str:
    return name.upper().replace("|", " ")


def _names_at(url: str) -> set[str]:
    try:
        import redis
    except ImportError as problem:
        raise ImportError(
            "comparing with a server needs redis-py: pip install 'emuredis[redis]'"
        ) from problem
    client = redis.Redis.from_url(url.replace("valkey://", "redis://", 1), protocol=2)
    client.response_callbacks.clear()
    try:
        rows: list[Any] = client.execute_command("COMMAND")  # type: ignore[assignment]
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
