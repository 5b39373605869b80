"""The approval card: what a decision answers, what a decided card says, how arguments are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.test import Client

from tests.clock import Clock
from tests.ui.asking import address, ask, client_of, decide, form_of, votes
from tests.ui.forms import TYPED, post, text_of
from tests.world import RULES, World

TWO = ({**RULES[0], "quorum": 2}, *RULES[1:])


def poll(client: Client, world: World, request: Any) -> Callable[[], int]:
    page = text_of(client.get(address(world, request)))
    since = page.split("/newer/?since=")[1].split('"')[0]
    return lambda: client.get(address(world, request, "approval_newer") + f"?since={since}").status_code


def test_approving_by_htmx_answers_card_toast_and_badge(world: World) -> None:
    request = ask(world)
    answer = decide(client_of(world.alice), world, request, "approve", htmx=True)
    page = text_of(answer)
    assert answer.status_code == 200 and "<html" not in page
    assert 'hx-swap-oob="beforeend:#toasts"' in page and 'id="badge-inbox"' in page
    assert "Approved. The decision is recorded; how far the agent is with it stands below." in page
    assert votes(request) == [(world.alice.pk, "approve")]


def test_without_javascript_a_decision_redirects_to_the_card_with_a_message(world: World) -> None:
    request, alice = ask(world), client_of(world.alice)
    answer = decide(alice, world, request, "deny", TYPED)
    assert (answer.status_code, answer["Location"]) == (302, address(world, request))
    page = text_of(alice.get(answer["Location"]))
    assert "Denied. The decision is recorded" in page
    assert f'data-draft-done="approval-{request.pk}-r1"' in page


def test_the_vote_keeps_the_digest_of_what_was_shown_and_its_renderer(world: World) -> None:
    request = ask(world)
    decide(client_of(world.alice), world, request, "approve")
    vote = request.votes.of(world.tenant).get()
    assert len(bytes(vote.receipt_digest)) == 32 and vote.entry_point == "page"
    assert vote.renderer == "card/4 payments.refund/4"
    assert vote.groups == ["approvers"]


def test_the_same_vote_sent_twice_counts_once_and_answers_alike(world: World) -> None:
    request, alice = ask(world), client_of(world.alice)
    form = {**form_of(text_of(alice.get(address(world, request)))), "decision": "approve"}
    assert [post(alice, world, request, form, True).status_code for _ in range(2)] == [200, 200]
    assert votes(request) == [(world.alice.pk, "approve")]


def test_a_vote_below_the_quorum_says_what_is_still_needed(world: World) -> None:
    world.policy(TWO)
    request, alice = ask(world), client_of(world.alice)
    assert "Your approval counts; 1 more is needed." in text_of(alice.get(address(world, request)))
    answer = decide(alice, world, request, "approve", htmx=True)
    assert "Still needed: 1 approval from the team Refund approvers" in text_of(answer)
    page = text_of(client_of(world.bob).get(address(world, request)))
    assert "1 of 2 approvals" in page and "Who can still decide: you" in page
    assert "The agent may make this call until" in page


def test_decided_and_resumed_are_two_facts_and_a_slow_agent_is_named(world: World, clock: Clock) -> None:
    request, alice = ask(world), client_of(world.alice)
    decide(alice, world, request, "approve")
    page = text_of(alice.get(address(world, request)))
    assert "Decision recorded: approved by Alice" in page and "The agent has not resumed yet" in page
    clock.shift(600)
    assert "The agent has not taken it up for 10 min" in text_of(alice.get(address(world, request)))


def test_a_decided_card_opens_again_read_only_with_who_what_and_when(world: World) -> None:
    request = ask(world)
    decide(client_of(world.bob), world, request, "deny", TYPED)
    page = text_of(client_of(world.alice).get(address(world, request)))
    assert 'name="decision"' not in page
    assert "Decision recorded: denied by Bob" in page and "because &lt;of&gt; the photos" in page


def test_an_open_card_hears_nothing_until_somebody_votes(world: World) -> None:
    world.policy(TWO)
    request = ask(world)
    status = poll(client_of(world.alice), world, request)
    assert status() == 204
    decide(client_of(world.bob), world, request, "approve")
    assert status() == 200


def test_an_open_card_turns_expired_by_the_clock(world: World, clock: Clock) -> None:
    request = ask(world, hours=1)
    status = poll(client_of(world.alice), world, request)
    assert status() == 204
    clock.shift(3_700)
    assert status() == 200


def test_hostile_arguments_are_plain_text_with_hidden_characters_shown(world: World) -> None:
    arguments = '{"amount_minor":4200,"currency":"EUR","order":"17","reason":"<script>x()</script> \u202e001\u200b"}'
    page = text_of(client_of(world.alice).get(address(world, ask(world, arguments=arguments.encode()))))
    assert "<script>x()" not in page and "&lt;script&gt;x()" in page
    assert "‹U+202E›001‹U+200B›" in page and "\u202e" not in page


def test_arguments_that_no_renderer_knows_get_the_cautious_headline(world: World) -> None:
    odd = b'{"amount_minor":"4200","currency":"EUR","order":"17"}'
    page = text_of(client_of(world.alice).get(address(world, ask(world, arguments=odd))))
    assert "Call payments.refund on order/17 at payments" in page and "Not rated: treat as high risk" in page


def test_a_long_value_says_how_long_it_is_and_stands_whole_below(world: World) -> None:
    long = "x" * 3_000
    arguments = f'{{"amount_minor":4200,"currency":"EUR","order":"17","reason":"{long}"}}'.encode()
    page = text_of(client_of(world.alice).get(address(world, ask(world, arguments=arguments))))
    assert "3000 characters, all in the text below" in page and long in page
