"""Lists that are left open: silent while they are true, and telling what came and what left, to whoever may read them."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import EffectState
from ledger.domain.identity import Caller
from ledger.services import effects
from tests.clock import Clock
from tests.ui.asking import client_of
from tests.ui.scenes import completed, handed_over, lost
from tests.world import World

LISTS = ("runs", "reconcile", "handoffs", "history")


class Open:
    """A list as somebody has it open."""

    def __init__(self, client: Client, world: World, name: str, query: str = "") -> None:
        self.client, self.here = client, reverse(name, args=[world.tenant.slug])
        page = client.get(self.here + query).content.decode()
        found = re.search(r'data-live="([^"]+)"', page)
        assert found
        self.address = html.unescape(found[1])

    def ask(self) -> Any:
        return self.client.get(self.address, headers={"HX-Request": "true"})

    def told(self) -> str:
        answer = self.ask()
        if answer.status_code == 204:
            return ""
        text = answer.content.decode()
        assert answer.status_code == 200 and "<html" not in text
        bar = re.search(r">([^<]*), show</a>", text)
        return bar[1] if bar else "the counts"


def charlie(world: World) -> Caller:
    return Caller(world.tenant.pk, f"person:{world.charlie.pk}", person_id=world.charlie.pk)


@pytest.mark.parametrize("name", LISTS)
def test_a_stranger_is_told_nothing_and_a_broken_address_what_to_do(world: World, name: str) -> None:
    opened = Open(client_of(world.dora), world, name)
    assert client_of(World().alice).get(opened.address).status_code == 404
    wrong = "?shown=x" if name in {"reconcile", "handoffs"} else "?since=x"
    assert client_of(world.dora).get(reverse(f"{name}_newer", args=[world.tenant.slug]) + wrong).status_code == 422


def test_who_may_not_audit_hears_nothing_of_the_history(world: World) -> None:
    address = Open(client_of(world.dora), world, "history").address
    assert client_of(world.alice).get(address).status_code == 403


def test_runs_tell_how_many_moved_among_those_that_are_listed(world: World, clock: Clock) -> None:
    every = Open(client_of(world.charlie), world, "runs")
    ended = Open(client_of(world.charlie), world, "runs", "?status=completed")
    assert every.told() == ended.told() == ""
    clock.shift(1)
    packet = world.claimed_run()
    assert (every.told(), ended.told()) == ("1 moved", "")
    world.commit(packet, Next(NextKind.COMPLETE))
    assert (every.told(), ended.told()) == ("1 moved", "1 moved")
    assert "status=completed" in ended.ask().content.decode()


def test_calls_to_reconcile_tell_what_came_and_what_was_settled(world: World, clock: Clock) -> None:
    empty = Open(client_of(world.charlie), world, "reconcile")
    effect = lost(world, clock)
    assert empty.told() == "1 new"
    full = Open(client_of(world.charlie), world, "reconcile")
    assert full.told() == ""
    lost(world, clock)
    effects.verdict(
        charlie(world),
        effect.pk,
        EffectState.COMMITTED,
        "",
        "Statement, line 4.",
        "re_5512",
        read=effects.read_now(effect.pk),
    )
    assert full.told() == "1 new, 1 settled"
    badge = full.ask().content.decode()
    assert '<span id="badge-reconcile" class="count">1' in badge


def test_handoffs_tell_what_came_and_what_was_closed_on_each_list(world: World, clock: Clock) -> None:
    mine, closed = (Open(client_of(world.charlie), world, "handoffs", query) for query in ("", "?show=closed"))
    handoff = handed_over(world, clock)
    assert (mine.told(), closed.told()) == ("1 new", "the counts")
    full = Open(client_of(world.charlie), world, "handoffs")
    read = effects.read_now(handoff.effect_id)
    effects.verdict(charlie(world), handoff.effect_id, EffectState.FAILED, "rejected", "Refused.", read=read)
    assert full.told() == "1 closed" and closed.told().startswith("1 new")
    assert "show=closed" in closed.ask().content.decode()


def test_the_history_tells_how_many_entries_came_for_its_search(world: World, clock: Clock) -> None:
    every = Open(client_of(world.dora), world, "history")
    started = Open(client_of(world.dora), world, "history", "?verb=run.start&since=2020-01-01")
    assert every.told() == started.told() == ""
    clock.shift(1)
    completed(world)
    assert started.told() == "1 new" and int(every.told().split()[0]) > 1
    assert "since=2020-01-01" in started.ask().content.decode()


def test_an_unchanged_list_still_brings_counts_that_changed(world: World, clock: Clock) -> None:
    opened = Open(client_of(world.charlie), world, "runs", "?status=cancelled")
    assert opened.told() == ""
    lost(world, clock)
    assert opened.told() == "the counts"
    assert '<span id="badge-reconcile" class="count">1' in opened.ask().content.decode()
