"""Requests that are over stay where they were: each opens, is found in the history and by the API, and stands in its run's export."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.urls import reverse

from approvals.models import ApprovalRequest
from approvals.services import requests
from ledger.services import events
from tests.api.conftest import Http
from tests.clock import Clock
from tests.engine.test_meetings import meeting_an_event
from tests.ui.asking import address, ask, client_of, decide
from tests.world import World

ENDS = {
    "approved": "request.approve",
    "denied": "request.deny",
    "expired": "request.expire",
    "withdrawn": "event.deliver",
}


def ended(world: World, clock: Clock, state: str) -> Any:
    """A request that came to this end, seen ten days later."""
    if state == "withdrawn":
        run_id, *met = meeting_an_event(world, or_approval=True)
        request = ApprovalRequest.objects.of(world.tenant).get(run_id=run_id)
        assert events.deliver(run_id, *met)
    else:
        request = ask(world, hours=1)
    if state in ("approved", "denied"):
        choice = {"approved": "approve", "denied": "deny"}[state]
        decide(client_of(world.alice), world, request, choice, "because")
    elif state == "expired":
        clock.shift(3_601)
        requests.expire_due(10_000)
    request.refresh_from_db()
    assert request.state == state
    clock.shift(10 * 86_400)
    return request


@pytest.mark.parametrize("state", ENDS)
def test_a_request_that_is_over_opens_is_found_and_is_exported(world: World, clock: Clock, state: str) -> None:
    request = ended(world, clock, state)
    http, dora = Http(world.secret), client_of(world.dora)
    card = client_of(world.alice).get(address(world, request))
    assert card.status_code == 200 and 'name="decision"' not in card.content.decode()
    read = http.get(f"/approvals/{request.pk}").json()
    assert (read["state"], read["run"]) == (state, str(request.run_id))
    query = {"run": str(request.run_id), "verb": ENDS[state]}
    found = dora.get(reverse("history", args=[world.tenant.slug]), query).content.decode()
    assert found.count("<tr data-row>") == 1
    lines = b"".join(http.get(f"/runs/{request.run_id}/export").streaming_content).splitlines()
    moved = [
        change["fields"]
        for line in lines
        for change in json.loads(json.loads(line)["content"])["changes"]
        if change["object"] == f"approval_request:{request.pk}" and json.dumps(change).count(f'"{state}"')
    ]
    assert len(moved) == 1, "the export says what became of it"
