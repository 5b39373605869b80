"""Decisions that meet another: decided, expired or asked again meanwhile, and leave that is taken back."""

from __future__ import annotations

import pytest

from ledger.domain.identity import Verb
from tests.clock import Clock
from tests.ui.asking import address, ask, client_of, decide, form_of, person_with, votes
from tests.ui.forms import TYPED, WAYS, assert_kept, post, text_of
from tests.world import RULES, World

TWO = ({**RULES[0], "quorum": 2}, *RULES[1:])


@WAYS
def test_decided_by_another_is_told_with_who_and_the_text_is_kept(world: World, htmx: bool) -> None:
    request, alice = ask(world), client_of(world.alice)
    form = form_of(text_of(alice.get(address(world, request))))
    decide(client_of(world.bob), world, request, "approve")
    answer = post(alice, world, request, {**form, "decision": "deny", "reason": TYPED}, htmx)
    assert answer.status_code == 409
    assert "approved by Bob" in text_of(answer) and 'name="decision"' not in text_of(answer)
    assert_kept(answer)
    assert votes(request) == [(world.bob.pk, "approve")]


@WAYS
def test_too_late_is_told_as_expired_even_before_any_sweep_and_the_text_is_kept(
    world: World, clock: Clock, htmx: bool
) -> None:
    request, alice = ask(world, hours=1), client_of(world.alice)
    form = form_of(text_of(alice.get(address(world, request))))
    clock.shift(3_700)
    answer = post(alice, world, request, {**form, "decision": "deny", "reason": TYPED}, htmx)
    assert answer.status_code == 410
    assert "Expired: nobody decided in time" in text_of(answer)
    assert_kept(answer)
    assert not votes(request)


@WAYS
@pytest.mark.parametrize("field", ["revision", "digest"])
def test_what_is_not_what_was_read_comes_back_with_a_fresh_form_and_the_text(
    world: World, field: str, htmx: bool
) -> None:
    request, alice = ask(world), client_of(world.alice)
    form = form_of(text_of(alice.get(address(world, request))))
    stale = {"revision": "7", "digest": "00" * 32}[field]
    answer = post(alice, world, request, {**form, field: stale, "decision": "deny", "reason": TYPED}, htmx)
    assert answer.status_code == 412
    fresh = form_of(text_of(answer))
    assert (fresh["revision"], fresh["digest"]) == (form["revision"], form["digest"])
    assert_kept(answer)
    assert not votes(request)


@WAYS
def test_what_was_asked_again_meanwhile_is_read_again_with_what_changed(world: World, htmx: bool) -> None:
    world.policy(TWO)
    request, alice, bob = ask(world), client_of(world.alice), client_of(world.bob)
    decide(bob, world, request, "approve")
    form = form_of(text_of(alice.get(address(world, request))))
    assert bob.post(address(world, request, "approval_withdraw"), {"revision": "1"}).status_code == 302
    answer = post(alice, world, request, {**form, "decision": "deny", "reason": TYPED}, htmx)
    assert answer.status_code == 412
    assert form_of(text_of(answer))["revision"] == "2"
    assert "Revision 2: what changed" in text_of(answer) and "an approver took their vote back" in text_of(answer)
    assert_kept(answer)
    assert votes(request) == [(world.bob.pk, "approve")]


@WAYS
def test_an_approval_of_an_earlier_revision_can_not_be_taken_back(world: World, htmx: bool) -> None:
    world.policy(TWO)
    request, bob = ask(world), client_of(world.bob)
    decide(bob, world, request, "approve")
    headers = {"HX-Request": "true"} if htmx else {}
    for revision in ("7", "", "x"):
        answer = bob.post(address(world, request, "approval_withdraw"), {"revision": revision}, headers=headers)
        assert answer.status_code == 412
    assert (
        client_of(world.alice).post(address(world, request, "approval_withdraw"), {"revision": "1"}).status_code == 412
    )


def test_leave_that_was_not_used_can_be_taken_back_by_approvers_only(world: World) -> None:
    request = ask(world)
    bob = client_of(world.bob)
    assert bob.post(address(world, request, "approval_revoke")).status_code == 404
    decide(client_of(world.alice), world, request, "approve")
    reader = client_of(person_with(world, Verb.SEE, Verb.SEE_PAYLOADS))
    assert "Take the approval back" not in text_of(reader.get(address(world, request)))
    assert reader.post(address(world, request, "approval_revoke")).status_code == 403
    assert "Take the approval back" in text_of(bob.get(address(world, request)))
    answer = bob.post(address(world, request, "approval_revoke"), headers={"HX-Request": "true"})
    assert answer.status_code == 200 and "taken back before it was used" in text_of(answer)
    assert bob.post(address(world, request, "approval_revoke")).status_code == 409
