"""Schedules of the queue, from code only: one bad row would stop them all, and names aren't unique in their table."""

from __future__ import annotations

from typing import Any, Final

from django.db import connection, transaction
from django_q.models import Schedule

LOCK: Final = 0x72_61_71_73
"""Any number that nothing else locks by."""

WANTED: Final[dict[str, dict[str, Any]]] = {
    "sweep": {"func": "ledger.tasks.sweep", "schedule_type": Schedule.MINUTES, "minutes": 1, "repeats": -1},
}


def ensure() -> None:
    """Make the schedules exactly what the code says; many processes may do so at once."""
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        Schedule.objects.exclude(name__in=WANTED).delete()
        for name, wanted in WANTED.items():
            present = list(Schedule.objects.filter(name=name).order_by("pk"))
            if len(present) == 1 and all(getattr(present[0], key) == value for key, value in wanted.items()):
                continue
            Schedule.objects.filter(name=name).delete()
            Schedule.objects.create(name=name, **wanted)
