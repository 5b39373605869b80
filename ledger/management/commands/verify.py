"""`manage.py verify TENANT`: is the record intact?"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from ledger.domain.journal import Fault
from ledger.models import Run, Tenant
from ledger.services import verify


class Command(BaseCommand):
    help = "Recompute a tenant's administration, its events and its runs, and name every fault. Nothing is repaired; ends with 1 on a fault."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant", help="the tenant's name in addresses")
        parser.add_argument("--run", type=UUID, help="only this run")
        parser.add_argument("--json", action="store_true", help="answer as JSON Lines, one a fault")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = Tenant.objects.filter(slug=options["tenant"]).first()
        if tenant is None:
            raise CommandError(f"there is no tenant {options['tenant']}")
        checked, faulty = 0, 0
        for name, faults in self._reports(tenant, options["run"]):
            checked += 1
            faulty += bool(faults)
            for fault in faults:
                self._tell(name, fault, as_json=options["json"])
        if not options["json"]:
            self.stdout.write(f"{checked} streams verified, {faulty} with faults")
        if faulty:
            raise CommandError("the record is not intact", returncode=1)

    def _reports(self, tenant: Tenant, only: UUID | None) -> Iterable[tuple[str, list[Fault]]]:
        if only is not None:
            yield f"run:{only}", verify.run(only, tenant.pk).faults
            return
        yield f"tenant:{tenant.pk}", verify.tenant(tenant.pk).faults
        for run_id in Run.objects.of(tenant).order_by("pk").values_list("pk", flat=True).iterator(chunk_size=500):
            yield f"run:{run_id}", verify.run(run_id, tenant.pk).faults

    def _tell(self, name: str, fault: Fault, *, as_json: bool) -> None:
        if as_json:
            told = {
                "stream": name,
                "seq": fault.seq,
                "object": fault.object,
                "code": fault.code,
                "reason": fault.reason,
            }
            self.stdout.write(json.dumps(told))
        else:
            self.stdout.write(f"{name}: {fault.code}: {fault.reason}")
