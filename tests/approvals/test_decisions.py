"""Deciding: one door, exactly what was read, once; everything else is refused with its own word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import Permission

from approvals.services import requests
from approvals.services.cards import card_for
from ledger.domain.canonical import digest
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Scope, Verb
from ledger.domain.journal import committed
from ledger.domain.starts import StartSpec
from ledger.models import Body, JournalEntry, User
from ledger.services import grants, identity, keys, runs, verify
from tests.approvals.asking import Asked, asked, rule
from tests.clock import Clock
from tests.documents import STATE
from tests.world import World


def refused(act: Callable[[], Any]) -> LedgerError:
    with pytest.raises(LedgerError) as refusal:
        act()
    return refusal.value


def untouched(ask: Asked) -> bool:
    return ask.request.state == "pending" and not ask.votes and not ask.grants and ask.effect.state == "proposed"


@pytest.mark.parametrize("choice", ["", None, "Approve", "approved", "yes", "approve ", True, 1, ["approve"], "expire"])
def test_only_the_literal_words_decide(world: World, choice: object) -> None:
    ask = asked(world)
    assert refused(lambda: ask.decide(world.alice, choice)).code == "invalid"
    assert untouched(ask)


@pytest.mark.parametrize("reason", ["", "  ", "\n"])
def test_a_denial_without_a_reason_is_refused(world: World, reason: str) -> None:
    ask = asked(world)
    assert refused(lambda: ask.decide(world.alice, "deny", reason)).code == "invalid"
    assert untouched(ask)


def test_a_request_of_another_tenant_is_invisible(world: World) -> None:
    ask, stranger = asked(world), World().alice
    assert refused(lambda: ask.decide(stranger)).code == "not-found"
    assert untouched(ask)


def test_who_sees_but_may_not_approve_is_refused(world: World) -> None:
    ask = asked(world)
    assert refused(lambda: ask.decide(world.charlie)).code == "not-eligible"
    assert untouched(ask)


def test_who_may_approve_but_is_in_none_of_the_groups_is_refused(world: World) -> None:
    ask = asked(world)
    identity.grant_permission(world.admin, world.charlie, Verb.APPROVE, world.workflow)
    assert refused(lambda: ask.decide(world.charlie)).code == "not-eligible"
    assert untouched(ask)


def test_a_superuser_and_a_global_permission_decide_nothing(world: World) -> None:
    ask = asked(world)
    world.charlie.user_permissions.add(Permission.objects.get(codename="approve_workflow"))
    User.objects.filter(pk=world.charlie.pk).update(is_superuser=True)
    assert refused(lambda: ask.decide(User.objects.get(pk=world.charlie.pk))).code == "not-eligible"
    assert untouched(ask)


def test_the_owner_of_the_agent_decides_nothing_that_it_asks(world: World) -> None:
    identity.add_to_team(world.admin, world.approvers, world.dora)
    ask = asked(world)
    assert refused(lambda: ask.decide(world.dora)).code == "self-approval"
    assert untouched(ask)


def test_who_started_the_run_with_their_own_key_decides_nothing_that_it_asks(world: World) -> None:
    issued = identity.issue_key(world.admin, "own", [Scope.RUNS_START], person=world.alice, workflows=["*"])
    own = keys.authenticate(f"Bearer {issued.secret}")
    for_bob = StartSpec("refund", "1", "task", dict(STATE), {}, "", "key-1", on_behalf_of_id=world.bob.pk)
    assert refused(lambda: runs.start(own, for_bob)).code == "forbidden"
    run_id = runs.start(own, replace(for_bob, on_behalf_of_id=None)).run_id
    ask = asked(world, run_id=run_id)
    assert refused(lambda: ask.decide(world.alice)).code == "self-approval"
    assert untouched(ask)
    assert ask.decide(world.bob).state == "approved"


def test_rights_and_being_active_are_read_inside_the_deciding_transaction(world: World) -> None:
    ask = asked(world)
    cached = User.objects.get(pk=world.alice.pk)
    assert cached.groups.exists() and cached.is_active
    identity.deactivate_person(world.admin, world.alice)
    assert refused(lambda: ask.decide(cached)).code == "not-found"
    identity.reactivate_person(world.admin, world.alice)
    identity.remove_from_team(world.admin, world.approvers, world.alice)
    identity.grant_permission(world.admin, world.alice, Verb.SEE, world.workflow)
    assert refused(lambda: ask.decide(cached)).code == "not-eligible"
    assert untouched(ask)


@pytest.mark.parametrize("seen", [{"seen_digest": b"\x00" * 32}, {"seen_revision": 2}, {"seen_revision": 0}])
def test_what_was_read_must_be_what_is_asked(world: World, seen: dict[str, Any]) -> None:
    ask = asked(world)
    refusal = refused(
        lambda: ask.decide(
            world.alice,
            seen_digest=seen.get("seen_digest", bytes(ask.request.digest)),
            seen_revision=seen.get("seen_revision", 1),
        )
    )
    assert refusal.code == "changed" and refusal.facts["revision"] == 1
    assert untouched(ask)


def test_after_decide_by_nothing_is_decided_though_no_sweep_ran(world: World, clock: Clock) -> None:
    ask = asked(world, seconds=60)
    clock.shift(61)
    assert refused(lambda: ask.decide(world.alice)).code == "expired"
    assert untouched(ask)


def test_decide_by_is_the_earlier_of_the_policys_window_and_the_waits_deadline(world: World) -> None:
    short = asked(world, rule(decide_by=10), seconds=60).request
    assert (short.decide_by - short.opened_at).total_seconds() == 10
    long = asked(world, rule(decide_by=600), seconds=60).request
    assert (long.decide_by - long.opened_at).total_seconds() <= 60


def test_an_approval_gives_one_grant_and_wakes_the_run(world: World) -> None:
    ask = asked(world)
    answer = ask.decide(world.alice)
    assert (answer.state, answer.repeated, dict(answer.missing)) == ("approved", False, {})
    (grant,) = ask.grants
    assert (grant.pk, grant.state, bytes(grant.subject_digest)) == (
        answer.grant_id,
        "live",
        bytes(ask.effect.subject_digest),
    )
    assert (grant.use_by - grant.approved_at).total_seconds() == 3_600
    assert (ask.member.state, ask.member.outcome) == ("met", "approved")
    assert world.head(ask.run_id).status == "waking"
    assert ask.effect.state == "proposed"


def test_the_vote_keeps_what_was_on_the_screen_and_the_groups_of_the_time(world: World) -> None:
    ask = asked(world)
    ask.decide(world.alice, reason="checked the order")
    identity.remove_from_team(world.admin, world.approvers, world.alice)
    (vote,) = ask.votes
    assert (vote.voter_id, vote.choice, vote.revision) == (world.alice.pk, "approve", 1)
    card = committed((b"\x01" * 32).hex(), bytes(world.head(ask.run_id).salt))
    assert bytes(vote.receipt_digest) == digest("vote-receipt/1", {"card": card})
    assert (vote.renderer, vote.entry_point) == ("card/1", "page")
    assert vote.groups == ["approvers"]
    assert bytes(Body.objects.of(world.tenant).get(pk=vote.reason_body_id).content) == b"checked the order"


def test_a_reason_is_never_in_the_journal(world: World) -> None:
    ask = asked(world)
    ask.decide(world.alice, "deny", "smells of fraud")
    entries = JournalEntry.objects.of(world.tenant).filter(stream_id=ask.run_id)
    assert not any(b"fraud" in bytes(entry.content) for entry in entries)


def test_one_denial_denies_and_the_agent_is_told(world: World) -> None:
    ask = asked(world, rule(quorum=2))
    answer = ask.decide(world.bob, "deny", "too much")
    assert (answer.state, answer.grant_id) == ("denied", None)
    assert (ask.effect.state, ask.effect.cause) == ("withdrawn", "denied")
    assert ask.member.outcome == "denied" and world.head(ask.run_id).status == "waking"
    assert not ask.grants


def test_a_quorum_of_two_needs_two_people(world: World) -> None:
    ask = asked(world, rule(quorum=2))
    first = ask.decide(world.alice)
    assert (first.state, dict(first.missing), ask.grants) == ("pending", {"approvers": 1}, [])
    assert world.head(ask.run_id).status == "waiting"
    assert ask.decide(world.alice).repeated and not ask.grants
    assert ask.decide(world.bob).state == "approved" and len(ask.grants) == 1


def test_a_vote_of_somebody_who_lost_the_right_meanwhile_does_not_count(world: World) -> None:
    ask = asked(world, rule(quorum=2))
    ask.decide(world.alice)
    identity.remove_from_team(world.admin, world.approvers, world.alice)
    assert ask.decide(world.bob).state == "pending" and not ask.grants


def test_two_rules_need_a_vote_each(world: World) -> None:
    finance = identity.add_team(world.admin, "finance", "Finance")
    identity.add_to_team(world.admin, finance, world.alice)
    ask = asked(world, rule(), rule("finance"))
    assert dict(ask.decide(world.alice).missing) == {"finance": 1} or ask.request.state == "pending"
    assert ask.decide(world.bob).state == "approved"


def test_the_same_vote_again_answers_what_was_decided(world: World) -> None:
    ask = asked(world)
    first = ask.decide(world.alice)
    seq = world.head(ask.run_id).head_seq
    again = ask.decide(world.alice)
    assert (again.state, again.repeated, again.grant_id) == ("approved", True, first.grant_id)
    assert (len(ask.votes), len(ask.grants), world.head(ask.run_id).head_seq) == (1, 1, seq)


def test_a_vote_cannot_be_turned_round(world: World) -> None:
    ask = asked(world, rule(quorum=2))
    ask.decide(world.alice)
    assert refused(lambda: ask.decide(world.alice, "deny", "on second thoughts")).code == "already-decided"
    assert len(ask.votes) == 1


def test_who_comes_second_is_told_who_decided_and_when(world: World) -> None:
    ask = asked(world)
    ask.decide(world.alice)
    refusal = refused(lambda: ask.decide(world.bob, "deny", "late"))
    assert refusal.code == "already-decided" and refusal.status == 409
    assert refusal.facts["decided_by"] == str(world.alice.pk) and refusal.facts["state"] == "approved"
    assert refusal.facts["decided_at"]


def test_what_nobody_decided_expires_and_says_so(world: World, clock: Clock) -> None:
    ask = asked(world, rule(decide_by=30), seconds=600)
    clock.shift(31)
    assert requests.expire_due() >= 1
    assert ask.request.state == "expired"
    assert (ask.effect.state, ask.effect.cause, ask.member.outcome) == ("withdrawn", "expired", "expired")
    assert world.head(ask.run_id).status == "waking"
    assert refused(lambda: ask.decide(world.alice)).code == "expired"
    assert not ask.grants


def test_a_grant_that_nobody_used_expires(world: World, clock: Clock) -> None:
    ask = asked(world, rule(use_by=30))
    ask.decide(world.alice)
    clock.shift(31)
    grants.expire(ask.run_id)
    assert [grant.state for grant in ask.grants] == ["expired"]


def test_the_history_of_a_decided_run_verifies(world: World) -> None:
    ask = asked(world)
    ask.decide(world.alice)
    assert not verify.run(ask.run_id).faults


def without_alice_for_a_moment(world: World) -> Asked:
    """A request for two approvals with both in, of which the first didn't count when the second came."""
    ask = asked(world, rule(quorum=2))
    ask.decide(world.alice)
    identity.remove_from_team(world.admin, world.approvers, world.alice)
    answer = ask.decide(world.bob)
    assert (answer.state, dict(answer.missing)) == ("pending", {"approvers": 1})
    return ask


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_when_a_lost_right_comes_back_the_votes_that_are_in_are_counted_by_whoever_approves_again(
    world: World, who: str
) -> None:
    ask, voter = without_alice_for_a_moment(world), getattr(world, who)
    again = ask.decide(world.bob)
    assert again.repeated and (again.state, dict(again.missing), ask.grants) == ("pending", {"approvers": 1}, [])
    assert card_for(world.bob, world.tenant, ask.request_id).stance == "voted"
    identity.add_to_team(world.admin, world.approvers, world.alice)
    card = card_for(voter, world.tenant, ask.request_id)
    assert card.stance == "" and {person.pk for person in card.quorum.can_still} >= {world.alice.pk, world.bob.pk}
    answer = ask.decide(voter)
    (grant,) = ask.grants
    assert answer.repeated and (answer.state, answer.grant_id, dict(answer.missing)) == ("approved", grant.pk, {})
    assert len(ask.votes) == 2 and ask.member.outcome == "approved" and world.head(ask.run_id).status == "waking"
    assert ask.decide(voter).state == "approved" and len(ask.grants) == 1 and verify.run(ask.run_id).intact


def test_votes_that_make_the_quorum_after_decide_by_decide_nothing(world: World, clock: Clock) -> None:
    ask = without_alice_for_a_moment(world)
    identity.add_to_team(world.admin, world.approvers, world.alice)
    clock.shift(86_400)
    assert ask.decide(world.alice).state == "pending" and ask.grants == []
