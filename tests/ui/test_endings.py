"""Why a run failed or was cancelled is the first thing that its page and the list say."""

from __future__ import annotations

from uuid import UUID

from django.urls import reverse

from approvals.models import ApprovalRequest
from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import Settled, SettleSpec
from ledger.engine import sweep, wakes
from ledger.services import effects
from tests.api.conftest import Http
from tests.clock import Clock
from tests.ui.asking import ask, client_of, decide
from tests.ui.scenes import called
from tests.world import World


def told(world: World, run_id: UUID) -> tuple[str, str]:
    """What the run's page and the list say."""
    client = client_of(world.charlie)
    page = client.get(reverse("run", args=[world.tenant.slug, run_id])).content.decode()
    listed = client.get(reverse("runs", args=[world.tenant.slug])).content.decode()
    return page.split('id="explanation"')[1].split("</strong>")[0], listed


def failed(world: World) -> None:
    packet = world.claim("1", "2")
    world.commit(packet, Next(NextKind.FAIL))


def test_a_refused_call_is_named_with_its_target(world: World) -> None:
    packet, effect = called(world)
    effects.settle(world.caller, effect.pk, SettleSpec(1, Settled.FAILED, "rejected"), packet.fence)
    world.commit(packet, Next(NextKind.FAIL))
    page, listed = told(world, packet.run.id)
    assert "payments refused “pay”" in page and ": payments refused “pay”; nothing more happens." in listed


def test_a_denial_is_named_with_who_denied_and_without_the_reason_itself(world: World) -> None:
    request: ApprovalRequest = ask(world)
    decide(client_of(world.alice), world, request, "deny", "The photos are forged.")
    wakes.run(request.run_id)
    failed(world)
    for said in told(world, request.run_id):
        assert "“pay” was denied by Alice" in said and "forged" not in said


def test_a_key_reads_which_team_denied_and_nobodys_name(world: World) -> None:
    request: ApprovalRequest = ask(world)
    decide(client_of(world.alice), world, request, "deny", "The photos are forged.")
    wakes.run(request.run_id)
    failed(world)
    read = Http(world.secret).get(f"/runs/{request.run_id}").content.decode()
    assert "was denied by a person of the team Refund approvers" in read
    assert world.alice.name not in read and world.alice.email not in read


def test_silence_of_those_asked_is_named_with_the_deadline(world: World, clock: Clock) -> None:
    request: ApprovalRequest = ask(world)
    clock.shift(25 * 3600)
    sweep.sweep()
    wakes.run(request.run_id)
    failed(world)
    for said in told(world, request.run_id):
        assert "nobody decided on “pay” by " in said


def test_an_agent_that_gives_up_by_itself_is_named_with_its_transition(world: World) -> None:
    packet = world.claimed_run()
    world.commit(packet, Next(NextKind.FAIL))
    for said in told(world, packet.run.id):
        assert "its agent ended it in “assess”" in said


def test_a_completed_run_has_no_reason(world: World) -> None:
    packet = world.claimed_run()
    world.commit(packet, Next(NextKind.COMPLETE))
    page, listed = told(world, packet.run.id)
    assert "It completed at" in page and "It completed at" in listed and "failed" not in page
