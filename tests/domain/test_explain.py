"""Every state of a run explains itself in a sentence of its own: what, since when, who can act, what silence does."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from ledger.domain.authority import Wanted
from ledger.domain.effects import EffectState
from ledger.domain.endings import Kind, Reason, last
from ledger.domain.explain import explain
from ledger.domain.handoffs import HandoffRow, HandoffState
from ledger.domain.health import Health, health
from ledger.domain.runs import ClearanceRow, ClearanceState, Head, Intent, LeaseRow, Status
from ledger.domain.views import RunRow, RunView
from ledger.domain.waits import Internal, MemberKind, MemberRow, MemberState, OnDeadline, SetMode, SetRow, SetState
from ledger.domain.wakes import WakeRow, WakeState
from tests.domain.effect_facts import effect, target

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
RUN = uuid4()


def view(status: Status, **rows: Any) -> RunView:
    head = Head(
        run_id=RUN,
        tenant_id=uuid4(),
        workflow_id=uuid4(),
        status=status,
        intent=rows.pop("intent", Intent.NONE),
        head_seq=1,
        head_digest=b"",
        fence_epoch=0,
        fence_count=1,
        checkpoint_seq=1,
        checkpoint_digest=b"",
        transition="issue",
        instance_id=uuid4(),
        version="1",
        clearance_id=None,
        claims_since_commit=0,
        asks=0,
        moved_at=NOW - HOUR,
        ended_at=NOW if status in {Status.COMPLETED, Status.FAILED, Status.CANCELLED} else None,
        salt=b"",
    )
    values: dict[str, Any] = dict.fromkeys(RunView.__dataclass_fields__)
    values |= {
        "now": NOW,
        "head": head,
        "run": RunRow(RUN, uuid4(), uuid4(), RUN, "t", None, None, NOW),
        "workflow": "refund",
        "effects": [],
        "members": [],
        "grants": [],
        "targets": {},
        "extras": {},
        "wanted": {},
        "unseen": (),
    }
    return RunView(**{**values, **rows})


def moved(seen: RunView, at: datetime) -> RunView:
    return seen.but(head=replace(seen.head, moved_at=at))


def lease(expires_at: datetime) -> LeaseRow:
    return LeaseRow(RUN, uuid4(), uuid4(), 0, 1, "1", 60, True, NOW - HOUR, expires_at)


def wait(internal: str = "", on_deadline: OnDeadline = OnDeadline.WAKE, mode: SetMode = SetMode.ANY) -> SetRow:
    return SetRow(
        uuid4(), RUN, uuid4(), mode, SetState.OPEN, internal, "", NOW + HOUR, on_deadline, NOW, NOW - HOUR, None
    )


def member(kind: MemberKind, **more: Any) -> MemberRow:
    row = MemberRow(uuid4(), uuid4(), 0, kind, MemberState.OPEN, "", None, None, "", "", "", None, None, None)
    return replace(row, **more)


def wake(state: WakeState, due_at: datetime, until: datetime | None = None) -> WakeRow:
    return WakeRow(uuid4(), RUN, state, ["x"], due_at, until, 1, NOW - HOUR)


def handoff(state: HandoffState, reason: str = "target:moved", effect_id: UUID | None = None) -> HandoffRow:
    return HandoffRow(uuid4(), RUN, effect_id, state, reason, True, None, NOW - HOUR, NOW + HOUR)


EVENT = member(MemberKind.EVENT, event_type="order.paid", event_subject="order/17")
CLEARANCE = ClearanceRow(
    uuid4(), None, "issue", uuid4(), ["1", "2"], [], [], NOW + HOUR, NOW + HOUR, ClearanceState.LIVE, NOW
)
TABLE: dict[str, RunView] = {
    "running": view(Status.RUNNING, lease=lease(NOW + HOUR)),
    "running, silent": view(Status.RUNNING, lease=lease(NOW - HOUR)),
    "running, to be cancelled": view(Status.RUNNING, lease=lease(NOW + HOUR), intent=Intent.CANCEL),
    "waiting for an event": view(Status.WAITING, wait=wait(), members=[EVENT]),
    "waiting for a time": view(Status.WAITING, wait=wait(), members=[member(MemberKind.TIMER, due_at=NOW + HOUR)]),
    "waiting for an approval": view(Status.WAITING, wait=wait(), members=[member(MemberKind.APPROVAL)]),
    "waiting for an outcome": view(Status.WAITING, wait=wait(), members=[member(MemberKind.EFFECT)]),
    "waiting for both": view(Status.WAITING, wait=wait(mode=SetMode.ALL), members=[EVENT, member(MemberKind.APPROVAL)]),
    "waiting for either": view(Status.WAITING, wait=wait(), members=[EVENT, member(MemberKind.APPROVAL)]),
    **{
        f"waiting, then {action}": view(Status.WAITING, wait=wait(on_deadline=action), members=[EVENT])
        for action in (OnDeadline.CANCEL, OnDeadline.FAIL, OnDeadline.HAND_OFF)
    },
    **{
        f"waiting, {internal}": view(
            Status.WAITING, wait=wait(internal, OnDeadline.HAND_OFF), members=[member(MemberKind.APPROVAL)]
        )
        for internal in Internal
    },
    "waking": view(Status.WAKING, wake=wake(WakeState.QUEUED, NOW)),
    "waking, checked": view(Status.WAKING, wake=wake(WakeState.CHECKING, NOW, NOW + HOUR)),
    "waking, overdue": view(Status.WAKING, wake=wake(WakeState.QUEUED, NOW - HOUR)),
    "ready": moved(view(Status.READY, clearance=CLEARANCE), NOW),
    "ready, unclaimed": view(Status.READY, clearance=CLEARANCE),
    "waiting, overdue": view(Status.WAITING, wait=replace(wait(), due_at=NOW - HOUR), members=[EVENT]),
    "blocked": view(Status.BLOCKED, handoff=handoff(HandoffState.OPEN)),
    "blocked, taken": view(Status.BLOCKED, handoff=handoff(HandoffState.ACCEPTED)),
    "blocked, escalated": view(Status.BLOCKED, handoff=replace(handoff(HandoffState.OPEN), escalated_at=NOW)),
    "completed": view(Status.COMPLETED),
    "failed": view(Status.FAILED),
    "cancelled": view(Status.CANCELLED),
}


def shape(sentence: str) -> str:
    """A sentence without its ids and times."""
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC|[0-9a-f-]{36}", "…", sentence)


@pytest.mark.parametrize("case", TABLE)
def test_every_case_has_one_sentence_with_a_time(case: str) -> None:
    told = explain(TABLE[case])
    assert told.sentence.endswith(".") and "\n" not in told.sentence
    assert "UTC" in told.sentence and "verify this run" not in told.sentence
    assert told.items[0].code == "since" and all(item.text for item in told.items)


def test_no_two_cases_differ_only_in_an_id_or_a_time() -> None:
    shapes = [shape(explain(case).sentence) for case in TABLE.values()]
    assert len(set(shapes)) == len(shapes)


PAY = effect()


def asked(*teams: str, lacking: tuple[str, ...] = ()) -> RunView:
    """A run that waits for leave for an effect, of which its request wants these teams."""
    return view(
        Status.WAITING,
        wait=wait(),
        members=[member(MemberKind.APPROVAL, effect_id=PAY.id)],
        effects=[PAY],
        wanted={PAY.id: Wanted(teams, lacking)},
    )


def test_the_teams_are_those_of_the_request_that_is_open() -> None:
    assert (
        "for the team approvers and the team finance to decide on “pay” since "
        in explain(asked("approvers", "finance")).sentence
    )
    assert explain(asked("approvers")).actor == "an approver"


def test_a_request_that_nobody_can_approve_says_so_and_who_can_help() -> None:
    told = explain(asked("approvers", "finance", lacking=("finance",)))
    assert (
        "too few people of finance may do that: an administrator has to add some, or nobody can approve it"
        in told.sentence
    )
    assert (
        told.actor == "an administrator" and health(asked("approvers", lacking=("approvers",))) is Health.NO_APPROVERS
    )
    assert health(asked("approvers")) is None


def test_a_timer_that_is_enough_comes_before_the_deadline_with_its_own_word() -> None:
    timer = member(MemberKind.TIMER, due_at=NOW + HOUR / 2)
    either = explain(view(Status.WAITING, wait=wait(on_deadline=OnDeadline.CANCEL), members=[EVENT, timer])).sentence
    assert "if nothing else comes, its timer lets the agent go on at 1 Jan 2026, 12:30:00 UTC" in either
    both = explain(
        view(Status.WAITING, wait=wait(mode=SetMode.ALL, on_deadline=OnDeadline.CANCEL), members=[EVENT, timer])
    )
    assert "if nothing comes, the run is cancelled at 1 Jan 2026, 13:00:00 UTC" in both.sentence


def test_the_deadlines_action_and_time_are_said() -> None:
    told = explain(TABLE["waiting, then cancel"]).sentence
    assert "the run is cancelled at 1 Jan 2026, 13:00:00 UTC" in told


@pytest.mark.parametrize("status", [s for s in Status if s not in {Status.COMPLETED, Status.FAILED, Status.CANCELLED}])
def test_a_state_without_its_row_says_that_the_record_must_be_verified(status: Status) -> None:
    assert "verify this run" in explain(view(status)).sentence


REASONS = {
    Reason(
        Kind.REFUSED, NOW, "pay", ("payments",), "insufficient_funds"
    ): "payments refused “pay” (insufficient funds)",
    Reason(Kind.REFUSED, NOW, "pay", ("payments",)): "payments refused “pay”",
    Reason(Kind.DENIED, NOW, "pay", ("Ada", "Bo")): "“pay” was denied by Ada and Bo; the reason is on its approval",
    Reason(Kind.UNDECIDED, NOW, "pay", note="noon"): "nobody decided on “pay” by noon",
    Reason(Kind.UNMET, NOW, note="noon"): "what it waited for had not come by noon",
    Reason(Kind.CLOSED, NOW, who=("Cy",)): "Cy closed its handoff and asked for that",
    Reason(Kind.AGENT, NOW, "issue"): "its agent ended it in “issue”",
}


UNNAMED = {
    Reason(
        Kind.DENIED, NOW, "pay", ("Ada",), teams=("approvers",)
    ): "“pay” was denied by a person of the team approvers;",
    Reason(
        Kind.DENIED, NOW, "pay", ("Ada", "Bo"), teams=("a", "b")
    ): "“pay” was denied by 2 people of the teams a and b;",
    Reason(Kind.DENIED, NOW, "pay", ("Ada", "Bo")): "“pay” was denied by 2 people;",
    Reason(Kind.DENIED, NOW, "pay"): "“pay” was denied by a person;",
    Reason(Kind.CLOSED, NOW, who=("Cy",)): "a person closed its handoff and asked for that;",
    Reason(Kind.REFUSED, NOW, "pay", ("payments",)): "payments refused “pay”;",
}


@pytest.mark.parametrize("reason", UNNAMED, ids=lambda reason: str(reason.kind))
def test_without_names_a_reason_counts_people_and_names_their_teams(reason: Reason) -> None:
    told = explain(TABLE["failed"], reason, names=False).sentence
    assert UNNAMED[reason] in told and not {"Ada", "Bo", "Cy"} & set(told.split())


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: str(reason.kind))
def test_why_a_run_failed_stands_in_its_first_sentence(reason: Reason) -> None:
    assert f"failed at 1 Jan 2026, 12:00:00 UTC: {REASONS[reason]};" in explain(TABLE["failed"], reason).sentence


def test_a_reason_older_than_the_last_checkpoint_or_younger_than_the_end_explains_nothing() -> None:
    early = Reason(Kind.DENIED, NOW - 2 * HOUR)
    late = Reason(Kind.DENIED, NOW + HOUR)
    assert last([early, late], NOW - HOUR, NOW) is None


def test_the_agents_own_word_counts_only_where_nothing_else_is_known() -> None:
    denied, agent = Reason(Kind.DENIED, NOW - HOUR, "pay"), Reason(Kind.AGENT, NOW, "issue")
    assert last([denied, agent], NOW - HOUR, NOW) is denied
    assert last([agent], NOW - HOUR, NOW) is agent


@pytest.mark.parametrize("action", list(OnDeadline))
@pytest.mark.parametrize("mode", list(SetMode))
def test_silence_is_told_by_what_comes_first(action: OnDeadline, mode: SetMode) -> None:
    own = wait(on_deadline=action, mode=mode)
    early = explain(view(Status.WAITING, wait=own, members=[member(MemberKind.APPROVAL, due_at=NOW + HOUR / 2)]))
    assert "the agent goes on and is told that it expired at 1 Jan 2026, 12:30:00 UTC" in early.sentence
    together = explain(view(Status.WAITING, wait=own, members=[member(MemberKind.APPROVAL, due_at=NOW + HOUR)]))
    alone = explain(view(Status.WAITING, wait=own, members=[member(MemberKind.EVENT, event_type="paid")]))
    for told in (together, alone):
        assert told.sentence.endswith("at 1 Jan 2026, 13:00:00 UTC.")
        assert ("goes on" in told.sentence) == (action is OnDeadline.WAKE)
    due = next(item for item in early.items if item.code == "deadline")
    assert due.at == NOW + HOUR / 2


def test_a_call_whose_target_cannot_be_asked_is_not_said_to_be_asked_about() -> None:
    unknown = effect(state=EffectState.UNKNOWN, due_at=NOW + HOUR)
    out = {"wait": wait(Internal.RECONCILE, OnDeadline.HAND_OFF), "members": [], "effects": [unknown]}
    for lookup, asked in ((None, False), ({"by": "key"}, True)):
        told = explain(view(Status.WAITING, **out, targets={unknown.target_id: target(lookup=lookup)}))
        assert ("; the target is asked" in told.sentence) is asked
        assert ("an operator has to find out" in told.sentence) is not asked
        assert any("its target is asked at" in item.text for item in told.items) is asked


@pytest.mark.parametrize("case", TABLE)
def test_who_can_move_a_run_is_told_in_words_that_people_know(case: str) -> None:
    told = explain(TABLE[case])
    assert not re.search(r"sweep|reconciler|wake check", f"{told.actor} {told.sentence}")


def test_a_run_that_nobody_checks_is_moved_by_who_runs_the_processes() -> None:
    assert explain(TABLE["waking, overdue"]).actor == "whoever runs the timer and queue processes"
    assert explain(TABLE["running, silent"]).actor == explain(TABLE["waking"]).actor == "the engine"
