"""Start, search and read runs over HTTP."""

from __future__ import annotations

from uuid import uuid4

from tests.api.conftest import Http, entries, refused, start_body
from tests.api.test_workflows import version_body
from tests.clock import Clock
from tests.world import World


def test_a_start_without_a_key_is_refused_and_nothing_is_written(world: World, http: Http) -> None:
    before = entries(world)
    refused(http.post("/runs", start_body()), 400, "key-required")
    refused(http.post("/runs", start_body(), key="\x7f"), 422, "invalid")
    refused(http.post("/runs", start_body(), key="k" * 201), 422, "invalid")
    assert entries(world) == before


def test_a_key_with_another_body_is_refused(world: World, http: Http) -> None:
    http.start(key="one")
    before = entries(world)
    refused(http.post("/runs", start_body(task="another"), key="one"), 422, "key-reused")
    assert entries(world) == before


def test_the_same_start_again_answers_the_same_run(world: World, http: Http) -> None:
    first = http.post("/runs", start_body(), key="one")
    again = http.post("/runs", start_body(), key="one")
    assert (first.status_code, again.status_code) == (201, 200)
    assert again["Idempotency-Replayed"] == "true" and "Idempotency-Replayed" not in first
    assert again.json() == first.json()


def test_a_misspelt_filter_is_refused(http: Http) -> None:
    refused(http.get("/runs?stauts=ready"), 422, "unknown-field")
    refused(http.get("/runs?limit=1000"), 422, "invalid")
    refused(http.get("/runs?after=nonsense"), 422, "invalid")


def test_pages_go_through_all_runs_once(http: Http) -> None:
    made = [str(http.start()) for _ in range(5)]
    seen: list[str] = []
    after = ""
    for _ in range(10):
        page = http.get(f"/runs?limit=2&after={after}").json()
        seen += [run["id"] for run in page["runs"]]
        after = page["next"]
        if not after:
            break
    assert seen == made[::-1]


def test_filters_and_text_narrow_the_list(http: Http) -> None:
    wanted = str(http.start(task="Refund the ÄPFEL", text="a customer wrote"))
    http.start()
    assert [run["id"] for run in http.get("/runs?task=Refund+the+%C3%84PFEL").json()["runs"]] == [wanted]
    assert [run["id"] for run in http.get("/runs?text=CUSTOMER").json()["runs"]] == [wanted]
    assert http.get("/runs?status=blocked").json() == {"runs": [], "next": ""}
    assert len(http.get("/runs?status=ready&workflow=refund&version=1").json()["runs"]) == 2


def test_one_run_has_its_version_as_etag(http: Http) -> None:
    run_id = http.start(attributes={"order": "1234567890123456789"})
    response = http.get(f"/runs/{run_id}")
    run = response.json()["run"]
    assert response["ETag"] == '"1"' and response["Cache-Control"] == "no-store"
    assert (run["status"], run["seq"], run["transition"]) == ("ready", 1, "assess")
    assert run["attributes"] == {"order": "1234567890123456789"}
    assert "fence" not in run


def test_a_foreign_or_missing_run_is_not_found(world: World, http: Http) -> None:
    stranger = Http(World().secret)
    run_id = http.start()
    for reader, path in ((stranger, f"/runs/{run_id}"), (http, f"/runs/{uuid4()}"), (http, "/runs/17")):
        refused(reader.get(path), 404, "not-found")


def test_a_run_without_a_version_takes_the_newest_that_none_takes_over_from(http: Http, clock: Clock) -> None:
    without = start_body()
    del without["version"]

    def version() -> str:
        return str(http.post("/runs", without, key=str(uuid4())).json()["run"]["version"])

    def register(name: str, *older: str) -> None:
        clock.shift(1)
        body = version_body(takes_over_from=list(older))
        assert http.send("PUT", f"/workflows/refund/versions/{name}", body).status_code in (200, 201)

    assert version() == "2", "which takes over from 1"
    register("0-late")
    assert version() == "0-late", "the newest of those that none takes over from"
    register("3", "2", "0-late")
    register("2.1", "2")
    register("3.1", "2.1", "3")
    assert version() == "3.1"
    register("1-again", "3.1")
    assert version() == "1-again", "the older code under a name of its own: a way back"
    old = http.post("/runs", start_body(version="1"), key=str(uuid4())).json()["run"]["version"]
    assert old == "1", "a named version stays to be had"
