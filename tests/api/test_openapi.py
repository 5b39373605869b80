"""The document and its page say what the API does."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

from django.test import Client

from ledger.domain.errors import STATUS
from resumeapp.management.commands.openapi import text
from tests.api.schema import document
from tests.conventions.sources import ROOT


def test_the_kept_document_is_the_one_that_is_served() -> None:
    kept = (ROOT / "docs" / "openapi.json").read_text()
    assert kept == text(), "run: manage.py openapi > docs/openapi.json"
    served = Client().get("/api/v1/openapi.json")
    assert served.status_code == 200 and served.json() == document()
    assert served.json()["openapi"].startswith("3.1")


def test_every_call_says_who_may_and_what_a_refusal_is() -> None:
    for path, methods in document()["paths"].items():
        for method, call in methods.items():
            assert call["security"], (method, path)
            assert call["description"], (method, path)
            assert "application/problem+json" in call["responses"]["default"]["content"]


def test_every_reference_leads_somewhere_and_names_are_unique() -> None:
    schemas = document()["components"]["schemas"]
    references = set(re.findall(r"#/components/schemas/(\w+)", str(document())))
    assert references - set(schemas) == set()
    names = [call["operationId"] for methods in document()["paths"].values() for call in methods.values()]
    assert len(names) == len(set(names))


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "href"):
                self.found.append((tag, value or ""))
            if name == "id":
                self.ids.append(value or "")
            assert name != "style" and not name.startswith("on")


def test_the_page_needs_no_other_host_and_no_inline_script() -> None:
    response = Client().get("/api/v1/docs")
    page = response.content.decode()
    assert response.status_code == 200 and "script-src 'self'" in response["Content-Security-Policy"]
    links = Links()
    links.feed(page)
    assert not [value for _, value in links.found if "//" in value]
    assert "<style" not in page and not re.search(r"<script(?![^>]*src=)", page)
    local = [value[1:] for _, value in links.found if value.startswith("#")]
    assert set(local) <= set(links.ids) and len(links.ids) == len(set(links.ids))
    for path in document()["paths"]:
        assert path in page


def test_the_page_says_of_what_each_list_is_and_shows_no_mark_of_its_source() -> None:
    page = Client().get("/api/v1/docs").content.decode()
    assert "`" not in page and "](" not in page
    bare = [line for line in re.findall(r"<dd>(.*?)</dd>", page, re.DOTALL) if re.match(r"(list of )?\s*(,|$)", line)]
    assert not bare, bare
    for name in document()["components"]["schemas"]:
        assert f'id="schema-{name}"' in page


def test_conventions_and_refusals_are_served_with_all_that_the_document_says() -> None:
    links = Links()
    page = Client().get("/api/v1/docs/conventions").content.decode()
    links.feed(page)
    assert ("a", "/api/v1/docs/conventions") in _links(Client().get("/api/v1/docs").content.decode())
    assert not [value for tag, value in links.found if tag == "a" and not value.startswith(("/", "#"))]
    prose = re.sub(r"<pre.*?</pre>", "", page, flags=re.DOTALL)
    assert "`" not in prose and not re.search(r"\*\w|\w\*|>\s*- |\. - ", prose)
    text = html.unescape(re.sub(r"<[^>]+>", "", page))
    for code in STATUS:
        assert re.search(rf"<td><code>{code}</code></td>", page), code
    kept = (ROOT / "docs" / "api.md").read_text()
    for command in re.findall(r"```\w+\n(.*?)\n```", kept, re.DOTALL):
        assert command in text


def _links(page: str) -> list[tuple[str, str]]:
    links = Links()
    links.feed(page)
    return links.found
