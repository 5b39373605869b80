"""CloudEvents over HTTP."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from tests.api.conftest import Http, commit_body, entries, refused
from tests.api.schema import document
from tests.api.test_checkpoints import waiting
from tests.world import World

MEDIA = "application/cloudevents+json"


def event(**fields: Any) -> dict[str, Any]:
    return {"specversion": "1.0", "id": "1", "source": "/shop", "type": "shipped", **fields}


def emit(http: Http, body: Any, media: str = MEDIA, **headers: str) -> Any:
    return http.send("POST", "/events", body, media=media, **headers)


BAD: dict[str, tuple[Any, str, int]] = {
    "no id": (event(id=""), "invalid", 422),
    "another version": (event(specversion="0.3"), "invalid", 422),
    "a naive time": (event(time="2031-01-01T00:00:00"), "naive-time", 422),
    "a list": ([event()], "invalid", 422),
    "two data": (event(data=1, data_base64="AA=="), "invalid", 422),
    "no base64": (event(data_base64="%"), "invalid", 422),
    "a field that is no extension": (event(Data=1), "unknown-field", 422),
    "duplicate keys": (b'{"id":"1","id":"2"}', "duplicate-key", 400),
    "too much": (event(data="x" * 1_100_000), "too-large", 413),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_event_is_refused_and_nothing_is_written(case: str, world: World, http: Http) -> None:
    body, code, status = BAD[case]
    before = entries(world)
    refused(emit(http, body), status, code)
    assert entries(world) == before


def test_a_body_that_is_no_event_is_refused(http: Http) -> None:
    refused(emit(http, event(), media="application/json"), 415, "unsupported-media")


def test_an_event_is_kept_then_a_duplicate_then_refused_with_other_content(http: Http) -> None:
    first = emit(http, event(data={"a": 1}, myextension="x"))
    assert (first.status_code, first.json()) == (202, {"status": "kept", "deliveries": 0})
    assert emit(http, event(data={"a": 1})).json()["status"] == "duplicate"
    refused(emit(http, event(data={"a": 2})), 409, "event-differs")


def test_both_modes_meet_a_wait_and_reach_the_packet(http: Http) -> None:
    headers = {
        "ce-specversion": "1.0",
        "ce-id": "2",
        "ce-source": "/shop",
        "ce-type": "shipped",
        "ce-subject": "%C3%A4",
    }
    for send in (
        lambda: emit(http, event(data={"by": "post"}, subject="ä")),
        lambda: emit(http, b'{"by":"post"}', "application/json", **headers),
    ):
        run_id = http.start()
        packet = http.claim()
        http.post(f"/runs/{run_id}/checkpoints", commit_body(packet, next=waiting()), key=str(run_id))
        answer = send()
        assert answer.json() == {"status": "matched", "deliveries": 1}, answer.content
        (member,) = http.get(f"/runs/{run_id}/resume-packet").json()["wait"]["members"]
        assert member["event"]["data"] == {"by": "post"} and member["event"]["subject"] == "ä"


def test_bytes_that_are_no_json_are_kept_in_base64(http: Http) -> None:
    headers = {"ce-specversion": "1.0", "ce-id": "3", "ce-source": "/shop", "ce-type": "shipped"}
    run_id = http.start()
    packet = http.claim()
    http.post(f"/runs/{run_id}/checkpoints", commit_body(packet, next=waiting()), key="k")
    assert emit(http, b"\x00\xff", "image/png", **headers).json()["deliveries"] == 1
    (member,) = http.get(f"/runs/{run_id}/resume-packet").json()["wait"]["members"]
    assert member["event"]["data"] == {"data_base64": "AP8=", "datacontenttype": "image/png"}


def test_an_event_that_came_first_meets_the_wait_that_opens_later(http: Http) -> None:
    run_id = http.start()
    packet = http.claim()
    assert emit(http, event(id="early")).json()["status"] == "kept"
    http.post(
        f"/runs/{run_id}/checkpoints",
        commit_body(
            packet, next=waiting(members=[{"kind": "event", "type": "shipped", "since": packet["run"]["created_at"]}])
        ),
        key="k",
    )
    (wait,) = http.get(f"/runs/{run_id}/waits").json()["waits"]
    assert (wait["state"], wait["members"][0]["outcome"]) == ("satisfied", "received")


def test_the_document_says_how_an_extension_is_named() -> None:
    shape = document()["components"]["schemas"]["EventBody"]
    fits = jsonschema_rs.validator_for(shape).is_valid
    assert fits(event(myextension="x", data_base64="eA==")) and not fits(event(Data=1)) and not fits(event(a_b=1))
