"""Words for what the record holds as codes: one table for verbs, one for each kind of state, cause and reason.

A verb's sentence may name `{effect}`, `{target}`, `{transition}`, `{attempt}`, `{decision}` and `{worker}`; what an entry doesn't tell is left out
by `tidy`. Nothing here is written by agents.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ledger.domain.explain import ON_DEADLINE
from ledger.domain.handoffs import Outcome
from ledger.domain.health import UNCLAIMED_AFTER, Health
from ledger.domain.phrases import unseen, words

VERBS: Mapping[str, tuple[str, str]] = {
    # verb: (sentence, state whose icon stands beside it)
    "run.start": ("Started", "running"),
    "run.claim": ("Claimed by {worker}", "running"),
    "run.release": ("Given back by its worker", "waking"),
    "checkpoint.commit": ("Finished “{transition}”", "pass"),
    "lease.lapse": ("Worker lost: its lease ran out", "late"),
    "clearance.lapse": ("Nobody claimed it in time", "late"),
    "clearance.outdated": ("A version was registered: woken again", "changed"),
    "clearance.stale": ("Its clearance was too old", "changed"),
    "effect.propose": ("“{effect}” proposed at {target}", "proposed"),
    "effect.permit": ("Call “{effect}” to {target} allowed, attempt {attempt}", "in_flight"),
    "effect.settle": ("“{effect}” reported: {reported}", "committed"),
    "effect.withdraw": ("“{effect}” withdrawn", "withdrawn"),
    "effect.accept": ("The agent took in the outcome of “{effect}”", "accepted"),
    "effect.lapse": ("Outcome of “{effect}” became unknown", "unknown"),
    "effect.look": ("Asked {target} about “{effect}”: {found}", "reconcile"),
    "effect.refuse": ("Call “{effect}” to {target} not allowed", "denied"),
    "effect.replay": ("Asked {target} by sending “{effect}” again: {found}", "reconcile"),
    "effect.verdict": ("“{effect}” settled by hand", "reconcile"),
    "effect.correct": ("Reference of “{effect}” corrected by hand", "reconcile"),
    "event.receive": ("Event received", "met"),
    "event.deliver": ("The event it waited for came", "met"),
    "target.look": ("Looked at its target again", "reconcile"),
    "wait.due": ("Its time came", "met"),
    "wake.begin": ("Wake checks began", "checking"),
    "wake.hurry": ("Brought forward: the clock had gone back", "queued"),
    "wake.decide": ("Wake decided: {decision}", "resume"),
    "handoff.own": ("Handoff taken", "accepted"),
    "handoff.give_back": ("Handoff given back", "open"),
    "handoff.close": ("Handoff closed", "closed"),
    "handoff.escalate": ("Handoff escalated", "late"),
    "request.approve": ("“{effect}” approved", "approved"),
    "request.deny": ("“{effect}” denied", "denied"),
    "request.expire": ("Nobody decided on “{effect}” in time", "expired"),
    "request.revise": ("“{effect}” asked again: the policy changed", "pending"),
    "request.withdraw": ("Request about “{effect}” withdrawn: the policy denies it", "withdrawn"),
    "request.withdraw_vote": ("Vote on “{effect}” taken back", "withdrawn"),
    "grant.revoke": ("Approval of “{effect}” revoked", "revoked"),
    "grant.expire": ("Approval of “{effect}” ran out unused", "expired"),
    # administration
    "tenant.open": ("Tenant opened", "open"),
    "agent.add": ("Agent added", "open"),
    "agent.deactivate": ("Agent deactivated", "closed"),
    "agent.reactivate": ("Agent reactivated", "open"),
    "key.issue": ("Key issued", "live"),
    "key.revoke": ("Key revoked", "revoked"),
    "key.rotate": ("Key replaced", "live"),
    "person.add": ("Person added", "open"),
    "person.deactivate": ("Person deactivated", "closed"),
    "person.reactivate": ("Person reactivated", "open"),
    "membership.join": ("Person joined", "open"),
    "membership.leave": ("Person left", "closed"),
    "team.add": ("Team added", "open"),
    "team.join": ("Person joined a team", "open"),
    "team.leave": ("Person left a team", "closed"),
    "permission.grant": ("Right given", "live"),
    "permission.withdraw": ("Right taken away", "revoked"),
    "policy.publish": ("Policy published", "live"),
    "target.register": ("Target “{registered}” registered", "open"),
    "workflow.register": ("Workflow version registered", "open"),
}

DECISIONS: Mapping[str, str] = {
    "resume": "go on",
    "compensate": "undo what was done",
    "replan": "plan again",
    "retry_later": "try again later",
    "ask_again": "ask a person again",
    "reconcile": "find out what happened first",
    "migrate": "move to new code",
    "route_old": "go on with the old version",
    "cancel": "cancel",
    "expire": "expire",
    "finish": "end it as was asked",
    "hand_off": "hand it to a person",
}

LOOKS: Mapping[str, str] = {
    "applied": "it was done",
    "refused": "it was refused",
    "in_progress": "still in progress",
    "absent": "not there",
    "differs": "there, but different",
    "cannot_tell": "can’t tell",
}

REPORTS: Mapping[str, str] = {
    "settle": "Worker reported",
    "late": "Late report, kept as evidence",
    "lookup": "Looked up",
    "replay": "Asked by sending the same again",
    "lapse": "Became unknown",
    "verdict": "Settled by hand",
}

CAUSES: Mapping[str, str] = {
    "not_dispatched": "never left",
    "throttled": "the target asked to slow down",
    "confirmed_absent": "not done, confirmed",
    "rejected": "refused for good",
    "by_agent": "by the agent",
    "denied": "denied",
    "expired": "nobody decided in time",
    "superseded": "replaced by a new plan",
    "left_behind": "the agent went on without the call",
    "cancelled": "the run was cancelled",
    "lapse": "its worker was lost",
    "lease": "its worker was lost",
    "answer_by": "no answer in time",
    "worker": "its worker couldn’t tell",
    "no-lookup": "this target can’t be asked",
    "key-forgotten": "the target no longer remembers the key",
    "leave-ended": "not asked: that sends the request again, and its approval was taken back",
    "run-ending": "not asked: that sends the request again, and the run is to end or has ended",
    "send-by-passed": "not asked: it was too late to send the request again",
    "more-than-one": "more than one under this key",
    "other-content": "its content is another",
}

WITHDRAWN: Mapping[str, str] = {
    "wait_closed": "its wait ended",
    "withdrawn": "the agent did without it",
    "superseded": "the agent planned anew, or its run ended",
    "cancelled": "the run was ended",
}

UNASKABLE = frozenset({"no-lookup", "breaker-open", "leave-ended", "run-ending", "send-by-passed"})
"""Causes of a look-up that was none: no question went out."""

STANDS: Mapping[str, str] = {
    "waiting": "the run waits",
    "waking": "its checks come next",
    "ready": "the next worker takes it",
    "blocked": "the run stands still until a person closes its handoff",
    "completed": "the run has completed",
    "failed": "the run has failed",
    "cancelled": "the run was cancelled",
}

MEMBERS: Mapping[str, str] = {
    "timer": "A time",
    "approval": "Approval of “{effect}”",
    "event": "Event {event}",
    "effect": "Outcome of “{effect}”",
}

DEADLINES = ON_DEADLINE


@dataclass(frozen=True, slots=True)
class Closed:
    """A way to close a handoff, in words: on the form, what it causes, what is said at once, and what is told of it from then on."""

    label: str
    causes: str
    said: str
    was: str


CLOSED: Mapping[str, Closed] = {
    Outcome.WAKE: Closed(
        "Wake the run",
        "Every check is made again. If they pass, a worker takes it from here.",
        "Closed. The run is woken and every check is made again.",
        "the run was woken, to be checked again",
    ),
    Outcome.CANCEL: Closed(
        "Cancel the run",
        "It ends as cancelled. What was done stays done.",
        "Closed. The run is being cancelled.",
        "the run was to end as cancelled",
    ),
    Outcome.FAIL: Closed(
        "Fail the run",
        "It ends as failed. What was done stays done.",
        "Closed. The run is being failed.",
        "the run was to end as failed",
    ),
}
SETTLED = Closed(
    "It is settled",
    "The handoff is closed. The run stays as it is.",
    "Closed. The run stays as it is.",
    "it is settled, and the run stayed as it was",
)
"""The one way to close a handoff that keeps no run from going on."""


def closed(outcome: str, *, blocks: bool) -> Closed:
    """The words for closing a handoff so; one that doesn't block its run moves nothing."""
    return CLOSED[outcome] if blocks else SETTLED


HEALTH: Mapping[str, tuple[str, str]] = {
    # code: (badge state, words)
    Health.UNVERIFIED: ("fail", "Doesn’t verify"),
    Health.BLOCKED: ("stuck", "Needs a person"),
    Health.DISPUTED: ("disputed", "Disputed"),
    Health.UNKNOWN: ("unknown", "Outcome unknown"),
    Health.OVERDUE: ("late", "Wait overdue"),
    Health.LEASE: ("late", "Worker silent"),
    Health.UNCLAIMED: ("late", "Unclaimed"),
    Health.UNCHECKED: ("late", "Wake overdue"),
    Health.NO_APPROVERS: ("stuck", "Nobody can approve"),
}

FROM_WHEN: Mapping[str, str] = {
    Health.UNCLAIMED: f"{HEALTH[Health.UNCLAIMED][1]} for {UNCLAIMED_AFTER // timedelta(minutes=1)} minutes",
    Health.UNVERIFIED: f"{HEALTH[Health.UNVERIFIED][1]}, when checked last",
}
"""Where a filter says more than a badge: from when on something counts."""

EMPTY_QUOTES = re.compile(r"(?: (?:to|at|on|for|of|about))? ?“”")


def verb(code: str) -> tuple[str, str]:
    """(sentence, state) of a verb; one that no table knows is shown as its own words."""
    return VERBS.get(code) or (words(code).capitalize(), "changed")


def cause(code: str) -> str:
    """Why an effect failed or was withdrawn, or why a target couldn’t tell, in words."""
    return CAUSES.get(code) or unseen(code)


def withdrawn(code: str) -> str:
    """Why a request was withdrawn before anybody decided, in words."""
    return WITHDRAWN.get(code, words(code))


def member_words(member: Any, names: Mapping[Any, str]) -> str:
    """What a member of a wait waits for, as a label; `names` are those of effects, by id."""
    effect = names.get(member.effect_id, "an effect")
    event = f"“{member.event_type}”" + (f" of {member.event_subject}" if member.event_subject else "")
    return MEMBERS[member.kind].format(effect=effect, event=event)


def tidy(sentence: str) -> str:
    """A sentence without the places that its entry didn't fill."""
    told = re.sub(r"\s+", " ", EMPTY_QUOTES.sub("", sentence)).strip(" ,:")
    return told[:1].upper() + told[1:]
