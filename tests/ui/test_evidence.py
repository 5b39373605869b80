"""Evidence on a card: what resumeapp found out by itself stands apart from what others say, and changes with its source."""

from __future__ import annotations

import re
from datetime import timedelta

from django.test import Client

from approvals.models import ApprovalRequest
from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import LookAnswer, ProposalSpec, Settled, SettleSpec
from ledger.domain.identity import Verb
from ledger.domain.waits import MemberKind, MemberSpec, SetMode, WaitSpec
from ledger.engine import wakes
from ledger.services import effects
from ledger.services.packets import Packet
from tests.clock import Clock
from tests.documents import REQUEST
from tests.ui.asking import address, ask, client_of, person_with
from tests.ui.scenes import answered, called, lost
from tests.world import World


def parts(client: Client, world: World, request: ApprovalRequest) -> tuple[str, str]:
    """What is shown as verified, and what as claimed."""
    page = client.get(address(world, request)).content.decode()
    section = page.split('id="evidence-title"')[1].split("</section>")[0]
    verified, claimed = section.split("Claimed by the agent")
    return tuple(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", part)) for part in (verified, claimed))  # type: ignore[return-value]


def test_who_may_not_see_payloads_sees_no_claim_of_the_state(world: World) -> None:
    request = ask(world, state={"order": "17", "amount_minor": 4200, "currency": "EUR"})
    verified, claimed = parts(client_of(person_with(world, Verb.SEE)), world, request)
    assert "Not shown to you: it needs the right to payloads" in claimed and "4200" not in verified + claimed


def test_where_nobody_looked_nothing_is_verified(world: World) -> None:
    verified, claimed = parts(client_of(world.alice), world, ask(world))
    assert "Nothing: nobody has looked at the target" in verified
    assert "amount_minor 42.00 EUR (4200)" in claimed and "unverified" in claimed


def test_what_was_read_at_the_target_is_verified_and_the_state_is_a_claim(world: World) -> None:
    verified, claimed = parts(client_of(world.alice), world, ask(world, order={"total_minor": 4200}))
    assert "payments order/17 version v1 read at the target by resumeapp on" in verified
    assert "version v1" not in claimed and "order 17" in claimed


def asked_beside(world: World, clock: Clock, packet: Packet) -> ApprovalRequest:
    """The run goes on and asks for leave for another call, after the one that was settled."""
    wait = WaitSpec(SetMode.ALL, (MemberSpec(MemberKind.APPROVAL, effect="again"),), clock.now() + timedelta(hours=2))
    again = ProposalSpec("again", "payments.refund", "payments", "order/17", REQUEST)
    world.commit(packet, Next(NextKind.WAIT, "issue", wait), propose=(again,))
    found: ApprovalRequest = ApprovalRequest.objects.of(world.tenant).get(run_id=packet.run.id, state="pending")
    return found


def test_a_call_that_its_worker_alone_reports_is_a_claim(world: World, clock: Clock) -> None:
    packet, effect = called(world)
    effects.settle(world.caller, effect.pk, SettleSpec(1, Settled.COMMITTED, reference="re_1"), packet.fence)
    verified, claimed = parts(client_of(world.alice), world, asked_beside(world, clock, packet))
    assert "Call" not in verified
    assert "Call “pay” committed at payments, reference re_1 as its worker reported" in claimed


def test_a_call_is_verified_once_its_target_said_so_itself(world: World, clock: Clock) -> None:
    effect = lost(world, clock)
    answered(effect, LookAnswer.APPLIED, clock.now(), reference="re_9")
    wakes.run(effect.run_id)
    packet = world.claim("1", "2")
    effects.accept(world.caller, effect.run_id, "pay", packet.fence)
    verified, claimed = parts(client_of(world.alice), world, asked_beside(world, clock, packet))
    assert "Call “pay” committed at payments, reference re_9 payments said so when asked on" in verified
    assert "Call" not in claimed
