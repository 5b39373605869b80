"""Texts are in the journal as commitments under their stream's salt: a forged one is found, an erased one leaves a chain that verifies."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import IntegrityError, connection, transaction

from ledger.domain.canonical import canonical, commit
from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import ProposalSpec
from ledger.domain.errors import LedgerError
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.engine import wakes
from ledger.models import Event, Handoff, JournalEntry, TenantHead
from ledger.models.tables import tables
from ledger.services import effects, events, leases, verify, writer
from ledger.services.drafts import run_draft
from ledger.services.events import EventSpec
from ledger.services.views import run_view
from tests.documents import REQUEST
from tests.services.issuing import PAY, issuing, opened
from tests.tamper import run_sql, triggers_off
from tests.world import World

RESOURCE = "order/17 of Ada Lovelace"
NOTE = ProposalSpec("note", "notes.add", "notes", RESOURCE, REQUEST, tool_digest="v1 by Ada")


def key_of(value: UUID) -> object:
    return value if connection.vendor == "postgresql" else value.hex


@pytest.fixture
def run_id(world: World) -> UUID:
    """A run with an effect on a resource and a wait for an event about somebody."""
    packet = world.claimed_run()
    member = MemberSpec(MemberKind.EVENT, type="order.paid", source="/shop", subject="Ada Lovelace")
    wait = WaitSpec(SetMode.ANY, (member,), timedelta(hours=1), OnDeadline.WAKE)
    world.commit(packet, Next(NextKind.WAIT, "issue", wait), propose=(NOTE,))
    assert verify.run(packet.run.id).intact
    return packet.run.id


@pytest.fixture
def event_id(world: World) -> UUID:
    received = events.receive(world.caller, EventSpec("/bank", "e 1", "order.paid", "Ada Lovelace"))
    assert verify.tenant(world.tenant.pk).intact
    return received.event_id


def codes(run_id: UUID) -> set[str]:
    return {fault.code for fault in verify.run(run_id).faults}


def told(stream_id: UUID, table: str, column: str) -> list[Any]:
    """What a stream's entries say of a column, in order."""
    found = JournalEntry.plain.filter(stream_id=stream_id).order_by("seq").values_list("content", flat=True)
    changes = [change for content in found for change in json.loads(bytes(content))["changes"]]
    fields = [change["fields"] for change in changes if change["object"].startswith(f"{table}:")]
    return [each[column] for each in fields if column in each]


def erase(run_id: UUID) -> None:
    """What an erasure does to a run's texts: the salt goes, and an entry says so."""
    view = run_view(run_id)
    draft = run_draft(view, "system:test", "run.erase")
    draft.head(salt=None, erased_at=draft.at)
    writer.apply(draft.change())


# What is written ------------------------------------------------------------------------------


def test_a_text_is_committed_under_the_salt_of_its_run(world: World, run_id: UUID) -> None:
    salt = bytes(world.head(run_id).salt)
    assert told(run_id, "effect", "resource") == [commit(salt, canonical(RESOURCE)).hex()]
    assert told(run_id, "wait_member", "event_subject") == [commit(salt, canonical("Ada Lovelace")).hex()]


def test_the_same_text_is_another_commitment_in_every_stream(world: World, run_id: UUID, event_id: UUID) -> None:
    other = world.claimed_run()
    world.commit(other, Next(NextKind.GO_ON, "think"), propose=(NOTE,))
    assert told(other.run.id, "effect", "resource") != told(run_id, "effect", "resource")
    assert told(event_id, "event", "subject") != told(run_id, "wait_member", "event_subject")
    assert len({bytes(world.head(each).salt) for each in (run_id, other.run.id)}) == 2


def test_no_salt_stands_in_an_entry(world: World, run_id: UUID, event_id: UUID) -> None:
    heads = (world.head(run_id), TenantHead.objects.of(world.tenant).get(), Event.objects.of(world.tenant).get())
    salts = {bytes(head.salt) for head in heads}
    assert len(salts) == 3 and all(len(salt) == 16 for salt in salts)
    for content in JournalEntry.objects.of(world.tenant).values_list("content", flat=True):
        assert not any(salt.hex().encode() in bytes(content) for salt in salts)


def test_what_is_empty_stays_empty(run_id: UUID) -> None:
    assert told(run_id, "effect", "reference") == [""] and told(run_id, "effect", "call_key") == [None]


# What was forged ------------------------------------------------------------------------------


FORGED = [
    ("ledger_effect", "resource"),
    ("ledger_effect", "reference"),
    ("ledger_effect", "tool_digest"),
    ("ledger_wait_member", "event_subject"),
    ("ledger_wait_member", "event_source"),
    ("ledger_wait_member", "event_type"),
    ("ledger_checkpoint", "code_version"),
]


@pytest.mark.parametrize(("table", "column"), FORGED)
def test_a_forged_text_is_found(run_id: UUID, table: str, column: str) -> None:
    guarded = {each.name for each in tables().values() if each.append_only}
    with triggers_off(table) if table in guarded else nullcontext():
        run_sql(f"UPDATE {table} SET {column} = 'forged' WHERE run_id = %s", key_of(run_id))
    faults = [fault for fault in verify.run(run_id).faults if fault.code == "row-differs"]
    assert faults and all(column in fault.reason for fault in faults)


@pytest.mark.parametrize("column", ["subject", "source", "event_id"])
def test_a_forged_text_of_an_event_is_found(world: World, event_id: UUID, column: str) -> None:
    run_sql(f"UPDATE ledger_event SET {column} = 'forged' WHERE id = %s", key_of(event_id))
    assert {fault.code for fault in verify.tenant(world.tenant.pk).faults} == {"row-differs"}


def test_a_forged_name_of_an_agent_is_found(world: World) -> None:
    run_sql("UPDATE ledger_agent SET name = 'forged' WHERE tenant_id = %s", key_of(world.tenant.pk))
    assert {fault.code for fault in verify.tenant(world.tenant.pk).faults} == {"row-differs"}


def test_another_salt_is_found(run_id: UUID) -> None:
    run_sql("UPDATE ledger_run_head SET salt = %s WHERE run_id = %s", bytes(16), key_of(run_id))
    assert codes(run_id) == {"row-differs", "checkpoint-differs"}


# What was erased ------------------------------------------------------------------------------


def test_a_run_whose_salt_and_texts_were_erased_still_verifies(world: World, run_id: UUID) -> None:
    erase(run_id)
    run_sql("UPDATE ledger_effect SET resource = '', tool_digest = '' WHERE run_id = %s", key_of(run_id))
    with triggers_off("ledger_checkpoint"):
        gone = "idempotency_key = NULL, code_version = ''"
        run_sql(f"UPDATE ledger_checkpoint SET {gone} WHERE run_id = %s", key_of(run_id))
    assert verify.run(run_id).faults == [] and world.head(run_id).salt is None


def test_what_is_no_text_is_compared_of_an_erased_run_too(run_id: UUID) -> None:
    erase(run_id)
    run_sql("UPDATE ledger_effect SET looks = 7 WHERE run_id = %s", key_of(run_id))
    assert codes(run_id) == {"row-differs"}


def test_an_erased_run_goes_on_and_its_new_texts_stand_nowhere_in_the_journal(world: World, run_id: UUID) -> None:
    erase(run_id)
    view = run_view(run_id)
    effect = view.effects[0]
    draft = run_draft(view, "system:test", "test.move")
    draft.move("effect", effect.id, {"state": effect.state}, reference="said later")
    writer.apply(draft.change())
    assert told(run_id, "effect", "reference") == ["", None]
    assert verify.run(run_id).faults == []


def test_nothing_is_called_on_an_erased_run(world: World) -> None:
    packet = issuing(opened(world))

    def proposed(name: str) -> UUID:
        seq = world.head(packet.run.id).checkpoint_seq
        effects.propose(world.caller, packet.run.id, packet.fence, seq, replace(PAY, name=name), None, name)
        return world.effect(packet.run.id, name).pk

    before = proposed("before")
    erase(packet.run.id)
    for effect_id in (before, proposed("after")):
        with pytest.raises(LedgerError) as refused:
            effects.permit(world.caller, effect_id, packet.fence)
        assert refused.value.code == "integrity"


def test_a_checkpoint_of_before_its_run_was_erased_doesn_t_come_out_and_a_person_gets_the_run(world: World) -> None:
    packet = world.claimed_run()
    erase(packet.run.id)
    leases.release(world.caller, packet.run.id, packet.fence)
    assert str(wakes.run(packet.run.id)) == "hand_off"
    handoff = Handoff.objects.of(world.tenant).get(run_id=packet.run.id)
    assert handoff.reason == "integrity:checkpoint_differs"


def test_a_salt_that_is_gone_without_an_entry_is_told(world: World, run_id: UUID, event_id: UUID) -> None:
    gone = "salt = NULL, erased_at = '2026-01-01 00:00:00+00:00'"
    run_sql(f"UPDATE ledger_run_head SET {gone} WHERE run_id = %s", key_of(run_id))
    assert "erasure-unknown" in codes(run_id)
    run_sql(f"UPDATE ledger_event SET {gone} WHERE id = %s", key_of(event_id))
    run_sql(f"UPDATE ledger_tenant_head SET {gone} WHERE tenant_id = %s", key_of(world.tenant.pk))
    faults = [fault.object for fault in verify.tenant(world.tenant.pk).faults if fault.code == "erasure-unknown"]
    assert faults == [f"tenant_head:{world.tenant.pk}", f"event:{event_id}"]


@pytest.mark.parametrize("change", ["salt = NULL", "erased_at = '2026-01-01 00:00:00'"])
def test_a_stream_has_its_salt_until_it_is_erased(run_id: UUID, change: str) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        run_sql(f"UPDATE ledger_run_head SET {change} WHERE run_id = %s", key_of(run_id))
