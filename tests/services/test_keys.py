"""Bearer keys: what is taken, what is refused, and what is kept of them."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from ledger.domain.errors import LedgerError
from ledger.domain.identity import Emit, Scope
from ledger.models import ApiKey, JournalEntry
from ledger.services import facts, identity, keys
from tests.clock import Clock
from tests.services.conftest import People


def issue(people: People, **more: object) -> identity.IssuedKey:
    return identity.issue_key(
        people.admin, "worker", [Scope.RUNS_WORK], agent_id=people.agent_id, **{"workflows": ["*"], **more}
    )  # type: ignore[arg-type]


def refused(header: str | None) -> str:
    with pytest.raises(LedgerError) as refusal:
        keys.authenticate(header)
    return refusal.value.code


def test_what_is_no_key_is_refused(people: People) -> None:
    issued = issue(people)
    wrong = issued.secret[:-1] + ("0" if issued.secret[-1] != "0" else "1")
    for header in (None, "", "Bearer", f"Basic {issued.secret}", "Bearer ra_x_y", f"Bearer {wrong}", issued.secret):
        assert refused(header) == "unauthenticated"


def test_a_revoked_key_is_refused_as_revoked(people: People) -> None:
    issued = issue(people)
    identity.revoke_key(people.admin, issued.id)
    assert refused(f"Bearer {issued.secret}") == "key-revoked"


def test_a_key_expires_by_the_databases_clock(people: People, clock: Clock) -> None:
    issued = issue(people, expires_at=facts.read().now + timedelta(minutes=1))
    assert keys.authenticate(f"Bearer {issued.secret}").key_id == issued.id
    clock.shift(61)
    assert refused(f"Bearer {issued.secret}") == "key-expired"


def test_a_key_of_a_deactivated_agent_or_person_is_refused(people: People) -> None:
    issued = issue(people)
    own = identity.issue_key(people.admin, "mine", [Scope.OPERATE], person=people.alice, workflows=["*"])
    identity.deactivate_agent(people.admin, people.agent_id)
    identity.deactivate_person(people.admin, people.alice)
    assert refused(f"Bearer {issued.secret}") == "unauthenticated"
    assert refused(f"Bearer {own.secret}") == "unauthenticated"


def test_an_agents_key_can_never_operate(people: People) -> None:
    with pytest.raises(LedgerError) as refusal:
        identity.issue_key(people.admin, "x", [Scope.OPERATE], agent_id=people.agent_id, workflows=["*"])
    assert refusal.value.code == "invalid"


def test_a_persons_key_can_never_work_on_a_run(people: People) -> None:
    with pytest.raises(LedgerError) as refusal:
        identity.issue_key(people.admin, "x", [Scope.RUNS_WORK], person=people.alice, workflows=["*"])
    assert refusal.value.code == "invalid"


@pytest.mark.parametrize("scopes", [[], ["everything"], ["runs:work", "decide"]])
def test_scopes_that_are_unknown_are_refused(people: People, scopes: list[str]) -> None:
    with pytest.raises(LedgerError) as refusal:
        identity.issue_key(people.admin, "x", scopes, agent_id=people.agent_id, workflows=["*"])
    assert refusal.value.code == "invalid"


def test_a_key_names_its_tenant_agent_and_scopes(people: People) -> None:
    caller = keys.authenticate(f"Bearer {issue(people).secret}")
    assert (caller.tenant_id, caller.agent_id, caller.actor) == (
        people.tenant.pk,
        people.agent_id,
        f"agent:{people.agent_id}",
    )
    assert caller.scopes == {"runs:work"}


def test_the_secret_is_kept_nowhere(people: People) -> None:
    issued = issue(people)
    random_part = issued.secret.rsplit("_", 1)[1].encode()
    entries = [bytes(content) for content in JournalEntry.objects.of(people.tenant).values_list("content", flat=True)]
    row = ApiKey.objects.of(people.tenant).get(pk=issued.id)
    assert not any(random_part in content or row.hash.hex().encode() in content for content in entries)
    assert random_part.decode() not in repr(row.__dict__) and issued.secret not in repr(issued)


def test_last_use_is_written_once_a_minute_at_most(people: People) -> None:
    issued = issue(people)
    keys.authenticate(f"Bearer {issued.secret}")
    first = ApiKey.objects.of(people.tenant).get(pk=issued.id).last_used_at
    keys.authenticate(f"Bearer {issued.secret}")
    assert first is not None
    assert ApiKey.objects.of(people.tenant).get(pk=issued.id).last_used_at == first


def test_rotating_with_an_overlap_keeps_the_old_key_for_a_while(people: People) -> None:
    old = issue(people)
    new = identity.rotate_key(people.admin, old.id, overlap=timedelta(hours=1))
    assert keys.authenticate(f"Bearer {old.secret}").key_id == old.id
    assert keys.authenticate(f"Bearer {new.secret}").scopes == {"runs:work"}
    last = identity.rotate_key(people.admin, new.id)
    assert refused(f"Bearer {new.secret}") == "key-revoked"
    assert keys.authenticate(f"Bearer {last.secret}").key_id == last.id


def test_a_key_that_names_no_workflow_type_is_refused(people: People) -> None:
    with pytest.raises(LedgerError) as refusal:
        issue(people, workflows=[])
    assert refusal.value.code == "invalid" and "*" in refusal.value.remedy


def test_a_rotated_key_has_the_leaves_of_the_old_one(people: People) -> None:
    emits = [Emit("order.*", "/shop")]
    old = identity.issue_key(
        people.admin, "relay", [Scope.EVENTS_EMIT], workflows=["refund"], emits=emits, agent_id=people.agent_id
    )
    new = keys.authenticate(f"Bearer {identity.rotate_key(people.admin, old.id).secret}")
    assert (new.workflows, new.emits) == ({"refund"}, (Emit("order.*", "/shop"),))


def test_the_command_issues_no_key_for_every_type_unless_that_is_said(people: People) -> None:
    command = ["create_key", people.tenant.slug, "--agent", "refunder", "--scope", "events:emit"]
    with pytest.raises(CommandError, match="--workflow"):
        call_command(*command)
    with pytest.raises(CommandError, match="names"):
        call_command(*command, "--workflow", "refund*")
    out = StringIO()
    emits = ["--emit", "order.*", "/shop", "--emit", "wire.sent", "/bank/*"]
    call_command(*command, "--workflow", "*", *emits, stdout=out)
    caller = keys.authenticate(f"Bearer {out.getvalue().strip()}")
    assert caller.workflows == {"*"} and caller.emits == (Emit("order.*", "/shop"), Emit("wire.sent", "/bank/*"))


def test_the_command_prints_a_key_that_works(people: People) -> None:
    out = StringIO()
    call_command(
        "create_key",
        people.tenant.slug,
        "--agent",
        "refunder",
        "--scope",
        "runs:read",
        "--workflow",
        "refund",
        stdout=out,
    )
    assert keys.authenticate(f"Bearer {out.getvalue().strip()}").scopes == {"runs:read"}
