"""Read a run for a rule: one statement on PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from ledger.domain.authority import GrantRow, PolicyRow
from ledger.domain.checkpoints import VersionRow
from ledger.domain.effects import EffectRow, TargetRow
from ledger.domain.errors import LedgerError
from ledger.domain.handoffs import HandoffRow
from ledger.domain.health import unclaimed
from ledger.domain.identity import Caller
from ledger.domain.runs import ClearanceRow, Head, LeaseRow, Status
from ledger.domain.views import RunRow, RunView
from ledger.domain.waits import Internal, MemberKind, MemberRow, MemberState, SetRow
from ledger.domain.wakes import Unseen, WakeRow
from ledger.services import facts, workers
from ledger.services.facts import Anchor, Facts, Part, Row
from ledger.services.ports import approvals
from ledger.services.unseen import unseen

RUN = "ledger_run_head h JOIN ledger_run r ON r.id = h.run_id LEFT JOIN ledger_lease l ON l.run_id = h.run_id"
"""What parts of a run are anchored at: its head `h`, the run `r` itself and its last lease `l`."""

_KINDS: Mapping[str, type[Any]] = {
    "head": Head,
    "run": RunRow,
    "lease": LeaseRow,
    "version": VersionRow,
    "holder": VersionRow,
    "clearance": ClearanceRow,
    "effects": EffectRow,
    "wait": SetRow,
    "members": MemberRow,
    "wake": WakeRow,
    "policy": PolicyRow,
    "grants": GrantRow,
}
"""Parts that are fields of the view, each as what its rows become."""

_COLUMNS: Mapping[str, tuple[str, str]] = {
    "workflow": ("workflow", "name"),
    "tenant": ("tenant_seq", "head_seq"),
    "instance": ("instance_opened_at", "opened_at"),
    "holder_key": ("holder_agent_id", "agent_id"),
}
"""Parts of which the view has one column: the field and the column."""

PARTS: Mapping[str, Part] = {
    "head": Part("run_head", own="h"),
    "run": Part("run", own="r"),
    "lease": Part("lease", own="l"),
    "workflow": Part("workflow_type", "t.id = h.workflow_id"),
    "tenant": Part("tenant_head", "t.tenant_id = h.tenant_id"),
    "version": Part("workflow_version", "t.workflow_id = h.workflow_id AND t.version = h.version"),
    "holder": Part("workflow_version", "t.workflow_id = h.workflow_id AND t.version = l.version"),
    "holder_key": Part("api_key", "t.id = l.key_id"),
    "instance": Part("transition_instance", "t.id = h.instance_id"),
    "clearance": Part("clearance", "t.id = h.clearance_id"),
    "effects": Part(
        "effect",
        "t.run_id = h.run_id AND (t.instance_id = h.instance_id OR t.state IN ('proposed', 'in_flight', 'unknown')"
        " OR t.disputed)",
        many=True,
        order="t.proposed_at, t.name",
    ),
    "targets": Part("target", "t.tenant_id = h.tenant_id", many=True),
    "wait": Part("wait_set", "t.run_id = h.run_id AND t.state = 'open'"),
    "members": Part(
        "wait_member",
        "t.wait_id = (SELECT s.id FROM ledger_wait_set s WHERE s.run_id = h.run_id AND s.state = 'open')",
        many=True,
        order="t.ordinal",
    ),
    "wake": Part("wake", "t.run_id = h.run_id AND t.state IN ('queued', 'checking')"),
    "policy": Part("policy_version", "t.tenant_id = h.tenant_id", order="t.number DESC"),
    "grants": Part("grant", "t.run_id = h.run_id AND t.state = 'live'", many=True),
    "handoffs": Part("handoff", "t.run_id = h.run_id AND t.state IN ('open', 'accepted')", many=True),
}
"""All that a run's view may have. The head comes first, so that on SQLite what follows is never older."""

ALWAYS = frozenset({"head", "run", "tenant"})
_NONE: Mapping[str, Part] = {}


def run_view(
    run_id: UUID, tenant_id: UUID | None = None, only: frozenset[str] | None = None, /, **extra: Part
) -> RunView:
    """The run as of now. `extra` parts land in `extras`. Raises LedgerError `not-found` for a foreign or missing run.

    `only` names the parts that the rule reads, beside those of `ALWAYS`; without it all are read, the people's side's too. To read another part of
    such a view is an AttributeError.
    """
    return view_at(Anchor(RUN, "h.run_id = %s", (run_id,)), tenant_id, only, {**_port_parts(only), **extra})


def view_at(anchor: Anchor, tenant_id: UUID | None, only: frozenset[str] | None, extras: Mapping[str, Part]) -> RunView:
    """The run at an anchor that has the aliases of `RUN`, as `run_view`."""
    parts = _parts(only)
    read = facts.read_at(anchor, {**parts, **extras})
    if read is None:
        raise _not_found()
    return _view(read, tenant_id, parts, extras)


def _parts(only: frozenset[str] | None) -> Mapping[str, Part]:
    return PARTS if only is None else {name: PARTS[name] for name in PARTS if name in ALWAYS or name in only}


def _port_parts(only: frozenset[str] | None) -> Mapping[str, Part]:
    return approvals().parts() if only is None else _NONE


def view_for(caller: Caller, run_id: UUID, only: frozenset[str] | None = None, /, **extra: Part) -> RunView:
    """`run_view` for a caller: runs of a type that their key isn't for aren't there. Raises LedgerError `not-found`."""
    view = run_view(run_id, caller.tenant_id, None if only is None else only | {"workflow"}, **extra)
    if not caller.reaches(view.workflow):
        raise _not_found()
    return view


_TELLING = frozenset(
    {"workflow", "lease", "clearance", "effects", "targets", "wait", "members", "wake", "policy", "handoffs"}
)
_NOTHING: Mapping[str, Any] = {
    **dict.fromkeys(("lease", "clearance", "wait", "wake", "policy", "handoff", "heard")),
    **dict.fromkeys(("members", "handoffs", "unseen"), ()),
    "targets": {},
}


def telling_view(run_id: UUID, tenant_id: UUID | None = None, *, ended: bool = False) -> RunView:
    """What tells how a run stands, for reading only: without what rules of a write need besides. Of one that `ended` only its effects tell anything.

    Raises LedgerError `not-found` as `run_view` does.
    """
    if ended:
        return run_view(run_id, tenant_id, frozenset({"workflow", "effects"})).but(**_NOTHING)
    view = run_view(run_id, tenant_id, _TELLING)
    return view.but(
        wanted=approvals().wanted(view.run.tenant_id, asked_of(view.members)), heard=_heard(view), unseen=_unseen(view)
    )


def _unseen(view: RunView) -> Sequence[Unseen]:
    """What couldn't be asked, where the engine asks again later."""
    if view.wait is None or view.wait.internal != Internal.RETRY_LATER:
        return ()
    return unseen(view.run.tenant_id, [view.run.id]).get(view.run.id, ())


def _heard(view: RunView) -> datetime | None:
    """When a worker that could claim a run that nobody claims was seen last."""
    if view.head.status is not Status.READY or view.clearance is None or not unclaimed(view):
        return None
    wanted = (view.workflow, tuple(view.clearance.versions))
    return workers.heard(view.run.tenant_id, [wanted]).get(wanted)


def asked_of(members: Iterable[MemberRow]) -> list[UUID]:
    """The effects on which somebody is to decide."""
    open_ones = (each for each in members if each.kind is MemberKind.APPROVAL and each.state is MemberState.OPEN)
    return [each.effect_id for each in open_ones if each.effect_id is not None]


def run_views(
    ids: str,
    params: tuple[object, ...],
    only: frozenset[str] | None = None,
    extra: Mapping[str, Part] = _NONE,
    /,
    **beside: Part,
) -> tuple[Facts, dict[UUID, RunView]]:
    """The runs whose ids this SQL selects, each as `run_view`, and the parts beside: one statement on PostgreSQL, however many runs there are.

    A part in `extra` is read at each run: it names the run by `h.run_id`, without parameters of the run's own.
    """
    parts, extras = _parts(only), {**_port_parts(only), **extra}
    read, each = facts.read_each(Anchor(RUN, f"h.run_id IN ({ids})", params), "h.run_id", {**parts, **extras}, **beside)
    return read, {run_id: _view(one, None, parts, extras) for run_id, one in each.items()}


def named_views(
    run_ids: Sequence[UUID], only: frozenset[str] | None = None, extra: Mapping[str, Part] = _NONE, /
) -> list[RunView]:
    """These runs, in this order, as `run_views`. One that is missing is left out."""
    if not run_ids:
        return []
    found = run_views(", ".join(["%s"] * len(run_ids)), tuple(run_ids), only, extra)[1]
    return [found[run_id] for run_id in run_ids if run_id in found]


def _not_found() -> LedgerError:
    """The same words for a run that isn't there, a foreign one, and one of a type that the key isn't for."""
    return LedgerError(
        "not-found", "there is no such run here", "Check the id, and that the key belongs to its tenant."
    )


def _view(read: Facts, tenant_id: UUID | None, parts: Mapping[str, Part], extras: Mapping[str, Part]) -> RunView:
    fields: dict[str, Any] = {
        "now": read.now,
        "extras": _Extras(read, extras),
        "wanted": {},
        "heard": None,
        "unseen": (),
    }
    for name, part in parts.items():
        if name in _KINDS:
            fields[name] = read.all(name, _KINDS[name]) if part.many else read.one(name, _KINDS[name])
        elif name in _COLUMNS:
            field, column = _COLUMNS[name]
            fields[field] = read.value(name, column)
    if "targets" in parts:
        fields["targets"] = {target.id: target for target in read.all("targets", TargetRow)}
    if "handoffs" in parts:
        handoffs = read.all("handoffs", HandoffRow)
        fields["handoff"] = next((handoff for handoff in handoffs if handoff.blocks_run), None)
        fields["handoffs"] = [handoff for handoff in handoffs if not handoff.blocks_run]
    if tenant_id not in (None, fields["head"].tenant_id):
        raise _not_found()
    return RunView.of(**fields)


class _Extras(Mapping[str, Any]):
    """What was read of the parts beside the view's own, decoded when somebody asks for it: always a list, [None] where one row was sought in vain."""

    def __init__(self, read: Facts, names: Collection[str]) -> None:
        self._read = read
        self._rows: dict[str, Sequence[Row | None] | None] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> Sequence[Row | None]:
        rows = self._rows[name]
        if rows is None:
            many = self._read.parts[name].many
            rows = self._rows[name] = self._read.many(name) if many else [self._read.row(name)]
        return rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)
