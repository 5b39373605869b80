"""Deciding over HTTP: a signed-in person with their session, and nothing else."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from approvals.models import ApprovalRequest, Vote
from ledger.domain.identity import Scope, Verb
from ledger.models import User
from ledger.services import identity
from tests.api.conftest import PREFIX, Http, commit_body, entries, proposal, refused
from tests.world import PASSWORD, World


class Asked:
    """A run that waits for leave to pay, with its pending request."""

    def __init__(self, world: World, http: Http) -> None:
        self.run_id = http.start()
        packet = http.claim()
        wait = {
            "mode": "any",
            "members": [{"kind": "approval", "effect": "pay"}],
            "deadline_seconds": 3600,
            "on_deadline": "wake",
        }
        body = commit_body(
            packet,
            next={"kind": "wait", "transition": "issue", "wait": wait},
            propose=[proposal(tool="payments.refund", target="payments")],
        )
        made = http.post(f"/runs/{self.run_id}/checkpoints", body, key="k")
        assert made.status_code == 201, made.content
        self.request = ApprovalRequest.objects.of(world.tenant).get(run_id=self.run_id)
        self.path = f"/approvals/{self.request.pk}/decision"
        shown = http.get(f"/approvals/{self.request.pk}").json()
        self.body = {"decision": "approve", "revision": shown["revision"], "digest": shown["digest"]}


class Signed:
    """A browser of a signed-in person, with Django's CSRF checks on."""

    def __init__(self, user: User) -> None:
        self.client = Client(enforce_csrf_checks=True, raise_request_exception=False)
        assert self.client.login(username=user.email, password=PASSWORD)
        self.client.get("/sign-in/")
        self.token = "a" * 32
        self.client.cookies["resumeapp_csrf"] = self.token

    def post(self, path: str, body: Any, token: str | None = None, **headers: str) -> Any:
        sent = {"X-CSRFToken": self.token if token is None else token, **headers}
        return self.client.post(PREFIX + path, body, content_type="application/json", headers=sent)


@pytest.fixture
def asked(world: World, http: Http) -> Asked:
    return Asked(world, http)


def votes(world: World) -> int:
    count: int = Vote.objects.of(world.tenant).count()
    return count


def test_no_key_decides_whatever_it_may_do(world: World, asked: Asked) -> None:
    issue = identity.issue_key
    secrets = [
        world.secret,
        issue(world.admin, "reader", (Scope.RUNS_READ,), agent_id=world.agent_id, workflows=["*"]).secret,
        issue(world.admin, "alice", (Scope.RUNS_READ, Scope.OPERATE), person=world.alice, workflows=["*"]).secret,
        World().secret,
        "nonsense",
    ]
    before = entries(world)
    for secret in secrets:
        for path in (asked.path, f"/approvals/{uuid4()}/decision"):
            refused(Http(secret).post(path, asked.body), 403, "agents-never-decide")
            refused(Http(secret).post(path, b"{"), 403, "agents-never-decide")
    signed = Signed(world.alice)
    for value in (f"Bearer {world.secret}", f"bearer {world.secret}", "Basic eDp5", ""):
        refused(signed.post(asked.path, asked.body, Authorization=value), 403, "agents-never-decide")
    assert votes(world) == 0 and entries(world) == before


def test_without_a_session_or_its_csrf_token_nothing_is_decided(world: World, asked: Asked) -> None:
    before = entries(world)
    refused(Http().post(asked.path, asked.body), 401, "unauthenticated")
    for token in ("", "b" * 32, "short"):
        refused(Signed(world.alice).post(asked.path, asked.body, token=token), 403, "forbidden")
    assert votes(world) == 0 and entries(world) == before


BAD: list[tuple[dict[str, Any], int, str]] = [
    ({"decision": "APPROVE"}, 422, "invalid"),
    ({"decision": True}, 422, "invalid"),
    ({"digest": "00"}, 422, "invalid"),
    ({"digest": "0" * 64}, 412, "changed"),
    ({"revision": 2}, 412, "changed"),
    ({"revision": "1"}, 422, "invalid"),
    ({"approve": True}, 422, "unknown-field"),
    ({"decision": "deny"}, 422, "invalid"),
]


@pytest.mark.parametrize(("fields", "status", "code"), BAD)
def test_a_forged_stale_or_malformed_vote_is_refused(
    fields: dict[str, Any], status: int, code: str, world: World, asked: Asked
) -> None:
    before = entries(world)
    refused(Signed(world.alice).post(asked.path, {**asked.body, **fields}), status, code)
    assert votes(world) == 0 and entries(world) == before


def test_who_may_not_approve_or_not_see_is_refused(world: World, asked: Asked) -> None:
    refused(Signed(world.charlie).post(asked.path, asked.body), 403, "not-eligible")
    refused(Signed(World().alice).post(asked.path, asked.body), 404, "not-found")
    refused(Signed(world.alice).post(f"/approvals/{uuid4()}/decision", asked.body), 404, "not-found")
    assert votes(world) == 0


def test_a_signed_in_approver_decides_once_and_hears_the_same_again(world: World, asked: Asked) -> None:
    alice = Signed(world.alice)
    first = alice.post(asked.path, asked.body)
    assert first.status_code == 200, first.content
    assert first.json()["state"] == "approved" and first.json()["grant"]
    again = alice.post(asked.path, asked.body)
    assert again.json() == first.json() and again["Idempotency-Replayed"] == "true"
    refused(
        Signed(world.bob).post(asked.path, {**asked.body, "decision": "deny", "reason": "no"}), 409, "already-decided"
    )
    assert votes(world) == 1


def test_a_denial_with_its_reason_is_taken(world: World, asked: Asked, http: Http) -> None:
    made = Signed(world.alice).post(asked.path, {**asked.body, "decision": "deny", "reason": "too much"})
    assert made.json() == {"state": "denied", "grant": None, "missing": {}}
    assert http.get(f"/approvals/{asked.request.pk}").json()["state"] == "denied"


# What a person's key sees ---------------------------------------------------------------------------


def test_a_persons_key_sees_what_the_person_may_see_everywhere(world: World, asked: Asked, http: Http) -> None:
    effect_id = http.get(f"/effects?run={asked.run_id}").json()["effects"][0]["id"]
    outsider = world.person("erin")
    blind = Http(identity.issue_key(world.admin, "erin", (Scope.RUNS_READ,), person=outsider, workflows=["*"]).secret)
    assert blind.get("/runs").json() == {"runs": [], "next": ""}
    assert blind.get("/runs?text=refund").json() == {"runs": [], "next": ""}
    assert blind.get("/effects").json() == {"effects": [], "next": ""}
    assert blind.get("/workflows").json() == {"workflows": []}
    of_run = ["", "/checkpoints", "/checkpoints/1", "/resume-packet", "/resume-packet.md", "/waits", "/wakes"]
    paths = [f"/runs/{asked.run_id}{rest}" for rest in [*of_run, "/decisions", "/journal", "/verify", "/export"]]
    paths += [f"/effects/{effect_id}", f"/approvals/{asked.request.pk}", "/workflows/refund/versions"]
    paths += [f"/effects?run={asked.run_id}"]
    for path in paths:
        refused(blind.get(path), 404, "not-found")
    identity.grant_permission(world.admin, outsider, Verb.SEE, world.workflow)
    for path in paths:
        if "resume-packet" in path:
            refused(blind.get(path), 404, "not-found")
        else:
            assert blind.get(path).status_code == 200, path
    assert blind.get(f"/runs/{asked.run_id}/checkpoints/1").json()["state"] is None
    assert blind.get(f"/effects/{effect_id}").json()["request"] is None
    identity.grant_permission(world.admin, outsider, Verb.SEE_PAYLOADS, world.workflow)
    assert blind.get(f"/effects/{effect_id}").json()["request"] == {"text": "hello"}
    assert blind.get(f"/runs/{asked.run_id}/resume-packet").status_code == 200
