"""What a run has done under a plan that it is about to leave."""

from __future__ import annotations

from uuid import UUID

from ledger.domain.effects import Done, EffectRow
from ledger.domain.views import RunView
from ledger.services import facts
from ledger.services.facts import Part

_OPENED = "SELECT max(o.opened_seq) FROM ledger_transition_instance o WHERE o.run_id = %s AND o.transition = %s"
_PRESENT = "SELECT p.opened_seq FROM ledger_transition_instance p WHERE p.id = %s"
_SINCE = f"SELECT i.id FROM ledger_transition_instance i WHERE i.run_id = %s AND i.opened_seq >= COALESCE(({_OPENED}), ({_PRESENT}))"
_CALLED = f"{{0}}.run_id = %s AND {{0}}.attempt > 0 AND {{0}}.instance_id IN ({_SINCE})"


def done(view: RunView, to: str) -> list[Done]:
    """What was called since the run was last in the transition `to`, where it is to plan anew, and has happened or may have; of the present
    instance alone where it never was there.

    Reads after the view: good only while the run's head is as it was then, which the writer compares.
    """
    called = (view.run.id, view.run.id, view.run.id, to, view.head.instance_id)
    places = f"SELECT e.{{}} FROM ledger_effect e WHERE {_CALLED.format('e')}"
    read = facts.read(
        effects=Part("effect", _CALLED.format("t"), called, many=True, order="t.proposed_at, t.name"),
        instances=Part(
            "transition_instance",
            f"t.id IN ({places.format('instance_id')} UNION {places.format('opened_instance_id')})",
            called * 2,
            many=True,
        ),
    )
    names: dict[UUID, str] = {row["id"]: row["transition"] for row in read.many("instances")}
    rows = [facts.load(EffectRow, row) for row in read.many("effects")]
    return [Done(row, names[row.opened_instance_id], names[row.instance_id]) for row in rows if row.done]
