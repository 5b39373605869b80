"""The pages that are pictured, staged: each state of the manifest with its address, for whom, and what is done on it first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.urls import reverse

from ledger.models import JournalEntry, User
from ledger.services import verifications
from tests.shots import acts
from tests.shots.acts import Act, held, sent
from tests.shots.house import House
from tests.shots.scenes import Story


@dataclass(frozen=True)
class Shot:
    """One page in one state. `act` does something on it first, such as sending a form that is refused."""

    page: str
    state: str
    address: str
    person: User | None
    act: Act | None = None

    @property
    def name(self) -> str:
        return f"{self.page}-{self.state}"


def full(story: Story) -> Iterator[Shot]:
    """Every page with a day's work on it. What an act changes for others stands after them."""
    yield from _lists(story)
    yield from _cards(story)
    yield from _runs(story)
    yield from _calls(story)
    yield from _record(story)


def _lists(story: Story) -> Iterator[Shot]:
    house = story.house
    at = _addresses(house)
    yield Shot("inbox", "full", at("inbox"), house.ivo)
    yield Shot("inbox", "queues", at("inbox"), house.mara)
    yield Shot("inbox", "stalled", at("inbox") + "?show=stalled", house.noor)
    yield Shot("inbox", "operator", at("inbox"), house.noor)
    yield Shot("inbox", "approvals", at("inbox") + "?show=approvals", house.mara)
    yield Shot("inbox", "keys", at("inbox"), house.ivo, acts.keys)
    yield Shot("inbox", "account", at("inbox"), house.ivo, acts.account)
    yield Shot("runs", "full", at("runs"), house.noor)
    yield Shot("runs", "none", at("runs") + "?q=nothing+like+it", house.noor)
    yield Shot("reconcile", "full", at("reconcile"), house.noor)
    yield Shot("handoffs", "full", at("handoffs"), house.noor)
    yield Shot("handoffs", "closed", at("handoffs") + "?show=closed", house.noor)
    for page in ("reconcile", "handoffs"):
        yield Shot(page, "onlooker", at(page), house.dora)
    people = {"inbox": house.ivo, "runs": house.noor, "reconcile": house.noor, "handoffs": house.noor}
    for page, person in people.items():
        broken = {"inbox": "after=x", "runs": "q=vase&attribute=nonsense"}.get(page, "before=x")
        yield Shot(page, "error", f"{at(page)}?{broken}", person)
        yield Shot(page, "loading", at(page), person, held("**/newer/**", acts.look_for_newer))
        if page != "runs":
            yield Shot(page, "newer", at(page), person, acts.newer)


def _cards(story: Story) -> Iterator[Shot]:
    house, runs = story.house, story.runs
    at = _addresses(house)

    def card(name: str) -> str:
        return at("approval", house.request(runs[name]).pk)

    for state in (
        "pending",
        "big",
        "soon",
        "moved",
        "approved",
        "revoked",
        "denied",
        "expired",
        "completed",
        "impossible",
    ):
        yield Shot("card", state, card(state), house.ivo)
    yield Shot("card", "onlooker", card("pending"), house.dora)
    yield Shot("card", "error", card("pending"), house.ivo, sent("Deny"))
    yield Shot("card", "signed-out", card("pending"), house.ivo, acts.signed_out)
    yield Shot("card", "deciding", card("pending"), house.ivo, held("**/decide/", acts.pressed("Approve")))
    yield Shot("card", "looking", card("pending"), house.ivo, held("**/look/", acts.pressed("Look again")))
    yield Shot("card", "412", card("pending"), house.ivo, acts.form_with("digest", "0" * 64))
    yield Shot("card", "428", card("pending"), house.ivo, acts.form_with("revision", None))
    yield Shot("card", "410", card("soon"), house.ivo, acts.too_late(story))
    yield Shot("card", "409", card("more"), house.ivo, acts.decided_meanwhile(story, "more"))


def _runs(story: Story) -> Iterator[Shot]:
    house, runs = story.house, story.runs
    at = _addresses(house)
    for state in (
        "running",
        "ready",
        "unclaimed",
        "silent",
        "pending",
        "moved",
        "events",
        "unknown",
        "blocked",
        "completed",
        "cancelled",
    ):
        yield Shot("run", state, at("run", runs[state]), house.noor)
    yield Shot("run", "opened", at("run", runs["completed"]), house.noor, acts.opened)
    yield Shot("run", "verifying", at("run", runs["completed"]), house.noor, held("**/verify/", acts.pressed("Verify")))
    yield Shot("run", "verified", at("run", runs["completed"]), house.noor, sent("Verify"))
    yield Shot("run", "onlooker", at("run", runs["unknown"]), house.dora)


_CALLS = (("unknown", "pay"), ("wire", "wire"), ("blocked", "pay"), ("doubted", "pay"), ("cancelled", "pay"))


def _calls(story: Story) -> Iterator[Shot]:
    """Calls to reconcile, and handoffs."""
    house, runs = story.house, story.runs
    at = _addresses(house)

    def effect(name: str, call: str = "pay") -> str:
        return at("effect", house.effect(runs[name], call).pk)

    def handoff(name: str) -> str:
        return at("handoff", house.handoff(runs[name]).pk)

    for state, call in _CALLS:
        yield Shot("effect", state, effect(state, call), house.noor)
    yield Shot("effect", "onlooker", effect("unknown"), house.dora)
    yield Shot("effect", "error", effect("unknown"), house.noor, acts.empty_handed("Record the verdict"))
    yield Shot("effect", "settling", effect("unknown"), house.noor, held("**/verdict/", acts.settled))
    yield Shot("effect", "409", effect("unknown"), house.noor, acts.asked_meanwhile(story, "unknown"))
    yield Shot("handoff", "open", handoff("blocked"), house.noor)
    yield Shot("handoff", "given-up", handoff("given-up"), house.noor)
    yield Shot("handoff", "closed", handoff("cancelled"), house.noor)
    yield Shot("handoff", "onlooker", handoff("blocked"), house.dora)
    yield Shot("handoff", "mine", handoff("settled"), house.noor)
    yield Shot("handoff", "taken", handoff("settled"), house.mara)
    yield Shot("handoff", "error", handoff("settled"), house.noor, acts.empty_handed("Close the handoff"))
    yield Shot("handoff", "closing", handoff("settled"), house.noor, held("**/close/", acts.closed))


def _record(story: Story) -> Iterator[Shot]:
    """The design's own page, the history, and checks of the record."""
    house, runs = story.house, story.runs
    at = _addresses(house)
    yield Shot("design", "full", at("design"), house.noor)
    yield Shot("history", "full", at("history"), house.iris)
    yield Shot("history", "onlooker", at("history"), house.dora)
    yield Shot("history", "none", at("history") + "?since=2030-01-01", house.dora)
    yield Shot("history", "error", at("history") + "?since=x", house.dora)
    yield Shot("entry", "full", _approved(house, runs["completed"]), house.iris)
    yield Shot("entry", "onlooker", _approved(house, runs["completed"]), house.dora)
    yield Shot("entry", "first", at("entry", runs["completed"], 1), house.dora)
    verify = held("**/verify/", acts.pressed("Verify"))
    yield Shot("history", "verifying", at("history"), house.dora, verify)
    check = verifications.ask(house.caller, runs["completed"])
    verifications.advance(check)
    yield Shot("verification", "intact", at("verification", check), house.dora)
    check = verifications.ask(house.caller)
    verifications.advance(check, 0.0)
    yield Shot("verification", "under-way", at("verification", check), house.dora)
    yield Shot("not-found", "framed", at("run", UUID(int=1)), house.noor)


def plain() -> Iterator[Shot]:
    """Pages outside a tenant, and those that only a fault shows."""
    yield Shot("sign-in", "empty", reverse("sign_in"), None)
    yield Shot("sign-in", "error", reverse("sign_in"), None, acts.signed_in_as("mara@harbour.example"))
    yield Shot("sign-in", "hostile", reverse("sign_in"), None, acts.signed_in_as(acts.HOSTILE_NAME))
    yield Shot("not-found", "plain", "/nothing-here/", None)
    yield Shot("reference", "calls", "/api/v1/docs", None)
    yield Shot("reference", "conventions", "/api/v1/docs/conventions", None)
    for name in ("401", "403", "403_csrf", "409", "410", "412", "422", "428", "500", "no_tenant", "hostile"):
        yield Shot("fault", name, f"/fault/{name}/", None)


def empty(house: House) -> Iterator[Shot]:
    """A new tenant, in which nothing has happened."""
    at = _addresses(house)
    for page in ("inbox", "runs", "reconcile", "handoffs"):
        yield Shot(page, "empty", at(page), house.ivo if page == "inbox" else house.noor)


def hostile(story: Story) -> Iterator[Shot]:
    """The worst text that outsiders can send, on every page that shows some."""
    house, runs = story.house, story.runs
    at = _addresses(house)
    yield Shot("inbox", "hostile", at("inbox"), house.mara)
    yield Shot("card", "hostile", at("approval", house.request(runs["pending"]).pk), house.ivo)
    yield Shot("card", "hostile-decided", at("approval", house.request(runs["blocked"]).pk), house.ivo)
    for page in ("runs", "reconcile", "handoffs"):
        yield Shot(page, "hostile", at(page), house.noor)
    yield Shot("run", "hostile", at("run", runs["blocked"]), house.noor)
    yield Shot("effect", "hostile", at("effect", house.effect(runs["blocked"]).pk), house.noor)
    yield Shot("handoff", "hostile", at("handoff", house.handoff(runs["blocked"]).pk), house.noor)
    yield Shot("history", "hostile", at("history"), house.dora)
    yield Shot("entry", "hostile", _approved(house, runs["blocked"]), house.dora)


def _approved(house: House, run_id: UUID) -> str:
    """The address of the entry by which a run's call was approved first."""
    rows = JournalEntry.objects.of(house.tenant).filter(stream_id=run_id, verb="request.approve").order_by("seq")
    return reverse("entry", args=[house.slug, run_id, rows.values_list("seq", flat=True)[0]])


def _addresses(house: House) -> Callable[..., str]:
    def address(name: str, *args: Any) -> str:
        return reverse(name, args=[house.slug, *args])

    return address
