"""Nothing can be erased from the journal, so no text that somebody words as they like may stand in it.

Every column of the record that could hold a text is left out of entries (`UNJOURNALLED`), enters them as a salted commitment (`COMMITTED`), or is
named here as a code, with who chooses its values.
"""

from __future__ import annotations

import pytest

from ledger.models.base import Record
from ledger.models.tables import tables

NO_TEXTS = frozenset(
    {"UUIDField", "DateTimeField", "BooleanField", "IntegerField", "BigIntegerField", "BigAutoField"},
)
"""Kinds of columns in which nobody can write."""

ENUM = "a closed list of the domain, most with a CHECK"
OURS = "a word of our own code, or several"
REGISTERED = (
    "named by a pattern when the workflow version was registered, and matched with what is registered ever after"
)
CODED = "refused at the door unless it fits a pattern that no sentence fits"

SUBJECT = "an effect's subject: tool, target and key, the request's commitment, and what entries have of tool digest, resource and its version"
CHECKPOINT = (
    "a checkpoint's codes, ids and fence, its state's commitment, and what entries have of code version and artifacts"
)
CHAIN = "the chain: the entry before, and the entry's own bytes"

DIGESTS: dict[str, str] = {
    "approval_request.digest": SUBJECT,
    "checkpoint.digest": CHECKPOINT,
    "checkpoint.previous_digest": CHECKPOINT,
    "decision.facts_digest": "sequences, counts and codes, and of each check's texts what entries have of them",
    "effect.subject_digest": SUBJECT,
    "grant.subject_digest": SUBJECT,
    "journal_entry.digest": CHAIN,
    "revision.subject_digest": SUBJECT,
    "run_head.checkpoint_digest": CHECKPOINT,
    "run_head.head_digest": CHAIN,
    "tenant_head.head_digest": CHAIN,
    "vote.receipt_digest": "the commitment of the card's digest under the salt of the run",
}
"""Every digest that stands in entries, with what it is over: nothing that can be guessed. `tests/engine/test_unerasable.py` guesses each."""

COMMITMENTS = frozenset(
    {
        "body.commitment",
        "checkpoint.request_commitment",
        "checkpoint.state_commitment",
        "effect.request_commitment",
        "effect_report.evidence_commitment",
        "event.commitment",
        "handoff.note_commitment",
        "observation.commitment",
        "run.about_commitment",
        "vote.reason_commitment",
    }
)
"""SHA-256 over the salt of a body and its bytes."""

CODES: dict[str, str] = {
    "api_key.prefix": "random, by us",
    "api_key.scopes": ENUM,
    "api_key.workflows": CODED,
    "approval_request.cause": OURS,
    "approval_request.state": ENUM,
    "approval_request.subject_kind": OURS,
    "body.media": "`canonical.media_type` keeps the kind only, without parameters",
    "checkpoint.kind": ENUM,
    "checkpoint.last_transition": REGISTERED,
    "checkpoint.next_transition": REGISTERED,
    "checkpoint.version": REGISTERED,
    "clearance.state": ENUM,
    "clearance.targets": REGISTERED,
    "clearance.tools": REGISTERED,
    "clearance.transition": REGISTERED,
    "clearance.versions": REGISTERED,
    "decision.decision": ENUM,
    "decision.reasons": OURS,
    "decision.rule_version": OURS,
    "decision.transition": REGISTERED,
    "effect.carried_from": REGISTERED,
    "effect.carried_to": REGISTERED,
    "effect.cause": OURS,
    "effect.held": ENUM,
    "effect.key": "made by us from ids",
    "effect.name": CODED,
    "effect.state": ENUM,
    "effect.tool": CODED,
    "effect_report.actor": "a kind of actor with an id",
    "effect_report.answer": ENUM,
    "effect_report.cause": OURS,
    "effect_report.kind": ENUM,
    "grant.cause": OURS,
    "grant.state": ENUM,
    "grant.subject_kind": OURS,
    "handoff.outcome": ENUM,
    "handoff.reason": OURS,
    "handoff.severity": OURS,
    "handoff.state": ENUM,
    "journal_entry.actor": "a kind of actor with an id",
    "journal_entry.content": "the entry itself",
    "journal_entry.kind": ENUM,
    "journal_entry.verb": OURS,
    "lease.agents": "ids",
    "lease.version": REGISTERED,
    "observation.source": OURS,
    "permit.scopes": ENUM,
    "policy_version.author": "a kind of actor with an id",
    "revision.excluded": "ids",
    "revision.reason": OURS,
    "run_head.intent": ENUM,
    "run_head.status": ENUM,
    "run_head.transition": REGISTERED,
    "run_head.version": REGISTERED,
    "target.kind": OURS,
    "target.name": CODED,
    "transition_instance.transition": REGISTERED,
    "vote.choice": ENUM,
    "vote.entry_point": ENUM,
    "wait_member.kind": ENUM,
    "wait_member.not_from": "ids",
    "wait_member.outcome": OURS,
    "wait_member.state": ENUM,
    "wait_set.cause": OURS,
    "wait_set.internal": OURS,
    "wait_set.mode": ENUM,
    "wait_set.on_deadline": ENUM,
    "wait_set.state": ENUM,
    "wake.reasons": OURS,
    "wake.state": ENUM,
    "wake_check.answer": ENUM,
    "wake_check.name": OURS,
    "wake_check.reason": OURS,
    "workflow_type.name": CODED,
    "workflow_version.initial": REGISTERED,
    "workflow_version.takes_over_from": CODED,
    "workflow_version.version": CODED,
}
KNOWN = CODES.keys() | DIGESTS.keys() | COMMITMENTS
MODELS = [pytest.param(table.model, id=record) for record, table in sorted(tables().items())]


def in_clear(model: type[Record]) -> set[str]:
    """The columns of a model in which somebody could write, and which enter entries as they are."""
    table = tables()[model.RECORD]
    return {
        f"{model.RECORD}.{name}"
        for name, column in table.columns.items()
        if column.kind not in NO_TEXTS and name in table.journalled - table.committed
    }


@pytest.mark.parametrize("model", MODELS)
def test_no_text_of_the_record_stands_in_the_journal_in_clear(model: type[Record]) -> None:
    unknown = in_clear(model) - KNOWN
    assert not unknown, "declare it COMMITTED or UNJOURNALLED, or name it here as the code that it is"


@pytest.mark.parametrize("model", MODELS)
def test_what_a_model_commits_or_leaves_out_is_there(model: type[Record]) -> None:
    columns = tables()[model.RECORD].columns.keys()
    assert not (model.COMMITTED | model.UNJOURNALLED) - columns
    assert not model.COMMITTED & model.UNJOURNALLED, "what is left out is not committed besides"


def test_no_code_is_named_that_is_none() -> None:
    assert {name for table in tables().values() for name in in_clear(table.model)} == KNOWN


@pytest.mark.parametrize("model", MODELS)
def test_every_digest_says_what_it_is_over(model: type[Record]) -> None:
    columns = tables()[model.RECORD].columns.values()
    bytes_ = {f"{model.RECORD}.{column.name}" for column in columns if column.kind == "BinaryField"}
    assert (bytes_ & in_clear(model)) - {"journal_entry.content"} <= DIGESTS.keys() | COMMITMENTS


def test_what_is_a_digest_is_no_code_besides() -> None:
    assert not CODES.keys() & DIGESTS.keys() and not (CODES.keys() | DIGESTS.keys()) & COMMITMENTS
