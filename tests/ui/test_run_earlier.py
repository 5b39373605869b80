"""What a run's page doesn't show at once is counted and reached: earlier wakes and checkpoints, each on exactly one page."""

from __future__ import annotations

import re
from datetime import timedelta
from uuid import UUID

import pytest
from django.urls import reverse

from ledger.domain.commits import Next, NextKind
from ledger.domain.waits import MemberKind, MemberSpec, SetMode, WaitSpec
from ledger.engine import sweep, wakes
from ledger.models import Checkpoint, Decision
from tests.clock import Clock
from tests.ui.asking import client_of
from tests.world import World


def long_run(world: World, clock: Clock, times: int) -> UUID:
    """A run that slept and was woken so many times, with a checkpoint each."""
    packet = world.claimed_run()
    for n in range(times):
        at = clock.now() + timedelta(seconds=30)
        wait = WaitSpec(SetMode.ALL, (MemberSpec(MemberKind.TIMER, at=at),), at + timedelta(hours=1))
        world.commit(
            packet, Next(NextKind.WAIT, "assess", wait), state={"order": str(n), "amount_minor": n, "currency": "EUR"}
        )
        clock.shift(31)
        sweep.sweep()
        wakes.run(packet.run.id)
        packet = world.claim("1", "2")
    return packet.run.id


def page(world: World, run_id: UUID, query: str = "") -> tuple[int, str]:
    answer = client_of(world.charlie).get(reverse("run", args=[world.tenant.slug, run_id]) + query)
    return answer.status_code, answer.content.decode()


@pytest.mark.parametrize("query", ["?wakes=x", "?wakes=2026-11-30T00:00:00~7", "?checkpoints=x", "?checkpoints=-1"])
def test_a_page_of_a_section_that_is_none_is_refused(world: World, query: str) -> None:
    status, text = page(world, world.start_run(), query)
    assert status == 422 and "first page" in text


def test_every_wake_and_checkpoint_of_a_long_run_is_on_exactly_one_page(world: World, clock: Clock) -> None:
    run_id = long_run(world, clock, 14)
    assert Decision.objects.of(world.tenant).filter(run_id=run_id).count() == 14
    total = Checkpoint.objects.of(world.tenant).filter(run_id=run_id).count()
    assert total == 15
    for name, entry, every in (
        ("wakes", r"over facts (\w+)…", 14),
        ("checkpoints", r'<span class="count">(\d+)</span><span class="untrusted">', total),
    ):
        seen: list[str] = []
        query = ""
        while True:
            status, text = page(world, run_id, query)
            section = text.split(f'id="{name}" ')[1].split("</section>")[0]
            assert status == 200 and f"of {every} {name}" in section
            seen += re.findall(entry, section)
            following = re.search(rf'href="(\?{name}=[^"#]*)#{name}" rel="next"', section)
            if following is None:
                break
            query = following[1]
        assert len(seen) == every == len(set(seen))
        assert name == "wakes" or seen == [str(seq) for seq in range(total, 0, -1)]
        assert f'href="?#{name}">Newest' in section


def test_a_short_run_offers_nothing_earlier(world: World) -> None:
    _, text = page(world, world.start_run())
    assert "Earlier wakes" not in text and "Earlier checkpoints" not in text
