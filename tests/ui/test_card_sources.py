"""Every line of a card comes from a row, leads to it, and changes with it; and a card tells what else was asked in the last day."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db.models import Model

from approvals.models import ApprovalRequest, Revision
from approvals.services import lately
from ledger.domain.identity import Verb
from ledger.models import (
    Agent,
    ApiKey,
    Body,
    Effect,
    Observation,
    Run,
    RunHead,
    Target,
    User,
    WaitSet,
    WorkflowType,
    triggers,
)
from ledger.services import identity
from tests.clock import Clock
from tests.tamper import triggers_off
from tests.ui.asking import address, ask, client_of, decide, person_with
from tests.world import RULES, World

ORDER = {"customer": "Ines Morel", "amount_minor": 4200, "currency": "EUR"}
OTHER = b'{"amount_minor":9900,"currency":"EUR","order":"17","reason":"broken"}'
Change = Callable[[World, ApprovalRequest], object]


def page(world: World, request: ApprovalRequest, person: User | None = None) -> str:
    answer = client_of(person or world.alice).get(address(world, request))
    assert answer.status_code == 200
    text: str = answer.content.decode()
    return text[text.index("<h1") : text.index("</main>")]


def words(text: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", text)))


def section(text: str, title: str) -> str:
    """A card's section by its heading."""
    found = next(part for part in text.split("<section ")[1:] if title in part)
    return words("<" + found[: found.index("</section>")])


def row(model: type[Model], pick: Callable[[ApprovalRequest, Effect], Any], **values: Any) -> Change:
    """Change a row past the journal, as somebody with the database's rights could."""

    def change(world: World, request: ApprovalRequest) -> None:
        effect = Effect.objects.of(world.tenant).select_related("run").get(pk=request.subject_id)
        table = model._meta.db_table
        rows: Any = model._default_manager
        rows = rows if model is User else rows.of(world.tenant)
        with triggers_off(table) if table in triggers.expected() else nullcontext():
            told = {name: value(world) if callable(value) else value for name, value in values.items()}
            assert rows.filter(**pick(request, effect)).update(**told) == 1

    return change


def of_run(request: ApprovalRequest, _: Effect) -> dict[str, Any]:
    return {"pk": request.run_id}


def of_effect(_: ApprovalRequest, effect: Effect) -> dict[str, Any]:
    return {"pk": effect.pk}


def of_request(request: ApprovalRequest, _: Effect) -> dict[str, Any]:
    return {"pk": request.pk}


def of_target(_: ApprovalRequest, effect: Effect) -> dict[str, Any]:
    return {"pk": effect.target_id}


def of_revision(request: ApprovalRequest, _: Effect) -> dict[str, Any]:
    return {"request_id": request.pk}


def of_observation(_: ApprovalRequest, effect: Effect) -> dict[str, Any]:
    return {"pk": effect.observation_id}


def seen_body(_: ApprovalRequest, effect: Effect) -> dict[str, Any]:
    return {"pk": Observation.objects.of(effect.tenant_id).get(pk=effect.observation_id).body_id}


def policy(world: World, request: ApprovalRequest) -> None:
    world.policy(({**RULES[0], "use_by": 60}, *RULES[1:]))


def bob_approves(world: World, request: ApprovalRequest) -> None:
    decide(client_of(world.bob), world, request, "approve", "Looks right.")


def bob_leaves(world: World, request: ApprovalRequest) -> None:
    identity.remove_from_team(world.admin, world.approvers, world.bob)


def asked_elsewhere(world: World, request: ApprovalRequest) -> None:
    ask(world)


FACTS = 'id="asks-title"'
SOURCES: dict[str, tuple[Change, str]] = {
    "agent": (row(Agent, lambda request, effect: {"pk": effect.run.agent_id}, name="clerk"), "clerk"),
    "person it acts for": (row(Run, of_run, on_behalf_of_id=lambda world: world.dora.pk), "Acts for Dora"),
    "credential": (row(ApiKey, lambda request, effect: {"agent_id": effect.run.agent_id}, prefix="zz9"), "key zz9…"),
    "task": (row(Run, of_run, task="refund the blue vase"), "refund the blue vase"),
    "reason": (row(Run, of_run, text="It arrived in pieces."), "It arrived in pieces."),
    "workflow": (
        row(WorkflowType, lambda request, effect: {"pk": request.workflow_id}, name="goodwill"),
        "goodwill, waiting",
    ),
    "version": (row(RunHead, of_run, version="77"), "version 77"),
    "status": (row(RunHead, of_run, status="waking"), "refund, waking"),
    "checkpoint": (row(RunHead, of_run, checkpoint_seq=41), "Last checkpoint 41"),
    "next step": (row(RunHead, of_run, transition="think"), "next “think”"),
    "call": (row(Effect, of_effect, name="give"), "give (payments.refund)"),
    "tool": (row(Effect, of_effect, tool="payments.wire_abroad"), "Call payments.wire_abroad"),
    "state of the call": (row(Effect, of_effect, state="withdrawn"), "(payments.refund) withdrawn"),
    "resource": (row(Effect, of_effect, resource="order/18"), "payments order/18"),
    "target": (row(Target, of_target, name="bank"), "bank order/17"),
    "arguments": (row(Body, lambda request, effect: {"pk": effect.request_id}, content=OTHER), "Refund 99.00 EUR"),
    "version seen": (row(Observation, of_observation, version="v9"), "Version v9."),
    "state seen": (row(Body, seen_body, content=b'{"customer":"Zoe Quux"}'), "Zoe Quux"),
    "policy": (policy, "version 2 is in force now"),
    "requirement": (
        row(
            Revision,
            of_revision,
            requirement={"verdict": "approve", "rules": [{**RULES[0], "quorum": 2}]},
        ),
        "Needs 2 approvals",
    ),
    "time to use it": (row(Revision, of_revision, use_by=1_800), "30 min from the approval"),
    "who may decide": (bob_leaves, "Who can still decide: you."),
    "a vote": (bob_approves, "Approved by Bob"),
    "its reason": (bob_approves, "Looks right."),
    "state of the request": (row(ApprovalRequest, of_request, state="withdrawn"), "Withdrawn"),
    "what silence does": (
        row(WaitSet, lambda request, effect: {"run_id": request.run_id}, on_deadline="fail"),
        "the run fails",
    ),
    "another request": (asked_elsewhere, "1 other request: 1 waiting."),
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_changed_source_changes_the_card(world: World, source: str) -> None:
    change, told = SOURCES[source]
    request = ask(world, order=ORDER)
    before = words(page(world, request))
    assert told not in before
    change(world, request)
    assert told in words(page(world, request)), words(page(world, request))


def test_every_fact_of_the_card_leads_to_a_page_that_opens(world: World) -> None:
    request = ask(world, order=ORDER)
    row(Run, of_run, on_behalf_of_id=lambda own: own.dora.pk)(world, request)
    for verb in (Verb.AUDIT, Verb.SEE):
        identity.grant_permission(world.admin, world.alice, verb, world.tenant)
    text = page(world, request)
    facts = text[text.index(FACTS) : text.index("</dl>", text.index(FACTS))]
    lines = [part.partition("</dt>") for part in facts.split("<dt>")[1:]]
    assert len(lines) >= 9
    client = client_of(world.alice)
    for label, _, line in lines:
        found = re.search(r'href="([^"]+)"', line)
        assert found, f"{label} leads nowhere"
        assert client.get(html.unescape(found[1])).status_code == 200, label


def test_no_line_leads_an_approver_to_a_page_that_refuses_them(world: World) -> None:
    request = ask(world, order=ORDER)
    other = ask(world, order=ORDER)
    decide(client_of(world.bob), world, other, "deny", "no")
    text = page(world, request)
    links = {html.unescape(link) for link in re.findall(r'<a [^>]*href="(/[^"]+)"', text)}
    assert len(links) >= 6
    client = client_of(world.alice)
    assert {link: client.get(link).status_code for link in links} == dict.fromkeys(links, 200)


def test_what_was_asked_in_the_last_day_is_counted_by_what_became_of_it(world: World) -> None:
    request = ask(world, order=ORDER)
    assert "Nothing else was asked." in section(page(world, request), "Asked in the last 24 hours")
    for choice in ("approve", "deny"):
        decide(client_of(world.bob), world, ask(world), choice, "so be it")
    ask(world)
    told = section(page(world, request), "Asked in the last 24 hours")
    assert "3 other requests: 1 waiting, 1 approved, 1 denied." in told
    assert told.count("Refund 42.00 EUR to the customer of order 17 at payments") == 3


def test_what_is_older_than_a_day_or_asked_by_others_for_others_is_not_counted(world: World, clock: Clock) -> None:
    ask(world, hours=60)
    clock.shift(25 * 3_600)
    request, foreign = ask(world), ask(world)
    row(Run, of_run, agent_id=uuid4())(world, foreign)
    clock.shift(0)  # Changing a row by hand puts the database's functions back as they are, the clock among them.
    assert "Nothing else was asked." in section(page(world, request), "Asked in the last 24 hours")


def test_another_agents_requests_for_the_same_person_count_and_say_so(world: World) -> None:
    request, other = ask(world), ask(world)
    for own in (request, other):
        row(Run, of_run, on_behalf_of_id=lambda of: of.dora.pk)(world, own)
    row(Run, of_run, agent_id=uuid4())(world, other)
    told = section(page(world, request), "Asked in the last 24 hours")
    assert "1 other request: 1 waiting." in told and "by another agent for Dora" in told


def test_who_may_not_see_contents_is_told_the_count_and_no_amounts(world: World) -> None:
    request = ask(world)
    ask(world)
    told = section(page(world, request, person_with(world, Verb.SEE)), "Asked in the last 24 hours")
    assert "1 other request: 1 waiting." in told and "42.00" not in told


def test_requests_of_workflows_that_the_reader_does_not_see_are_not_counted(world: World) -> None:
    request, other = ask(world), ask(world)
    secret = WorkflowType.objects.of(world.tenant).create(
        tenant=world.tenant, name="secret", id=uuid4(), created_at=request.opened_at
    )
    row(ApprovalRequest, of_request, workflow_id=secret.pk)(world, other)
    assert "Nothing else was asked." in section(page(world, request), "Asked in the last 24 hours")


def test_a_day_with_more_requests_than_are_looked_through_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lately, "LOOKED_THROUGH", 2)
    request = ask(world)
    ask(world)
    assert "looked through" not in section(page(world, request), "Asked in the last 24 hours")
    ask(world)
    assert "looked through" in section(page(world, request), "Asked in the last 24 hours")
    assert timedelta(hours=24) == lately.DAY
