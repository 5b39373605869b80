"""Approval requests, revisions and votes: states and rows. No clock, no I/O."""

from __future__ import annotations

from enum import StrEnum

from ledger.domain.machines import Machine


class RequestState(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class WithdrawalCause(StrEnum):
    """Why a pending request was withdrawn: each is told to the agent as such."""

    BY_AGENT = "by_agent"
    WAIT_CLOSED = "wait_closed"
    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"
    POLICY = "policy"


class Choice(StrEnum):
    APPROVE = "approve"
    DENY = "deny"


MACHINE: Machine[RequestState] = Machine(
    "request",
    {
        RequestState.PENDING: {
            "approve": (RequestState.PENDING, RequestState.APPROVED),
            "deny": (RequestState.PENDING, RequestState.DENIED),
            "expire": (RequestState.EXPIRED,),
            "withdraw": (RequestState.WITHDRAWN,),
            "revise": (RequestState.PENDING,),
        },
        RequestState.APPROVED: {"revise": (RequestState.PENDING,)},
        RequestState.DENIED: {},
        RequestState.EXPIRED: {},
        RequestState.WITHDRAWN: {},
    },
)
