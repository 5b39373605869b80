"""What every step of a sequence shares: how it is taken, what was seen of the runs before it, and how something is picked."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from approvals.models import ApprovalRequest
from ledger.domain.effects import EffectRow, EffectState
from ledger.domain.errors import LedgerError
from ledger.domain.runs import Status
from ledger.domain.views import RunView
from tests.clock import Clock
from tests.sequences.outside import Outside
from tests.sequences.stage import Held, Stage

OPEN = (EffectState.IN_FLIGHT, EffectState.UNKNOWN)


class Player(RuleBasedStateMachine):
    """The state of one sequence: its runs and their effects as they were seen last, every claim ever made, and what happened outside."""

    stage: ClassVar[Stage]
    clock: ClassVar[Clock]
    taken: ClassVar[Counter[str]]
    """How often each step was taken, over all sequences: one that never is tests nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.stage.begin()
        self.workflow = self.stage.workflow()
        self.outside = Outside()
        self.views: dict[UUID, RunView] = {}
        self.effects: dict[UUID, dict[UUID, EffectRow]] = {}
        self.held: list[Held] = []
        self.asked: dict[UUID, ApprovalRequest | None] = {}
        self.step = ""
        self.touched: set[UUID] = set()

    def take(self, step: str, run_id: UUID, act: Any) -> Any:
        """Carry a step out. Answers None when it was refused: a refusal is an answer, with a code and a remedy."""
        self.step = step
        self.touched.add(run_id)
        self._note_told()
        self.stage.book.heard.clear()
        try:
            done = act()
        except LedgerError as refusal:
            assert refusal.code not in ("integrity", "busy") and refusal.remedy, refusal
            self.taken[f"{step}: {refusal.code}"] += 1
            return None
        finally:
            self._note_told()
        if done is not False:
            self.taken[step] += 1
        return True if done is None else done

    def _note_told(self) -> None:
        self.stage.book.told |= dict.fromkeys(self.stage.book.heard, self.now())

    def now(self) -> datetime:
        return self.clock.now()

    # What there is to pick from -------------------------------------------------------------------

    def runs(self, *statuses: Status) -> list[UUID]:
        return [run_id for run_id, view in self.views.items() if view.head.status in statuses]

    def every(self) -> list[EffectRow]:
        return [effect for every in self.effects.values() for effect in every.values()]

    def open(self, run_id: UUID | None = None) -> list[EffectRow]:
        """Effects whose outcome is open, of one run or of all."""
        return [effect for effect in self.every() if effect.state in OPEN and run_id in (None, effect.run_id)]

    def out(self, run_id: UUID) -> list[EffectRow]:
        """Calls of the run that are out."""
        return [e for e in self.open(run_id) if e.state is EffectState.IN_FLIGHT and not e.accepted]

    def permits(self) -> list[tuple[Held, UUID]]:
        return [(held, effect_id) for held in self.held for effect_id in held.permits]

    def holder(self, data: Any) -> Held:
        """Some claim, mostly one that still owns its run."""
        owning = [held for held in self.held if held.holds(self.views[held.run_id])]
        return data.draw(st.sampled_from(owning if owning and data.draw(st.integers(0, 7)) else self.held))
