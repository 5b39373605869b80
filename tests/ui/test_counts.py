"""A badge is the length of its list, and an empty list never claims more than its reader may know."""

from __future__ import annotations

import re

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from ledger.models import User
from tests.clock import Clock
from tests.ui.asking import ask, client_of
from tests.ui.scenes import handed_over, lost
from tests.world import World


def page(world: World, person: User, name: str, query: str = "") -> str:
    return client_of(person).get(reverse(name, args=[world.tenant.slug]) + query).content.decode()


def badge(text: str, name: str) -> int:
    found = re.search(rf'id="badge-{name}"[^>]*>(\d+)', text) or re.search(r"()", "")
    return int(found[1] or 0) if found else 0


def test_who_may_not_settle_is_never_told_that_every_outcome_is_known(world: World, clock: Clock) -> None:
    lost(world, clock)
    lost(world, clock)
    for person in (world.alice, world.dora):
        text = page(world, person, "reconcile")
        assert "Every outcome is known" not in text
        assert "None that you may settle" in text and "2 with an unknown outcome" in text
    nobody = page(world, world.person("nobody"), "reconcile")
    assert "Every outcome is known" not in nobody and "None that you may settle" in nobody and "2 with" not in nobody


def test_every_badge_is_the_length_of_the_list_it_leads_to(world: World, clock: Clock) -> None:
    handed_over(world, clock)
    lost(world, clock)
    for person in (world.alice, world.charlie, world.dora):
        for name in ("reconcile", "handoffs"):
            text = page(world, person, name)
            assert badge(text, name) == text.count("<li data-row"), (person.name, name)
    text = page(world, world.dora, "handoffs")
    assert "No run needs you" not in text and "None that you may take" in text
    assert page(world, world.dora, "handoffs", "?show=others").count("<li data-row") == 1


def test_the_inbox_a_card_and_the_history_cost_the_same_at_ten_times_the_data(world: World) -> None:
    request = ask(world)
    people = {"inbox": world.alice, "approval": world.alice, "history": world.dora}
    clients = {name: client_of(person) for name, person in people.items()}

    def costs() -> dict[str, int]:
        counted = {}
        for name, client in clients.items():
            args = [world.tenant.slug, *([request.pk] if name == "approval" else [])]
            with CaptureQueriesContext(connection) as captured:
                assert client.get(reverse(name, args=args)).status_code == 200
            counted[name] = len(captured)
        return counted

    ask(world)
    costs()
    few = costs()
    for _ in range(18):
        ask(world)
    assert costs() == few
    assert few["inbox"] <= 17 and few["approval"] <= 36 and few["history"] <= 18, few
