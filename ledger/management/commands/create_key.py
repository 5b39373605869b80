"""Issue a key for an agent or a person from the command line."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ledger.domain.errors import LedgerError
from ledger.domain.identity import Emit, Scope
from ledger.models import Agent, Tenant, User
from ledger.services import administration, facts, identity


class Command(BaseCommand):
    help = "Issue a key for an agent or a person. The secret is printed once and kept nowhere."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tenant", help="slug of the tenant")
        owner = parser.add_mutually_exclusive_group(required=True)
        owner.add_argument("--agent", help="name of the agent")
        owner.add_argument("--person", help="e-mail address of the person")
        parser.add_argument("--label", default="command line")
        parser.add_argument("--scope", action="append", required=True, choices=[str(scope) for scope in Scope])
        parser.add_argument(
            "--workflow",
            action="append",
            required=True,
            metavar="NAME",
            help="a workflow type that it is for; * is every one",
        )
        parser.add_argument(
            "--emit",
            action="append",
            nargs=2,
            default=[],
            metavar=("TYPE", "SOURCE"),
            help="events that it may emit: each exact, or ending with *; none given is none allowed",
        )
        parser.add_argument("--days", type=int, default=90, help="days until it expires; 0 is never")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = Tenant.objects.filter(slug=options["tenant"]).first()
        if tenant is None:
            raise CommandError(f"there is no tenant {options['tenant']!r}")
        agent = Agent.objects.of(tenant).filter(name=options["agent"]).first() if options["agent"] else None
        person = User.objects.filter(email__iexact=options["person"]).first() if options["person"] else None
        if agent is None and person is None:
            raise CommandError("there is no such agent or person")
        expires = facts.read().now + timedelta(days=options["days"]) if options["days"] else None
        try:
            issued = identity.issue_key(
                administration.command_line(tenant.pk),
                options["label"],
                options["scope"],
                workflows=options["workflow"],
                emits=[Emit(*pair) for pair in options["emit"]],
                agent_id=agent.pk if agent else None,
                person=person,
                expires_at=expires,
            )
        except LedgerError as refusal:
            raise CommandError(f"{refusal.reason}. {refusal.remedy}") from refusal
        found = {"id": str(issued.id), "prefix": issued.prefix, "key": issued.secret}
        self.stdout.write(json.dumps(found) if options["as_json"] else issued.secret)
