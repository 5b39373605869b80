"""What a handoff's pages say of it is so: what closing it does, which call keeps it open, what decided it, and whether anybody has to act."""

from __future__ import annotations

import html
from typing import Any

import pytest
from django.urls import reverse

from approvals.services import run_parts
from approvals.templatetags.console import absolute
from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import LookAnswer, ProposalSpec, Settled, SettleSpec
from ledger.engine import wakes
from ledger.models import Grant, Handoff
from ledger.services import effects, identity
from ledger.services.effects import Looked
from tests.clock import Clock
from tests.documents import REQUEST
from tests.engine.waking import commit, timer
from tests.services.issuing import DONE, PAY, issuing, opened
from tests.ui.asking import client_of
from tests.ui.scenes import approved, given_up, lost
from tests.world import World

ADVANCE = ProposalSpec("advance", "wires.send", "wires", "", REQUEST)


def page(world: World, name: str, *args: Any, query: str = "") -> str:
    text: str = client_of(world.charlie).get(reverse(name, args=[world.tenant.slug, *args]) + query).content.decode()
    return html.unescape(text)


def send(world: World, handoff: Handoff, **typed: str) -> str:
    address = reverse("handoff_close", args=[world.tenant.slug, handoff.pk])
    return html.unescape(client_of(world.charlie).post(address, typed, follow=True).content.decode())


def only(world: World) -> Handoff:
    found: Handoff = Handoff.objects.of(world.tenant).get()
    return found


def contradicted(world: World) -> Handoff:
    """A run that failed on a call that was carried out after all, as its worker says too late."""
    packet = issuing(opened(world), PAY)
    effect = world.effect(packet.run.id)
    effects.permit(world.caller, effect.pk, packet.fence)
    effects.settle(world.caller, effect.pk, SettleSpec(1, Settled.FAILED, "rejected"), packet.fence)
    world.commit(packet, Next(NextKind.FAIL))
    effects.settle(world.caller, effect.pk, SettleSpec(1, Settled.COMMITTED, reference="rf_1"), packet.fence)
    return only(world)


def inactive(world: World) -> Handoff:
    """A run that its wake gave to a person: its agent was deactivated while it slept."""
    run_id = commit(world, world.claimed_run(), timer(-1))
    identity.deactivate_agent(world.admin, world.agent_id)
    assert wakes.run(run_id) == "hand_off"
    return only(world)


def test_closing_one_that_keeps_no_run_says_everywhere_that_the_run_stays_as_it_is(world: World, clock: Clock) -> None:
    handoff = contradicted(world)
    effects.look(world.effect(handoff.run_id).pk, Looked(LookAnswer.APPLIED, clock.now(), 1, reference="rf_1"))
    assert "It is settled" in page(world, "handoff", handoff.pk)
    closed = send(world, handoff, outcome="wake", reason="told the customer")
    assert "Closed. The run stays as it is." in closed and "The run is woken" not in closed
    assert "It is settled, and the run stayed as it was" in closed
    assert "It is settled, and the run stayed as it was" in page(world, "handoffs", query="?show=closed")
    run = page(world, "run", handoff.run_id)
    assert "with “It is settled”" in run and "woken" not in run


def test_one_that_nobody_needs_any_more_says_why_and_nothing_of_the_run(world: World, clock: Clock) -> None:
    handoff = contradicted(world)
    effects.look(world.effect(handoff.run_id).pk, Looked(LookAnswer.REFUSED, clock.now(), 1))
    told = page(world, "handoff", handoff.pk)
    assert "no longer needed: what it was about is known" in told and "went on by itself" not in told
    assert "nobody needs it any more" in send(world, handoff, outcome="wake", reason="late")


def test_what_decided_it_is_shown_however_often_the_run_was_checked_since(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_parts, "MOST_DECISIONS", 1)
    handoff = inactive(world)
    identity.reactivate_agent(world.admin, world.agent_id)
    send(world, handoff, outcome="wake", reason="it is back")
    assert wakes.run(handoff.run_id) == "resume"
    told = page(world, "handoff", handoff.pk)
    assert "The decision behind it" in told


def test_a_run_that_its_workers_were_lost_over_says_who_had_it_and_when(world: World, clock: Clock) -> None:
    handoff = given_up(world, clock)
    told = page(world, "handoff", handoff.pk)
    card = told.split("Who had it</h2>")[1].split("</section>")[0]
    assert card.count("Claimed by worker") == 3 and card.count("Worker lost: its lease ran out") == 3
    assert "in the log of its process" in card and "No wake decided this" not in told
    assert "still holds" not in told, "nobody gave leave for anything"


def test_waking_a_run_says_which_call_people_s_leave_still_lets_it_make(world: World, clock: Clock) -> None:
    run_id = approved(world)
    handoff = given_up(world, clock, run_id)
    use_by = Grant.objects.of(world.tenant).get(run_id=run_id, state="live").use_by
    told = page(world, "handoff", handoff.pk)
    assert f"The approval of “pay” until {absolute(use_by)} still holds: that call may be made then." in told


def test_who_had_a_run_is_told_only_where_that_is_what_it_is_about(world: World) -> None:
    assert "Who had it" not in page(world, "handoff", inactive(world).pk)


def test_a_call_that_could_not_be_found_out_is_not_said_to_have_been_asked_about(world: World, clock: Clock) -> None:
    effect = lost(world, clock)
    effects.look(effect.pk, Looked(LookAnswer.CANNOT_TELL, clock.now(), 1, cause="no-lookup"))
    told = page(world, "handoff", Handoff.objects.of(world.tenant).get().pk)
    assert "its target can’t be asked, or could not say" in told and "The target could not say" not in told


def test_the_call_it_waits_for_is_the_one_that_its_button_opens(world: World, clock: Clock) -> None:
    packet = issuing(opened(world), ADVANCE, PAY)
    advance, pay = (world.effect(packet.run.id, name) for name in ("advance", "pay"))
    for effect in (advance, pay):
        effects.permit(world.caller, effect.pk, packet.fence)
    effects.settle(world.caller, advance.pk, SettleSpec(1, Settled.UNKNOWN), packet.fence)
    effects.settle(world.caller, pay.pk, DONE, packet.fence)
    effects.look(pay.pk, Looked(LookAnswer.REFUSED, clock.now(), 1))
    told = page(world, "handoff", only(world).pk)
    assert "Not while it is disputed what became of “pay”" in told
    button = told.split('class="btn" href="')[1].split("</a>")[0]
    assert button.startswith(reverse("effect", args=[world.tenant.slug, pay.pk])) and "Reconcile “pay”" in button


def test_it_shows_when_it_is_due_and_no_severity_that_all_have_alike(world: World) -> None:
    handoff = inactive(world)
    told = page(world, "handoff", handoff.pk)
    facts = told.split("<dt>Due</dt>")[1].split("</dd>")[0]
    assert f"{handoff.due_at:%-d %b %Y, %H:%M}" in facts
    assert "Severity" not in told and "Severity" not in page(world, "handoffs")


@pytest.mark.parametrize(
    ("typed", "focus"), [({"reason": "why"}, 'value="wake" required data-focus'), ({"outcome": "wake"}, "aria-invalid")]
)
def test_what_is_missing_is_read_out_and_gets_the_focus(world: World, typed: dict[str, str], focus: str) -> None:
    told = send(world, inactive(world), **typed)
    assert told.count("data-announce") == 1 and focus in told.split("What happens next")[1]
