"""What the history says of each entry: what was done to which thing and for whom to read, an address to cite it by, and all of it as a file."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from structlog.testing import capture_logs

from approvals.models import ApprovalRequest
from approvals.services import history_pages
from approvals.services.entry_lines import Line
from approvals.services.history_pages import Filter
from ledger.domain.effects import EffectState, LookAnswer, Settled, SettleSpec
from ledger.domain.identity import Verb
from ledger.models import JournalEntry, User
from ledger.services import effects, identity
from tests.clock import Clock
from tests.tamper import run_sql, triggers_off
from tests.ui.asking import address, ask, client_of, decide, person_with
from tests.ui.scenes import answered, called, lost
from tests.world import World

HEADLINE = "Refund 42.00 EUR to the customer of order 17 at payments"
PLAIN = "Call payments.refund on order/17 at payments"


def lines(world: World, reader: User, **asked: str) -> dict[str, Line]:
    """What a reader finds, by verb; the newest of each."""
    found = history_pages.history(reader, world.tenant, Filter(**asked)).lines
    return {line.verb: line for line in reversed(found)}


def auditor(world: World) -> User:
    """Who audits the tenant and may see the contents of its refunds."""
    identity.grant_permission(world.admin, world.dora, Verb.SEE_PAYLOADS, world.workflow)
    return world.dora


def test_an_entry_s_page_and_the_export_s_limit_are_told_as_parts_of_the_history(world: World) -> None:
    auditor = client_of(person_with(world, Verb.SEE, Verb.AUDIT))
    run_id = world.start_run()
    page = auditor.get(reverse("entry", args=[world.tenant.slug, run_id, 1])).content.decode()
    (here,) = re.findall(r'<a href="([^"]*)" aria-current="page"', page)
    assert here == reverse("history", args=[world.tenant.slug])
    assert "at most 20,000 entries" in auditor.get(here).content.decode()


def test_an_approval_and_a_settle_name_what_they_are_about_and_lead_there(world: World) -> None:
    packet, effect = called(world)
    effects.settle(world.caller, effect.pk, SettleSpec(1, Settled.COMMITTED, reference="re_5512"), packet.fence)
    request = ApprovalRequest.objects.of(world.tenant).get(run_id=effect.run_id)
    found = lines(world, auditor(world))
    approved, settled = found["request.approve"], found["effect.settle"]
    assert approved.what == settled.what == found["effect.permit"].what == HEADLINE
    assert approved.item.href == address(world, request)
    assert settled.item.href == reverse("effect", args=[world.tenant.slug, effect.pk])
    assert "reference re_5512" in settled.item.text
    assert found["checkpoint.commit"].what == found["run.claim"].what == ""
    assert found["checkpoint.commit"].item.href == found["run.claim"].href + "#checkpoints"


def test_a_verdict_names_the_reference_that_it_rests_on(world: World, clock: Clock) -> None:
    effect = lost(world, clock)
    answered(effect, LookAnswer.APPLIED, clock.now(), reference="re_9")
    assert "reference re_9" in lines(world, world.dora)["effect.look"].item.text
    assert EffectState(world.effect(effect.run_id).state) is EffectState.COMMITTED


def test_who_lacks_the_right_to_payloads_reads_tool_and_target_and_nothing_of_the_arguments(world: World) -> None:
    called(world)
    found = lines(world, world.dora)
    assert found["request.approve"].what == found["effect.permit"].what == PLAIN
    page = client_of(world.dora).get(reverse("history", args=[world.tenant.slug])).content.decode()
    assert "42.00 EUR" not in page and "Not rated" not in page


def test_the_right_to_the_contents_of_one_workflow_shows_nothing_of_another(world: World) -> None:
    other = World()
    called(world)
    called(other)
    identity.join(other.admin, world.dora)
    identity.grant_permission(other.admin, world.dora, Verb.AUDIT, other.tenant)
    identity.grant_permission(other.admin, world.dora, Verb.SEE, other.tenant)
    auditor(world)
    assert lines(world, world.dora)["request.approve"].what == HEADLINE
    assert lines(other, world.dora)["request.approve"].what == PLAIN


def test_who_may_audit_and_not_see_a_run_gets_no_address_that_would_not_open(world: World) -> None:
    called(world)
    person = person_with(world, Verb.AUDIT)
    found = history_pages.history(person, world.tenant, Filter()).lines
    assert found and not any(line.href or line.item.href for line in found)
    assert all(client_of(person).get(line.entry).status_code == 200 for line in found[:1])


def test_a_vote_that_others_must_join_and_leave_that_is_taken_back_name_their_call_too(world: World) -> None:
    world.policy(({"tool": "payments.*", "verdict": "approve", "group": "approvers", "quorum": 2},))
    request = ask(world)
    decide(client_of(world.alice), world, request, "approve")
    first = lines(world, auditor(world))["request.approve"]
    assert (first.item.title, first.what, first.item.href) == ("“pay” approved", HEADLINE, address(world, request))
    assert first.item.text == "more approvals are needed"
    decide(client_of(world.bob), world, request, "approve")
    assert client_of(world.alice).post(address(world, request, "approval_revoke")).status_code == 302
    taken = lines(world, world.dora)["grant.revoke"]
    assert (taken.item.title, taken.what) == ("Approval of “pay” revoked", HEADLINE)
    assert taken.item.href == address(world, request)


@pytest.mark.parametrize("rest", ["alone", "with others"])
def test_the_same_act_is_told_in_the_same_words_whatever_else_its_wait_is_for(world: World, rest: str) -> None:
    request = ask(world)
    if rest == "with others":
        run_sql("UPDATE ledger_wait_set SET mode = 'any' WHERE run_id = %s", key(world, request.run_id))
    decide(client_of(world.alice), world, request, "approve")
    line = lines(world, world.dora)["request.approve"]
    assert (line.item.title, line.item.text) == ("“pay” approved", "for one call · its checks come next")


def key(world: World, row: Any) -> Any:
    return row if connection.vendor == "postgresql" else row.hex


def test_an_entry_has_an_address_that_shows_its_bytes_and_recomputes_its_digest(world: World) -> None:
    run_id = world.start_run()
    world.claim("1")
    rows = list(JournalEntry.objects.of(world.tenant).filter(stream_id=run_id).order_by("seq"))
    dora = client_of(world.dora)
    here = [reverse("entry", args=[world.tenant.slug, run_id, row.seq]) for row in rows]
    first, second = (dora.get(each).content.decode() for each in here[:2])
    assert bytes(rows[0].digest).hex() in first and "none: it is the first" in first and "Hashes to its digest" in first
    assert bytes(rows[1].digest).hex() in second and bytes(rows[0].digest).hex() in second
    assert f'href="{here[1]}" rel="next"' in first and f'href="{here[0]}" rel="prev"' in second
    assert f'href="{here[1]}"' in dora.get(reverse("history", args=[world.tenant.slug])).content.decode()


def test_an_entry_that_was_altered_says_that_it_does_not_hash_to_its_digest(world: World) -> None:
    run_id = world.start_run()
    row = JournalEntry.objects.of(world.tenant).get(stream_id=run_id)
    content = bytes(row.content).replace(b'"run.start"', b'"run.stort"')
    with triggers_off("ledger_journal_entry"):
        JournalEntry.objects.of(world.tenant).filter(pk=row.pk).update(content=content)
    page = client_of(world.dora).get(reverse("entry", args=[world.tenant.slug, run_id, 1])).content.decode()
    assert "Doesn’t hash to its digest" in page


@pytest.mark.parametrize("seq", [0, 7, 2**62, 2**63, 10**30])
def test_an_entry_that_is_not_there_is_not_found(world: World, seq: int) -> None:
    run_id = world.start_run()
    assert client_of(world.dora).get(reverse("entry", args=[world.tenant.slug, run_id, seq])).status_code == 404


@pytest.mark.parametrize("name", ["entry", "history_export"])
def test_who_may_not_audit_reads_no_entry_and_exports_nothing(world: World, name: str) -> None:
    run_id = world.start_run()
    here = reverse(name, args=[world.tenant.slug, *([run_id, 1] if name == "entry" else [])])
    assert client_of(world.alice).get(here).status_code == (404 if name == "entry" else 403)
    assert client_of(World().dora).get(here).status_code == 404
    assert client_of(world.dora).post(here).status_code == 405


def test_an_entry_of_another_workflow_is_not_found_by_who_audits_one(world: World) -> None:
    person = person_with(world, Verb.AUDIT)
    assert client_of(person).get(reverse("entry", args=[world.tenant.slug, world.tenant.pk, 1])).status_code == 404


def exported(client: Client, world: World, **query: str) -> list[dict[str, Any]]:
    answer = client.get(reverse("history_export", args=[world.tenant.slug]), query)
    assert answer.status_code == 200 and answer["Content-Type"] == "application/jsonl"
    assert "attachment" in answer["Content-Disposition"]
    return [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]


def test_an_export_holds_what_the_search_finds_and_enough_to_recompute_each_chain(world: World) -> None:
    _, effect = called(world)
    found = exported(client_of(auditor(world)), world, run=str(effect.run_id))
    told, end = found[:-1], found[-1]
    rows = JournalEntry.objects.of(world.tenant).filter(stream_id=effect.run_id)
    assert end == {"end": True, "entries": rows.count(), "older_left_out": False}
    digest = bytes(32)
    for line in reversed(told):
        digest = hashlib.sha256(digest + line["content"].encode()).digest()
        assert line["digest"] == digest.hex() and line["stream"] == f"run:{effect.run_id}"
    approved = next(line for line in told if line["verb"] == "request.approve")
    assert (approved["call"], approved["who"]) == (HEADLINE, world.alice.name)


def test_an_export_tells_who_lacks_the_right_to_payloads_nothing_of_them(world: World) -> None:
    called(world)
    text = json.dumps(exported(client_of(world.dora), world))
    assert PLAIN in text and "42.00 EUR" not in text and "amount_minor" not in text


def test_an_export_goes_on_beyond_a_step_and_says_when_it_left_older_entries_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    called(world)
    total = JournalEntry.objects.of(world.tenant).count()
    monkeypatch.setattr(history_pages, "STEP", 3)
    whole = exported(client_of(world.dora), world)
    assert len({(line["stream"], line["seq"]) for line in whole[:-1]}) == total
    assert whole[-1] == {"end": True, "entries": total, "older_left_out": False}
    monkeypatch.setattr(history_pages, "MOST_EXPORTED", 5)
    cut = exported(client_of(world.dora), world)
    assert cut[:-1] == whole[:5] and cut[-1] == {"end": True, "entries": 5, "older_left_out": True}


def test_an_export_is_reached_from_the_page_with_its_search_and_refuses_what_the_page_refuses(world: World) -> None:
    called(world)
    dora = client_of(world.dora)
    page = dora.get(reverse("history", args=[world.tenant.slug]), {"verb": "run.start"}).content.decode()
    link = re.search(r'href="([^"]*/history/export/[^"]*)" download', page)
    assert link and link[1].endswith("?verb=run.start")
    assert dora.get(reverse("history_export", args=[world.tenant.slug]), {"since": "yesterday"}).status_code == 422


def test_an_export_is_noted_in_the_log_without_what_it_held(world: World) -> None:
    called(world)
    with capture_logs() as said:
        count = len(exported(client_of(world.dora), world)) - 1
    noted = {"event": "history_exported", "tenant": world.tenant.slug, "person": str(world.dora.pk), "entries": count}
    assert said == [{**noted, "whole": True, "log_level": "info"}]


def test_a_right_is_told_with_whose_it_is_and_where(world: World) -> None:
    identity.grant_permission(world.admin, world.charlie, Verb.APPROVE, world.workflow)
    identity.withdraw_permission(world.admin, world.dora, Verb.AUDIT, world.tenant)
    identity.grant_permission(world.admin, world.approvers, Verb.OPERATE, world.tenant)
    identity.grant_permission(world.admin, world.dora, Verb.AUDIT, world.tenant)
    found = history_pages.history(world.dora, world.tenant, Filter(verb="permission.grant")).lines
    assert [line.what for line in found[:3]] == [
        f"audit: {world.dora.name}, the whole tenant",
        "operate: a team, the whole tenant",
        f"approve: {world.charlie.name}, one workflow",
    ]
    assert lines(world, world.dora)["permission.withdraw"].what == f"audit: {world.dora.name}, the whole tenant"


def test_the_history_tells_seconds(world: World) -> None:
    run_id = world.start_run()
    at = JournalEntry.objects.of(world.tenant).get(stream_id=run_id).at
    page = (
        client_of(world.dora).get(reverse("history", args=[world.tenant.slug]), {"run": str(run_id)}).content.decode()
    )
    assert f"{at:%-d %b %Y, %H:%M:%S} UTC" in page
