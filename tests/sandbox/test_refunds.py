import threading
from typing import Any

import pytest

from .process import REFUND, Caller, Sandbox


def test_a_refund_without_a_key_is_refused_and_nothing_is_applied(caller: Caller) -> None:
    answer = caller.call("POST", "/refunds", REFUND)
    assert (answer.status, answer.body["error"]) == (400, "idempotency_key_required")
    assert caller.call("GET", "/orders/17").body["refunded_minor"] == 0


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"[]",
        b'{"order": NaN}',
        b'{"order": "17", "order": "18"}',
        b'{"order": "17", "amount_minor": 1, "currency": "EUR", "reason": "\\ud800"}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_a_body_that_is_not_strict_json_is_refused_and_logged(caller: Caller, raw: bytes) -> None:
    answer = caller.call("POST", "/refunds", raw, Idempotency_Key="bad")
    assert (answer.status, answer.body["error"]) == (400, "malformed_json")
    assert caller.counted("bad") == {**caller.counted("bad"), "mutating": 1, "applied": 0}


@pytest.mark.parametrize(
    ("changes", "status", "error"),
    [
        ({"amount_minor": 0}, 400, "bad_field"),
        ({"amount_minor": True}, 400, "bad_field"),
        ({"amount_minor": 1.5}, 400, "bad_field"),
        ({"amount_minor": 2**53}, 400, "bad_field"),
        ({"currency": "eur"}, 400, "bad_field"),
        ({"reason": ""}, 400, "bad_field"),
        ({"surprise": 1}, 400, "unknown_field"),
        ({"order": "18"}, 422, "unknown_order"),
        ({"currency": "USD"}, 422, "currency_mismatch"),
    ],
)
def test_a_bad_field_is_refused_and_the_key_stays_free(
    caller: Caller, changes: dict[str, Any], status: int, error: str
) -> None:
    answer = caller.refund("k", **changes)
    assert (answer.status, answer.body["error"]) == (status, error)
    assert caller.look_up("k").body == {"refunds": []}
    assert caller.refund("k").status == 201


def test_a_key_with_another_body_is_refused_with_both_fingerprints(caller: Caller) -> None:
    caller.refund("k")
    answer = caller.refund("k", reason="another")
    assert (answer.status, answer.body["error"]) == (422, "idempotency_key_reused")
    assert answer.body["stored_fingerprint"] != answer.body["sent_fingerprint"]
    assert caller.counted("k")["amounts"] == [1500]


def test_an_order_that_moved_refuses_the_refund_with_412_and_the_key_stays_free(
    caller: Caller,
) -> None:
    etag = caller.call("GET", "/orders/17").headers["ETag"]
    caller.call("PATCH", "/orders/17", {"amount_minor": 9000})
    answer = caller.refund("k", if_match=etag)
    assert (answer.status, answer.body["current_etag"]) == (412, '"v2"')
    assert caller.look_up("k").body == {"refunds": []}
    assert caller.refund("k", if_match='"v2"').status == 201


def test_more_than_the_order_holds_is_stored_as_refused_and_replayed_as_refused(
    caller: Caller,
) -> None:
    first, again = caller.refund("k", amount_minor=12_001), caller.refund("k", amount_minor=12_001)
    assert first.status == again.status == 422
    assert first.body["error"] == "insufficient" and again.raw == first.raw
    assert again.headers["Idempotency-Replayed"] == "true"
    assert [one["status"] for one in caller.look_up("k").body["refunds"]] == ["refused"]
    assert caller.counted("k")["applied"] == 0


def test_the_same_key_and_body_replay_the_first_result_also_when_the_order_has_moved(
    caller: Caller,
) -> None:
    first = caller.refund("k", if_match='"v1"')
    again = caller.refund("k", if_match='"v1"')
    assert (first.status, again.status) == (201, 200)
    assert again.raw == first.raw and again.headers["Idempotency-Replayed"] == "true"
    assert caller.call("GET", "/orders/17").body["refunded_minor"] == 1500
    assert caller.counted("k") == {
        **caller.counted("k"),
        "mutating": 2,
        "applied": 1,
        "amounts": [1500],
    }


def test_a_refund_moves_the_version_of_its_order(caller: Caller) -> None:
    caller.refund("k")
    answer = caller.call("GET", "/orders/17")
    assert answer.headers["ETag"] == '"v2"' and answer.body["version"] == 2


def test_a_refund_is_found_by_key_by_reference_and_by_time_and_prefix(caller: Caller) -> None:
    made = [caller.refund(key).body for key in ("a-1", "b-1", "a-2")]
    assert caller.look_up("b-1").body["refunds"] == [made[1]]
    assert caller.call("GET", f"/refunds/{made[0]['id']}").body == made[0]
    since = made[0]["created_at"]
    page = caller.call("GET", f"/refunds?since={since}&prefix=a-&limit=1").body
    rest = caller.call("GET", f"/refunds?since={since}&prefix=a-&limit=1&after={page['next_after']}").body
    assert page["refunds"] + rest["refunds"] == [made[0], made[2]] and rest["next_after"] is None


@pytest.mark.parametrize("query", ["", "?key=a&since=2030-01-01T00:00:00Z", "?since=2030-01-01T00:00:00", "?who=me"])
def test_a_look_up_that_asks_nothing_or_too_much_is_refused(caller: Caller, query: str) -> None:
    assert caller.call("GET", f"/refunds{query}").status == 400


def test_a_hundred_same_key_requests_at_once_are_applied_once(sandbox: Sandbox, caller: Caller) -> None:
    barrier = threading.Barrier(10)
    statuses: list[int] = []

    def hammer() -> None:
        mine = sandbox.caller()
        barrier.wait()
        statuses.extend(mine.refund("k").status for _ in range(10))

    threads = [threading.Thread(target=hammer) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses.count(201) == 1 and set(statuses) <= {200, 201, 409}
    assert caller.counted("k") == {**caller.counted("k"), "mutating": 100, "applied": 1}
    assert caller.call("GET", "/orders/17").body["refunded_minor"] == 1500


def test_a_second_request_while_the_first_is_at_work_is_told_so_and_so_is_a_look_up(
    sandbox: Sandbox, caller: Caller
) -> None:
    caller.arm("block_before_apply", key="k")
    first = sandbox.caller()
    first.send("POST", "/refunds", REFUND, Idempotency_Key="k")
    caller.blocked()
    assert caller.refund("k").status == 409
    assert caller.look_up("k").body["refunds"] == [{"id": None, "key": "k", "status": "in_progress"}]
    caller.control("release")
    assert first.read().status == 201
    assert caller.counted("k")["applied"] == 1


def test_a_wire_pays_with_every_request_and_can_not_be_looked_up(caller: Caller) -> None:
    assert [caller.refund("k", path="/wires").status for _ in range(2)] == [201, 201]
    assert caller.call("GET", "/wires?key=k").status == 404
    assert caller.look_up("k").body == {"refunds": []}
    assert caller.counted("k") == {
        **caller.counted("k"),
        "mutating": 2,
        "applied": 2,
        "amounts": [1500, 1500],
    }


def test_a_note_is_sent_once_per_key(caller: Caller) -> None:
    note = {"to": "alice@example.org", "subject": "Refund", "text": "is on its way"}
    first, again = (caller.call("POST", "/notes", note, Idempotency_Key="n") for _ in range(2))
    assert (first.status, again.status) == (201, 200) and first.body == again.body
    assert caller.call("GET", "/notes?key=n").body["notes"] == [first.body]
    assert caller.call("POST", "/notes", {**note, "text": "no"}, Idempotency_Key="n").status == 422
    assert caller.counted("n")["applied"] == 1
