"""Is the record that a wake is about to trust whole? The last checkpoint against its body and its head, and the end of the chain."""

from __future__ import annotations

from collections.abc import Sequence

from ledger.domain import journal
from ledger.domain.canonical import commit
from ledger.domain.checkpoints import checkpoint_digest
from ledger.domain.journal import StoredEntry
from ledger.domain.runs import Head
from ledger.services.contents import fields
from ledger.services.facts import Row

ENTRIES = 50
"""How much of the chain's end a wake recomputes; the whole of it is verified in the background."""


def check(head: Head, checkpoint: Row | None, state: Row | None, entries: Sequence[Row]) -> str:
    """'' or the code of what is wrong. `entries` are the newest, newest first."""
    return _checkpoint(head, checkpoint, state) or _chain(head, checkpoint, entries)


def _checkpoint(head: Head, checkpoint: Row | None, state: Row | None) -> str:
    if checkpoint is None:
        return "checkpoint_missing"
    if checkpoint_digest(fields(checkpoint), head.salt) != checkpoint["digest"]:
        return "checkpoint_differs"
    if checkpoint["digest"] != head.checkpoint_digest:
        return "checkpoint_differs"
    if state is None or state["erased_at"] is not None:
        return "state_missing"
    if commit(state["salt"], state["content"]) != checkpoint["state_commitment"]:
        return "state_differs"
    return ""


def _chain(head: Head, checkpoint: Row | None, entries: Sequence[Row]) -> str:
    stored = [StoredEntry(row["seq"], row["content"], row["digest"]) for row in reversed(entries)]
    if not stored:
        return "chain_missing"
    first = stored[0]
    # The oldest entry read is the base of the others, unless it is the chain's first and has a known predecessor.
    whole = first.seq == 1
    tail = stored if whole else stored[1:]
    previous, after = (journal.GENESIS, 0) if whole else (first.digest, first.seq)
    faults, digest, seq = journal.check_chain(f"run:{head.run_id}", tail, previous, after)
    if faults:
        return f"chain_{faults[0].code}".replace("-", "_")
    if (digest, seq) != (head.head_digest, head.head_seq):
        return "chain_differs"
    told = journal.replay(tail).get(f"checkpoint:{checkpoint['id']}") if checkpoint else None
    if told is not None and checkpoint is not None and told["digest"] != checkpoint["digest"].hex():
        return "entry_differs"
    return ""
