"""`make shots` shows every page in every kind of state: whoever adds a page adds its pictures, or says why it has none of a kind."""

from __future__ import annotations

import re

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from tests.shots import manifest

PIECES = re.compile(r"^home$|_newer$|_export$")
"""Addresses that answer with a redirection, with a part of a page or with a file."""
ACTS = re.compile(r"_(decide|look|withdraw|revoke|verify|ask|verdict|own|give_back|close)$")
PICTURED = {"approval": "card"}
"""Pages that pictures name otherwise."""
FAULTS = {"sign-in", "not-found", "fault", "reference"}
"""Pictured pages that the console's own addresses don't name."""


def names(patterns: list[URLPattern | URLResolver]) -> set[str]:
    """The names of the console's addresses."""
    found: set[str] = set()
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            found |= names(pattern.url_patterns) if pattern.namespace is None else set()
        elif str(pattern.pattern).startswith("t/") or "approvals.views" in pattern.callback.__module__:
            found.add(str(pattern.name))
    return found


def test_a_page_without_a_picture_is_found() -> None:
    pages = {name for name in names(get_resolver().url_patterns) if not PIECES.search(name) and not ACTS.search(name)}
    assert {"inbox", "run", "handoff", "design"} <= pages
    assert {PICTURED.get(name, name) for name in pages} | FAULTS == set(manifest.PAGES), "see tests/shots/manifest.py"


def test_a_kind_of_state_that_a_page_has_no_picture_of_is_explained() -> None:
    assert not manifest.unexplained()


def test_a_kind_that_nobody_explained_or_that_is_explained_and_there_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(manifest.NONE, ("card", "empty"))
    monkeypatch.setitem(manifest.NONE, ("card", "full"), "no reason")
    assert manifest.unexplained() == ["card: empty", "card: full"]


def test_a_picture_that_is_missing_unknown_or_taken_twice_is_named() -> None:
    first, *others = manifest.names()
    assert not manifest.gaps([first, *others])
    told = manifest.gaps([*others, "inbox-nowhere", others[0]])
    assert [gap.split(" ")[0] for gap in told] == [first, "inbox-nowhere", others[0]]
