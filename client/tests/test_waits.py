"""What a wait came to, as the next transition reads it."""

from __future__ import annotations

from resumeapp_client.effects import outcome, reason
from resumeapp_client.records import MemberSeen, WaitSeen


def test_a_denial_comes_before_anything_else_and_brings_its_reason() -> None:
    members = [
        MemberSeen(kind="timer", outcome="due"),
        MemberSeen(kind="approval", outcome="denied", reason="no receipt"),
    ]
    wait = WaitSeen(state="satisfied", members=members)
    assert (outcome(wait), reason(wait)) == ("denied", "no receipt")


def test_without_a_wait_or_a_denial_there_is_no_reason() -> None:
    assert reason(None) == "" and outcome(None) is None
    assert reason(WaitSeen(state="satisfied", members=[MemberSeen(kind="approval", outcome="approved")])) == ""
