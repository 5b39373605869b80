"""A run as rules see it: every row that a verb on the run may need, read at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from ledger.domain.authority import GrantRow, PolicyRow, Wanted
from ledger.domain.checkpoints import VersionRow
from ledger.domain.effects import EffectRow, TargetRow
from ledger.domain.handoffs import HandoffRow
from ledger.domain.runs import ClearanceRow, Head, LeaseRow
from ledger.domain.waits import MemberRow, SetRow
from ledger.domain.wakes import Unseen, WakeRow


@dataclass(frozen=True, slots=True)
class RunRow:
    id: UUID
    tenant_id: UUID
    workflow_id: UUID
    lineage_id: UUID
    task: str
    agent_id: UUID | None
    on_behalf_of_id: UUID | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class RunView:
    """`effects` are those of the current transition instance and every open or disputed one; `grants` the live ones; `wait`,
    `members`, `wake` and `handoff` the open ones, `handoffs` the open ones that don't block the run. `version` is that of the last
    checkpoint, `holder` the one that the lease's holder works under, `holder_agent_id` the agent whose key the last lease was claimed
    with. `wanted` is, where it is told how the run stands, whose decision the open requests want, by effect; `heard`, where nobody claims it,
    when a worker of a cleared version was seen last; `unseen`,
    where the engine asks again, what it couldn't ask. `extras` are rows that
    registered ports asked for; `instance_opened_at` is when the present transition instance was.

    A view has the fields that its verb said it reads. Any other isn't there: to read it is an AttributeError, not a None."""

    now: datetime
    tenant_seq: int
    workflow: str
    run: RunRow
    head: Head
    lease: LeaseRow | None
    version: VersionRow | None
    holder: VersionRow | None
    clearance: ClearanceRow | None
    effects: Sequence[EffectRow]
    targets: Mapping[UUID, TargetRow]
    wait: SetRow | None
    members: Sequence[MemberRow]
    wake: WakeRow | None
    policy: PolicyRow | None
    grants: Sequence[GrantRow]
    handoff: HandoffRow | None
    extras: Mapping[str, list[dict[str, Any]]]
    handoffs: Sequence[HandoffRow] = ()
    instance_opened_at: datetime | None = None
    holder_agent_id: UUID | None = None
    wanted: Mapping[UUID, Wanted] = field(default_factory=dict)
    heard: datetime | None = None
    unseen: Sequence[Unseen] = ()

    @classmethod
    def of(cls, **fields: Any) -> RunView:
        """A view that has these fields and no others."""
        view = object.__new__(cls)
        for name, value in fields.items():
            object.__setattr__(view, name, value)
        return view

    def but(self, **fields: Any) -> RunView:
        """The same view with other values of these fields."""
        return RunView.of(**{name: getattr(self, name) for name in self.__slots__ if hasattr(self, name)} | fields)

    def having(self, effect: EffectRow) -> RunView:
        """The same run after this effect was added or moved by the draft at hand."""
        return self.but(effects=[*(other for other in self.effects if other.id != effect.id), effect])

    def effect(self, effect_id: UUID) -> EffectRow | None:
        return next((effect for effect in self.effects if effect.id == effect_id), None)

    def named(self, name: str) -> EffectRow | None:
        """The effect that answers to this name in the current transition instance, withdrawn ones included."""
        return self.by_name().get(name)

    def by_name(self) -> dict[str, EffectRow]:
        """The effects of the current transition instance by their names, which are unique in it."""
        return {effect.name: effect for effect in self.effects if effect.instance_id == self.head.instance_id}

    def handoff_on(self, effect_id: UUID | None) -> HandoffRow | None:
        """The open handoff on an effect that doesn't block the run."""
        return next((row for row in self.handoffs if row.effect_id == effect_id and effect_id is not None), None)

    def target(self, name: str) -> TargetRow | None:
        return next((target for target in self.targets.values() if target.name == name), None)

    def grant_for(self, effect_id: UUID) -> GrantRow | None:
        """The effect's live grant."""
        return next((grant for grant in self.grants if grant.subject_id == effect_id), None)
