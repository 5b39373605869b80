"""The table of effects: every state against what a worker says, and against silence, as the design has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain import effects
from ledger.domain.canonical import Body
from ledger.domain.effects import (
    EffectRow,
    EffectState,
    ReportKind,
    ReportRow,
    Settled,
    SettleSpec,
)
from ledger.domain.errors import LedgerError
from ledger.domain.runs import Status
from tests.domain.effect_facts import FENCE, NOW, STALE, Scene, effect, target, uid

P, I, U, F, C, WD, WO = (
    EffectState.PROPOSED,
    EffectState.IN_FLIGHT,
    EffectState.UNKNOWN,
    EffectState.FAILED,
    EffectState.COMMITTED,
    EffectState.WITHDRAWN,
    EffectState.WRITTEN_OFF,
)
COMMITTED = SettleSpec(1, Settled.COMMITTED, reference="rf_1")
FAILED = SettleSpec(1, Settled.FAILED, cause="rejected")
UNKNOWN = SettleSpec(1, Settled.UNKNOWN)
ACCEPTED = SettleSpec(1, Settled.ACCEPTED, reference="rf_1", ask_after=5)


def settle(
    scene: Scene, spec: SettleSpec, holder: bool = True, earlier: Sequence[ReportRow] = ()
) -> tuple[EffectRow, bool]:
    fence = FENCE if holder else STALE
    return effects.settle(
        scene.draft, scene.view, scene.effect, spec, holder=holder, called=True, fence=fence, told=earlier
    )


@pytest.mark.parametrize(
    ("state", "spec", "lookup", "to", "counted"),
    [
        (I, COMMITTED, True, C, True),
        (I, FAILED, True, F, True),
        (I, UNKNOWN, True, U, True),
        (I, ACCEPTED, True, I, True),
        (U, COMMITTED, True, U, False),
        (U, COMMITTED, False, C, True),
        (U, FAILED, True, U, False),
        (U, FAILED, False, U, False),
        (U, UNKNOWN, False, U, False),
        (F, COMMITTED, True, U, True),
        (F, FAILED, True, F, False),
        (C, COMMITTED, True, C, False),
        (C, FAILED, True, C, False),
        (WO, COMMITTED, True, WO, False),
    ],
)
def test_what_the_holder_says(
    state: EffectState, spec: SettleSpec, lookup: bool, to: EffectState, counted: bool
) -> None:
    at = target(lookup={"by": "key"} if lookup else None)
    scene = Scene(effect(state, at), at)
    moved, did = settle(scene, spec)
    assert (moved.state, did) == (to, counted)
    assert [(r["kind"], r["counted"], r["answer"]) for r in scene.inserted("effect_report")] == [
        (ReportKind.SETTLE, counted, str(spec.outcome))
    ]


@pytest.mark.parametrize(
    ("state", "spec", "lookup", "to", "counted"),
    [
        (P, COMMITTED, True, P, False),
        (I, COMMITTED, True, I, False),
        (I, COMMITTED, False, I, False),
        (I, FAILED, True, I, False),
        (U, COMMITTED, True, U, False),
        (U, COMMITTED, False, C, True),
        (U, FAILED, False, U, False),
        (F, COMMITTED, True, U, True),
        (F, ACCEPTED, True, U, True),
        (F, FAILED, True, F, False),
        (F, UNKNOWN, True, F, False),
        (C, FAILED, True, C, False),
        (C, COMMITTED, True, C, False),
        (WD, COMMITTED, True, WD, False),
    ],
)
def test_what_a_stale_worker_says_is_evidence(
    state: EffectState, spec: SettleSpec, lookup: bool, to: EffectState, counted: bool
) -> None:
    at = target(lookup={"by": "key"} if lookup else None)
    scene = Scene(effect(state, at), at)
    moved, did = settle(scene, spec, holder=False)
    assert (moved.state, did) == (to, counted)
    assert scene.inserted("effect_report")[0]["kind"] == ReportKind.LATE


@given(st.sampled_from(EffectState), st.sampled_from(["not_dispatched", "throttled", "rejected"]), st.booleans())
def test_failed_from_a_stale_worker_never_counts(state: EffectState, cause: str, lookup: bool) -> None:
    at = target(lookup={"by": "key"} if lookup else None)
    scene = Scene(effect(state, at), at)
    moved, counted = settle(scene, SettleSpec(1, Settled.FAILED, cause=cause), holder=False)
    assert moved.state is state and not counted


def test_the_holder_cannot_settle_what_was_never_permitted() -> None:
    for state, attempt in ((P, 1), (I, 2), (I, 0)):
        scene = Scene(effect(state))
        with pytest.raises(LedgerError, match="wrong-state"):
            settle(scene, replace(COMMITTED, attempt=attempt))


def test_a_report_of_an_earlier_attempt_is_late_even_from_the_holder() -> None:
    scene = Scene(effect(I, attempt=2))
    moved, counted = settle(scene, COMMITTED)
    assert (moved.state, counted, scene.inserted("effect_report")[0]["kind"]) == (I, False, ReportKind.LATE)


@pytest.mark.parametrize(
    "spec",
    [
        SettleSpec(1, Settled.FAILED),
        SettleSpec(1, Settled.COMMITTED, cause="rejected"),
        SettleSpec(1, Settled.FAILED, cause="confirmed_absent"),
        SettleSpec(1, Settled.COMMITTED, ask_after=3),
        SettleSpec(1, Settled.COMMITTED, reference="x" * 201),
    ],
)
def test_a_report_that_contradicts_itself_is_refused(spec: SettleSpec) -> None:
    with pytest.raises(LedgerError, match="invalid"):
        settle(Scene(effect(I)), spec)


def test_accepted_stays_in_flight_with_the_reconciler_as_its_owner() -> None:
    scene = Scene(effect(I))
    moved, _ = settle(scene, ACCEPTED)
    assert (moved.accepted, moved.due_at, moved.reference) == (True, NOW + timedelta(seconds=5), "rf_1")
    assert moved.answer_by is not None and moved.answer_by > NOW + timedelta(hours=1)
    held = Scene(moved)
    assert effects.lapse_effects(held.draft, held.view) == (), "a lapse leaves it with the reconciler"


def test_unknown_is_looked_up_at_once() -> None:
    moved, _ = settle(Scene(effect(I)), UNKNOWN)
    assert moved.due_at == NOW


def told(**changes: Any) -> ReportRow:
    row = ReportRow(
        uid(40), uid(5), 3, 1, ReportKind.SETTLE, "committed", "", "rf_1", None, None, True, "agent:x", 0, 7, NOW
    )
    return replace(row, **changes)


def test_a_repeat_is_recognised_by_attempt_and_content_alone() -> None:
    body = Body(uid(41), b"z" * 16, b'{"ok":true}')
    with_result = told(evidence_id=body.id, evidence_commitment=body.commitment)
    bodies = {body.id: (body.salt, body.commitment)}
    assert effects.replayed(COMMITTED, [told()], {})
    assert effects.replayed(COMMITTED, [told(kind=ReportKind.LATE)], {})
    assert effects.replayed(replace(COMMITTED, result=body.content), [with_result], bodies)
    assert not effects.replayed(replace(COMMITTED, result=b"{}"), [with_result], bodies)
    assert not effects.replayed(COMMITTED, [with_result], bodies)
    assert not effects.replayed(replace(COMMITTED, reference="rf_2"), [told()], {})
    assert not effects.replayed(replace(COMMITTED, attempt=2), [told()], {})
    assert not effects.replayed(COMMITTED, [told(kind=ReportKind.LOOKUP)], {})


# Two attempts at a target that knows no keys ---------------------------------------------------

NO_KEYS: dict[str, Any] = {"keyed": False, "lookup": None}
FIRST = told(kind=ReportKind.LATE)
SECOND = told(attempt=2, reference="rf_2")
UNDONE = told(kind=ReportKind.VERDICT, answer="failed", cause="confirmed_absent", reference="")
DONE = told(kind=ReportKind.VERDICT, attempt=2, reference="")


@pytest.mark.parametrize(
    ("state", "said", "earlier", "to", "disputed"),
    [
        (U, 1, [], U, True),
        (U, 1, [UNDONE], U, True),
        (U, 2, [], C, False),
        (U, 2, [FIRST], C, True),
        (U, 2, [FIRST, UNDONE], C, False),
        (C, 1, [SECOND], C, True),
        (C, 2, [SECOND], C, False),
        (C, 2, [FIRST], C, True),
        (C, 2, [FIRST, DONE], C, True),
        (C, 2, [DONE], C, False),
        (C, 1, [DONE], C, True),
        (C, 1, [SECOND, FIRST, DONE], C, False),
    ],
)
def test_a_receipt_of_one_attempt_never_stands_for_another_where_each_is_a_call_of_its_own(
    state: EffectState, said: int, earlier: Sequence[ReportRow], to: EffectState, disputed: bool
) -> None:
    at = target(**NO_KEYS)
    scene = Scene(effect(state, at, attempt=2), at, status=Status.WAKING)
    moved, counted = settle(scene, SettleSpec(said, Settled.COMMITTED, reference="rf"), holder=False, earlier=earlier)
    assert (moved.state, moved.disputed) == (to, disputed)
    assert [row["reason"] for row in scene.inserted("handoff")] == (["effect-disputed"] if disputed else [])
    assert counted is (disputed or state is U)


def test_under_one_key_a_receipt_of_either_attempt_is_of_the_one_call() -> None:
    at = target(lookup=None)
    moved, _ = settle(Scene(effect(U, at, attempt=2), at), COMMITTED, holder=False)
    assert (moved.state, moved.disputed) == (C, False)


# Lapse -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", EffectState)
def test_a_lapse_turns_in_flight_into_unknown_and_nothing_else(state: EffectState) -> None:
    scene = Scene(effect(state))
    moved = effects.lapse_effects(scene.draft, scene.view)
    assert [one.state for one in moved] == ([U] if state is I else [])
    assert [r["kind"] for r in scene.inserted("effect_report")] == ([ReportKind.LAPSE] if state is I else [])


@pytest.mark.parametrize(
    ("lookup", "attempt", "late", "to"),
    [(None, 1, True, C), (None, 1, False, I), (None, 2, True, U), ({"by": "key"}, 1, True, U)],
)
def test_a_receipt_kept_while_the_call_was_accepted_counts_once_no_answer_came_and_nobody_can_be_asked(
    lookup: dict[str, object] | None, attempt: int, late: bool, to: EffectState
) -> None:
    at = target(lookup=lookup)
    row = effect(I, at, attempt=attempt, accepted=True, answer_by=NOW if late else NOW + timedelta(seconds=1))
    scene = Scene(row, at, status=Status.WAKING)
    kept = told(kind=ReportKind.LATE, counted=False, evidence_id=uid(70), evidence_commitment=b"c" * 32)
    moved = effects.expire(scene.draft, scene.view, {row.id: kept})
    assert [one.state for one in moved] == ([to] if late else [])
    for one in moved:
        assert (one.reference, one.result_id) == (("rf_1", uid(70)) if to is C else ("", None))
        assert [r["answer"] for r in scene.inserted("effect_report")] == [str(to)]


@pytest.mark.parametrize(("late", "accepted"), [(True, False), (True, True), (False, False)])
def test_answer_by_ends_in_flight_lease_or_no_lease(late: bool, accepted: bool) -> None:
    answer_by = NOW if late else NOW + timedelta(seconds=1)
    scene = Scene(effect(I, answer_by=answer_by, accepted=accepted))
    assert [one.state for one in effects.expire(scene.draft, scene.view)] == ([U] if late else [])
