"""The command line: what it prints, what it refuses, how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from echomq.cli import main
from echomq.endpoint import Endpoint
from echomq.jobs import Jobs


@pytest.mark.wall
def test_conformance_prints_a_line_a_scenario(live_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "--url", live_url, "--only", "claim"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["claim", "ok"]
    assert lines[-1] == "1 passed, 0 failed"


def test_conformance_runs_embedded_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "--only", "reap"]) == 0
    assert capsys.readouterr().out.endswith("1 passed, 0 failed\n")


@pytest.mark.wall
def test_a_failure_is_named_and_counted(
    live_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "reap.lua").write_text("return 0")
    args = [
        "conformance",
        "--url",
        live_url,
        "--scripts",
        str(tmp_path),
        "--only",
        "reap",
        "--time-scale",
        "1",
    ]
    assert main(args) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"scripts from {tmp_path}: reap\n")
    assert "FAILED  ScenarioFailed: reap: got 0, wanted 1" in out
    assert out.endswith("0 passed, 1 failed\n")


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["stats", "--url", "emuredis://lab", "q"], "python -m emuredis serve"),
        (["worker", "--url", "emuredis://", "q", "m:f"], "python -m emuredis serve"),
        (["stats", "--url", "redis://127.0.0.1:1", "q"], "host 127.0.0.1 port 1"),
        (["conformance", "--only", "nonsense", "--url", "emuredis://"], "no scenario"),
        (["conformance", "--scripts", "no-such-folder"], "no folder of scripts"),
        (["conformance", "--time-scale", "0"], "--time-scale"),
        (["conformance", "--url", "ftp://x"], "emuredis://"),
        (["stats", "--url", "redis://h:99999", "q"], "redis://h:99999: Port out of range 0-65535"),
        (["stats", "--url", "redis://h:port", "q"], "redis://h:port: Port could not be cast"),
        (["stats", "--url", "redis://h:0", "q"], "redis://h:0: 0 is not a port"),
        (["stats", "--url", "redis://[::1", "q"], "redis://[::1: Invalid IPv6 URL"),
    ],
)
def test_refusals(args: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    "handler", ["nocolon", "json:", "no_such_module_at_all:f", "json:nothing", "json:__name__"]
)
def test_handlers_refused(live_url: str, handler: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worker", "--url", live_url, "q", handler]) == 2
    assert handler in capsys.readouterr().err


def test_stats(live_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    connection = Endpoint(live_url).connect()
    jobs = Jobs(connection, "mail")
    jobs.add(b"x")
    jobs.enqueue_in(jobs.minter.mint(), b"y", 60_000)
    connection.close()
    assert main(["stats", "--url", live_url, "mail"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["queue"], report["pending"], report["schedule"], report["paused"]) == ("mail", 1, 1, False)
    assert 0 < report["next_run_in_ms"] <= 60_000
    assert report["next_deadline_in_ms"] is None
