"""Signing in and out."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from ledger.services import identity
from tests.world import PASSWORD, World


def client(user: object) -> Client:
    found = Client()
    found.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return found


def inbox(world: World) -> str:
    return f"/t/{world.tenant.slug}/inbox/"


def test_signing_in_takes_the_address_in_any_case_and_leads_to_the_inbox(world: World) -> None:
    browser = Client()
    form = {"username": f"  {world.alice.email.upper()} ", "password": PASSWORD}
    assert browser.post("/sign-in/", form)["Location"] == "/"
    assert browser.get("/")["Location"] == f"/t/{world.tenant.slug}/inbox/"


@pytest.mark.parametrize("way_back", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"])
def test_signing_in_never_leads_elsewhere(world: World, way_back: str) -> None:
    form = {"username": world.alice.email, "password": PASSWORD, "next": way_back}
    assert Client().post("/sign-in/", form)["Location"] == "/"


def test_signing_in_leads_back_to_where_one_was(world: World) -> None:
    form = {"username": world.alice.email, "password": PASSWORD, "next": inbox(world)}
    assert Client().post("/sign-in/", form)["Location"] == inbox(world)


def test_a_wrong_password_is_told_without_saying_which_half_was_wrong(world: World) -> None:
    def answer(email: str) -> str:
        page = Client().post("/sign-in/", {"username": email, "password": "wrong"}).content.decode()
        return re.sub(r'(csrfmiddlewaretoken" value)="\w+"', r"\1", page).replace(email, "")

    assert "No open account has this e-mail with this password" in answer(world.alice.email)
    assert answer(world.alice.email) == answer("nobody@example.org")


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
    assert browser.get(inbox(world)).status_code == 200
    assert browser.post("/sign-out/")["Location"] == "/sign-in/"
    assert browser.get(inbox(world)).status_code == 302


def test_what_is_wrong_with_a_sign_in_is_read_out_and_tied_to_its_fields(world: World) -> None:
    missing = Client().post("/sign-in/", {"username": "", "password": ""}).content.decode()
    for field in ("id_username", "id_password"):
        assert f'aria-describedby="{field}-error"' in missing and f'class="error" id="{field}-error"' in missing
    wrong = Client().post("/sign-in/", {"username": world.alice.email, "password": "not it"}).content.decode()
    assert wrong.count('aria-describedby="sign-in-error"') == 2 and 'role="alert" id="sign-in-error"' in wrong
    assert "aria-describedby" not in Client().get("/sign-in/").content.decode()
