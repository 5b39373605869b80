"""What the ledger asks of the people's side, declared here and registered from there. With nothing registered, nothing is granted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from ledger.domain.authority import GrantRow, Requirement, Wanted
from ledger.domain.drafts import Draft
from ledger.domain.effects import EffectRow
from ledger.domain.endings import Reason
from ledger.domain.errors import LedgerError
from ledger.domain.views import RunView
from ledger.domain.waits import Asked
from ledger.services.facts import Part

FIRST = "asked"
"""Why leave is asked for that nobody was asked for before."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Leave is needed for an effect: what it requires, by when it must be decided, and why it is asked (`asked`, `changed`, `voided`)."""

    effect: EffectRow
    requirement: Requirement
    decide_by: datetime
    reason: str


class Approvals(Protocol):
    """The people's side. Its rows ride in the ledger's Changes, so that a request exists exactly when its wait does."""

    def parts(self) -> Mapping[str, Part]:
        """Rows of a run that `ask` and `withdraw` want to find in `view.extras`, of its head `h`, the run `r` itself and its last lease `l`."""

    def ask(self, draft: Draft, view: RunView, ask: Ask) -> Asked:
        """Open a request for the subject, or a new revision of its open or decided one. Answers by when it must be decided, or at once what
        people have said of the very same."""

    def denied(self, view: RunView, effect: EffectRow, draft: Draft | None = None) -> bool:
        """Did people deny the very same of this run, under whatever name? Its request may stand in the draft only."""

    def withdraw(self, draft: Draft, view: RunView, effect_ids: frozenset[UUID] | None, cause: str) -> None:
        """Withdraw the open requests of these effects (None: of the whole run)."""

    def expire(self, draft: Draft, view: RunView) -> bool:
        """Say of the pending request whose decide-by was the first to pass that it expired, with what follows. False when there is none, and when a
        timer closed the run's wait before."""

    def still_good(self, grant: GrantRow, view: RunView) -> str:
        """Are the votes behind this grant still good, read afresh? '' or the code of what is wrong."""

    def wanted(self, tenant_id: UUID, effect_ids: Sequence[UUID]) -> Mapping[UUID, Wanted]:
        """Whose decision the open requests about these effects want, read afresh, by effect."""

    def unanswerable(self, tenant_id: UUID) -> Collection[UUID]:
        """Runs of a tenant with an open request for which too few people are left, of the requests that are due first."""

    def refusals(self, tenant_id: UUID, run_ids: Sequence[UUID]) -> Iterable[tuple[UUID, Reason]]:
        """What people denied, or left undecided, of these runs of a tenant: run id and reason."""

    def reasons(self, tenant_id: UUID, effect_ids: Sequence[UUID]) -> Mapping[UUID, str]:
        """In the words of whoever denied them, why these effects were denied last; without those denied in silence."""


class _Nobody:
    """No people: nothing can be asked and no grant is good."""

    def parts(self) -> Mapping[str, Part]:
        return {}

    def ask(self, draft: Draft, view: RunView, ask: Ask) -> Asked:
        raise LedgerError(
            "grant-missing", "nobody can approve here: no approvals are installed", "Install the approvals app."
        )

    def denied(self, view: RunView, effect: EffectRow, draft: Draft | None = None) -> bool:
        return False

    def withdraw(self, draft: Draft, view: RunView, effect_ids: frozenset[UUID] | None, cause: str) -> None:
        return None

    def expire(self, draft: Draft, view: RunView) -> bool:
        return False

    def still_good(self, grant: GrantRow, view: RunView) -> str:
        return "no-approvals-installed"

    def wanted(self, tenant_id: UUID, effect_ids: Sequence[UUID]) -> Mapping[UUID, Wanted]:
        return {}

    def unanswerable(self, tenant_id: UUID) -> Collection[UUID]:
        return ()

    def refusals(self, tenant_id: UUID, run_ids: Sequence[UUID]) -> Iterable[tuple[UUID, Reason]]:
        return ()

    def reasons(self, tenant_id: UUID, effect_ids: Sequence[UUID]) -> Mapping[UUID, str]:
        return {}


_registered: list[Approvals] = []


def register(approvals: Approvals) -> None:
    """Called once, when the people's app is ready."""
    _registered[:] = [approvals]


def approvals() -> Approvals:
    return _registered[0] if _registered else _Nobody()
