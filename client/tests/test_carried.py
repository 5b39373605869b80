"""What was called before a run was planned anew: nothing is taken for it unless the code says so."""

from __future__ import annotations

from typing import Any

import pytest
from bench import RECEIPT, Bench, Refund, charge, propose
from ledger_script import COMMIT, PERMIT, PROPOSE, committed, effect, packet
from loopback import answer
from resumeapp_client import Context, EffectCarried, EffectDiffers, ResumeappError, Step


def before(state: str = "committed", **fields: Any) -> dict[str, Any]:
    """The payment, as a new plan is told of it."""
    return {"pay": effect(state, result=RECEIPT, carried_from="assess", carried_to="issue", **fields)}


@pytest.mark.parametrize(
    ("amount", "options", "error"),
    [
        (500, {}, EffectCarried),
        (500, {"on_differs": "raise"}, EffectCarried),
        (999, {}, EffectDiffers),
        (999, {"on_differs": "recorded"}, EffectDiffers),
        (999, {"on_carried": "take"}, EffectDiffers),
    ],
)
@pytest.mark.parametrize("state", ["committed", "in_flight", "unknown"])
def test_a_call_of_the_plan_before_is_no_answer_to_a_proposal(
    bench: Bench, state: str, amount: int, options: dict[str, str], error: type[ResumeappError]
) -> None:
    caught: list[ResumeappError] = []

    def anew(ctx: Context[Refund], s: Refund) -> Step:
        try:
            propose(ctx, amount, **options)
        except ResumeappError as raised:
            caught.append(raised)
        return ctx.complete()

    commit = bench.run(anew, packet("anew", effects=before(state)), COMMIT)
    assert [type(each) for each in caught] == [error]
    assert "accept" in caught[0].remedy and "another name" in caught[0].remedy
    assert "propose" not in commit and not bench.asked(PROPOSE) and not bench.target.seen


def test_its_receipt_is_not_the_result_of_another_call(bench: Bench) -> None:
    caught: list[EffectCarried] = []

    def anew(ctx: Context[Refund], s: Refund) -> Step:
        try:
            ctx.perform("pay", call=charge)
        except EffectCarried as carried:
            caught.append(carried)
        return ctx.complete()

    bench.run(anew, packet("anew", effects=before()), COMMIT)
    assert caught[0].facts["carried_to"] == "issue" and not bench.asked(PERMIT)


@pytest.mark.parametrize("way", ["propose", "perform", "accept"])
def test_where_the_code_says_that_it_means_that_one_it_is_accepted_and_answered(bench: Bench, way: str) -> None:
    def anew(ctx: Context[Refund], s: Refund) -> Step:
        if way == "propose":
            propose(ctx, on_carried="take")
        elif way == "accept":
            ctx.accept("pay")
        receipt = ctx.perform("pay", call=charge, on_carried="take" if way == "perform" else "raise")
        return ctx.complete(s.model_copy(update={"receipt": receipt}))

    bench.ledger.on("POST", PROPOSE, answer(200, before()["pay"]))
    commit = bench.run(anew, packet("anew", effects=before()), COMMIT)
    assert bench.asked(PROPOSE) == [{"fence": "0.1", "accept": "pay"}]
    assert commit["state"]["receipt"] == RECEIPT and not bench.target.seen


def test_to_know_of_it_frees_its_name_for_nothing(bench: Bench) -> None:
    caught: list[EffectCarried] = []

    def anew(ctx: Context[Refund], s: Refund) -> Step:
        ctx.accept("pay")
        try:
            propose(ctx)
        except EffectCarried as carried:
            caught.append(carried)
        ctx.propose("second", target="payments", request={"order": "17", "amount_minor": 500})
        return ctx.complete()

    bench.ledger.on("POST", PROPOSE, answer(200, before()["pay"]))
    commit = bench.run(anew, packet("anew", effects=before()), COMMIT)
    assert len(caught) == 1 and [each["name"] for each in commit["propose"]] == ["second"]


@pytest.mark.parametrize(("called_in", "known"), [("issue", ["pay"]), ("anew", [])])
def test_it_goes_on_with_a_run_that_is_kept_until_the_transition_that_called_it(
    bench: Bench, called_in: str, known: list[str]
) -> None:
    told: list[str] = []

    def anew(ctx: Context[Refund], s: Refund) -> Step:
        if s.order == "on":
            told.extend(ctx.effects)
            return ctx.complete()
        return ctx.go_on("anew", s.model_copy(update={"order": "on"}))

    bench.ledger.on("POST", COMMIT, answer(201, committed("running", transition="anew")), answer(201, committed()))
    given = {"pay": effect("committed", carried_from="assess", carried_to=called_in)}
    bench.start(anew, packet("anew", effects=given))
    bench.until(COMMIT, 2)
    bench.stop()
    assert told == known


def test_what_is_still_out_of_an_earlier_instance_hides_no_name(bench: Bench) -> None:
    told: list[str] = []

    def anew(ctx: Context[Refund], s: Refund) -> Step:
        told.extend(each.state for each in ctx.earlier)
        propose(ctx)
        return ctx.complete()

    commit = bench.run(anew, packet("anew", earlier=[effect("in_flight", accepted=True)]), COMMIT)
    assert told == ["in_flight"] and [each["name"] for each in commit["propose"]] == ["pay"]


def test_what_to_do_about_it_is_one_of_two_words(bench: Bench) -> None:
    def anew(ctx: Context[Refund], s: Refund) -> Step:
        with pytest.raises(ValueError, match="on_carried"):
            propose(ctx, on_carried="perhaps")
        return ctx.complete()

    bench.run(anew, packet("anew"), COMMIT)
