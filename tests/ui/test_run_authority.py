"""Who allowed what, on a run's page: votes of what is asked now are never mixed with those that are void."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from django.urls import reverse

from approvals.services import run_parts
from approvals.services.votes import withdraw_vote
from tests.ui.asking import ask, client_of, decide
from tests.world import RULES, World


def vote(name: str, revision: int, choice: str = "approve", entry_point: str = "page") -> Any:
    return SimpleNamespace(
        reason_body=None, voter=SimpleNamespace(name=name), revision=revision, choice=choice, entry_point=entry_point
    )


@pytest.mark.parametrize(
    ("revision", "cause", "votes", "said"),
    [
        (1, "", [], ""),
        (1, "", [vote("Mara", 1)], "approved by Mara"),
        (1, "", [vote("Mara", 1), vote("Ivo", 1, "deny")], "approved by Mara, denied by Ivo"),
        (
            2,
            "",
            [vote("Mara", 1)],
            "revision 2: no vote yet; revision 1: approved by Mara, void since it was asked again",
        ),
        (
            2,
            "",
            [vote("Mara", 1), vote("Mara", 2)],
            "revision 2: approved by Mara; revision 1: approved by Mara, void since it was asked again",
        ),
        (
            2,
            "",
            [vote("Mara", 2, entry_point="carried")],
            "revision 2: approved by Mara (carried over)",
        ),
        (
            3,
            "",
            [vote("Mara", 1), vote("Ivo", 2)],
            "revision 3: no vote yet; revision 2: approved by Ivo, void since it was asked again; "
            "revision 1: approved by Mara, void since it was asked again",
        ),
    ],
)
def test_a_void_vote_is_told_as_void_with_its_revision(revision: int, cause: str, votes: list[Any], said: str) -> None:
    asked: Any = SimpleNamespace(revision=revision, cause=cause)
    assert run_parts._votes(votes, asked, may_see=True) == said


def test_the_page_of_a_run_that_was_asked_again_names_no_void_approval_as_present(world: World) -> None:
    world.policy(({**RULES[0], "quorum": 2}, *RULES[1:]))
    request = ask(world)
    decide(client_of(world.bob), world, request, "approve")
    withdraw_vote(world.bob, request.pk, 1)
    page = client_of(world.charlie).get(reverse("run", args=[world.tenant.slug, request.run_id])).content.decode()
    line = re.search(r'data-label="By whom, why" class="untrusted">([^<]*)<', page)
    assert line and line[1] == "revision 2: no vote yet; revision 1: approved by Bob, void since it was asked again"
