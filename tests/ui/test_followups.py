"""What a decided card says of the agent: told, resumed, done, and in which words."""

from __future__ import annotations

import html
import re

from approvals.models import ApprovalRequest
from ledger.domain.commits import Next, NextKind
from ledger.engine import wakes
from ledger.models import Grant
from ledger.services import effects, verify
from tests.ui.asking import address, ask, client_of, decide, form_of
from tests.world import RULES, World


def card(world: World, request: ApprovalRequest) -> str:
    """The card as Alice sees it, as text."""
    page = client_of(world.alice).get(address(world, request)).content.decode()
    return html.unescape(re.sub(r"\s+", " ", page))


def woken(request: ApprovalRequest) -> None:
    assert request.run_id is not None
    wakes.run(request.run_id)


def test_a_denial_says_that_the_agent_has_yet_to_be_told_then_that_it_was_and_what_its_workflow_did(
    world: World,
) -> None:
    request = ask(world)
    decide(client_of(world.bob), world, request, "deny", "no")
    assert "The agent has not been told yet" in card(world, request)
    woken(request)
    packet = world.claim("1", "2")
    assert "The agent was told; its workflow goes on" in card(world, request)
    world.commit(packet, Next(NextKind.COMPLETE))
    page = card(world, request)
    assert "The agent was told; its workflow completed" in page
    assert "nothing was sent for this request" in page


def test_an_approval_says_resumed_then_out_then_done(world: World) -> None:
    request = ask(world)
    decide(client_of(world.bob), world, request, "approve")
    woken(request)
    packet = world.claim("1", "2")
    assert "The agent resumed; no call is out yet" in card(world, request)
    effect = world.effect(packet.run.id)
    effects.permit(world.caller, effect.pk, packet.fence)
    assert "The agent resumed; the call is out" in card(world, request)


def test_leave_that_the_agent_did_without_is_void_and_cannot_be_taken_back(world: World) -> None:
    request = ask(world)
    decide(client_of(world.bob), world, request, "approve")
    woken(request)
    world.commit(world.claim("1", "2"), Next(NextKind.COMPLETE))
    page = card(world, request)
    assert "Not used: the agent did without this call, and nothing was sent" in page
    assert "no call is out yet" not in page and "Take the approval back" not in page
    assert "Approved, then void: the run ended" in page and "planned anew" not in page
    assert Grant.objects.of(world.tenant).get(request_id=request.pk).state == "voided"
    assert verify.run(request.run_id, world.tenant.pk).intact if request.run_id else False


def test_a_decided_card_hears_of_every_move_of_its_run(world: World) -> None:
    request, alice = ask(world), client_of(world.alice)
    decide(client_of(world.bob), world, request, "deny", "no")
    woken(request)
    packet = world.claim("1", "2")
    page = alice.get(address(world, request)).content.decode()
    since = page.split("/newer/?since=")[1].split('"')[0]
    newer = address(world, request, "approval_newer") + f"?since={since}"
    assert alice.get(newer).status_code == 204
    world.commit(packet, Next(NextKind.COMPLETE))
    assert alice.get(newer).status_code == 200


def test_one_approval_is_of_a_team_and_has_no_bar_and_two_have_one(world: World) -> None:
    page = card(world, ask(world))
    assert "Needs 1 approval from the team Refund approvers." in page and "<progress" not in page
    world.policy(({**RULES[0], "quorum": 2}, *RULES[1:]))
    page = card(world, ask(world))
    assert "Needs 2 approvals from the team Refund approvers." in page and "<progress" in page


def test_money_is_told_in_whole_units_beside_what_is_sent(world: World) -> None:
    order = {"amount_minor": 8700, "refunded_minor": 0, "currency": "EUR", "customer": "Eve"}
    page = card(world, ask(world, order=order))
    assert re.search(r"<dt>amount_minor</dt> <dd><span[^>]*>42.00 EUR</span> <span class=\"note\">sent as 4200", page)
    assert "87.00 EUR (8700)" in page and "0.00 EUR (0)" in page


def test_what_did_not_change_is_folded_away(world: World) -> None:
    page = card(world, ask(world, order={"amount_minor": 8700, "refunded_minor": 0, "currency": "EUR"}))
    assert '<summary class="line">3 fields, unchanged</summary>' in page


def test_what_a_decided_card_shows_of_the_target_is_not_called_now(world: World) -> None:
    request = ask(world, order={"amount_minor": 8700, "refunded_minor": 0, "currency": "EUR"})
    decide(client_of(world.bob), world, request, "deny", "no")
    page = card(world, request)
    assert "The target as it was decided on" in page and "The target now" not in page


def test_a_decided_card_has_no_alarming_edge(world: World) -> None:
    request = ask(world)
    assert "alerting" in card(world, request)
    decide(client_of(world.bob), world, request, "approve")
    assert "alerting" not in card(world, request)


def test_who_a_run_acts_for_is_worded_as_on_the_run(world: World) -> None:
    assert "nobody named" in card(world, ask(world))


def test_a_refused_denial_says_once_what_it_needs(world: World) -> None:
    answer = decide(client_of(world.alice), world, ask(world), "deny", "", htmx=True)
    page = answer.content.decode()
    assert page.count("word for word") - page.count("your reason word for word") == 1
    assert "A denial needs one" not in page


def test_the_other_vote_is_refused_with_the_way_back_that_there_is(world: World) -> None:
    world.policy(({**RULES[0], "quorum": 2}, *RULES[1:]))
    second, alice = ask(world), client_of(world.alice)
    form = form_of(alice.get(address(world, second)).content.decode())
    decide(alice, world, second, "approve")
    answer = alice.post(address(world, second, "approval_decide"), {**form, "decision": "deny", "reason": "no"})
    told = html.unescape(answer.content.decode())
    assert answer.status_code == 409 and "can be taken back" in told and "turned round" not in told
