"""One administrative act: one transaction, one entry on the tenant's stream.

The tenant's head is locked first, so acts of one tenant follow one another, and `head_seq` is the version of everything administrative.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import IntegrityError, transaction

from ledger.domain.change import Kind, Stream
from ledger.domain.drafts import Draft
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller, Verb
from ledger.models import Tenant
from ledger.services import facts, locks, permissions, writer
from ledger.services.conflicts import Conflict, conflict
from ledger.services.facts import Part
from ledger.services.ids import minter

COMMAND_LINE = "system:admin"

_TAKEN = {
    "agent_name_unique": "there is already an agent of this name here",
    "api_key_prefix_unique": "the key's prefix is taken",
    "team_slug_unique": "there is already a team of this name here",
    "user_email_unique": "there is already a person with this e-mail address",
    "policy_number_unique": "another policy version was published at the same moment",
}


def command_line(tenant_id: UUID) -> Caller:
    """Whoever has the machine: commands and the first set-up."""
    return Caller(tenant_id=tenant_id, actor=COMMAND_LINE)


@contextmanager
def act(caller: Caller, verb: str) -> Iterator[Draft]:
    """Run the body under the tenant's lock with a Draft on its stream, which is applied at the end unless it is empty.

    Raises LedgerError `not-found` without the tenant, `forbidden` without the right, `invalid` when a name is taken.
    """
    try:
        with transaction.atomic():
            draft = draft_of(caller, verb)
            check(caller)
            yield draft
            if not draft.empty():
                writer.apply(draft.change())
    except (Conflict, IntegrityError) as error:
        found = error if isinstance(error, Conflict) else conflict(error)
        reason = _TAKEN.get(found.constraint, "it contradicts what is there")
        raise LedgerError("invalid", reason, "Choose another name.", constraint=found.constraint) from error


def draft_of(caller: Caller, verb: str) -> Draft:
    """A Draft on the stream of the caller's tenant, as of after its lock. Raises LedgerError `not-found`."""
    locks.tenant_head(caller.tenant_id)
    read = facts.read(tenant=Part("tenant_head", "t.tenant_id = %s", (caller.tenant_id,)))
    head = read.row("tenant")
    if head is None:
        raise LedgerError("not-found", "there is no such tenant", "Check the address.")
    return Draft(
        stream=Stream(Kind.TENANT, caller.tenant_id, caller.tenant_id, head["salt"]),
        expect_seq=head["head_seq"],
        at=read.now,
        actor=caller.actor,
        verb=verb,
        mint=minter(read.now),
    )


def check(caller: Caller) -> None:
    """Administration is for signed-in people with the right to administer, and for the command line. Raises LedgerError `forbidden`."""
    if caller.actor == COMMAND_LINE:
        return
    if caller.person_id is not None and caller.key_id is None:
        tenant = Tenant(pk=caller.tenant_id)
        if permissions.can(caller.person_id, Verb.ADMINISTER, tenant):
            return
    raise LedgerError("forbidden", "you may not administer this tenant", "Ask an administrator of the tenant to do it.")
