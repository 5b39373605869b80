"""The same rules at every door: the page, its fragment and the API with a session decide alike; a key, a link and a command can't."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.core.management import get_commands
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from approvals import receipts
from approvals.models import ApprovalRequest, Vote
from ledger.domain.identity import Scope, Verb
from ledger.models import Grant, JournalEntry, User
from ledger.services import identity, verifications
from tests.api.conftest import PREFIX, Http
from tests.api.test_approvals import Signed
from tests.approvals.asking import RECEIPT
from tests.clock import Clock
from tests.ui.asking import address, ask, client_of, decide, form_of, votes
from tests.world import World

DOORS = ("page", "fragment", "api")
WELL = {"page": 302, "fragment": 200, "api": 200}


@dataclass
class Seen:
    """What an approver has on the screen, whichever way they will decide."""

    world: World
    request: ApprovalRequest
    form: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.form = form_of(client_of(self.world.bob).get(address(self.world, self.request)).content.decode())

    def send(self, door: str, user: User, decision: str = "approve", reason: str = "", **forged: Any) -> int:
        """Decide by this door; the status of the answer."""
        if door == "api":
            body = {"decision": decision, "reason": reason, "digest": self.form["digest"]}
            body |= {"revision": int(self.form["revision"]), **forged}
            return int(Signed(user).post(f"/approvals/{self.request.pk}/decision", body).status_code)
        own = receipts.seal(RECEIPT, self.request.pk, user.pk)
        data = {**self.form, "receipt": own, "decision": decision, "reason": reason, **forged}
        headers = {"HX-Request": "true"} if door == "fragment" else {}
        sent = client_of(user).post(address(self.world, self.request, "approval_decide"), data, headers=headers)
        return int(sent.status_code)


def approver(world: World) -> User:
    return world.alice


def outsider(world: World) -> User:
    return World().alice


def reader(world: World) -> User:
    person = world.person("reader")
    for verb in (Verb.SEE, Verb.SEE_PAYLOADS):
        identity.grant_permission(world.admin, person, verb, world.workflow)
    return person


def without_group(world: World) -> User:
    person = reader(world)
    identity.grant_permission(world.admin, person, Verb.APPROVE, world.workflow)
    return person


def owner(world: World) -> User:
    """The agent's own person, in the group and with the right."""
    identity.add_to_team(world.admin, world.approvers, world.dora)
    return world.dora


def superuser(world: World) -> User:
    person = world.person("root")
    person.is_superuser = True
    person.save()
    return person


def gone(world: World) -> User:
    identity.remove_from_team(world.admin, world.approvers, world.alice)
    return world.alice


WHO: dict[str, tuple[Callable[[World], User], int]] = {
    "another tenant's approver": (outsider, 404),
    "a superuser without rights": (superuser, 404),
    "an approver who left the team": (gone, 404),
    "somebody who may only read": (reader, 403),
    "an approver of none of the groups": (without_group, 403),
    "the owner of the agent": (owner, 403),
}
SAID: dict[str, tuple[dict[str, Any], int]] = {
    "another word": ({"decision": "Approve"}, 422),
    "no word": ({"decision": ""}, 422),
    "a denial without a reason": ({"decision": "deny"}, 422),
    "another digest": ({"digest": "0" * 64}, 412),
    "another revision": ({"revision": 2}, 412),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("who", WHO)
def test_who_may_not_decide_may_not_at_any_door(door: str, who: str, world: World) -> None:
    request = ask(world)
    seen = Seen(world, request)
    find, status = WHO[who]
    person = find(world)
    for decision, reason in (("approve", ""), ("deny", "no")):
        assert seen.send(door, person, decision, reason) == status
    assert not votes(request) and Grant.objects.of(world.tenant).count() == 0


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("said", SAID)
def test_what_does_not_count_counts_at_no_door(door: str, said: str, world: World) -> None:
    request = ask(world)
    forged, status = SAID[said]
    assert Seen(world, request).send(door, world.alice, **forged) == status
    assert not votes(request) and Grant.objects.of(world.tenant).count() == 0


@pytest.mark.parametrize("door", DOORS)
def test_every_door_decides_once_repeats_alike_and_refuses_the_second_and_the_late(
    door: str, world: World, clock: Clock
) -> None:
    request, late = ask(world), ask(world, hours=1)
    first, too_late = Seen(world, request), Seen(world, late)
    assert first.send(door, world.alice) == WELL[door]
    assert first.send(door, world.alice) in (WELL[door], 200)
    assert first.send(door, world.bob, "deny", "no") == 409
    assert votes(request) == [(world.alice.pk, "approve")]
    assert Grant.objects.of(world.tenant).filter(request_id=request.pk).count() == 1
    clock.shift(3_601)
    assert too_late.send(door, world.alice) == 410
    assert not votes(late)


@pytest.mark.parametrize("door", DOORS)
def test_the_quorum_is_the_same_at_every_door_and_doors_may_be_mixed(door: str, world: World) -> None:
    world.policy(({"tool": "payments.*", "verdict": "approve", "group": "approvers", "quorum": 2},))
    request = ask(world)
    assert Seen(world, request).send(door, world.alice) == WELL[door]
    assert Grant.objects.of(world.tenant).count() == 0, "one of two is no leave"
    other = DOORS[(DOORS.index(door) + 1) % len(DOORS)]
    assert Seen(world, request).send(other, world.bob) == WELL[other]
    assert Grant.objects.of(world.tenant).filter(request_id=request.pk, state="live").count() == 1


@pytest.mark.parametrize("door", DOORS)
def test_signed_out_no_door_decides(door: str, world: World) -> None:
    request = ask(world)
    seen = Seen(world, request)
    nobody = Client()
    if door == "api":
        answer = nobody.post(f"{PREFIX}/approvals/{request.pk}/decision", {}, content_type="application/json")
        assert answer.status_code == 401
    else:
        headers = {"HX-Request": "true"} if door == "fragment" else {}
        data = {**seen.form, "decision": "approve"}
        assert nobody.post(address(world, request, "approval_decide"), data, headers=headers).status_code == 401
    identity.deactivate_person(world.admin, world.alice)
    assert not votes(request)


def test_no_command_decides(world: World) -> None:
    ours = {name for name, app in get_commands().items() if app in ("ledger", "approvals", "resumeapp")}
    assert not {name for name in ours if "decide" in name or "approve" in name or "vote" in name}


# Reading ----------------------------------------------------------------------------------------------


def _addresses(resolver: URLResolver, prefix: str = "") -> list[str]:
    found = []
    for each in resolver.url_patterns:
        route = prefix + str(each.pattern)
        if isinstance(each, URLPattern):
            found.append(route)
        else:
            found += _addresses(each, route)
    return found


def every_address(world: World, known: dict[str, str]) -> list[str]:
    """Every address of the product with the ids of this tenant in it."""
    filled = []
    for route in _addresses(get_resolver()):
        for name, value in known.items():
            route = re.sub(rf"<(\w+:)?{name}>", value, route)
        assert "<" not in route, route
        filled.append("/" + route)
    return filled


@pytest.mark.parametrize("method", ["get", "head", "options"])
def test_reading_any_address_changes_nothing_and_decides_nothing(method: str, world: World) -> None:
    request, other = ask(world), ask(world)
    decide(client_of(world.alice), world, other, "approve")
    effect = world.effect(request.run_id)
    known = {
        "slug": world.tenant.slug,
        "request_id": str(request.pk),
        "run_id": str(request.run_id),
        "effect_id": str(effect.pk),
        "handoff_id": str(effect.pk),
        "check_id": str(verifications.ask(world.caller, request.run_id)),
        "workflow": "refund",
        "version": "1",
        "stream": str(request.run_id),
        "seq": "1",
        "part": "standing",
    }
    secret = identity.issue_key(
        world.admin, "alice", (Scope.RUNS_READ, Scope.OPERATE), person=world.alice, workflows=["*"]
    ).secret
    alice, key = client_of(world.alice), Http(secret)
    before = written(world)
    for path in every_address(world, known):
        query = {"decision": "approve", "revision": "1", "digest": bytes(request.digest).hex()}
        for headers in (
            {},
            {"HX-Request": "true"},
            {"Purpose": "prefetch", "User-Agent": "Slackbot-LinkExpanding 1.0"},
        ):
            answer = getattr(alice, method)(path, query, headers=headers)
            assert answer.status_code < 500, (path, answer.status_code)
        getattr(key.client, method)(path, headers=key.headers)
    assert written(world) == before
    if method == "get":
        alice = client_of(world.alice)
        assert decide(alice, world, request, "approve").status_code == 302, "the link is not used up"


def written(world: World) -> tuple[int, int, int]:
    return (
        JournalEntry.objects.of(world.tenant).count(),
        Vote.objects.of(world.tenant).count(),
        Grant.objects.of(world.tenant).count(),
    )
