"""What a run waits for: deadlines with each of their actions, timers, and events that come early, twice and late; over HTTP, woken by the sweep."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conftest import claim_body
from tests.clock import Clock
from tests.scenarios.story import APPROVAL, PAY, Story, waiting
from tests.ui.asking import client_of

DAY = 86_400
SHIPPED = {"kind": "event", "type": "shipped"}
SILENCE = {"wake": "ready", "cancel": "cancelled", "fail": "failed", "hand_off": "blocked"}


@pytest.mark.parametrize("action", SILENCE)
def test_silence_does_what_the_wait_declared_and_says_so_beforehand(action: str, story: Story, clock: Clock) -> None:
    effect = story.ask(waiting(APPROVAL, deadline_seconds=600, on_deadline=action))
    told = story.run()["explanation"]["sentence"]
    page = story.card(story.world.bob)
    clock.shift(540)
    story.sweep()
    assert story.run()["status"] == "waiting"
    clock.shift(61)
    story.sweep()
    run = story.run()
    assert run["status"] == SILENCE[action] and run["explanation"]["sentence"] != told
    assert story.last_wait()["state"] == "expired" and story.last_wait()["cause"] == f"deadline_{action}"
    shown = story.http.get(f"/effects/{effect['id']}").json()
    assert (shown["state"], shown["cause"]) == ("withdrawn", "expired")
    assert story.request.state != "pending"
    assert story.decide(story.world.bob, "approve", page=page).status_code in (409, 410), "silence never approves"
    assert story.counted(effect["key"]) == (0, 0) and story.intact()


@pytest.mark.parametrize(
    ("days", "action", "said", "status"),
    [
        (3, "cancel", "the agent goes on and is told", "ready"),
        (1, "cancel", "the run is cancelled", "cancelled"),
        (1, "fail", "the run fails", "failed"),
    ],
)
def test_card_sentence_and_list_say_what_comes_first_of_deciding_time_and_deadline(
    days: int, action: str, said: str, status: str, story: Story, clock: Clock
) -> None:
    story.world.policy(({"tool": "*", "verdict": "approve", "group": "approvers", "quorum": 1, "decide_by": DAY},))
    story.ask(waiting(APPROVAL, deadline_seconds=days * DAY, on_deadline=action))
    listing = client_of(story.world.charlie).get(f"/t/{story.world.tenant.slug}/runs/")
    card = story.card(story.world.alice).split("If nobody acts")[1].split("</div>")[0]
    for told in (card, story.run()["explanation"]["sentence"], listing.content.decode()):
        assert said in told, told
    clock.shift(DAY - 60)
    story.sweep()
    assert story.run()["status"] == "waiting"
    clock.shift(61)
    story.sweep()
    assert story.run()["status"] == status


def test_every_action_on_silence_is_told_in_its_own_words(story: Story) -> None:
    sentences = set()
    for action in SILENCE:
        story.ask(waiting(APPROVAL, deadline_seconds=60, on_deadline=action))
        explained = story.run()["explanation"]
        sentences.add(" ".join([explained["sentence"], *(item["text"] for item in explained["items"])]))
    assert len(sentences) == len(SILENCE)


def test_a_wait_without_a_deadline_is_refused(story: Story) -> None:
    story.begin()
    step = waiting(SHIPPED)
    del step["wait"]["deadline_seconds"]
    assert story.commit(step, status=422)["code"] == "invalid"
    assert story.run()["status"] == "running"


@pytest.mark.parametrize("late", [0, 7 * 86_400])
def test_a_timer_wakes_the_run_once_however_late_it_is_seen(late: int, story: Story, clock: Clock) -> None:
    story.begin()
    story.commit(waiting({"kind": "timer", "after_seconds": 6 * 3_600}, then="think", deadline_seconds=8 * 3_600))
    clock.shift(6 * 3_600 - 60)
    story.sweep()
    assert story.run()["status"] == "waiting"
    clock.shift(61 + late)
    for _ in range(3):
        story.sweep()
    assert story.run()["status"] == "ready"
    assert [member["outcome"] for member in story.claim()["wait"]["members"]] == ["due"]
    assert len(story.http.get(f"/runs/{story.run_id}/wakes").json()["wakes"]) == 1


def test_a_run_that_sleeps_while_its_workers_come_and_go_is_woken_once(story: Story, clock: Clock) -> None:
    """Workers that restart every few minutes ask for runs all the time; the sleeping one is given to none of them before it is due."""
    story.begin()
    story.commit(waiting({"kind": "timer", "after_seconds": 6 * 3_600}, then="think"))
    for _ in range(12):
        clock.shift(1_700)
        story.sweep()
        assert story.http.post("/runs/claim", offer()).status_code == 204
    clock.shift(1_300)
    story.sweep()
    taken = [story.http.post("/runs/claim", offer()).status_code for _ in range(5)]
    assert taken == [200, 204, 204, 204, 204]
    assert len(story.http.get(f"/runs/{story.run_id}/wakes").json()["wakes"]) == 1


def offer() -> dict[str, Any]:
    return claim_body("1", "2")


def test_an_event_that_came_early_is_taken_doubled_is_a_duplicate_and_late_is_told_so(
    story: Story, clock: Clock
) -> None:
    packet = story.begin()
    early = {"id": "early", "data": {"parcel": 1}}
    assert story.event(**early) == {"status": "kept", "deliveries": 0}
    assert story.event(**early)["status"] == "duplicate"
    story.commit(waiting({**SHIPPED, "since": packet["run"]["created_at"]}, then="think"))
    assert story.event(**early)["status"] == "duplicate", "also after the wait that took it has closed"
    assert story.wake() == "resume"
    (member,) = story.claim()["wait"]["members"]
    assert member["outcome"] == "received" and member["event"]["data"] == {"parcel": 1}
    story.commit(waiting(SHIPPED, then="think", deadline_seconds=60))
    clock.shift(61)
    story.sweep()
    ready = story.run()["status"]
    before = story.http.get(f"/runs/{story.run_id}/waits").json()
    late = {"id": "late"}
    assert story.event(**late) == {"status": "late", "deliveries": 0}
    assert story.event(**late)["status"] == "duplicate"
    assert story.http.get(f"/runs/{story.run_id}/waits").json() == before and story.run()["status"] == ready
    assert story.intact()


def test_one_event_is_consumed_once_by_a_run_that_waits_again(story: Story) -> None:
    story.begin()
    story.commit(waiting(SHIPPED, then="think"))
    assert story.event(id="once")["status"] == "matched"
    assert story.wake() == "resume"
    since = story.claim()["run"]["created_at"]
    story.commit(waiting({**SHIPPED, "since": since}, then="think"))
    story.event(id="once")
    story.sweep()
    assert story.run()["status"] == "waiting"
    assert story.event(id="twice")["status"] == "matched"


def test_the_first_of_two_events_wakes_and_the_loser_is_recorded_and_changes_nothing(story: Story) -> None:
    story.begin()
    story.commit(waiting(SHIPPED, {"kind": "event", "type": "returned"}, then="think"))
    assert story.event(type="returned")["status"] == "matched"
    assert story.event(type="shipped")["status"] in ("late", "kept")
    assert story.wake() == "resume"
    outcomes = [member["outcome"] for member in story.claim()["wait"]["members"]]
    assert outcomes == ["", "received"]
    assert story.commit("complete")["status"] == "completed" and story.intact()


def test_a_proposal_that_nobody_was_asked_about_is_no_leave(story: Story) -> None:
    """Whatever path leads to the permit, without an approval there is none."""
    story.begin()
    made = story.commit({"kind": "give_back", "transition": "issue"}, propose=[PAY])
    assert story.wake() == "ask_again"
    assert story.request.state == "pending" and story.run()["status"] == "waiting"
    assert story.permit(made["effects"]["pay"]["id"], status=409)["code"] == "stale-fence"
