"""Looking at a target again from a card: against a real server on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from approvals.models import ApprovalRequest
from approvals.services.cards import Seen
from approvals.views.cards import diff
from ledger.models import JournalEntry, Observation
from tests.clock import Clock
from tests.shop import Shop, open_shop, register
from tests.ui.asking import address, ask, client_of, decide, form_of, votes
from tests.world import World


@pytest.fixture
def shop(world: World) -> Iterator[Shop]:
    """The world's target `payments`, answering."""
    with open_shop() as opened:
        register(world, opened, "payments")
        yield opened


def looked(world: World, request: ApprovalRequest) -> int:
    return Observation.objects.of(world.tenant).filter(run_id=request.run_id).count()


def look(world: World, request: ApprovalRequest, *, htmx: bool = True) -> Any:
    headers = {"HX-Request": "true"} if htmx else {}
    return client_of(world.alice).post(address(world, request, "approval_look"), {"pressed": "1"}, headers=headers)


def test_a_look_by_link_or_by_a_stranger_asks_nobody(world: World, shop: Shop) -> None:
    request = ask(world, order={})
    led = client_of(world.alice).get(address(world, request, "approval_look"))
    assert (led.status_code, led["Location"]) == (302, address(world, request))
    assert client_of(World().alice).post(address(world, request, "approval_look")).status_code == 404
    assert shop.asked == 0 and looked(world, request) == 1


def test_a_silent_target_is_told_and_the_last_state_stays(world: World, shop: Shop, clock: Clock) -> None:
    request = ask(world, order={"total": 7})
    clock.shift(60)
    shop.silent = True
    answer = look(world, request)
    assert answer.status_code == 200 and "Could not be seen just now" in answer.content.decode()
    assert looked(world, request) == 1


def test_a_look_again_shows_what_moved_and_brings_the_receipt_of_it(world: World, shop: Shop, clock: Clock) -> None:
    request = ask(world, order={"total": 7})
    alice = client_of(world.alice)
    page = alice.get(address(world, request)).content.decode()
    clock.shift(60)
    shop.version = "v2"
    answer = look(world, request).content.decode()
    assert "Changed since it was proposed" in answer and "<html" not in answer
    assert 'id="receipt"' in answer and form_of(page)["receipt"] not in answer
    assert looked(world, request) == 2
    assert decide(alice, world, request, "approve", htmx=True).status_code == 200
    assert votes(request) == [(world.alice.pk, "approve")]


def test_a_card_tells_an_edit_that_matters_from_one_that_does_not(world: World, shop: Shop, clock: Clock) -> None:
    register(world, shop, "payments", ("/total",))
    request = ask(world, order={"total": 7, "note": "leave at the door"})
    for version, total, note, told, untold in (
        ("2", 7, "ring twice", "What matters of it is as it was when proposed", "Changed since"),
        ("3", 8, "ring twice", "Moved of what matters: total", "is as it was"),
    ):
        clock.shift(60)
        shop.version, shop.order = version, {"total": total, "note": note}
        answer = look(world, request).content.decode()
        assert told in answer and untold not in answer and "It was version v1 then." in answer


def test_looks_within_two_seconds_ask_once(world: World, shop: Shop, clock: Clock) -> None:
    request = ask(world, order={})
    clock.hold()
    for apart, asked in ((60, 1), (1.9, 1), (0.1, 2)):
        clock.shift(apart)
        look(world, request)
        assert shop.asked == asked


def test_without_javascript_a_look_leads_back_to_the_card(world: World, shop: Shop, clock: Clock) -> None:
    request = ask(world, order={})
    clock.shift(60)
    answer = look(world, request, htmx=False)
    assert (answer.status_code, answer["Location"]) == (302, address(world, request))


def test_an_old_look_is_renewed_by_the_page_itself(world: World, shop: Shop, clock: Clock) -> None:
    request, alice = ask(world, order={}), client_of(world.alice)
    assert 'hx-trigger="submit"' in alice.get(address(world, request)).content.decode()
    clock.shift(301)
    assert 'hx-trigger="load, submit"' in alice.get(address(world, request)).content.decode()


def test_opening_an_old_look_is_nobody_s_act_and_pressing_for_one_is(world: World, shop: Shop, clock: Clock) -> None:
    request = ask(world, order={})
    for pressed, actor in (({}, "system:card"), ({"pressed": "1"}, f"person:{world.alice.pk}")):
        clock.shift(301)
        page = client_of(world.alice).get(address(world, request)).content.decode()
        assert '<button class="btn small" name="pressed"' in page.split("load, submit")[1], (
            "htmx sends no button by itself"
        )
        client_of(world.alice).post(address(world, request, "approval_look"), pressed, headers={"HX-Request": "true"})
        entry = JournalEntry.objects.of(world.tenant).filter(stream_id=request.run_id).latest("seq")
        assert (entry.verb, entry.actor) == ("target.look", actor)


def test_a_closed_request_asks_nobody(world: World, shop: Shop) -> None:
    request = ask(world, order={})
    decide(client_of(world.bob), world, request, "deny", "no")
    look(world, request)
    assert shop.asked == 0


def test_a_difference_far_into_a_long_value_is_not_hidden() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    before, after = (
        Seen(uuid4(), "v1", {"note": "n" * 400 + end, **{f"f{i}": i for i in range(60)}}, "test", now, uuid4())
        for end in "ab"
    )
    rows = diff(before, after)
    assert rows[0]["field"] == "note" and rows[0]["changed"] and "(401 characters)" in rows[0]["before"]
    assert rows[-1]["before"] == "21 more fields, 0 of them changed"
