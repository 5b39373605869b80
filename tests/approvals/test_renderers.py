"""Renderers: what a deployment's may say, that none hides or changes anything, and what is shown when one fails."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from approvals.renderers import Asked, Difference, Words, load, registry, renders, words_for
from tests.ui.asking import address, ask, client_of, decide, form_of
from tests.world import World

WORDS = Words(
    "Ship a crate to the harbour", "this shipment", "medium", "Medium risk: goods leave", "can be called back"
)
ASKED = Asked("crates.ship", "depot", "crate/9", {"to": "harbour", "parts": [1, 2]})


@pytest.fixture(autouse=True)
def own_registrations(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    monkeypatch.setattr(registry, "_registered", [*registry._registered])


def changed(**fields: Any) -> Words:
    return Words(
        **{**{name: getattr(WORDS, name) for name in ("headline", "verb", "risk", "risk_label", "undo")}, **fields}
    )


def answering(words: Any) -> Words:
    renders("crates.*", version="7")(lambda asked: words)
    return words_for(ASKED)


@pytest.mark.parametrize(
    "words",
    [
        "Ship it",
        changed(headline=""),
        changed(headline="x" * 201),
        changed(headline="Ship \u202eti"),
        changed(headline="two\nlines"),
        changed(verb=None),
        changed(risk="none"),
        changed(warning="\x07"),
        changed(reach=["a list"]),
        changed(reach=("",)),
        changed(reach=("x",) * 21),
        changed(reach=(object(),)),
        changed(differences=("a", "b")),
        changed(differences=(Difference("x", "y" * 301, None),)),
        changed(differences=(Difference("x", 1, None),)),  # type: ignore[arg-type]
    ],
    ids=lambda words: str(words)[:0],
)
def test_an_answer_that_is_not_fit_to_be_shown_gives_the_cautious_default_with_a_note(words: Any) -> None:
    told = answering(words)
    assert told.headline == "Call crates.ship on crate/9 at depot"
    assert (told.rated, told.risk, told.renderer) == (False, "high", "default/1")
    assert told.note.startswith("The renderer crates.*/7 of this tool failed: ")


@pytest.mark.parametrize("error", [ValueError("SECRET"), KeyError("x"), RecursionError(), AssertionError()])
def test_a_renderer_that_stops_with_an_error_gives_the_default_and_tells_nothing_of_it(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(asked: Asked) -> Words:
        raise error

    renders("crates.*", version="7")(broken)
    told = words_for(ASKED)
    assert not told.rated and "stopped with an error" in told.note
    assert "SECRET" not in told.note and "SECRET" not in caplog.text


def test_a_renderer_can_not_change_what_stands_below() -> None:
    def rewriting(asked: Asked) -> Words:
        asked.arguments["parts"].clear()
        asked.arguments["to"] = "elsewhere"
        asked.seen.clear()
        return WORDS

    renders("crates.*", version="7")(rewriting)
    asked = Asked("crates.ship", "depot", "crate/9", {"to": "harbour", "parts": [1]}, {"at": "quay"})
    assert words_for(asked).headline == WORDS.headline
    assert asked.arguments == {"to": "harbour", "parts": [1]} and asked.seen == {"at": "quay"}


def test_a_renderer_names_neither_itself_nor_its_note() -> None:
    told = answering(changed(renderer="payments.refund/4", note="all is well"))
    assert (told.renderer, told.note) == ("crates.*/7", "")


def test_what_is_registered_last_is_asked_first_and_may_leave_a_tool_to_the_next() -> None:
    renders("crates.*", version="1")(lambda asked: WORDS)
    renders("*", version="1")(lambda asked: None)
    renders("payments.*", version="9")(lambda asked: changed(headline="Ours"))
    assert words_for(ASKED).renderer == "crates.*/1"
    assert words_for(Asked("payments.refund", "payments", "", {})).headline == "Ours"


@pytest.mark.parametrize(
    ("pattern", "version"), [("", "1"), ("a b", "1"), ("x" * 61, "1"), ("crates.*", ""), ("c", "v 1")]
)
def test_a_registration_that_a_receipt_can_not_hold_is_refused(pattern: str, version: str) -> None:
    with pytest.raises(ValueError, match="short pattern and version"):
        renders(pattern, version=version)


def test_a_deployments_module_registers_at_start_and_a_missing_one_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("depot_renderers")
    monkeypatch.setitem(sys.modules, "depot_renderers", module)
    load(["depot_renderers"])
    with pytest.raises(ImproperlyConfigured, match=r"RESUMEAPP_RENDERERS: no_such_module.*ModuleNotFoundError"):
        load(["depot_renderers", "no_such_module"])


@pytest.mark.parametrize("total", ["amount_minor", "total_minor"])
def test_the_card_shows_what_would_change_and_whom_it_reaches(world: World, total: str) -> None:
    order = {total: 8700, "refunded_minor": 500, "currency": "EUR"}
    page = client_of(world.alice).get(address(world, ask(world, order=order))).content.decode()
    for text in ("Refunded so far", "5.00 EUR", "47.00 EUR", "Left to refund", "82.00 EUR", "40.00 EUR"):
        assert text in page
    assert "The customer of order 17 is paid 42.00 EUR." in page and "payments.refund/4" in page


def test_without_a_renderer_the_card_says_that_it_is_not_known(world: World) -> None:
    page = client_of(world.alice).get(address(world, ask(world, tool="payments.odd"))).content.decode()
    assert "What it would change is not known here" in page and "Who and what else it touches is not known" in page


def test_a_failing_renderer_leaves_the_card_usable_and_the_receipt_names_the_default(world: World) -> None:
    def broken(asked: Asked) -> Words:
        raise ZeroDivisionError

    renders("payments.*", version="3")(broken)
    request = ask(world)
    alice = client_of(world.alice)
    page = alice.get(address(world, request)).content.decode()
    assert "Told without the tool’s own words." in page and "payments.*/3" in page
    assert "Call payments.refund on order/17 at payments" in page and "4200" in page
    assert client_of(world.alice).get(f"/t/{world.tenant.slug}/inbox/").status_code == 200
    decide(alice, world, request, "approve")
    assert request.votes.of(world.tenant).get().renderer == "card/4 default/1"


def test_another_version_of_the_renderer_is_another_receipt_even_with_the_same_words(world: World) -> None:
    request = ask(world)
    alice = client_of(world.alice)
    digests = []
    for version in ("1", "2"):
        renders("payments.*", version=version)(lambda asked: WORDS)
        form = form_of(alice.get(address(world, request)).content.decode())
        digests.append(form["receipt"].split(":")[0])
    assert digests[0] != digests[1]
    decide(alice, world, request, "approve")
    assert request.votes.of(world.tenant).get().renderer == "card/4 payments.*/2"
