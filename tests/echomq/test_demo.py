"""The demo: its books must balance, on a manual clock and on a real server, and bad input is refused by line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from echomq.demo import DEFAULT_FILE, main
from echomq.demo.play import Play
from echomq.demo.report import Progress, timeline
from echomq.demo.story import Notice, load
from echomq.embedded import manual_clock
from echomq.endpoint import Endpoint
from echomq.errors import ArgumentError


def _play(notices: list[Notice]) -> Play:
    return Play(Endpoint("emuredis://", clock=manual_clock()), notices, 240, Progress())


def test_the_whole_file_comes_to_a_clean_audit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out = capsys.readouterr().out
    assert "refused (EMQKIND)" in out
    assert "none lost, none twice" in out
    assert "address does not exist (attempt 4)" in out


def test_every_part_of_the_story_happens() -> None:
    result = _play(load(DEFAULT_FILE)).run()
    assert result.clean
    assert result.deferred > 0 and result.retried > 0
    assert (result.crashed, result.reaped, result.dead) == (1, 1, 1)
    assert result.enqueued == result.notices + result.deferred


def test_the_audit_sees_a_lost_and_a_doubled_notice() -> None:
    notices = [Notice(f"NOT0000000000{n}", "x", "email", "t", 1) for n in range(3)]
    play = _play(notices)
    send = play.office.handle

    def forgetful(job):  # type: ignore[no-untyped-def]
        outcome = send(job)
        notice = json.loads(job.payload)["notice"]
        if notice.endswith("1"):
            del play.office.sent[notice]
        if notice.endswith("2"):
            play.office.sent[notice] *= 2
        return outcome

    for worker in play.workers:
        worker.consumer.handler = forgetful
    result = play.run()
    assert result.lost == ["NOT00000000001"] and result.twice == ["NOT00000000002"] and not result.clean


@pytest.mark.wall
def test_the_demo_runs_on_a_real_server(live_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--url", live_url, "--speed", "3000"]) == 0
    assert "none lost, none twice" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "problem"),
    [("{", ":1: "), ('{"notice": 1}', ":1: "), ('{"color": "red"}', "unknown field 'color'")],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "notices.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(ArgumentError, match=problem):
        load(path)


def test_a_missing_file_is_a_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--file", str(tmp_path / "none.jsonl")]) == 2
    assert "name a file with --file" in capsys.readouterr().err


def test_a_timeline_of_nothing_is_empty() -> None:
    assert timeline([]) == []
