"""Two tenants side by side: everything that theirs has, and everybody who could come from ours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from django.urls import URLPattern, URLResolver, get_resolver

from ledger.domain.identity import Verb
from ledger.models import JournalEntry, User
from ledger.services import identity, verifications
from tests.clock import moved_clock
from tests.ui.asking import ask
from tests.ui.scenes import handed_over
from tests.world import World

MARKER = "words-of-the-neighbour-5f0b"
TENANT_ADDRESS = "t/<slug:slug>/"


@dataclass(frozen=True)
class Theirs:
    """A tenant with a request that is pending, an effect whose outcome nobody knows, a handoff and a check;
    `ids` by the names that addresses use."""

    world: World
    ids: Mapping[str, UUID]

    @property
    def words(self) -> list[str]:
        """What nobody else may ever read."""
        world = self.world
        people = (world.alice, world.bob, world.charlie, world.dora)
        return [world.tenant.name, MARKER, str(world.tenant.pk), *(person.email for person in people)]


def theirs() -> Theirs:
    """Theirs, as the product itself brings it there."""
    world = World()
    state = {"order": MARKER, "amount_minor": 4200, "currency": "EUR"}
    with moved_clock() as clock:
        handoff = handed_over(world, clock)
        request = ask(world, state=state)
    ids = {
        "run_id": UUID(str(request.run_id)),
        "request_id": UUID(str(request.pk)),
        "effect_id": UUID(str(handoff.effect_id)),
        "handoff_id": UUID(str(handoff.pk)),
        "stream": UUID(str(request.run_id)),
        "check_id": verifications.ask(world.caller, UUID(str(request.run_id))),
    }
    identity.grant_permission(world.admin, world.charlie, Verb.AUDIT, world.tenant)
    return Theirs(world, ids)


def people(world: World) -> dict[str, User | None]:
    """Everybody who could come from our side: each role, a member without rights, somebody of no tenant, a superuser, nobody."""
    outsider, superuser = world.person("outsider"), world.person("superuser")
    identity.leave(world.admin, outsider)
    superuser.is_superuser = True
    superuser.save()
    return {
        "approver": world.alice,
        "operator": world.charlie,
        "administrator": world.dora,
        "member without rights": world.person("eve"),
        "superuser": superuser,
        "of no tenant": outsider,
        "nobody": None,
    }


ROLES = ("approver", "operator", "administrator", "member without rights", "superuser", "of no tenant", "nobody")


@dataclass(frozen=True)
class Route:
    """A page's address: `names` are the ids in it, by the name of their argument."""

    name: str
    text: str
    names: tuple[str, ...] = field(default=())


def patterns(resolver: URLResolver | None = None, before: str = "") -> Iterator[tuple[str, URLPattern]]:
    """Every address of the URL configuration, with its pattern."""
    for each in (resolver or get_resolver()).url_patterns:
        text = before + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from patterns(each, text)
        else:
            yield text, each


def routes() -> list[Route]:
    """Every address of the URL configuration but the API's, whose operations have a test of their own."""
    found = []
    for text, pattern in patterns():
        if not text.startswith("api/"):
            found.append(Route(str(pattern.name), text, tuple(re.findall(r"<\w+:(\w+)>", text))))
    return found


def entries(*worlds: World) -> list[int]:
    """How long the journals of these tenants are."""
    return [JournalEntry.objects.of(world.tenant).count() for world in worlds]


@contextmanager
def unwritten(*worlds: World) -> Iterator[None]:
    """Nothing is written to these tenants meanwhile."""
    before = entries(*worlds)
    yield
    assert entries(*worlds) == before
