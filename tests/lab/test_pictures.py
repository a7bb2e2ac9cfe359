"""Runs as text: Mermaid, ShiViz, JSON lines, SVG, a page for notebooks."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from emuredis.lab import Exploration, LabClient, Run, exactly_one_place, explore


async def waits(client: LabClient) -> None:
    await client.blpop("list", 5)


async def pushes(client: LabClient) -> None:
    await client.eval(
        "redis.call('SET', KEYS[1], '<&;#') return redis.call('RPUSH', KEYS[2], 'x')", ["k", "list"]
    )


async def pops(client: LabClient) -> None:
    job = await client.rpop("queue")
    if job is not None:
        await client.lpush("busy", job)


@pytest.fixture(scope="module")
def found() -> Exploration:
    return explore(
        {"wait er": waits, "pushes": pushes, "pops": pops}, setup=lambda client: client.call("RPUSH", "queue", "job"),
        crashes=1, lost_replies=1, clock_steps=1, check=exactly_one_place("job", "queue", "busy"), allow=["stuck"],
    )  # fmt: skip


@pytest.fixture(scope="module")
def run(found: Exploration) -> Run:
    assert found.example is not None
    return found.example


def test_mermaid(run: Run) -> None:
    text = run.to_mermaid()
    assert text.startswith("sequenceDiagram\n    participant A0 as wait er\n")
    assert "A0->>S: BLPOP list 5" in text
    assert "S-->>A0: " in text
    assert ";" not in text


def test_shiviz(run: Run) -> None:
    lines = run.to_shiviz().splitlines()
    for head in lines[::2]:
        host, clock = head.split(" ", 1)
        assert host in ("server", "wait_er", "pushes", "pops")
        assert json.loads(clock)[host] >= 1
    last = json.loads([line for line in lines[::2] if line.startswith("server ")][-1].split(" ", 1)[1])
    assert last["server"] == sum(line.startswith("server ") for line in lines[::2])


def test_json_lines(found: Exploration) -> None:
    assert found.counterexample is not None
    entries: list[dict[str, Any]] = [
        json.loads(line) for line in found.counterexample.to_jsonl().splitlines()
    ]
    assert [entry["choice"] for entry in entries] == found.counterexample.choices
    assert any(entry["changes"].get("queue") == ["['job']", "nothing"] for entry in entries)


def test_svg(run: Run) -> None:
    picture = ElementTree.fromstring(run.to_svg())
    titles = [node.text for node in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert any(title and title.startswith("BLPOP list 5") for title in titles)


def test_notebooks(found: Exploration, run: Run) -> None:
    for shown in (found, run):
        text = shown._repr_html_()
        assert text.startswith("<iframe srcdoc=")
        assert "<script" not in text  # it is escaped


def test_the_clock_and_what_was_woken_are_in_the_timeline() -> None:
    shown = explore([waits], allow=["stuck"]).example
    assert shown is not None
    assert "~ clock: 1704067205000" in shown.timeline(width=40)
    assert "BLPOP woken -> nil" in shown.timeline(width=40)
