"""What each end of a call to a target is taken for. Real servers, real sockets."""

from __future__ import annotations

import json
import socket
import time
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx2 as httpx
import loopback
import pytest
from loopback import Loopback, answer, text
from resumeapp_client.calls import Accepted, CallFailed, Done, Report, TargetHttp, make
from resumeapp_client.clocks import monotonic
from resumeapp_client.records import Permit

REQUEST = {"order": "17", "amount_minor": 500}


IDS = {
    "a number": (1042, "1042"),
    "a uuid": (UUID(int=7), str(UUID(int=7))),
    "a text": ("rf_1", "rf_1"),
    "none": (None, None),
}


def permit(send_in: float = 5, answer_in: float = 5, **fields: Any) -> Permit:
    now = datetime.now(UTC)
    return Permit(
        attempt=1,
        key="ra_key",
        send_by=now,
        answer_by=now,
        precondition='"v1"',
        request=REQUEST,
        send_before=monotonic() + send_in,
        answer_before=monotonic() + answer_in,
        **fields,
    )


def charge(http: TargetHttp, _permit: Permit) -> Any:
    return http.post("/refunds").json()


def outcome(url: str, given: Permit | None = None, call: Any = charge, gone: bool = False, **options: Any) -> Report:
    given = given or permit()
    return make(call, TargetHttp(given, url, options.get("transport"), lambda: gone), given)


def ends(report: Report) -> tuple[str, str | None]:
    return report.outcome, report.cause


@pytest.mark.parametrize("form", ["post", "json", "content"])
def test_a_call_sends_the_bytes_that_the_ledger_recorded(target: Loopback, form: str) -> None:
    target.on("POST", "/refunds", answer(201, {"id": "rf_1"}))
    recorded = '{"rate":0.00001,"small":1e-7,"whole":100,"\U0001f600":1,"\ufb01":2}'.encode()
    given = permit().model_copy(update={"request": json.loads(recorded), "verbatim": True})
    options: dict[str, Any] = {"json": {**given.request, "whole": 100.0}} if form == "json" else {}
    options |= {"content": recorded} if form == "content" else {}
    assert outcome(target.url, given, lambda http, _: http.post("/refunds", **options).json()).outcome == "committed"
    assert [seen.body for seen in target.seen] == [recorded]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        pytest.param(answer(401, {"error": "unauthorised"}), ("failed", "rejected"), id="401"),
        pytest.param(answer(400, {"error": "bad"}), ("failed", "rejected"), id="400"),
        pytest.param(answer(412, {"error": "moved"}), ("failed", "rejected"), id="412"),
        pytest.param(answer(422, {"error": "insufficient"}), ("failed", "rejected"), id="422"),
        pytest.param(text(422, b'{"error": "insuff'), ("failed", "rejected"), id="422 that says little"),
        pytest.param(answer(422, {"error": "idempotency_key_reused"}), ("unknown", None), id="422 about the key"),
        pytest.param(answer(400, {"type": "idempotency_error"}), ("unknown", None), id="400 about the key"),
        pytest.param(answer(409, {"error": "in_progress"}), ("unknown", None), id="409"),
        pytest.param(answer(408), ("unknown", None), id="408"),
        pytest.param(answer(425), ("unknown", None), id="425"),
        pytest.param(answer(429, {}, Retry_After="7"), ("failed", "throttled"), id="429"),
        pytest.param(answer(500, {"error": "oops"}), ("unknown", None), id="500"),
        pytest.param(answer(503, {}, Retry_After="7"), ("unknown", None), id="503"),
        pytest.param(answer(302, None, Location="/elsewhere"), ("unknown", None), id="redirect"),
        pytest.param(text(201, b'{"id": "rf_1", "amo'), ("unknown", None), id="truncated JSON"),
        pytest.param(text(201, b"\xff\xfe"), ("unknown", None), id="garbled"),
        pytest.param(text(200, b"<html>", "text/html"), ("unknown", None), id="not what the agent's code reads"),
        pytest.param(loopback.resets_mid_body, ("unknown", None), id="reset mid body"),
        pytest.param(loopback.ends_early, ("unknown", None), id="body ends early"),
        pytest.param(loopback.closes, ("unknown", None), id="closed without an answer"),
        pytest.param(answer(201, {"id": "rf_1"}), ("committed", None), id="201"),
    ],
)
def test_each_reply_is_taken_for_no_more_than_it_says(target: Loopback, reply: loopback.Reply, expected: Any) -> None:
    target.on("POST", "/refunds", reply)
    assert ends(outcome(target.url)) == expected
    assert len(target.seen) == 1, "a call is sent once"


@pytest.mark.parametrize("slow", [loopback.hangs, loopback.drips])
def test_a_target_that_is_too_slow_leaves_the_outcome_unknown(target: Loopback, slow: loopback.Reply) -> None:
    target.on("POST", "/refunds", slow)
    began = time.monotonic()
    assert ends(outcome(target.url, permit(answer_in=0.4))) == ("unknown", None)
    assert time.monotonic() - began < 3


def test_a_refused_connection_is_not_dispatched() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        assert ends(outcome(f"http://127.0.0.1:{port}")) == ("failed", "not_dispatched")


def test_an_unresolvable_name_is_not_dispatched() -> None:
    assert ends(outcome("http://target.invalid")) == ("failed", "not_dispatched")


def test_a_failed_handshake_is_not_dispatched(target: Loopback) -> None:
    assert ends(outcome(target.url.replace("http:", "https:"))) == ("failed", "not_dispatched")


def test_nothing_is_sent_after_send_by(target: Loopback) -> None:
    assert ends(outcome(target.url, permit(send_in=-0.01))) == ("failed", "not_dispatched")
    assert not target.seen


def test_nothing_is_sent_when_send_by_passes_while_connecting(target: Loopback) -> None:
    given, connecting = permit(send_in=1.0), []

    class Slow(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            connecting.append(given.send_before - monotonic())
            time.sleep(max(0.0, connecting[0]) + 0.05)
            return super().handle_request(request)

    assert ends(outcome(target.url, given, transport=Slow())) == ("failed", "not_dispatched")
    assert connecting and connecting[0] > 0, "it began to connect in time"
    assert not target.seen


def test_nothing_is_sent_for_a_lost_run(target: Loopback) -> None:
    assert ends(outcome(target.url, gone=True)) == ("failed", "not_dispatched")
    assert not target.seen


def test_a_transport_that_fails_to_connect_after_sending_is_believed_in_nothing(target: Loopback) -> None:
    target.on("POST", "/refunds", answer(201, {"id": "rf_1"}))

    class Retrying(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            super().handle_request(request).read()
            raise httpx.ConnectError("the second try")

    assert ends(outcome(target.url, transport=Retrying())) == ("unknown", None)


def test_any_exception_of_a_bare_call_is_unknown() -> None:
    def bare(_http: TargetHttp, _permit: Permit) -> Any:
        raise ConnectionRefusedError

    assert ends(outcome("", call=bare)) == ("unknown", None)


def test_code_that_swallows_a_refusal_commits_nothing(target: Loopback) -> None:
    target.on("POST", "/refunds", answer(500))

    def careless(http: TargetHttp, _permit: Permit) -> Any:
        try:
            return http.post("/refunds").json()
        except CallFailed:
            return {"ok": True}

    assert ends(outcome(target.url, call=careless)) == ("unknown", None)


class TriesAgain(httpx.BaseTransport):
    """A library under the call that sends again what wasn't answered well."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        reply: httpx.Response | None = None
        for _ in range(3):
            try:
                with httpx.HTTPTransport(trust_env=False) as transport:
                    reply = transport.handle_request(request)
                    reply.read()
                if reply.status_code < 500:
                    return reply
            except httpx.TransportError:
                continue
        assert reply is not None
        return reply


@pytest.mark.parametrize(
    "first", [loopback.resets_mid_body, loopback.closes, answer(503)], ids=["reset", "closed", "503"]
)
@pytest.mark.parametrize("then", [answer(422, {"error": "there is one"}), answer(429), answer(201, {"id": "rf_2"})])
def test_a_library_that_tries_again_under_the_call_sends_nothing_more(
    target: Loopback, first: loopback.Reply, then: loopback.Reply
) -> None:
    target.on("POST", "/refunds", first, then)
    assert ends(outcome(target.url, transport=TriesAgain())) == ("unknown", None)
    (seen,) = target.seen
    assert seen.headers["idempotency-key"] == "ra_key"


def test_a_second_request_under_one_permit_is_not_sent(target: Loopback) -> None:
    target.on("POST", "/refunds", answer(201, {"id": "rf_1"}))

    def twice(http: TargetHttp, _permit: Permit) -> Any:
        http.post("/refunds")
        return http.post("/refunds").json()

    assert ends(outcome(target.url, call=twice)) == ("unknown", None)
    assert len(target.seen) == 1


def test_a_result_that_is_no_json_is_unknown(target: Loopback) -> None:
    assert ends(outcome(target.url, call=lambda _http, _permit: object())) == ("unknown", None)
    assert ends(outcome(target.url, call=lambda _http, _permit: float("nan"))) == ("unknown", None)


def test_a_call_carries_key_precondition_and_the_permitted_bytes(target: Loopback) -> None:
    target.on("POST", "/refunds", answer(201, {"id": "rf_1"}))
    call = lambda http, _permit: http.post("/refunds", headers={"Idempotency-Key": "mine", "X-Token": "t"}).json()  # noqa: E731
    outcome(target.url, call=call)
    (seen,) = target.seen
    assert seen.headers["idempotency-key"] == "ra_key", "the ledger's, whatever the agent says"
    assert seen.headers["if-match"] == '"v1"'
    assert seen.headers["x-token"] == "t"
    assert seen.body == b'{"amount_minor":500,"order":"17"}'


def test_throttling_hands_on_when_to_ask_again(target: Loopback) -> None:
    target.on("POST", "/refunds", answer(429, {}, Retry_After="7"))
    report = outcome(target.url)
    assert (report.retry_after, report.ask_after_seconds) == (7, None), "the ledger takes ask_after with accepted only"


def test_a_taken_request_is_accepted_not_committed(target: Loopback) -> None:
    target.on("POST", "/refunds", answer(202, {"id": "rf_1"}))
    assert outcome(target.url).outcome == "accepted"
    target.on("POST", "/refunds", answer(201, {"id": "rf_1", "status": "pending"}))

    def pending(http: TargetHttp, _permit: Permit) -> Any:
        return Accepted(http.post("/refunds").json()["id"], ask_after_seconds=5)

    report = outcome(target.url, call=pending)
    assert (report.outcome, report.reference, report.ask_after_seconds) == ("accepted", "rf_1", 5)


def test_a_success_brings_result_and_reference(target: Loopback) -> None:
    target.on("POST", "/refunds", answer(201, {"id": "rf_1"}))
    report = outcome(target.url, call=lambda http, _permit: Done(http.post("/refunds").json(), "rf_1"))
    assert report == Report("committed", reference="rf_1", result={"id": "rf_1"})


@pytest.mark.parametrize(("own", "reported"), IDS.values(), ids=IDS)
@pytest.mark.parametrize("kind", [Done, Accepted])
def test_whatever_a_target_has_for_its_ids_is_reported_as_text(
    target: Loopback, own: Any, reported: Any, kind: Any
) -> None:
    target.on("POST", "/refunds", answer(201, {"id": "rf_1"}))

    def call(http: TargetHttp, _permit: Permit) -> Any:
        found = http.post("/refunds").json()
        return Done(found, reference=own) if kind is Done else Accepted(reference=own)

    report = outcome(target.url, call=call)
    assert report.reference == reported
    assert report.outcome == ("committed" if kind is Done else "accepted")


def test_a_reference_that_no_text_can_hold_leaves_the_outcome_unknown(target: Loopback) -> None:
    target.on("POST", "/refunds", answer(201, {"id": "rf_1"}))
    report = outcome(target.url, call=lambda http, _: Done(http.post("/refunds").json(), reference="\ud800"))
    assert ends(report) == ("unknown", None)
