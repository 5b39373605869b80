"""What a browser sends, broken: forms of signed-in people to every address that takes one, and odd questions to every page."""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from hypothesis import strategies as st

FORM = "application/x-www-form-urlencoded"
FIELDS: Mapping[str, list[str]] = {
    "decision": ["approve", "deny", "maybe"],
    "revision": ["1", "2", "-1", "1.0", "9" * 30, "٣"],
    "digest": [],
    "receipt": ["card/1"],
    "reason": ["seen", "", "a" * 10_000],
    "outcome": ["committed", "failed", "wake", "cancel", "fail", "unknown"],
    "verdict": ["committed", "confirmed_absent", "rejected"],
    "cause": ["confirmed_absent", "rejected"],
    "evidence": ["the statement of May", ""],
    "reference": ["rf_1", "a" * 300],
    "version": ["1", "", "x"],
    "next": ["/", "//evil.example", "https://evil.example/", "javascript:alert(1)"],
    "username": ["a@example.org", ""],
    "password": ["", "a" * 5_000],
}
QUESTIONS = (
    *("q", "status", "workflow", "actor", "verb", "run", "target", "since", "until", "before", "after", "at", "shown"),
    *("loaded", "next", "search", "handoff", "check"),
)
ODD = st.one_of(
    st.sampled_from(
        ["", " ", "\x00", "%", "..", "-1", "9" * 40, "NaN", "\u202e", "'; DROP TABLE ledger_run; --", "<script>"]
    ),
    st.sampled_from(["2026-13-41", "0000-00-00T00:00", "9999-12-31T23:59:59-23:59", "2026-01-01", "T", "٣", "a" * 400]),
    st.uuids().map(str),
    st.text(max_size=20),
)
OUT = {"sign_out"}
"""Whoever is sent there is nobody any more."""


def addresses(patterns: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """Name and address of every page of the URL configuration, the API's left out."""
    for each in patterns:
        text = before + str(each.pattern)
        if hasattr(each, "url_patterns"):
            if not text.startswith("api/"):
                yield from addresses(each.url_patterns, text)
        elif each.name not in OUT:
            yield str(each.name), "/" + text.removeprefix("^")


class Pages:
    """Every page with its methods, as strategies of addresses and forms. `known` are ids by the names that addresses use."""

    def __init__(self, slug: str, known: Mapping[str, list[Any]]) -> None:
        from django.urls import get_resolver

        self._slug = slug
        self._known = known
        self.all = [
            (method, text) for _, text in sorted(addresses(get_resolver().url_patterns)) for method in ("POST", "GET")
        ]

    def path(self, method: str, text: str) -> st.SearchStrategy[str]:
        """The address with ids that are there mostly, and maybe one odd question."""

        def drawn(draw: st.DrawFn) -> str:
            def value(found: re.Match[str]) -> str:
                known = self._known.get(found[1])
                if found[1] == "slug":
                    return self._slug
                if found[1] == "part":
                    return "standing"
                return str(draw(st.sampled_from(known)) if known and draw(st.integers(0, 5)) else uuid4())

            path = re.sub(r"<\w+:(\w+)>", value, text)
            asked = {draw(st.sampled_from(QUESTIONS)): draw(ODD) for _ in range(draw(st.integers(0, 2)))}
            query = urlencode({name: text.encode("utf-8", "replace") for name, text in asked.items()})
            return f"{path}?{query}" if query and method == "GET" else path

        return st.composite(drawn)()

    def form(self, method: str) -> st.SearchStrategy[bytes]:
        """Some fields with values as they should be, odd ones, twice, or none at all."""
        if method == "GET":
            return st.just(b"")

        def drawn(draw: st.DrawFn) -> bytes:
            fields = []
            for name, usual in FIELDS.items():
                values = [str(each) for each in self._known.get(name, [])] + usual
                if draw(st.integers(0, 5)):
                    fields.append((name, draw(st.sampled_from(values)) if draw(st.integers(0, 3)) else draw(ODD)))
            fields += [(draw(ODD), draw(ODD)) for _ in range(draw(st.integers(0, 1)))]
            fields += fields[: draw(st.integers(0, 1))]
            return urlencode([(n.encode("utf-8", "replace"), v.encode("utf-8", "replace")) for n, v in fields]).encode()

        return st.composite(drawn)()

    def headers(self) -> st.SearchStrategy[dict[str, str]]:
        return st.sampled_from([{}, {}, {"HX-Request": "true"}, {"HX-Request": "true", "If-None-Match": '"x"'}])


def furnish(person: Any, tenant: Any) -> None:
    """She may do everything that a page offers, so that what she sends is refused for what it is."""
    from ledger.domain.identity import Verb
    from ledger.services import administration, identity

    admin = administration.command_line(tenant.pk)
    for verb in (Verb.SEE, Verb.SEE_PAYLOADS, Verb.APPROVE, Verb.OPERATE, Verb.AUDIT, Verb.ADMINISTER):
        identity.grant_permission(admin, person, verb, tenant)
