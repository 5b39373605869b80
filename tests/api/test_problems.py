"""What nobody foresaw: a clean answer, an id in the log, no trace, nothing of what was sent."""

from __future__ import annotations

import json
import logging

import psycopg
import pytest
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from ninja import NinjaAPI

from ledger.api import problems
from ledger.api.edge import ApiEdge
from ledger.api.parsing import Exact, StrictParser
from ledger.domain.errors import STATUS, LedgerError
from tests.api.conftest import Http, refused
from tests.conventions.sources import ROOT

MARKER = "marker-of-a-payload-9f2c"


class Body(Exact):
    text: str


def failing_api() -> NinjaAPI:
    """An API of its own with a route that fails in a way nobody foresaw, holding what was sent in its error."""
    api = NinjaAPI(urls_namespace="failing", parser=StrictParser(), docs_url=None, openapi_url=None)
    problems.install(api)

    @api.post("/fail")
    def fail(request: HttpRequest, body: Body) -> HttpResponse:
        raise RuntimeError(body.text)

    return api


def test_an_unexpected_error_shows_and_logs_its_place_but_no_text(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    view = next(route.callback for route in failing_api().urls[0] if str(route.pattern) == "fail")
    request = RequestFactory().post("/api/v1/fail", {"text": MARKER}, content_type="application/json")
    response = ApiEdge(lambda asked: view(asked))(request)
    document = refused(response, 500, "internal")
    assert MARKER not in json.dumps(document) and "Traceback" not in json.dumps(document)
    assert MARKER not in caplog.text and document["facts"]["id"] in caplog.text
    assert "test_problems.py" in caplog.text


def test_a_page_of_the_framework_becomes_a_problem() -> None:
    request = RequestFactory().get("/api/v1/x")
    for status, code in ((400, "invalid"), (403, "forbidden"), (404, "not-found"), (502, "internal")):
        response = ApiEdge(lambda _, status=status: HttpResponse("<html>", status=status))(request)
        refused(response, STATUS[code], code)
    untouched = ApiEdge(lambda _: HttpResponse("<html>", status=404))(RequestFactory().get("/t/acme/inbox/"))
    assert untouched.content == b"<html>"


@pytest.mark.postgres_only
def test_a_lost_database_is_503_with_the_advice_to_ask_again(http: Http) -> None:
    http.get("/runs")
    with psycopg.connect(**_params()) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [connection.connection.info.backend_pid])
    response = http.get("/runs")
    document = refused(response, 503, "unavailable")
    assert response["Retry-After"] == "1" and "same Idempotency-Key" in document["remedy"]
    connection.close()
    assert http.get("/runs").status_code == 200


def _params() -> dict[str, object]:
    wanted = ("host", "port", "user", "password", "dbname")
    return {name: value for name, value in connection.get_connection_params().items() if name in wanted}


def test_every_code_has_its_row_in_the_documents_table() -> None:
    text = (ROOT / "docs" / "api.md").read_text()
    rows = {
        line.split("|")[1].strip(" `"): line.split("|")[2].strip()
        for line in text.splitlines()
        if line.startswith("| `")
    }
    assert {code: str(status) for code, status in STATUS.items()} == {code: rows.get(code) for code in STATUS}
    assert set(rows) == set(STATUS)


def test_every_code_makes_a_whole_problem() -> None:
    for code, status in STATUS.items():
        refused(
            ApiEdge(lambda _, code=code: problems.problem(LedgerError(code, "reason", "remedy")))(
                RequestFactory().get("/api/v1/x")
            ),
            status,
            code,
        )
