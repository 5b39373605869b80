"""Authority: policies, what they require, and grants. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any
from uuid import UUID

from ledger.domain.canonical import digest
from ledger.domain.drafts import Draft
from ledger.domain.errors import LedgerError
from ledger.domain.machines import Machine

if TYPE_CHECKING:
    from ledger.domain.effects import EffectRow
    from ledger.domain.views import RunView

MOST_RULES = 200
MOST_QUORUM = 20
LONGEST_WINDOW = 90 * 86_400


class Verdict(StrEnum):
    """What a policy says of a tool."""

    ALLOW = "allow"
    DENY = "deny"
    APPROVE = "approve"


class GrantState(StrEnum):
    LIVE = "live"
    USED = "used"
    EXPIRED = "expired"
    REVOKED = "revoked"
    VOIDED = "voided"


GRANT: Machine[GrantState] = Machine(
    "grant",
    {
        GrantState.LIVE: {
            "use": (GrantState.USED,),
            "expire": (GrantState.EXPIRED,),
            "revoke": (GrantState.REVOKED,),
            "void": (GrantState.VOIDED,),
        },
        GrantState.USED: {"revoke": (GrantState.REVOKED,), "void": (GrantState.VOIDED,)},
        GrantState.EXPIRED: {},
        GrantState.REVOKED: {},
        GrantState.VOIDED: {},
    },
)


@dataclass(frozen=True, slots=True)
class GrantRow:
    id: UUID
    subject_kind: str
    subject_id: UUID
    subject_digest: bytes
    requirement_digest: bytes
    request_id: UUID | None
    revision: int
    state: GrantState
    approved_at: datetime
    use_by: datetime


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """A policy version: its rules in order, as stored."""

    id: UUID
    number: int
    rules: list[dict[str, Any]]
    digest: bytes


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a policy: what it says of the calls whose tool and target its patterns match. Windows are in seconds.

    A tool's name is the agent's own word; a target is registered by an administrator, and nothing else is acted on.
    """

    tool: str
    verdict: Verdict
    group: str = ""
    quorum: int = 1
    decide_by: int = 86_400
    use_by: int = 3_600
    target: str = "*"

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Rule:
        """A rule as stored."""
        return cls(**{**document, "verdict": Verdict(document["verdict"])})

    def document(self) -> dict[str, Any]:
        """The rule as it is stored and shown."""
        return {**{item.name: getattr(self, item.name) for item in fields(self)}, "verdict": str(self.verdict)}


@dataclass(frozen=True, slots=True)
class Requirement:
    """What the policy wants for one tool. `rules` are those that must each be met when the verdict is `approve`."""

    verdict: Verdict
    rules: tuple[Rule, ...] = ()

    @property
    def decide_by(self) -> timedelta:
        """The shortest window of the rules."""
        return timedelta(seconds=min(rule.decide_by for rule in self.rules))

    @property
    def use_by(self) -> timedelta:
        """How long a grant may be used, from its approval."""
        return timedelta(seconds=min(rule.use_by for rule in self.rules))

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Requirement:
        """A requirement as a revision keeps it."""
        return cls(Verdict(document["verdict"]), tuple(Rule.from_document(rule) for rule in document["rules"]))

    def document(self) -> dict[str, Any]:
        """The requirement as a revision keeps it."""
        return {"verdict": str(self.verdict), "rules": [rule.document() for rule in self.rules]}

    def digest(self) -> bytes:
        """Covers what is required and nothing else of the policy, so that an unrelated edit voids nothing."""
        return digest(
            "requirement/1",
            {
                "verdict": str(self.verdict),
                "rules": sorted([rule.group, rule.quorum, rule.decide_by, rule.use_by] for rule in self.rules),
            },
        )


DENY = Requirement(Verdict.DENY)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whose decision an open request wants, as it was asked: the teams, and those of them of whom too few people may give it as of now."""

    groups: tuple[str, ...]
    lacking: tuple[str, ...] = ()


def requirement(policy: PolicyRow | None, tool: str, target: str) -> Requirement:
    """What the policy in force wants for a tool at a target, both by name.

    A matching `deny` wins; then every matching `approve` rule must be met; then `allow`.

    No policy, or no rule that matches, denies.
    """
    rules: Sequence[Rule] = [Rule.from_document(document) for document in policy.rules] if policy else []
    matching = [rule for rule in rules if fnmatchcase(tool, rule.tool) and fnmatchcase(target, rule.target)]
    if not matching or any(rule.verdict is Verdict.DENY for rule in matching):
        return DENY
    asking = tuple(rule for rule in matching if rule.verdict is Verdict.APPROVE)
    return Requirement(Verdict.APPROVE, asking) if asking else Requirement(Verdict.ALLOW)


def read_rules(documents: object) -> tuple[Rule, ...]:
    """Rules from outside, checked. Raises LedgerError `invalid` or `unknown-field`, naming the rule by its place, counted from 1."""
    if not isinstance(documents, list) or not 0 < len(documents) <= MOST_RULES:
        raise LedgerError("invalid", "a policy is a list of rules", f"Send between 1 and {MOST_RULES} rules.")
    return tuple(_read_rule(document, f"rule {place}") for place, document in enumerate(documents, 1))


def _read_rule(document: object, where: str) -> Rule:
    if not isinstance(document, dict):
        raise LedgerError("invalid", f"{where} is not an object", 'Write {"tool": "…", "verdict": "…"}.')
    known = {item.name for item in fields(Rule)}
    if unknown := sorted(str(name)[:40] for name in document.keys() - known):
        raise LedgerError(
            "unknown-field", f"{where} has unknown fields: {', '.join(unknown)}", f"Known: {', '.join(sorted(known))}."
        )
    tool, verdict, group = document.get("tool"), document.get("verdict"), document.get("group", "")
    if not isinstance(tool, str) or not 0 < len(tool) <= 120:
        raise LedgerError("invalid", f"{where} names no tool", "Give `tool` a name or a pattern such as 'refund.*'.")
    target = document.get("target", "*")
    if not isinstance(target, str) or not 0 < len(target) <= 80:
        raise LedgerError("invalid", f"{where} names no target", "Give `target` a name or a pattern, or leave it out.")
    if not isinstance(verdict, str) or verdict not in {str(each) for each in Verdict}:
        raise LedgerError("invalid", f"{where} has no known verdict", "Write allow, deny or approve.")
    if not isinstance(group, str) or (verdict == Verdict.APPROVE) != bool(group):
        raise LedgerError(
            "invalid",
            f"{where}: {'nobody could approve' if verdict == Verdict.APPROVE else 'a group has no meaning here'}",
            "Name a team in `group` of an approve rule, and nowhere else. An empty group means nobody.",
        )
    return Rule(
        tool=tool,
        verdict=Verdict(verdict),
        group=group,
        quorum=_whole(document, "quorum", 1, MOST_QUORUM, where),
        decide_by=_whole(document, "decide_by", 86_400, LONGEST_WINDOW, where),
        use_by=_whole(document, "use_by", 3_600, LONGEST_WINDOW, where),
        target=target,
    )


def _whole(document: Mapping[str, Any], name: str, otherwise: int, most: int, where: str) -> int:
    value = document.get(name, otherwise)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= most:
        raise LedgerError(
            "invalid", f"{where}: {name} is not a whole number from 1 to {most}", "Windows are in seconds."
        )
    return value


def grant_of(view: RunView, effect_id: UUID) -> GrantRow | None:
    """The effect's live grant, or else the newest used one that the view was given: a grant covers the further attempts of its effect."""
    own = [grant for grant in view.grants if grant.subject_id == effect_id]
    own.sort(key=lambda grant: (grant.state is GrantState.LIVE, grant.approved_at))
    return own[-1] if own else None


def give_grant(
    draft: Draft,
    subject_kind: str,
    subject_id: UUID,
    subject_digest: bytes,
    needs: Requirement,
    request_id: UUID | None,
    revision: int,
) -> UUID:
    """Leave for exactly this subject under exactly this requirement; its use-by counts from now. Answers the grant's id."""
    grant_id = draft.mint()
    draft.insert(
        "grant",
        id=grant_id,
        run_id=draft.stream.id,
        subject_kind=subject_kind,
        subject_id=subject_id,
        subject_digest=subject_digest,
        requirement_digest=needs.digest(),
        request_id=request_id,
        revision=revision,
        state=GrantState.LIVE,
        approved_at=draft.at,
        use_by=draft.at + needs.use_by,
    )
    return grant_id


def use_grant(draft: Draft, view: RunView, effect: EffectRow, needs: Requirement, doubt: str = "") -> GrantRow | None:
    """Take the leave that the policy in force wants for one attempt of an effect; None where it wants none.

    `doubt` is what the people's side says against the votes behind the grant, read afresh. Raises LedgerError `policy-denies`,
    `grant-missing`, `grant-void` (subject, requirement or votes are no longer those approved) or `expired`. The attempt must begin before the
    grant's use-by, by the clock after the lock.
    """
    if needs.verdict is Verdict.DENY:
        raise LedgerError(
            "policy-denies", f"the policy in force denies {effect.tool}", "Ask an administrator about the policy."
        )
    if needs.verdict is Verdict.ALLOW:
        return None
    grant = grant_of(view, effect.id)
    if grant is None:
        raise _no_leave(effect)
    _check_grant(draft, effect, needs, grant, doubt)
    draft.before(grant.use_by)
    if grant.state is GrantState.LIVE:
        draft.move("grant", grant.id, {"state": GrantState.LIVE}, state=GRANT.step(GrantState.LIVE, "use"))
    return grant


def _no_leave(effect: EffectRow) -> LedgerError:
    if not effect.attempt:
        return LedgerError(
            "grant-missing", "nobody has approved this effect", "Wait for its approval.", effect=str(effect.id)
        )
    return LedgerError(
        "grant-missing",
        "the approval of its earlier attempt ended when it was taken back or asked for again, and there is no other",
        "Go on without another attempt, or wait for an approval of it.",
        effect=str(effect.id),
    )


def _check_grant(draft: Draft, effect: EffectRow, needs: Requirement, grant: GrantRow, doubt: str) -> None:
    if draft.at >= grant.use_by:
        raise LedgerError(
            "expired",
            "the approval could be used until its use-by, which has passed",
            "It has to be asked for again.",
            grant=str(grant.id),
            use_by=grant.use_by.isoformat(),
        )
    why = doubt
    if grant.subject_digest != effect.subject_digest:
        why = "subject-changed"
    elif grant.requirement_digest != needs.digest():
        why = "requirement-changed"
    if why:
        raise LedgerError(
            "grant-void",
            f"what was approved is no longer what would be done: {why}",
            "It has to be asked for again.",
            grant=str(grant.id),
            why=why,
        )


def void_grant(draft: Draft, grant: GrantRow, cause: str) -> None:
    """A live grant is no longer good, and a used one covers no further attempt. One that ended before stays as it is."""
    if grant.state in (GrantState.LIVE, GrantState.USED):
        late = grant.state is GrantState.LIVE and draft.at >= grant.use_by
        state = GRANT.step(grant.state, "expire" if late else "void")
        draft.move("grant", grant.id, {"state": grant.state}, state=state, cause=cause, closed_at=draft.at)


def revoke(draft: Draft, grant: GrantRow, cause: str) -> bool:
    """Take leave back. True when it had been used: the call is out, and only further attempts are stopped. Raises LedgerError `wrong-state`."""
    state = GRANT.step(grant.state, "revoke")
    draft.move("grant", grant.id, {"state": grant.state}, state=state, cause=cause, closed_at=draft.at)
    return grant.state is GrantState.USED
