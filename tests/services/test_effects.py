"""Effects through the services: the holder's protocol on a real record, on both databases."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from ledger.domain.authority import give_grant, requirement
from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import EffectState, ProposalSpec, Settled, SettleSpec
from ledger.domain.errors import LedgerError
from ledger.domain.runs import Fence, Status
from ledger.models import Checkpoint, Effect, Grant, JournalEntry, Permit
from ledger.services import effects, targets, verify, writer
from ledger.services.drafts import run_draft
from ledger.services.packets import Packet
from ledger.services.views import run_view
from tests.clock import Clock
from tests.documents import REQUEST
from tests.services.issuing import ANYTHING, DONE, PAY, issuing, lapse, opened, paying, reclaim, reports, state
from tests.world import World


@pytest.fixture
def open_world(world: World) -> World:
    return opened(world)


def entries(world: World, run_id: UUID) -> int:
    return JournalEntry.objects.of(world.tenant).filter(stream_id=run_id).count()


# Propose ---------------------------------------------------------------------------------------


def test_a_proposal_outside_a_commit_is_a_checkpoint_and_its_repeat_writes_nothing(open_world: World) -> None:
    packet = issuing(open_world)
    run_id, seq = packet.run.id, packet.checkpoint["seq"]
    key = str(uuid4())
    made = effects.propose(open_world.caller, run_id, packet.fence, seq, PAY, None, key)
    assert (made.new, made.seq, made.effect.state) == (True, seq + 1, EffectState.PROPOSED)
    assert Checkpoint.objects.of(open_world.tenant).get(run_id=run_id, seq=seq + 1).kind == "proposal"
    before = entries(open_world, run_id)
    again = effects.propose(open_world.caller, run_id, packet.fence, seq, PAY, None, key)
    assert (again.new, again.effect.id, again.seq) == (False, made.effect.id, seq + 1)
    named = effects.propose(open_world.caller, run_id, packet.fence, seq + 1, PAY, None, str(uuid4()))
    assert (named.new, named.effect.id) == (False, made.effect.id)
    assert entries(open_world, run_id) == before
    with pytest.raises(LedgerError, match="key-reused"):
        effects.propose(open_world.caller, run_id, packet.fence, seq, replace(PAY, request=b"{}"), None, key)


def test_a_proposal_needs_fence_and_sequence_and_a_known_target(open_world: World) -> None:
    packet = issuing(open_world)
    run_id, seq, before = packet.run.id, packet.checkpoint["seq"], entries(open_world, packet.run.id)

    def refused(fence: Fence = packet.fence, at: int = seq, spec: ProposalSpec = PAY) -> str:
        with pytest.raises(LedgerError) as error:
            effects.propose(open_world.caller, run_id, fence, at, spec, None, str(uuid4()))
        return error.value.code

    assert refused(fence=Fence(0, 1)) == "stale-fence"
    assert refused(at=seq - 1) == "wrong-sequence"
    assert refused(spec=replace(PAY, target="nowhere")) == "target-unknown"
    assert refused(spec=replace(PAY, name="")) == "invalid"
    assert entries(open_world, run_id) == before


def test_a_rerun_with_other_model_arguments_is_refused_and_the_recorded_request_stands(
    open_world: World, clock: Clock
) -> None:
    packet, effect, _ = paying(open_world)
    effects.settle(open_world.caller, effect.pk, DONE, packet.fence)
    lapse(open_world, clock, packet.run.id)
    packet = reclaim(open_world, packet.run.id)
    other = replace(PAY, request=REQUEST.replace(b"4200", b"4300"))
    with pytest.raises(LedgerError) as refused:
        effects.propose(open_world.caller, packet.run.id, packet.fence, packet.checkpoint["seq"], other, None, "k")
    assert refused.value.code == "effect-differs"
    assert refused.value.facts["differs"] == ["request.amount_minor"]
    assert "4300" not in repr(refused.value.facts) and "4200" not in repr(refused.value.facts)


def test_code_that_renames_an_effect_meets_the_recorded_one_and_may_take_its_outcome(
    open_world: World, clock: Clock
) -> None:
    packet, effect, _ = paying(open_world)
    effects.settle(open_world.caller, effect.pk, DONE, packet.fence)
    lapse(open_world, clock, packet.run.id)
    packet = reclaim(open_world, packet.run.id)
    renamed, seq = replace(PAY, name="payment"), packet.checkpoint["seq"]
    with pytest.raises(LedgerError) as refused:
        effects.propose(open_world.caller, packet.run.id, packet.fence, seq, renamed, None, "k")
    assert refused.value.code == "effects-unaccounted" and refused.value.facts["effects"] == ["pay"]
    taken = effects.accept(open_world.caller, packet.run.id, "pay", packet.fence).row
    assert taken.state is EffectState.COMMITTED and taken.reference == "rf_1"
    made = effects.propose(open_world.caller, packet.run.id, packet.fence, seq, renamed, None, "k")
    assert made.new and made.effect.key != taken.key


def test_a_withdrawn_effect_gets_no_permit(open_world: World) -> None:
    packet = issuing(open_world, PAY)
    effect = open_world.effect(packet.run.id)
    with pytest.raises(LedgerError, match="stale-fence"):
        effects.withdraw(open_world.caller, effect.pk, Fence(0, 1))
    gone = effects.withdraw(open_world.caller, effect.pk, packet.fence).row
    assert (gone.state, gone.cause) == (EffectState.WITHDRAWN, "by_agent")
    assert effects.withdraw(open_world.caller, effect.pk, packet.fence).row.state is EffectState.WITHDRAWN
    with pytest.raises(LedgerError, match="wrong-state"):
        effects.permit(open_world.caller, effect.pk, packet.fence)


# Permit ----------------------------------------------------------------------------------------


def test_in_flight_is_written_before_the_call_and_a_lost_settle_fails_closed(open_world: World, clock: Clock) -> None:
    packet, effect, given = paying(open_world)
    assert state(open_world, effect) == EffectState.IN_FLIGHT
    assert (given.attempt, given.key, given.request) == (1, effect.key, REQUEST)
    row = Permit.objects.of(open_world.tenant).get(effect=effect)
    assert row.send_by == given.send_by and row.worker_id and row.key_id == open_world.caller.key_id
    lapse(open_world, clock, packet.run.id)
    assert state(open_world, effect) == EffectState.UNKNOWN


def test_a_caller_that_gives_up_and_asks_again_gets_the_same_permit_and_key(open_world: World) -> None:
    packet, effect, given = paying(open_world)
    before = entries(open_world, packet.run.id)
    for _ in range(3):
        again = effects.permit(open_world.caller, effect.pk, packet.fence)
        assert (again.attempt, again.key, again.send_by, again.new) == (1, given.key, given.send_by, False)
    assert entries(open_world, packet.run.id) == before
    assert Permit.objects.of(open_world.tenant).filter(effect=effect).count() == 1


def test_a_permit_after_its_send_by_or_after_the_lease_is_refused(open_world: World, clock: Clock) -> None:
    packet, effect, _ = paying(open_world)
    clock.shift(31)
    with pytest.raises(LedgerError, match="send-by-passed"):
        effects.permit(open_world.caller, effect.pk, packet.fence)
    effects.settle(open_world.caller, effect.pk, SettleSpec(1, Settled.FAILED, "not_dispatched"), packet.fence)
    clock.shift(30)
    with pytest.raises(LedgerError, match="lease-expired"):
        effects.permit(open_world.caller, effect.pk, packet.fence)


def test_a_stale_worker_gets_no_permit_and_nothing_is_written(open_world: World, clock: Clock) -> None:
    packet = issuing(open_world, PAY)
    lapse(open_world, clock, packet.run.id)
    effect, before = open_world.effect(packet.run.id), entries(open_world, packet.run.id)
    with pytest.raises(LedgerError, match="stale-fence"):
        effects.permit(open_world.caller, effect.pk, packet.fence)
    assert entries(open_world, packet.run.id) == before and state(open_world, effect) == EffectState.PROPOSED


def test_an_effect_of_another_tenant_is_not_found(open_world: World) -> None:
    _, effect, _ = paying(open_world)
    foreign = World()
    for call in (
        lambda: effects.permit(foreign.caller, effect.pk, Fence(0, 1)),
        lambda: effects.settle(foreign.caller, effect.pk, DONE, Fence(0, 1)),
        lambda: effects.withdraw(foreign.caller, effect.pk, Fence(0, 1)),
        lambda: effects.accept(foreign.caller, effect.run_id, "pay", Fence(0, 1)),
        lambda: effects.get(foreign.tenant.pk, effect.pk),
    ):
        with pytest.raises(LedgerError, match="not-found"):
            call()


def test_a_policy_that_denies_at_the_last_moment_sends_the_run_back_to_waking(open_world: World) -> None:
    packet = issuing(open_world, PAY)
    open_world.policy(({"tool": "*", "verdict": "deny"},))
    effect = open_world.effect(packet.run.id)
    with pytest.raises(LedgerError, match="policy-denies"):
        effects.permit(open_world.caller, effect.pk, packet.fence)
    head = open_world.head(packet.run.id)
    assert (head.status, head.fence_count) == (Status.WAKING, packet.fence.count + 1)
    assert state(open_world, effect) == EffectState.PROPOSED


def test_without_a_grant_there_is_no_permit(world: World) -> None:
    world.policy(ANYTHING)
    packet = issuing(world, PAY)
    world.policy(({"tool": "payments.*", "verdict": "approve", "group": "approvers"},))
    with pytest.raises(LedgerError, match="grant-missing"):
        effects.permit(world.caller, world.effect(packet.run.id).pk, packet.fence)
    assert world.head(packet.run.id).status == Status.WAKING


def test_a_refusal_does_not_take_the_run_from_a_worker_with_another_call_out(open_world: World) -> None:
    packet = issuing(open_world, PAY, replace(PAY, name="second"))
    first, second = (open_world.effect(packet.run.id, name) for name in ("pay", "second"))
    effects.permit(open_world.caller, first.pk, packet.fence)
    open_world.policy(({"tool": "*", "verdict": "deny"},))
    with pytest.raises(LedgerError, match="policy-denies"):
        effects.permit(open_world.caller, second.pk, packet.fence)
    assert open_world.head(packet.run.id).status == Status.RUNNING
    assert effects.settle(open_world.caller, first.pk, DONE, packet.fence).counted


# Settle ----------------------------------------------------------------------------------------


def test_a_lost_reply_to_a_settle_is_answered_again_without_a_second_report(open_world: World, clock: Clock) -> None:
    packet, effect, _ = paying(open_world)
    first = effects.settle(open_world.caller, effect.pk, DONE, packet.fence)
    assert first.counted and first.effect.state is EffectState.COMMITTED
    before = entries(open_world, packet.run.id)
    again = effects.settle(open_world.caller, effect.pk, DONE, packet.fence)
    assert again == first
    lapse(open_world, clock, packet.run.id)
    assert effects.settle(open_world.caller, effect.pk, DONE, packet.fence).effect.state is EffectState.COMMITTED
    assert entries(open_world, packet.run.id) == before + 1, "the lapse, and nothing else"
    assert effects.get(open_world.tenant.pk, effect.pk).result == b'{"id":"rf_1"}'


def test_a_late_failed_by_a_reaper_changes_nothing_that_is_committed(open_world: World, clock: Clock) -> None:
    packet, effect, _ = paying(open_world)
    effects.settle(open_world.caller, effect.pk, DONE, packet.fence)
    lapse(open_world, clock, packet.run.id)
    late = effects.settle(open_world.caller, effect.pk, SettleSpec(1, Settled.FAILED, "rejected"), packet.fence)
    assert not late.counted and state(open_world, effect) == EffectState.COMMITTED
    assert reports(open_world, effect)[-1] == ("late", "failed", False)


def test_a_crash_between_permit_and_receipt_leaves_unknown_that_nobody_can_permit(
    open_world: World, clock: Clock
) -> None:
    packet, effect, _ = paying(open_world)
    lapse(open_world, clock, packet.run.id)
    with pytest.raises(LedgerError, match="stale-fence"):
        effects.permit(open_world.caller, effect.pk, packet.fence)
    assert [due.effect_id for due in effects.due(1000) if due.effect_id == effect.pk] == [effect.pk]
    late = effects.settle(open_world.caller, effect.pk, SettleSpec(1, Settled.FAILED, "not_dispatched"), packet.fence)
    assert not late.counted and state(open_world, effect) == EffectState.UNKNOWN


def test_a_holder_that_doesn_t_know_what_became_of_its_call_gets_no_second_permit(open_world: World) -> None:
    packet, effect, _ = paying(open_world)
    effects.settle(open_world.caller, effect.pk, SettleSpec(1, Settled.UNKNOWN), packet.fence)
    with pytest.raises(LedgerError, match="wrong-state"):
        effects.permit(open_world.caller, effect.pk, packet.fence)
    assert Permit.objects.of(open_world.tenant).filter(effect=effect).count() == 1


def test_a_receipt_settles_an_unknown_effect_where_the_target_has_no_lookup(open_world: World, clock: Clock) -> None:
    wire = replace(PAY, target="wires")
    packet = issuing(open_world, wire)
    effect = open_world.effect(packet.run.id)
    effects.permit(open_world.caller, effect.pk, packet.fence)
    lapse(open_world, clock, packet.run.id)
    late = effects.settle(open_world.caller, effect.pk, DONE, packet.fence)
    assert late.counted and late.effect.state is EffectState.COMMITTED
    assert reports(open_world, effect)[-1] == ("late", "committed", True)


def test_a_call_whose_answer_is_overdue_becomes_unknown_though_the_lease_lives(open_world: World, clock: Clock) -> None:
    packet, effect, given = paying(open_world)
    clock.shift((given.answer_by - given.send_by).total_seconds() + 31)
    assert effects.lapse(packet.run.id) and not effects.lapse(packet.run.id)
    assert state(open_world, effect) == EffectState.UNKNOWN
    assert open_world.head(packet.run.id).status == Status.RUNNING


def test_a_definite_failure_is_tried_again_under_the_same_key_and_counted_as_two_attempts(open_world: World) -> None:
    packet, effect, first = paying(open_world)
    effects.settle(open_world.caller, effect.pk, SettleSpec(1, Settled.FAILED, "throttled"), packet.fence)
    second = effects.permit(open_world.caller, effect.pk, packet.fence)
    assert (second.attempt, second.key) == (2, first.key)
    late = effects.settle(open_world.caller, effect.pk, DONE, packet.fence)
    assert not late.counted, "a report of the first attempt settles nothing of the second"
    done = effects.settle(open_world.caller, effect.pk, replace(DONE, attempt=2), packet.fence)
    assert done.counted and done.effect.state is EffectState.COMMITTED


def test_a_run_ends_only_after_its_calls_are_settled_and_its_record_verifies(open_world: World) -> None:
    packet, effect, _ = paying(open_world)
    with pytest.raises(LedgerError, match="effects-open"):
        open_world.commit(packet, Next(NextKind.COMPLETE))
    effects.settle(open_world.caller, effect.pk, DONE, packet.fence)
    assert open_world.commit(packet, Next(NextKind.COMPLETE)).status == Status.COMPLETED
    assert verify.run(packet.run.id).faults == []


# Grants ----------------------------------------------------------------------------------------


ASKING = ({"tool": "payments.*", "verdict": "approve", "group": "approvers", "quorum": 1, "use_by": 40},)


def granted(world: World) -> tuple[Packet, Effect]:
    """A run whose payment needs leave and has it."""
    world.policy(ANYTHING)
    packet = issuing(world, PAY)
    world.policy(ASKING)
    effect, view = world.effect(packet.run.id), run_view(packet.run.id)
    draft = run_draft(view, "system:wake", "grant.give")
    give_grant(
        draft,
        "effect",
        effect.pk,
        bytes(effect.subject_digest),
        requirement(view.policy, PAY.tool, "payments"),
        None,
        0,
    )
    writer.apply(draft.change())
    return packet, effect


def grant_state(world: World, effect: Effect) -> str:
    return str(Grant.objects.of(world.tenant).get(subject_id=effect.pk).state)


def test_a_grant_is_used_by_the_permit_and_covers_further_attempts_until_its_use_by(world: World, clock: Clock) -> None:
    packet, effect = granted(world)
    effects.permit(world.caller, effect.pk, packet.fence)
    assert grant_state(world, effect) == "used"
    effects.settle(world.caller, effect.pk, SettleSpec(1, Settled.FAILED, "throttled"), packet.fence)
    assert effects.permit(world.caller, effect.pk, packet.fence).attempt == 2
    effects.settle(world.caller, effect.pk, SettleSpec(2, Settled.FAILED, "throttled"), packet.fence)
    clock.shift(41)
    with pytest.raises(LedgerError, match="expired"):
        effects.permit(world.caller, effect.pk, packet.fence)
    assert world.head(packet.run.id).status == Status.WAKING


def test_a_changed_requirement_voids_what_was_granted_under_the_old_one(world: World) -> None:
    packet, effect = granted(world)
    world.policy(({**ASKING[0], "quorum": 2},))
    with pytest.raises(LedgerError, match="grant-void"):
        effects.permit(world.caller, effect.pk, packet.fence)
    assert state(world, effect) == EffectState.PROPOSED and grant_state(world, effect) == "live"


# Verdicts and targets --------------------------------------------------------------------------


def test_only_a_person_who_may_operate_gives_a_verdict_and_only_with_evidence(open_world: World, clock: Clock) -> None:
    packet, effect, _ = paying(open_world)
    lapse(open_world, clock, packet.run.id)

    def refused(caller: object, text: str = "seen in the bank statement") -> str:
        read = effects.read_now(effect.pk)
        with pytest.raises(LedgerError) as error:
            effects.verdict(caller, effect.pk, EffectState.COMMITTED, "", text, read=read)  # type: ignore[arg-type]
        return error.value.code

    charlie = replace(open_world.admin, actor=f"person:{open_world.charlie.pk}", person_id=open_world.charlie.pk)
    alice = replace(charlie, actor=f"person:{open_world.alice.pk}", person_id=open_world.alice.pk)
    assert refused(open_world.caller) == "agents-never-decide"
    assert refused(alice) == "forbidden"
    assert refused(charlie, "  ") == "invalid"
    assert state(open_world, effect) == EffectState.UNKNOWN
    read = effects.read_now(effect.pk)
    decided = effects.verdict(charlie, effect.pk, EffectState.COMMITTED, "", "bank statement", "rf_9", read=read)
    assert (decided.state, decided.reference) == (EffectState.COMMITTED, "rf_9")
    assert reports(open_world, effect)[-1] == ("verdict", "committed", True)
    assert verify.run(packet.run.id).faults == []


def test_targets_are_registered_by_administrators_and_changed_in_place(world: World) -> None:
    spec = targets.TargetSpec("bank", "https://bank.example/api", keyed=True, key_retention=60)
    with pytest.raises(LedgerError, match="forbidden"):
        targets.register(world.caller, spec)
    first = targets.register(world.admin, spec)
    assert targets.register(world.admin, spec) == first
    moved = targets.register(world.admin, replace(spec, base_url="https://bank.example/v2"))
    assert (moved.id, moved.base_url) == (first.id, "https://bank.example/v2")


def test_a_person_s_word_that_it_didn_t_happen_is_taken_only_once_it_can_t_arrive_any_more(
    open_world: World, clock: Clock
) -> None:
    packet, effect, given = paying(open_world)
    effects.settle(open_world.caller, effect.pk, SettleSpec(1, Settled.UNKNOWN), packet.fence)
    charlie = replace(open_world.caller, person_id=open_world.charlie.pk, actor=f"person:{open_world.charlie.pk}")
    absent = (EffectState.FAILED, "confirmed_absent", "not in the statement")
    clock.hold()
    clock.shift((given.answer_by - clock.now()).total_seconds() - 1)
    with pytest.raises(LedgerError, match="wrong-state"):
        effects.verdict(charlie, effect.pk, *absent, read=effects.read_now(effect.pk))
    assert state(open_world, effect) == EffectState.UNKNOWN
    clock.shift(2)
    effects.verdict(charlie, effect.pk, *absent, read=effects.read_now(effect.pk))
    assert state(open_world, effect) == EffectState.FAILED
