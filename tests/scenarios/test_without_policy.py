"""A tenant in which nobody has published a policy: nothing is called, and everybody is told why."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

import pytest

from ledger.models import Handoff, PolicyVersion
from tests.sandbox.process import Sandbox
from tests.scenarios.story import APPROVAL, PAY, Story, waiting
from tests.ui.asking import client_of
from tests.world import RULES, World


class Unruled(World):
    """People, agents and targets, and no policy until a test publishes one."""

    def policy(self, rules: Any) -> None:
        if rules is not RULES:
            super().policy(rules)


@pytest.fixture
def unruled(committed: None, service: Sandbox) -> Iterator[Story]:
    story = Story(Unruled(), service)
    assert not PolicyVersion.objects.of(story.world.tenant).exists()
    yield story
    service.hang_up()


def page(story: Story, path: str) -> str:
    slug = story.world.tenant.slug
    return html.unescape(client_of(story.world.charlie).get(f"/t/{slug}/{path}").content.decode())


def test_who_asks_for_leave_is_told_that_the_policy_denies_it_and_nobody_is_asked(unruled: Story) -> None:
    unruled.begin()
    unruled.commit(waiting(APPROVAL), propose=[PAY])
    assert unruled.wake() == "resume"
    packet = unruled.claim()
    assert [member["outcome"] for member in packet["wait"]["members"]] == ["denied_by_policy"]
    told = unruled.http.get(f"/runs/{unruled.run_id}/resume-packet.md").content.decode()
    assert "denied_by_policy" in told or "denied by policy" in told
    effect = unruled.effect()
    assert (effect["state"], effect["cause"]) == ("withdrawn", "denied")
    assert unruled.permit(effect["id"], status=409)["code"] == "wrong-state"
    told = page(unruled, f"runs/{unruled.run_id}/")
    assert "Approval of “pay”" in told and "Denied by policy" in told
    assert unruled.counted(effect["key"]) == (0, 0) and unruled.intact()


def test_what_nobody_was_asked_about_goes_to_an_operator_who_reads_that_there_is_no_policy(unruled: Story) -> None:
    unruled.begin()
    unruled.commit({"kind": "go_on", "transition": "issue"}, propose=[PAY])
    assert unruled.wake() == "hand_off"
    handoff = Handoff.objects.of(unruled.world.tenant).get(run_id=unruled.run_id)
    assert handoff.reason == "policy:denied"
    assert "“Policy allows it” did not pass: denied" in unruled.run()["explanation"]["sentence"]
    assert "policy none: not allowed" in page(unruled, f"handoffs/{handoff.pk}/")
    unruled.world.policy(({"tool": "*", "verdict": "allow"},))
    unruled.close_handoff("wake")
    assert unruled.wake() == "resume"
    unruled.claim()
    effect = unruled.effect()
    assert unruled.pay(unruled.permit(effect["id"])["permit"]).status == 201 and unruled.intact()
