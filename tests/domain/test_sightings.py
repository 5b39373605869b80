"""A look at a target is worth something while the target is what it was when it was asked."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ledger.domain.effects import EffectState, ProposalSpec, permit, propose
from ledger.domain.errors import LedgerError
from tests.domain.effect_facts import BODY, NOW, REQUEST, Scene, effect, seen, target

SECOND = timedelta(seconds=1)
SPEC = ProposalSpec("other", "payments.refund", "payments", "order/17", REQUEST)
LOOK = seen("v1", ago=1)
ANEW = {
    "after the look": (LOOK, NOW),
    "while it was looked at, by a clock read before": (replace(LOOK, since=NOW - 5 * SECOND), NOW - 2 * SECOND),
}


@pytest.mark.parametrize("way", ANEW)
def test_nothing_is_proposed_on_a_look_at_a_target_that_was_registered_anew(way: str) -> None:
    look, anew = ANEW[way]
    scene = Scene(effect(), target(guaranteed_at=anew))
    with pytest.raises(LedgerError) as refusal:
        propose(scene.draft, scene.view, SPEC, look, None, BODY)
    assert refusal.value.code == "observation-due" and "Propose again" in refusal.value.remedy


@pytest.mark.parametrize("way", ANEW)
def test_nothing_is_permitted_on_it_either(way: str) -> None:
    look, anew = ANEW[way]
    at = target(guaranteed_at=anew)
    asked = effect(EffectState.PROPOSED, at, resource="order/17", observed_version="v1")
    scene = Scene(asked, at)
    with pytest.raises(LedgerError) as refusal:
        permit(scene.draft, scene.view, asked, scene.ask(seen=look))
    assert refusal.value.code == "observation-due"


@pytest.mark.parametrize("since", [None, NOW - 5 * SECOND])
def test_a_look_at_the_target_as_it_is_is_bound(since: object) -> None:
    at = target(guaranteed_at=NOW - 5 * SECOND)
    scene = Scene(effect(), at)
    made = propose(scene.draft, scene.view, SPEC, replace(LOOK, since=since), None, BODY)  # type: ignore[arg-type]
    assert made.observed_version == "v1" and made.observation_id is not None
