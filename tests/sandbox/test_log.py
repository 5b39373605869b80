import http.client
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from examples.sandbox import log

from .process import REFUND, ROOT, Caller, Sandbox


def test_a_log_that_is_not_there_is_an_error_and_not_an_empty_answer(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        log.read_requests(tmp_path)


@pytest.mark.parametrize("table", ["request", "request_applied", "request_end"])
@pytest.mark.parametrize(
    "statement",
    ["UPDATE {0} SET at = 'x'", "DELETE FROM {0}", "INSERT OR REPLACE INTO {0} SELECT * FROM {0}"],
)
def test_the_log_can_not_be_rewritten(sandbox: Sandbox, caller: Caller, table: str, statement: str) -> None:
    caller.refund("k")
    db = sqlite3.connect(sandbox.data / log.FILE_NAME)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        db.execute(statement.format(table))
    db.close()


def test_the_log_keeps_the_bytes_and_the_headers_that_matter_and_no_credentials(
    sandbox: Sandbox, caller: Caller
) -> None:
    raw = json.dumps(REFUND, indent=3).encode()
    caller.call("POST", "/refunds", raw, Idempotency_Key="k", If_Match='"v1"', Authorization="Bearer secret")
    (entry,) = [one for one in log.read_requests(sandbox.data) if one.key == "k"]
    assert (entry.body, entry.status, entry.applied, entry.ended) == (raw, 201, True, True)
    assert entry.headers["idempotency-key"] == "k" and entry.headers["if-match"] == '"v1"'
    assert b"secret" not in entry.as_json().encode()


def test_the_log_is_paged_over_http_as_json_lines_in_order(caller: Caller) -> None:
    after = int(caller.control("reset")["reset_at_seq"])
    caller.order()
    caller.refund("k")
    caller.look_up("k")
    seen = []
    while lines := caller.call("GET", f"/_control/log?after={after}&limit=2").raw.splitlines():
        seen += [json.loads(line) for line in lines]
        after = seen[-1]["seq"]
    assert [(one["method"], one["path"], one["status"]) for one in seen] == [
        ("PUT", "/orders/17", 201),
        ("POST", "/refunds", 201),
        ("GET", "/refunds", 200),
    ]
    assert [one["applied"] for one in seen] == [True, True, False]


def test_counting_starts_anew_after_a_reset_and_the_log_keeps_what_was_before(sandbox: Sandbox, caller: Caller) -> None:
    caller.refund("before-the-reset")
    caller.control("reset")
    assert caller.counted("before-the-reset")["mutating"] == 0
    assert "before-the-reset" not in log.read_histories(sandbox.data)
    assert len(log.read_histories(sandbox.data, since_reset=False)["before-the-reset"].applied) == 1


def test_a_killed_service_leaves_a_log_that_tells_applied_from_logged_only(
    own_sandbox: Sandbox,
) -> None:
    caller, callers = own_sandbox.caller(), [own_sandbox.caller() for _ in range(2)]
    caller.order()
    caller.refund("done")
    caller.look_up("done")
    caller.arm("block_before_apply", key="before")
    caller.arm("block_after_apply", key="after")
    for one, key in zip(callers, ("before", "after"), strict=True):
        one.send("POST", "/refunds", REFUND, Idempotency_Key=key)
    caller.blocked(2)
    own_sandbox.kill()
    with pytest.raises((ConnectionError, http.client.BadStatusLine)):
        callers[0].read()

    histories = log.read_histories(own_sandbox.data)
    assert {key: len(one.applied) for key, one in histories.items() if key} == {
        "done": 1,
        "before": 0,
        "after": 1,
    }
    assert [one.ended for key in ("before", "after") for one in histories[key].mutating] == [
        False,
        False,
    ]
    assert len(histories["done"].lookups) == 1

    own_sandbox.start()
    again = own_sandbox.caller()
    assert [again.refund(key).status for key in ("done", "before", "after")] == [200, 201, 200]
    assert len(log.read_histories(own_sandbox.data)["before"].applied) == 1


def test_every_acknowledged_refund_outlives_a_kill_under_load(own_sandbox: Sandbox) -> None:
    own_sandbox.caller().order(10_000_000)
    acknowledged = []
    caller = own_sandbox.caller()
    for number in range(50):
        assert caller.refund(f"k{number}", amount_minor=1).status == 201
        acknowledged.append(f"k{number}")
    own_sandbox.kill()
    histories = log.read_histories(own_sandbox.data)
    assert [len(histories[key].applied) for key in acknowledged] == [1] * 50


def test_the_reader_runs_alone_without_the_package(sandbox: Sandbox, caller: Caller) -> None:
    caller.refund("k")
    alone = [sys.executable, "-I", str(ROOT / "examples/sandbox/log.py"), str(sandbox.data)]
    lines = subprocess.run(alone, cwd="/", capture_output=True, check=True, text=True).stdout.splitlines()
    (told,) = [json.loads(line) for line in lines if json.loads(line)["key"] == "k"]
    assert (told["mutating"], told["applied"], told["amounts"]) == (1, 1, [1500])


def test_a_caller_that_dies_within_its_body_leaves_no_trace_and_no_noise(
    own_sandbox: Sandbox,
) -> None:
    caller = own_sandbox.caller()
    caller.order()
    dying = own_sandbox.caller()
    dying.send("POST", "/refunds", b'{"order"', Idempotency_Key="k", Content_Length="500")
    dying.connection.close()
    assert caller.refund("other").status == 201
    assert own_sandbox.stop() == b""
    assert "k" not in log.read_histories(own_sandbox.data)


def test_a_stop_in_the_middle_of_a_request_is_quiet_and_does_not_wait(own_sandbox: Sandbox) -> None:
    caller = own_sandbox.caller()
    caller.order()
    caller.arm("block_before_apply")
    other = own_sandbox.caller()
    other.send("POST", "/refunds", REFUND, Idempotency_Key="k")
    caller.blocked()
    assert own_sandbox.stop() == b"" and own_sandbox.process.returncode == 0
    assert log.read_histories(own_sandbox.data)["k"].applied == []


def test_payloads_never_reach_stderr(own_sandbox: Sandbox) -> None:
    caller = own_sandbox.caller()
    caller.order()
    caller.refund("k", reason="PAYLOAD")
    caller.call("POST", "/refunds", b"PAYLOAD", Idempotency_Key="PAYLOAD")
    caller.call("GET", "/nowhere/PAYLOAD")
    assert own_sandbox.stop() == b""


def test_a_body_in_chunks_or_above_a_mebibyte_is_refused(sandbox: Sandbox) -> None:
    caller = sandbox.caller()
    assert caller.call("POST", "/refunds", b"x" * 10, Transfer_Encoding="chunked").status == 411
    other = sandbox.caller()
    other.send("POST", "/refunds", None, Content_Length=str(2**21))
    assert other.read().status == 413
