"""Read effects: what a verb needs beside the run's view, one effect with its evidence, and what is due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from ledger.domain import effects as rules
from ledger.domain.authority import GrantRow, GrantState
from ledger.domain.canonical import Body
from ledger.domain.change import Change
from ledger.domain.effects import EffectRow, EffectState, PermitRow, Read, ReportRow, SeenVersion, TargetRow
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller
from ledger.domain.runs import Fence, check_fence, check_holder
from ledger.domain.views import RunView
from ledger.services import committed, facts, permissions
from ledger.services.effects.sighted import bound_parts, recorded_body
from ledger.services.facts import Anchor, Part, Row
from ledger.services.packets import EffectFacts
from ledger.services.ports import approvals
from ledger.services.views import RUN, view_at

_OF = "(SELECT e.{} FROM ledger_effect e WHERE e.id = %s)"
_RUN = _OF.format("run_id")


def not_found() -> LedgerError:
    """An effect that is missing or somebody else's."""
    return LedgerError(
        "not-found", "there is no such effect here", "Check the id, and that the key belongs to its tenant."
    )


@dataclass(frozen=True, slots=True)
class Seat:
    """A run's view with one of its effects, which may be of an earlier transition."""

    view: RunView
    effect: EffectRow


def seat(effect_id: UUID, tenant_id: UUID | None, **extra: Part) -> Seat:
    """Read an effect together with its run: one statement on PostgreSQL. Raises LedgerError `not-found` for a foreign or missing effect."""
    at = Anchor(f"{RUN} JOIN ledger_effect e ON e.run_id = h.run_id", "e.id = %s", (effect_id,))
    parts = {**approvals().parts(), **extra, "one_effect": Part("effect", own="e")}
    try:
        view = view_at(at, tenant_id, None, parts)
    except LedgerError:
        raise not_found() from None
    effect = facts.load(EffectRow, view.extras["one_effect"][0])
    return Seat(view if view.effect(effect_id) is None else view.having(effect), effect)


def seat_for(caller: Caller, effect_id: UUID, **extra: Part) -> Seat:
    """`seat` for a caller: effects of a type that their key isn't for aren't there. Raises LedgerError `not-found`."""
    found = seat(effect_id, caller.tenant_id, **extra)
    if not caller.reaches(found.view.workflow):
        raise not_found()
    return found


def content_parts(effect_id: UUID) -> dict[str, Part]:
    """The stored request and result of an effect: what an answer shows of it."""
    contents = f"t.id = {_OF.format('request_id')} OR t.id = {_OF.format('result_id')}"
    return {"contents": Part("body", contents, (effect_id,) * 2, many=True)}


def permit_parts(effect_id: UUID, key_id: UUID | None) -> dict[str, Part]:
    """What a permit is decided from: the key that asks and the agents behind it and the run; last permit, request, usable grants, newest
    observation of the resource."""
    one = (effect_id,)
    runs_agent = f"(SELECT r.agent_id FROM ledger_run r WHERE r.id = {_RUN})"
    seen = " AND ".join(f"{{0}}.{name} = {_OF.format(name)}" for name in ("target_id", "resource", "run_id"))
    matters = f"(SELECT g.material FROM ledger_target g WHERE g.id = {_OF.format('target_id')}) <> '[]'"
    newest = f"SELECT o.body_id FROM ledger_observation o WHERE {seen.format('o')} ORDER BY o.observed_at DESC LIMIT 1"
    return {
        "asking_key": Part("api_key", "t.id = %s", (key_id,), many=True),
        "agents": Part(
            "agent",
            f"t.id = {runs_agent} OR t.id = (SELECT k.agent_id FROM ledger_api_key k WHERE k.id = %s)",
            (effect_id, key_id),
            many=True,
        ),
        "permits": Part("permit", "t.effect_id = %s", one, many=True, order="t.attempt DESC", limit=1),
        **content_parts(effect_id),
        **last_word(effect_id),
        "usable": Part("grant", "t.subject_id = %s AND t.state IN ('live', 'used')", one, many=True),
        "seen": Part("observation", seen.format("t"), one * 3, many=True, order="t.observed_at DESC", limit=1),
        "seen_body": Part("body", f"{matters} AND t.id = ({newest})", one * 4, many=True),
        **bound_parts("e.id = %s", effect_id),
    }


def last_word(effect_id: UUID) -> dict[str, Part]:
    """What counted last of all that was said of an effect."""
    return {
        "last_word": Part(
            "effect_report", "t.effect_id = %s AND t.counted", (effect_id,), many=True, order="t.ordinal DESC", limit=1
        )
    }


def words_of(view: RunView) -> dict[UUID, ReportRow]:
    """What `last_word` and its like read, by effect."""
    rows = [facts.load(ReportRow, row) for row in view.extras["last_word"]]
    return {row.effect_id: row for row in rows}


def inactive(view: RunView) -> str:
    """Who behind the run is no longer active, as of now; guarded, like the key, by the tenant's version."""
    if any(not agent["active"] for agent in view.extras["agents"]):
        return "agent"
    person = view.run.on_behalf_of_id
    return "person" if person is not None and not permissions.member(person, view.run.tenant_id) else ""


def report_parts(effect_ids: Sequence[UUID], agent_id: UUID | None) -> dict[str, Part]:
    """What workers reported of these effects, with its evidence, for recognising a repeat; what else counted; the permits that this agent had."""
    these = f"({', '.join(['%s'] * len(effect_ids))})"
    told = f"FROM ledger_effect_report r WHERE r.effect_id IN {these} AND r.kind IN ('settle', 'late')"
    own = f"t.effect_id IN {these} AND t.key_id IN (SELECT k.id FROM ledger_api_key k WHERE k.agent_id = %s)"
    return {
        "told": Part(
            "effect_report",
            f"t.effect_id IN {these} AND (t.counted OR t.kind IN ('settle', 'late'))",
            tuple(effect_ids),
            many=True,
            order="t.ordinal",
        ),
        "own_permits": Part("permit", own, (*effect_ids, agent_id), many=True),
        "told_bodies": Part("body", f"t.id IN (SELECT r.evidence_id {told})", tuple(effect_ids), many=True),
    }


def shown(view: RunView, effect: EffectRow, change: Change | None) -> EffectFacts:
    """An effect as the Change leaves it, with what was read by `content_parts` or `committed.parts`."""
    return committed.effect(effect, view.extras["contents"], view.targets, change)


def check_held(caller: Caller, view: RunView, fence: Fence) -> None:
    """The caller holds the run. Raises LedgerError as `check_holder` and `check_fence`."""
    check_holder(view, caller.agent_id)
    check_fence(view.head, fence)


def body_of(rows: Sequence[Row], body_id: UUID) -> Body | None:
    """A stored body among rows read; None when it is missing or erased."""
    row = next((row for row in rows if row["id"] == body_id), None)
    if row is None or row["erased_at"] is not None:
        return None
    return Body(row["id"], row["salt"], row["content"], row["media"])


def newest_seen(rows: Sequence[Row], bodies: Sequence[Row]) -> SeenVersion | None:
    """The newest of the observations read, with its content where that was read."""
    if not rows:
        return None
    row = rows[0]
    body = recorded_body(row, bodies)
    return SeenVersion(row["target_id"], row["resource"], row["version"], row["observed_at"], row["source"], body)


def with_grants(view: RunView, rows: Sequence[Row]) -> RunView:
    """The view with the grants that still cover attempts of one effect, used ones included."""
    usable = [facts.load(GrantRow, row) for row in rows]
    known = {grant.id for grant in usable}
    return view.but(grants=[*usable, *(grant for grant in view.grants if grant.id not in known)])


@dataclass(frozen=True, slots=True)
class EffectView:
    """One effect with everything recorded about it. `request`, `result` and `evidence` (by body id) are canonical bytes, None when erased."""

    row: EffectRow
    tenant_id: UUID
    workflow_id: UUID
    target: TargetRow
    request: bytes | None
    result: bytes | None
    permits: Sequence[PermitRow]
    reports: Sequence[ReportRow]
    evidence: Mapping[UUID, bytes | None]
    now: datetime


def get(tenant_id: UUID | None, effect_id: UUID) -> EffectView:
    """One effect, its permits, reports and evidence; without a tenant, whosever it is. Raises LedgerError `not-found`."""
    one = (effect_id,)
    read = facts.read(
        effect=Part("effect", "t.id = %s", one),
        head=Part("run_head", f"t.run_id = {_OF.format('run_id')}", one),
        target=Part("target", f"t.id = {_OF.format('target_id')}", one),
        permits=Part("permit", "t.effect_id = %s", one, many=True, order="t.attempt"),
        reports=Part("effect_report", "t.effect_id = %s", one, many=True, order="t.ordinal"),
        bodies=Part(
            "body",
            f"t.id = {_OF.format('request_id')} OR t.id = {_OF.format('result_id')}"
            " OR t.id IN (SELECT r.evidence_id FROM ledger_effect_report r WHERE r.effect_id = %s)",
            one * 3,
            many=True,
        ),
    )
    effect, target, head = read.one("effect", EffectRow), read.one("target", TargetRow), read.row("head")
    if effect is None or target is None or head is None or tenant_id not in (None, head["tenant_id"]):
        raise not_found()
    bodies: dict[UUID, bytes | None] = {row["id"]: row["content"] for row in read.many("bodies")}
    return EffectView(
        row=effect,
        tenant_id=head["tenant_id"],
        workflow_id=head["workflow_id"],
        target=target,
        request=bodies.get(effect.request_id),
        result=bodies.get(effect.result_id) if effect.result_id else None,
        permits=read.all("permits", PermitRow),
        reports=read.all("reports", ReportRow),
        evidence=bodies,
        now=read.now,
    )


def late_receipts(run_id: UUID) -> dict[str, Part]:
    """Receipts of a run's calls that were kept as evidence, and the permits and keys by which their reporters are known."""
    kept = "{0}.run_id = %s AND {0}.kind = 'late' AND {0}.answer = 'committed' AND NOT {0}.counted"
    given = f"SELECT r.effect_id FROM ledger_effect_report r WHERE {kept.format('r')}"
    keys = f"t.id IN (SELECT p.key_id FROM ledger_permit p WHERE p.effect_id IN ({given}))"
    return {
        "kept": Part("effect_report", kept.format("t"), (run_id,), many=True, order="t.ordinal"),
        "given": Part("permit", f"t.effect_id IN ({given})", (run_id,), many=True),
        "given_keys": Part("api_key", keys, (run_id,), many=True),
    }


def receipts_of(view: RunView) -> dict[UUID, ReportRow]:
    """What `late_receipts` read, by effect: the newest from an agent that was permitted that very attempt, under the fence it names."""
    agents = {key["id"]: f"agent:{key['agent_id']}" for key in view.extras["given_keys"]}
    permits = [(facts.load(PermitRow, row), agents.get(row["key_id"])) for row in view.extras["given"]]
    called = {(permit.effect_id, permit.attempt, permit.fence, actor) for permit, actor in permits}
    kept = [facts.load(ReportRow, row) for row in view.extras["kept"]]
    return {row.effect_id: row for row in kept if (row.effect_id, row.attempt, row.fence, row.actor) in called}


def used_leave(effect_id: UUID) -> dict[str, Part]:
    """The grant that the last permit of an effect used, if it needed one."""
    last = "SELECT p.grant_id FROM ledger_permit p WHERE p.effect_id = %s ORDER BY p.attempt DESC LIMIT 1"
    return {"used_leave": Part("grant", f"t.id = ({last})", (effect_id,), many=True)}


def leave_of(view: RunView) -> GrantState | None:
    """The state of what `used_leave` read."""
    return next((facts.load(GrantRow, row).state for row in view.extras["used_leave"]), None)


def newest_report(effect_id: UUID) -> dict[str, Part]:
    """The last thing that anybody said of an effect."""
    newest = Part("effect_report", "t.effect_id = %s", (effect_id,), many=True, order="t.ordinal DESC", limit=1)
    return {"newest_report": newest}


def read_of(effect: EffectRow, reports: Sequence[Row]) -> Read:
    """What somebody who reads this effect now has read; `reports` as `newest_report` has them."""
    return Read(effect.attempt, reports[0]["ordinal"] if reports else 0)


def read_now(effect_id: UUID) -> Read:
    """What somebody who reads this effect now has read. Raises LedgerError `not-found`."""
    read = facts.read(effect=Part("effect", "t.id = %s", (effect_id,)), **newest_report(effect_id))
    effect = read.one("effect", EffectRow)
    if effect is None:
        raise not_found()
    return read_of(effect, read.many("newest_report"))


def needs_a_person(effect_id: UUID) -> str:
    """Why only a person may have this effect tried again: a code, or '' where that isn't so. Raises LedgerError `not-found`."""
    seen = get(None, effect_id)
    return rules.barred(seen.row, seen.target, seen.now, _last_word(seen))


def once_more(effect_id: UUID) -> bool:
    """Is it a person's word alone, the last that counted, that gives leave for one more attempt? Raises LedgerError `not-found`."""
    seen = get(None, effect_id)
    alone = rules.barred(seen.row, seen.target, seen.now, None)
    return bool(alone) and rules.allows_another(seen.row, _last_word(seen))


def _last_word(seen: EffectView) -> ReportRow | None:
    return next((report for report in reversed(seen.reports) if report.counted), None)


@dataclass(frozen=True, slots=True)
class Due:
    """An open effect whose time has come: to lapse (its answer never came), or to be looked up."""

    effect_id: UUID
    run_id: UUID
    lapse: bool


def due(limit: int) -> list[Due]:
    """Open effects of every tenant whose due time has passed, longest overdue first."""
    now = facts.read().now
    read = facts.read(
        due=Part(
            "effect",
            "t.state IN ('in_flight', 'unknown') AND t.due_at <= %s",
            (now,),
            many=True,
            order="t.due_at",
            limit=limit,
        )
    )
    return [Due(effect.id, effect.run_id, _overdue(effect, now)) for effect in read.all("due", EffectRow)]


def _overdue(effect: EffectRow, now: datetime) -> bool:
    """Has a call's own time run out, rather than a look at it come due?"""
    if effect.state is not EffectState.IN_FLIGHT:
        return False
    return not effect.accepted or (effect.answer_by is not None and effect.answer_by <= now)
