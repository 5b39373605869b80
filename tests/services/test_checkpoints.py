"""Commits: the checkpoint before the next action, once per key, by the holder, on the sequence it read."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import ProposalSpec
from ledger.domain.errors import LedgerError
from ledger.domain.runs import Fence
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.models import Body, Checkpoint, JournalEntry, Run, WaitMember, WaitSet
from ledger.services import checkpoints, facts, leases, runs, verify
from ledger.services.checkpoints import CommitSpec
from ledger.services.packets import Packet
from tests.documents import REQUEST, STATE

if TYPE_CHECKING:
    from tests.clock import Clock
    from tests.world import World

PAY = ProposalSpec("pay", "payments.refund", "payments", "", REQUEST)
NOTE = ProposalSpec("note", "notes.send", "notes", "", b'{"text":"hello"}')


def approval_wait(hours: float = 24) -> WaitSpec:
    deadline = facts.read().now + timedelta(hours=hours)
    return WaitSpec(SetMode.ANY, (MemberSpec(MemberKind.APPROVAL, effect="pay"),), deadline, OnDeadline.CANCEL)


def _counts(world: World) -> tuple[int, ...]:
    return tuple(model.objects.of(world.tenant).count() for model in (JournalEntry, Checkpoint, Body, Run, WaitSet))


def _refused(world: World, code: str, act: Any) -> LedgerError:
    before = _counts(world)
    with pytest.raises(LedgerError) as refused:
        act()
    assert refused.value.code == code and refused.value.remedy
    assert _counts(world) == before, "a refusal writes nothing"
    return refused.value


def test_a_stale_fence_commits_nothing(world: World) -> None:
    packet = world.claimed_run()
    stale = Fence(packet.fence.epoch, packet.fence.count - 1)
    _refused(world, "stale-fence", lambda: world.commit(packet, Next(NextKind.GIVE_BACK, "think"), fence=stale))


def test_a_wrong_sequence_commits_nothing_and_names_the_right_one(world: World) -> None:
    packet = world.claimed_run()
    refusal = _refused(world, "wrong-sequence", lambda: world.commit(packet, Next(NextKind.GIVE_BACK, "think"), seq=7))
    assert refusal.facts["seq"] == packet.checkpoint["seq"]


def test_a_state_that_its_schema_refuses_commits_nothing_and_is_not_echoed(world: World) -> None:
    packet = world.claimed_run()
    state = {**STATE, "amount_minor": "secret-value"}
    refusal = _refused(
        world, "schema-mismatch", lambda: world.commit(packet, Next(NextKind.GIVE_BACK, "think"), state=state)
    )
    assert "$.amount_minor" in refusal.reason and "secret-value" not in refusal.reason


def test_an_undeclared_transition_commits_nothing(world: World) -> None:
    packet = world.claimed_run()
    _refused(world, "invalid", lambda: world.commit(packet, Next(NextKind.GO_ON, "fly")))


def test_a_foreign_tenant_commits_nothing(world: World) -> None:
    from tests.world import World as Another

    packet, other = world.claimed_run(), Another()
    _refused(world, "not-found", lambda: other.commit(packet, Next(NextKind.GIVE_BACK, "think")))


def test_the_same_key_again_answers_what_was_committed(world: World) -> None:
    packet = world.claimed_run()
    key = str(uuid4())
    first = world.commit(packet, Next(NextKind.GO_ON, "think"), key=key)
    again = world.commit(packet, Next(NextKind.GO_ON, "think"), key=key)
    assert (again.seq, again.digest, again.fence) == (first.seq, first.digest, packet.fence)
    assert [row.seq for row in world.checkpoints(packet.run.id)] == [1, 2]


def test_the_same_key_with_other_content_is_refused(world: World) -> None:
    packet = world.claimed_run()
    key = str(uuid4())
    world.commit(packet, Next(NextKind.GO_ON, "think"), key=key)
    other = {**STATE, "amount_minor": 1}
    _refused(world, "key-reused", lambda: world.commit(packet, Next(NextKind.GO_ON, "think"), key=key, state=other))


def test_a_lost_reply_is_answered_after_a_takeover_but_gives_no_ownership_back(world: World, clock: Clock) -> None:
    packet = world.claimed_run(seconds=5)
    key = str(uuid4())
    first = world.commit(packet, Next(NextKind.GO_ON, "think"), key=key)
    clock.shift(6)
    assert leases.lapse(packet.run.id)
    again = world.commit(packet, Next(NextKind.GO_ON, "think"), key=key)
    assert again.digest == first.digest
    assert again.fence is None


def test_a_holder_past_its_lease_may_commit_until_the_lapse_is_applied(world: World, clock: Clock) -> None:
    packet = world.claimed_run(seconds=5)
    clock.shift(6)
    assert world.commit(packet, Next(NextKind.GO_ON, "think")).fence == packet.fence
    clock.shift(6)
    leases.lapse(packet.run.id)
    with pytest.raises(LedgerError, match="stale-fence"):
        world.commit(packet, Next(NextKind.GO_ON, "think"), seq=2)


def test_a_commit_that_keeps_the_lease_is_cleared_from_database_facts(world: World) -> None:
    packet = world.claimed_run()
    committed = world.commit(packet, Next(NextKind.GO_ON, "think"))
    assert committed.status == "running" and committed.fence == packet.fence and committed.clearance


def test_a_transition_that_names_a_target_must_be_cleared_by_a_wake(world: World) -> None:
    packet = world.claimed_run()
    committed = world.commit(packet, Next(NextKind.GO_ON, "issue"))
    assert committed.status == "waking" and committed.fence is None


def test_a_run_with_an_effect_in_flight_neither_ends_nor_waits(world: World) -> None:
    packet = world.claimed_run()
    world.commit(packet, Next(NextKind.GO_ON, "think"), propose=())
    assert world.head(packet.run.id).status == "running"


def test_completing_withdraws_what_was_only_proposed(world: World) -> None:
    packet = world.claimed_run()
    world.commit(packet, Next(NextKind.COMPLETE), propose=(NOTE,))
    head, effect = world.head(packet.run.id), world.effect(packet.run.id, "note")
    assert (head.status, effect.state, effect.cause) == ("completed", "withdrawn", "superseded")
    assert head.ended_at is not None
    assert verify.run(packet.run.id).faults == []


def test_a_wait_for_approval_opens_the_set_its_member_and_the_effect_in_one_entry(world: World) -> None:
    run_id = world.waiting_run(approval_wait(), propose=(PAY,))
    wait = WaitSet.objects.of(world.tenant).get(run_id=run_id)
    member = WaitMember.objects.of(world.tenant).get(wait=wait)
    effect = world.effect(run_id)
    assert (wait.state, member.kind, member.effect_id) == ("open", "approval", effect.pk)
    assert world.head(run_id).status == "waiting"
    verbs = [row.verb for row in JournalEntry.objects.of(world.tenant).filter(stream_id=run_id).order_by("seq")]
    assert verbs == ["run.start", "run.claim", "checkpoint.commit"]
    assert verify.run(run_id).faults == []


def test_a_wait_for_a_tool_that_policy_allows_is_met_at_once(world: World) -> None:
    wait = WaitSpec(
        SetMode.ANY,
        (MemberSpec(MemberKind.APPROVAL, effect="note"),),
        facts.read().now + timedelta(hours=1),
        OnDeadline.WAKE,
    )
    packet = world.claimed_run()
    world.commit(packet, Next(NextKind.WAIT, "issue", wait), propose=(NOTE,))
    member = WaitMember.objects.of(world.tenant).get(run_id=packet.run.id)
    assert member.outcome == "not_needed" and world.head(packet.run.id).status == "waking"


def test_checkpoints_hash_into_one_another(world: World) -> None:
    packet = world.claimed_run()
    world.commit(packet, Next(NextKind.GO_ON, "think"))
    world.commit(packet, Next(NextKind.COMPLETE), seq=2)
    rows = world.checkpoints(packet.run.id)
    assert [bytes(row.previous_digest) for row in rows] == [bytes(32), bytes(rows[0].digest), bytes(rows[1].digest)]


def _spec(packet: Packet, **over: Any) -> CommitSpec:
    values: dict[str, Any] = {
        "fence": packet.fence,
        "expect_seq": packet.checkpoint["seq"],
        "code_version": "code-1",
        "state": STATE,
        "next": Next(NextKind.GO_ON, "think"),
        "idempotency_key": str(uuid4()),
        "document": {"a": 1},
    }
    return CommitSpec(**{**values, **over})


def test_a_key_without_the_scope_commits_nothing(world: World) -> None:
    from dataclasses import replace

    packet = world.claimed_run()
    weak = replace(world.caller, scopes=frozenset({"runs:read"}))
    _refused(world, "scope-missing", lambda: checkpoints.commit_transition(weak, packet.run.id, _spec(packet)))


def test_a_start_under_a_used_key_answers_the_same_run_or_is_refused(world: World) -> None:
    run_id = world.start_run(key="k")
    assert world.start_run(key="k") == run_id
    _refused(world, "key-reused", lambda: world.start_run(state={**STATE, "order": "18"}, key="k"))


def test_a_start_with_a_bad_state_or_an_unknown_workflow_writes_nothing(world: World) -> None:
    _refused(world, "schema-mismatch", lambda: world.start_run(state={"order": 17}))
    spec = runs.StartSpec("nowhere", "", "task", {}, {}, "", "key")
    _refused(world, "not-found", lambda: runs.start(world.caller, spec))
