"""Signing in and out."""

import re

import pytest
from django.test import Client

from tests.world import PASSWORD, World


def test_a_wrong_password_is_told_without_saying_which_half_was_wrong(world: World) -> None:
    def answer(email: str) -> str:
        page = Client().post("/sign-in/", {"username": email, "password": "wrong"}).content.decode()
        return re.sub(r'(csrfmiddlewaretoken" value)="\w+"', r"\1", page).replace(email, "")

    assert "Please enter a correct" in answer(world.alice.email)
    assert answer(world.alice.email) == answer("nobody@example.org")


@pytest.mark.parametrize("after", ["https://elsewhere.example/", "//elsewhere.example/", "javascript:alert(1)"])
def test_the_way_on_after_signing_in_is_never_another_site(world: World, after: str) -> None:
    answer = Client().post("/sign-in/", {"username": world.alice.email, "password": PASSWORD, "next": after})
    assert answer["Location"] == "/"


def test_signing_in_leads_back_to_where_one_was(world: World) -> None:
    inbox = f"/t/{world.tenant.slug}/inbox/"
    answer = Client().post("/sign-in/", {"username": world.alice.email, "password": PASSWORD, "next": inbox})
    assert answer["Location"] == inbox


def test_a_deactivated_person_can_not_sign_in(world: World) -> None:
    world.alice.is_active = False
    world.alice.save()
    answer = Client().post("/sign-in/", {"username": world.alice.email, "password": PASSWORD})
    assert answer.status_code == 200 and "Please enter a correct" in answer.content.decode()


def test_a_link_does_not_sign_out(world: World) -> None:
    client = Client()
    client.force_login(world.alice)
    assert client.get("/sign-out/").status_code == 405
    assert client.post("/sign-out/").status_code == 302
    assert client.get(f"/t/{world.tenant.slug}/inbox/").status_code == 302
