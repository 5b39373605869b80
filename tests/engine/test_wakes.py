"""A run wakes: what was found decides, one decision a wake, and each decision opens what it says."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from approvals.models import ApprovalRequest
from ledger.domain.commits import Next, NextKind
from ledger.domain.errors import LedgerError
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.domain.workflows import VersionSpec
from ledger.engine import gather, observe, wakes
from ledger.models import Checkpoint, Decision, Effect, Grant, Handoff, Observation, Wake
from ledger.services import effects, facts, identity, verify, waits, workflows
from ledger.services import wakes as wake_rows
from ledger.services.views import run_view
from tests.clock import Clock
from tests.documents import SCHEMA, TRANSITIONS
from tests.engine.waking import (
    answer,
    approval,
    asking,
    check,
    claim,
    commit,
    last_wait,
    pay,
    replanning,
    say,
    timer,
    wake,
)
from tests.meeting import between_reading_and_writing
from tests.shop import Shop, register
from tests.world import World


def test_an_approved_run_resumes_under_a_clearance_for_its_next_transition(world: World, shop: Shop) -> None:
    run_id = asking(world)
    say(world, world.alice, run_id)
    assert world.head(run_id).status == "waking"
    decision = wake(world, run_id)
    assert decision.decision == "resume" and decision.reasons == ["checks:passed"]
    packet = claim(world, run_id)
    assert packet.head.transition == "issue" and packet.wait is not None
    assert check(world, decision, "grant").reason == "live"
    assert check(world, decision, "target").observed == check(world, decision, "target").recorded


def test_a_moved_order_voids_the_grant_and_asks_again_on_what_it_is_now(world: World, shop: Shop) -> None:
    run_id = asking(world)
    say(world, world.alice, run_id)
    before = world.effect(run_id)
    shop.version = "2"
    decision = wake(world, run_id)
    assert decision.decision == "ask_again"
    moved = check(world, decision, "target")
    assert (moved.answer, moved.recorded, moved.observed) == ("changed", '"1"', '"2"')
    assert [grant.state for grant in Grant.objects.of(world.tenant).filter(run_id=run_id)] == ["voided"]
    after = world.effect(run_id)
    assert after.observed_version == '"2"' and bytes(after.subject_digest) != bytes(before.subject_digest)
    assert after.observation_id == Observation.objects.of(world.tenant).filter(run_id=run_id, source="wake").get().pk
    request = ApprovalRequest.objects.of(world.tenant).get(run_id=run_id)
    assert (request.state, request.revision) == ("pending", 2)
    assert world.head(run_id).status == "waiting" and last_wait(world, run_id).internal == "ask_again"
    say(world, world.alice, run_id)
    assert wake(world, run_id).decision == "resume"


def test_an_order_that_keeps_moving_goes_to_a_person_after_two_re_asks(world: World, shop: Shop) -> None:
    run_id = asking(world)
    for version, decided in (("2", "ask_again"), ("3", "ask_again"), ("4", "hand_off")):
        say(world, world.alice, run_id)
        shop.version = version
        assert wake(world, run_id).decision == decided
    handoff = Handoff.objects.of(world.tenant).get(run_id=run_id)
    assert handoff.reason == "target:moved:asked_enough" and world.head(run_id).status == "blocked"


def test_a_run_whose_permit_is_refused_again_and_again_goes_to_a_person(world: World, shop: Shop, clock: Clock) -> None:
    world.policy(({"tool": "*", "verdict": "allow"},))
    register(world, shop, "payments")
    run_id = commit(world, world.claimed_run(), Next(NextKind.GO_ON, "issue"), pay("payments"))
    effect, refusals = world.effect(run_id), 0
    while world.head(run_id).status != "blocked":
        assert refusals < 15, "it comes round for ever"
        clock.shift(600)
        shop.version = "1"
        assert wake(world, run_id).decision == "resume", "the order is at rest whenever the wake looks"
        packet = claim(world, run_id)
        shop.version = "2"
        seen = observe.seen_version(run_view(run_id).targets[effect.target_id], effect.resource)
        with pytest.raises(LedgerError, match="changed"):
            effects.permit(world.caller, effect.pk, packet.fence, seen)
        refusals += 1
    assert refusals == 10
    assert Handoff.objects.of(world.tenant).get(run_id=run_id).reason == "no-progress"


def test_a_moved_order_is_planned_anew_where_the_transition_says_so(world: World, shop: Shop) -> None:
    packet = replanning(world)
    run_id = commit(world, packet, approval(), pay())
    say(world, world.alice, run_id)
    old = world.head(run_id).instance_id
    shop.version = "2"
    assert wake(world, run_id).decision == "replan"
    head = world.head(run_id)
    assert (head.status, head.transition) == ("ready", "assess") and head.instance_id != old
    assert (world.effect(run_id).state, world.effect(run_id).cause) == ("withdrawn", "superseded")
    last = Checkpoint.objects.of(world.tenant).filter(run_id=run_id).latest("seq")
    assert (last.kind, last.last_transition, last.next_transition) == ("replan", "issue", "assess")
    again = claim(world, run_id, "3")
    assert again.checkpoint["seq"] == last.seq
    commit(world, again, approval(), pay())
    assert Effect.objects.of(world.tenant).filter(run_id=run_id, name="pay").count() == 2


def test_a_silent_target_is_asked_again_later_and_nothing_is_cleared(world: World, shop: Shop, clock: Clock) -> None:
    run_id = asking(world)
    say(world, world.alice, run_id)
    shop.silent = True
    assert wake(world, run_id).decision == "retry_later"
    assert last_wait(world, run_id).internal == "retry_later"
    shop.silent = False
    clock.shift(6)
    assert waits.expire_due(run_id)
    assert wake(world, run_id).decision == "resume"


def test_a_denial_is_told_to_the_agent_and_withdraws_the_effect_as_denied(world: World, shop: Shop) -> None:
    run_id = asking(world)
    say(world, world.alice, run_id, "deny")
    assert wake(world, run_id).decision == "resume"
    packet = claim(world, run_id)
    assert packet.wait is not None and [m.outcome for m in packet.wait.members] == ["denied"]
    assert (world.effect(run_id).state, world.effect(run_id).cause) == ("withdrawn", "denied")


def test_two_effects_on_one_resource_rest_on_one_observation(world: World, shop: Shop) -> None:
    run_id = commit(
        world, world.claimed_run(), Next(NextKind.GIVE_BACK, "issue"), pay(), pay(name="voucher", tool="notes.add")
    )
    seen = Observation.objects.of(world.tenant).get(run_id=run_id)
    assert {world.effect(run_id, name).observation_id for name in ("pay", "voucher")} == {seen.pk}
    assert shop.asked == 1 and verify.run(run_id).intact


def test_what_came_before_an_answer_wakes_the_agent_and_withdraws_what_was_asked(
    world: World, shop: Shop, clock: Clock
) -> None:
    now = facts.read().now
    members = (
        MemberSpec(MemberKind.APPROVAL, effect="pay"),
        MemberSpec(MemberKind.TIMER, at=now + timedelta(seconds=5)),
    )
    wait = WaitSpec(SetMode.ANY, members, now + timedelta(days=1), OnDeadline.CANCEL)
    run_id = asking(world, Next(NextKind.WAIT, "issue", wait))
    clock.shift(6)
    assert waits.expire_due(run_id)
    assert wake(world, run_id).decision == "resume"
    assert ApprovalRequest.objects.of(world.tenant).get(run_id=run_id).state == "withdrawn"
    assert (world.effect(run_id).state, world.effect(run_id).cause) == ("withdrawn", "superseded")
    packet = claim(world, run_id)
    assert packet.wait is not None and [str(m.outcome) for m in packet.wait.members] == ["", "due"]


def test_of_two_requests_the_first_answer_goes_on_and_the_other_is_withdrawn(world: World, shop: Shop) -> None:
    members = tuple(MemberSpec(MemberKind.APPROVAL, effect=name) for name in ("pay", "voucher"))
    wait = WaitSpec(SetMode.ANY, members, facts.read().now + timedelta(days=1), OnDeadline.CANCEL)
    run_id = commit(
        world, world.claimed_run(), Next(NextKind.WAIT, "issue", wait), pay(), pay(name="voucher", resource="18")
    )
    paid = ApprovalRequest.objects.of(world.tenant).get(run_id=run_id, subject_id=world.effect(run_id).pk)
    answer(world, world.alice, paid)
    assert wake(world, run_id).decision == "resume"
    assert (
        world.effect(run_id).state == "proposed" and Grant.objects.of(world.tenant).get(run_id=run_id).state == "live"
    )
    voucher = world.effect(run_id, "voucher")
    assert (voucher.state, voucher.cause) == ("withdrawn", "superseded")


def test_a_request_that_was_cut_off_stays_so_when_the_wake_has_to_look_again(
    world: World, shop: Shop, clock: Clock
) -> None:
    members = tuple(MemberSpec(MemberKind.APPROVAL, effect=name) for name in ("pay", "voucher"))
    wait = WaitSpec(SetMode.ANY, members, facts.read().now + timedelta(days=1), OnDeadline.CANCEL)
    run_id = commit(
        world, world.claimed_run(), Next(NextKind.WAIT, "issue", wait), pay(), pay(name="voucher", resource="18")
    )
    paid = ApprovalRequest.objects.of(world.tenant).get(run_id=run_id, subject_id=world.effect(run_id).pk)
    answer(world, world.alice, paid)
    shop.silent = True
    assert wake(world, run_id).decision == "retry_later"
    shop.silent = False
    clock.shift(6)
    assert waits.expire_due(run_id)
    assert wake(world, run_id).decision == "resume"
    assert world.effect(run_id, "voucher").state == "withdrawn"


@pytest.mark.parametrize(
    ("action", "decided", "status"),
    [
        (OnDeadline.WAKE, "resume", "ready"),
        (OnDeadline.CANCEL, "finish", "cancelled"),
        (OnDeadline.FAIL, "finish", "failed"),
        (OnDeadline.HAND_OFF, "hand_off", "blocked"),
    ],
)
def test_silence_does_what_the_wait_declared(
    world: World, shop: Shop, clock: Clock, action: OnDeadline, decided: str, status: str
) -> None:
    run_id = asking(world, approval(60, action))
    clock.shift(61)
    assert waits.expire_due(run_id)
    assert last_wait(world, run_id).cause == f"deadline_{action}"
    assert wake(world, run_id).decision == decided
    assert world.head(run_id).status == status
    assert ApprovalRequest.objects.of(world.tenant).get(run_id=run_id).state != "pending"
    if status in {"ready", "cancelled", "failed"}:
        assert world.effect(run_id).state == "withdrawn"


def test_a_timer_that_was_due_before_the_deadline_counts_first_however_late_it_is_seen(
    world: World, clock: Clock
) -> None:
    run_id = commit(world, world.claimed_run(), timer(10, 60, OnDeadline.CANCEL))
    clock.shift(3_600)
    assert waits.expire_due(run_id)
    assert last_wait(world, run_id).state == "satisfied"
    assert wake(world, run_id).decision == "resume"


def test_a_timer_that_is_past_when_the_wait_opens_wakes_at_once(world: World) -> None:
    run_id = commit(world, world.claimed_run(), timer(-1))
    assert world.head(run_id).status == "waking"
    assert last_wait(world, run_id).state == "satisfied"


def test_an_agent_that_was_deactivated_meanwhile_is_not_cleared(world: World) -> None:
    run_id = commit(world, world.claimed_run(), timer(-1))
    identity.deactivate_agent(world.admin, world.agent_id)
    decision = wake(world, run_id)
    assert decision.decision == "hand_off" and check(world, decision, "identity").reason == "agent_inactive"


def test_a_policy_that_now_denies_hands_off(world: World, shop: Shop) -> None:
    run_id = asking(world)
    say(world, world.alice, run_id)
    world.policy(({"tool": "payments.*", "verdict": "deny"},))
    decision = wake(world, run_id)
    assert decision.decision == "hand_off" and decision.reasons == ["policy:denied"]


def test_a_policy_that_now_requires_more_asks_again(world: World, shop: Shop) -> None:
    run_id = asking(world)
    say(world, world.alice, run_id)
    world.policy(
        (
            {
                "tool": "payments.*",
                "verdict": "approve",
                "group": "approvers",
                "quorum": 2,
                "decide_by": 60,
                "use_by": 60,
            },
        )
    )
    decision = wake(world, run_id)
    assert decision.decision == "ask_again" and check(world, decision, "grant").reason == "policy_changed"


def test_a_grant_past_its_use_by_is_asked_again(world: World, shop: Shop, clock: Clock) -> None:
    run_id = asking(world)
    say(world, world.alice, run_id)
    clock.shift(3_601)
    decision = wake(world, run_id)
    assert decision.decision == "ask_again" and check(world, decision, "grant").reason == "expired"


def test_an_effect_that_needs_leave_and_has_none_is_asked_for_at_the_wake(world: World, shop: Shop) -> None:
    run_id = commit(world, world.claimed_run(), Next(NextKind.GIVE_BACK, "issue"), pay())
    decision = wake(world, run_id)
    assert decision.decision == "ask_again" and check(world, decision, "grant").reason == "missing"
    say(world, world.alice, run_id)
    assert wake(world, run_id).decision == "resume"


def test_one_wake_has_one_checker_and_one_decision(world: World) -> None:
    run_id = commit(world, world.claimed_run(), timer(-1))
    taken = wake_rows.begin(run_id)
    assert taken is not None and wake_rows.begin(run_id) is None
    gathered = gather.gather(run_id, taken)
    assert wake_rows.apply(run_id, gathered) == "resume"
    assert wake_rows.apply(run_id, gathered) is None
    assert Decision.objects.of(world.tenant).filter(run_id=run_id).count() == 1


def test_a_checker_that_died_is_replaced_after_its_time_and_counted(world: World, clock: Clock) -> None:
    run_id = commit(world, world.claimed_run(), timer(-1))
    assert wake_rows.begin(run_id) is not None
    assert run_id not in wake_rows.due(1_000)
    clock.shift(61)
    assert run_id in wake_rows.due(1_000)
    assert wakes.run(run_id) == "resume"
    assert Wake.objects.of(world.tenant).get(run_id=run_id).attempt == 2


def test_a_wake_that_never_finishes_goes_to_a_person(world: World, clock: Clock) -> None:
    run_id = commit(world, world.claimed_run(), timer(-1))
    for _ in range(3):
        assert wake_rows.begin(run_id) is not None
        clock.shift(61)
    decision = wake(world, run_id)
    assert decision.decision == "hand_off" and decision.reasons == ["attempts:never_finished"]


def test_a_fact_that_moved_under_the_checker_is_looked_at_again(world: World, shop: Shop) -> None:
    run_id = asking(world)
    say(world, world.alice, run_id)
    taken = wake_rows.begin(run_id)
    assert taken is not None
    gathered = gather.gather(run_id, taken)
    world.policy(({"tool": "payments.*", "verdict": "deny"},))
    assert wake_rows.apply(run_id, gathered) is None
    assert Wake.objects.of(world.tenant).get(run_id=run_id).state == "queued"
    assert wake(world, run_id).decision == "hand_off"


def test_only_old_versions_are_routed_to_when_the_newest_takes_nothing_over(world: World, clock: Clock) -> None:
    run_id = commit(world, world.claimed_run(), timer(-1))
    workflows.register(world.caller, "refund", "9", VersionSpec(SCHEMA, "assess", TRANSITIONS))
    assert wake(world, run_id).decision == "route_old"
    clearance = run_view(run_id).clearance
    assert clearance is not None and clearance.versions == ["1", "2"]
    clock.shift(3_601)
    assert run_id in wake_rows.unclaimed(1_000)
    assert wake_rows.not_claimed(run_id)
    assert world.head(run_id).status == "blocked"


def test_a_version_that_comes_later_may_take_a_run_that_was_ready_before(world: World) -> None:
    run_id = world.start_run()
    assert not wake_rows.reconsider(run_id), "nothing was registered since"
    workflows.register(world.caller, "refund", "3", VersionSpec(SCHEMA, "assess", TRANSITIONS, ("1", "2")))
    assert run_id in wake_rows.outdated(1_000)
    assert wake_rows.reconsider(run_id) and not wake_rows.reconsider(run_id)
    assert wake(world, run_id).decision == "resume"
    assert world.claim("3").run.id == run_id and verify.run(run_id).intact


@pytest.mark.postgres_only
def test_a_run_that_is_cleared_while_a_version_is_written_may_be_taken_by_it(world: World) -> None:
    """Its time is before the clearance's, and nobody could see it then: whoever goes by times passes the run over."""
    started: list[UUID] = []

    def registering() -> None:
        workflows.register(world.caller, "refund", "3", VersionSpec(SCHEMA, "assess", TRANSITIONS, ("1", "2")))

    between_reading_and_writing(lambda: started.append(world.start_run()), registering)
    assert world.head(started[0]).status == "waking" and wake(world, started[0]).decision == "resume"
    assert world.claim("3").run.id == started[0] and verify.run(started[0]).intact


def test_a_version_whose_time_is_yet_to_come_wakes_nobody_over_and_over(world: World, clock: Clock) -> None:
    clock.set(86_400)
    workflows.register(world.caller, "refund", "3", VersionSpec(SCHEMA, "assess", TRANSITIONS, ("1", "2")))
    clock.set(0)
    run_id = world.start_run()
    assert not wake_rows.reconsider(run_id), "its clearance names that version already"
    workflows.register(world.caller, "refund", "4", VersionSpec(SCHEMA, "assess", TRANSITIONS, ("1", "2", "3")))
    assert wake_rows.reconsider(run_id), "and not this one"


def test_a_new_run_is_for_no_version_that_lacks_its_first_transition(world: World) -> None:
    renamed = {"triage": TRANSITIONS["assess"], "issue": TRANSITIONS["issue"]}
    workflows.register(world.caller, "refund", "3", VersionSpec(SCHEMA, "triage", renamed, ("1", "2")))
    clearance = run_view(world.start_run()).clearance
    assert clearance is not None and clearance.versions == ["1", "2"]


def test_a_clearance_that_nobody_claims_wakes_the_run_again(world: World, clock: Clock) -> None:
    run_id = commit(world, world.claimed_run(), timer(-1))
    wake(world, run_id)
    clock.shift(3_601)
    assert wake_rows.not_claimed(run_id) and not wake_rows.not_claimed(run_id)
    assert world.head(run_id).status == "waking" and verify.run(run_id).intact


def test_a_run_that_wants_no_wake_gets_none(world: World) -> None:
    assert wakes.run(world.start_run()) is None
