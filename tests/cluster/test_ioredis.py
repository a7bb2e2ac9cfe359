"""ioredis' Cluster from Node: the same program on a live cluster and on emuredis.

Skipped, and counted, where there is no Node, or npm cannot get the packages that ``node/package-lock.json`` names.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import emuredis
from tests.support.live_cluster import LiveCluster

SOURCE = Path(__file__).parent / "node"
INSTALL_SECONDS = 60


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, notes: dict[str, Counter[str]]) -> Path:
    """The program, beside the packages it needs."""
    missing = next((name for name in ("node", "npm") if shutil.which(name) is None), None)
    if missing is None:
        place = tmp_path_factory.mktemp("node")
        for name in ("package.json", "package-lock.json", "program.js"):
            shutil.copy(SOURCE / name, place)
        try:
            done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=place,
                                  capture_output=True, timeout=INSTALL_SECONDS)  # fmt: skip
            if done.returncode == 0:
                return place / "program.js"
            missing = "npm's registry"
        except subprocess.TimeoutExpired:
            missing = "npm's registry"
    notes["programs for Node left out, for want of"][missing] += 1
    pytest.skip(f"no {missing}")


def run(program: Path, port: int) -> Any:
    done = subprocess.run(["node", str(program), str(port)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_ioredis(program: Path, live_cluster: LiveCluster) -> None:
    with emuredis.Emulator(cluster=3, seed=1).serve() as servers:
        ours = run(program, servers.address[1])
    theirs = run(program, live_cluster.addresses[0][1])
    restore(live_cluster)
    assert ours == theirs
    assert ours[-1] == ["news", "hello"]


def restore(cluster: LiveCluster) -> None:
    """Put slot 935 back where the other tests expect it."""
    first = cluster.connect(0)
    name = first.call("CLUSTER", "MYID").value
    first.close()
    for number in (1, 2):
        node = cluster.connect(number)
        node.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", 935, 935, "NODE", name)
        node.close()  # who has not got the slot refuses
    cluster.settled()
