"""``python -m emuredis commands``: which commands there are, and how many of a real server's.

Without a server it prints what is declared here, by group. With one it compares names, subcommands included, with the
server's own COMMAND, and names what is missing and what the server does not have. Only names are compared here; that
the commands answer alike is what the conformance lines are for.
"""

from __future__ import annotations

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
    from emuredis.redispy.names import names_at  # needs redis-py

    theirs = names_at(url)
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
