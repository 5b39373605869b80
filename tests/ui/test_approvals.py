"""The approval card: who sees what, what every refusal says and keeps, and what a decision does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from approvals.models import Vote
from ledger.domain.identity import Verb
from ledger.models import JournalEntry, User
from ledger.services import identity
from tests.clock import Clock
from tests.ui.asking import address, ask, client_of, decide, form_of, votes
from tests.world import RULES, World

TYPED = "because <of> the photos"
TWO = ({**RULES[0], "quorum": 2}, *RULES[1:])
WAYS = pytest.mark.parametrize("htmx", [True, False], ids=["htmx", "page"])


def entries(world: World) -> int:
    return JournalEntry.objects.of(world.tenant).count() + Vote.objects.of(world.tenant).count()


def text_of(answer: Any) -> str:
    text: str = answer.content.decode()
    return text


def person_with(world: World, *verbs: Verb) -> User:
    """A member with these rights on the workflow, in no team."""
    person = world.person("eve")
    for verb in verbs:
        identity.grant_permission(world.admin, person, verb, world.workflow)
    return person


# Who sees what ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["approval", "approval_newer", "approval_decide"])
@pytest.mark.parametrize("who", ["another tenant's approver", "a member without any right"])
def test_who_can_not_see_the_workflow_finds_nothing(world: World, name: str, who: str) -> None:
    request = ask(world)
    person = World().alice if who.startswith("another") else person_with(world)
    send = client_of(person).post if name == "approval_decide" else client_of(person).get
    assert send(address(world, request, name)).status_code == 404
    assert not votes(request)


def test_a_request_is_not_found_under_another_tenants_address(world: World) -> None:
    other, request = World(), ask(world)
    identity.join(other.admin, world.alice)
    answer = client_of(world.alice).get(address(other, request))
    assert answer.status_code == 404


def test_without_the_right_to_payloads_neither_arguments_nor_controls_are_shown(world: World) -> None:
    request = ask(world, order={"customer": "Zoe Quux"})
    page = text_of(client_of(person_with(world, Verb.SEE)).get(address(world, request)))
    assert "You may not see the arguments here" in page
    assert "42.00" not in page and "amount_minor" not in page and "Zoe Quux" not in page
    assert "approval_decide" not in page and 'name="decision"' not in page


def test_who_may_only_read_sees_the_arguments_and_why_they_can_not_decide(world: World) -> None:
    request = ask(world)
    page = text_of(client_of(person_with(world, Verb.SEE, Verb.SEE_PAYLOADS)).get(address(world, request)))
    assert "42.00 EUR" in page and 'name="decision"' not in page
    assert "can’t approve in this workflow" in page


def test_approving_needs_no_other_right_than_to_see_and_approve(world: World) -> None:
    request = ask(world)
    person = person_with(world, Verb.SEE, Verb.APPROVE)
    identity.add_to_team(world.admin, world.approvers, person)
    assert decide(client_of(person), world, request, "approve").status_code == 302
    assert votes(request) == [(person.pk, "approve")]


@WAYS
def test_an_approver_outside_the_groups_is_refused_and_keeps_their_text(world: World, htmx: bool) -> None:
    request = ask(world)
    form = form_of(text_of(client_of(world.alice).get(address(world, request))))
    identity.remove_from_team(world.admin, world.approvers, world.alice)
    identity.grant_permission(world.admin, world.alice, Verb.SEE, world.workflow)
    identity.grant_permission(world.admin, world.alice, Verb.APPROVE, world.workflow)
    answer = post(client_of(world.alice), world, request, {**form, "decision": "deny", "reason": TYPED}, htmx)
    assert answer.status_code == 403
    assert_kept(answer)
    assert not votes(request)


def test_a_group_that_lost_its_people_is_told_loudly_to_operators_and_on_the_card(world: World) -> None:
    request = ask(world)
    for person in (world.alice, world.bob):
        identity.remove_from_team(world.admin, world.approvers, person)
    charlie = client_of(world.charlie)
    assert "can be approved by nobody: too few people in approvers" in text_of(
        charlie.get(f"/t/{world.tenant.slug}/inbox/")
    )
    page = text_of(charlie.get(address(world, request)))
    assert "Nobody can approve this." in page and "Nobody is left who could decide." in page


# Reading changes nothing --------------------------------------------------------------------


@pytest.mark.parametrize("method", ["get", "head", "options"])
@pytest.mark.parametrize("name", ["approval", "approval_newer", "approval_decide"])
def test_reading_a_link_decides_nothing_however_it_is_dressed(world: World, method: str, name: str) -> None:
    request, alice = ask(world), client_of(world.alice)
    form = form_of(text_of(alice.get(address(world, request))))
    before = entries(world)
    answer = getattr(alice, method)(address(world, request, name), {**form, "decision": "approve"})
    assert entries(world) == before
    assert answer.status_code == (405 if name == "approval_decide" or method == "options" else 200)


def test_a_link_can_be_opened_twice_and_still_decides(world: World) -> None:
    request, alice = ask(world), client_of(world.alice)
    pages = [text_of(alice.get(address(world, request))) for _ in range(2)]
    assert post(alice, world, request, {**form_of(pages[0]), "decision": "approve"}, True).status_code == 200


def test_a_form_without_the_token_is_refused_with_a_banner_for_htmx_and_the_text_on_a_page(world: World) -> None:
    request = ask(world)
    form = {
        **form_of(text_of(client_of(world.alice).get(address(world, request)))),
        "decision": "deny",
        "reason": TYPED,
    }
    alice = Client(enforce_csrf_checks=True)
    alice.force_login(world.alice)
    fragment = post(alice, world, request, form, True)
    assert (fragment.status_code, fragment["HX-Retarget"], fragment["HX-Reswap"]) == (403, "#banner", "innerHTML")
    page = post(alice, world, request, form, False)
    assert page.status_code == 403
    assert_kept(page)
    assert not votes(request)


# The form decides nothing but the choice -----------------------------------------------------


def post(client: Client, world: World, request: Any, data: dict[str, str], htmx: bool) -> Any:
    headers = {"HX-Request": "true"} if htmx else {}
    return client.post(address(world, request, "approval_decide"), data, headers=headers)


def assert_kept(answer: Any) -> None:
    assert "because &lt;of&gt; the photos</textarea>" in text_of(answer)


@WAYS
@pytest.mark.parametrize("choice", ["", "Approve", "approve ", "yes", "true", "approved"])
def test_anything_but_the_literal_word_is_refused(world: World, choice: str, htmx: bool) -> None:
    request, alice = ask(world), client_of(world.alice)
    answer = decide(alice, world, request, choice, TYPED, htmx=htmx)
    assert answer.status_code == 422
    assert_kept(answer)
    assert not votes(request)


@WAYS
def test_a_denial_without_a_reason_is_refused_at_the_field(world: World, htmx: bool) -> None:
    request = ask(world)
    answer = decide(client_of(world.alice), world, request, "deny", "  ", htmx=htmx)
    assert answer.status_code == 422
    assert 'aria-invalid="true"' in text_of(answer) and "A denial needs a reason" in text_of(answer)
    assert ("<html" in text_of(answer)) is not htmx
    assert not votes(request)


def test_approvers_state_and_risk_from_the_form_count_for_nothing(world: World) -> None:
    world.policy(TWO)
    request, alice = ask(world), client_of(world.alice)
    form = form_of(text_of(alice.get(address(world, request))))
    forged = {
        "approvers": str(world.alice.pk),
        "state": "approved",
        "risk": "low",
        "quorum": "0",
        "voter": str(world.bob.pk),
    }
    answer = post(alice, world, request, {**form, **forged, "decision": "approve"}, True)
    assert answer.status_code == 200
    request.refresh_from_db()
    assert request.state == "pending" and votes(request) == [(world.alice.pk, "approve")]


@WAYS
@pytest.mark.parametrize("missing", ["revision", "digest", "receipt"])
def test_a_form_that_does_not_say_what_was_read_is_refused(world: World, missing: str, htmx: bool) -> None:
    request, alice = ask(world), client_of(world.alice)
    form = form_of(text_of(alice.get(address(world, request))))
    answer = post(alice, world, request, {**form, missing: "", "decision": "deny", "reason": TYPED}, htmx)
    assert answer.status_code == 428
    assert_kept(answer)
    assert not votes(request)


def test_a_receipt_made_for_somebody_else_or_another_request_is_refused(world: World) -> None:
    request, other = ask(world), ask(world)
    form = form_of(text_of(client_of(world.bob).get(address(world, request))))
    assert post(client_of(world.alice), world, request, {**form, "decision": "approve"}, True).status_code == 428
    swapped = form_of(text_of(client_of(world.alice).get(address(world, other))))["receipt"]
    own = form_of(text_of(client_of(world.alice).get(address(world, request))))
    answer = post(client_of(world.alice), world, request, {**own, "receipt": swapped, "decision": "approve"}, True)
    assert answer.status_code == 428 and not votes(request)


# What happened meanwhile ---------------------------------------------------------------------


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


# What a decision does -------------------------------------------------------------------------


def test_approving_by_htmx_answers_card_toast_and_badge(world: World) -> None:
    request = ask(world)
    answer = decide(client_of(world.alice), world, request, "approve", htmx=True)
    page = text_of(answer)
    assert answer.status_code == 200 and "<html" not in page
    assert 'hx-swap-oob="beforeend:#toasts"' in page and 'id="badge-inbox"' in page
    assert "Approved. The decision is recorded; the agent has yet to resume." in page
    assert votes(request) == [(world.alice.pk, "approve")]


def test_without_javascript_a_decision_redirects_to_the_card_with_a_message(world: World) -> None:
    request, alice = ask(world), client_of(world.alice)
    answer = decide(alice, world, request, "deny", TYPED)
    assert (answer.status_code, answer["Location"]) == (302, address(world, request))
    page = text_of(alice.get(answer["Location"]))
    assert "Denied. The decision is recorded" in page
    assert f'data-draft-done="approval-{request.pk}-r1"' in page


def test_the_vote_keeps_the_digest_of_what_was_shown_and_its_renderer(world: World) -> None:
    request = ask(world)
    decide(client_of(world.alice), world, request, "approve")
    vote = request.votes.of(world.tenant).get()
    assert len(bytes(vote.receipt_digest)) == 32 and vote.entry_point == "page"
    assert vote.renderer == "card/3 payments.refund/2"
    assert vote.groups == ["approvers"]


def test_the_same_vote_sent_twice_counts_once_and_answers_alike(world: World) -> None:
    request, alice = ask(world), client_of(world.alice)
    form = {**form_of(text_of(alice.get(address(world, request)))), "decision": "approve"}
    assert [post(alice, world, request, form, True).status_code for _ in range(2)] == [200, 200]
    assert votes(request) == [(world.alice.pk, "approve")]


def test_a_vote_below_the_quorum_says_what_is_still_needed(world: World) -> None:
    world.policy(TWO)
    request, alice = ask(world), client_of(world.alice)
    assert "Your approval counts; 1 more is needed." in text_of(alice.get(address(world, request)))
    answer = decide(alice, world, request, "approve", htmx=True)
    assert "Still needed: 1 approval from the team Refund approvers" in text_of(answer)
    page = text_of(client_of(world.bob).get(address(world, request)))
    assert "1 of 2 approvals" in page and "Who can still decide: you" in page
    assert "The agent may make this call until" in page


def test_decided_and_resumed_are_two_facts_and_a_slow_agent_is_named(world: World, clock: Clock) -> None:
    request, alice = ask(world), client_of(world.alice)
    decide(alice, world, request, "approve")
    page = text_of(alice.get(address(world, request)))
    assert "Decision recorded: approved by Alice" in page and "The agent has not resumed yet" in page
    clock.shift(600)
    assert "The agent has not taken it up for 10 min" in text_of(alice.get(address(world, request)))


def test_a_decided_card_opens_again_read_only_with_who_what_and_when(world: World) -> None:
    request = ask(world)
    decide(client_of(world.bob), world, request, "deny", TYPED)
    page = text_of(client_of(world.alice).get(address(world, request)))
    assert 'name="decision"' not in page
    assert "Decision recorded: denied by Bob" in page and "because &lt;of&gt; the photos" in page


# An open card ----------------------------------------------------------------------------------


def poll(client: Client, world: World, request: Any) -> Callable[[], int]:
    page = text_of(client.get(address(world, request)))
    since = page.split("/newer/?since=")[1].split('"')[0]
    return lambda: client.get(address(world, request, "approval_newer") + f"?since={since}").status_code


def test_an_open_card_hears_nothing_until_somebody_votes(world: World) -> None:
    world.policy(TWO)
    request = ask(world)
    status = poll(client_of(world.alice), world, request)
    assert status() == 204
    decide(client_of(world.bob), world, request, "approve")
    assert status() == 200


def test_an_open_card_turns_expired_by_the_clock(world: World, clock: Clock) -> None:
    request = ask(world, hours=1)
    status = poll(client_of(world.alice), world, request)
    assert status() == 204
    clock.shift(3_700)
    assert status() == 200


# What agents write -----------------------------------------------------------------------------


def test_hostile_arguments_are_plain_text_with_hidden_characters_shown(world: World) -> None:
    arguments = '{"amount_minor":4200,"currency":"EUR","order":"17","reason":"<script>x()</script> \u202e001\u200b"}'
    page = text_of(client_of(world.alice).get(address(world, ask(world, arguments=arguments.encode()))))
    assert "<script>x()" not in page and "&lt;script&gt;x()" in page
    assert "‹U+202E›001‹U+200B›" in page and "\u202e" not in page


def test_arguments_that_no_renderer_knows_get_the_cautious_headline(world: World) -> None:
    odd = b'{"amount_minor":"4200","currency":"EUR","order":"17"}'
    page = text_of(client_of(world.alice).get(address(world, ask(world, arguments=odd))))
    assert "Call payments.refund on order/17 at payments" in page and "Not rated: treat as high risk" in page


def test_a_long_value_says_how_long_it_is_and_stands_whole_below(world: World) -> None:
    long = "x" * 3_000
    arguments = f'{{"amount_minor":4200,"currency":"EUR","order":"17","reason":"{long}"}}'.encode()
    page = text_of(client_of(world.alice).get(address(world, ask(world, arguments=arguments))))
    assert "3000 characters, all in the text below" in page and long in page
