"""Workflow documents, states and durations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
from ledger_script import packet
from pydantic import BaseModel
from resumeapp_client import StateMismatch, Workflow, approval, event, timer
from resumeapp_client.records import StateBody
from resumeapp_client.waits import seconds
from resumeapp_client.workflows import verified


class Old(BaseModel):
    order: str
    channel: Literal["card", "wire"] = "card"


class New(Old):
    note: str = "none"


def made(state: type[BaseModel] = New, version: str = "2", **options: Any) -> Workflow[Any]:
    flow: Workflow[Any] = Workflow("refunds", version, "assess", state, **options)

    @flow.transition(targets=["payments"], tools=["payments.refund"], on_conflict=("replan", "assess"))
    def issue(ctx: Any, s: Any) -> Any:
        return ctx.complete()

    @flow.transition
    def assess(ctx: Any, s: Any) -> Any:
        return ctx.go_on("issue")

    return flow


def test_an_undeclared_initial_transition_is_refused() -> None:
    flow: Workflow[Any] = Workflow("refunds", "1", "nowhere", Old)
    with pytest.raises(ValueError, match="declares no transition 'nowhere'"):
        flow.spec()


def test_a_transition_is_declared_once() -> None:
    flow = made()
    with pytest.raises(ValueError, match="declared twice"):
        flow.transition(flow.transitions["issue"].function)


def test_the_document_says_what_the_decorators_say() -> None:
    spec = made(takes_over_from=["1"]).spec()
    assert spec["transitions"] == {
        "assess": {"targets": [], "tools": [], "on_conflict": ["ask_again"]},
        "issue": {"targets": ["payments"], "tools": ["payments.refund"], "on_conflict": ["replan", "assess"]},
    }
    assert spec["state_schema"]["properties"]["note"]["default"] == "none"
    assert (spec["initial"], spec["takes_over_from"], spec["dependencies"]) == ("assess", ["1"], {})


def test_a_version_says_that_it_hears_its_own_agents_only_where_it_does() -> None:
    assert "own_events" not in made().spec()
    assert made(own_events=True).spec()["own_events"] is True


def test_a_state_of_a_version_that_is_not_taken_over_is_refused() -> None:
    with pytest.raises(StateMismatch, match="doesn't take over"):
        made().load("1", '{"order":"17"}')


@pytest.mark.parametrize(
    ("text", "place"),
    [('{"order":"17","channel":"cash"}', "channel"), ("{}", "order"), ('{"order":"17","extra":1}', "extra")],
)
def test_a_state_that_fits_only_in_part_is_refused_without_its_values(text: str, place: str) -> None:
    with pytest.raises(StateMismatch) as caught:
        made().load("2", text)
    assert place in caught.value.reason
    assert "cash" not in str(caught.value)


def test_new_fields_get_their_defaults_from_an_older_state() -> None:
    assert made(takes_over_from=["1"]).load("1", '{"order":"17","channel":"wire"}') == New(order="17", channel="wire")


def test_an_upgrade_reads_the_older_state() -> None:
    flow = made(takes_over_from=["1"])
    flow.upgrade(lambda version, old: {"order": old["order_id"], "note": f"from {version}"})
    assert flow.load("1", '{"order_id":"17"}') == New(order="17", note="from 1")
    assert flow.load("2", '{"order":"17"}') == New(order="17"), "its own states need none"


@pytest.mark.parametrize(
    "change", [{"json": '{"order":"18"}'}, {"salt": "01" * 16}, {"commitment": "00" * 32}, {"salt": "x"}]
)
def test_a_damaged_state_is_refused_before_it_is_decoded(change: dict[str, str]) -> None:
    whole = packet(state={"order": "17"})["checkpoint"]["state"]
    assert verified(StateBody.model_validate(whole)) == '{"order":"17"}'
    with pytest.raises(StateMismatch, match="commitment"):
        verified(StateBody.model_validate(whole | change))


def test_the_code_digest_is_stable_and_moves_with_the_version() -> None:
    assert made().code_digest() == made().code_digest()
    assert made().code_digest() != made(version="3").code_digest()


@pytest.mark.parametrize("wrong", ["", "24", "h", "24h ", "1.5h", "-1h", 0, timedelta(0), "0s"])
def test_what_is_no_duration_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="duration"):
        seconds(wrong)


def test_durations_are_elapsed_seconds() -> None:
    assert [seconds(given) for given in ("24h", "1d12h", "90s", 5, timedelta(minutes=2))] == [86400, 129600, 90, 5, 120]


def test_members_are_written_as_the_contract_says() -> None:
    assert approval("pay").fields == {"kind": "approval", "effect": "pay"}
    assert event("order.paid", subject="17").fields == {"kind": "event", "type": "order.paid", "subject": "17"}
    assert timer("90m").fields == {"kind": "timer", "after_seconds": 5400}
    assert timer(datetime(2026, 1, 31, tzinfo=UTC)).fields == {"kind": "timer", "at": "2026-01-31T00:00:00+00:00"}
    with pytest.raises(ValueError, match="no offset"):
        timer(datetime(2026, 1, 31))
