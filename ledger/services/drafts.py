"""Start a Draft for a verb on a run."""

from __future__ import annotations

from datetime import datetime

from ledger.domain.change import Kind, Stream
from ledger.domain.drafts import Draft
from ledger.domain.runs import Head
from ledger.domain.views import RunView
from ledger.services.ids import minter


def run_draft(view: RunView, actor: str, verb: str, *, fresh_authority: bool = False) -> Draft:
    """A Draft on the run's stream as read. `fresh_authority` makes the writer compare the tenant's version again after the lock."""
    return Draft(
        stream=Stream(Kind.RUN, view.run.id, view.run.tenant_id, view.head.salt),
        expect_seq=view.head.head_seq,
        at=view.now,
        actor=actor,
        verb=verb,
        mint=minter(view.now),
        head_was={"status": view.head.status},
        tenant_seq=view.tenant_seq if fresh_authority else None,
    )


def head_draft(head: Head, now: datetime, actor: str, verb: str) -> Draft:
    """A Draft on a run of which only the head was read."""
    return Draft(
        stream=Stream(Kind.RUN, head.run_id, head.tenant_id, head.salt),
        expect_seq=head.head_seq,
        at=now,
        actor=actor,
        verb=verb,
        mint=minter(now),
        head_was={"status": head.status},
    )
