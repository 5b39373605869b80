"""A run with one effect in any state, as rules read it: no database, a fixed clock."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

from ledger.domain.authority import PolicyRow
from ledger.domain.canonical import Body
from ledger.domain.change import Kind, Stream
from ledger.domain.drafts import Draft
from ledger.domain.effects import (
    EffectRow,
    EffectState,
    PermitAsk,
    PermitRow,
    SeenVersion,
    TargetRow,
    effect_key,
    subject_digest,
    subject_of,
)
from ledger.domain.runs import ClearanceRow, ClearanceState, Fence, Head, Intent, LeaseRow, Status
from ledger.domain.views import RunRow, RunView

NOW = datetime(2030, 5, 1, 12, tzinfo=UTC)
FENCE = Fence(0, 7)
SALT = bytes(range(16))
STALE = Fence(0, 5)
REQUEST = b'{"amount_minor":4200,"order":"17"}'


def uid(number: int) -> UUID:
    return UUID(int=number)


TENANT, RUN, INSTANCE, TARGET, EFFECT = (uid(n) for n in (1, 2, 3, 4, 5))
BODY = Body(uid(6), b"s" * 16, REQUEST)


def target(**changes: Any) -> TargetRow:
    """A keyed target with a look-up, remembering keys for a day."""
    row = TargetRow(
        id=TARGET,
        name="payments",
        kind="http",
        base_url="http://127.0.0.1:9",
        private=True,
        keyed=True,
        first_result_replayed=False,
        key_retention=86_400,
        visibility_delay=5,
        freshness=300,
        call_limit=10,
        lookup={"by": "key"},
        observe={"path": "/orders/{resource}", "version": "etag"},
        material=[],
        guaranteed_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return replace(row, **changes)


def effect(state: EffectState = EffectState.PROPOSED, at: TargetRow | None = None, **changes: Any) -> EffectRow:
    """An effect named `pay`; one that was ever permitted has one attempt, whose answer was due a minute ago."""
    tried = state not in (EffectState.PROPOSED, EffectState.WITHDRAWN)
    opened = state in (EffectState.IN_FLIGHT, EffectState.UNKNOWN)
    row = EffectRow(
        id=EFFECT,
        run_id=RUN,
        lineage_id=RUN,
        opened_instance_id=INSTANCE,
        instance_id=INSTANCE,
        name="pay",
        key=effect_key(TENANT, RUN, INSTANCE, "pay"),
        call_key=None,
        tool="payments.refund",
        tool_digest="t1",
        target_id=TARGET,
        resource="",
        request_id=BODY.id,
        request_commitment=BODY.commitment,
        observation_id=None,
        observed_version="",
        subject_digest=b"",
        state=state,
        cause="not_dispatched" if state is EffectState.FAILED else "",
        disputed=False,
        held="",
        accepted=False,
        attempt=1 if tried else 0,
        accounted_count=FENCE.count,
        reference="",
        result_id=None,
        due_at=NOW if opened else None,
        looks=0,
        first_permit_at=NOW - timedelta(minutes=2) if tried else None,
        answer_by=NOW - timedelta(minutes=1) if tried else None,
        proposed_at=NOW - timedelta(minutes=5),
        settled_at=None,
    )
    row = replace(row, **changes)
    return replace(row, subject_digest=subject_digest(subject_of(row, at or target()), SALT))


def permit_row(fence: Fence = FENCE, **changes: Any) -> PermitRow:
    row = PermitRow(
        id=uid(20),
        effect_id=EFFECT,
        attempt=1,
        fence_epoch=fence.epoch,
        fence_count=fence.count,
        precondition="",
        send_by=NOW + timedelta(seconds=20),
        answer_by=NOW + timedelta(seconds=30),
    )
    return replace(row, **changes)


@dataclass
class Scene:
    """A view and the draft that a rule writes to."""

    effect: EffectRow
    target: TargetRow = field(default_factory=target)
    status: Status = Status.RUNNING
    intent: Intent = Intent.NONE
    verdict: str = "allow"
    lease_ends: timedelta = timedelta(seconds=60)
    clearance_targets: tuple[str, ...] = ("payments",)
    clearance_tools: tuple[str, ...] = ()
    others: tuple[EffectRow, ...] = ()

    def __post_init__(self) -> None:
        numbers = count(1000)
        self.view = self._view()
        self.draft = Draft(
            stream=Stream(Kind.RUN, RUN, TENANT, SALT),
            expect_seq=9,
            at=NOW,
            actor="agent:test",
            verb="test",
            mint=lambda: uid(next(numbers)),
            head_was={"status": self.status},
        )

    def _view(self) -> RunView:
        rules = [{"tool": "payments.*", "verdict": self.verdict, "group": "approvers"}]
        return RunView(
            now=NOW,
            tenant_seq=4,
            workflow="refund",
            run=RunRow(RUN, TENANT, uid(8), RUN, "task", uid(12), None, NOW),
            head=self._head(),
            lease=self._lease(),
            version=None,
            holder=None,
            clearance=self._clearance(),
            effects=[self.effect, *self.others],
            targets={TARGET: self.target},
            wait=None,
            members=[],
            wake=None,
            policy=PolicyRow(uid(13), 1, rules, bytes(32)),
            grants=[],
            handoff=None,
            extras={},
        )

    def _head(self) -> Head:
        return Head(
            run_id=RUN,
            tenant_id=TENANT,
            workflow_id=uid(8),
            status=self.status,
            intent=self.intent,
            head_seq=9,
            head_digest=bytes(32),
            fence_epoch=FENCE.epoch,
            fence_count=FENCE.count,
            checkpoint_seq=3,
            checkpoint_digest=bytes(32),
            transition="issue",
            instance_id=INSTANCE,
            version="1",
            clearance_id=uid(9),
            claims_since_commit=1,
            asks=0,
            moved_at=NOW,
            ended_at=None,
            salt=SALT,
        )

    def _lease(self) -> LeaseRow:
        return LeaseRow(
            run_id=RUN,
            worker_id=uid(10),
            key_id=uid(11),
            fence_epoch=FENCE.epoch,
            fence_count=FENCE.count,
            version="1",
            seconds=60,
            active=True,
            claimed_at=NOW,
            expires_at=NOW + self.lease_ends,
        )

    def _clearance(self) -> ClearanceRow:
        return ClearanceRow(
            id=uid(9),
            decision_id=None,
            transition="issue",
            instance_id=INSTANCE,
            versions=["1"],
            targets=list(self.clearance_targets),
            tools=list(self.clearance_tools),
            valid_until=NOW + timedelta(minutes=5),
            ready_by=NOW + timedelta(hours=1),
            state=ClearanceState.USED,
            opened_at=NOW,
        )

    def ask(self, fence: Fence = FENCE, permit: PermitRow | None = None, seen: SeenVersion | None = None) -> PermitAsk:
        return PermitAsk(
            fence=fence,
            permits=[permit] if permit else [],
            seen=seen,
            seen_now=False,
            send_within=timedelta(seconds=30),
            key_id=uid(11),
        )

    def inserted(self, table: str) -> list[dict[str, Any]]:
        return [dict(insert.row) for insert in self.draft.change().inserts if insert.table == table]

    def head_moves(self) -> dict[str, Any]:
        return dict(self.draft.change().head)


def seen(version: str, ago: float = 1) -> SeenVersion:
    return SeenVersion(TARGET, "order/17", version, NOW - timedelta(seconds=ago), "system:observer")
