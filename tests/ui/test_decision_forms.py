"""What a decision’s form may say: anything but what was read and the literal word is refused, and the text is kept."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.ui.asking import address, ask, client_of, decide, form_of, votes
from tests.ui.forms import TYPED, WAYS, assert_kept, post, text_of
from tests.world import RULES, World

TWO = ({**RULES[0], "quorum": 2}, *RULES[1:])


def test_a_form_without_the_token_is_refused_with_a_banner_for_htmx_and_the_text_on_a_page(world: World) -> None:
    request = ask(world)
    form = {
        **form_of(text_of(client_of(world.alice).get(address(world, request)))),
        "decision": "deny",
        "reason": TYPED,
    }
    alice = Client(enforce_csrf_checks=True)
    alice.force_login(world.alice)
    fragment = post(alice, world, request, form, True)
    assert (fragment.status_code, fragment["HX-Retarget"], fragment["HX-Reswap"]) == (403, "#banner", "innerHTML")
    page = post(alice, world, request, form, False)
    assert page.status_code == 403
    assert_kept(page)
    assert not votes(request)


@WAYS
@pytest.mark.parametrize("choice", ["", "Approve", "approve ", "yes", "true", "approved"])
def test_anything_but_the_literal_word_is_refused(world: World, choice: str, htmx: bool) -> None:
    request, alice = ask(world), client_of(world.alice)
    answer = decide(alice, world, request, choice, TYPED, htmx=htmx)
    assert answer.status_code == 422
    assert_kept(answer)
    assert not votes(request)


@WAYS
def test_a_denial_without_a_reason_is_refused_at_the_field(world: World, htmx: bool) -> None:
    request = ask(world)
    answer = decide(client_of(world.alice), world, request, "deny", "  ", htmx=htmx)
    assert answer.status_code == 422
    assert 'aria-invalid="true"' in text_of(answer) and "A denial needs a reason" in text_of(answer)
    assert ("<html" in text_of(answer)) is not htmx
    assert not votes(request)


def test_approvers_state_and_risk_from_the_form_count_for_nothing(world: World) -> None:
    world.policy(TWO)
    request, alice = ask(world), client_of(world.alice)
    form = form_of(text_of(alice.get(address(world, request))))
    forged = {
        "approvers": str(world.alice.pk),
        "state": "approved",
        "risk": "low",
        "quorum": "0",
        "voter": str(world.bob.pk),
    }
    answer = post(alice, world, request, {**form, **forged, "decision": "approve"}, True)
    assert answer.status_code == 200
    request.refresh_from_db()
    assert request.state == "pending" and votes(request) == [(world.alice.pk, "approve")]


@WAYS
@pytest.mark.parametrize("missing", ["revision", "digest", "receipt"])
def test_a_form_that_does_not_say_what_was_read_is_refused(world: World, missing: str, htmx: bool) -> None:
    request, alice = ask(world), client_of(world.alice)
    form = form_of(text_of(alice.get(address(world, request))))
    answer = post(alice, world, request, {**form, missing: "", "decision": "deny", "reason": TYPED}, htmx)
    assert answer.status_code == 428
    assert_kept(answer)
    assert not votes(request)


def test_a_receipt_made_for_somebody_else_or_another_request_is_refused(world: World) -> None:
    request, other = ask(world), ask(world)
    form = form_of(text_of(client_of(world.bob).get(address(world, request))))
    assert post(client_of(world.alice), world, request, {**form, "decision": "approve"}, True).status_code == 428
    swapped = form_of(text_of(client_of(world.alice).get(address(world, other))))["receipt"]
    own = form_of(text_of(client_of(world.alice).get(address(world, request))))
    answer = post(client_of(world.alice), world, request, {**own, "receipt": swapped, "decision": "approve"}, True)
    assert answer.status_code == 428 and not votes(request)
