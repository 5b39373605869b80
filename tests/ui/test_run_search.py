"""Runs are found by health, owner, attributes and words, on the page and over the API alike; what can't be a filter is refused with what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from uuid import UUID, uuid4

import pytest
from django.urls import reverse

from approvals.services import run_lists
from approvals.services.run_lists import Filter
from ledger.domain.errors import LedgerError
from ledger.domain.health import Health
from ledger.domain.starts import StartSpec
from ledger.models import Effect
from ledger.services import identity, reads, runs, search
from ledger.services.reads import RunFilter
from tests.api.conftest import Http
from tests.clock import Clock
from tests.ui.asking import ask, client_of, decide
from tests.ui.scenes import handed_over, lost, named
from tests.world import World


def listed(world: World, **asked: str) -> set[UUID]:
    return {row.id for row in run_lists.runs(world.charlie, world.tenant, Filter.read(asked)).rows}


def answered(world: World, **asked: object) -> set[UUID]:
    return {run.pk for run in reads.runs(world.caller, RunFilter(**asked), "", 200).items}  # type: ignore[arg-type]


def start(world: World, attributes: Mapping[str, object]) -> UUID:
    state = {"order": "1", "amount_minor": 1, "currency": "EUR"}
    return runs.start(world.caller, StartSpec("refund", "1", "a task", state, dict(attributes), "", named())).run_id


@pytest.mark.parametrize(
    ("field", "typed", "remedy"),
    [
        ("status", "nonsense", "Choose one of running, "),
        ("health", "poorly", "Choose one of unverified, blocked, "),
        ("attribute", "order", "Write it as name:value"),
        ("attribute", ":17", "Write it as name:value"),
    ],
)
def test_a_filter_that_is_none_is_refused_at_its_field_and_the_others_stay(
    world: World, field: str, typed: str, remedy: str
) -> None:
    query = {"q": "vase", "owner": "somebody", field: typed}
    answer = client_of(world.charlie).get(reverse("runs", args=[world.tenant.slug]), query)
    page = answer.content.decode()
    assert answer.status_code == 422 and "something is missing" not in page
    (control,) = re.findall(rf'<(?:input|select)[^>]*name="{field}"[^>]*>', page)
    assert 'aria-invalid="true"' in control and f'aria-describedby="f-{field}-error"' in control
    assert remedy in page.split(f'id="f-{field}-error"')[1].split("</p>")[0]
    assert 'value="vase"' in page and 'value="somebody"' in page
    assert "No run matches" not in page and "No runs yet" not in page, "nothing was looked for"
    if field == "attribute":
        assert f'value="{typed}"' in page


@pytest.mark.parametrize("query", ["health=poorly", "attribute=order", "status=nonsense", "attributes=order:17"])
def test_the_api_refuses_it_too(world: World, query: str) -> None:
    answer = Http(world.secret).get(f"/runs?{query}")
    assert answer.status_code in {400, 422} and answer.json()["remedy"]


def test_every_health_is_found_and_nothing_else(world: World, clock: Clock) -> None:
    handed_over(world, clock)
    lost(world, clock)
    disputed = lost(world, clock)
    with_dispute = Effect.objects.of(world.tenant).filter(pk=disputed.pk)
    with_dispute.update(disputed=True)
    ask(world, hours=1)
    world.claimed_run()
    ask(world, hours=100)
    world.start_run()
    for person in (world.alice, world.bob):
        identity.remove_from_team(world.admin, world.approvers, person)
    clock.shift(7_200)
    every = run_lists.runs(world.charlie, world.tenant, Filter()).rows
    of = {kind: {row.id for row in every if row.health == kind} for kind in Health}
    assert {kind for kind, found in of.items() if found} >= {
        Health.BLOCKED,
        Health.DISPUTED,
        Health.UNKNOWN,
        Health.OVERDUE,
        Health.LEASE,
        Health.UNCLAIMED,
        Health.NO_APPROVERS,
    }
    for kind in Health:
        assert listed(world, health=kind) == of[kind] == answered(world, health=str(kind)), kind


def test_a_wake_that_nobody_makes_is_found(world: World, clock: Clock) -> None:
    effect = lost(world, clock)
    Effect.objects.of(world.tenant).filter(pk=effect.pk).update(state="failed", cause="rejected")
    assert listed(world, health="unchecked") == set()
    clock.shift(90)
    assert listed(world, health="unchecked") == {effect.run_id} == answered(world, health="unchecked")


def test_an_owner_is_the_worker_that_holds_it_or_the_person_who_took_it(world: World, clock: Clock) -> None:
    handoff = handed_over(world, clock)
    assert listed(world, owner="Charlie") == set()
    client_of(world.charlie).post(reverse("handoff_own", args=[world.tenant.slug, handoff.pk]))
    worker = uuid4()
    world.start_run()
    held = world.claim(worker=worker).run.id
    assert listed(world, owner="charlie") == {handoff.run_id} == listed(world, owner=world.charlie.email)
    assert listed(world, owner="worker") == {held} == listed(world, owner=str(worker))
    assert answered(world, owner="worker") == {held}
    assert answered(world, owner=str(world.charlie.pk)) == {handoff.run_id}
    assert answered(world, owner="Charlie") == set() == listed(world, owner="nobody")


def test_an_owner_is_found_by_part_of_a_name(world: World, clock: Clock) -> None:
    handoff = handed_over(world, clock)
    client_of(world.charlie).post(reverse("handoff_own", args=[world.tenant.slug, handoff.pk]))
    world.start_run()
    held = world.claim().run.id
    assert listed(world, owner="harl") == {handoff.run_id}
    assert listed(world, owner="orke") == {held} and answered(world, owner="orke") == set()
    assert listed(world, owner="%") == listed(world, owner="_") == set()


def test_a_person_is_found_by_whatever_they_did_in_a_run(world: World, clock: Clock) -> None:
    request = ask(world)
    decide(client_of(world.bob), world, request, "deny", "No.")
    handoff = handed_over(world, clock)
    assert listed(world, q="Charlie") == set()
    client_of(world.charlie).post(reverse("handoff_own", args=[world.tenant.slug, handoff.pk]))
    assert listed(world, q="Charlie") == {handoff.run_id} == listed(world, q="harl")
    assert listed(world, q="Bob") == {request.run_id}


def test_a_worker_is_found_by_part_of_its_name_while_it_holds_a_run(world: World) -> None:
    world.start_run()
    held = world.claim().run.id
    world.start_run()
    assert listed(world, q="worke") == {held}


def test_an_attribute_is_found_as_text_number_and_truth(world: World) -> None:
    text, number, true = start(world, {"n": "17"}), start(world, {"n": 17, "b": "x"}), start(world, {"n": True})
    for find in (lambda n: listed(world, attribute=n), lambda n: answered(world, attributes=(n,))):
        assert find("n:17") == {text, number}
        assert find("n:true") == {true}
        assert find("n:1") == find("m:17") == find("n:") == set()
        assert find("b:x") == {number}
    assert answered(world, attributes=("n:17", "b:x")) == {number}
    assert {row["id"] for row in Http(world.secret).get("/runs?attribute=n:17&attribute=b:x").json()["runs"]} == {
        str(number)
    }


@pytest.mark.parametrize("name", ["with'quote", 'with"double', "a.b", "ключ", "a__b"])
def test_an_attributes_name_may_be_anything(world: World, name: str) -> None:
    run_id = start(world, {name: "x"})
    assert listed(world, attribute=f"{name}:x") == {run_id}


def test_whole_values_are_found_among_all_and_parts_of_words_among_the_newest(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = ask(world)
    monkeypatch.setattr(search, "LOOKED_THROUGH", 1)
    newest = start(world, {})
    effect = Effect.objects.of(world.tenant).get(run_id=request.run_id)
    old = UUID(str(request.run_id))
    assert listed(world, q="A TASK") == {newest}
    assert listed(world, q="order 17") == set()
    assert listed(world, q="refund order 17") == {old}
    assert listed(world, q="order/17") == {old} == listed(world, q=effect.key)
    assert listed(world, q=old.hex[-8:]) == {old} == listed(world, q=str(old).upper()) == listed(world, q=old.hex[-12:])
    page = client_of(world.charlie).get(reverse("runs", args=[world.tenant.slug]), {"q": "a task"}).content.decode()
    assert "Parts of words are looked for in the" in page


def test_words_are_taken_literally(world: World) -> None:
    start(world, {})
    for text in ("%", "_", "\\", "'", "a%k", "a_task"):
        assert listed(world, q=text) == set(), text


def test_a_filter_is_kept_on_the_next_page(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lists, "SHOWN", 1)
    for _ in range(2):
        start(world, {"n": "17"})
    address = reverse("runs", args=[world.tenant.slug])
    page = client_of(world.charlie).get(address, {"attribute": "n:17", "q": "task"}).content.decode()
    assert "attribute=n%3A17&amp;q=task&amp;before=" in page


def test_searching_shows_nobody_the_runs_of_workflows_that_they_do_not_see(world: World) -> None:
    run_id = start(world, {"n": "17"})
    nobody = world.person("nobody")
    for asked in ({"attribute": "n:17"}, {"q": str(run_id)}, {"q": "a task"}):
        assert not run_lists.runs(nobody, world.tenant, Filter.read(asked)).rows
    with pytest.raises(LedgerError, match="invalid"):
        Filter.read({"health": "poorly"})
