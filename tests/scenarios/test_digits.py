"""Numbers with more digits than a double has: identical as text wherever they pass, refused as numbers wherever they enter."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from django.urls import reverse

from approvals.models import ApprovalRequest
from ledger.engine import wakes
from ledger.models import JournalEntry
from ledger.services import verify
from tests.api.conftest import Http, commit_body, entries, proposal, refused, start_body
from tests.clock import Clock
from tests.documents import STATE
from tests.ui.asking import address, client_of, receipt_of
from tests.ui.scenes import lost
from tests.world import World

DIGITS = "1234567890123456789"
REFERENCE = "9876543210987654321"


def test_nineteen_digits_are_the_same_in_call_page_form_export_and_after_a_crash(world: World, clock: Clock) -> None:
    arguments = json.dumps({"amount_minor": 4200, "currency": "EUR", "order": DIGITS}, separators=(",", ":")).encode()
    effect = lost(world, clock, arguments=arguments, state={**STATE, "order": DIGITS})
    http, charlie = Http(world.secret), client_of(world.charlie)
    request = ApprovalRequest.objects.of(world.tenant).get(run_id=effect.run_id)
    assert DIGITS in client_of(world.alice).get(address(world, request)).content.decode()
    page = charlie.get(reverse("effect", args=[world.tenant.slug, effect.pk])).content.decode()
    assert DIGITS in page
    typed = {"verdict": "committed", "evidence": f"line {DIGITS}", "reference": REFERENCE}
    typed |= receipt_of(page)
    assert charlie.post(reverse("effect_verdict", args=[world.tenant.slug, effect.pk]), typed).status_code == 302
    page = charlie.get(reverse("effect", args=[world.tenant.slug, effect.pk])).content.decode()
    assert REFERENCE in page and f"line {DIGITS}" in page
    read = http.get(f"/effects/{effect.pk}").json()
    assert (read["reference"], read["request"]["order"]) == (REFERENCE, DIGITS)
    wakes.run(effect.run_id)
    packet = http.claim("1", "2")
    assert packet["run"]["id"] == str(effect.run_id)
    assert json.loads(packet["checkpoint"]["state"]["json"])["order"] == DIGITS
    assert packet["effects"]["pay"]["reference"] == REFERENCE
    lines = [
        json.loads(line) for line in b"".join(http.get(f"/runs/{effect.run_id}/export").streaming_content).splitlines()
    ]
    kept = JournalEntry.objects.of(world.tenant).filter(stream_id=effect.run_id).order_by("seq")
    assert [line["content"].encode() for line in lines] == [bytes(row.content) for row in kept]
    assert verify.run(effect.run_id).intact
    markdown = http.get(f"/runs/{effect.run_id}/resume-packet.md").content.decode()
    assert REFERENCE in markdown


def test_nineteen_digits_as_a_number_are_refused_at_every_entry_and_nothing_is_kept(world: World) -> None:
    http = Http(world.secret)
    run_id = http.start()
    packet = http.claim()
    before = entries(world)
    number = int(DIGITS)
    fenced = {"fence": packet["fence"], "expect_seq": 1}
    bodies: dict[str, Any] = {
        "/runs": start_body(state={**STATE, "amount_minor": number}),
        f"/runs/{run_id}/checkpoints": commit_body(packet, state={**STATE, "amount_minor": number}),
        f"/runs/{run_id}/effects": {**fenced, **proposal(request={"order": number})},
        "/events": {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": {"order": number}},
    }
    for path, body in bodies.items():
        media = "application/cloudevents+json" if path == "/events" else "application/json"
        document = refused(http.send("POST", path, body, key=str(uuid4()), media=media), 400, "number-out-of-range")
        assert "string" in document["remedy"], path
    put = http.send(
        "PUT", "/workflows/refund/versions/7", {"state_schema": {"maximum": number}, "initial": "a", "transitions": {}}
    )
    refused(put, 400, "number-out-of-range")
    assert entries(world) == before
