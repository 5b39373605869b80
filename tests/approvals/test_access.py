"""Who gets to a page, and what those who don't are told, with and without htmx."""

from __future__ import annotations

import pytest
from django.test import Client

from ledger.services import identity
from tests.world import PASSWORD, World

pytestmark = pytest.mark.urls("tests.approvals.urls")
HTMX = {"HX-Request": "true"}


def client(user: object = None, **more: bool) -> Client:
    found = Client(**more)
    if user is not None:
        found.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return found


def probe(world: World) -> str:
    return f"/t/{world.tenant.slug}/probe/"


def test_a_page_of_another_tenant_is_not_there(world: World) -> None:
    stranger = client(World().alice)
    assert stranger.get(probe(world)).status_code == 404
    assert stranger.get("/t/no-such-tenant/probe/").status_code == 404


def test_who_left_or_was_deactivated_is_out_at_the_next_request(world: World) -> None:
    alice, bob = client(world.alice), client(world.bob)
    assert alice.get(probe(world)).status_code == bob.get(probe(world)).status_code == 200
    identity.leave(world.admin, world.alice)
    identity.deactivate_person(world.admin, world.bob)
    assert alice.get(probe(world)).status_code == 404
    assert bob.get(probe(world)).status_code == 302


def test_a_member_without_the_right_is_refused(world: World) -> None:
    page = f"/t/{world.tenant.slug}/operators/"
    assert client(world.alice).get(page).status_code == 403
    assert client(world.charlie).get(page).status_code == 200


def test_signed_out_a_page_leads_to_sign_in_and_back(world: World) -> None:
    answer = client().get(probe(world) + "?a=b")
    assert answer.status_code == 302
    assert answer["Location"] == f"/sign-in/?next=%2Ft%2F{world.tenant.slug}%2Fprobe%2F%3Fa%3Db"


def test_signed_out_a_fragment_is_never_a_redirect(world: World) -> None:
    shown = f"http://testserver/t/{world.tenant.slug}/inbox/"
    answer = client().get(probe(world), headers={**HTMX, "HX-Current-URL": shown})
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer["HX-Redirect"] == f"/sign-in/?next=%2Ft%2F{world.tenant.slug}%2Finbox%2F"
    foreign = client().get(probe(world), headers={**HTMX, "HX-Current-URL": "https://evil.example/t/x/"})
    assert foreign["HX-Redirect"] == "/sign-in/?next=%2F"


def test_signed_out_a_form_is_told_that_it_was_not_saved(world: World) -> None:
    answer = client().post(probe(world), headers=HTMX)
    assert answer.status_code == 401
    assert answer["HX-Retarget"] == "#banner" and "Location" not in answer and "HX-Redirect" not in answer
    assert b"Not saved" in answer.content and b"<form" not in answer.content


def test_an_old_token_is_told_in_the_banner_and_the_form_stays(world: World) -> None:
    browser = client(world.alice, enforce_csrf_checks=True)
    answer = browser.post(probe(world), headers=HTMX)
    assert answer.status_code == 403
    assert (answer["HX-Retarget"], answer["HX-Reswap"]) == ("#banner", "innerHTML")
    assert b"Not saved" in answer.content and b"<html" not in answer.content
    whole = browser.post(probe(world))
    assert whole.status_code == 403 and b"<html" in whole.content


def test_pages_are_kept_by_nobody(world: World) -> None:
    for answer in (client(world.alice).get(probe(world)), client().get(probe(world), headers=HTMX)):
        assert answer["Cache-Control"] == "no-store" and "HX-Request" in answer["Vary"]


def test_signing_in_takes_the_address_in_any_case_and_leads_to_the_inbox(world: World) -> None:
    browser = Client()
    form = {"username": f"  {world.alice.email.upper()} ", "password": PASSWORD}
    assert browser.post("/sign-in/", form)["Location"] == "/"
    assert browser.get("/")["Location"] == f"/t/{world.tenant.slug}/inbox/"


@pytest.mark.parametrize("way_back", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"])
def test_signing_in_never_leads_elsewhere(world: World, way_back: str) -> None:
    form = {"username": world.alice.email, "password": PASSWORD, "next": way_back}
    assert Client().post("/sign-in/", form)["Location"] == "/"


def test_a_wrong_password_and_an_inactive_person_get_the_same_answer(world: World) -> None:
    wrong = Client().post("/sign-in/", {"username": world.alice.email, "password": "not it"})
    identity.deactivate_person(world.admin, world.alice)
    inactive = Client().post("/sign-in/", {"username": world.alice.email, "password": PASSWORD})
    assert wrong.status_code == inactive.status_code == 200
    said = [list(answer.context["form"].non_field_errors()) for answer in (wrong, inactive)]
    assert said[0] and said[0] == said[1]


def test_signing_out_is_a_post(world: World) -> None:
    browser = client(world.alice)
    assert browser.get("/sign-out/").status_code == 405
    assert browser.get(probe(world)).status_code == 200
    assert browser.post("/sign-out/")["Location"] == "/sign-in/"
    assert browser.get(probe(world)).status_code == 302


def test_who_belongs_nowhere_is_told_so(world: World) -> None:
    identity.leave(world.admin, world.alice)
    assert client(world.alice).get("/").status_code == 403
