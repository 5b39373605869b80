"""The sweep follows a policy: what waits to be decided is asked as the one in force wants it, in batches, once, whoever votes meanwhile."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from approvals.models import Revision
from approvals.services import policies
from ledger.domain.errors import LedgerError
from ledger.services import facts, verify
from tests.approvals.asking import Asked, asked, rule
from tests.clock import Clock
from tests.meeting import between_reading_and_writing
from tests.world import World

MINUTE, HOUR = 60, 3_600


def outdated(world: World, limit: int = 10_000, **more: Any) -> list[UUID]:
    """Of the runs found, this tenant's."""
    own = set(Revision.objects.of(world.tenant).values_list("run_id", flat=True))
    return [run_id for run_id in policies.outdated(limit, **more) if run_id in own]


def reasons(run: Asked) -> list[str]:
    rows = Revision.objects.of(run.tenant).filter(request_id=run.request_id).order_by("number")
    return list(rows.values_list("reason", flat=True))


def test_nothing_is_found_while_the_policy_wants_what_was_asked(world: World) -> None:
    asked(world, rule())
    assert outdated(world) == []
    world.policy((rule(), {"tool": "other.*", "verdict": "deny"}))
    assert outdated(world) == []
    world.policy(({"tool": "*", "verdict": "allow"},))
    assert outdated(world) == [], "an approval is no longer needed, and none that is given is void"


def test_the_most_urgent_come_first_and_what_is_unchanged_never_stands_in_their_way(world: World) -> None:
    fine = asked(world, rule(), seconds=600)
    world.policy((rule(quorum=2),))
    last, first = asked(world, seconds=1_200), asked(world, seconds=900)
    now = facts.read().now
    world.policy((rule(),))
    assert outdated(world, 2, since=now) == [first.run_id, last.run_id]
    assert outdated(world, 1, since=now) == [first.run_id] and policies.follow(first.run_id)
    assert outdated(world, 1, since=now) == [last.run_id] and policies.follow(last.run_id)
    assert outdated(world) == []
    assert reasons(fine) == ["asked"] and reasons(first) == reasons(last) == ["asked", "policy_changed"]


def test_done_twice_it_asks_once(world: World) -> None:
    run = asked(world, rule())
    world.policy((rule(quorum=2),))
    assert policies.follow(run.run_id) and not policies.follow(run.run_id)
    assert reasons(run) == ["asked", "policy_changed"] and not verify.run(run.run_id).faults


def test_what_nobody_can_decide_any_more_expires_and_is_asked_no_more(world: World, clock: Clock) -> None:
    run = asked(world, rule(decide_by=MINUTE))
    clock.shift(MINUTE)
    world.policy((rule(quorum=2),))
    assert outdated(world) == [] and policies.follow(run.run_id), "time has its turn first"
    assert run.request.state == "expired" and reasons(run) == ["asked"]


@pytest.mark.postgres_only
def test_a_policy_published_between_reading_and_writing_is_the_one_that_is_followed(world: World) -> None:
    run = asked(world, rule())
    world.policy((rule(quorum=2),))
    assert between_reading_and_writing(lambda: world.policy((rule(quorum=3),)), lambda: policies.follow(run.run_id))
    newest = Revision.objects.of(world.tenant).get(request_id=run.request_id, number=2)
    assert newest.requirement["rules"][0]["quorum"] == 3 and run.request.revision == 2


@pytest.mark.postgres_only
def test_a_denial_between_reading_and_writing_stands(world: World) -> None:
    run = asked(world, rule())
    world.policy((rule(quorum=2),))

    def deny() -> None:
        run.decide(world.alice, "deny", "no")

    assert not between_reading_and_writing(deny, lambda: policies.follow(run.run_id))
    assert run.request.state == "denied" and reasons(run) == ["asked"]


def test_an_approval_of_what_was_asked_before_is_refused_afterwards(world: World) -> None:
    run = asked(world, rule())
    seen = {"seen_digest": bytes(run.request.digest), "seen_revision": 1}
    world.policy((rule(quorum=2),))
    assert policies.follow(run.run_id)
    with pytest.raises(LedgerError) as refusal:
        run.decide(world.alice, **seen)
    assert refusal.value.code == "changed" and not run.votes


def test_the_usual_look_is_at_policies_published_lately_and_a_whole_one_at_all(world: World, clock: Clock) -> None:
    now = facts.read().now
    run = asked(world, rule())
    world.policy((rule(quorum=2),))
    assert outdated(world, since=now) == [run.run_id]
    clock.shift(HOUR)
    assert outdated(world, since=facts.read().now - policies.LOOKED_BACK) == []
    assert outdated(world) == [run.run_id]
