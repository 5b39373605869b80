"""Handoffs: states and outcomes."""

from __future__ import annotations

from enum import StrEnum

from ledger.domain.machines import Machine


class HandoffState(StrEnum):
    OPEN = "open"
    ACCEPTED = "accepted"
    CLOSED = "closed"
    WITHDRAWN = "withdrawn"


class Outcome(StrEnum):
    WAKE = "wake"
    CANCEL = "cancel"
    FAIL = "fail"


MACHINE: Machine[HandoffState] = Machine(
    "handoff",
    {
        HandoffState.OPEN: {"accept": (HandoffState.ACCEPTED,), "close": (HandoffState.CLOSED,), "withdraw": (HandoffState.WITHDRAWN,)},
        HandoffState.ACCEPTED: {"close": (HandoffState.CLOSED,), "give_back": (HandoffState.OPEN,)},
        HandoffState.CLOSED: {},
        HandoffState.WITHDRAWN: {},
    },
)
