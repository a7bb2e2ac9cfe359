"""Run every proof; every script has one; the page of counts is up to date."""

from __future__ import annotations

import pytest

from echomq.script import Scripts
from echomq.states import TRANSITIONS
from tests.interleaving.page import PAGE, render, results
from tests.interleaving.proofs import PROOFS, Proof


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.name)
def test_proof(proof: Proof) -> None:
    found = results()[proof.name]
    assert found.ok, str(found)
    assert found.complete, found.summary


def test_every_script_has_a_proof() -> None:
    explored = {script for proof in PROOFS for script in proof.scripts}
    assert set(Scripts().names()) - explored == set()
    assert len({proof.name for proof in PROOFS}) == len(PROOFS)


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == render(results()), "run: python -m tests.interleaving.page"


@pytest.mark.parametrize("script", ["enqueue_flow", "enqueue_flow_child"])
def test_flows_sent_twice_are_found(script: str) -> None:
    """The protocol's quirk 18, which is why they are not retried blindly; it also shows that the oracle sees."""
    proof = next(p for p in PROOFS if p.name == f"{script} from nowhere")
    twice = Proof(
        proof.name, proof.scripts, {**proof.actors, "again": proof.actors[script]}, proof.setup, proof.check
    )
    found = twice.run()
    assert found.counterexample is not None
    assert "is in pending, active" in found.counterexample.message


BROKEN = {
    # a claim that forgets to write the lease: the job is in no place
    "claim": ("call('ZADD', KEYS[2]", "call('ECHO', KEYS[2]) local _ = (function(...) end)('ZADD', KEYS[2]"),
    # a completion that does not look at the token: a stale owner ends a job that another one holds
    "complete": ("~= ARGV[2]", "== 'never'"),
    # a reaper that leaves the id in the active set
    "reap": ("'ZREM'", "'ZSCORE'"),
}


@pytest.mark.parametrize("script", BROKEN)
def test_a_broken_script_is_found(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same proofs on scripts with one fault each."""
    from echomq.script import Script
    from tests.interleaving import driver

    source = driver.SCRIPTS[script].source.decode()
    old, new = BROKEN[script]
    assert old in source
    monkeypatch.setitem(driver.SCRIPTS._loaded, script, Script(script, source.replace(old, new).encode()))
    broken = [proof for proof in PROOFS if script in proof.scripts and not proof.run().ok]
    assert broken


def test_the_table_of_transitions_is_covered_place_by_place() -> None:
    names = {proof.name for proof in PROOFS}
    assert {f"{row.script} from {source}" for row in TRANSITIONS for source in row.sources} <= names
