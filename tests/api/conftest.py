"""HTTP as agents speak it: through Django's whole handling, with a real key of a fresh tenant."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.http import HttpResponse
from django.test import Client

from ledger.models import JournalEntry
from tests.api import schema
from tests.documents import STATE
from tests.world import World, first_served

PREFIX = "/api/v1"


class Http:
    """A caller of the API with a key, or without one."""

    def __init__(self, secret: str | None = None) -> None:
        self.client = Client(raise_request_exception=False)
        self.headers = {"Authorization": f"Bearer {secret}"} if secret else {}

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        media: str = "application/json",
        **headers: str,
    ) -> Any:
        """The response; `body` is raw when it is bytes, otherwise it is sent as JSON."""
        sent = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if key is not None:
            sent["Idempotency-Key"] = key
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        response = self.client.generic(method, PREFIX + path, content, media, headers=sent)
        schema.check(method, PREFIX + path.split("?")[0], response)
        return response

    def get(self, path: str, **headers: str) -> Any:
        return self.send("GET", path, **headers)

    def post(self, path: str, body: Any = None, *, key: str | None = None, **headers: str) -> Any:
        return self.send("POST", path, body, key=key, **headers)

    def start(self, key: str | None = None, **fields: Any) -> UUID:
        """A started run."""
        response = self.post("/runs", start_body(**fields), key=key or str(uuid4()))
        assert response.status_code == 201, response.content
        return UUID(response.json()["run"]["id"])

    def claim(self, *versions: str, **fields: Any) -> dict[str, Any]:
        """The packet of the run that was longest ready."""
        response = self.post("/runs/claim", claim_body(*versions, **fields))
        assert response.status_code == 200, response.content
        packet: dict[str, Any] = response.json()["packets"][0]
        return packet


def start_body(**fields: Any) -> dict[str, Any]:
    return {"workflow": "refund", "version": "1", "task": "refund order 17", "state": STATE, **fields}


def claim_body(*versions: str, **fields: Any) -> dict[str, Any]:
    worker = {"id": str(first_served()), "name": "worker", "code_digest": "code-1"}
    return {"worker": worker, "offers": [{"workflow": "refund", "versions": list(versions or ("1",))}], **fields}


def commit_body(packet: dict[str, Any], kind: str = "give_back", **fields: Any) -> dict[str, Any]:
    """A commit as the packet's holder; `next` is `kind` with the transition `think` unless given or ending."""
    following: dict[str, Any] = {"kind": kind}
    if kind not in ("complete", "fail"):
        following["transition"] = "think"
    return {
        "fence": packet["fence"],
        "expect_seq": packet["checkpoint"]["seq"],
        "state": STATE,
        "code_version": "code-1",
        "version": packet["version"],
        "next": following,
        **fields,
    }


def proposal(name: str = "pay", **fields: Any) -> dict[str, Any]:
    return {"name": name, "tool": "notes.add", "target": "notes", "request": {"text": "hello"}, **fields}


def entries(world: World) -> int:
    """How many journal entries the tenant has: nothing was written when it stays."""
    count: int = JournalEntry.objects.of(world.tenant).count()
    return count


def refused(response: HttpResponse, status: int, code: str) -> dict[str, Any]:
    """The response is this refusal, whole and well-formed."""
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    assert response["Cache-Control"] == "no-store"
    document: dict[str, Any] = json.loads(response.content)
    assert document["code"] == code, document
    assert document["type"] == f"urn:resumeapp:problem:{code}"
    assert document["status"] == status
    assert document["title"] and document["detail"] and document["remedy"]
    return document


@pytest.fixture
def http(world: World) -> Http:
    return Http(world.secret)
