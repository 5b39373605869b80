"""Calls to the server: what is repeated, with which key, and what its errors become."""

from __future__ import annotations

import logging
import socket

import loopback
import pytest
from ledger_script import CLAIM, COMMIT, EFFECT, HEARTBEAT, PERMIT, RUN, SETTLE, committed, effect, packet, permit
from loopback import Loopback, answer, problem, text
from resumeapp_client import Client, EffectDiffers, OwnershipLost, ResumeappError, Unreachable, traceparent
from resumeapp_client.clocks import monotonic

NEXT = {"fence": "0.1", "expect_seq": 3, "state": {}, "next": {"kind": "complete"}}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 412, 413, 422, 500])
def test_a_refusal_is_never_repeated(ledger: Loopback, client: Client, status: int) -> None:
    ledger.on("POST", COMMIT, problem(status, "some-code"), answer(201, committed()))
    with pytest.raises(ResumeappError) as caught:
        client.commit(RUN, NEXT)
    assert (caught.value.code, caught.value.status, caught.value.remedy) == ("some-code", status, "r")
    assert len(ledger.asked("POST", COMMIT)) == 1


@pytest.mark.parametrize(
    "lost",
    [
        pytest.param(loopback.closes, id="closed"),
        pytest.param(loopback.resets_mid_body, id="reset"),
        pytest.param(loopback.ends_early, id="cut"),
        pytest.param(text(201, b'{"seq": 4, "dig'), id="garbled"),
        pytest.param(text(502, b"<html>bad gateway", "text/html"), id="502"),
        pytest.param(problem(503, "unavailable"), id="503"),
        pytest.param(answer(429, None, Retry_After="0"), id="429"),
    ],
)
def test_a_lost_reply_is_asked_for_again_with_the_same_key_and_body(
    ledger: Loopback, client: Client, lost: loopback.Reply
) -> None:
    ledger.on("POST", COMMIT, lost, lost, answer(201, committed()))
    assert client.commit(RUN, NEXT).seq == 4
    calls = ledger.asked("POST", COMMIT)
    assert len(calls) == 3
    assert len({call.headers["idempotency-key"] for call in calls}) == 1
    assert len({call.body for call in calls}) == 1


def test_two_logical_calls_have_two_keys(ledger: Loopback, client: Client) -> None:
    client.commit(RUN, NEXT)
    client.commit(RUN, NEXT)
    assert len({call.headers["idempotency-key"] for call in ledger.asked("POST", COMMIT)}) == 2


def test_calls_by_fence_are_repeated_without_a_key(ledger: Loopback, client: Client) -> None:
    ledger.on("POST", PERMIT, loopback.closes, answer(200, permit()))
    assert client.permit(EFFECT, "0.1").attempt == 1
    assert all("idempotency-key" not in call.headers for call in ledger.asked("POST", PERMIT))


def test_claim_and_heartbeat_are_not_repeated_by_the_call(ledger: Loopback, client: Client) -> None:
    ledger.on("POST", CLAIM, loopback.closes, answer(200, {"packets": [packet()]}))
    ledger.on("POST", HEARTBEAT, loopback.closes, answer(200, {"runs": []}))
    with pytest.raises(Unreachable):
        client.claim({"id": "w", "name": "w", "code_digest": "c"}, [])
    with pytest.raises(Unreachable):
        client.heartbeat("w", [(RUN, "0.1")])


def test_repeating_is_bounded_in_time() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        began = monotonic()
        with (
            Client(f"http://127.0.0.1:{closed.getsockname()[1]}", "k", patience=0.5) as client,
            pytest.raises(Unreachable),
        ):
            client.run(RUN)
        assert monotonic() - began < 2


def test_known_codes_have_their_own_errors(ledger: Loopback, client: Client) -> None:
    ledger.on("POST", COMMIT, problem(409, "effect-differs", facts={"recorded": {"a": 1}, "proposed": {"a": 2}}))
    with pytest.raises(EffectDiffers) as differs:
        client.commit(RUN, NEXT)
    assert differs.value.facts == {"recorded": {"a": 1}, "proposed": {"a": 2}}
    ledger.on("POST", COMMIT, problem(409, "stale-fence", fence="0.9"))
    with pytest.raises(OwnershipLost) as lost:
        client.commit(RUN, NEXT)
    assert lost.value.facts == {"fence": "0.9"}, "facts beside the members of a problem count as well"


def test_a_permit_is_timed_by_the_servers_clock_not_by_ours(ledger: Loopback, client: Client) -> None:
    before = monotonic()
    given = client.permit(EFFECT, "0.1")
    after = monotonic()
    assert before + 30 <= given.send_before <= after + 30, "counted from before the call, three hours of skew and all"
    assert given.answer_before - given.send_before == pytest.approx(30, abs=0.001)


def test_the_date_header_stands_in_for_now_to_the_careful_side(ledger: Loopback, client: Client) -> None:
    fields = permit(send_in=-3 * 3600 + 30)  # by our clock, which the Date header of this server follows
    del fields["permit"]["now"]
    ledger.on("POST", PERMIT, answer(200, fields))
    before = monotonic()
    given = client.permit(EFFECT, "0.1")
    assert 27 < given.send_before - before <= 30


def test_neither_key_nor_payload_is_logged_or_shown(
    ledger: Loopback, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ledger.on("POST", COMMIT, loopback.closes, problem(422, "invalid"))
    with pytest.raises(ResumeappError) as caught:
        client.commit(RUN, {**NEXT, "state": {"card": "4111-secret"}})
    shown = caplog.text + repr(client) + repr(caught.value) + str(caught.value)
    assert "ra_test_key" not in shown
    assert "4111-secret" not in shown


def test_the_trace_context_is_passed_on(ledger: Loopback, client: Client) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    token = traceparent.set(trace)
    try:
        client.commit(RUN, NEXT)
    finally:
        traceparent.reset(token)
    client.commit(RUN, NEXT)
    first, second = ledger.asked("POST", COMMIT)
    assert first.headers["traceparent"] == trace
    assert "traceparent" not in second.headers


def test_a_settle_sends_what_is_known_and_nothing_else(ledger: Loopback, client: Client) -> None:
    settled = client.settle(EFFECT, "0.1", 1, "failed", cause="rejected", result=None)
    assert ledger.asked("POST", SETTLE)[0].json() == {
        "fence": "0.1",
        "attempt": 1,
        "outcome": "failed",
        "cause": "rejected",
    }
    assert settled.effect.cause == "rejected"


def test_claimed_packets_and_effects_are_typed(ledger: Loopback, client: Client) -> None:
    ledger.on("POST", CLAIM, answer(200, {"packets": [packet(effects={"pay": effect("committed", result={"id": 1})})]}))
    (claimed,) = client.claim(
        {"id": "w", "name": "w", "code_digest": "c"}, [{"workflow": "refunds", "versions": ["1"]}]
    )
    assert claimed.effects["pay"].result == {"id": 1}
    ledger.on("POST", CLAIM, answer(204))
    assert client.claim({"id": "w", "name": "w", "code_digest": "c"}, []) == []


def test_an_event_is_structured_and_its_id_is_its_key(ledger: Loopback, client: Client) -> None:
    ledger.on("POST", "/api/v1/events", answer(202, {"status": "matched", "deliveries": 1}))
    assert client.emit("order.paid", "/shop", id="e-1", subject="17", data={"a": 1}).deliveries == 1
    (seen,) = ledger.asked("POST", "/api/v1/events")
    assert seen.headers["content-type"] == "application/cloudevents+json"
    assert "idempotency-key" not in seen.headers
    assert (seen.json()["specversion"], seen.json()["id"]) == ("1.0", "e-1")
