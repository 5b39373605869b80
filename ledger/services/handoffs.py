"""Handoffs: a run, or one effect, in a person's hands until the person says what happens next."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from ledger.domain import handoffs as rows
from ledger.domain import takeovers as rules
from ledger.domain.change import Change
from ledger.domain.drafts import Draft
from ledger.domain.errors import LedgerError
from ledger.domain.handoffs import HandoffRow, Outcome
from ledger.domain.identity import Caller, Verb
from ledger.domain.views import RunView
from ledger.models import WorkflowType
from ledger.services import facts, permissions, writer
from ledger.services.contracts import REFUSED, writes
from ledger.services.drafts import run_draft
from ledger.services.facts import Part
from ledger.services.ids import new_body
from ledger.services.views import run_view

LONGEST_REASON = 4_000


@writes(
    moves="Handoff open → accepted, with its owner.",
    twice="Taking one's own again changes nothing; somebody else's is refused: `wrong-state`.",
)
def own(caller: Caller, handoff_id: UUID) -> None:
    """Take a handoff: from here on it is this person's. Taking one's own again changes nothing.

    Raises LedgerError `agents-never-decide`, `not-found`, `forbidden`, `wrong-state`.
    """
    _act(caller, handoff_id, "handoff.own", lambda draft, view, handoff: rules.own(draft, handoff, _person(caller)))


@writes(moves="Handoff accepted → open, without an owner.", twice=REFUSED)
def give_back(caller: Caller, handoff_id: UUID) -> None:
    """Put an owned handoff back for anybody. Raises LedgerError as `own` does."""
    _act(caller, handoff_id, "handoff.give_back", lambda draft, view, handoff: rules.give_back(draft, handoff))


@writes(
    moves="Handoff open or accepted → closed with outcome and reason; the run it blocks → waking, with the intent where it is to end.",
    twice=REFUSED,
    dies="The run's wake is a row: the sweep takes it.",
)
def close(caller: Caller, handoff_id: UUID, outcome: Outcome, reason: str) -> None:
    """Say what happens next: wake the run again, or end it as cancelled or failed. The reason is kept as evidence.

    Raises LedgerError `agents-never-decide`, `not-found`, `forbidden`, `invalid`, `effects-open`, `wrong-state`.
    """
    text = reason.strip()
    if not text:
        raise LedgerError("invalid", "a handoff is closed with a reason", "Say why, for whoever reads the record.")
    if len(text) > LONGEST_REASON:
        raise LedgerError("invalid", f"the reason is longer than {LONGEST_REASON} characters", "Shorten it.")

    def write(draft: Draft, view: RunView, handoff: HandoffRow) -> bool:
        note = new_body(text.encode(), draft.at, "text/plain")
        rules.close(draft, view, handoff, outcome, note)
        return True

    _act(caller, handoff_id, "handoff.close", write)


@writes(
    moves="A handoff past its due time, open or accepted → escalated; it stays as it is.",
    twice="Answers False: it was closed or escalated before.",
    dies="The act and its entry are one transaction: both are there or neither.",
)
def escalate(handoff_id: UUID) -> bool:
    """Say of a handoff that nobody has closed in its time that it is overdue. It never closes by itself. False when that isn't so any more."""
    return _swept(handoff_id, "handoff.escalate", lambda draft, view, handoff: rows.escalate(draft, handoff))


@writes(
    moves="Handoff accepted → open, without an owner, where its owner has left the tenant or was deactivated.",
    twice="Answers False: nobody has it, or somebody who is there.",
    dies="The act and its entry are one transaction: both are there or neither.",
)
def reopen(handoff_id: UUID) -> bool:
    """Put a handoff back for anybody whose owner is gone. False when that isn't so any more."""

    def write(draft: Draft, view: RunView, handoff: HandoffRow) -> bool:
        left = handoff.owner_id is not None and not permissions.member(handoff.owner_id, view.run.tenant_id)
        return left and rules.give_back(draft, handoff)

    return _swept(handoff_id, "handoff.give_back", write)


def due(limit: int) -> list[UUID]:
    """Handoffs that nobody has closed by their due time, longest overdue first."""
    still = ", ".join(f"'{state}'" for state in rows.OPEN_HANDOFFS)
    overdue = f"t.state IN ({still}) AND t.escalated_at IS NULL AND t.due_at <= {facts.clock()}"
    read = facts.read(handoffs=Part("handoff", overdue, many=True, order="t.due_at", limit=limit))
    return [row["id"] for row in read.many("handoffs")]


def left(limit: int) -> list[UUID]:
    """Handoffs of owners who have left the tenant or were deactivated."""
    present = (
        "SELECT 1 FROM ledger_membership m JOIN ledger_user u ON u.id = m.user_id"
        " WHERE m.tenant_id = t.tenant_id AND m.user_id = t.owner_id AND m.active AND u.is_active"
    )
    gone = f"t.state = 'accepted' AND NOT EXISTS ({present})"
    read = facts.read(handoffs=Part("handoff", gone, many=True, order="t.due_at", limit=limit))
    return [row["id"] for row in read.many("handoffs")]


def _swept(handoff_id: UUID, verb: str, write: Callable[[Draft, RunView, HandoffRow], bool]) -> bool:
    mine = Part("handoff", "t.id = %s", (handoff_id,))
    found = facts.read(handoff=mine).row("handoff")
    if found is None:
        raise _missing()

    def rule(view: RunView) -> tuple[Change | None, bool]:
        draft = run_draft(view, "system:sweep", verb, fresh_authority=True)
        handoff = facts.load(HandoffRow, view.extras["handoff_at_hand"][0])
        return (draft.change(), True) if write(draft, view, handoff) else (None, False)

    return writer.settle(lambda: run_view(found["run_id"], handoff_at_hand=mine), rule)[0]


def _person(caller: Caller) -> UUID:
    if caller.person_id is None:
        raise LedgerError("agents-never-decide", "only a person can do that", "Sign in to the console.")
    return caller.person_id


def _act(caller: Caller, handoff_id: UUID, verb: str, write: Callable[[Draft, RunView, HandoffRow], bool]) -> None:
    person = _person(caller)
    mine = Part("handoff", "t.id = %s AND t.tenant_id = %s", (handoff_id, caller.tenant_id))
    found = facts.read(handoff=mine).row("handoff")
    if found is None:
        raise _missing()

    def rule(view: RunView) -> tuple[Change | None, None]:
        workflow = WorkflowType(pk=view.head.workflow_id, tenant_id=view.run.tenant_id)
        if not permissions.can(person, Verb.SEE, workflow):
            raise _missing()
        if not permissions.can(person, Verb.OPERATE, workflow):
            raise LedgerError("forbidden", "you may not operate runs of this workflow", "Ask an operator.")
        handoff = facts.load(HandoffRow, view.extras["handoff_at_hand"][0])
        draft = run_draft(view, f"person:{person}", verb, fresh_authority=True)
        return (draft.change(), None) if write(draft, view, handoff) else (None, None)

    writer.settle(lambda: run_view(found["run_id"], caller.tenant_id, handoff_at_hand=mine), rule)


def _missing() -> LedgerError:
    return LedgerError("not-found", "there is no such handoff here", "Check the address.")
