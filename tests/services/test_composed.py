"""A query that is composed once answers as the query itself does, as of now, and never what it answered before."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.db.models import QuerySet

from ledger.models import User
from ledger.services import identity, permissions
from ledger.services.composed import composed_once
from tests.services.conftest import People

pytestmark = pytest.mark.usefixtures("committed")


def counting() -> tuple[Any, list[tuple[UUID, ...]]]:
    """A query for the people with some ids, which notes what it is composed of."""
    composed: list[tuple[UUID, ...]] = []

    @composed_once
    def named(*ids: UUID) -> QuerySet[Any, Any]:
        composed.append(ids)
        return User.objects.filter(pk__in=ids, is_active=True).order_by("name").values_list("pk", "name")

    return named, composed


@pytest.mark.postgres_only
def test_it_is_composed_once_for_each_number_of_ids_and_of_none_of_them(people: People) -> None:
    named, composed = counting()
    for each in (people.alice, people.mallory, people.alice):
        assert named(each.pk) == [(each.pk, each.name)]
    assert len(named(people.alice.pk, people.mallory.pk)) == 2
    assert [len(ids) for ids in composed] == [1, 2]
    assert not {people.alice.pk, people.mallory.pk} & {each for ids in composed for each in ids}


def test_the_answer_is_of_now(people: People) -> None:
    named, _ = counting()
    assert named(people.alice.pk) == [(people.alice.pk, people.alice.name)]
    identity.deactivate_person(people.admin, people.alice)
    assert named(people.alice.pk) == []


def test_ids_keep_their_places(people: People) -> None:
    """Whoever is asked about and where aren't taken for each other, also where the query names one of them more than once."""
    assert permissions.member(people.alice.pk, people.tenant.pk)
    assert not permissions.member(people.tenant.pk, people.alice.pk)
    assert not permissions.member(people.mallory.pk, people.tenant.pk)
