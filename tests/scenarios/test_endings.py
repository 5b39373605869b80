"""How an agent ends its run, and what it says of why."""

from __future__ import annotations

from ledger.models import Body
from tests.scenarios.story import Story

WHY = "the order is of a shop that closed — nothing to refund"


def test_why_an_agent_gave_up_is_told_by_the_run_and_stands_in_no_entry(story: Story) -> None:
    story.begin()
    assert story.commit({"kind": "fail", "reason": WHY})["status"] == "failed"
    assert f"its agent ended it in “assess”, and said: “{WHY}”" in story.run()["explanation"]["sentence"]
    assert WHY not in story.http.get(f"/runs/{story.run_id}/journal").content.decode() and story.intact()
    assert Body.objects.of(story.world.tenant).filter(content=WHY.encode()).count() == 1


def test_a_commit_that_names_another_version_than_its_lease_is_refused(story: Story) -> None:
    packet = story.begin()
    before = story.run()
    told = story.commit("complete", status=422, version="2")
    assert told["code"] == "invalid" and "claimed this run with version 1" in told["detail"]
    assert story.run()["seq"] == before["seq"] and story.run()["status"] == "running"
    assert packet["version"] == "1" and story.commit("complete")["status"] == "completed"
