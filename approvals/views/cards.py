"""A card in words: facts of a request as the templates show them, each a plain string with hidden characters made visible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.urls import reverse

from approvals import receipts
from approvals.domain.requests import CARRIED, Choice
from approvals.models import ApprovalRequest, Revision, Vote
from approvals.renderers import Asked, Words, words_for
from approvals.services import cards, inbox
from approvals.services.cards import Card
from approvals.templatetags.console import absolute, short, span, visible_text, words
from approvals.views import earlier, evidence, followups, lately, sources, targets
from approvals.views.documents import argument_rows, diff, pretty
from approvals.views.earlier import LEAVE, TARGET_CHANGED
from ledger.domain.authority import Verdict
from ledger.domain.effects import EffectState
from ledger.domain.identity import Verb
from ledger.domain.waits import Inaction
from ledger.models import Tenant, User
from ledger.services import permissions

MOST_NAMES = 4

HIDDEN = "Not shown to you: it needs the right to payloads in {workflow}, which an administrator can give you."
STANCES = {
    "voted": "Your vote on this revision is in.",
    "self": "The agent asks on your behalf, or is your own: somebody else has to decide.",
    "no-right": "You may read this, but your account can’t approve in this workflow.",
    "no-group": "You may approve in this workflow, but are in none of the teams that this request needs.",
}
TAKE_BACK = "Then the agent may not make this call. It may ask again; you or others decide anew."
REVISION_REASONS = {
    "asked": "First asked",
    "changed": "Asked again: what it rests on changed",
    "voided": "Asked again: the approval that was given no longer holds",
    "policy_changed": "Asked again: the policy wants something else",
    "vote_withdrawn": "Asked again: an approver took their vote back",
}


def context(card: Card, tenant: Tenant, person: User) -> dict[str, Any]:
    """Everything the card's templates need, with the signed receipt of what they show."""
    asked = earlier.graver(card, words_of(card))
    shown = {
        "headline": visible_text(asked.headline),
        "risk": asked.risk_label,
        "undo": asked.undo,
        "facts": sources.facts(card, tenant, audits=permissions.can(person, Verb.AUDIT, tenant)),
        "arguments": argument_rows(card.arguments) if card.reads else None,
        "raw": pretty(card.arguments) if card.reads else None,
        "target": targets.context(card, tenant),
        "task": visible_text(card.effect.run.task),
        "why": visible_text(card.effect.run.text),
        "quorum": quorum(card, person),
        "causes": causes(card, asked),
        "warning": visible_text(asked.warning),
        "unrendered": visible_text(asked.note),
        "policy": policy_changed(card),
        "would": differences(asked),
        "reach": [visible_text(line) for line in asked.reach],
        "evidence": evidence.context(card, tenant),
        "state": card.state,
        "pill": earlier.pill(card),
        "earlier": earlier.context(card),
        "lately": lately.context(card, tenant),
        "revision": card.request.revision,
        "digest": bytes(card.request.digest).hex(),
    }
    receipt = receipts.of(_told(shown), asked.renderer)
    return {
        **shown,
        "card": card,
        "hidden": HIDDEN.format(workflow=visible_text(card.workflow.name)),
        "warned": "Look twice." if card.pending else "It was shown with this warning.",
        "seen_as": targets.seen_as(card),
        "told_as": told_as(card, asked),
        "words": asked,
        "history": history(card, tenant),
        "others": others(card, tenant),
        "changes": changes(card),
        "progress": followups.progress(card, tenant),
        "stance": STANCES.get(card.stance, ""),
        "receipt": receipts.seal(receipt, card.request.pk, person.pk),
        "token": cards.token(card.request, card.now),
        "claimed_by": visible_text(card.agent.name if card.agent else "the agent"),
        "draft": f"approval-{card.request.pk}-r{card.request.revision}",
        "take_back": TAKE_BACK,
        "next": next_one(person, tenant, card.request),
    }


def words_of(card: Card) -> Words:
    """Our words for what the card's effect would do, as it was seen when it was decided; who may not see its contents is told so."""
    effect = card.effect
    seen = card.shown.state if card.shown else None
    told = words_for(Asked(effect.tool, effect.target.name, effect.resource, card.arguments, seen))
    if card.reads:
        return told
    return replace(told, risk="cannot_tell", risk_label="Risk not shown to you", undo="", note="")


def told_as(card: Card, asked: Words) -> str:
    """Which other renderer, or other version, told the card to who decided; '' where it was the one that tells it now, or nobody decided."""
    names = {vote.renderer.rpartition(" ")[2] for vote in card.votes if vote.revision == card.revision.number}
    return ", ".join(sorted(visible_text(name) for name in names - {asked.renderer, ""})) if not card.pending else ""


def differences(asked: Words) -> list[dict[str, Any]]:
    """What the call would change, in the renderer's words, as rows of `partials/_diff.html`."""
    return [
        {
            "field": visible_text(each.what),
            "before": None if each.before is None else visible_text(each.before),
            "after": None if each.after is None else visible_text(each.after),
            "changed": each.before != each.after,
        }
        for each in asked.differences
    ]


def quorum(card: Card, person: User) -> dict[str, Any]:
    """How many approvals there are and are wanted, of which groups, and who can still give one."""
    votes = card.quorum
    others = [user.name for user in votes.can_still if user.pk != person.pk]
    me = ["you"] if len(others) < len(votes.can_still) else []
    names = me + [visible_text(name) for name in others[: MOST_NAMES - len(me)]]
    more = len(votes.can_still) - len(names)
    return {
        "given": votes.given,
        "wanted": votes.wanted,
        "rules": [approvals_of(rule.quorum, rule.group, votes.teams) for rule in votes.rules],
        "approving": [
            {"name": visible_text(vote.voter.name), "at": vote.voted_at, "carried": _carried(vote)}
            for vote in votes.approving
        ],
        "can_still": enumerate_names(names, more),
        "impossible": [team(group, votes.teams) for group in votes.impossible],
    }


def policy_changed(card: Card) -> str:
    """What the policy in force wants, where that isn't what was asked: an approval wouldn't hold. '' where it would."""
    now = card.policy.wants
    if now is None or not card.pending:
        return ""
    if now.verdict is Verdict.DENY:
        return "The policy in force denies this call: nobody can approve it any more. Deny it, or it is withdrawn."
    rules = " and ".join(approvals_of(rule.quorum, rule.group, card.quorum.teams) for rule in now.rules)
    return f"The policy in force wants {rules}. Approving asks everybody again under that policy, and counts no vote on this revision."


def team(slug: str, names: Mapping[str, str]) -> str:
    """A rule's team as people know it: "the team Refund approvers"."""
    return f"the team {visible_text(names.get(slug) or slug)}" if slug else "a team without a name"


def approvals_of(count: int, slug: str, names: Mapping[str, str]) -> str:
    """ "1 approval from the team Refund approvers"."""
    return f"{count} approval{'s' if count != 1 else ''} from {team(slug, names)}"


def enumerate_names(names: Sequence[str], more: int) -> str:
    """ "you, Ivo and 2 others"."""
    parts = [*names, *([f"{more} other{'s' if more > 1 else ''}"] if more else [])]
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


SILENCE: Mapping[Inaction, str] = {
    Inaction.WAKE: "the agent goes on and is told that nobody decided",
    Inaction.CANCEL: "the run is cancelled",
    Inaction.FAIL: "the run fails",
    Inaction.HAND_OFF: "the run is handed to an operator",
    Inaction.FIRE: "the agent waits no longer than that and goes on without it",
}


_DENY = "The request ends for everyone. The agent gets your reason word for word; nothing is sent."
_DENY_RETRY = (
    "The request ends for everyone and nothing is sent. The call failed before, so the run goes to an operator; once they wake it,"
    " the agent gets your reason word for word."
)


def causes(card: Card, asked: Words) -> dict[str, Any]:
    """What approving, denying and doing nothing each bring about, with absolute times; `ends` is when nothing can be decided any more."""
    action, ends = card.silence
    expires = "is withdrawn" if action is Inaction.FIRE else "expires"
    until = card.now + timedelta(seconds=card.revision.use_by)
    if card.quorum.after:
        approve = f"Your approval counts; {card.quorum.after} more are needed. Nothing is sent before that."
        approve = approve.replace("1 more are", "1 more is")
    else:
        approve = f"The agent may make this call until {absolute(until)} ({span(card.revision.use_by)} from the approval), once."
    return {
        "approve": approve,
        "deny": _DENY_RETRY if card.effect.state == EffectState.FAILED else _DENY,
        "silence": f"On {absolute(ends)} it {expires}. Nothing is sent; {SILENCE[action]}.",
        "ends": ends,
        "then": f"it {expires} and nothing is sent",
        "button": f"Approve {asked.verb}",
    }


def history(card: Card, tenant: Tenant) -> list[dict[str, Any]]:
    """Votes and revisions of this request, newest first."""
    record = sources.run(card, tenant, "authority")
    items = [{**_vote(vote, card.reads), "href": record} for vote in card.votes]
    items += [
        {
            "at": row.opened_at,
            "icon": "message",
            "tone": "neutral",
            "title": revision_reason(row, anew=card.earlier is not None, broke=card.broke.get(row.number, "")),
            "text": f"revision {row.number}, digest {short(row.subject_digest)}",
            "href": record,
        }
        for row in card.revisions
    ]
    return sorted(items, key=lambda item: item["at"], reverse=True)


def others(card: Card, tenant: Tenant) -> list[dict[str, Any]]:
    """Other requests about the same thing, and what became of them, newest first."""
    items = [
        {
            "at": row.closed_at or row.opened_at,
            "state": card.spent.get(row.pk, row.state),
            "title": f"{_other(row, card)} request about {visible_text(card.effect.resource)}: {became(row, card)}",
            "href": reverse("approval", args=[tenant.slug, row.pk]),
        }
        for row in card.related
    ]
    return sorted(items, key=lambda item: item["at"], reverse=True)


def _other(row: ApprovalRequest, card: Card) -> str:
    return "A later" if card.over_at is not None and row.opened_at > card.over_at else "Another"


def became(row: ApprovalRequest, card: Card) -> str:
    """What became of another request: leave that came to nothing is not told as one that holds."""
    ended = {"voided": "then void", "revoked": "then taken back", "expired": "then not used in time"}
    spent = ended.get(card.spent.get(row.pk, ""), "")
    return f"{words(row.state)}, {spent}" if spent else words(row.state)


def revision_reason(row: Revision, *, anew: bool, broke: str = "") -> str:
    """Why a revision was asked, with what `broke` the leave before it, where that is on record. What is asked anew after an earlier request, or
    after leave is gone, is no first asking."""
    if row.number == 1 and anew and row.reason == "asked":
        return "Asked anew, after an earlier request"
    if row.number > 1 and broke in LEAVE:
        return f"Asked again: {LEAVE[broke]}"
    if row.number > 1 and row.reason == "asked":
        return "Asked again: the leave that was given no longer stands"
    return REVISION_REASONS.get(row.reason, f"Asked again: {words(row.reason)}")


def _vote(vote: Vote, reads: bool) -> dict[str, Any]:
    content = vote.reason_body.content if vote.reason_body else None
    reason = bytes(content).decode() if content is not None else ""
    denied = vote.choice == Choice.DENY
    return {
        "at": vote.voted_at,
        "state": "denied" if denied else "approved",
        "title": f"{'Denied' if denied else 'Approved'} by {visible_text(vote.voter.name)}",
        "text": f"revision {vote.revision}{_carried(vote)}",
        "details": visible_text(reason) if reads else "",
        "details_label": "Reason" if denied else "Comment",
    }


def _carried(vote: Vote) -> str:
    return ", carried over from the revision before" if vote.entry_point == CARRIED else ""


def changes(card: Card) -> list[str]:
    """What the current revision differs in from the one before it."""
    before = next((row for row in card.revisions if row.number == card.revision.number - 1), None)
    if before is None:
        return []
    told = between(before, card.revision) + moved(card)
    broke = card.broke.get(card.revision.number, "")
    if broke in LEAVE or earlier.set_up_since(card, before.opened_at):
        why = earlier.void(card, broke if broke in LEAVE else TARGET_CHANGED, before.opened_at)
        told.insert(0, f"{why[:1].upper()}{why[1:]}.")
    if told:
        return told
    if card.revision.reason == "vote_withdrawn":
        return ["Nothing of it changed: an approver took their vote back."]
    return ["Nothing of it changed; the votes of the revision before don’t count any more."]


def between(before: Revision, after: Revision) -> list[str]:
    """What differs between two askings, in words."""
    told = []
    if bytes(before.subject_digest) != bytes(after.subject_digest):
        told.append("What would be done or what it rests on is not the same: the digest changed.")
    if before.observation_id != after.observation_id:
        told.append("The target was looked at again.")
    if bytes(before.requirement_digest) != bytes(after.requirement_digest):
        told.append("The policy now requires something else.")
    return told


def moved(card: Card) -> list[str]:
    """What the target showed when the revision before was asked, against what this one rests on, field by field."""
    before, now = card.before, card.proposed
    if before is None or now is None or before.id == now.id:
        return []
    told = []
    if before.version != now.version:
        told.append(f"The target was version {visible_text(before.version)} and is {visible_text(now.version)}.")
    rows = diff(before, now) if card.reads else []
    return told + [_went(row) for row in rows if row["changed"]]


def _went(row: dict[str, Any]) -> str:
    was, now = ("not there" if value is None else value for value in (row["before"], row["after"]))
    return f"Of the target, {row['field']} was {was} and is {now}."


def next_one(person: User, tenant: Tenant, request: ApprovalRequest) -> str:
    """The address of the next request that waits for this person, if any."""
    found = inbox.pending_for(person, tenant).exclude(pk=request.pk).values_list("pk", flat=True).first()
    return reverse("approval", args=[tenant.slug, found]) if found else ""


def _told(value: Any) -> Any:
    """What was shown, as the canonical form takes it: times as text."""
    if isinstance(value, dict):
        return {key: _told(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_told(item) for item in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    return str(value)
