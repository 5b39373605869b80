"""A run's page asks whether it is out of date, hears nothing while it isn't, and never contradicts itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.urls import reverse

from ledger.domain.effects import EffectState
from ledger.engine import wakes
from ledger.models import RunHead
from ledger.services import effects
from tests.clock import Clock
from tests.ui.asking import ask, client_of, decide
from tests.ui.scenes import called, lost
from tests.world import World


def newer(world: World, run_id: object, part: str, query: str) -> Any:
    address = reverse("run_newer", args=[world.tenant.slug, run_id, part])
    return client_of(world.charlie).get(address + query, headers={"HX-Request": "true"})


def test_a_part_that_no_page_has_or_a_run_that_one_may_not_see_is_not_found(world: World) -> None:
    run_id = world.start_run()
    assert newer(world, run_id, "everything", "?since=1").status_code == 404
    address = reverse("run_newer", args=[world.tenant.slug, run_id, "standing"])
    assert client_of(world.person("nobody")).get(address + "?since=1").status_code == 404


@pytest.mark.parametrize("part", ["standing", "side"])
def test_a_run_that_has_not_moved_answers_nothing_and_one_that_has_answers_the_part(world: World, part: str) -> None:
    packet = world.claimed_run()
    seq = RunHead.objects.of(world.tenant).get(run_id=packet.run.id).head_seq
    page = client_of(world.charlie).get(reverse("run", args=[world.tenant.slug, packet.run.id])).content.decode()
    assert f"newer/{part}/?since={seq}" in page and "The run has moved" not in page
    assert newer(world, packet.run.id, part, f"?since={seq}&loaded={seq}").status_code == 204
    answer = newer(world, packet.run.id, part, f"?since={seq - 1}&loaded={seq - 1}")
    text = answer.content.decode()
    assert answer.status_code == 200 and f'id="{part}"' in text and f"since={seq}" in text and "<html" not in text
    assert ("The run has moved, show" in text) == (part == "standing")


def test_a_run_that_moves_while_it_is_read_never_contradicts_itself(world: World) -> None:
    request = ask(world)
    decide(client_of(world.alice), world, request, "approve", "The photos show it.")
    done: list[bool] = []

    def moving(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if not done and "ledger_worker" in sql:
            done.append(True)
            wakes.run(request.run_id)
        return execute(sql, params, many, context)

    client = client_of(world.charlie)
    with connection.execute_wrapper(moving):
        page = client.get(reverse("run", args=[world.tenant.slug, request.run_id])).content.decode()
    assert done and "is cleared and waits for a worker" in page and "not yet" not in page


def test_a_settled_effect_shows_what_was_recorded_and_folds_the_form(world: World, clock: Clock) -> None:
    effect = lost(world, clock)
    client = client_of(world.charlie)
    address = reverse("effect", args=[world.tenant.slug, effect.pk])
    before = client.get(address).content.decode()
    assert "Settle by hand</h2>" in before and "New evidence says otherwise" not in before
    effects.verdict(
        world_caller(world),
        effect.pk,
        EffectState.COMMITTED,
        "",
        "Statement of 30 November, line 4.",
        "re_5512",
        read=effects.read_now(effect.pk),
    )
    after = client.get(address).content.decode()
    assert "What was recorded</h2>" in after and "Settled by hand: committed" in after
    assert "New evidence says otherwise" in after and "The run has its result" not in after
    assert "Result: there is none" not in after


def world_caller(world: World) -> Any:
    from ledger.domain.identity import Caller

    return Caller(world.tenant.pk, f"person:{world.charlie.pk}", person_id=world.charlie.pk)


def test_verify_on_top_is_the_deed_itself_and_the_fence_is_explained(world: World) -> None:
    packet, _ = called(world)
    address = reverse("run", args=[world.tenant.slug, packet.run.id])
    page = client_of(world.charlie).get(address).content.decode()
    assert page.count(f'action="{reverse("run_verify", args=[world.tenant.slug, packet.run.id])}"') == 2
    assert 'id="verified-top"' in page and 'href="#record">' in page
    assert "a write under an older one is refused" in page
