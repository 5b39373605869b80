"""Verification from pages: who may ask, that a long check runs in the background, what is kept, and what it says afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from approvals.views import verifications as views
from ledger.domain.identity import Verb
from ledger.models import User, Verification
from ledger.services import identity, verifications
from tests.services.test_verifications import NO_TIME, key_of, spoil, through
from tests.tamper import run_sql
from tests.ui.asking import client_of
from tests.ui.scenes import completed
from tests.world import World


def at(world: World, name: str, *args: object) -> str:
    return reverse(name, args=[world.tenant.slug, *args])


def everything(world: World, person: User | None = None) -> Any:
    return client_of(person or world.dora).post(at(world, "history_verify"), headers={"HX-Request": "true"})


def only(world: World) -> UUID:
    return UUID(str(Verification.objects.of(world.tenant).get().pk))


def test_only_who_may_audit_the_whole_tenant_has_all_of_it_verified(world: World) -> None:
    part = world.person("audrey")
    identity.grant_permission(world.admin, part, Verb.AUDIT, world.workflow)
    for person, status in ((part, 403), (world.alice, 403), (World().dora, 404)):
        assert everything(world, person).status_code == status
    assert not Verification.objects.of(world.tenant).exists()
    assert client_of(world.dora).get(at(world, "history_verify"))["Location"] == at(world, "history")
    assert not Verification.objects.of(world.tenant).exists()


def test_what_was_found_is_seen_by_those_alone_who_may_see_what_it_is_about(world: World) -> None:
    of_run = verifications.ask(world.caller, completed(world))
    of_all = verifications.ask(world.caller)
    nobody, stranger = world.person("nobody"), World().dora
    for name in ("verification", "verification_newer"):
        for person, check, status in (
            (world.charlie, of_run, 200),
            (world.dora, of_all, 200),
            (world.charlie, of_all, 404),
            (nobody, of_run, 404),
            (nobody, of_all, 404),
            (stranger, of_run, 404),
            (stranger, of_all, 404),
        ):
            assert client_of(person).get(at(world, name, check)).status_code == status, (name, person)


def test_a_long_run_is_checked_in_the_background_and_its_page_says_how_far(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "AT_ONCE", 0)
    run_id = completed(world)
    client = client_of(world.charlie)
    answer = client.post(at(world, "run_verify", run_id))
    address = at(world, "verification", only(world))
    assert (answer.status_code, answer["Location"]) == (302, address)
    page = client.get(address).content.decode()
    assert "Being verified in the background" in page and "How far is it?" in page and "Back to the run" in page
    through(world, only(world))
    page = client.get(address).content.decode()
    assert "The record is intact" in page and "by <span" in page and "Charlie" in page


def test_progress_is_told_in_slices_and_the_polling_ends_with_the_check(world: World) -> None:
    for _ in range(3):
        world.start_run()
    client = client_of(world.dora)
    fragment = everything(world).content.decode()
    check = only(world)
    address = at(world, "verification_newer", check)
    assert f'data-live="{address}?since=administration-0' in fragment and "<html" not in fragment
    assert client.get(address, {"since": "administration-0"}).status_code == 204
    verifications.advance(check, NO_TIME)
    told = client.get(address, {"since": "administration-0", "at": "verified"}).content.decode()
    assert "25 %" in told and 'id="check-verified"' in told and "data-live=" in told
    through(world, check)
    told = client.get(address, {"since": "events-1", "at": '"><script>'}).content.decode()
    assert "The record is intact" in told and "data-live=" not in told and 'id="check-page"' in told


def test_the_history_says_what_was_verified_by_whom_and_names_the_chains_that_did_not(world: World) -> None:
    client = client_of(world.dora)
    assert "Nobody has had everything verified yet" in client.get(at(world, "history")).content.decode()
    completed(world)
    bad = world.start_run()
    spoil(bad)
    everything(world)
    through(world, only(world))
    page = client.get(at(world, "history")).content.decode()
    assert "doesn’t verify: 1 fault" in page and "asks" in page and "Dora" in page
    runbook = page.split("the runbook “")[1].split("”")[0]
    assert f"**{runbook}.**" in (Path(settings.BASE_DIR) / "docs/operations.md").read_text(), "one that there is"
    assert page.count(f'href="{at(world, "run", bad)}"') >= 2
    assert "Chains that did not verify" in page
    run_page = client.get(at(world, "run", bad)).content.decode()
    assert "Didn’t verify when checked last" in run_page
    assert "Verification</h2>" not in client.get(at(world, "history"), {"verb": "run.start"}).content.decode()


def test_a_run_page_says_how_far_its_chain_was_checked_and_what_came_since(world: World) -> None:
    run_id = world.start_run()
    client = client_of(world.charlie)
    page = client.get(at(world, "run", run_id)).content.decode()
    assert "Nobody has had it verified yet" in page
    client.post(at(world, "run_verify", run_id))
    page = client.get(at(world, "run", run_id)).content.decode()
    assert "Checked up to entry 1<" in page and "came since" not in page
    world.claim()
    assert "; 1 came since" in client.get(at(world, "run", run_id)).content.decode()


def test_a_chain_that_fails_after_all_was_verified_is_never_told_beside_a_green_word(world: World) -> None:
    run_id = world.start_run()
    everything(world)
    through(world, only(world))
    client, here = client_of(world.dora), at(world, "history")
    assert "The record is intact" in client.get(here).content.decode()
    spoil(run_id)
    through(world, verifications.ask(world.caller, run_id))
    page = client.get(here).content.decode()
    assert (
        "The record is intact" not in page
        and "tone-green" not in page.split('id="verification"')[1].split("</section>")[0]
    )
    assert "All of it was intact when this check ended" in page and "Chains that did not verify" in page
    fragment = everything(world).content.decode()
    newest = Verification.objects.of(world.tenant).order_by("-asked_at", "-pk")[0].pk
    assert f'href="{at(world, "verification", newest)}"' in fragment
    run_sql("UPDATE ledger_run_head SET asks = 0 WHERE run_id = %s", key_of(run_id))
    through(world, newest)
    query = {"since": "", "at": "verified"}
    ended = client.get(at(world, "verification_newer", newest), query).content.decode()
    assert "The record is intact" in ended and "Chains that did not verify" not in ended


def test_a_check_that_goes_on_names_the_chains_that_fail_until_they_verify(world: World) -> None:
    spoil(run_id := world.start_run())
    through(world, verifications.ask(world.caller, run_id))
    client = client_of(world.dora)
    headers = {"HX-Request": "true", "HX-Target": "verified"}
    fragment = client.post(at(world, "history_verify"), headers=headers).content.decode()
    assert "Being verified" in fragment and "Chains that did not verify" in fragment


def test_an_administrator_is_not_told_to_tell_an_administrator(world: World) -> None:
    auditor = world.person("audrey")
    identity.grant_permission(world.admin, auditor, Verb.AUDIT, world.tenant)
    spoil(world.start_run())
    through(world, verifications.ask(world.caller))
    for name, args in (("history", ()), ("verification", (only(world),))):
        for person, told in ((world.dora, False), (auditor, True)):
            page = client_of(person).get(at(world, name, *args)).content.decode()
            assert ("Tell an administrator" in page) == told and "runbook “A chain is broken”" in page


def test_a_fault_says_what_stands_in_the_row_and_what_was_written(world: World) -> None:
    run_id = world.start_run()
    spoil(run_id)
    through(world, verifications.ask(world.caller, run_id))
    page = client_of(world.charlie).get(at(world, "verification", only(world))).content.decode()
    assert "isn&#x27;t what the journal says: its asks is 9, and was written as 0" in page


def test_a_check_is_a_get_of_nothing(world: World) -> None:
    check = verifications.ask(world.caller)
    before = Verification.objects.of(world.tenant).values().get()
    for name in ("verification", "verification_newer"):
        client_of(world.dora).get(at(world, name, check))
    assert Verification.objects.of(world.tenant).values().get() == before


def test_pages_of_verification_cost_the_same_at_ten_times_the_data(world: World) -> None:
    client = client_of(world.dora)

    def checked() -> UUID:
        bad = world.start_run()
        spoil(bad)
        through(world, verifications.ask(world.caller, bad))
        check = verifications.ask(world.caller)
        through(world, check)
        return check

    def costs(check: UUID) -> list[int]:
        found = []
        for address in (at(world, "history"), at(world, "verification", check)):
            with CaptureQueriesContext(connection) as captured:
                assert client.get(address).status_code == 200
            found.append(len(captured))
        return found

    checked()
    few = costs(checked())
    for _ in range(8):
        checked()
    assert costs(checked()) == few
    assert max(few) <= 30, few
