"""Verification locates whatever was altered behind the journal's back, and repairs nothing."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from django.db import connection

from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import ProposalSpec
from ledger.domain.errors import LedgerError
from ledger.domain.journal import link
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.engine import sweep
from ledger.models import Checkpoint, JournalEntry, Run, VerifiedChain
from ledger.services import facts, verifications, verify
from tests.documents import REQUEST
from tests.tamper import run_sql, triggers_off
from tests.ui.asking import client_of

if TYPE_CHECKING:
    from tests.world import World

PAY = ProposalSpec("pay", "payments.refund", "payments", "", REQUEST)


def _key(value: UUID) -> Any:
    return value if connection.vendor == "postgresql" else value.hex


@pytest.fixture
def run_id(world: World) -> UUID:
    """A run with checkpoints, an effect and an open wait, whose record is intact."""
    packet = world.claimed_run()
    world.commit(packet, Next(NextKind.GO_ON, "think"))
    deadline = facts.read().now + timedelta(hours=1)
    wait = WaitSpec(SetMode.ANY, (MemberSpec(MemberKind.APPROVAL, effect="pay"),), deadline, OnDeadline.WAKE)
    world.commit(packet, Next(NextKind.WAIT, "issue", wait), seq=2, propose=(PAY,))
    report = verify.run(packet.run.id)
    assert report.intact and report.entries == 4 and report.rows > 8
    return packet.run.id


def _codes(run_id: UUID) -> set[str]:
    return {fault.code for fault in verify.run(run_id).faults}


def _entry(world: World, run_id: UUID, seq: int) -> JournalEntry:
    entry: JournalEntry = JournalEntry.objects.of(world.tenant).get(stream_id=run_id, seq=seq)
    return entry


def test_one_altered_byte_of_an_entry_is_located(world: World, run_id: UUID) -> None:
    entry = _entry(world, run_id, 2)
    content = bytes(entry.content).replace(b"running", b"runninG")
    with triggers_off("ledger_journal_entry"):
        run_sql("UPDATE ledger_journal_entry SET content = %s WHERE id = %s", content, entry.pk)
    faults = verify.run(run_id).faults
    assert [fault.seq for fault in faults if fault.code == "broken-link"] == [2]


def test_one_flipped_bit_is_located_flagged_and_mended_by_nobody_with_its_index_made_anew(
    world: World, run_id: UUID
) -> None:
    entry = _entry(world, run_id, 2)
    sound = bytes(entry.content)
    flipped = sound[:40] + bytes([sound[40] ^ 1]) + sound[41:]
    with triggers_off("ledger_journal_entry"):
        run_sql("UPDATE ledger_journal_entry SET content = %s WHERE id = %s", flipped, entry.pk)
    run_sql(
        "REINDEX TABLE ledger_journal_entry" if connection.vendor == "postgresql" else "REINDEX ledger_journal_entry"
    )
    check = verifications.ask(world.caller, run_id)
    while verifications.advance(check):
        pass
    sweep.sweep(10_000)
    chain = VerifiedChain.objects.of(world.tenant).get(pk=run_id)
    assert not chain.intact
    assert [fault.seq for fault in verify.run(run_id).faults if fault.code == "broken-link"] == [2]
    assert bytes(_entry(world, run_id, 2).content) == flipped, "whoever finds it must still find it"
    page = client_of(world.charlie).get(f"/t/{world.tenant.slug}/runs/{run_id}/").content.decode()
    assert "Didn’t verify when checked last" in page


def test_an_entry_that_was_altered_and_hashed_again_breaks_the_next_link(world: World, run_id: UUID) -> None:
    first, second = _entry(world, run_id, 1), _entry(world, run_id, 2)
    content = bytes(second.content).replace(b"running", b"runninG")
    digest = link(bytes(first.digest), content)
    with triggers_off("ledger_journal_entry"):
        run_sql("UPDATE ledger_journal_entry SET content = %s, digest = %s WHERE id = %s", content, digest, second.pk)
    faults = verify.run(run_id).faults
    assert [fault.seq for fault in faults if fault.code == "broken-link"] == [3]


def _written_anew(world: World, run_id: UUID, seq: int, was: bytes, now: bytes) -> None:
    """What only somebody with the owner's rights can do: an entry altered, and every link from there to the head made again."""
    previous = bytes(32)
    with triggers_off("ledger_journal_entry"):
        for entry in JournalEntry.objects.of(world.tenant).filter(stream_id=run_id).order_by("seq"):
            content = bytes(entry.content)
            assert entry.seq != seq or was in content
            content = content.replace(was, now) if entry.seq == seq else content
            previous = link(previous, content)
            run_sql(
                "UPDATE ledger_journal_entry SET content = %s, digest = %s WHERE id = %s", content, previous, entry.pk
            )
    run_sql("UPDATE ledger_run_head SET head_digest = %s WHERE run_id = %s", previous, _key(run_id))


@pytest.mark.parametrize(
    ("was", "now", "code"),
    [
        (b'"from":"ready"', b'"from":"waiting"', "from-differs"),
        (b'"from":"live"', b'"from":"closed"', "from-differs"),
        (b'"from":"ready",', b"", "from-missing"),
        (b'"to":"running"', b'"to":"waiting"', "to-differs"),
    ],
)
def test_a_move_from_where_the_run_never_stood_is_found_though_every_link_was_made_again(
    world: World, run_id: UUID, was: bytes, now: bytes, code: str
) -> None:
    _written_anew(world, run_id, 2, was, now)
    assert [(fault.seq, fault.code) for fault in verify.run(run_id).faults] == [(2, code)]


@pytest.mark.parametrize(("seq", "code"), [(1, "gap"), (3, "gap"), (4, "head-differs")])
def test_a_deleted_entry_is_missed_wherever_it_stood(world: World, run_id: UUID, seq: int, code: str) -> None:
    with triggers_off("ledger_journal_entry"):
        run_sql("DELETE FROM ledger_journal_entry WHERE stream_id = %s AND seq = %s", _key(run_id), seq)
    assert code in _codes(run_id)


def test_an_entry_of_another_run_is_known_as_misplaced(world: World, run_id: UUID) -> None:
    foreign = _entry(world, world.start_run(), 1)
    last = _entry(world, run_id, 4)
    digest = link(bytes(last.digest), bytes(foreign.content))
    with triggers_off("ledger_journal_entry"):
        run_sql(
            "UPDATE ledger_journal_entry SET stream_id = %s, seq = 5, digest = %s WHERE id = %s",
            _key(run_id),
            digest,
            foreign.pk,
        )
    assert "misplaced" in _codes(run_id)


def test_a_search_column_that_says_something_else_than_its_bytes_is_found(world: World, run_id: UUID) -> None:
    entry = _entry(world, run_id, 2)
    with triggers_off("ledger_journal_entry"):
        run_sql("UPDATE ledger_journal_entry SET actor = 'person:nobody' WHERE id = %s", entry.pk)
    assert "copy-differs" in _codes(run_id)


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("ledger_run_head", "status", "completed"),
        ("ledger_effect", "key", "ra_other"),
        ("ledger_wait_set", "cause", "forged"),
    ],
)
def test_a_row_changed_past_the_journal_is_found(run_id: UUID, table: str, column: str, value: str) -> None:
    run_sql(f"UPDATE {table} SET {column} = %s WHERE run_id = %s", value, _key(run_id))
    faults = [fault for fault in verify.run(run_id).faults if fault.code == "row-differs"]
    assert faults and column in faults[0].reason


def test_of_a_text_that_is_committed_a_fault_tells_digests_and_never_the_text(run_id: UUID) -> None:
    run_sql("UPDATE ledger_effect SET reference = 'forged in the night' WHERE run_id = %s", _key(run_id))
    (fault,) = [fault for fault in verify.run(run_id).faults if fault.code == "row-differs"]
    assert re.search(
        r"its reference is digest [0-9a-f]{12}…, and was written as (empty|digest [0-9a-f]{12}…)$", fault.reason
    )
    assert "forged" not in fault.reason


def test_a_fault_tells_no_more_of_a_row_than_a_line_holds(run_id: UUID) -> None:
    columns = "cause = 'x', looks = 9, attempt = 9, accounted_count = 9, name = 'y', tool = 'z'"
    run_sql(f"UPDATE ledger_effect SET {columns}, key = '{'k' * 60}' WHERE run_id = %s", _key(run_id))
    (fault,) = [fault for fault in verify.run(run_id).faults if fault.code == "row-differs"]
    assert fault.reason.endswith(", and 2 more") and len(fault.reason) < 600
    assert f"its key is {'k' * 40}…, and" in fault.reason


def test_a_row_deleted_past_the_journal_is_found(run_id: UUID) -> None:
    run_sql("DELETE FROM ledger_wait_member WHERE run_id = %s", _key(run_id))
    assert _codes(run_id) == {"row-missing"}


def test_a_checkpoint_altered_in_any_field_is_found(world: World, run_id: UUID) -> None:
    checkpoint = world.checkpoints(run_id)[1]
    with triggers_off("ledger_checkpoint"):
        run_sql("UPDATE ledger_checkpoint SET code_version = 'forged' WHERE id = %s", _key(checkpoint.pk))
    assert _codes(run_id) == {"row-differs", "checkpoint-differs"}


def test_a_state_whose_bytes_changed_is_found(world: World, run_id: UUID) -> None:
    checkpoint = world.checkpoints(run_id)[1]
    with triggers_off("ledger_body"):
        run_sql("UPDATE ledger_body SET content = %s WHERE id = %s", b'{"amount_minor":1}', _key(checkpoint.state_id))
    assert _codes(run_id) == {"body-differs"}


def test_an_erased_body_still_verifies(world: World, run_id: UUID) -> None:
    checkpoint = world.checkpoints(run_id)[0]
    run_sql(
        "UPDATE ledger_body SET content = NULL, salt = NULL, erased_at = '2026-01-01 00:00:00' WHERE id = %s",
        _key(checkpoint.state_id),
    )
    assert "body-differs" not in _codes(run_id)


def test_a_foreign_tenant_verifies_nothing(run_id: UUID, world: World) -> None:
    from tests.world import World as Another

    with pytest.raises(LedgerError) as refused:
        verify.run(run_id, Another().tenant.pk)
    assert refused.value.code == "not-found"


def test_a_body_that_was_erased_without_an_entry_is_found(world: World, run_id: UUID) -> None:
    state = Checkpoint.objects.of(world.tenant).get(run_id=run_id, seq=1).state_id
    at = str(facts.read().now)
    run_sql("UPDATE ledger_body SET salt = NULL, content = NULL, erased_at = %s WHERE id = %s", at, _key(state))
    assert "erasure-unknown" in _codes(run_id)


def test_an_entry_that_isn_t_json_is_a_fault_and_no_crash(world: World, run_id: UUID) -> None:
    with triggers_off("ledger_journal_entry"):
        run_sql("UPDATE ledger_journal_entry SET content = %s WHERE id = %s", b"\xff{", _entry(world, run_id, 2).pk)
    assert "unreadable" in _codes(run_id)


@pytest.mark.parametrize("column", ["task", "text", "attributes"])
def test_what_people_search_by_must_say_what_the_caller_said(world: World, run_id: UUID, column: str) -> None:
    told = '{"order": "18"}' if column == "attributes" else "refund order 18"
    with triggers_off("ledger_run"):
        run_sql(f"UPDATE ledger_run SET {column} = %s WHERE id = %s", told, _key(run_id))
    assert "copy-differs" in _codes(run_id)


@pytest.mark.parametrize("column", ["kind", "tenant_id"])
def test_an_entry_that_a_column_hides_from_its_own_stream_is_found(world: World, run_id: UUID, column: str) -> None:
    entry = _entry(world, run_id, 2)
    told = "event" if column == "kind" else _key(uuid4())
    with triggers_off("ledger_journal_entry"):
        run_sql(f"UPDATE ledger_journal_entry SET {column} = %s WHERE id = %s", told, entry.pk)
    assert "copy-differs" in _codes(run_id)


@pytest.mark.parametrize(("column", "told"), [("media", "text/plain"), ("size", 1)])
def test_what_is_said_of_a_body_s_bytes_must_be_so(world: World, run_id: UUID, column: str, told: object) -> None:
    state = Checkpoint.objects.of(world.tenant).get(run_id=run_id, seq=1).state_id
    with triggers_off("ledger_body"):
        run_sql(f"UPDATE ledger_body SET {column} = %s WHERE id = %s", told, _key(state))
    assert _codes(run_id) == {"body-differs"}


def test_what_its_starter_said_is_located_when_it_isn_t_a_document_any_more(world: World, run_id: UUID) -> None:
    about = Run.objects.of(world.tenant).get(pk=run_id).about_id
    with triggers_off("ledger_body"):
        run_sql("UPDATE ledger_body SET content = %s WHERE id = %s", b"\xff{", _key(about))
    assert _codes(run_id) == {"body-differs"}


@pytest.mark.sqlite_only
def test_a_value_that_can_t_even_be_read_is_a_fault_and_no_crash(world: World, run_id: UUID) -> None:
    with triggers_off("ledger_checkpoint"):
        run_sql("PRAGMA ignore_check_constraints = ON")
        run_sql("UPDATE ledger_checkpoint SET artifacts = 'forged' WHERE run_id = %s", _key(run_id))
        run_sql("PRAGMA ignore_check_constraints = OFF")
    assert _codes(run_id) == {"unreadable"}
