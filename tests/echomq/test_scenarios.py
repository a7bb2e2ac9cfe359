"""The protocol's scenarios on the emulator and on the live server, ours and with a folder of scripts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from echomq import conformance
from echomq.endpoint import Endpoint
from echomq.errors import ArgumentError
from echomq.script import OUR_FOLDER, Scripts

REQUIRED = (
    "fence mint duplicate kind order claim stale complete retry dead reap rotate pause limit schedule repeat "
    "backoff resubscribe reassign lane_drain reap_group weighted_proportion starvation_drill batch_claim "
    "batch_claim_short batch_partial_failure batch_shaping_floor batch_shaping_timeout "
    "batch_shaping_partial_failure grouped_batch_affinity grouped_batch_ceiling grouped_batch_fairness "
    "batch_partition batch_delay batch_delay_stale"
).split()


def test_the_required_scenarios_are_there_in_order() -> None:
    names = conformance.names()
    assert [name for name in names if name in REQUIRED] == REQUIRED
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", conformance.names())
def test_scenario(endpoint: Endpoint, name: str) -> None:
    (result,) = conformance.run(endpoint, only=name, time_scale=3)
    assert result.problem is None


def test_scenarios_leave_no_key(endpoint: Endpoint) -> None:
    for _ in conformance.run(endpoint, only="lane_drain"):
        pass
    connection = endpoint.connect()
    assert connection.call("KEYS", "*") == [b"{emq}:version"]
    connection.close()


@pytest.mark.wall
def test_scripts_of_a_folder_take_part(live_endpoint: Endpoint, tmp_path: Path) -> None:
    shutil.copy(OUR_FOLDER / "claim.lua", tmp_path)
    (tmp_path / "promote.lua").write_text("return 0")
    scripts = Scripts(tmp_path)
    outcome = {r.name: r.passed for r in conformance.run(live_endpoint, scripts=scripts, only="claim")}
    outcome |= {r.name: r.passed for r in conformance.run(live_endpoint, scripts=scripts, only="schedule")}
    assert outcome == {"claim": True, "schedule": False}


def test_a_scenario_that_is_not_there(embedded_endpoint: Endpoint) -> None:
    with pytest.raises(ArgumentError, match="no scenario"):
        list(conformance.run(embedded_endpoint, only="nonsense"))
