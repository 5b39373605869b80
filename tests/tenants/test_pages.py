"""Every page × method × role against another tenant: it isn't there, exactly as what was never there, and nothing of it shows."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from tests.tenants.neighbours import ROLES, TENANT_ADDRESS, Route, Theirs, routes, unwritten
from tests.ui.asking import client_of
from tests.world import World

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
ANSWERED = ("GET", "POST")
"""The methods that some page takes: their answers are compared to those for what is not there, and asked for as fragments too."""
WITHOUT_TENANT = {"home", "healthz", "readyz", "metrics", "sign_in", "sign_out"}
"""Pages of no tenant: they name none, and what they show is the asker's own or nobody's."""
PARTS = {"part": "standing", "seq": 1}
DRAWN_ANEW = re.compile(r"\b\w{64}\b|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(?:[+-]\d\d:\d\d|Z)")
"""Tokens against forged forms, and the time of the answer."""


def tenant_routes() -> list[Route]:
    return [route for route in routes() if route.text.startswith(TENANT_ADDRESS)]


def address(route: Route, slug: str, ids: dict[str, Any]) -> str:
    """The route's path; an argument that nobody thought of is a KeyError, so that a new page comes to this matrix too."""
    values = {"slug": slug, **PARTS, **ids}
    return "/" + re.sub(r"<\w+:(\w+)>", lambda found: str(values[found[1]]), route.text)


def visit(client: Client, method: str, path: str, **headers: str) -> Any:
    return client.generic(
        method,
        path,
        "decision=approve&outcome=committed&reason=x",
        "application/x-www-form-urlencoded",
        headers=headers,
    )


def seen(answer: Any, path: str) -> tuple[int, str]:
    """Status and text of an answer, without what names the asked path or is drawn anew each time."""
    text = answer.content.decode() + " ".join(f"{name}: {value}" for name, value in answer.items())
    for part in sorted(filter(None, path.split("/")), key=len, reverse=True):
        text = text.replace(part, "*") if len(part) > 12 else text
    return answer.status_code, DRAWN_ANEW.sub("", text)


def check(client: Client, signed_in: bool, method: str, path: str, absent: str, words: list[str]) -> int:
    """One address of theirs answers as one that isn't there, without their words. Answers the status."""
    answer = visit(client, method, path)
    status, text = seen(answer, path)
    assert not [word for word in words if word in answer.content.decode() + str(answer.headers)], (method, path)
    if signed_in:
        assert status in (404, 405), (method, path)
    elif method in ("GET", "HEAD"):
        assert status == 405 or (status, answer.get("Location", "")[:9]) == (302, "/sign-in/"), (method, path)
    else:
        assert status in (401, 405), (method, path)
    if method in ANSWERED and status != 405:
        assert (status, text) == seen(visit(client, method, absent), absent), (method, path)
        fragment = visit(client, method, path, **{"HX-Request": "true"})
        assert fragment.status_code == 404 if signed_in else fragment.status_code in (204, 401), (method, path)
        assert not [word for word in words if word in fragment.content.decode() + str(fragment.headers)]
    return status


def test_every_page_names_its_tenant_but_those_that_are_of_none() -> None:
    others = {route.name for route in routes() if not route.text.startswith(TENANT_ADDRESS)}
    assert others == WITHOUT_TENANT and len(tenant_routes()) > 20


@pytest.mark.parametrize("role", ROLES)
def test_no_page_of_another_tenant_is_there(
    role: str, ours: World, neighbour: Theirs, visitors: dict[str, Any]
) -> None:
    person = visitors[role]
    client = client_of(person) if person else Client()
    with unwritten(ours, neighbour.world):
        for route in tenant_routes():
            path = address(route, neighbour.world.tenant.slug, dict(neighbour.ids))
            absent = address(route, f"t{uuid4().hex[:12]}", {name: uuid4() for name in neighbour.ids})
            statuses = {check(client, person is not None, method, path, absent, neighbour.words) for method in METHODS}
            assert statuses & {404, 302, 401}, f"{route.name} takes no method at all"


@pytest.mark.parametrize("role", ROLES)
def test_nothing_of_another_tenant_is_there_under_the_own_address(
    role: str, ours: World, neighbour: Theirs, visitors: dict[str, Any]
) -> None:
    person, slug = visitors[role], ours.tenant.slug
    client = client_of(person) if person else Client()
    with_ids = [route for route in tenant_routes() if set(route.names) & neighbour.ids.keys()]
    assert len(with_ids) > 12
    with unwritten(ours, neighbour.world):
        for route in with_ids:
            path = address(route, slug, dict(neighbour.ids))
            absent = address(route, slug, {name: uuid4() for name in neighbour.ids})
            for method in METHODS:
                check(client, person is not None, method, path, absent, neighbour.words)


def test_the_neighbours_themselves_find_all_of_it(neighbour: Theirs) -> None:
    """So that the matrix asks for what is there: each page with an id opens for those whose it is."""
    client = client_of(neighbour.world.charlie)
    opened = {}
    for route in tenant_routes():
        if set(route.names) & neighbour.ids.keys():
            path = address(route, neighbour.world.tenant.slug, dict(neighbour.ids))
            opened[route.name] = client.get(path).status_code
    assert set(opened.values()) <= {200, 204, 302} and list(opened.values()).count(200) >= 5, opened
