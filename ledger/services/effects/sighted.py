"""What effects are bound to and what was seen since, where their target says which fields of a resource matter: have these moved?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ledger.domain import material
from ledger.domain.canonical import Body
from ledger.domain.effects import EffectRow, SeenVersion, TargetRow
from ledger.services.facts import Part, Row

_CHOOSY: Final = (
    "FROM ledger_effect e JOIN ledger_target g ON g.id = e.target_id AND g.material <> '[]'"
    " JOIN ledger_observation o ON o.id = e.observation_id WHERE"
)


def bound_parts(which: str, *params: object) -> dict[str, Part]:
    """The observations, with their contents, that these effects (`e`) are bound to; none at targets for which every version counts."""
    return {
        "bound": Part("observation", f"t.id IN (SELECT o.id {_CHOOSY} {which})", params, many=True),
        "bound_bodies": Part("body", f"t.id IN (SELECT o.body_id {_CHOOSY} {which})", params, many=True),
    }


def moved(
    effect: EffectRow, target: TargetRow, now: SeenVersion, bound: Sequence[Row], bodies: Sequence[Row]
) -> tuple[str, ...] | None:
    """Which of the fields that matter aren't as they were when the effect was bound; None where its target names none.

    `now` with its content, `bound` and `bodies` as `bound_parts` reads them. What can't be read any more, or isn't what was recorded, has moved.
    """
    if not target.material:
        return None
    row = next((row for row in bound if row["id"] == effect.observation_id), None)
    return material.moved(target.material, None if row is None else recorded_body(row, bodies), now.body)


def recorded_body(observation: Row, bodies: Sequence[Row]) -> Body | None:
    """An observation's content as it was committed to; None when it is missing, erased, or another."""
    row = next((row for row in bodies if row["id"] == observation["body_id"]), None)
    if row is None or row["erased_at"] is not None or observation["commitment"] is None:
        return None
    body = Body(row["id"], row["salt"], row["content"], row["media"])
    return body if body.commitment == bytes(observation["commitment"]) else None
