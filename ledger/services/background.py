"""What a wake reads of a run beside its view: checkpoint and state, the chain's end, versions, earlier waits and decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from uuid import UUID

from ledger.domain.authority import GrantRow
from ledger.domain.checkpoints import VersionRow, current_version
from ledger.domain.decisions import REPLANS, WITHOUT
from ledger.domain.effects import ReportRow
from ledger.domain.views import RunView
from ledger.domain.waits import MemberRow, SetRow
from ledger.domain.wakes import WakeRow
from ledger.services import facts
from ledger.services.effects.sighted import bound_parts
from ledger.services.facts import Part, Row
from ledger.services.views import named_views, run_view

DECISIONS_READ = 10
WAITS_READ = 20
_PLANNED = (
    "t.run_id = h.run_id AND t.decision IN ('replan', 'hand_off') AND t.decided_at > COALESCE("
    "(SELECT max(e.first_permit_at) FROM ledger_effect e WHERE e.run_id = h.run_id), r.created_at)"
)
_LET_GO = (
    "t.decision_id IN (SELECT d.id FROM ledger_decision d WHERE d.run_id = h.run_id AND d.decision IN ('retry_later', 'ask_again', 'reconcile')"
    " AND d.decided_at > COALESCE((SELECT max(o.decided_at) FROM ledger_decision o WHERE o.run_id = h.run_id"
    " AND o.decision NOT IN ('retry_later', 'ask_again', 'reconcile')), r.created_at))"
    f" AND t.answer = 'pass' AND t.reason IN ({', '.join(['%s'] * len(WITHOUT))})"
)
_FAILED = "SELECT e.id FROM ledger_effect e WHERE e.run_id = h.run_id AND e.state = 'failed'"
_NEWER = "SELECT 1 FROM ledger_effect_report n WHERE n.effect_id = t.effect_id AND n.counted AND n.ordinal > t.ordinal"
_AT_HEAD = "SELECT c.state_id FROM ledger_checkpoint c WHERE c.run_id = h.run_id AND c.seq = h.checkpoint_seq"
_WAITED = "SELECT s.id FROM ledger_wait_set s WHERE s.run_id = h.run_id AND s.instance_id = h.instance_id"


@dataclass(frozen=True, slots=True)
class Background:
    """A run with what a wake reads beside its view: `usable` are used grants of failed effects, `last_words` what counted last of these, `bound` and
    `bound_bodies` what effects that may be called next are bound to, where their target says what matters; `planned` are the newest decisions to plan
    anew or hand off since a call of the run was first permitted; `let_go` is what a person has let the run go on without (check, reason, effect's id
    as text), where nothing but the engine's own waits was decided since."""

    view: RunView
    wake: WakeRow
    checkpoint: Row | None
    state: Row | None
    entries: Sequence[Row]
    versions: Sequence[VersionRow]
    current: str
    waits: Sequence[SetRow]
    members: Sequence[MemberRow]
    decided: Sequence[str]
    planned: Sequence[str]
    agent_active: bool
    usable: Sequence[GrantRow]
    last_words: Mapping[UUID, ReportRow]
    bound: Sequence[Row]
    bound_bodies: Sequence[Row]
    let_go: frozenset[tuple[str, str, str]]


_OF_EFFECTS: Mapping[str, Part] = {
    "usable": Part("grant", f"t.run_id = h.run_id AND t.state = 'used' AND t.subject_id IN ({_FAILED})", many=True),
    "last_word": Part(
        "effect_report", f"t.effect_id IN ({_FAILED}) AND t.counted AND NOT EXISTS ({_NEWER})", many=True
    ),
    **bound_parts("e.run_id = h.run_id AND e.state IN ('proposed', 'failed')"),
}
"""Of effects that failed: the used grants that cover further attempts, and what counted last of all that was said of each; and what those that may
be called are bound to."""

_OF_DECISIONS: Mapping[str, Part] = {
    "decided": Part("decision", "t.run_id = h.run_id", many=True, order="t.decided_at DESC", limit=DECISIONS_READ),
    "planned": Part("decision", _PLANNED, many=True, order="t.decided_at DESC", limit=REPLANS),
    "let_go": Part("wake_check", _LET_GO, tuple(reason for _, reason in WITHOUT), many=True),
}
"""The newest decisions, those to plan anew or hand off since a call was first permitted, and what a person has let go."""


@cache
def _parts(entries: int) -> Mapping[str, Part]:
    return {
        "checkpoint": Part("checkpoint", "t.run_id = h.run_id AND t.seq = h.checkpoint_seq"),
        "state": Part("body", f"t.id = ({_AT_HEAD})"),
        "entries": Part("journal_entry", "t.stream_id = h.run_id", many=True, order="t.seq DESC", limit=entries),
        "versions": Part(
            "workflow_version", "t.workflow_id = h.workflow_id", many=True, order="t.created_at DESC, t.version DESC"
        ),
        "waits": Part(
            "wait_set",
            "t.run_id = h.run_id AND t.instance_id = h.instance_id AND t.state <> 'open'",
            many=True,
            order="t.closed_at DESC",
            limit=WAITS_READ,
        ),
        "waited": Part("wait_member", f"t.wait_id IN ({_WAITED})", many=True),
        **_OF_DECISIONS,
        **_OF_EFFECTS,
        "agent": Part("agent", "t.id = r.agent_id"),
    }


def background(run_id: UUID, wake: WakeRow, entries: int) -> Background:
    """Read a run for its wake, with so many of its newest entries: one statement on PostgreSQL."""
    return _of(run_view(run_id, None, **_parts(entries)), wake)


def backgrounds(wakes: Sequence[WakeRow], entries: int) -> list[Background]:
    """Read the runs of these wakes, each as `background` does: one statement on PostgreSQL for all of them."""
    views = named_views([wake.run_id for wake in wakes], None, _parts(entries))
    mine = {wake.run_id: wake for wake in wakes}
    return [_of(view, mine[view.run.id]) for view in views]


def _of(view: RunView, wake: WakeRow) -> Background:
    extras = view.extras
    versions = [facts.load(VersionRow, row) for row in extras["versions"]]
    return Background(
        view=view,
        wake=wake,
        checkpoint=extras["checkpoint"][0],
        state=extras["state"][0],
        entries=extras["entries"],
        versions=versions,
        current=current_version(versions),
        waits=[facts.load(SetRow, row) for row in extras["waits"]],
        members=[facts.load(MemberRow, row) for row in extras["waited"]],
        decided=[row["decision"] for row in extras["decided"]],
        planned=[row["decision"] for row in extras["planned"]],
        usable=[facts.load(GrantRow, row) for row in extras["usable"]],
        bound=extras["bound"],
        bound_bodies=extras["bound_bodies"],
        let_go=_let_go(extras["let_go"]),
        last_words={row["effect_id"]: facts.load(ReportRow, row) for row in extras["last_word"]},
        agent_active=view.run.agent_id is None or any(agent and agent["active"] for agent in extras["agent"]),
    )


def _let_go(checks: Sequence[Row]) -> frozenset[tuple[str, str, str]]:
    said = [(check["name"], check["reason"], check["subject"]) for check in checks]
    return frozenset(each for each in said if each[:2] in WITHOUT)
