"""The history's search: each filter by itself and together, in the address, paged without losing an entry, with an index for each."""

from __future__ import annotations

import re
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from uuid import UUID

import pytest
from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from approvals.services import actors, history_pages
from approvals.services.history_pages import Filter
from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import LookAnswer, ProposalSpec
from ledger.domain.identity import Verb
from ledger.models import EntryTarget, JournalEntry
from ledger.services import identity, verifications
from tests.clock import Clock
from tests.conventions import sources
from tests.tamper import run_sql, triggers_off
from tests.ui.asking import client_of
from tests.ui.scenes import answered, called, completed, lost
from tests.world import World


def rows(world: World, **query: str) -> int:
    page = client_of(world.dora).get(reverse("history", args=[world.tenant.slug]), query).content.decode()
    return page.count("<tr data-row>")


def about(world: World, name: str) -> list[str]:
    """The verbs of the entries that a search for a target finds, oldest first."""
    found = history_pages.history(world.dora, world.tenant, Filter(target=name))
    return [line.verb for line in reversed(found.lines)]


def test_a_target_finds_what_was_proposed_called_and_found_out_there_and_its_registration(
    world: World, clock: Clock
) -> None:
    effect = lost(world, clock)
    answered(effect, LookAnswer.CANNOT_TELL, clock.now())
    completed(world)
    assert about(world, "payments") == [
        "target.register",
        "checkpoint.commit",
        "effect.permit",
        "lease.lapse",
        "effect.look",
    ]
    assert about(world, "wires") == ["target.register"]
    assert rows(world, target="payments", verb="run.start") == 0


def test_an_entry_about_two_targets_is_found_by_both(world: World) -> None:
    packet = world.claimed_run()
    propose = (ProposalSpec("a", "notes.add", "notes", "", b"{}"), ProposalSpec("b", "wires.send", "wires", "", b"{}"))
    world.commit(packet, Next(NextKind.GO_ON, "think"), propose=propose)
    for name in ("notes", "wires"):
        assert about(world, name) == ["target.register", "checkpoint.commit"]
    assert about(world, "payments") == ["target.register"]


def test_a_target_is_found_by_its_own_tenant_alone(world: World) -> None:
    other = World()
    called(other)
    assert about(world, "payments") == ["target.register"]
    assert rows(world, target="nowhere") == 0


def test_who_audits_one_workflow_finds_its_entries_about_a_target_and_no_registration(world: World) -> None:
    called(world)
    identity.grant_permission(world.admin, world.charlie, Verb.AUDIT, world.workflow)
    found = history_pages.history(world.charlie, world.tenant, Filter(target="payments"))
    assert [line.verb for line in found.lines] == ["effect.permit", "checkpoint.commit"]


def test_a_target_narrows_together_with_every_other_filter(world: World) -> None:
    _, effect = called(world)
    today = timezone.now().date().isoformat()
    assert rows(world, target="payments", run=str(effect.run_id), since=today, until=today) == 2
    assert rows(world, target="payments", verb="effect.permit", actor=world.caller.actor) == 1
    assert rows(world, target="payments", until="2020-01-01") == rows(world, target="payments", since="2030-01-01") == 0


def test_a_history_is_narrowed_to_a_minute_and_to_a_second(world: World) -> None:
    run_id = world.start_run()
    at, run = JournalEntry.objects.of(world.tenant).get(stream_id=run_id).at, {"run": str(run_id)}
    second, minute, day = (at.strftime(form) for form in ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"))
    for same in (second, minute, day):
        assert rows(world, **run, since=same, until=same) == 1
    for off in (timedelta(minutes=-1), timedelta(minutes=1)):
        other = (at + off).strftime("%Y-%m-%dT%H:%M")
        assert rows(world, **run, since=other, until=other) == 0


@pytest.mark.parametrize("written", ["2026-11-30", "2026-11-30T16:45", "2026-11-30T16:45:07"])
def test_the_times_that_were_asked_for_stand_in_the_fields(world: World, written: str) -> None:
    query = {"since": written, "until": written}
    text = client_of(world.dora).get(reverse("history", args=[world.tenant.slug]), query).content.decode()
    first, last = ("T00:00", "T23:59") if len(written) == 10 else ("", "")
    assert f'name="since" value="{written}{first}"' in text and f'name="until" value="{written}{last}"' in text


@pytest.mark.parametrize(
    "written", ["yesterday", "2026-13-01", "2026-11-30T25:00", "9999-12-31", "2026-11-30T16", "٢٠٢٦-11-30"]
)
def test_what_is_no_time_is_refused_with_what_is(world: World, written: str) -> None:
    answer = client_of(world.dora).get(reverse("history", args=[world.tenant.slug]), {"until": written})
    assert answer.status_code == 422 and "2026-11-30T16:45" in answer.content.decode()


def test_where_nothing_matches_the_page_says_what_a_target_finds(world: World) -> None:
    query = {"target": "wires", "verb": "run.start"}
    page = client_of(world.dora).get(reverse("history", args=[world.tenant.slug]), query).content.decode()
    assert "Nothing matches" in page and "what was proposed, allowed, answered" in page
    assert (
        "what was proposed, allowed, answered"
        not in client_of(world.dora).get(reverse("history", args=[world.tenant.slug])).content.decode()
    )


def test_what_the_writer_notes_of_targets_is_what_the_entries_say_and_can_be_made_anew(
    world: World, clock: Clock
) -> None:
    effect = lost(world, clock)
    answered(effect, LookAnswer.CANNOT_TELL, clock.now())
    noted = set(EntryTarget.objects.of(world.tenant).values_list("target_id", "at", "entry_id"))
    assert len(noted) == 7
    EntryTarget.objects.across_tenants().delete()
    with connection.schema_editor() as editor:
        import_module("ledger.migrations.0016_entry_targets").read_entries(apps, editor)
    assert set(EntryTarget.objects.of(world.tenant).values_list("target_id", "at", "entry_id")) == noted


def standings(world: World, run_id: UUID) -> list[str]:
    found = history_pages.history(world.dora, world.tenant, Filter(run=str(run_id)))
    return [line.standing for line in reversed(found.lines)]


def test_each_entry_says_what_the_newest_check_of_its_chain_found(world: World) -> None:
    packet = world.claimed_run()
    run_id = packet.run.id
    assert standings(world, run_id) == ["unchecked"] * 2
    verifications.advance(verifications.ask(world.caller, run_id))
    world.commit(packet, Next(NextKind.COMPLETE))
    assert standings(world, run_id) == ["intact", "intact", "unchecked"]
    with triggers_off("ledger_journal_entry"):
        key = run_id if connection.vendor == "postgresql" else run_id.hex
        run_sql("UPDATE ledger_journal_entry SET actor = 'person:nobody' WHERE stream_id = %s AND seq = 2", key)
    verifications.advance(verifications.ask(world.caller, run_id))
    assert standings(world, run_id) == ["faulty"] * 3
    page = (
        client_of(world.dora).get(reverse("history", args=[world.tenant.slug]), {"run": str(run_id)}).content.decode()
    )
    assert page.count("Chain doesn’t verify") == 3 and "not verified yet" not in page


def test_filters_stay_in_the_addresses_of_the_pages(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    called(world)
    monkeypatch.setattr(history_pages, "SHOWN", 2)
    client = client_of(world.dora)
    here = reverse("history", args=[world.tenant.slug])
    page = client.get(here, {"target": "payments"}).content.decode()
    following = re.search(r'href="(\?[^"]*)" rel="next"', page)
    assert following and "target=payments" in following[1]
    second = client.get(here + following[1].replace("&amp;", "&")).content.decode()
    assert second.count("<tr data-row>") == 1 and 'href="?target=payments"' in second
    assert "<option selected>payments</option>" in second


def test_every_entry_is_on_exactly_one_page_even_of_one_moment(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    called(world)
    total = JournalEntry.objects.of(world.tenant).count()
    same = "UPDATE ledger_journal_entry SET at = (SELECT max(at) FROM ledger_journal_entry WHERE tenant_id = %s) WHERE tenant_id = %s"
    tenant = world.tenant.pk if connection.vendor == "postgresql" else world.tenant.pk.hex
    with triggers_off("ledger_journal_entry"):
        run_sql(same + " AND kind = 'run'", tenant, tenant)
    monkeypatch.setattr(history_pages, "SHOWN", 3)
    seen: list[tuple[int, str]] = []
    before = ""
    while True:
        found = history_pages.history(world.dora, world.tenant, Filter(before=before))
        seen += [(line.seq, line.digest) for line in found.lines]
        before = found.next
        if not before:
            break
    assert len(seen) == total == len(set(seen))


@pytest.mark.parametrize(
    "before", ["x", "7", "2026-11-30T00:00:00~7", "2026-11-30T00:00:00+00:00~x", "~", "~" + "9" * 30]
)
def test_a_page_that_is_none_is_refused_with_what_to_do(world: World, before: str) -> None:
    answer = client_of(world.dora).get(reverse("history", args=[world.tenant.slug]), {"before": before})
    assert answer.status_code == 422 and "first page" in answer.content.decode()


def test_resumeapp_itself_is_every_system_actor_that_the_source_names(world: World, clock: Clock) -> None:
    named = {
        name
        for path in sources.product_modules()
        if path.parts[0] in {"ledger", "approvals"}
        for name in re.findall(r'"system:(\w+)"', sources.read(Path(path)))
    }
    assert named - {"observer"} == set(actors.SYSTEM), "an observation's source is no actor"
    lost(world, clock)
    assert rows(world, actor="system:", verb="lease.lapse") == 1
    assert rows(world, actor="system:", verb="run.start") == 0


def test_the_history_costs_the_same_at_ten_times_the_data(world: World, clock: Clock) -> None:
    client = client_of(world.dora)
    here = reverse("history", args=[world.tenant.slug])
    queries = ({}, {"target": "payments"}, {"actor": "system:"}, {"verb": "run.start"}, {"since": "2020-01-01"})

    def costs() -> list[int]:
        found = []
        for query in queries:
            with CaptureQueriesContext(connection) as captured:
                assert client.get(here, query).status_code == 200
            found.append(len(captured))
        return found

    lost(world, clock)
    costs()
    few = costs()
    for _ in range(9):
        lost(world, clock)
    assert costs() == few
    assert max(few) <= 26, few


def test_no_search_counts_the_table_or_sorts_it(world: World) -> None:
    # Each filter has an index that brings the newest first.
    completed(world)
    asked = (
        Filter(),
        Filter(actor=world.caller.actor),
        Filter(verb="run.start"),
        Filter(since="2020-01-01", until="2030-01-01"),
        Filter(before="2030-01-01T00:00:00+00:00~9"),
        Filter(target="payments", since="2020-01-01", before="2030-01-01T00:00:00+00:00~9"),
    )
    for each in asked:
        found = history_pages._narrowed(world.tenant, JournalEntry.objects.of(world.tenant), each)
        page = found[:51]
        index = "entry_target" if each.target else "journal_"
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                # Also how old the statistics are must not matter: where an index brings the order, none of these is needed.
                for way in (ways := ("seqscan", "bitmapscan", "sort")):
                    cursor.execute(f"SET enable_{way} = off")
                try:
                    plan = page.explain()
                finally:
                    for way in ways:
                        cursor.execute(f"RESET enable_{way}")
            assert "Sort" not in plan and index in plan, (each, plan)
        else:
            plan = page.explain()
            assert index in plan and "TEMP B-TREE" not in plan, (each, plan)
