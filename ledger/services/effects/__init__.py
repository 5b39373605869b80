"""Effects as services: the holder's verbs, the reconciler's, a person's verdict, and readings."""

from ledger.services.effects.accounting import accept, withdraw
from ledger.services.effects.holding import (
    PermitAnswer,
    ProposalAnswer,
    SettleAnswer,
    permit,
    propose,
    propose_in,
    repeated,
    settle,
    settle_in,
    withdraw_in,
    withdrawer,
)
from ledger.services.effects.reading import (
    Due,
    EffectView,
    due,
    get,
    needs_a_person,
    once_more,
    read_now,
    report_parts,
)
from ledger.services.effects.reconciling import RECONCILER, Looked, begin_replay, correct, lapse, look, verdict

__all__ = [
    "RECONCILER",
    "Due",
    "EffectView",
    "Looked",
    "PermitAnswer",
    "ProposalAnswer",
    "SettleAnswer",
    "accept",
    "begin_replay",
    "correct",
    "due",
    "get",
    "lapse",
    "look",
    "needs_a_person",
    "once_more",
    "permit",
    "propose",
    "propose_in",
    "read_now",
    "repeated",
    "report_parts",
    "settle",
    "settle_in",
    "verdict",
    "withdraw",
    "withdraw_in",
    "withdrawer",
]
