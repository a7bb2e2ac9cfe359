"""Schedules drawn and shrunk by Hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import find, given, settings

from emuredis.lab import LabClient, exactly_one_place
from emuredis.lab.strategies import Schedule, schedules


async def pops(client: LabClient) -> None:
    job = await client.rpop("queue")
    if job is not None:
        await client.lpush("busy", job)


async def moves(client: LabClient) -> None:
    await client.lmove("queue", "busy", "RIGHT", "LEFT")


def fill(client: Any) -> None:
    client.call("RPUSH", "queue", "job")


PLACES = exactly_one_place("job", "queue", "busy")


def message(schedule: Schedule, program: Any) -> str:
    return schedule.run([program, program], setup=fill, check=PLACES, crashes=1).message


def test_the_simplest_schedule_is_found() -> None:
    worst = find(schedules(), lambda schedule: message(schedule, pops) != "")
    run = worst.run([pops, pops], setup=fill, check=PLACES, crashes=1)
    assert run.message == "job is lost: it is in none of queue, busy"
    assert sorted(run.choices) in (["a", "a!", "b"], ["a", "b", "b!"])


@given(schedules())
@settings(max_examples=50)
def test_what_holds_holds(schedule: Schedule) -> None:
    assert message(schedule, moves) == ""


def test_no_picks_is_one_after_the_other() -> None:
    assert Schedule([]).run([pops, pops], setup=fill).choices == ["a", "a", "b"]
    assert repr(Schedule([1, 2])) == "Schedule([1, 2])"
