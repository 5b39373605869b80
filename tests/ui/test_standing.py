"""The list of runs, a run's page, the API and the command tell how a run stands in the same words, whatever state it is in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from django.urls import reverse

from approvals.services import run_lists, run_pages
from approvals.services.run_lists import Filter
from ledger.domain.commits import Next, NextKind
from ledger.domain.handoffs import HandoffState
from ledger.domain.runs import Status
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.engine import sweep, wakes
from ledger.models import Handoff, RunHead
from ledger.services import identity
from ledger.services.explain import explain
from tests.clock import Clock
from tests.ui.asking import ask, client_of, decide
from tests.ui.scenes import approved, called, completed, handed_over, lost
from tests.world import World

Scene = Callable[[World, Clock], UUID]


def of(run: Callable[[World], UUID], later: float = 0) -> Scene:
    def scene(world: World, clock: Clock) -> UUID:
        run_id = run(world)
        clock.shift(later)
        return run_id

    return scene


def asked(world: World) -> UUID:
    return UUID(str(ask(world).run_id))


HOUR = timedelta(hours=1)
EVENT = MemberSpec(MemberKind.EVENT, type="order.paid", subject="order/17", source="/shop")
TIMER = MemberSpec(MemberKind.TIMER, at=HOUR)


def waiting(*members: MemberSpec, mode: SetMode = SetMode.ALL, on_deadline: OnDeadline = OnDeadline.WAKE) -> Scene:
    return of(lambda world: world.waiting_run(WaitSpec(mode, members, 3 * HOUR, on_deadline)))


def waking(world: World) -> UUID:
    request = ask(world)
    decide(client_of(world.alice), world, request, "approve", "yes")
    return UUID(str(request.run_id))


def ended(kind: NextKind) -> Scene:
    def scene(world: World, clock: Clock) -> UUID:
        packet = world.claimed_run()
        world.commit(packet, Next(kind))
        return packet.run.id

    return scene


def unanswerable(world: World) -> UUID:
    run_id = asked(world)
    for person in (world.alice, world.bob):
        identity.remove_from_team(world.admin, world.approvers, person)
    return run_id


def denied(world: World) -> UUID:
    request = ask(world)
    decide(client_of(world.alice), world, request, "deny", "no")
    wakes.run(request.run_id)
    world.commit(world.claim("1", "2"), Next(NextKind.FAIL))
    return UUID(str(request.run_id))


def blocked(world: World, clock: Clock) -> UUID:
    return UUID(str(handed_over(world, clock).run_id))


def taken(world: World, clock: Clock) -> UUID:
    handoff = handed_over(world, clock)
    client_of(world.charlie).post(reverse("handoff_own", args=[world.tenant.slug, handoff.pk]))
    assert Handoff.objects.of(world.tenant).get(pk=handoff.pk).state == HandoffState.ACCEPTED
    return UUID(str(handoff.run_id))


def escalated(world: World, clock: Clock) -> UUID:
    run_id = blocked(world, clock)
    clock.shift(5 * 3_600)
    sweep.sweep()
    return run_id


SCENES: dict[str, tuple[Scene, Status, str]] = {
    "running": (of(lambda world: world.claimed_run().run.id), Status.RUNNING, ""),
    "running, its call out": (of(lambda world: called(world)[0].run.id), Status.RUNNING, ""),
    "running, just silent": (of(lambda world: world.claimed_run().run.id, 90), Status.RUNNING, ""),
    "running, silent": (of(lambda world: world.claimed_run().run.id, 600), Status.RUNNING, "lease"),
    "waiting for people": (of(asked), Status.WAITING, ""),
    "waiting for people who are gone": (of(unanswerable), Status.WAITING, "no_approvers"),
    "waiting, overdue": (of(asked, 90_000), Status.WAITING, "overdue"),
    "waiting for an event": (waiting(EVENT), Status.WAITING, ""),
    "waiting for a time": (waiting(TIMER), Status.WAITING, ""),
    "waiting for either": (waiting(EVENT, TIMER, mode=SetMode.ANY), Status.WAITING, ""),
    **{
        f"waiting, then {action}": (waiting(EVENT, on_deadline=action), Status.WAITING, "")
        for action in (OnDeadline.CANCEL, OnDeadline.FAIL, OnDeadline.HAND_OFF)
    },
    "waking": (of(waking), Status.WAKING, ""),
    "waking, overdue": (of(waking, 90), Status.WAKING, "unchecked"),
    "waking, an outcome unknown": (lambda world, clock: UUID(str(lost(world, clock).run_id)), Status.WAKING, "unknown"),
    "ready": (of(lambda world: world.start_run()), Status.READY, ""),
    "ready, unclaimed": (of(lambda world: world.start_run(), 600), Status.READY, "unclaimed"),
    "ready, approved": (of(lambda world: approved(world)), Status.READY, ""),
    "blocked": (blocked, Status.BLOCKED, "blocked"),
    "blocked, taken": (taken, Status.BLOCKED, "blocked"),
    "blocked, escalated": (escalated, Status.BLOCKED, "blocked"),
    "completed": (of(completed), Status.COMPLETED, ""),
    "failed": (ended(NextKind.FAIL), Status.FAILED, ""),
    "failed after a denial": (of(denied), Status.FAILED, ""),
}


@pytest.mark.parametrize("scene", SCENES)
def test_list_and_page_tell_how_a_run_stands_in_the_same_words(world: World, clock: Clock, scene: str) -> None:
    make, status, unwell = SCENES[scene]
    run_id = make(world, clock)
    head = RunHead.objects.of(world.tenant).get(run_id=run_id)
    assert head.status == status, head.status
    row = next(row for row in run_lists.runs(world.charlie, world.tenant, Filter()).rows if row.id == run_id)
    page = run_pages.run(world.charlie, world.tenant, run_id)
    assert row.why == page.sentence
    assert "verify this run" not in row.why
    assert (row.health, row.health_badge) == (unwell, page.health_badge)
    if status is not Status.BLOCKED:
        assert explain(run_id, world.tenant.pk).sentence == row.why


def test_every_status_that_a_run_can_have_is_in_the_table() -> None:
    assert {status for _, status, _ in SCENES.values()} == set(Status) - {Status.CANCELLED}


def test_whoever_took_a_handoff_is_named_on_both_and_never_to_a_key(world: World, clock: Clock) -> None:
    run_id = taken(world, clock)
    row = next(row for row in run_lists.runs(world.charlie, world.tenant, Filter()).rows if row.id == run_id)
    assert row.why.startswith("Charlie has taken it (“pay”: the target has something under this key, but not what")
    assert run_pages.run(world.charlie, world.tenant, run_id).actor == "Charlie"
    assert "Charlie" not in explain(run_id, world.tenant.pk, names=False).sentence
