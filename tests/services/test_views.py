"""A run as a verb reads it: whole, or the parts that it names and nothing else."""

from __future__ import annotations

from dataclasses import fields

import pytest

from ledger.domain.errors import LedgerError
from ledger.domain.views import RunView
from ledger.services.facts import Part
from ledger.services.ports import approvals
from ledger.services.views import run_view
from tests.services.issuing import opened, paying
from tests.world import World

UNREAD = sorted(
    {field.name for field in fields(RunView)}
    - {"now", "extras", "head", "run", "tenant_seq", "lease"}
    - {"wanted", "heard", "unseen"}
)
"""Every part but the one that is read; what isn't a part, as whose decision is wanted, is there or empty."""


@pytest.mark.parametrize("name", UNREAD)
def test_a_part_that_was_not_asked_for_cannot_be_read(world: World, name: str) -> None:
    view = run_view(world.start_run(), world.tenant.pk, frozenset({"lease"}))
    with pytest.raises(AttributeError, match=name):
        getattr(view.but(now=view.now), name)


def test_the_people_s_side_is_not_read_for_a_verb_that_names_its_parts(world: World) -> None:
    run_id = world.start_run()
    assert set(run_view(run_id).extras) == set(approvals().parts())
    assert not run_view(run_id, None, frozenset({"lease"})).extras


def test_what_is_named_is_what_the_whole_view_has(world: World) -> None:
    packet, effect, _ = paying(opened(world))
    whole = run_view(packet.run.id)
    named = run_view(
        packet.run.id, None, frozenset({"lease", "holder", "holder_key", "clearance", "effects", "targets"})
    )
    for name in ("run", "head", "tenant_seq", "lease", "holder", "holder_agent_id", "clearance", "effects", "targets"):
        assert getattr(named, name) == getattr(whole, name)
    assert [row.id for row in named.effects] == [effect.pk]


def test_parts_in_an_order_come_in_it(world: World) -> None:
    packet, _, _ = paying(opened(world))
    entries = Part("journal_entry", "t.stream_id = h.run_id", many=True, order="t.seq DESC", limit=3)
    newest = [row["seq"] for row in run_view(packet.run.id, entries=entries).extras["entries"]]
    assert len(newest) == 3
    assert newest == sorted(newest, reverse=True)


def test_a_run_of_another_tenant_is_not_found(world: World) -> None:
    with pytest.raises(LedgerError, match="no such run"):
        run_view(world.start_run(), World().tenant.pk)
