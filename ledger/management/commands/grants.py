"""`manage.py grants ROLE`: the SQL that lets PostgreSQL's application role run the program, and neither own nor rewrite the record."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError

from ledger.models.tables import tables

NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


def statements(role: str) -> Iterator[str]:
    """Rights for `role`, to be run by the owner of the tables after each migration."""
    yield f"GRANT USAGE ON SCHEMA public TO {role};"
    yield f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {role};"
    yield f"GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role};"
    yield f"GRANT SELECT ON django_migrations TO {role};"
    kept = {table.name for table in tables().values() if table.append_only}
    body = tables()["body"].name
    for name in sorted({model._meta.db_table for model in apps.get_models(include_auto_created=True)}):
        rights = "SELECT, INSERT" if name in kept else "SELECT, INSERT, UPDATE, DELETE"
        if name == body:
            # Erasing is an UPDATE; the trigger lets no other one through.
            rights = "SELECT, INSERT, UPDATE"
        yield f'GRANT {rights} ON "{name}" TO {role};'


class Command(BaseCommand):
    help = "Print the SQL that gives PostgreSQL's application role its rights: run it as the tables' owner after each migration."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("role", help="the role that DATABASE_URL of web, cluster and timer names")

    def handle(self, *args: Any, **options: Any) -> None:
        if not NAME.fullmatch(options["role"]):
            raise CommandError("a role's name has lower-case letters, digits and underscores")
        for line in statements(options["role"]):
            self.stdout.write(line)
