"""Who may open a page, and what somebody hears who is signed out, foreign or refused."""

import pytest
from django.test import Client
from django.urls import reverse

from ledger.services import identity
from tests.ui.asking import address as address_of
from tests.ui.asking import ask
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
    assert answer.status_code == 204 and "Location" not in answer.headers, "one way to go, never both"
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


def test_signed_out_a_form_is_not_saved_and_says_so_to_htmx(world: World) -> None:
    request = ask(world)
    answer = Client().post(
        address_of(world, request, "approval_decide"), {"reason": "typed"}, headers={"HX-Request": "true"}
    )
    assert answer.status_code == 401
    assert "HX-Redirect" not in answer.headers and "Location" not in answer.headers
    assert "Not saved: you are signed out." in answer.content.decode()


def test_signed_out_a_form_without_javascript_shows_what_was_typed(world: World) -> None:
    request = ask(world)
    card = address_of(world, request)
    headers = {"Referer": f"http://testserver{card}"}
    data = {"reason": "typed <text>", "decision": "approve", "receipt": "x"}
    answer = Client().post(address_of(world, request, "approval_decide"), data, headers=headers)
    page = answer.content.decode()
    assert answer.status_code == 401
    assert "typed &lt;text&gt;</textarea>" in page and "receipt" not in page
    assert f"/sign-in/?next={card.replace('/', '%2F')}" in page


def test_a_deactivated_person_is_signed_out_at_once(world: World, alice: Client) -> None:
    assert alice.get(address(world)).status_code == 200
    identity.deactivate_person(world.admin, world.alice)
    assert alice.get(address(world)).status_code == 302


def test_who_left_the_tenant_finds_nothing_with_the_same_session(world: World, alice: Client) -> None:
    identity.leave(world.admin, world.alice)
    assert alice.get(address(world)).status_code == 404


def test_a_person_without_a_tenant_is_told_so(world: World, alice: Client) -> None:
    identity.leave(world.admin, world.alice)
    assert "You belong to no tenant yet" in alice.get("/").content.decode()


def test_a_refusal_inside_the_own_tenant_keeps_the_frame_and_says_who_can_help(world: World, alice: Client) -> None:
    answer = alice.get(address(world, "history"))
    page = answer.content.decode()
    assert answer.status_code == 403
    assert "Only auditors and administrators see the history" in page and "An administrator of the tenant" in page
    assert 'aria-label="Main"' in page and 'role="search"' in page


@pytest.mark.parametrize("rest", ["runs/00000000-0000-0000-0000-000000000000/", "no-such-page/"])
def test_what_is_not_there_inside_the_own_tenant_keeps_the_frame(world: World, alice: Client, rest: str) -> None:
    answer = alice.get(f"/t/{world.tenant.slug}/{rest}")
    page = answer.content.decode()
    assert answer.status_code == 404 and 'aria-label="Main"' in page and world.tenant.name in page
    other = alice.get(f"/t/{World().tenant.slug}/{rest}").content.decode()
    assert 'aria-label="Main"' not in other and "Nothing here that you can see" in other


def test_the_history_is_in_the_navigation_of_those_alone_who_may_read_it(world: World, alice: Client) -> None:
    assert ">History<" not in alice.get(address(world)).content.decode()
    dora = Client()
    dora.force_login(world.dora)
    assert ">History<" in dora.get(address(world)).content.decode()
