"""``python -m emuredis commands``: the list, the comparison with a real server, and its failures."""

from __future__ import annotations

import pytest

from emuredis.cli import main
from emuredis.spec import TABLE


def test_the_list_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["commands"]) == 0
    out = capsys.readouterr().out
    assert "CONFIG GET" in out and "ZADD" in out
    assert out.endswith(f"{len(TABLE.everything())} commands and subcommands\n")


def test_a_comparison_counts_and_names_what_is_missing(
    live_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["commands", "--against", live_url])
    lines = capsys.readouterr().out.splitlines()
    assert " names known (" in lines[0]
    assert status == (1 if any(line.startswith("missing: ") for line in lines) else 0)
    assert not any(line.startswith("not in the server") for line in lines)


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1", "gopher://x"])
def test_a_server_that_cannot_be_asked_is_one_line(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["commands", "--against", url]) == 2
    error = capsys.readouterr().err
    assert error.startswith("emuredis: ") and error.count("\n") == 1
