"""A card in words: facts of a request as the templates show them, each a plain string with hidden characters made visible."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.urls import reverse

from approvals import receipts
from approvals.context import address
from approvals.domain.requests import CARRIED, Choice
from approvals.models import ApprovalRequest, Revision, Vote
from approvals.renderers import Asked, Words, words_for
from approvals.services import cards, inbox
from approvals.services.cards import Card, Seen
from approvals.templatetags.console import absolute, ago, short, span, visible_text, words
from approvals.views import followups
from ledger.models import Tenant, User

MOST_ROWS = 40
LONGEST_VALUE = 300
MOST_NAMES = 4

STANCES = {
    "voted": "Your vote on this revision is in.",
    "self": "The agent asks on your behalf, or is your own: somebody else has to decide.",
    "no-right": "You may read this, but your account can’t approve in this workflow.",
    "no-group": "You may approve in this workflow, but are in none of the groups that this request needs.",
}
REVISION_REASONS = {
    "asked": "First asked",
    "changed": "Asked again: what it rests on changed",
    "voided": "Asked again: an approval behind it lost its right",
    "vote_withdrawn": "Asked again: an approver took their vote back",
}


def context(card: Card, tenant: Tenant, person: User) -> dict[str, Any]:
    """Everything the card's templates need, with the signed receipt of what they show."""
    asked = words_of(card)
    shown = {
        "headline": visible_text(asked.headline),
        "risk": asked.risk_label,
        "undo": asked.undo,
        "facts": facts(card, tenant),
        "arguments": argument_rows(card.arguments) if card.reads else None,
        "raw": pretty(card.arguments) if card.reads else None,
        "target": target(card),
        "task": visible_text(card.effect.run.task),
        "why": visible_text(card.effect.run.text),
        "quorum": quorum(card, person),
        "causes": causes(card, asked),
        "state": card.state,
        "revision": card.request.revision,
        "digest": bytes(card.request.digest).hex(),
    }
    receipt = receipts.of(_told(shown))
    return {
        **shown,
        "card": card,
        "words": asked,
        "history": history(card, tenant),
        "changes": changes(card),
        "progress": followups.progress(card),
        "stance": STANCES.get(card.stance, ""),
        "receipt": receipts.seal(receipt, card.request.pk, person.pk),
        "token": cards.token(card.request, card.now),
        "claimed_by": visible_text(card.agent.name if card.agent else "the agent"),
        "draft": f"approval-{card.request.pk}-r{card.request.revision}",
        "next": next_one(person, tenant, card.request),
    }


def words_of(card: Card) -> Words:
    """Our words for what the card's effect would do."""
    effect = card.effect
    return words_for(Asked(effect.tool, effect.target.name, effect.resource, card.arguments))


def facts(card: Card, tenant: Tenant) -> list[dict[str, Any]]:
    """Who asks, for whom, with which credential, from which run."""
    run = card.effect.run
    return [
        {
            "label": "Agent",
            "value": visible_text(card.agent.name) if card.agent else "",
            "note": f"version {card.head.version}",
        },
        {"label": "Acts for", "value": visible_text(card.acts_for.name) if card.acts_for else "nobody in particular"},
        {"label": "Credential", "value": card.key_prefix and f"key {card.key_prefix}…", "mono": True},
        {
            "label": "Run",
            "value": visible_text(run.task),
            "href": address("run", tenant.slug, run.pk),
            "note": f"{visible_text(card.workflow.name)}, {words(card.head.status)}",
        },
        {"label": "Tool", "value": visible_text(card.effect.tool), "mono": True},
        {
            "label": "Target",
            "value": visible_text(" ".join(filter(None, [card.effect.target.name, card.effect.resource]))),
            "mono": True,
        },
        {"label": "Asked", "time": card.revision.opened_at},
    ]


def argument_rows(arguments: Any) -> list[dict[str, Any]]:
    """The final arguments, key by key. What is too long for a row says so; the whole of it stands below."""
    if not isinstance(arguments, dict):
        return []
    rows = [{"label": visible_text(key), **_value(value)} for key, value in list(arguments.items())[:MOST_ROWS]]
    if len(arguments) > MOST_ROWS:
        rows.append({"label": "…", "value": f"{len(arguments) - MOST_ROWS} more, all in the text below"})
    return rows


def _value(value: Any) -> dict[str, Any]:
    text = visible_text(value) if isinstance(value, str) else pretty(value)
    if text == "":
        return {"value": '""', "note": "empty text"}
    if len(text) > LONGEST_VALUE:
        return {"value": text[:LONGEST_VALUE] + "…", "note": f"{len(text)} characters, all in the text below"}
    return {"value": text, "mono": not isinstance(value, str)}


def pretty(value: Any) -> str:
    """A parsed JSON value as readable text."""
    return visible_text(json.dumps(value, indent=2, ensure_ascii=False))


def target(card: Card) -> dict[str, Any]:
    """The target's state as observed when it was proposed, against the newest observation."""
    before, newest = card.proposed, card.newest or card.proposed
    if before is None or newest is None:
        said = "Nobody has looked at the target: its state is not known."
        return {"said": said, "moved": False, "known": False, "at": None, "version": "", "rows": [], "since": ""}
    moved = before.version != newest.version
    then, now = visible_text(before.version), visible_text(newest.version)
    rows = diff(before, newest) if card.reads else []
    return {
        "said": f"It was version {then} then." if moved else f"Last seen {ago(newest.at, card.now)}.",
        "moved": moved,
        "known": True,
        "at": newest.at,
        "version": now,
        "rows": rows,
        "since": "asked again" if card.revision.number > 1 else "proposed",
        "drifted": not moved and any(row["changed"] for row in rows),
    }


def diff(before: Seen, after: Seen) -> list[dict[str, Any]]:
    """Field by field, what was seen at proposal and what was seen last; what changed comes first, and what is left out says so."""
    old, new = _fields(before), _fields(after)
    keys = sorted(dict.fromkeys([*old, *new]), key=lambda key: old.get(key) == new.get(key))
    rows: list[dict[str, Any]] = [
        {
            "field": visible_text(key),
            "before": _cut(old[key]) if key in old else None,
            "after": _cut(new[key]) if key in new else None,
            "changed": old.get(key) != new.get(key),
        }
        for key in keys[:MOST_ROWS]
    ]
    if rest := keys[MOST_ROWS:]:
        changed = sum(old.get(key) != new.get(key) for key in rest)
        told = f"{len(rest)} more fields, {changed} of them changed"
        rows.append({"field": "…", "before": told, "after": told, "changed": bool(changed)})
    return rows


def _fields(seen: Seen) -> dict[str, str]:
    if seen.state is None:
        return {}
    if not isinstance(seen.state, dict):
        return {"state": str(seen.state)}
    return {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in seen.state.items()
    }


def _cut(text: str) -> str:
    shown = visible_text(text[:LONGEST_VALUE])
    return shown if len(text) <= LONGEST_VALUE else f"{shown}… ({len(text)} characters)"


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
        "steps": [index < votes.given for index in range(votes.wanted)],
        "rules": [f"{rule.quorum} of {visible_text(rule.group)}" for rule in votes.rules],
        "lacking": [f"{count} of {visible_text(group)}" for group, count in votes.lacking.items()],
        "approving": [
            {"name": visible_text(vote.voter.name), "at": vote.voted_at, "carried": _carried(vote)}
            for vote in votes.approving
        ],
        "can_still": enumerate_names(names, more),
        "impossible": [visible_text(group) or "a group without a name" for group in votes.impossible],
    }


def enumerate_names(names: Sequence[str], more: int) -> str:
    """ "you, Ivo and 2 others"."""
    parts = [*names, *([f"{more} other{'s' if more > 1 else ''}"] if more else [])]
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def causes(card: Card, asked: Words) -> dict[str, str]:
    """What approving, denying and doing nothing each bring about, with absolute times."""
    until = card.now + timedelta(seconds=card.revision.use_by)
    if card.quorum.after:
        approve = f"Your approval counts; {card.quorum.after} more are needed. Nothing is sent before that."
        approve = approve.replace("1 more are", "1 more is")
    else:
        approve = f"The agent may make this call until {absolute(until)} ({span(card.revision.use_by)} from the approval), once."
    return {
        "approve": approve,
        "deny": "The request ends for everyone. The agent gets your reason word for word; nothing is sent.",
        "silence": f"It expires on {absolute(card.request.decide_by)}. Nothing is sent; the agent is told that nobody decided.",
        "button": f"Approve {asked.verb}",
    }


def history(card: Card, tenant: Tenant) -> list[dict[str, Any]]:
    """Votes and revisions of this request and other requests about the same thing, newest first."""
    items = [_vote(vote, card.reads) for vote in card.votes]
    items += [
        {
            "at": row.opened_at,
            "icon": "message",
            "tone": "neutral",
            "title": REVISION_REASONS.get(row.reason, f"Asked again: {words(row.reason)}"),
            "text": f"revision {row.number}, digest {short(row.subject_digest)}",
        }
        for row in card.revisions
    ]
    items += [
        {
            "at": row.closed_at or row.opened_at,
            "state": row.state,
            "title": f"Another request about {visible_text(card.effect.resource)}: {words(row.state)}",
            "href": reverse("approval", args=[tenant.slug, row.pk]),
        }
        for row in card.related
    ]
    return sorted(items, key=lambda item: item["at"], reverse=True)


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
    earlier = next((row for row in card.revisions if row.number == card.revision.number - 1), None)
    return [] if earlier is None else between(earlier, card.revision) + moved(card)


def between(earlier: Revision, later: Revision) -> list[str]:
    """What differs between two askings, in words."""
    told = []
    if bytes(earlier.subject_digest) != bytes(later.subject_digest):
        told.append("What would be done or what it rests on is not the same: the digest changed.")
    if earlier.observation_id != later.observation_id:
        told.append("The target was looked at again.")
    if bytes(earlier.requirement_digest) != bytes(later.requirement_digest):
        told.append("The policy now requires something else.")
    return told or ["Nothing of it changed; the votes of the revision before don’t count any more."]


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
