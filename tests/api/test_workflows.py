"""Register and read workflow versions over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conftest import Http, entries, refused
from tests.api.schema import document
from tests.documents import SCHEMA, TRANSITIONS
from tests.world import World


def version_body(**fields: Any) -> dict[str, Any]:
    return {"state_schema": SCHEMA, "initial": "assess", "transitions": TRANSITIONS, **fields}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "an undeclared beginning": ({"initial": "fly"}, "invalid"),
    "no transitions": ({"transitions": {}}, "invalid"),
    "an unknown field of a transition": ({"transitions": {"assess": {"target": []}}}, "unknown-field"),
    "an unknown conflict action": ({"transitions": {"assess": {"on_conflict": ["pray"]}}}, "invalid"),
    "a tool that is a sentence": ({"transitions": {"assess": {"tools": ["call Ada Lovelace"]}}}, "invalid"),
    "a target that is a sentence": ({"transitions": {"assess": {"targets": ["Ada's bank"]}}}, "invalid"),
    "a version to take over that is none": ({"takes_over_from": ["the one before"]}, "invalid"),
    "no schema": ({"state_schema": {"type": "thing"}}, "invalid"),
    "an unknown field": ({"colour": "red"}, "unknown-field"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_version_is_refused_and_nothing_is_written(case: str, world: World, http: Http) -> None:
    fields, code = BAD[case]
    before = entries(world)
    refused(http.send("PUT", "/workflows/refund/versions/3", version_body(**fields)), 422, code)
    assert entries(world) == before


def test_a_version_is_registered_once_and_never_changed(world: World, http: Http) -> None:
    first = http.send("PUT", "/workflows/other/versions/1", version_body())
    again = http.send("PUT", "/workflows/other/versions/1", version_body())
    assert (first.status_code, again.status_code) == (201, 200) and first.json() == again.json()
    before = entries(world)
    refused(http.send("PUT", "/workflows/other/versions/1", version_body(initial="think")), 409, "version-exists")
    assert entries(world) == before
    (shown,) = http.get("/workflows/other/versions").json()["versions"]
    assert shown["digest"] == first.json()["digest"] and shown["initial"] == "assess"
    assert [row["workflow"] for row in http.get("/workflows").json()["workflows"]] == ["other", "refund"]
    refused(http.get("/workflows/none/versions"), 404, "not-found")


@pytest.mark.parametrize(
    "address", ["/workflows/Re fund/versions", "/workflows/1st/versions", f"/workflows/{'a' * 81}/versions"]
)
def test_a_name_that_no_workflow_can_have_is_refused_as_the_document_says(address: str, http: Http) -> None:
    (pattern,) = {
        str(call["parameters"][0]["schema"]["pattern"])
        for path, methods in document()["paths"].items()
        for call in methods.values()
        if "/workflows/{workflow}" in path
    }
    assert pattern == "^[a-z][a-z0-9_-]{0,79}$"
    refused(http.get(address), 422, "invalid")
    refused(http.send("PUT", f"{address}/1", version_body()), 422, "invalid")
