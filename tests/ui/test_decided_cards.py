"""A card that was decided, or ended, shows what it was decided on; what became known later stands beside it, and is never in its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client

from approvals import looks
from approvals.models import ApprovalRequest
from approvals.services import cards, evidence
from approvals.views import cards as pages
from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import EffectState, LookAnswer, ProposalSpec, SeenVersion
from ledger.domain.identity import Verb
from ledger.domain.waits import MemberKind, MemberSpec, SetMode, WaitSpec
from ledger.engine import wakes
from ledger.services import effects
from ledger.services.ids import new_body
from tests.clock import Clock
from tests.documents import REQUEST
from tests.shop import Shop, open_shop, register
from tests.ui.asking import address, ask, client_of, decide, person_with
from tests.ui.scenes import answered, lost
from tests.world import World

ORDER = {"amount_minor": 8700, "refunded_minor": 0, "currency": "EUR"}
MOVED = {"amount_minor": 8700, "refunded_minor": 8000, "currency": "EUR"}


@pytest.fixture
def shop(world: World) -> Iterator[Shop]:
    """The world's target `payments`, answering with an order that has moved."""
    with open_shop() as opened:
        register(world, opened, "payments")
        opened.version, opened.order = "v2", dict(MOVED)
        yield opened


def page_of(client: Client, world: World, request: ApprovalRequest) -> str:
    text = client.get(address(world, request)).content.decode()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text))


def part(page: str, begins: str, ends: str) -> str:
    return page.partition(begins)[2].partition(ends)[0]


def looked_later(world: World, clock: Clock, request: ApprovalRequest) -> None:
    """Somebody who may, opens another request about the same order, and has its target looked at."""
    clock.shift(5)
    other = ask(world, order=ORDER)
    clock.shift(60)
    assert client_of(world.alice).post(address(world, other, "approval_look")).status_code == 302


@pytest.mark.parametrize("ended", ["approve", "deny", "expire"])
def test_a_card_that_is_over_shows_what_it_was_decided_on_and_later_looks_beside_it(
    world: World, clock: Clock, shop: Shop, ended: str
) -> None:
    request = ask(world, order=ORDER, hours=1)
    if ended == "expire":
        clock.shift(3_601)
    else:
        decide(client_of(world.bob), world, request, ended, "The photos show it.")
    looked_later(world, clock, request)
    page = page_of(client_of(world.alice), world, request)
    would = part(page, "What it would change", "Exactly what would be sent")
    assert "0.00 EUR 42.00 EUR" in would and "87.00 EUR 45.00 EUR" in would and "80.00" not in would
    assert ("When it ended" if ended == "expire" else "As decided on") in would
    known, later = part(page, "Verified by resumeapp itself", "The target").split("Known only later")
    assert "version v1" in known and "v2" not in known
    assert "not decided on" in later and "version &quot;v2&quot; read at the target" in later
    target = part(page, "The target", "Earlier on this")
    assert "Changed later" in target and "Looked at 2 times after that" in target and "80.00 EUR (8000)" in target
    assert "Look twice" not in page and "more than the order has left" not in page


def test_a_warning_that_was_shown_stays_with_the_decision(world: World) -> None:
    request = ask(world, order={**ORDER, "refunded_minor": 6000})
    decide(client_of(world.bob), world, request, "approve")
    page = page_of(client_of(world.alice), world, request)
    assert "It was shown with this warning." in page and "more than the order has left" in page


def test_a_look_that_was_under_way_at_the_decision_is_a_later_one(world: World, clock: Clock) -> None:
    request = ask(world, order=ORDER)
    decide(client_of(world.bob), world, request, "approve")
    begun = cards.card_for(world.alice, world.tenant, request.pk).request.opened_at
    clock.shift(5)
    body = new_body(b'{"amount_minor":1}', clock.now())
    seen = SeenVersion(world.target_ids["payments"], "order/17", "v7", begun, "test", body)
    looks._record(cards.card_for(world.alice, world.tenant, request.pk), f"person:{world.alice.pk}", seen)
    card = cards.card_for(world.alice, world.tenant, request.pk)
    assert card.over_at is not None and card.later[0].at < card.over_at
    assert card.shown is not None and card.shown.version == "v1"
    assert [look.version for look in card.later] == ["v7"]


def test_who_lacks_the_right_to_payloads_gets_versions_and_times_of_later_looks_and_nothing_else(
    world: World, clock: Clock, shop: Shop
) -> None:
    request = ask(world, order=ORDER)
    decide(client_of(world.bob), world, request, "approve")
    looked_later(world, clock, request)
    page = page_of(client_of(person_with(world, Verb.SEE)), world, request)
    assert "Changed later" in page and "&quot;v2&quot;" in page
    assert "80.00" not in page and "87.00" not in page and "42.00" not in page
    assert "Risk not shown to you" in page and "High risk" not in page


def asked_beside(world: World, clock: Clock) -> tuple[ApprovalRequest, evidence.Called]:
    """A run whose first call was found to be done, and which asks for leave for a second one."""
    effect = lost(world, clock)
    answered(effect, LookAnswer.APPLIED, clock.now(), reference="re_9")
    wakes.run(effect.run_id)
    packet = world.claim("1", "2")
    effects.accept(world.caller, effect.run_id, "pay", packet.fence)
    wait = WaitSpec(SetMode.ALL, (MemberSpec(MemberKind.APPROVAL, effect="again"),), clock.now() + timedelta(hours=2))
    again = ProposalSpec("again", "payments.refund", "payments", "order/17", REQUEST)
    world.commit(packet, Next(NextKind.WAIT, "issue", wait), propose=(again,))
    request = ApprovalRequest.objects.of(world.tenant).get(run_id=packet.run.id, state="pending")
    (call,) = evidence.calls(cards.card_for(world.alice, world.tenant, request.pk)).known
    return request, call


def test_a_call_that_was_disputed_after_the_decision_stays_evidence_as_it_stood(world: World, clock: Clock) -> None:
    request, call = asked_beside(world, clock)
    assert (call.state, call.disputed, call.reference) == ("committed", False, "re_9")
    decide(client_of(world.bob), world, request, "approve")
    clock.shift(5)
    charlie = replace(world.admin, actor=f"person:{world.charlie.pk}", person_id=world.charlie.pk)
    said = (EffectState.FAILED, "confirmed_absent", "The statement has no such line.")
    effects.verdict(charlie, call.effect.pk, *said, read=effects.read_now(call.effect.pk))
    found = evidence.calls(cards.card_for(world.alice, world.tenant, request.pk))
    assert found.known == (call,)
    assert [(later.state, later.disputed) for later in found.later] == [("committed", True)]
    page = page_of(client_of(world.alice), world, request)
    known, later = part(page, "Verified by resumeapp itself", "The target").split("Known only later")
    assert "committed at payments, reference re_9" in known and "disputed" not in known
    assert "disputed; as a person recorded by hand on" in later


def test_a_card_that_is_told_by_another_renderer_now_says_which_one_was_decided_on(world: World) -> None:
    request = ask(world, order=ORDER)
    decide(client_of(world.bob), world, request, "approve")
    card = cards.card_for(world.alice, world.tenant, request.pk)
    asked = pages.words_of(card)
    assert asked.renderer == "payments.refund/4" and pages.told_as(card, asked) == ""
    for vote in card.votes:
        vote.renderer = "card/4 payments.refund/2"
    assert pages.told_as(card, asked) == "payments.refund/2"
