"""`manage.py rights TENANT PERSON`: what somebody may do, and giving or taking one right, with what it comes to told before."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ledger.domain.errors import LedgerError
from ledger.domain.identity import Verb
from ledger.models import Membership, Tenant, User, WorkflowType
from ledger.services import administration, identity, permissions, rights
from ledger.services.rights import Right


class Command(BaseCommand):
    help = "Tell what a person may do in a tenant; with --give or --take, one right more or less: told first, done with --yes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tenant", help="slug of the tenant")
        parser.add_argument("person", help="e-mail address of the person")
        change = parser.add_mutually_exclusive_group()
        change.add_argument("--give", choices=[str(verb) for verb in Verb], help="the right to give")
        change.add_argument("--take", choices=[str(verb) for verb in Verb], help="the right to take away")
        parser.add_argument("--workflow", metavar="NAME", help="in this workflow alone; otherwise in the whole tenant")
        parser.add_argument("--yes", action="store_true", help="do it; otherwise it is only told")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = Tenant.objects.filter(slug=options["tenant"]).first()
        if tenant is None:
            raise CommandError(f"there is no tenant {options['tenant']!r}")
        member = Membership.objects.of(tenant).filter(user__email__iexact=options["person"]).select_related("user")
        found = member.first()
        if found is None:
            raise CommandError(
                f"{options['person']!r} is no member of {tenant.slug}; identity.add_person or identity.join first"
            )
        where = _where(tenant, options["workflow"])
        verb = options["give"] or options["take"]
        if not verb:
            self._tell(found.user, tenant)
            return
        self._change(found.user, Verb(verb), where, give=bool(options["give"]), really=options["yes"])

    def _tell(self, person: User, tenant: Tenant) -> None:
        held = rights.of(person, tenant)
        self.stdout.write(
            f"{person.name} ({person.email}) in {tenant.slug}:"
            if held
            else f"{person.name} has no right in {tenant.slug}."
        )
        for right in held:
            self.stdout.write(f"  {right.verb:<14} {_told(right)}")
        if held and not permissions.member(person, tenant.pk):
            self.stdout.write("None of it counts: the person, or the membership, is not active.")

    def _change(self, person: User, verb: Verb, where: WorkflowType | Tenant, *, give: bool, really: bool) -> None:
        tenant = where if isinstance(where, Tenant) else where.tenant
        place = _place(where)
        own = Right(str(verb), "" if isinstance(where, Tenant) else where.name, "")
        held = rights.of(person, tenant)
        if give is (own in held):
            self.stdout.write(f"Nothing to do: {person.name} {'has' if give else 'does not have'} {verb} in {place}.")
            return
        self.stdout.write(f"{person.name} ({person.email}) {'is given' if give else 'loses'} {verb} in {place}.")
        others = [
            right for right in held if right != own and right.verb == own.verb and right.workflow in ("", own.workflow)
        ]
        for right in others:
            self.stdout.write(f"They have it {_told(right)} too{', and keep that' if not give else ''}.")
        if isinstance(where, WorkflowType):
            names = ", ".join(sorted(user.name for user in permissions.holders(verb, where))) or "nobody"
            self.stdout.write(f"Who may {str(verb).replace('_', ' ')} there now: {names}.")
        if not really:
            self.stdout.write("Nothing was changed. Add --yes to do it.")
            return
        act = identity.grant_permission if give else identity.withdraw_permission
        try:
            act(administration.command_line(tenant.pk), person, verb, where)
        except LedgerError as refusal:
            raise CommandError(f"{refusal.reason}. {refusal.remedy}") from refusal
        self.stdout.write("Done, and noted in the history.")


def _where(tenant: Tenant, name: str | None) -> WorkflowType | Tenant:
    if name is None:
        return tenant
    workflow: WorkflowType | None = WorkflowType.objects.of(tenant).filter(name=name).select_related("tenant").first()
    if workflow is None:
        known = ", ".join(WorkflowType.objects.of(tenant).order_by("name").values_list("name", flat=True)) or "none yet"
        raise CommandError(f"there is no workflow {name!r} in {tenant.slug}: {known}")
    return workflow


def _place(where: WorkflowType | Tenant) -> str:
    return f"the whole of {where.slug}" if isinstance(where, Tenant) else f"the workflow {where.name}"


def _told(right: Right) -> str:
    place = f"in the workflow {right.workflow}" if right.workflow else "in the whole tenant"
    return f"{place}, through the team {right.team}" if right.team else place
