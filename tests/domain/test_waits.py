"""What closes a wait, and when it is looked at next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from ledger.domain.errors import LedgerError
from ledger.domain.waits import (
    MemberKind,
    MemberRow,
    MemberSpec,
    Outcome,
    SetMode,
    WaitSpec,
    check,
    due,
    state_of,
    verdict,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def member(outcome: str = "", kind: MemberKind = MemberKind.EVENT, at: datetime | None = None) -> MemberRow:
    return MemberRow(
        id=uuid4(),
        wait_id=uuid4(),
        ordinal=0,
        kind=kind,
        state=state_of(outcome),
        outcome=outcome,
        due_at=at,
        effect_id=None,
        event_source="",
        event_type="",
        event_subject="",
        since=None,
        event_id=None,
        met_at=None,
    )


def test_any_closes_on_the_first_met_member() -> None:
    assert verdict(SetMode.ANY, [member(), member("received")]) == ("satisfy", "received")


def test_all_closes_only_when_every_member_is_met() -> None:
    assert verdict(SetMode.ALL, [member("received"), member()]) is None
    assert verdict(SetMode.ALL, [member("received"), member("due")]) == ("satisfy", "all_met")


@pytest.mark.parametrize("outcome", ["denied", "denied_by_policy", "withdrawn"])
@pytest.mark.parametrize("mode", list(SetMode))
def test_a_member_that_can_no_longer_be_met_closes_the_set_with_its_outcome(mode: SetMode, outcome: str) -> None:
    assert verdict(mode, [member(), member(outcome)]) == ("cancel", outcome)


def test_an_expired_approval_expires_the_set_and_is_not_a_denial() -> None:
    assert verdict(SetMode.ANY, [member(Outcome.EXPIRED)]) == ("expire", "expired")


def test_a_set_is_looked_at_when_its_earliest_open_timer_is_due_and_never_after_its_deadline() -> None:
    timers = [member(kind=MemberKind.TIMER, at=NOW + 2 * HOUR), member("due", MemberKind.TIMER, NOW + HOUR)]
    assert due(NOW + 3 * HOUR, timers) == NOW + 2 * HOUR
    assert due(NOW + HOUR, timers) == NOW + HOUR


@pytest.mark.parametrize(
    ("members", "deadline"),
    [
        ((), NOW + HOUR),
        ((MemberSpec(MemberKind.EVENT, type="paid"),), NOW),
        ((MemberSpec(MemberKind.EVENT),), NOW + HOUR),
        ((MemberSpec(MemberKind.TIMER, at=NOW + 2 * HOUR),), NOW + HOUR),
        ((MemberSpec(MemberKind.TIMER),), NOW + HOUR),
        ((MemberSpec(MemberKind.APPROVAL, effect="pay"),), NOW + HOUR),
        (tuple(MemberSpec(MemberKind.EVENT, type="paid") for _ in range(21)), NOW + HOUR),
    ],
)
def test_a_wait_that_could_never_end_is_refused(members: tuple[MemberSpec, ...], deadline: datetime) -> None:
    with pytest.raises(LedgerError) as refusal:
        check(WaitSpec(SetMode.ANY, members, deadline), {}, NOW)
    assert refusal.value.code == "invalid" and refusal.value.remedy
