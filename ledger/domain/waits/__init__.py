"""Waits: sets, members, outcomes, deadlines. No clock, no I/O.

A set closes when its mode is satisfied, when a member can no longer be met, or at its deadline; closing it wakes the run.
"""

from ledger.domain.waits.closing import (
    Withdraw,
    close,
    due,
    effect_settled,
    fired,
    look,
    meet,
    silence,
    state_of,
    verdict,
)
from ledger.domain.waits.opening import MAX_MEMBERS, Ask, Asked, MemberSpec, WaitSpec, check, open_set
from ledger.domain.waits.rows import (
    DEAD,
    EVENT_KEPT_DAYS,
    MEMBER,
    SET,
    Inaction,
    Internal,
    MemberKind,
    MemberRow,
    MemberState,
    OnDeadline,
    Outcome,
    SetMode,
    SetRow,
    SetState,
)
from ledger.domain.waits.telling import Since, newest

__all__ = [
    "DEAD",
    "EVENT_KEPT_DAYS",
    "MAX_MEMBERS",
    "MEMBER",
    "SET",
    "Ask",
    "Asked",
    "Inaction",
    "Internal",
    "MemberKind",
    "MemberRow",
    "MemberSpec",
    "MemberState",
    "OnDeadline",
    "Outcome",
    "SetMode",
    "SetRow",
    "SetState",
    "Since",
    "WaitSpec",
    "Withdraw",
    "check",
    "close",
    "due",
    "effect_settled",
    "fired",
    "look",
    "meet",
    "newest",
    "open_set",
    "silence",
    "state_of",
    "verdict",
]
