"""A team that decides can't be deleted from under its requests; where somebody did it past the product, they are blocked for all to see."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import ProtectedError

from approvals.services.inbox import pending_for
from ledger.domain.errors import LedgerError
from ledger.models import TeamProfile, User
from ledger.models.permissions import WorkflowGroupPermission
from tests.approvals.asking import asked
from tests.engine.waking import answer
from tests.tamper import run_sql
from tests.ui.asking import address, client_of
from tests.world import World

MEMBERS = User.groups.through._meta.db_table
RIGHTS = WorkflowGroupPermission._meta.db_table


def delete_rights_and_members(world: World) -> Any:
    """What goes with a group in Django, and then its key."""
    key = world.approvers.group.pk
    run_sql(f"DELETE FROM {RIGHTS} WHERE group_id = %s", key)
    run_sql(f"DELETE FROM {MEMBERS} WHERE group_id = %s", key)
    return key


@transaction.atomic
def delete_in_sql(world: World) -> None:
    run_sql("DELETE FROM auth_group WHERE id = %s", delete_rights_and_members(world))
    connection.check_constraints()


def test_the_group_of_a_team_is_deleted_neither_by_django_nor_by_sql(world: World) -> None:
    group = world.approvers.group
    with pytest.raises(ProtectedError):
        group.delete()
    with pytest.raises(IntegrityError):
        delete_in_sql(world)
    assert group.user_set.count() == 2 and WorkflowGroupPermission.objects.filter(group=group).count() == 3


def test_a_team_that_is_gone_all_the_same_blocks_its_requests_and_says_so(world: World) -> None:
    request = asked(world).request
    assert pending_for(world.alice, world.tenant).filter(pk=request.pk).exists()
    key = delete_rights_and_members(world)
    run_sql(f"DELETE FROM {TeamProfile._meta.db_table} WHERE group_id = %s", key)
    run_sql("DELETE FROM auth_group WHERE id = %s", key)
    for person in (world.alice, world.bob):
        assert not pending_for(person, world.tenant).exists()
        with pytest.raises(LedgerError):
            answer(world, person, request)
    page = client_of(world.charlie).get(address(world, request)).content.decode()
    assert "Nobody can approve this." in page and "Nobody is left who could decide." in page
    inbox = client_of(world.charlie).get(f"/t/{world.tenant.slug}/inbox/").content.decode()
    assert "can be approved by nobody" in inbox
    request.refresh_from_db()
    assert request.state == "pending" and not request.votes.of(world.tenant).exists()
