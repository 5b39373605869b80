"""Read, verify and export the record over HTTP."""

from __future__ import annotations

import hashlib
import json

from tests.api.conftest import Http, commit_body, refused


def test_an_export_links_from_its_first_entry_to_the_head(http: Http) -> None:
    run_id = http.start()
    http.post(f"/runs/{run_id}/checkpoints", commit_body(http.claim()), key="k")
    response = http.get(f"/runs/{run_id}/export")
    assert response["Content-Type"] == "application/jsonl" and response["Cache-Control"] == "no-store"
    lines = [json.loads(line) for line in b"".join(response.streaming_content).splitlines()]
    digest = bytes(32)
    for line in lines:
        digest = hashlib.sha256(digest + line["content"].encode()).digest()
        assert line["digest"] == digest.hex()
    assert [line["seq"] for line in lines] == [1, 2, 3]
    assert http.get(f"/runs/{run_id}/journal").json()["entries"] == lines


def test_the_journal_pages_in_order(http: Http) -> None:
    run_id = http.start()
    http.post(f"/runs/{run_id}/checkpoints", commit_body(http.claim()), key="k")
    first = http.get(f"/runs/{run_id}/journal?limit=2").json()
    rest = http.get(f"/runs/{run_id}/journal?limit=2&after={first['next']}").json()
    assert [entry["seq"] for entry in first["entries"] + rest["entries"]] == [1, 2, 3] and rest["next"] == ""
    refused(http.get(f"/runs/{run_id}/journal?after=AAAA"), 422, "invalid")
    refused(http.get(f"/runs/{run_id}/wakes?after=AAAA"), 422, "invalid")


def test_a_run_verifies(http: Http) -> None:
    run_id = http.start()
    report = http.get(f"/runs/{run_id}/verify").json()
    assert report == {"run": str(run_id), "intact": True, "entries": 1, "rows": report["rows"], "faults": []}


def test_a_run_that_was_given_back_has_a_wake(http: Http) -> None:
    run_id = http.start()
    http.post(f"/runs/{run_id}/checkpoints", commit_body(http.claim()), key="k")
    (wake,) = http.get(f"/runs/{run_id}/wakes").json()["wakes"]
    assert wake["state"] == "queued" and wake["reasons"] == ["given_back"]
    assert http.get(f"/runs/{run_id}/decisions").json() == {"decisions": [], "next": ""}
