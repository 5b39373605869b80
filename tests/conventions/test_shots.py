"""`make shots` shows every page: whoever adds one adds its pictures."""

from __future__ import annotations

import re

from django.urls import URLPattern, URLResolver, get_resolver

from tests.conventions import sources

PIECES = re.compile(r"^home$|_newer$")
"""Addresses that answer with a redirection or with a part of a page."""
ACTS = re.compile(r"_(decide|look|withdraw|revoke|verify|ask|verdict|own|give_back|close)$")
PICTURED = {"approval": "card"}
"""Pages that pictures name otherwise."""


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
    catalogue = sources.read(sources.ROOT / "tests/shots/catalogue.py")
    pictured = set(re.findall(r'Shot\("([\w-]+)"', catalogue))
    pages = {name for name in names(get_resolver().url_patterns) if not PIECES.search(name) and not ACTS.search(name)}
    assert {"inbox", "run", "handoff", "design"} <= pages
    missing = {PICTURED.get(name, name) for name in pages} - pictured
    assert not missing, "add them to tests/shots/catalogue.py"
