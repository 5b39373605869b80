"""Policy versions, and grants that are taken back or run out."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db.models import Max

from ledger.domain import authority as rules
from ledger.domain.authority import GrantRow, Verdict
from ledger.domain.canonical import digest
from ledger.domain.change import Change
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller, Verb
from ledger.domain.views import RunView
from ledger.models import Grant, PolicyVersion, TeamProfile, User, WorkflowType
from ledger.services import administration, facts, permissions, writer
from ledger.services.contracts import REFUSED, writes
from ledger.services.drafts import run_draft
from ledger.services.facts import Part
from ledger.services.views import run_view


@dataclass(frozen=True, slots=True)
class PolicyAnswer:
    id: UUID
    number: int
    digest: bytes


@writes(
    moves="Inserts the next policy version, in force at once.",
    twice="Publishes the same rules once more, under the next number.",
)
def publish_policy(caller: Caller, documents: object) -> PolicyAnswer:
    """A new policy version, in force from now on for every permit, wake and request of the tenant.

    Raises LedgerError `invalid` or `unknown-field` naming the rule, also for an approve rule whose group is no team here.
    """
    checked = rules.read_rules(documents)
    stored = [rule.document() for rule in checked]
    with administration.act(caller, "policy.publish") as draft:
        teams = set(TeamProfile.objects.of(caller.tenant_id).values_list("slug", flat=True))
        for place, rule in enumerate(checked, 1):
            if rule.verdict is Verdict.APPROVE and rule.group not in teams:
                raise LedgerError(
                    "invalid",
                    f"rule {place}: there is no team {rule.group!r} here",
                    "Add the team first, or name another.",
                )
        newest = PolicyVersion.objects.of(caller.tenant_id).aggregate(number=Max("number"))["number"] or 0
        answer = PolicyAnswer(draft.mint(), newest + 1, digest("policy/1", {"rules": stored}))
        draft.insert(
            "policy_version",
            id=answer.id,
            number=answer.number,
            rules=stored,
            digest=answer.digest,
            author=caller.actor,
            created_at=draft.at,
        )
    return answer


@dataclass(frozen=True, slots=True)
class RevokeAnswer:
    """`used`: the call is out, and only further attempts were stopped."""

    grant_id: UUID
    used: bool


@writes(moves="Grant live or used → revoked.", twice=REFUSED)
def revoke_grant(person: User, grant_id: UUID) -> RevokeAnswer:
    """An approver or operator takes leave back, until it ends.

    Raises LedgerError `not-found` where the person sees nothing, `forbidden` without the right, `wrong-state` when it ended before.
    """
    grant = Grant.objects.across_tenants().filter(pk=grant_id).select_related("run").first()
    if grant is None or grant.run is None:
        raise _no_grant()

    def rule(view: RunView) -> tuple[Change, RevokeAnswer]:
        workflow = WorkflowType(pk=view.head.workflow_id, tenant_id=view.run.tenant_id)
        if not permissions.can(person, Verb.SEE, workflow):
            raise _no_grant()
        if not any(permissions.can(person, verb, workflow) for verb in (Verb.APPROVE, Verb.OPERATE)):
            raise LedgerError("forbidden", "you may not take this approval back", "Ask an approver or an operator.")
        row = next(facts.load(GrantRow, found) for found in view.extras["revoked"])
        draft = run_draft(view, f"person:{person.pk}", "grant.revoke", fresh_authority=True)
        used = rules.revoke(draft, row, "by_person")
        return draft.change(), RevokeAnswer(grant_id, used)

    extra = Part("grant", "t.id = %s", (grant_id,))
    answer, _ = writer.settle(lambda: run_view(grant.run_id, grant.tenant_id, revoked=extra), rule)
    return answer


def _no_grant() -> LedgerError:
    return LedgerError("not-found", "there is no such approval here", "Check the id.")
