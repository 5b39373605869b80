"""A form or a filter that is refused says so at the field, keeps what was typed, and leads to what it is about as it is now."""

from __future__ import annotations

import html
import re
from urllib.parse import urlencode

import pytest
from django.urls import reverse

from ledger.domain.commits import Next, NextKind
from ledger.models import Handoff, JournalEntry, Verification
from tests.clock import Clock
from tests.ui.asking import ask, client_of, receipt_of
from tests.ui.scenes import handed_over, lost
from tests.ui.test_handoffs import send, settled
from tests.world import World

LONG = "x" * 4_001


def error_at(page: str, field: str) -> str:
    """The text of the field's own error; the field points at it."""
    control = re.search(rf'<(?:input|textarea|select)[^>]*id="{field}"[^>]*>', page)
    assert control and 'aria-invalid="true"' in control[0], field
    (error,) = [each for each in re.findall(r"[\w-]*error", control[0]) if each.endswith(f"{field}-error")]
    return page.split(f'id="{error}"')[1].split("</p>")[0]


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("run", "1234", "last eight characters"),
        ("run", "not hex", "last eight characters"),
        ("since", "yesterday", "2026-11-30T16:45"),
        ("until", "2026-13-01", "2026-11-30T16:45"),
        ("until", "2020-01-01", "Choose a later end."),
    ],
)
def test_a_filter_of_the_history_is_refused_at_its_field_and_the_others_stay(
    world: World, field: str, typed: str, said: str
) -> None:
    query = {"since": "2020-01-02", "verb": "run.start", field: typed}
    answer = client_of(world.dora).get(reverse("history", args=[world.tenant.slug]), query)
    page = answer.content.decode()
    assert answer.status_code == 422 and said in error_at(page, f"f-{field}")
    assert '<option value="run.start" selected>' in page and "Nothing matches" not in page
    assert field == "run" or field == "since" or 'value="2020-01-02T00:00"' in page


def test_a_run_is_found_in_the_history_by_the_end_of_its_id_as_lists_show_it(world: World) -> None:
    run_id = world.start_run()
    world.start_run()
    address = reverse("history", args=[world.tenant.slug])
    for typed in (str(run_id), run_id.hex, run_id.hex[-8:], str(run_id)[-12:].upper()):
        page = client_of(world.dora).get(address, {"run": typed}).content.decode()
        links = set(re.findall(r'data-open[^>]*href="([^"]+)"', page))
        assert links == {reverse("run", args=[world.tenant.slug, run_id])}, typed


def test_a_reason_that_is_too_long_is_refused_at_its_field_and_kept(world: World, clock: Clock) -> None:
    handoff = handed_over(world, clock)
    send(world, handoff, "handoff_own")
    settled(world, handoff)
    answer = send(world, handoff, "handoff_close", outcome="cancel", reason=LONG)
    page = answer.content.decode()
    assert answer.status_code == 422 and "longer than 4000 characters" in error_at(page, "reason")
    assert LONG in page and "something is missing" not in page
    assert re.search(r'value="cancel"[^>]* checked', page)
    assert Handoff.objects.of(world.tenant).get(pk=handoff.pk).state == "accepted"


@pytest.mark.parametrize(("field", "text"), [("evidence", "x" * 20_001), ("reference", "x" * 201)])
def test_a_verdict_with_too_long_a_text_is_refused_at_its_field(
    world: World, clock: Clock, field: str, text: str
) -> None:
    effect = lost(world, clock)
    client, address = client_of(world.charlie), reverse("effect", args=[world.tenant.slug, effect.pk])
    form = receipt_of(client.get(address).content.decode())
    typed = {"evidence": "It is on the statement.", "reference": "wi_1", field: text}
    answer = client.post(f"{address}verdict/", {**form, "verdict": "committed", **typed})
    page = answer.content.decode()
    assert answer.status_code == 422 and error_at(page, field)
    assert all(each in page for each in typed.values())


def test_what_was_closed_in_another_tab_is_one_press_away_as_it_is_now(world: World, clock: Clock) -> None:
    handoff = handed_over(world, clock)
    send(world, handoff, "handoff_own")
    settled(world, handoff)
    send(world, handoff, "handoff_close", outcome="cancel", reason="The customer withdrew it.")
    address = reverse("handoff", args=[world.tenant.slug, handoff.pk])
    client, typed = client_of(world.charlie), {"outcome": "wake", "reason": "Try it again, please."}
    for headers in ({}, {"HX-Request": "true"}):
        answer = client.post(f"{address}close/", typed, headers=headers)
        page = answer.content.decode()
        assert answer.status_code == 409 and f'href="{address}">Show it as it is now</a>' in page
        assert headers or typed["reason"] in page, "without JavaScript the page has to keep it"


def test_the_address_of_a_refused_form_leads_to_its_page(world: World, clock: Clock) -> None:
    """The browser shows it after a refusal without JavaScript: a reload, or Enter in the address bar, is a GET."""
    effect = lost(world, clock)
    before = JournalEntry.objects.of(world.tenant).count()
    client, page = client_of(world.charlie), reverse("effect", args=[world.tenant.slug, effect.pk])
    led = client.get(f"{page}verdict/")
    assert (led.status_code, led["Location"]) == (302, page)
    assert client.put(f"{page}verdict/").status_code == 405
    assert client.get(reverse("effect_verdict", args=[world.tenant.slug, world.tenant.pk])).status_code == 404
    signed_out = client_of(world.charlie)
    signed_out.logout()
    assert signed_out.get(f"{page}verdict/")["Location"] == f"/sign-in/?{urlencode({'next': f'{page}verdict/'})}"
    assert JournalEntry.objects.of(world.tenant).count() == before
    assert not Verification.objects.of(world.tenant).exists()


def test_what_a_form_left_empty_is_not_in_the_address(world: World) -> None:
    for name, asked in (("runs", "q=vase&attribute=n%3A1"), ("history", "verb=run.start")):
        address, client = reverse(name, args=[world.tenant.slug]), client_of(world.dora)
        led = client.get(f"{address}?status=&{asked}&owner=&since=")
        assert (led.status_code, led["Location"]) == (302, f"{address}?{asked}")
        assert client.get(f"{address}?q=&verb=")["Location"] == address
        assert client.get(f"{address}?{asked}").status_code == 200


def test_every_entry_of_the_history_s_list_of_acts_begins_with_a_letter_and_they_are_in_order(world: World) -> None:
    page = client_of(world.dora).get(reverse("history", args=[world.tenant.slug])).content.decode()
    acts = re.findall(r"<option[^>]*>([^<]+)<", page.split('name="verb"')[1].split("</select>")[0])[1:]
    assert len(acts) > 40 and len(set(acts)) == len(acts)
    assert all(act[0].isupper() and not act.endswith("…") for act in acts), acts
    assert acts == sorted(acts, key=str.lower)


def test_a_verdict_shows_what_the_person_found_in_their_own_words(world: World, clock: Clock) -> None:
    effect = lost(world, clock)
    client, address = client_of(world.charlie), reverse("effect", args=[world.tenant.slug, effect.pk])
    typed = {"verdict": "committed", "evidence": 'It says "settled" there.', "reference": "wi_1"}
    client.post(f"{address}verdict/", {**receipt_of(client.get(address).content.decode()), **typed})
    page = html.unescape(client.get(address).content.decode())
    told = page.split("What they found</summary>")[1].split("</details>")[0]
    assert typed["evidence"] in told and "{" not in told


def test_a_step_that_failed_is_not_called_finished(world: World) -> None:
    packet = world.claimed_run()
    world.commit(packet, Next(NextKind.FAIL, "", None, "the photo is missing"))
    page = client_of(world.charlie).get(reverse("run", args=[world.tenant.slug, packet.run.id])).content.decode()
    assert "Failed in “assess”" in page and "Finished “assess”" not in page
    assert "“assess” ended the run" in page and "“assess” done" not in page


def test_a_row_of_the_inbox_shows_the_amount_beside_the_risk(world: World) -> None:
    ask(world)
    page = client_of(world.alice).get(reverse("inbox", args=[world.tenant.slug])).content.decode()
    assert re.findall(r'<strong class="nowrap">([^<]+)</strong>', page) == ["42.00 EUR"]
