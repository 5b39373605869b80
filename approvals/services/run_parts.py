"""The parts of a run's page that hang on its history: wakes with their checks, waits, checkpoints, authority."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, Subquery
from django.urls import reverse
from django.utils.text import Truncator

from approvals.domain.checks import phrases
from approvals.domain.differences import Difference, difference
from approvals.domain.requests import CARRIED, Choice
from approvals.labels import DEADLINES, DECISIONS, cause, member_words, withdrawn
from approvals.models import ApprovalRequest, Vote
from approvals.services.pieces import Content, Cursor, content, parsed
from approvals.templatetags.console import visible_text as shown
from ledger.domain.effects import EffectState
from ledger.domain.phrases import CHECKS, GRANTS, finding, words
from ledger.domain.waits import SetMode, silence
from ledger.models import Checkpoint, Decision, Grant, Tenant, WaitMember, WaitSet, WakeCheck

MOST_DECISIONS = 3
MOST_CHECKPOINTS = 11
MOST_ASKED = 20
MOST_REASON = 200
"""Characters of a reason that stand in a line; its card has the whole of it."""


@dataclass(frozen=True, slots=True)
class CheckLine:
    """One check: `partials/_matrix.html`."""

    label: str
    answer: str
    recorded: str
    observed: str
    reason: str
    href: str = ""
    recorded_value: str = ""
    observed_value: str = ""


@dataclass(frozen=True, slots=True)
class WakeLine:
    """One decision with every check behind it."""

    id: UUID
    decision: str
    words: str
    reasons: str
    at: datetime
    rule: str
    facts: str
    transition: str
    checks: tuple[CheckLine, ...]
    passed: int


@dataclass(frozen=True, slots=True)
class MemberLine:
    what: str
    state: str
    outcome: str
    due: datetime | None
    met: datetime | None
    href: str


@dataclass(frozen=True, slots=True)
class WaitLine:
    state: str
    title: str
    deadline: datetime
    does: str
    passed: int
    """How much of the time from its opening to its deadline is over, in per cent."""
    members: tuple[MemberLine, ...]


@dataclass(frozen=True, slots=True)
class CheckpointLine:
    seq: int
    kind: str
    last: str
    next: str
    version: str
    code: str
    fence: str
    digest: str
    at: datetime
    state: Content
    changes: Difference | None
    opened: bool = False
    """Shown open: the newest that changed the state, or the newest of all."""


@dataclass(frozen=True, slots=True)
class AuthorityLine:
    """A request or a grant: what for, how it stands, who voted."""

    what: str
    state: str
    text: str
    at: datetime
    until: datetime | None
    href: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """How much of a run's history a section shows, of how much, where what is older begins ('' at the end), and whether these are the newest."""

    shown: int
    total: int
    older: str
    newest: bool


def wakes(
    tenant: Tenant, run_id: UUID, names: Mapping[str, str], before: str = ""
) -> tuple[tuple[WakeLine, ...], Part]:
    """A few decisions, newest first, each with its checks as a matrix of recorded against observed. `names` are those of effects, by id.

    `before` is where the page before ended. Raises LedgerError `invalid` for a page that isn't one.
    """
    every = Decision.objects.of(tenant).filter(run_id=run_id)
    total = Subquery(every.order_by().values("run_id").annotate(n=Count("pk")).values("n"))
    rows = every.annotate(total=total).order_by("-decided_at", "-pk")
    cursor = Cursor.parse(before)
    if cursor is not None:
        rows = rows.filter(Q(decided_at__lt=cursor.at) | Q(decided_at=cursor.at, pk__lt=cursor.id))
    found = list(rows[: MOST_DECISIONS + 1])
    more, found = len(found) > MOST_DECISIONS, found[:MOST_DECISIONS]
    older = str(Cursor(found[-1].decided_at, found[-1].pk)) if more else ""
    part = Part(len(found), found[0].total if found else 0, older, newest=cursor is None)
    checks: dict[UUID, list[WakeCheck]] = defaultdict(list)
    for check in WakeCheck.objects.of(tenant).filter(decision_id__in=[d.pk for d in found]).order_by("ordinal")[:300]:
        checks[check.decision_id].append(check)
    return tuple(_wake(decision, checks[decision.pk], names) for decision in found), part


def wake(tenant: Tenant, decision_id: UUID, names: Mapping[str, str]) -> WakeLine | None:
    """One decision with its checks, however many came after it."""
    found = Decision.objects.of(tenant).filter(pk=decision_id).first()
    if found is None:
        return None
    return _wake(found, list(WakeCheck.objects.of(tenant).filter(decision=found).order_by("ordinal")[:300]), names)


def _wake(decision: Decision, checks: Sequence[WakeCheck], names: Mapping[str, str]) -> WakeLine:
    reasons = [finding(str(code)) for code in decision.reasons if code != "checks:passed"]
    return WakeLine(
        id=decision.pk,
        decision=decision.decision,
        words=DECISIONS.get(decision.decision, words(decision.decision)),
        reasons=shown("; ".join(reasons)),
        at=decision.decided_at,
        rule=decision.rule_version,
        facts=bytes(decision.facts_digest).hex()[:12],
        transition=shown(decision.transition),
        checks=tuple(_check(check, names) for check in sorted(checks, key=lambda check: check.answer == "pass")),
        passed=sum(check.answer == "pass" for check in checks),
    )


def _check(check: WakeCheck, names: Mapping[str, str]) -> CheckLine:
    """A check's subject is an effect's id, or another row's, which tells people nothing."""
    label, told = CHECKS.get(check.name, words(check.name).capitalize()), phrases(check)
    return CheckLine(
        label=f"{label}, “{shown(names[check.subject])}”" if check.subject in names else label,
        answer=check.answer,
        recorded=shown(told.recorded),
        observed=shown(told.observed),
        reason="",
        recorded_value=shown(told.recorded_value),
        observed_value=shown(told.observed_value),
    )


def wait(
    tenant: Tenant, run_id: UUID, effects: Mapping[UUID, Any], requests: Mapping[UUID, UUID], now: datetime
) -> WaitLine | None:
    """The newest wait with its members; `requests` are the requests of the effects that are waited for."""
    newest_first = WaitSet.objects.of(tenant).filter(run_id=run_id).order_by("-opened_at", "-pk")
    rows = WaitMember.objects.of(tenant).filter(wait_id=Subquery(newest_first.values("pk")[:1]))
    members = list(rows.select_related("wait").order_by("ordinal"))
    if not members:
        return None
    newest = members[0].wait
    action, ends = silence(newest, members, {pk for pk, each in effects.items() if each.state == EffectState.FAILED})
    names = {pk: shown(effect.name) for pk, effect in effects.items()}
    mode = "any of these" if newest.mode == SetMode.ANY else "all of these"
    title = {
        "retry_later": "Tries again by itself",
        "reconcile": "An outcome to be known",
        "ask_again": "Approval, again",
    }
    return WaitLine(
        state=newest.state,
        title=title.get(newest.internal, mode if len(members) > 1 else ""),
        deadline=ends,
        does=DEADLINES[action],
        passed=_passed(newest.opened_at, ends, now),
        members=tuple(
            MemberLine(
                what=shown(member_words(member, names)),
                state=member.state,
                outcome=words(member.outcome),
                due=member.due_at,
                met=member.met_at,
                href=_where(tenant, member, requests),
            )
            for member in members
        ),
    )


def _passed(opened: datetime, ends: datetime, now: datetime) -> int:
    whole = (ends - opened).total_seconds()
    return max(0, min(100, round(100 * (now - opened).total_seconds() / whole))) if whole > 0 else 100


def _where(tenant: Tenant, member: WaitMember, requests: Mapping[UUID, UUID]) -> str:
    if member.effect_id is None:
        return ""
    if member.kind == "approval" and member.effect_id in requests:
        return reverse("approval", args=[tenant.slug, requests[member.effect_id]])
    return reverse("effect", args=[tenant.slug, member.effect_id])


def checkpoints(
    tenant: Tenant, run_id: UUID, before: int | None = None, *, may_see: bool
) -> tuple[tuple[CheckpointLine, ...], Part]:
    """Some checkpoints, newest first, those before a sequence where one is given; each but the run's first with what changed in the state since
    the one before."""
    every = Checkpoint.objects.of(tenant).filter(run_id=run_id)
    total = Subquery(every.order_by().values("run_id").annotate(n=Count("pk")).values("n"))
    found = every.annotate(total=total).select_related("state").order_by("-seq")
    rows = list((found if before is None else found.filter(seq__lt=before))[:MOST_CHECKPOINTS])
    documents = {row.pk: parsed(row.state) for row in rows}
    lines = []
    for row, older in zip(rows, [*rows[1:], None], strict=True):
        changes = None
        if may_see and older is not None and documents[row.pk] is not None and documents[older.pk] is not None:
            changes = _shown(difference(documents[older.pk], documents[row.pk]))
        lines.append(
            CheckpointLine(
                seq=row.seq,
                kind=row.kind,
                last=shown(row.last_transition),
                next=shown(row.next_transition),
                version=shown(row.version),
                code=shown(row.code_version),
                fence=f"{row.fence_epoch}.{row.fence_count}",
                digest=bytes(row.digest).hex(),
                at=row.created_at,
                state=content(row.state, may_see=may_see),
                changes=changes,
            )
        )
    told = lines[: MOST_CHECKPOINTS - 1]
    opened = next((number for number, line in enumerate(told) if line.changes and line.changes.lines), 0)
    told = [replace(line, opened=number == opened) for number, line in enumerate(told)]
    older = str(told[-1].seq) if len(lines) > len(told) else ""
    return tuple(told), Part(len(told), rows[0].total if rows else 0, older, newest=before is None)


def _shown(found: Difference) -> Difference:
    visible = [
        type(line)(
            field=shown(line.field),
            before=None if line.before is None else shown(line.before),
            after=None if line.after is None else shown(line.after),
        )
        for line in found.lines
    ]
    return Difference(tuple(visible), found.more)


def requests_of(tenant: Tenant, run_id: UUID) -> list[ApprovalRequest]:
    """The run's newest requests for leave, newest first: one more than its page shows."""
    return list(
        ApprovalRequest.objects.of(tenant).filter(run_id=run_id).order_by("-opened_at", "-pk")[: MOST_ASKED + 1]
    )


def authority(
    tenant: Tenant,
    run_id: UUID,
    asked: Sequence[ApprovalRequest],
    effects: Mapping[UUID, Any],
    apart: Mapping[UUID, str],
    *,
    may_see: bool,
) -> tuple[tuple[AuthorityLine, ...], bool]:
    """Requests with their votes, and grants, newest first, and whether there are more: two queries."""
    votes: dict[UUID, list[Vote]] = defaultdict(list)
    rows = Vote.objects.of(tenant).filter(request_id__in=[request.pk for request in asked])
    for vote in rows.select_related("voter", "reason_body").order_by("voted_at")[: MOST_ASKED * 10]:
        votes[vote.request_id].append(vote)
    grants = list(Grant.objects.of(tenant).filter(run_id=run_id).order_by("-approved_at", "-pk")[: MOST_ASKED + 1])

    def what(subject: UUID) -> str:
        name = f"“{shown(effects[subject].name)}”" if subject in effects else "an effect"
        return f"{name} {apart[subject]}" if apart.get(subject) else name

    lines = [
        AuthorityLine(
            what=f"Request about {what(request.subject_id)}",
            state=request.state,
            text=shown(_votes(votes[request.pk], request, may_see=may_see)),
            at=request.closed_at or request.opened_at,
            until=request.decide_by if request.state == "pending" else None,
            href=reverse("approval", args=[tenant.slug, request.pk]),
        )
        for request in asked[:MOST_ASKED]
    ]
    lines += [
        AuthorityLine(
            what=f"Leave to call {what(grant.subject_id)} once",
            state=grant.state,
            text=shown(GRANTS.get(grant.cause) or cause(grant.cause)),
            at=grant.closed_at or grant.approved_at,
            until=grant.use_by if grant.state == "live" else None,
        )
        for grant in grants[:MOST_ASKED]
    ]
    return tuple(sorted(lines, key=lambda line: (line.until is not None, line.at), reverse=True)), max(
        len(asked), len(grants)
    ) > MOST_ASKED


TOLD = {Choice.APPROVE: "approved by", Choice.DENY: "denied by"}


def _votes(votes: Sequence[Vote], request: ApprovalRequest, *, may_see: bool) -> str:
    """Who voted on what is asked now, then who did on revisions before it: theirs count no more, and are told as void."""
    now = [
        *(_vote(vote, may_see=may_see) for vote in votes if vote.revision == request.revision),
        withdrawn(request.cause),
    ]
    if request.revision == 1:
        return ", ".join(part for part in now if part)
    present = ", ".join(part for part in now if part) or "no vote yet"
    return "; ".join([f"revision {request.revision}: {present}", *_void(votes, request.revision, may_see=may_see)])


def _void(votes: Sequence[Vote], revision: int, *, may_see: bool) -> list[str]:
    told = []
    for number in sorted({vote.revision for vote in votes if vote.revision < revision}, reverse=True):
        said = ", ".join(_vote(vote, may_see=may_see) for vote in votes if vote.revision == number)
        told.append(f"revision {number}: {said}, void since it was asked again")
    return told


def _vote(vote: Vote, *, may_see: bool) -> str:
    carried = " (carried over)" if vote.entry_point == CARRIED else ""
    reason = Truncator(content(vote.reason_body, may_see=may_see).text).chars(MOST_REASON)
    return f"{TOLD[Choice(vote.choice)]} {vote.voter.name}{carried}{f', “{reason}”' if reason else ''}"
