"""What the holder of a run does with effects that it doesn't perform: withdraw what is proposed, accept what was settled."""

from __future__ import annotations

from uuid import UUID

from ledger.domain import effects as rules
from ledger.domain.change import Change
from ledger.domain.effects import EffectRow, WithdrawCause
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller, Scope
from ledger.domain.runs import Fence
from ledger.domain.views import RunView
from ledger.services import committed, writer
from ledger.services.contracts import NO_ENTRY, writes
from ledger.services.drafts import run_draft
from ledger.services.effects.holding import withdraw_in
from ledger.services.effects.reading import Seat, check_held, content_parts, seat_for, shown
from ledger.services.packets import EffectFacts
from ledger.services.views import view_for


@writes(
    moves="Effect proposed → withdrawn, with its open request.",
    twice="Answered with the withdrawn effect; nothing is written.",
    dies="The effect is withdrawn; nothing hangs on the reply.",
)
def withdraw(caller: Caller, effect_id: UUID, fence: Fence) -> EffectFacts:
    """The holder takes a proposed effect back. Raises LedgerError `stale-fence`, `wrong-state`."""

    def rule(at: Seat) -> tuple[Change | None, EffectFacts]:
        check_held(caller, at.view, fence)
        if at.effect.state is rules.EffectState.WITHDRAWN:
            return None, shown(at.view, at.effect, None)
        draft = run_draft(at.view, caller.actor, "effect.withdraw")
        withdraw_in(draft, at.view, at.effect, WithdrawCause.BY_AGENT)
        change = draft.change()
        return change, shown(at.view, at.effect, change)

    caller.needs(Scope.RUNS_WORK)
    return writer.settle(lambda: seat_for(caller, effect_id, **content_parts(effect_id)), rule)[0]


@writes(
    moves="A settled effect, or one that a replan carried, is marked as accounted for by the present holder; its state stays.",
    twice=NO_ENTRY,
    dies="It is accounted for under this fence; another holder has to do it again.",
)
def accept(caller: Caller, run_id: UUID, name: str, fence: Fence) -> EffectFacts:
    """The holder takes the recorded outcome of an effect, by its name in the present transition, as it is; or says that it knows of what a replan
    carried.

    Raises LedgerError `not-found`, `stale-fence`, `wrong-state`.
    """
    caller.needs(Scope.RUNS_WORK)

    def rule(view: RunView) -> tuple[Change | None, EffectFacts]:
        effect = view.named(name)
        if effect is None:
            raise LedgerError("not-found", "the present transition has no effect of this name", "Check the name.")
        return _accepted(caller, view, effect, fence)

    return writer.settle(lambda: view_for(caller, run_id, **committed.parts(run_id, [name], [])), rule)[0]


def _accepted(caller: Caller, view: RunView, effect: EffectRow, fence: Fence) -> tuple[Change | None, EffectFacts]:
    check_held(caller, view, fence)
    draft = run_draft(view, caller.actor, "effect.accept")
    change = draft.change() if rules.accept(draft, view, effect) != effect else None
    return change, shown(view, effect, change)
