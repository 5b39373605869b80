"""What a run has called under a plan that it leaves: taken along, told, and mistaken for nothing else. No clock, no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from ledger.domain.drafts import Draft
from ledger.domain.effects.base import EffectRow, EffectState, move, names
from ledger.domain.errors import LedgerError

if TYPE_CHECKING:
    from ledger.domain.views import RunView

REMEDY = (
    "It was called under the plan before this one: accept it by its name, which says that you know of it; "
    "propose any further act under another name, one of the same content too."
)


@dataclass(frozen=True, slots=True)
class Done:
    """An effect that the plan which is left has called, with the transitions that proposed and called it."""

    effect: EffectRow
    proposed_in: str
    called_in: str


def carry(draft: Draft, done: Sequence[Done], instance_id: UUID) -> None:
    """Take what was done under the plan that is left into the first instance of the new one, under its name and key."""
    for each in done:
        move(
            draft,
            each.effect,
            instance_id=instance_id,
            carried_from=each.effect.carried_from or each.proposed_in,
            carried_to=each.effect.carried_to or each.called_in,
        )


def called_twice(done: Iterable[Done]) -> list[str]:
    """Names that stand for more than one call of the plan: under a new one nobody could tell which of them is meant."""
    counted = Counter(each.effect.name for each in done)
    return sorted(name for name, times in counted.items() if times > 1)


def check_own(recorded: EffectRow) -> None:
    """A proposal never means what a replan carried: it may be the same act that is planned anew or the next one like it, and only the agent knows.

    Raises LedgerError `effect-carried`.
    """
    if recorded.carried_to:
        raise LedgerError(
            "effect-carried",
            f"the effect {recorded.name} was called by {recorded.carried_to} before the run was planned anew, and is {recorded.state}",
            REMEDY,
            effect=str(recorded.id),
            state=str(recorded.state),
            key=recorded.key,
            carried_from=recorded.carried_from,
            carried_to=recorded.carried_to,
        )


def check_known(view: RunView, waited_for: Iterable[EffectRow]) -> None:
    """A wait for what a replan carried is met by what became of it: whoever waits must have said that they know. Raises LedgerError
    `effects-unaccounted`."""
    count = view.head.fence_count
    missing = [effect for effect in waited_for if effect.carried_to and effect.accounted_count != count]
    if missing:
        raise LedgerError(
            "effects-unaccounted",
            f"called before the run was planned anew, and not accepted since: {', '.join(names(missing)[:5])}",
            REMEDY,
            effects=names(missing),
        )


def goes_along(view: RunView, effect: EffectRow) -> bool:
    """Does an effect of the present instance belong to the next one too? What is proposed does; what a replan carried, until the transition that
    called it is left by a holder who has accounted for it."""
    if not effect.carried_to:
        return effect.state is EffectState.PROPOSED
    return effect.carried_to != view.head.transition or effect.accounted_count != view.head.fence_count
