import http.client
import threading
import time

import pytest

from .process import REFUND, Caller, Sandbox

NOTHING = (ConnectionError, http.client.BadStatusLine, http.client.IncompleteRead)


def test_an_unknown_fault_is_refused_with_the_known_ones(caller: Caller) -> None:
    answer = caller.call("POST", "/_control/faults", {"fault": "gremlins"})
    assert (answer.status, answer.body["error"]) == (400, "unknown_fault")
    assert "lying_200" in answer.body["remedy"]


@pytest.mark.parametrize(
    ("fault", "status", "applied"),
    [
        ("error_500_applied", 500, 1),
        ("error_500_not_applied", 500, 0),
        ("conflict_409", 409, 0),
        ("unprocessable_422", 422, 0),
        ("throttled_429", 429, 0),
        ("unauthorised_401", 401, 0),
        ("lying_200", 201, 0),
        ("wrong_reference", 201, 1),
        ("truncated_body", 201, 1),
    ],
)
@pytest.mark.parametrize("path", ["/refunds", "/wires"])
def test_a_fault_answers_and_applies_as_its_name_says(
    caller: Caller, path: str, fault: str, status: int, applied: int
) -> None:
    caller.arm(fault, path=path)
    assert caller.refund("k", path=path).status == status
    assert caller.counted("k") == {**caller.counted("k"), "mutating": 1, "applied": applied}
    if path == "/refunds":
        assert len(caller.look_up("k").body["refunds"]) == applied
    assert caller.refund("another", path=path).status == 201


def test_throttling_says_when_to_come_back(caller: Caller) -> None:
    caller.arm("throttled_429", retry_after=7)
    assert caller.refund("k").headers["Retry-After"] == "7"


def test_a_truncated_body_is_a_complete_message_with_half_the_json(caller: Caller) -> None:
    caller.arm("truncated_body")
    answer = caller.refund("k")
    whole = caller.refund("k").raw
    assert answer.raw == whole[: len(whole) // 2]


def test_a_wrong_reference_names_no_refund(caller: Caller) -> None:
    caller.arm("wrong_reference")
    told = caller.refund("k").body["id"]
    assert caller.call("GET", f"/refunds/{told}").status == 404
    assert caller.look_up("k").body["refunds"][0]["id"] != told


@pytest.mark.parametrize(
    ("fault", "applied"),
    [("timeout_before_apply", 0), ("timeout_after_apply", 1), ("reset_mid_body", 1)],
)
def test_a_call_that_ends_without_an_answer_was_applied_as_the_fault_says(
    caller: Caller, fault: str, applied: int
) -> None:
    caller.arm(fault, seconds=0.05)
    with pytest.raises(NOTHING):
        caller.refund("k")
    caller.connection.close()
    assert caller.counted("k") == {**caller.counted("k"), "mutating": 1, "applied": applied}


def test_a_reset_comes_after_the_head_and_half_of_the_body(sandbox: Sandbox, caller: Caller) -> None:
    caller.arm("reset_mid_body")
    other = sandbox.caller()
    other.send("POST", "/refunds", REFUND, Idempotency_Key="k")
    response = other.connection.getresponse()
    assert response.status == 201
    with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
        response.read()


def test_a_doubled_reply_comes_twice_for_one_refund(sandbox: Sandbox, caller: Caller) -> None:
    caller.arm("doubled_reply")
    other = sandbox.caller()
    other.send("POST", "/refunds", REFUND, Idempotency_Key="k")
    assert other.connection.sock
    stream = other.connection.sock.makefile("rb")
    assert stream.read().count(b"HTTP/1.1 201 Created") == 2
    assert caller.counted("k")["applied"] == 1


def test_a_slow_service_applies_also_when_its_caller_has_left(sandbox: Sandbox, caller: Caller) -> None:
    caller.arm("slow", seconds=0.3)
    other = sandbox.caller()
    began = time.monotonic()
    other.send("POST", "/refunds", REFUND, Idempotency_Key="k")
    other.connection.close()
    while caller.counted("k")["applied"] == 0:
        assert time.monotonic() - began < 5
    assert time.monotonic() - began >= 0.3


def test_a_forgotten_key_is_paid_again_and_look_up_by_key_finds_nothing(caller: Caller) -> None:
    first = caller.refund("k").body
    assert caller.control("forget", {"key": "k"}) == {"forgotten": 1}
    assert caller.look_up("k").body == {"refunds": []}
    assert caller.call("GET", f"/refunds/{first['id']}").status == 200
    caller.arm("key_forgotten")
    assert [caller.refund("k").status for _ in range(2)] == [201, 201]
    assert caller.counted("k")["applied"] == 3


@pytest.mark.parametrize("each_key", [False, True])
def test_the_first_look_ups_answer_absent_in_all_or_for_each_key(caller: Caller, each_key: bool) -> None:
    for key in ("a", "b"):
        caller.refund(key)
    caller.arm("absent_first", times=2, each_key=each_key)
    found = [[len(caller.look_up(key).body["refunds"]) for _ in range(3)] for key in ("a", "b")]
    assert found == [[0, 0, 1], [0, 0, 1] if each_key else [1, 1, 1]]


def test_a_look_up_can_not_tell_or_says_in_progress_first(caller: Caller) -> None:
    caller.refund("k")
    caller.arm("cannot_tell_first", key="k")
    caller.arm("in_progress_first", key="k")
    assert caller.look_up("k").status == 503
    assert caller.look_up("k").body["refunds"][0]["status"] == "in_progress"
    assert caller.look_up("k").body["refunds"][0]["status"] == "settled"
    assert caller.counted("k")["lookups"] == 3


def test_an_observation_of_an_order_can_be_made_to_fail(caller: Caller) -> None:
    caller.arm("cannot_tell_first", path="/orders")
    assert [caller.call("GET", "/orders/17").status for _ in range(2)] == [503, 200]


@pytest.mark.parametrize(
    ("outcome", "status", "stored", "amounts"),
    [
        ("outcome_refused", 422, "refused", []),
        ("outcome_pending", 201, "pending", [1500]),
        ("outcome_other_amount", 201, "settled", [1400]),
    ],
)
def test_an_outcome_is_overridden_and_found_so_after_a_block(
    sandbox: Sandbox, caller: Caller, outcome: str, status: int, stored: str, amounts: list[int]
) -> None:
    more = {"amount_minor": 1400} if outcome == "outcome_other_amount" else {}
    caller.arm(outcome, key="k", **more)
    caller.arm("block_after_apply", key="k")
    other = sandbox.caller()
    other.send("POST", "/refunds", REFUND, Idempotency_Key="k")
    assert caller.blocked()[0]["point"] == "block_after_apply"
    assert [one["status"] for one in caller.look_up("k").body["refunds"]] == [stored]
    caller.control("release", {"key": "k"})
    assert other.read().status == status
    assert caller.counted("k")["amounts"] == amounts


def test_a_pending_refund_settles_or_is_refused_later_and_gives_the_money_back(
    caller: Caller,
) -> None:
    caller.arm("outcome_pending")
    caller.refund("k")
    caller.control("settle", {"key": "k", "status": "refused"})
    assert caller.look_up("k").body["refunds"][0]["status"] == "refused"
    assert caller.call("GET", "/orders/17").body["refunded_minor"] == 0
    caller.control("settle", {"key": "k", "status": "settled"})
    assert caller.call("GET", "/orders/17").body["refunded_minor"] == 1500


def test_a_block_before_apply_ends_unapplied_when_it_is_abandoned(sandbox: Sandbox, caller: Caller) -> None:
    caller.arm("block_before_apply")
    other = sandbox.caller()
    other.send("POST", "/refunds", REFUND, Idempotency_Key="k")
    caller.blocked()
    assert caller.control("release", {"apply": False}) == {"released": 1}
    with pytest.raises(NOTHING):
        other.read()
    assert caller.counted("k") == {**caller.counted("k"), "mutating": 1, "applied": 0}


def test_a_block_after_apply_ends_by_itself_when_its_caller_is_gone(sandbox: Sandbox, caller: Caller) -> None:
    caller.arm("block_after_apply")
    other = sandbox.caller()
    other.send("POST", "/refunds", REFUND, Idempotency_Key="k")
    caller.blocked()
    other.connection.close()
    give_up = time.monotonic() + 5
    while caller.call("GET", "/_control/blocked?count=0").body["blocked"]:
        assert time.monotonic() < give_up
    assert caller.counted("k")["applied"] == 1


def test_waiting_for_a_block_that_does_not_come_ends_in_time(caller: Caller) -> None:
    assert caller.call("GET", "/_control/blocked?timeout=0.05").status == 408


def test_a_fault_meets_as_many_requests_at_once_as_it_was_armed_for(sandbox: Sandbox, caller: Caller) -> None:
    caller.arm("error_500_not_applied", times=7)
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda n=n: statuses.append(sandbox.caller().refund(f"k{n}", amount_minor=1).status))
        for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [201] * 13 + [500] * 7
