"""Who may open a page, and what somebody hears who is signed out, foreign or refused."""

import pytest
from django.test import Client
from django.urls import reverse

from tests.world import World


@pytest.fixture
def alice(world: World) -> Client:
    client = Client()
    client.force_login(world.alice)
    return client


def address(world: World, name: str = "inbox") -> str:
    return reverse(name, args=[world.tenant.slug])


def test_a_page_of_a_foreign_tenant_is_not_there(world: World, alice: Client) -> None:
    other = World()
    assert alice.get(address(other)).status_code == 404
    assert alice.get("/t/no-such-tenant/inbox/").status_code == 404


def test_a_fragment_of_a_foreign_tenant_is_not_there_either(world: World, alice: Client) -> None:
    answer = alice.get(address(World(), "inbox_newer"), headers={"HX-Request": "true"})
    assert answer.status_code == 404
    assert answer["HX-Retarget"] == "#banner"


def test_a_superuser_who_is_no_member_sees_nothing(world: World) -> None:
    other = World()
    other.alice.is_superuser = True
    other.alice.save()
    client = Client()
    client.force_login(other.alice)
    assert client.get(address(world)).status_code == 404


def test_signed_out_a_page_leads_to_sign_in_and_back(world: World) -> None:
    answer = Client().get(address(world) + "?kind=approvals")
    assert answer.status_code == 302
    assert answer["Location"] == f"/sign-in/?next=%2Ft%2F{world.tenant.slug}%2Finbox%2F%3Fkind%3Dapprovals"


def test_signed_out_htmx_is_never_redirected_by_the_server(world: World) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": f"http://testserver{address(world)}"}
    answer = Client().get(address(world, "inbox_newer"), headers=headers)
    assert answer.status_code == 204
    assert answer["HX-Redirect"] == f"/sign-in/?next=%2Ft%2F{world.tenant.slug}%2Finbox%2F"


def test_signed_out_the_way_back_never_leads_to_another_site(world: World) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": "https://elsewhere.example/x"}
    assert Client().get(address(world), headers=headers)["HX-Redirect"] == "/sign-in/?next=%2F"


def test_every_page_is_kept_by_no_cache_and_varies_by_htmx(world: World, alice: Client) -> None:
    answer = alice.get(address(world))
    assert answer["Cache-Control"] == "no-store"
    assert "HX-Request" in answer["Vary"]


def test_home_leads_to_the_inbox_of_the_first_tenant(world: World, alice: Client) -> None:
    assert alice.get("/")["Location"] == address(world)
