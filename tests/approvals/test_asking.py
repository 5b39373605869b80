"""Asking people: one open request a subject, a fresh revision when it changed, and leave that is looked at again when it is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from approvals.models import ApprovalRequest, Revision
from approvals.services import inbox, standing
from ledger.domain import authority as rules
from ledger.domain.drafts import Draft
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller, Verb
from ledger.domain.views import RunView
from ledger.models import Grant, TenantHead, User
from ledger.services import authority, facts, identity, ports, verify, writer
from ledger.services.drafts import run_draft
from ledger.services.facts import Part, load
from ledger.services.views import run_view
from tests.approvals.asking import Asked, asked, rule
from tests.clock import Clock
from tests.world import World


def change(run: Asked, act: Callable[[Draft, RunView], Any]) -> None:
    """One Change on the run, as the engine would make it."""
    view = run_view(run.run_id)
    draft = run_draft(view, "system:wake", "test.change")
    act(draft, view)
    if not draft.empty():
        writer.apply(draft.change())


def ask_again(run: Asked, reason: str = "changed", new_digest: bytes | None = None) -> None:
    def act(draft: Draft, view: RunView) -> None:
        effect = view.effect(run.effect_id)
        assert effect is not None
        if new_digest is not None:
            draft.move("effect", effect.id, {"state": effect.state}, subject_digest=new_digest)
            effect = replace(effect, subject_digest=new_digest)
        needs = rules.requirement(view.policy, effect.tool, "payments")
        ports.approvals().ask(draft, view, ports.Ask(effect, needs, view.now + timedelta(hours=1), reason))

    change(run, act)


def use(run: Asked) -> Grant | None:
    """Use the grant for one attempt, as a permit does."""
    view = run_view(run.run_id)
    draft = run_draft(view, "agent:x", "effect.permit", fresh_authority=True)
    effect, grant = view.effect(run.effect_id), view.grant_for(run.effect_id)
    assert effect is not None
    doubt = ports.approvals().still_good(grant, view) if grant else ""
    rules.use_grant(draft, view, effect, rules.requirement(view.policy, effect.tool, "payments"), doubt)
    writer.apply(draft.change())
    return run.grants[-1]


def refused(act: Callable[[], Any]) -> str:
    with pytest.raises(LedgerError) as refusal:
        act()
    return refusal.value.code


def test_without_a_decision_there_is_nothing_to_use(world: World) -> None:
    assert refused(lambda: use(asked(world))) == "grant-missing"


def test_a_denied_effect_has_nothing_to_use(world: World) -> None:
    run = asked(world)
    run.decide(world.alice, "deny", "no")
    assert not run.grants and run.effect.state == "withdrawn"


def test_an_approval_is_used_once_and_its_use_by_counts_from_the_approval(world: World, clock: Clock) -> None:
    run = asked(world, rule(use_by=60))
    clock.shift(600)
    run.decide(world.alice)
    clock.shift(59)
    used = use(run)
    assert used is not None and used.state == "used"
    assert refused(lambda: use(run)) == "grant-missing"


def test_after_use_by_an_approval_is_worth_nothing_though_no_sweep_ran(world: World, clock: Clock) -> None:
    run = asked(world, rule(use_by=60))
    run.decide(world.alice)
    clock.shift(60)
    assert refused(lambda: use(run)) == "expired"
    assert [grant.state for grant in run.grants] == ["live"]


def test_another_subject_than_the_approved_one_is_not_covered(world: World) -> None:
    run = asked(world)
    run.decide(world.alice)
    change(
        run, lambda draft, view: draft.move("effect", run.effect_id, {"state": "proposed"}, subject_digest=b"\x09" * 32)
    )
    assert refused(lambda: use(run)) == "grant-void"


def test_a_policy_that_now_requires_more_or_denies_is_obeyed(world: World) -> None:
    run = asked(world)
    run.decide(world.alice)
    world.policy((rule(quorum=2),))
    assert refused(lambda: use(run)) == "grant-void"
    world.policy(({"tool": "*", "verdict": "deny"},))
    assert refused(lambda: use(run)) == "policy-denies"


def test_an_edit_of_the_policy_that_leaves_the_requirement_alone_voids_nothing(world: World) -> None:
    run = asked(world, rule())
    run.decide(world.alice)
    world.policy((rule(), {"tool": "other.*", "verdict": "allow"}))
    used = use(run)
    assert used is not None and used.state == "used"


@pytest.mark.parametrize("loss", ["team", "tenant", "active", "permission"])
def test_a_vote_whose_right_was_lost_before_use_holds_nothing_up(world: World, loss: str) -> None:
    run = asked(world)
    run.decide(world.alice)
    if loss == "team":
        identity.remove_from_team(world.admin, world.approvers, world.alice)
    elif loss == "tenant":
        identity.leave(world.admin, world.alice)
    elif loss == "active":
        identity.deactivate_person(world.admin, world.alice)
    else:
        identity.withdraw_permission(world.admin, world.approvers, Verb.APPROVE, world.workflow)
    assert refused(lambda: use(run)) == "grant-void"
    assert [vote.groups for vote in run.votes] == [["approvers"]]


def test_the_same_thing_asked_twice_is_the_one_open_request(world: World) -> None:
    run = asked(world)
    ask_again(run)
    assert run.request.revision == 1
    assert ApprovalRequest.objects.of(world.tenant).count() == 1


def test_a_changed_subject_is_a_new_revision_that_carries_no_votes(world: World) -> None:
    run = asked(world, rule(quorum=2))
    run.decide(world.alice)
    seen = {"seen_digest": bytes(run.request.digest), "seen_revision": 1}
    ask_again(run, new_digest=b"\x07" * 32)
    now = run.request
    assert (now.state, now.revision, bytes(now.digest)) == ("pending", 2, b"\x07" * 32)
    with pytest.raises(LedgerError) as refusal:
        run.decide(world.bob, **seen)
    assert refusal.value.code == "changed"
    assert run.decide(world.bob).state == "pending"
    assert run.decide(world.alice).state == "approved"


def test_asking_again_after_an_approval_voids_the_grant_and_every_column_is_of_the_new_revision(
    world: World, clock: Clock
) -> None:
    run = asked(world, rule(decide_by=600))
    run.decide(world.alice)
    before = run.request
    clock.shift(30)
    ask_again(run, "voided", new_digest=b"\x08" * 32)
    now = run.request
    assert [grant.state for grant in run.grants] == ["voided"]
    assert (now.state, now.revision, now.closed_at, now.cause) == ("pending", 2, None, "")
    assert bytes(now.digest) == b"\x08" * 32 and now.decide_by > before.decide_by
    newest = Revision.objects.of(world.tenant).get(request=now, number=2)
    assert (newest.reason, newest.decide_by, bytes(newest.subject_digest)) == ("voided", now.decide_by, b"\x08" * 32)
    assert not verify.run(run.run_id).faults


def test_when_a_vote_lost_its_right_the_others_are_carried_and_one_more_is_needed(world: World) -> None:
    identity.add_to_team(world.admin, world.approvers, world.charlie)
    run = asked(world, rule(quorum=2))
    run.decide(world.alice)
    run.decide(world.bob, reason="fine")
    identity.remove_from_team(world.admin, world.approvers, world.alice)
    ask_again(run, "voided")
    assert (run.request.state, run.request.revision) == ("pending", 2)
    carried = [(vote.voter_id, vote.entry_point) for vote in run.votes if vote.revision == 2]
    assert carried == [(world.bob.pk, "carried")]
    assert [grant.state for grant in run.grants] == ["voided"]
    assert run.decide(world.bob).repeated
    assert run.decide(world.charlie).state == "approved"
    assert use(run) is not None and not verify.run(run.run_id).faults


def test_when_an_approval_was_not_used_in_time_nothing_is_carried(world: World, clock: Clock) -> None:
    run = asked(world, rule(quorum=2, use_by=30))
    run.decide(world.alice)
    run.decide(world.bob)
    clock.shift(31)
    ask_again(run, "voided")
    assert [vote.revision for vote in run.votes] == [1, 1]
    assert [grant.state for grant in run.grants] == ["expired"]


def test_withdrawing_closes_the_request_with_its_cause(world: World) -> None:
    run = asked(world)
    change(run, lambda draft, view: ports.approvals().withdraw(draft, view, None, "cancelled"))
    assert (run.request.state, run.request.cause) == ("withdrawn", "cancelled")
    assert refused(lambda: run.decide(world.alice)) == "wrong-state"


def test_too_few_people_who_could_decide_are_seen_and_never_approve(world: World) -> None:
    run = asked(world, rule(quorum=2))
    needs = rules.requirement(run_view(run.run_id).policy, "payments.refund", "payments")
    assert standing.cannot_be_met(needs.rules, (), world.workflow) == []
    identity.remove_from_team(world.admin, world.approvers, world.bob)
    assert standing.cannot_be_met(needs.rules, (), world.workflow) == ["approvers"]
    assert standing.cannot_be_met(needs.rules, (world.alice.pk,), world.workflow) == ["approvers"]
    assert run.decide(world.alice).state == "pending" and not run.grants


def test_an_approval_that_is_taken_back_before_use_is_worth_nothing(world: World) -> None:
    run = asked(world)
    grant_id = run.decide(world.alice).grant_id
    assert grant_id is not None
    assert refused(lambda: authority.revoke_grant(World().alice, grant_id)) == "not-found"
    assert refused(lambda: authority.revoke_grant(world.dora, grant_id)) == "forbidden"
    assert not authority.revoke_grant(world.bob, grant_id).used
    assert refused(lambda: use(run)) == "grant-missing"
    assert refused(lambda: authority.revoke_grant(world.bob, grant_id)) == "wrong-state"


def test_an_approval_that_is_taken_back_after_use_says_that_the_call_is_out(world: World) -> None:
    run = asked(world)
    run.decide(world.alice)
    used = use(run)
    assert used is not None
    answer = authority.revoke_grant(world.charlie, used.pk)
    assert answer.used and run.grants[-1].state == "revoked"


def test_a_used_grant_covers_further_attempts_until_its_use_by(world: World, clock: Clock) -> None:
    run = asked(world, rule(use_by=60))
    run.decide(world.alice)
    use(run)
    view = run_view(run.run_id, used=Part("grant", "t.subject_id = %s", (run.effect_id,), many=True))
    effect = view.effect(run.effect_id)
    assert effect is not None
    known = view.but(grants=[load(rules.GrantRow, row) for row in view.extras["used"]])
    needs = rules.requirement(view.policy, effect.tool, "payments")
    assert rules.use_grant(run_draft(known, "agent:x", "x"), known, effect, needs) is not None
    clock.shift(61)
    late = run_draft(known, "agent:x", "x")
    late.at = facts.read().now
    assert refused(lambda: rules.use_grant(late, known, effect, needs)) == "expired"


# Inbox --------------------------------------------------------------------------------------


def waiting(world: World, user: User) -> list[Any]:
    found = inbox.pending_for(user, world.tenant)
    listed = [request.pk for request in found]
    assert found.count() == len(listed)
    return listed


def test_an_inbox_holds_exactly_what_its_owner_can_decide(world: World) -> None:
    identity.add_to_team(world.admin, world.approvers, world.dora)
    finance = identity.add_team(world.admin, "finance", "Finance")
    identity.add_to_team(world.admin, finance, world.charlie)
    identity.grant_permission(world.admin, finance, Verb.APPROVE, world.workflow)
    runs = [asked(world, rule(quorum=2)), asked(world, rule("finance")), asked(world, rule(), rule("finance"))]
    for user in (world.alice, world.bob, world.charlie, world.dora, World().alice):
        able = []
        for run in runs:
            stored = Revision.objects.of(world.tenant).get(request_id=run.request_id)
            asking = rules.Requirement.from_document(stored.requirement).rules
            assert stored.excluded == [str(world.dora.pk)]
            if user.pk in standing.eligible(asking, {world.dora.pk}, world.workflow):
                able.append(run.request_id)
        assert sorted(waiting(world, user)) == sorted(able), user.name


def test_what_was_voted_on_decided_or_expired_leaves_the_inbox(world: World, clock: Clock) -> None:
    both, one, late = asked(world, rule(quorum=2)), asked(world, rule()), asked(world, rule(decide_by=30))
    assert waiting(world, world.alice)[0] == late.request_id and len(waiting(world, world.alice)) == 3
    world.policy((rule(quorum=2),))
    both.decide(world.alice)
    assert both.request_id not in waiting(world, world.alice)
    assert both.request_id in waiting(world, world.bob)
    world.policy((rule(),))
    one.decide(world.alice)
    clock.shift(31)
    assert waiting(world, world.bob) == [both.request_id]
    assert late.request.state == "pending"
    identity.remove_from_team(world.admin, world.approvers, world.bob)
    assert waiting(world, world.bob) == []


# Policies -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "code", "word"),
    [
        ({}, "invalid", "list of rules"),
        ([], "invalid", "list of rules"),
        (["x"], "invalid", "rule 1"),
        ([{"tool": "", "verdict": "allow"}], "invalid", "no tool"),
        ([{"tool": "a", "verdict": "maybe"}], "invalid", "verdict"),
        ([{"tool": "a", "verdict": ["allow"]}], "invalid", "verdict"),
        ([{"tool": "a", "verdict": "approve"}], "invalid", "nobody could approve"),
        ([{"tool": "a", "verdict": "approve", "group": ""}], "invalid", "nobody could approve"),
        ([{"tool": "a", "verdict": "approve", "group": "ghosts"}], "invalid", "no team 'ghosts'"),
        ([{"tool": "a", "verdict": "allow", "group": "approvers"}], "invalid", "no meaning"),
        ([rule(quorum=0)], "invalid", "quorum"),
        ([rule(quorum=True)], "invalid", "quorum"),
        ([rule(decide_by=1.5)], "invalid", "decide_by"),
        ([rule(use_by=10**9)], "invalid", "use_by"),
        ([rule(), rule(risk="high")], "unknown-field", "rule 2"),
    ],
)
def test_a_policy_that_means_nothing_is_refused_and_the_rule_is_named(
    world: World, document: object, code: str, word: str
) -> None:
    before = TenantHead.objects.of(world.tenant).get().head_seq
    with pytest.raises(LedgerError) as refusal:
        authority.publish_policy(world.admin, document)
    assert refusal.value.code == code and word in refusal.value.reason
    assert TenantHead.objects.of(world.tenant).get().head_seq == before


def test_only_an_administrator_publishes_a_policy(world: World) -> None:
    alice = Caller(world.tenant.pk, f"person:{world.alice.pk}", person_id=world.alice.pk)
    assert refused(lambda: authority.publish_policy(alice, [rule()])) == "forbidden"


def test_a_published_policy_is_in_force_at_once_with_the_next_number(world: World) -> None:
    dora = Caller(world.tenant.pk, f"person:{world.dora.pk}", person_id=world.dora.pk)
    first = authority.publish_policy(dora, [rule()])
    second = authority.publish_policy(dora, [{"tool": "*", "verdict": "deny"}])
    assert second.number == first.number + 1
    run = world.start_run()
    assert rules.requirement(run_view(run).policy, "payments.refund", "payments").verdict == "deny"
