"""Leave as rules see it: what ends it, and what a permit says where there is none."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ledger.domain.authority import GrantRow, GrantState, Requirement, Rule, Verdict, use_grant, void_grant
from ledger.domain.effects import EffectState
from ledger.domain.errors import LedgerError
from tests.domain.effect_facts import EFFECT, NOW, Scene, effect, uid

NEEDS = Requirement(Verdict.APPROVE, (Rule("payments.*", Verdict.APPROVE, "approvers"),))
GRANT_ID = uid(30)


def grant(state: GrantState, use_by: timedelta = timedelta(hours=1)) -> GrantRow:
    approved = effect().subject_digest
    return GrantRow(GRANT_ID, "effect", EFFECT, approved, NEEDS.digest(), uid(31), 1, state, NOW, NOW + use_by)


@pytest.mark.parametrize(
    ("state", "use_by", "after"),
    [
        (GrantState.LIVE, 1, "voided"),
        (GrantState.LIVE, 0, "expired"),
        (GrantState.USED, 1, "voided"),
        (GrantState.USED, 0, "voided"),
    ],
)
def test_leave_ends_whether_or_not_it_was_used(state: GrantState, use_by: int, after: str) -> None:
    scene = Scene(effect())
    void_grant(scene.draft, grant(state, timedelta(hours=use_by)), "changed")
    (move,) = scene.draft.change().moves
    assert (move.key, move.expect, move.set["state"]) == (GRANT_ID, {"state": state}, after)
    assert (move.set["cause"], move.set["closed_at"]) == ("changed", NOW)


@pytest.mark.parametrize("state", [GrantState.EXPIRED, GrantState.REVOKED, GrantState.VOIDED])
def test_leave_that_ended_before_stays_as_it_is(state: GrantState) -> None:
    scene = Scene(effect())
    void_grant(scene.draft, grant(state), "changed")
    assert scene.draft.empty()


@pytest.mark.parametrize(
    ("tried", "says"),
    [(EffectState.PROPOSED, "nobody has approved"), (EffectState.FAILED, "its earlier attempt ended")],
)
def test_without_leave_a_permit_says_whether_there_ever_was_any(tried: EffectState, says: str) -> None:
    scene = Scene(effect(tried))
    with pytest.raises(LedgerError) as refusal:
        use_grant(scene.draft, scene.view, scene.effect, NEEDS)
    assert refusal.value.code == "grant-missing" and says in refusal.value.reason


def test_used_leave_covers_another_attempt_while_nothing_ended_it() -> None:
    scene = Scene(effect(EffectState.FAILED))
    view = replace(scene.view, grants=[grant(GrantState.USED)])
    assert use_grant(scene.draft, view, scene.effect, NEEDS) is not None and not scene.draft.change().moves
