"""The inbox: the list is the badge, nothing is skipped, and nothing moves by itself."""

from __future__ import annotations

import re

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from approvals.services import waiting
from approvals.services.inbox import pending_for
from ledger.domain.identity import Verb
from ledger.services import identity
from tests.clock import Clock
from tests.ui.asking import address, ask, client_of, decide
from tests.world import RULES, World


def inbox(world: World, client: Client, query: str = "") -> str:
    answer = client.get(f"/t/{world.tenant.slug}/inbox/{query}")
    assert answer.status_code == 200
    text: str = answer.content.decode()
    return text


def badge(page: str) -> str:
    found = re.search(r'id="badge-inbox"[^>]*>([\d,+]*)<', page)
    assert found
    return found[1]


def test_an_empty_inbox_says_that_all_is_well(world: World) -> None:
    page = inbox(world, client_of(world.alice))
    assert "All is well: nothing waits for you" in page and badge(page) == ""


def test_requests_of_others_and_of_other_tenants_are_not_in_it(world: World) -> None:
    other = World()
    ask(other)
    ask(world)
    assert "data-row" not in inbox(world, client_of(world.charlie))
    assert inbox(world, client_of(world.alice)).count("data-row") == 1


def test_the_badge_is_the_list_for_every_member(world: World) -> None:
    requests = [ask(world) for _ in range(3)]
    decide(client_of(world.bob), world, requests[0], "approve")
    identity.grant_permission(world.admin, world.dora, Verb.APPROVE, world.workflow)
    for person in (world.alice, world.bob, world.charlie, world.dora):
        page = inbox(world, client_of(person))
        assert badge(page) == (str(page.count("data-row")) if "data-row" in page else "")
        assert page.count("data-row") == pending_for(person, world.tenant).count()


def test_an_expired_request_leaves_the_list_before_any_sweep(world: World, clock: Clock) -> None:
    ask(world, hours=1)
    clock.shift(3_700)
    assert "data-row" not in inbox(world, client_of(world.alice))


def test_the_oldest_deadline_comes_first(world: World) -> None:
    late, soon = ask(world, hours=20), ask(world, hours=2)
    page = inbox(world, client_of(world.alice))
    assert page.index(str(soon.pk)) < page.index(str(late.pk))


def test_pages_skip_nothing_and_repeat_nothing_while_rows_leave(world: World) -> None:
    requests = [ask(world) for _ in range(5)]
    pages = lambda after: waiting.page_for(world.alice, world.tenant, after=after, size=2)  # noqa: E731
    first, after = pages(None)
    assert after is not None
    decide(client_of(world.bob), world, requests[0], "approve")
    second, after = pages(after)
    third, end = pages(after)
    assert end is None
    assert [entry.id for entry in (*first, *second, *third)] == [request.pk for request in requests]


def test_a_broken_place_in_the_list_is_refused_with_a_way_on(world: World) -> None:
    for after in ("nonsense", "2026-01-01T00:00:00Z~x", "x~01a229eb-bb3f-76a9-8b58-551b357e9bd0"):
        answer = client_of(world.alice).get(f"/t/{world.tenant.slug}/inbox/", {"after": after})
        assert answer.status_code == 422


def test_ten_times_the_rows_cost_the_same_queries(world: World) -> None:
    alice = client_of(world.alice)

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as taken:
            inbox(world, alice)
        return len(taken)

    ask(world)
    one = queries()
    for _ in range(9):
        ask(world)
    assert queries() == one <= 30


def test_nothing_newer_is_204_and_something_newer_is_a_bar_that_counts_it(world: World) -> None:
    alice = client_of(world.alice)
    ask(world)
    page = inbox(world, alice)
    found = re.search(r'data-live="([^"]+)"', page)
    assert found
    newer = found[1].replace("&amp;", "&")
    assert alice.get(newer).status_code == 204
    ask(world)
    answer = alice.get(newer)
    assert answer.status_code == 200 and "1 new, show" in answer.content.decode()


def newer_of(page: str) -> str:
    found = re.search(r'data-live="([^"]+)"', page)
    assert found
    return found[1].replace("&amp;", "&")


def test_rows_that_were_decided_meanwhile_are_told_with_counts_that_are_true(world: World) -> None:
    alice = client_of(world.alice)
    first, second = ask(world), ask(world)
    newer = newer_of(inbox(world, alice))
    decide(client_of(world.bob), world, first, "approve")
    answer = alice.get(newer).content.decode()
    assert "1 decided meanwhile, show" in answer
    assert "1 waiting now; 1 of the 2 shown no longer does" in answer
    ask(world)
    decide(client_of(world.bob), world, second, "deny", "no")
    answer = alice.get(newer).content.decode()
    assert "1 new, 2 decided meanwhile, show" in answer
    assert "1 waiting now; none of those shown still waits" in answer


def test_rows_that_ran_out_are_not_called_decided(world: World, clock: Clock) -> None:
    ask(world, hours=1)
    alice = client_of(world.alice)
    newer = newer_of(inbox(world, alice))
    clock.shift(3_700)
    assert "1 no longer waiting, show" in alice.get(newer).content.decode()


def test_a_broken_list_of_shown_rows_is_refused(world: World) -> None:
    address = f"/t/{world.tenant.slug}/inbox/newer/"
    for shown in ("x", "~".join(["0" * 32] * 51)):
        answer = client_of(world.alice).get(address, {"since": "2026-01-01T00:00:00Z", "shown": shown})
        assert answer.status_code == 422


def test_an_empty_inbox_says_how_a_request_will_show(world: World) -> None:
    page = inbox(world, client_of(world.alice))
    assert "a bar above offers it" in page and "by themselves" not in page


def test_a_second_vote_that_is_needed_is_told_in_the_row(world: World) -> None:
    world.policy(({**RULES[0], "quorum": 2}, *RULES[1:]))
    request = ask(world)
    decide(client_of(world.bob), world, request, "approve")
    assert "1 of 2 approvals" in inbox(world, client_of(world.alice))
    assert "data-row" not in inbox(world, client_of(world.bob))


def test_the_row_speaks_our_words_and_leads_to_the_card(world: World) -> None:
    request = ask(world)
    page = inbox(world, client_of(world.alice))
    assert "Refund 42.00 EUR to the customer of order 17 at payments" in page
    assert address(world, request) in page
