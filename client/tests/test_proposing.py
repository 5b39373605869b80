"""What a worker does with what its transition proposes."""

from __future__ import annotations

from bench import RECEIPT, Bench, Refund, charge, propose
from ledger_script import (
    COMMIT,
    PERMIT,
    PROPOSE,
    REQUEST,
    SETTLE,
    WITHDRAW,
    effect,
    packet,
)
from loopback import answer
from resumeapp_client import (
    Context,
    EffectDiffers,
    Step,
    approval,
    timer,
)


def test_proposals_ride_in_the_commit(bench: Bench) -> None:
    def assess(ctx: Context[Refund], s: Refund) -> Step:
        pay = ctx.propose("pay", target="payments", request=REQUEST, observes="orders/17")
        return ctx.wait(approval(pay), timer("1h"), deadline="24h", on_deadline="cancel", then="issue")

    commit = bench.run(assess, packet("assess"), COMMIT)
    assert commit["propose"] == [
        {"name": "pay", "tool": "payments.pay", "target": "payments", "resource": "orders/17", "request": REQUEST}
    ]
    assert commit["next"] == {
        "kind": "wait",
        "transition": "issue",
        "wait": {
            "mode": "any",
            "members": [{"kind": "approval", "effect": "pay"}, {"kind": "timer", "after_seconds": 3600}],
            "deadline_seconds": 86400,
            "on_deadline": "cancel",
        },
    }
    assert not bench.asked(PROPOSE)


def test_performing_a_new_proposal_records_it_first_and_follows_its_sequence(bench: Bench) -> None:
    def at_once(ctx: Context[Refund], s: Refund) -> Step:
        ctx.perform(propose(ctx), call=charge)
        return ctx.complete()

    commit = bench.run(at_once, packet("at_once"), COMMIT)
    assert bench.asked(PROPOSE)[0]["expect_seq"] == 3
    assert commit["expect_seq"] == 4
    assert "propose" not in commit
    order = [seen.path for seen in bench.ledger.seen if seen.path in (PROPOSE, PERMIT, SETTLE, COMMIT)]
    assert order == [PROPOSE, PERMIT, SETTLE, COMMIT]


def test_another_answer_of_the_model_takes_the_recorded_effect(bench: Bench) -> None:
    def again(ctx: Context[Refund], s: Refund) -> Step:
        receipt = ctx.perform(propose(ctx, 999), call=charge)
        return ctx.complete(s.model_copy(update={"receipt": receipt}))

    given = packet("again", effects={"pay": effect("committed", result=RECEIPT)})
    assert bench.run(again, given, COMMIT)["state"]["receipt"] == RECEIPT
    assert not bench.target.seen


def test_another_answer_of_the_model_can_be_refused_with_both_sides(bench: Bench) -> None:
    caught: list[EffectDiffers] = []

    def strict(ctx: Context[Refund], s: Refund) -> Step:
        try:
            propose(ctx, 999, on_differs="raise")
        except EffectDiffers as differs:
            caught.append(differs)
            ctx.withdraw("pay")
        return ctx.complete()

    bench.ledger.on("POST", WITHDRAW, answer(200, effect("withdrawn", cause="by_agent")))
    bench.run(strict, packet("strict", effects={"pay": effect()}), COMMIT)
    assert caught[0].facts["recorded"]["request"] == REQUEST
    assert caught[0].facts["proposed"]["request"]["amount_minor"] == 999
    assert "999" not in str(caught[0])
    assert len(bench.asked(WITHDRAW)) == 1


def test_one_name_for_two_effects_in_one_execution_is_an_error(bench: Bench) -> None:
    def confused(ctx: Context[Refund], s: Refund) -> Step:
        propose(ctx)
        propose(ctx, 999)
        return ctx.complete()

    bench.leave(confused, packet("confused"))


def test_a_withdrawn_proposal_that_was_never_recorded_leaves_no_trace(bench: Bench) -> None:
    def undecided(ctx: Context[Refund], s: Refund) -> Step:
        assert ctx.withdraw(propose(ctx)).state == "withdrawn"
        return ctx.give_back()

    commit = bench.run(undecided, packet("undecided"), COMMIT)
    assert "propose" not in commit
    assert commit["next"] == {"kind": "give_back", "transition": "undecided"}
