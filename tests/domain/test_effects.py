"""Effects: identity, sameness, accounting and permits, as rules over facts."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain import effects
from ledger.domain.canonical import Body
from ledger.domain.effects import EffectState, ProposalSpec, ReportKind, ReportRow, Subject, effect_key, subject_digest
from ledger.domain.effects.proposals import difference
from ledger.domain.errors import LedgerError
from ledger.domain.runs import Intent, Status
from tests.domain.effect_facts import (
    BODY,
    EFFECT,
    FENCE,
    NOW,
    REQUEST,
    SALT,
    STALE,
    Scene,
    effect,
    permit_row,
    seen,
    target,
    uid,
)

SUBJECT = Subject("payments.refund", "t1", "payments", uid(4), "order/17", '"v1"', b"c" * 32, "ra_key")
SPEC = ProposalSpec("pay", "payments.refund", "payments", "", REQUEST, None, "t1")


def other(value: Any) -> Any:
    if isinstance(value, UUID):
        return uuid4()
    return value + (b"x" if isinstance(value, bytes) else "x")


@pytest.mark.parametrize("name", [field.name for field in fields(Subject)])
def test_every_field_of_a_subject_changes_its_digest(name: str) -> None:
    changed = replace(SUBJECT, **{name: other(getattr(SUBJECT, name))})
    assert subject_digest(changed, SALT) != subject_digest(SUBJECT, SALT)


def test_one_subject_has_another_digest_under_another_salt() -> None:
    assert subject_digest(SUBJECT, b"a" * 16) != subject_digest(SUBJECT, SALT)


@given(st.lists(st.text(max_size=5), min_size=2, max_size=2, unique=True))
def test_two_fields_that_swap_their_values_change_the_digest(values: list[str]) -> None:
    one = replace(SUBJECT, tool=values[0], tool_digest=values[1])
    two = replace(SUBJECT, tool=values[1], tool_digest=values[0])
    assert subject_digest(one, SALT) != subject_digest(two, SALT)


@given(st.uuids(), st.uuids(), st.uuids(), st.text(), st.integers(0, 3))
def test_the_key_depends_on_each_part_of_the_identity(a: UUID, b: UUID, c: UUID, name: str, changed: int) -> None:
    parts: list[Any] = [a, b, c, name]
    key = effect_key(*parts)
    assert key == effect_key(*parts) and len(key) == 43
    parts[changed] = other(parts[changed])
    assert effect_key(*parts) != key


@given(
    st.sampled_from(EffectState),
    st.sampled_from(["permit", "withdraw", "settle", "lapse", "look", "receipt", "verdict"]),
)
def test_the_machine_never_leaves_a_final_state(state: EffectState, event: str) -> None:
    final = {EffectState.COMMITTED, EffectState.WITHDRAWN, EffectState.WRITTEN_OFF}
    if state in final:
        assert not effects.MACHINE.can(state, event)
    if state is EffectState.UNKNOWN:
        assert not effects.MACHINE.can(state, "permit"), "nothing is resent out of unknown"


# Propose ---------------------------------------------------------------------------------------


def propose(scene: Scene, spec: ProposalSpec = SPEC, known: Body | None = BODY, **more: Any) -> effects.EffectRow:
    request = Body(uid(77), b"n" * 16, spec.request)
    return effects.propose(scene.draft, scene.view, spec, more.get("seen"), known, request)


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({"tool": "payments.wire"}, ["tool"]),
        ({"resource": "order/18"}, ["resource"]),
        ({"tool_digest": "t2"}, ["tool_digest"]),
        ({"request": b'{"amount_minor":4201,"order":"17"}'}, ["request.amount_minor"]),
        ({"request": b'{"amount_minor":4200,"note":"x","order":"17"}'}, ["request.note"]),
    ],
)
def test_other_content_under_a_recorded_name_is_refused_with_what_differs(
    changes: dict[str, Any], differs: list[str]
) -> None:
    scene = Scene(effect(EffectState.COMMITTED))
    with pytest.raises(LedgerError) as refused:
        propose(scene, replace(SPEC, **changes))
    assert refused.value.code == "effect-differs"
    assert refused.value.facts["differs"] == differs
    assert refused.value.facts["recorded"] == BODY.commitment.hex()
    assert b"420" not in str(refused.value.facts).encode(), "no payload in a refusal"


def test_the_same_name_and_content_answers_the_recorded_effect_and_writes_nothing() -> None:
    scene = Scene(effect(EffectState.COMMITTED, reference="rf_1"))
    assert propose(scene) == scene.effect
    assert scene.draft.empty()


def test_the_next_holder_accounts_for_an_effect_by_proposing_it_again() -> None:
    scene = Scene(effect(EffectState.COMMITTED, accounted_count=STALE.count))
    assert propose(scene).accounted_count == FENCE.count


def test_a_renamed_effect_meets_the_recorded_one() -> None:
    scene = Scene(effect(EffectState.UNKNOWN, accounted_count=STALE.count))
    with pytest.raises(LedgerError) as refused:
        propose(scene, replace(SPEC, name="payment"))
    assert refused.value.code == "effects-unaccounted" and refused.value.facts["effects"] == ["pay"]


def test_a_resource_at_an_observable_target_must_have_been_seen() -> None:
    scene = Scene(effect(instance_id=uid(99)))
    with pytest.raises(LedgerError) as refused:
        propose(scene, replace(SPEC, resource="order/17"))
    assert refused.value.code == "target-unreachable"


def test_a_new_effect_is_bound_to_the_version_that_was_seen() -> None:
    scene = Scene(effect(instance_id=uid(99)))
    made = propose(scene, replace(SPEC, name="again", resource="order/17"), seen=seen('"v3"'))
    assert (made.state, made.observed_version, made.attempt) == (EffectState.PROPOSED, '"v3"', 0)
    assert scene.inserted("observation")[0]["version"] == '"v3"'
    assert bytes(made.subject_digest) == subject_digest(effects.subject_of(made, scene.target), SALT)


def test_a_difference_names_paths_and_no_values() -> None:
    assert difference({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}], "c": 0}, "request") == ["request.a[1].b", "request.c"]
    assert difference([1], [1, 2], "request") == ["request"]


def test_only_a_settled_effect_has_an_outcome_to_take() -> None:
    for state in EffectState:
        scene = Scene(effect(state, accounted_count=STALE.count))
        if state in (EffectState.PROPOSED, EffectState.IN_FLIGHT, EffectState.UNKNOWN):
            with pytest.raises(LedgerError, match="wrong-state"):
                effects.accept(scene.draft, scene.view, scene.effect)
        else:
            assert effects.accept(scene.draft, scene.view, scene.effect).accounted_count == FENCE.count


def test_a_run_cannot_end_while_an_outcome_is_open() -> None:
    for state in EffectState:
        scene = Scene(effect(state))
        if state in effects.OPEN:
            with pytest.raises(LedgerError, match="effects-open"):
                effects.check_closed(scene.view)
        else:
            effects.check_closed(scene.view)


def test_handing_over_keeps_the_key_and_moves_proposed_effects_only() -> None:
    for state in EffectState:
        scene = Scene(effect(state))
        moved = effects.hand_over(scene.draft, scene.view, uid(50))
        assert [(e.instance_id, e.key) for e in moved] == (
            [(uid(50), scene.effect.key)] if state is EffectState.PROPOSED else []
        )


def test_what_a_replan_carried_is_handed_on_until_one_who_knows_of_it_leaves_its_transition() -> None:
    here = Scene(effect()).view.head.transition
    for called_in, count, handed in (
        ("", FENCE.count, False),
        ("elsewhere", FENCE.count, True),
        (here, STALE.count, True),
        (here, FENCE.count, False),
    ):
        scene = Scene(effect(EffectState.COMMITTED, accounted_count=count, carried_from="assess", carried_to=called_in))
        assert bool(effects.hand_over(scene.draft, scene.view, uid(50))) is handed


@pytest.mark.parametrize("state", sorted(effects.DONE))
def test_no_proposal_means_what_a_replan_carried_also_with_the_same_content(state: EffectState) -> None:
    for count in (STALE.count, FENCE.count):
        scene = Scene(effect(state, accounted_count=count, carried_from="assess", carried_to="issue"))
        with pytest.raises(LedgerError) as refused:
            propose(scene)
        assert refused.value.code == "effect-carried" and refused.value.facts["carried_to"] == "issue"
        with pytest.raises(LedgerError) as differs:
            propose(scene, replace(SPEC, tool_digest="t2"))
        assert differs.value.code == "effect-differs" and differs.value.remedy == refused.value.remedy
        assert scene.draft.empty()
        assert effects.accept(scene.draft, scene.view, scene.effect).accounted_count == FENCE.count


def test_a_handed_over_proposal_is_not_called_before_what_a_replan_carried_is_accounted_for() -> None:
    here = Scene(effect()).view.head.transition
    before = effect(
        EffectState.COMMITTED,
        id=uid(30),
        name="before",
        accounted_count=STALE.count,
        carried_from="assess",
        carried_to=here,
    )
    assert refusal(Scene(effect(accounted_count=STALE.count), others=(before,))) == "effects-unaccounted"
    scene = Scene(effect(accounted_count=STALE.count), others=(replace(before, accounted_count=FENCE.count),))
    assert effects.permit(scene.draft, scene.view, scene.effect, scene.ask())[0].attempt == 1


def test_a_name_that_stands_for_two_calls_of_a_plan_is_told_whoever_made_them() -> None:
    first = effects.Done(effect(EffectState.COMMITTED), "assess", "issue")
    second = effects.Done(effect(EffectState.UNKNOWN, id=uid(51)), "issue", "fees")
    other = effects.Done(effect(EffectState.COMMITTED, id=uid(52), name="fee"), "assess", "issue")
    assert effects.called_twice([first, other]) == []
    assert effects.called_twice([first, other, second]) == ["pay"]


def test_what_is_carried_past_a_transition_is_not_asked_of_its_holder() -> None:
    past = effect(EffectState.COMMITTED, accounted_count=-1, carried_from="assess", carried_to="elsewhere")
    here = Scene(past).view.head.transition
    assert effects.unaccounted(Scene(past).view) == []
    assert effects.unaccounted(Scene(replace(past, carried_from=here)).view) != []


# Permit ----------------------------------------------------------------------------------------


def refusal(scene: Scene, **ask: Any) -> str:
    with pytest.raises(LedgerError) as refused:
        effects.permit(scene.draft, scene.view, scene.effect, scene.ask(**ask))
    return refused.value.code


def test_the_fence_comes_before_everything_else() -> None:
    scene = Scene(effect(EffectState.IN_FLIGHT), verdict="deny", lease_ends=timedelta(seconds=-1))
    assert refusal(scene, fence=STALE, permit=permit_row(STALE)) == "stale-fence"


def test_a_permit_after_a_lapse_is_never_handed_out_again() -> None:
    scene = Scene(effect(EffectState.UNKNOWN))
    assert refusal(scene, permit=permit_row(STALE)) == "wrong-state"
    assert refusal(Scene(effect(EffectState.IN_FLIGHT)), permit=permit_row(STALE)) == "wrong-state"


def test_the_same_permit_is_handed_out_while_it_may_still_be_sent() -> None:
    scene = Scene(effect(EffectState.IN_FLIGHT))
    _, given, new = effects.permit(scene.draft, scene.view, scene.effect, scene.ask(permit=permit_row()))
    assert (given, new) == (permit_row(), False) and scene.draft.empty()


def test_a_permit_past_its_send_by_is_not_handed_out() -> None:
    assert refusal(Scene(effect(EffectState.IN_FLIGHT)), permit=permit_row(send_by=NOW)) == "send-by-passed"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"status": Status.WAKING}, "wrong-state"),
        ({"lease_ends": timedelta(0)}, "lease-expired"),
        ({"intent": Intent.CANCEL}, "not-cleared"),
        ({"clearance_targets": ()}, "not-cleared"),
        ({"clearance_targets": ("wires",)}, "not-cleared"),
        ({"clearance_tools": ("payments.look",)}, "tool-not-allowed"),
        ({"verdict": "deny"}, "policy-denies"),
        ({"verdict": "approve"}, "grant-missing"),
    ],
)
def test_a_permit_is_refused(changes: dict[str, Any], code: str) -> None:
    assert refusal(Scene(effect(), **changes)) == code


def test_an_effect_whose_row_was_altered_gets_no_permit() -> None:
    assert refusal(Scene(replace(effect(), tool="payments.other"))) == "integrity"


def test_a_new_effect_waits_until_the_earlier_ones_are_accounted_for() -> None:
    earlier = effect(EffectState.COMMITTED, id=uid(30), name="earlier", accounted_count=STALE.count)
    assert refusal(Scene(effect(), others=(earlier,))) == "effects-unaccounted"


def test_performing_a_recorded_effect_accounts_for_it() -> None:
    other = effect(id=uid(30), name="other", accounted_count=STALE.count)
    scene = Scene(effect(accounted_count=STALE.count), others=(other,))
    moved, _, _ = effects.permit(scene.draft, scene.view, scene.effect, scene.ask())
    assert moved.accounted_count == FENCE.count


@pytest.mark.parametrize(
    ("cause", "changes", "code"),
    [
        ("rejected", {}, "wrong-state"),
        ("confirmed_absent", {"keyed": False, "key_retention": 0}, "wrong-state"),
        ("throttled", {"key_retention": 120}, "expired"),
    ],
)
def test_a_failed_effect_is_not_tried_again(cause: str, changes: dict[str, Any], code: str) -> None:
    at = target(**changes)
    assert refusal(Scene(effect(EffectState.FAILED, at, cause=cause), at)) == code


def said(**changes: Any) -> ReportRow:
    """A person's word that the effect's only attempt did nothing."""
    row = ReportRow(
        id=uid(40),
        effect_id=EFFECT,
        ordinal=9,
        attempt=1,
        kind=ReportKind.VERDICT,
        answer="failed",
        cause="confirmed_absent",
        reference="",
        evidence_id=None,
        evidence_commitment=None,
        counted=True,
        actor="person:1",
        fence_epoch=None,
        fence_count=None,
        reported_at=NOW,
    )
    return replace(row, **changes)


UNKEYED: dict[str, Any] = {"keyed": False, "key_retention": 0}


@pytest.mark.parametrize(
    "word",
    [said(kind=ReportKind.LOOKUP), said(attempt=2), said(cause="rejected"), said(attempt=0), None],
    ids=["a target's", "about a later attempt", "another finding", "about an earlier attempt", "nobody's"],
)
def test_nothing_but_a_person_s_word_on_the_last_attempt_gives_another_without_a_key(word: ReportRow | None) -> None:
    at = target(**UNKEYED)
    scene = Scene(effect(EffectState.FAILED, at, cause="confirmed_absent"), at)
    with pytest.raises(LedgerError, match="wrong-state"):
        effects.permit(scene.draft, scene.view, scene.effect, replace(scene.ask(), last_word=word))


@pytest.mark.parametrize("changes", [UNKEYED, {"key_retention": 120}], ids=["no-keys", "forgotten"])
def test_a_person_s_word_that_nothing_happened_gives_one_more_attempt(changes: dict[str, Any]) -> None:
    at = target(**changes)
    scene = Scene(effect(EffectState.FAILED, at, cause="confirmed_absent"), at)
    moved, given, new = effects.permit(scene.draft, scene.view, scene.effect, replace(scene.ask(), last_word=said()))
    assert new and given.attempt == 2
    again = replace(moved, state=EffectState.FAILED, cause="confirmed_absent")
    assert not effects.allows_another(again, said()), "the second needs another word"


@pytest.mark.parametrize("cause", ["not_dispatched", "throttled", "confirmed_absent"])
def test_a_definite_no_may_be_tried_again_with_the_same_key(cause: str) -> None:
    scene = Scene(effect(EffectState.FAILED, cause=cause))
    moved, given, new = effects.permit(scene.draft, scene.view, scene.effect, scene.ask())
    assert new and given.attempt == 2 and moved.key == scene.effect.key
    assert moved.first_permit_at == scene.effect.first_permit_at


def test_what_a_person_found_of_an_attempt_is_not_said_of_the_next() -> None:
    scene = Scene(effect(EffectState.FAILED, held="failed"))
    assert effects.permit(scene.draft, scene.view, scene.effect, scene.ask())[0].held == ""


def test_a_permit_carries_its_times_and_the_precondition() -> None:
    scene = Scene(effect(resource="order/17", observed_version='"v1"'), lease_ends=timedelta(seconds=12))
    moved, given, _ = effects.permit(scene.draft, scene.view, scene.effect, scene.ask(seen=seen('"v1"')))
    assert given.send_by == NOW + timedelta(seconds=12), "never beyond the lease"
    assert given.answer_by == given.send_by + timedelta(seconds=10)
    assert given.precondition == '"v1"'
    assert (moved.state, moved.due_at) == (EffectState.IN_FLIGHT, given.answer_by)
    assert scene.draft.change().not_after == NOW + timedelta(seconds=12)


def test_an_observation_that_is_too_old_or_missing_is_asked_for() -> None:
    bound = effect(resource="order/17", observed_version='"v1"')
    assert refusal(Scene(bound)) == "observation-due"
    assert refusal(Scene(bound), seen=seen('"v1"', ago=300)) == "observation-due"


def test_a_moved_target_refuses_and_sends_the_run_back_to_waking() -> None:
    scene = Scene(effect(resource="order/17", observed_version='"v1"'))
    assert refusal(scene, seen=seen('"v2"')) == "changed"
    again = Scene(scene.effect)
    error = LedgerError("changed", "", "")
    effects.send_to_wake(again.draft, again.view, again.effect, error, again.ask(seen=seen('"v2"')))
    assert again.head_moves()["status"] == Status.WAKING
    assert again.head_moves()["fence_count"] == FENCE.count + 1
    assert again.inserted("wake")[0]["reasons"] == ["permit_refused:changed"]
