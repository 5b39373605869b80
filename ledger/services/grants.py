"""Grants past their use-by."""

from __future__ import annotations

from uuid import UUID

from ledger.domain.authority import GrantState, void_grant
from ledger.domain.change import Change
from ledger.domain.views import RunView
from ledger.services import facts, writer
from ledger.services.contracts import writes
from ledger.services.drafts import run_draft
from ledger.services.facts import Part
from ledger.services.views import run_view


@writes(
    moves="Grants past their use-by live → expired.",
    twice="Answers False: none is live.",
    dies="Nothing hangs on it: permits and wakes look at use-by themselves.",
)
def expire(run_id: UUID) -> bool:
    """Expire the run's live grants whose use-by has passed. False when there is none."""

    def rule(view: RunView) -> tuple[Change | None, bool]:
        past = [grant for grant in view.grants if grant.state is GrantState.LIVE and grant.use_by <= view.now]
        if not past:
            return None, False
        draft = run_draft(view, "system:sweep", "grant.expire")
        for grant in past:
            void_grant(draft, grant, "use_by")
        return draft.change(), True

    return writer.settle(lambda: run_view(run_id), rule)[0]


def due(limit: int) -> list[UUID]:
    """Runs with a live grant that is past its use-by, longest first."""
    read = facts.read(
        grants=Part(
            "grant",
            f"t.state = 'live' AND t.run_id IS NOT NULL AND t.use_by <= {facts.clock()}",
            many=True,
            order="t.use_by",
            limit=limit,
        )
    )
    return list(dict.fromkeys(row["run_id"] for row in read.many("grants")))
